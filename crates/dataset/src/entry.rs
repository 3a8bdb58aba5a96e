//! What files hold, whatever their form.

use std::collections::BTreeMap;

use goodput_model::{Api, ErrorClass, Message, MessagePart, Nanos};

/// One conversation, prompt or row of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DatasetEntry {
    /// Where it stands: the line, row or place in the array, from 1.
    pub line: u64,
    /// When it was asked, counted from the first entry of the trace.
    pub at: Option<Nanos>,
    /// What links it to other entries of the trace.
    pub session: Option<String>,
    /// Its class, where the file has such labels.
    pub class: Option<String>,
    /// At least one.
    pub turns: Vec<DatasetTurn>,
}

/// One question, and what is known of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DatasetTurn {
    /// What is said; empty in traces that hold lengths only.
    pub messages: Vec<Message>,
    /// The answer on file.
    pub reply: Option<Message>,
    /// Prompt length that the file states, the history included.
    pub input_tokens: Option<u32>,
    /// Answer length that the file states.
    pub output_tokens: Option<u32>,
    /// Names of the blocks of text that the prompt begins with: equal names are equal text.
    pub blocks: Vec<u64>,
    /// Further fields of the body: key and JSON text, in the order of their keys.
    pub fields: Vec<(String, String)>,
    /// Pause since the answer before.
    pub after: Option<Nanos>,
    /// How long the answer took when it was recorded.
    pub took: Option<Nanos>,
    /// How it was served when it was recorded.
    pub served: Option<Box<RecordedService>>,
}

/// How a request was served when it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedService {
    /// Which API was asked.
    pub endpoint: Option<Api>,
    /// Which model was asked.
    pub model: Option<String>,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The finish reason.
    pub finish: Option<String>,
    /// What went wrong, where the status does not say it.
    pub failure: Option<ErrorClass>,
    /// Time to the first token.
    pub ttft: Option<Nanos>,
    /// Who counted the prompt.
    pub input_by: Option<TokenCounter>,
    /// Who counted the answer.
    pub output_by: Option<TokenCounter>,
    /// Prompt tokens that came from the server's cache.
    pub cached_tokens: Option<u32>,
    /// Whether the row has request parameters in addition to the prompt.
    pub has_params: bool,
    /// Whether the row has the gaps between events.
    pub has_gaps: bool,
}

/// Who counted tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenCounter {
    /// The server.
    Usage,
    /// A tokenizer, over the text.
    Tokenizer,
    /// An estimate, over the text.
    Estimate,
    /// One for each event with text, or what the events list.
    Chunks,
}

impl TokenCounter {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Usage, Self::Tokenizer, Self::Estimate, Self::Chunks];

    /// The word in a row.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Tokenizer => "tokenizer",
            Self::Estimate => "estimate",
            Self::Chunks => "chunks",
        }
    }
}

/// A picture of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Its file, such as a JPEG.
    pub bytes: Vec<u8>,
    /// What is asked about it, or else its caption.
    pub text: Option<String>,
}

/// What was taken from a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Loaded {
    /// In the order in which they are to be used.
    pub entries: Vec<DatasetEntry>,
    /// Entries that the file holds.
    pub seen: u64,
    /// Entries left out, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// SHA-256 of the file in hexadecimal.
    pub sha256: String,
    /// The form that was found (`sharegpt`, `mooncake` …).
    pub format: &'static str,
    /// Tokens of one block of a trace.
    pub block_tokens: Option<u32>,
    /// What else a reader should know: fields left out, rows out of order.
    pub notes: Vec<String>,
}

impl DatasetEntry {
    /// Bytes of text in it, for bounds on memory.
    pub(crate) fn bytes(&self) -> u64 {
        let turn = |turn: &DatasetTurn| {
            let messages =
                turn.messages.iter().chain(&turn.reply).map(message_bytes).sum::<usize>();
            let fields =
                turn.fields.iter().map(|(key, json)| key.len() + json.len()).sum::<usize>();
            let served = turn.served.as_ref().map_or(0, |_| size_of::<RecordedService>());
            messages + fields + served + turn.blocks.len() * 8 + size_of::<DatasetTurn>()
        };
        (self.turns.iter().map(turn).sum::<usize>() + size_of::<Self>()) as u64
    }
}

fn message_bytes(message: &Message) -> usize {
    let text = match message {
        Message::Raw(json) => json.len(),
        Message::Plain { parts, .. } => parts
            .iter()
            .map(|part| match part {
                MessagePart::Text(text) | MessagePart::Image(text) => text.len(),
            })
            .sum(),
    };
    text + size_of::<Message>()
}
