//! Messages in bodies: as JSON for the chat API, as one text for the completions API.

use std::fmt::{self, Display};

use goodput_model::{Message, MessagePart};
use serde::de::IgnoredAny;

use super::text::write_text;

/// Bytes that the messages take, about: escapes and raw messages in completions may differ.
pub(super) fn text_length<'a>(messages: impl Iterator<Item = &'a Message>) -> usize {
    let length = |message: &Message| match message {
        Message::Plain { parts, .. } => parts.iter().map(|part| 64 + part_text(part).len()).sum(),
        Message::Raw(json) => json.len(),
    };
    // Most of our prompts have some line ends and quotes; room for them saves a copy.
    messages.map(|message| 64 + length(message)).map(|length| length + length / 32).sum()
}

fn part_text(part: &MessagePart) -> &str {
    match part {
        MessagePart::Text(content) | MessagePart::Image(content) => content,
    }
}

/// The array of the chat API.
pub(super) fn write_messages<'a>(out: &mut Vec<u8>, messages: impl Iterator<Item = &'a Message>) {
    write_list(out, messages, |out, message| match message {
        Message::Raw(json) => out.extend_from_slice(json.as_bytes()),
        Message::Plain { role, parts } => {
            out.extend_from_slice(b"{\"content\":");
            write_content(out, parts);
            out.extend_from_slice(b",\"role\":");
            write_text(out, role.name());
            out.push(b'}');
        }
    });
}

/// One string if it is only text, as every server takes that; else a list of parts.
fn write_content(out: &mut Vec<u8>, parts: &[MessagePart]) {
    let is_text = |part: &MessagePart| matches!(part, MessagePart::Text(_));
    if parts.iter().all(is_text) {
        return write_text(out, PartTexts(parts));
    }
    let groups = parts.chunk_by(|one, next| is_text(one) && is_text(next));
    write_list(out, groups, |out, group| match group {
        [MessagePart::Image(url)] => {
            out.extend_from_slice(b"{\"image_url\":{\"url\":");
            write_text(out, url);
            out.extend_from_slice(b"},\"type\":\"image_url\"}");
        }
        texts => {
            out.extend_from_slice(b"{\"text\":");
            write_text(out, PartTexts(texts));
            out.extend_from_slice(b",\"type\":\"text\"}");
        }
    });
}

/// The one string of the completions API.
pub(super) fn write_prompt<'a>(
    out: &mut Vec<u8>,
    messages: impl Iterator<Item = &'a Message> + Clone,
) {
    write_text(out, PromptText(messages));
}

/// A JSON array.
pub(super) fn write_list<T>(
    out: &mut Vec<u8>,
    items: impl Iterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (place, item) in items.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// The texts among some parts, in one piece.
struct PartTexts<'a>(&'a [MessagePart]);

impl Display for PartTexts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            MessagePart::Text(text) => f.write_str(text),
            MessagePart::Image(_) => Ok(()),
        })
    }
}

/// The texts of messages, each on a line of its own.
struct PromptText<I>(I);

impl<'a, I: Iterator<Item = &'a Message> + Clone> Display for PromptText<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, message) in self.0.clone().enumerate() {
            if place > 0 {
                f.write_str("\n")?;
            }
            match message {
                Message::Plain { parts, .. } => PartTexts(parts).fmt(f)?,
                Message::Raw(json) => message_text(json).fmt(f)?,
            }
        }
        Ok(())
    }
}

/// The text content of a message object.
fn message_text(json: &str) -> String {
    #[derive(serde::Deserialize)]
    struct ContentObject {
        #[serde(default)]
        content: Option<Content>,
    }
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Content {
        Text(String),
        Parts(Vec<ContentPiece>),
        Other(IgnoredAny),
    }
    #[derive(serde::Deserialize)]
    struct ContentPiece {
        #[serde(default)]
        text: Option<String>,
    }
    let content =
        serde_json::from_str::<ContentObject>(json).ok().and_then(|object| object.content);
    match content {
        Some(Content::Text(text)) => text,
        Some(Content::Parts(pieces)) => pieces.into_iter().filter_map(|piece| piece.text).collect(),
        Some(Content::Other(_)) | None => String::new(),
    }
}
