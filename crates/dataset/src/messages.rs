//! Bodies of the chat API, one per entry, and lines of the batch API.

use std::collections::BTreeMap;
use std::path::Path;

use goodput_model::{Message, Role, safe_excerpt};
use serde_json::value::RawValue;

use crate::conversation::{Conversation, Speaker};
use crate::error::{DatasetError, EntryError};
use crate::object::{JsonObject, json_fault, parse_string};
use crate::options::DatasetOptions;
use crate::pass::{EntryNotes, ItemOutcome, Keeper, PassTally, scan_items};
use crate::{DatasetEntry, DatasetTurn};

/// One pass over a file.
pub(crate) fn scan_messages(
    path: &Path,
    options: &DatasetOptions,
    keeper: &mut dyn Keeper,
) -> Result<PassTally, DatasetError> {
    scan_items(path, options, keeper, |text, build, notes| {
        let line = JsonObject::parse(text)?;
        match line.get("body") {
            Some(body) if line.get("messages").is_none() => {
                let body = serde_json::from_str::<JsonObject<'_>>(body.get())
                    .map_err(|_| EntryError::field("body", body.get(), "an object"))?;
                read_body(&body, build, notes)
            }
            _ => read_body(&line, build, notes),
        }
    })
}

/// Fields that the run sets itself.
const OURS: [&str; 3] = ["model", "stream", "stream_options"];
/// Fields that are read otherwise.
const READ: [&str; 6] =
    ["messages", "prompt", "max_tokens", "max_completion_tokens", "custom_id", "id"];

fn read_body(
    body: &JsonObject<'_>,
    build: bool,
    notes: &mut EntryNotes,
) -> Result<ItemOutcome, EntryError> {
    let pairs = match (body.get("messages"), body.get("prompt")) {
        (None, Some(prompt)) => {
            let text = parse_string("prompt", prompt, "a text")?;
            let mut talk = Conversation::new();
            talk.add_message(Speaker::Asking, Message::text(Role::User, text.as_ref()));
            talk.finish(true, notes)
        }
        _ => body_conversation(body)?.finish(true, notes),
    };
    if pairs.is_empty() {
        return Ok(ItemOutcome::Skip("no message from a user or a tool".to_owned()));
    }
    let output = match body.tokens("max_completion_tokens")? {
        Some(tokens) => Some(tokens),
        None => body.tokens("max_tokens")?,
    };
    let fields = extra_fields(body, notes);
    if !build {
        return Ok(ItemOutcome::Good);
    }
    let mut turns: Vec<DatasetTurn> = pairs
        .into_iter()
        .map(|pair| DatasetTurn {
            messages: pair.asked,
            reply: pair.reply,
            fields: fields.clone(),
            ..DatasetTurn::default()
        })
        .collect();
    // The limit is that of the request on file, whose answer is the last one.
    if let Some(last) = turns.last_mut() {
        last.output_tokens = output;
    }
    Ok(ItemOutcome::Entry(DatasetEntry { turns, ..DatasetEntry::default() }))
}

/// All messages of a body as they are; none for prompts that are not a single text.
pub(crate) fn body_messages(body: &JsonObject<'_>) -> Result<Vec<Message>, EntryError> {
    if let (None, Some(prompt)) = (body.get("messages"), body.get("prompt")) {
        let text = parse_string("prompt", prompt, "a text")?;
        return Ok(vec![Message::text(Role::User, text.as_ref())]);
    }
    let messages = message_list(body)?.into_iter().enumerate();
    messages.map(|(place, raw)| Ok(parse_message(place, raw)?.1)).collect()
}

/// What goes into every body as it is, in the order of the keys.
pub(crate) fn extra_fields(body: &JsonObject<'_>, notes: &mut EntryNotes) -> Vec<(String, String)> {
    let mut fields = BTreeMap::new();
    for (name, value) in body.fields() {
        if OURS.contains(&name) {
            notes.add(&format!("field `{name}` left out: the run sets it"));
        } else if matches!(name, "custom_id" | "id") {
            notes.add(&format!("field `{name}` left out: it only names the entry"));
        } else if !READ.contains(&name) {
            notes.add(&format!("field `{}` goes into the body", safe_excerpt(name)));
            fields.insert(name.to_owned(), value.get().to_owned());
        }
    }
    fields.into_iter().collect()
}

fn message_list<'a>(body: &JsonObject<'a>) -> Result<Vec<&'a RawValue>, EntryError> {
    const LIST: &str = "an array of objects with `role` and `content`";
    let list = body.required("messages", LIST)?;
    serde_json::from_str(list.get()).map_err(|_| EntryError::field("messages", list.get(), LIST))
}

fn body_conversation(body: &JsonObject<'_>) -> Result<Conversation<Message>, EntryError> {
    let mut talk = Conversation::new();
    for (place, raw) in message_list(body)?.into_iter().enumerate() {
        let (side, message) = parse_message(place, raw)?;
        talk.add_message(side, message);
    }
    Ok(talk)
}

/// A message: plain where role and text are all it has, as it is where not.
fn parse_message(place: usize, raw: &RawValue) -> Result<(Speaker, Message), EntryError> {
    const ROLES: &str = "`system`, `developer`, `user`, `assistant`, `tool` or `function`";
    let field = |name: &str| format!("messages[{place}].{name}");
    let object: JsonObject<'_> = serde_json::from_str(raw.get()).map_err(|error| {
        if error.is_data() {
            EntryError::field(&format!("messages[{place}]"), raw.get(), "an object")
        } else {
            json_fault(raw.get(), &error)
        }
    })?;
    let Some(role) = object.get("role") else {
        return Err(EntryError::missing(&field("role"), object.names(), ROLES));
    };
    let name = parse_string(&field("role"), role, ROLES)?;
    let (side, plain) = match name.as_ref() {
        "user" => (Speaker::Asking, Some(Role::User)),
        "tool" => (Speaker::Asking, Some(Role::Tool)),
        "function" => (Speaker::Asking, None),
        "assistant" => (Speaker::Answering, Some(Role::Assistant)),
        "system" => (Speaker::Other, Some(Role::System)),
        "developer" => (Speaker::Other, None),
        _ => return Err(EntryError::field(&field("role"), role.get(), ROLES)),
    };
    let text = object.get("content").and_then(|content| parse_string("content", content, "").ok());
    let is_plain = object.names().count() == 2;
    let message = match (plain, text) {
        (Some(role), Some(text)) if is_plain => Message::text(role, text.as_ref()),
        _ => Message::Raw(raw.get().into()),
    };
    Ok((side, message))
}
