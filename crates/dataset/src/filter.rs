//! Which entries are long and short enough.

use std::borrow::Cow;

use goodput_model::{Message, MessagePart};

use crate::object::JsonObject;
use crate::options::DatasetOptions;
use crate::{DatasetEntry, DatasetTurn};

/// Bounds on lengths, and who counts.
pub(crate) struct LengthFilter<'a> {
    pub(crate) options: &'a DatasetOptions,
    pub(crate) count: &'a dyn Fn(&str) -> u32,
}

impl LengthFilter<'_> {
    /// Whether there is anything to check.
    pub(crate) fn is_active(&self) -> bool {
        let options = self.options;
        options
            .min_input
            .or(options.max_input)
            .or(options.min_output)
            .or(options.max_total)
            .is_some()
    }

    /// Cuts the entry to the turns that are played, fills in the lengths of its answers, and says
    /// why it is left out. A prompt counts with the turns before it, as it is sent.
    pub(crate) fn check(&self, entry: &mut DatasetEntry) -> Option<String> {
        if let Some(turns) = self.options.turns {
            entry.turns.truncate(turns.max(1) as usize);
        }
        let mut history = 0u32;
        for turn in &mut entry.turns {
            if turn.output_tokens.is_none() && turn.reply.is_some() {
                turn.output_tokens = Some(self.count_messages(turn.reply.as_slice()).max(1));
            }
            if self.is_active() {
                let input = match turn.input_tokens {
                    Some(stated) => stated,
                    None => history.saturating_add(self.count_messages(&turn.messages)),
                };
                if let Some(reason) = self.rejection_reason(input, turn) {
                    return Some(reason);
                }
                history = input.saturating_add(self.count_messages(turn.reply.as_slice()));
            }
        }
        None
    }

    fn rejection_reason(&self, input: u32, turn: &DatasetTurn) -> Option<String> {
        let below = |least: Option<u32>, n: u32| least.filter(|least| n < *least);
        let above = |most: Option<u32>, n: u32| most.filter(|most| n > *most);
        if let Some(least) = below(self.options.min_input, input) {
            return Some(format!("prompt below {least} tokens"));
        }
        if let Some(most) = above(self.options.max_input, input) {
            return Some(format!("prompt above {most} tokens"));
        }
        let output = turn.output_tokens?;
        if let Some(least) = below(self.options.min_output, output) {
            return Some(format!("answer below {least} tokens"));
        }
        above(self.options.max_total, input.saturating_add(output))
            .map(|most| format!("prompt and answer above {most} tokens"))
    }

    fn count_messages(&self, messages: &[Message]) -> u32 {
        messages.iter().fold(0, |sum: u32, message| sum.saturating_add(self.count_message(message)))
    }

    fn count_message(&self, message: &Message) -> u32 {
        match message {
            Message::Raw(json) => raw_texts(json)
                .iter()
                .fold(0, |sum: u32, text| sum.saturating_add((self.count)(text))),
            Message::Plain { parts, .. } => parts.iter().fold(0, |sum: u32, part| match part {
                MessagePart::Text(text) => sum.saturating_add((self.count)(text)),
                // What an image costs only the server knows.
                MessagePart::Image(_) => sum,
            }),
        }
    }
}

/// What of a foreign message becomes text in a prompt: its content and its tool calls.
fn raw_texts(json: &str) -> Vec<Cow<'_, str>> {
    let Ok(object) = serde_json::from_str::<JsonObject<'_>>(json) else { return Vec::new() };
    let mut texts = Vec::new();
    if let Some(content) = object.non_null("content") {
        if let Ok(text) = crate::object::parse_string("content", content, "") {
            texts.push(text);
        } else if let Ok(parts) = serde_json::from_str::<Vec<JsonObject<'_>>>(content.get()) {
            let text = |part: &JsonObject<'_>| part.label("text").map(Cow::Owned);
            texts.extend(parts.iter().filter_map(text));
        }
    }
    texts.extend(object.non_null("tool_calls").map(|calls| Cow::Borrowed(calls.get())));
    texts
}
