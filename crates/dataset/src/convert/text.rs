//! Forms that hold text.

use std::io::{self, Write};

use goodput_model::{Message, MessagePart, Role};
use serde_json::{Map, Value, json};

use super::Converted;
use crate::{DatasetEntry, DatasetTurn, Loaded};

/// What no form of text holds.
fn count_lost_times(entry: &DatasetEntry, converted: &mut Converted) {
    converted.count_loss("at", entry.at.is_some());
    converted.count_loss("session", entry.session.is_some());
    converted.count_loss("class", entry.class.is_some());
    for turn in &entry.turns {
        converted.count_loss("input_tokens", turn.input_tokens.is_some());
        converted.count_loss("blocks", !turn.blocks.is_empty());
        converted.count_loss("after", turn.after.is_some());
        converted.count_loss("took", turn.took.is_some());
    }
}

/// Whether there is text to write.
fn has_text_or_count(entry: &DatasetEntry, converted: &mut Converted) -> bool {
    let has_text = entry.turns.first().is_some_and(|turn| !turn.messages.is_empty());
    converted.count_loss("entries without text", !has_text);
    has_text
}

pub(super) fn write_messages(
    loaded: &Loaded,
    out: &mut dyn Write,
    converted: &mut Converted,
) -> io::Result<()> {
    for entry in &loaded.entries {
        if !has_text_or_count(entry, converted) {
            continue;
        }
        count_lost_times(entry, converted);
        let Some(last) = entry.turns.last() else { continue };
        for turn in entry.turns.iter().rev().skip(1) {
            converted
                .count_loss("output_tokens", turn.reply.is_none() && turn.output_tokens.is_some());
            converted.count_loss("fields of earlier turns", turn.fields != last.fields);
        }
        let messages = entry.turns.iter().flat_map(|turn| turn.messages.iter().chain(&turn.reply));
        let messages: Vec<String> = messages.map(message_json).collect();
        write!(out, r#"{{"messages":[{}]"#, messages.join(","))?;
        if let Some(tokens) = last.output_tokens {
            write!(out, r#","max_tokens":{tokens}"#)?;
        }
        for (key, json) in &last.fields {
            write!(out, ",{}:{json}", Value::from(key.as_str()))?;
        }
        out.write_all(b"}\n")?;
        converted.written += 1;
    }
    Ok(())
}

/// A message as the chat API writes it.
fn message_json(message: &Message) -> String {
    let (role, parts) = match message {
        Message::Raw(json) => return json.to_string(),
        Message::Plain { role, parts } => (role, parts),
    };
    let content = match parts.as_slice() {
        [MessagePart::Text(text)] => Value::from(text.as_ref()),
        parts => parts.iter().map(part_json).collect(),
    };
    json!({"role": role.name(), "content": content}).to_string()
}

fn part_json(part: &MessagePart) -> Value {
    match part {
        MessagePart::Text(text) => json!({"type": "text", "text": text.as_ref()}),
        MessagePart::Image(url) => json!({"type": "image_url", "image_url": {"url": url.as_ref()}}),
    }
}

pub(super) fn write_prompts(
    loaded: &Loaded,
    out: &mut dyn Write,
    converted: &mut Converted,
) -> io::Result<()> {
    for entry in &loaded.entries {
        let Some(turn) = entry.turns.first().filter(|_| has_text_or_count(entry, converted)) else {
            continue;
        };
        let Some(prompt) = turn.messages.iter().rev().find_map(user_text) else {
            converted.count_loss("entries without a plain prompt", true);
            continue;
        };
        count_lost_times(entry, converted);
        converted.count_loss("later turns", entry.turns.len() > 1);
        converted.count_loss("messages other than the prompt", turn.messages.len() > 1);
        converted.count_loss("fields", !turn.fields.is_empty());
        let line = Value::Object(prompt_line(turn, prompt, converted));
        writeln!(out, "{line}")?;
        converted.written += 1;
    }
    Ok(())
}

fn prompt_line(turn: &DatasetTurn, prompt: &str, converted: &mut Converted) -> Map<String, Value> {
    let mut line = Map::new();
    line.insert("prompt".to_owned(), prompt.into());
    if let Some(tokens) = turn.output_tokens {
        line.insert("output_tokens".to_owned(), tokens.into());
    }
    if let Some(reply) = &turn.reply {
        match plain_text(reply) {
            Some((_, text)) => {
                line.insert("answer".to_owned(), text.into());
            }
            None => converted.count_loss("reply", true),
        }
    }
    line
}

/// The text of a message that is nothing but text.
fn plain_text(message: &Message) -> Option<(Role, &str)> {
    match message {
        Message::Plain { role, parts } => match parts.as_slice() {
            [MessagePart::Text(text)] => Some((*role, text)),
            _ => None,
        },
        Message::Raw(_) => None,
    }
}

fn user_text(message: &Message) -> Option<&str> {
    plain_text(message).filter(|(role, _)| *role == Role::User).map(|(_, text)| text)
}
