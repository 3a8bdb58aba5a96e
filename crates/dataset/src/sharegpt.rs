//! Conversations of `from` and `value`.

use std::borrow::Cow;
use std::path::Path;

use goodput_model::{Message, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::conversation::{Conversation, Speaker};
use crate::error::{DatasetError, EntryError};
use crate::object::{JsonObject, json_fault, parse_string};
use crate::options::DatasetOptions;
use crate::pass::{EntryNotes, ItemOutcome, Keeper, PassTally, scan_items};
use crate::{DatasetEntry, DatasetTurn};

/// One pass over a file.
pub(crate) fn scan_sharegpt(
    path: &Path,
    options: &DatasetOptions,
    keeper: &mut dyn Keeper,
) -> Result<PassTally, DatasetError> {
    scan_items(path, options, keeper, |text, build, notes| {
        Ok(cut_conversation(&parse(text)?, ConversationRules { build, keeps_open: false }, notes))
    })
}

/// A speaker and what was said.
pub(crate) type Said<'a> = (Cow<'a, str>, Cow<'a, str>);

#[derive(Deserialize)]
struct ShareGptItem<'a> {
    #[serde(borrow, alias = "conversation")]
    conversations: Vec<ShareGptLine<'a>>,
}

#[derive(Deserialize)]
struct ShareGptLine<'a> {
    #[serde(borrow, alias = "role")]
    from: Cow<'a, str>,
    #[serde(borrow, alias = "content")]
    value: Cow<'a, str>,
}

fn parse(text: &str) -> Result<Vec<Said<'_>>, EntryError> {
    match serde_json::from_str::<ShareGptItem<'_>>(text) {
        Ok(item) => {
            Ok(item.conversations.into_iter().map(|line| (line.from, line.value)).collect())
        }
        Err(_) => parse_slowly(text),
    }
}

/// Finds the field that is wrong, or reads what has both of two names.
fn parse_slowly(text: &str) -> Result<Vec<Said<'_>>, EntryError> {
    const LIST: &str = "an array of objects with `from` and `value`";
    let object = JsonObject::parse(text)?;
    let name = if object.get("conversation").is_some() { "conversation" } else { "conversations" };
    let list = object.required(name, LIST)?;
    let lines: Vec<&RawValue> =
        serde_json::from_str(list.get()).map_err(|_| EntryError::field(name, list.get(), LIST))?;
    let mut said = Vec::with_capacity(lines.len());
    for (place, line) in lines.into_iter().enumerate() {
        let line: JsonObject<'_> = serde_json::from_str(line.get()).map_err(|error| {
            if error.is_data() {
                EntryError::field(&format!("{name}[{place}]"), line.get(), "an object")
            } else {
                json_fault(line.get(), &error)
            }
        })?;
        let one = |names: [&str; 2]| {
            let found = names.into_iter().find_map(|name| Some((name, line.get(name)?)));
            let Some((field, value)) = found else {
                let field = format!("{name}[{place}].{}", names[0]);
                return Err(EntryError::missing(&field, line.names(), "a text"));
            };
            parse_string(&format!("{name}[{place}].{field}"), value, "a text")
        };
        said.push((one(["from", "role"])?, one(["value", "content"])?));
    }
    Ok(said)
}

/// How a conversation is read.
#[derive(Clone, Copy)]
pub(crate) struct ConversationRules {
    /// Whether the entry is wanted.
    pub(crate) build: bool,
    /// Whether a last question without an answer counts.
    pub(crate) keeps_open: bool,
}

/// Cuts a conversation into turns.
pub(crate) fn cut_conversation(
    said: &[Said<'_>],
    rules: ConversationRules,
    notes: &mut EntryNotes,
) -> ItemOutcome {
    let mut talk = Conversation::new();
    let mut is_begun = false;
    for (from, value) in said {
        let Some(role) = parse_role(from) else {
            return ItemOutcome::Skip("a speaker other than human, gpt and system".to_owned());
        };
        if !is_begun && role == Role::Assistant {
            return ItemOutcome::Skip("first turn is not human".to_owned());
        }
        is_begun |= role == Role::User;
        if value.trim().is_empty() {
            if role == Role::System {
                continue;
            }
            notes.add("conversation cut before an empty message");
            break;
        }
        talk.add_message(
            speaker_of_role(role),
            rules.build.then(|| Message::text(role, value.as_ref())),
        );
    }
    let pairs = talk.finish(rules.keeps_open, notes);
    if pairs.is_empty() {
        return ItemOutcome::Skip("no question with an answer".to_owned());
    }
    if !rules.build {
        return ItemOutcome::Good;
    }
    let turns = pairs.into_iter().map(|pair| DatasetTurn {
        messages: pair.asked.into_iter().flatten().collect(),
        reply: pair.reply.flatten(),
        ..DatasetTurn::default()
    });
    ItemOutcome::Entry(DatasetEntry { turns: turns.collect(), ..DatasetEntry::default() })
}

fn speaker_of_role(role: Role) -> Speaker {
    match role {
        Role::User | Role::Tool => Speaker::Asking,
        Role::Assistant => Speaker::Answering,
        Role::System => Speaker::Other,
    }
}

fn parse_role(from: &str) -> Option<Role> {
    match from {
        "human" | "user" => Some(Role::User),
        "gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "model" => Some(Role::Assistant),
        "system" => Some(Role::System),
        _ => None,
    }
}
