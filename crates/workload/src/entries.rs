//! Entries of a file as sessions.

use std::sync::Arc;

use goodput_dataset::{DatasetEntry, DatasetTurn};
use goodput_model::{
    DatasetPlan, Delay, History, LengthDistribution, Message, MessagePart, Nanos, Role, Session,
    SessionStep,
};
use serde_json::Value;

use crate::author::guess_tokens;
use crate::maker::SessionMaker;
use crate::prefix;
use crate::text::Begin;

/// What a class takes from a file.
pub(crate) struct Entries {
    pub(crate) list: Vec<DatasetEntry>,
    output: Option<LengthDistribution>,
    think: Option<Delay>,
    turns: usize,
    history: History,
}

impl Entries {
    pub(crate) fn new(plan: &DatasetPlan, entries: Vec<DatasetEntry>) -> Self {
        Self {
            list: entries,
            output: plan.output,
            think: plan.think,
            turns: plan.turns.map_or(usize::MAX, |turns| turns as usize),
            history: plan.history,
        }
    }

    /// Requests of the session that [`session_from_entry`] makes.
    pub(crate) fn request_count(&self, local: u64) -> Option<u64> {
        let entry = self.list.get(local.checked_rem(self.list.len() as u64)? as usize)?;
        Some(entry.turns.len().min(self.turns) as u64)
    }
}

/// The session of an entry. Past the end of the file it begins again, with a fresh nonce in front
/// of the first thing that the user says.
pub(crate) fn session_from_entry(maker: &mut SessionMaker, from: &Entries) -> Option<Session> {
    let count = from.list.len() as u64;
    let entry = from.list.get(maker.local.checked_rem(count)? as usize)?;
    let is_repeated = maker.local >= count;
    let system = maker.class.prefix.as_ref().map_or(0, |prefix| prefix.system_tokens);
    let turns = entry.turns.len().min(from.turns);
    let mut said = 0u32;
    let mut images = 0;
    // Tokens that the file does not know of.
    let mut added = 0u32;
    let mut steps = Vec::with_capacity(turns);
    for (number, turn) in entry.turns.iter().take(turns).enumerate() {
        let mut messages = turn.messages.clone();
        if number > 0 {
            // The answer before it is a message of its own.
            added = added.saturating_add(maker.author.message.saturating_mul(2));
        } else {
            added = maker.author.tokens_before_user(system);
            if is_repeated {
                added = added.saturating_add(prepend_nonce(maker, &mut messages));
            }
            if system > 0 {
                messages.insert(0, prefix::system_message(maker, system));
            }
            images = maker.add_images(&mut messages);
        }
        let is_first = number == 0;
        let input = input_tokens(turn, said, added);
        let output = output_tokens(maker, from, turn);
        let mut planned = maker.planned_lengths(input, output);
        if let Some(label) = &entry.class {
            planned.class = Arc::from(label.as_str());
        }
        planned.session = (turns > 1).then_some(maker.number);
        planned.turn = number as u32;
        planned.images = images + image_count(entry, number);
        // Only what the file says twice on purpose is known to be cached: the history.
        planned.cached_tokens = match (turns > 1, system) {
            (false, 0) => None,
            _ if is_first && system == 0 => Some(0),
            _ if is_first => {
                Some(maker.author.whole_block_tokens(maker.author.tokens_before_user(system)))
            }
            _ => Some(maker.author.whole_block_tokens(said.saturating_sub(1))),
        };
        said = input.saturating_add(output.unwrap_or(0));
        let after = if is_first { Nanos::ZERO } else { pause_after(maker, from, turn) };
        let mut request = maker.new_request(messages, planned);
        request.fields = turn.fields.clone().into();
        steps.push(SessionStep { after, requests: vec![request], reply: turn.reply.clone() });
    }
    Some(Session { steps, history: from.history })
}

fn pause_after(maker: &mut SessionMaker, from: &Entries, turn: &DatasetTurn) -> Nanos {
    let drawn = from.think.map(|think| think.draw(&mut maker.pauses));
    turn.after.or(drawn).unwrap_or(Nanos::ZERO)
}

/// The prompt's length: what the file says, or everything said so far and a guess at the rest.
fn input_tokens(turn: &DatasetTurn, said: u32, added: u32) -> u32 {
    let new = turn.messages.iter().map(message_tokens).fold(0u32, u32::saturating_add);
    match turn.input_tokens {
        Some(tokens) => tokens.saturating_add(added),
        None if said == 0 => new.saturating_add(added),
        None => said.saturating_add(new),
    }
}

/// The answer's length: by the plan, by the file, by the answer on file, or none.
fn output_tokens(maker: &mut SessionMaker, from: &Entries, turn: &DatasetTurn) -> Option<u32> {
    let planned = from.output.map(|lengths| lengths.draw(&mut maker.lengths));
    planned
        .or(turn.output_tokens)
        .or_else(|| turn.reply.as_ref().map(|reply| message_tokens(reply).max(1)))
}

/// Tokens of a foreign message, about.
fn message_tokens(message: &Message) -> u32 {
    guess_tokens(&message_text(message))
}

/// What a message says, without the words of its form.
fn message_text(message: &Message) -> String {
    let json = match message {
        Message::Plain { parts, .. } => {
            let text = |part: &MessagePart| match part {
                MessagePart::Text(text) => text.to_string(),
                MessagePart::Image(_) => String::new(),
            };
            return parts.iter().map(text).collect();
        }
        Message::Raw(json) => json,
    };
    let message: Value = serde_json::from_str(json).unwrap_or_default();
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()
        }
        // Tool calls and the like: all of it is read by the model, in one form or another.
        _ => json.to_string(),
    }
}

/// Counts what the file does not state: prompts with their history, and, where the plan has no
/// answer lengths, the answers on file.
pub(crate) fn count_entry_lengths(
    entries: &mut [DatasetEntry],
    plan: &DatasetPlan,
    count: &dyn Fn(&str) -> u32,
) {
    for entry in entries {
        let mut said = 0u32;
        for turn in &mut entry.turns {
            if turn.input_tokens.is_none() && !turn.messages.is_empty() {
                let new = turn.messages.iter().map(|message| count(&message_text(message)));
                turn.input_tokens = Some(new.fold(said, u32::saturating_add));
            }
            if turn.output_tokens.is_none() && plan.output.is_none() {
                turn.output_tokens =
                    turn.reply.as_ref().map(|reply| count(&message_text(reply)).max(1));
            }
            let answer = turn.output_tokens.unwrap_or(0);
            said = turn.input_tokens.unwrap_or(said).saturating_add(answer);
        }
    }
}

/// Images that the file itself holds, up to this turn.
fn image_count(entry: &DatasetEntry, turn: usize) -> u32 {
    let said = entry.turns.iter().take(turn + 1).flat_map(|turn| &turn.messages);
    let images = said.map(|message| match message {
        Message::Plain { parts, .. } => {
            parts.iter().filter(|part| matches!(part, MessagePart::Image(_))).count()
        }
        Message::Raw(json) => {
            let message: Value = serde_json::from_str(json).unwrap_or_default();
            let is_image = |part: &&Value| part["type"] == "image_url";
            message["content"].as_array().map_or(0, |parts| parts.iter().filter(is_image).count())
        }
    });
    images.sum::<usize>() as u32
}

/// Puts a nonce in front of the first thing that the user says; returns its tokens.
fn prepend_nonce(maker: &mut SessionMaker, messages: &mut Vec<Message>) -> u32 {
    let lexicon = &maker.author.lexicon;
    // The opener and the full stop take a token each, and more where the vocabulary is small.
    let tokens = lexicon.nonce_tokens().saturating_add(2);
    let nonce = maker.author.nonces.value(maker.number, 0);
    let mut text = lexicon.write_text(tokens, Begin::Message, Some(nonce), &mut maker.text);
    text.push(' ');
    for message in messages.iter_mut() {
        match message {
            Message::Plain { role: Role::User, parts } => {
                parts.insert(0, MessagePart::Text(text.into()));
                return tokens;
            }
            Message::Raw(json) => {
                if let Some(marked) = prepend_to_raw(json, &text) {
                    *json = marked.into();
                    return tokens;
                }
            }
            Message::Plain { .. } => {}
        }
    }
    messages.insert(0, Message::text(Role::User, text.trim_end()));
    tokens
}

/// A user's message object with a text in front of what it says; `None` for other roles and for
/// contents of an unknown form.
fn prepend_to_raw(json: &str, text: &str) -> Option<String> {
    let mut message: Value = serde_json::from_str(json).ok()?;
    if message.get("role")?.as_str()? != "user" {
        return None;
    }
    match message.get_mut("content")? {
        Value::String(said) => said.insert_str(0, text),
        Value::Array(parts) => parts.insert(0, serde_json::json!({"type": "text", "text": text})),
        _ => return None,
    }
    Some(message.to_string())
}
