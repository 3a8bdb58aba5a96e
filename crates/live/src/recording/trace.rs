//! One file of a recording, complete in itself: a salt, a header, rows.

use std::io::{self, Read};
use std::path::Path;

use goodput_clock::{now, time_of_day};
use goodput_dataset::{TokenCounter, TraceHead, TraceRow, TraceWriter};
use goodput_model::{Exchange, Nanos};
use goodput_tokens::Tokenizer;
use sha2::{Digest, Sha256};

use super::capture::CapturedRequest;
use super::line_file::LineFile;
use super::scale::BlockCounts;
use crate::rows::{KeptRequest, Recorder, RowSettings};

/// The longest prompt that a row states: readers take no longer one.
const MOST_TOKENS: u64 = 10_000_000;

/// How rows are made, the same in all files.
#[derive(Clone)]
pub struct TraceOptions {
    /// Counts prompts, and cuts them into blocks.
    pub tokenizer: Tokenizer,
    /// Tokens of a block, as near as the server's tokens allow.
    pub block_tokens: u32,
    /// Whether rows hold the text itself.
    pub save_text: bool,
    /// The share of sessions that are recorded.
    pub share: f64,
    /// When a file ends, and all of it.
    pub limits: TraceLimits,
}

/// When a file ends, and all of it.
#[derive(Debug, Clone, Default)]
pub struct TraceLimits {
    /// Bytes of a file.
    pub rotate_size: Option<u64>,
    /// How long a file takes new requests.
    pub rotate_every: Option<Nanos>,
    /// Bytes of all files.
    pub max_size: Option<u64>,
    /// Requests in all files.
    pub max_requests: Option<u64>,
}

/// A request whose answer is waited for.
pub(super) struct Open {
    pub(super) number: u64,
    /// The number of its file.
    pub(super) file: usize,
    pub(super) question: KeptRequest,
    pub(super) arrived: Nanos,
    /// Bytes of its text that are kept.
    pub(super) held: usize,
}

/// What became of an answer.
pub(super) enum RowOutcome {
    Row(Box<TraceRow>),
    /// Its session is not recorded.
    LeftOut,
    /// Too much waits for the disk.
    Refused,
}

/// A new file without a word in it.
pub(super) struct NewTrace {
    file: LineFile,
    epoch: Nanos,
    /// The same instant in RFC 3339.
    started: String,
}

impl NewTrace {
    /// A file that was not there; its time begins now.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = LineFile::create(path)?;
        Ok(Self { file, epoch: now(), started: time_of_day() })
    }
}

/// A file that is written.
pub(super) struct Trace {
    recorder: Recorder,
    /// Writes a line at a time.
    writer: TraceWriter<Vec<u8>>,
    file: LineFile,
    block: BlockCounts,
    /// Decides which sessions are recorded; written nowhere.
    salt: [u8; 32],
    share: f64,
    /// The header is not on disk yet.
    is_new: bool,
    /// Its first instant.
    pub(super) epoch: Nanos,
    /// Requests whose answers are waited for.
    pub(super) open: u64,
    /// When a newer file took over.
    pub(super) followed: Option<Nanos>,
}

impl Trace {
    /// Begins a file: what its blocks are is settled.
    pub(super) fn begin(
        blank: NewTrace,
        options: &TraceOptions,
        block: BlockCounts,
    ) -> io::Result<Self> {
        let (salt, draw) = (random_salt()?, random_salt()?);
        let TraceOptions { tokenizer, save_text, share, .. } = options.clone();
        let head = TraceHead {
            block_tokens: Some(block.theirs),
            tokenizer: Some(tokenizer.name().to_owned()),
            started: Some(blank.started),
            text: save_text,
        };
        let block_tokens = block.ours;
        let recorder = Recorder::new(RowSettings { tokenizer, block_tokens, salt, save_text });
        let mut writer = TraceWriter::with_head(Vec::new(), &head)?;
        let mut file = blank.file;
        file.push(writer.sink());
        Ok(Self {
            recorder,
            writer,
            file,
            block,
            salt: draw,
            share,
            is_new: true,
            epoch: blank.epoch,
            open: 0,
            followed: None,
        })
    }

    pub(super) fn size(&self) -> u64 {
        self.file.size()
    }

    /// A request that came whole.
    pub(super) fn add_request(&mut self, ask: &CapturedRequest) -> KeptRequest {
        self.open += 1;
        let at = ask.arrived - self.epoch;
        self.recorder.start_row(at, ask.api, &ask.body, ask.session.as_deref())
    }

    /// All requests of a session are recorded, or none of them.
    fn is_sampled(&self, session: Option<&str>, number: u64) -> bool {
        if self.share >= 1.0 {
            return true;
        }
        let mut hash = Sha256::new_with_prefix(self.salt);
        match session {
            Some(session) => hash.update(session.as_bytes()),
            None => hash.update(number.to_le_bytes()),
        }
        let bits =
            hash.finalize().iter().take(8).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        // 53 bits are as many as a fraction has.
        ((bits >> 11) as f64) < self.share * (1_u64 << 53) as f64
    }

    /// Its answer. Which session it belongs to is known only now.
    pub(super) fn add_answer(&mut self, asked: Open, exchange: &Exchange) -> RowOutcome {
        self.open = self.open.saturating_sub(1);
        let mut row = self.recorder.finish_row(asked.question, asked.arrived, exchange);
        self.scale_row(&mut row);
        if !self.is_sampled(row.session.as_deref(), asked.number) {
            return RowOutcome::LeftOut;
        }
        let line = self.writer.sink();
        line.clear();
        let is_taken = self.writer.write(&row).is_ok() && self.file.push(self.writer.sink());
        if is_taken { RowOutcome::Row(Box::new(row)) } else { RowOutcome::Refused }
    }

    /// Brings a row to the server's tokens, in which the file has its blocks.
    fn scale_row(&self, row: &mut TraceRow) {
        let BlockCounts { theirs, ours } = self.block;
        if row.input_by != Some(TokenCounter::Usage) {
            let tokens = (u64::from(row.input_tokens) * u64::from(theirs)).div_ceil(ours.into());
            row.input_tokens = tokens.min(MOST_TOKENS) as u32;
        }
        // A reader wants no more blocks than there is room for.
        row.blocks.truncate(row.input_tokens.div_ceil(theirs) as usize);
    }

    /// Writes what is waiting: rows and bytes that came to the disk, and what it said.
    pub(super) fn flush(&mut self) -> (u64, u64, io::Result<()>) {
        let (lines, bytes, outcome) = self.file.flush();
        let header = u64::from(self.is_new && lines > 0);
        self.is_new &= lines == 0;
        (lines - header, bytes, outcome)
    }

    /// Rows that never came to the disk.
    pub(super) fn unwritten(&self) -> u64 {
        self.file.unwritten().saturating_sub(u64::from(self.is_new))
    }
}

/// 32 bytes that cannot be guessed.
fn random_salt() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
