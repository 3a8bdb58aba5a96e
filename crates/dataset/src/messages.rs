//! Bodies of the chat API, one per entry, and lines of the batch API.

use std::collections::BTreeMap;
use std::path::Path;

use goodput_model::{Message, Role, excerpt};
use serde_json::value::RawValue;

use crate::error::{DatasetError, Fault};
use crate::object::{Object, json_fault, string};
use crate::options::Options;
use crate::pass::{Found, Keeper, Notes, Tally, scan_items};
use crate::talk::{Side, Talk};
use crate::{Entry, Turn};

/// One pass over a file.
pub(crate) fn scan(
    path: &Path,
    options: &Options,
    keeper: &mut dyn Keeper,
) -> Result<Tally, DatasetError> {
    scan_items(path, options, keeper, |text, build, notes| {
        let line = Object::parse(text)?;
        match line.get("body") {
            Some(body) if line.get("messages").is_none() => {
                let body = serde_json::from_str::<Object<'_>>(body.get())
                    .map_err(|_| Fault::field("body", body.get(), "an object"))?;
                read(&body, build, notes)
            }
            _ => read(&line, build, notes),
        }
    })
}

/// Fields that the run sets itself.
const OURS: [&str; 3] = ["model", "stream", "stream_options"];
/// Fields that are read otherwise.
const READ: [&str; 6] =
    ["messages", "prompt", "max_tokens", "max_completion_tokens", "custom_id", "id"];

fn read(body: &Object<'_>, build: bool, notes: &mut Notes) -> Result<Found, Fault> {
    let pairs = match (body.get("messages"), body.get("prompt")) {
        (None, Some(prompt)) => {
            let text = string("prompt", prompt, "a text")?;
            let mut talk = Talk::new();
            talk.say(Side::Asking, Message::text(Role::User, text.as_ref()));
            talk.finish(true, notes)
        }
        _ => talk(body)?.finish(true, notes),
    };
    if pairs.is_empty() {
        return Ok(Found::Skip("no message of a user or a tool".to_owned()));
    }
    let output = match body.tokens("max_completion_tokens")? {
        Some(tokens) => Some(tokens),
        None => body.tokens("max_tokens")?,
    };
    let fields = fields(body, notes);
    if !build {
        return Ok(Found::Good);
    }
    let mut turns: Vec<Turn> = pairs
        .into_iter()
        .map(|pair| Turn {
            messages: pair.asked,
            reply: pair.reply,
            fields: fields.clone(),
            ..Turn::default()
        })
        .collect();
    // The limit is that of the request on file, whose answer is the last one.
    if let Some(last) = turns.last_mut() {
        last.output_tokens = output;
    }
    Ok(Found::Entry(Entry { turns, ..Entry::default() }))
}

/// All messages of a body as they are; none of prompts that are no single text.
pub(crate) fn said(body: &Object<'_>) -> Result<Vec<Message>, Fault> {
    if let (None, Some(prompt)) = (body.get("messages"), body.get("prompt")) {
        let text = string("prompt", prompt, "a text")?;
        return Ok(vec![Message::text(Role::User, text.as_ref())]);
    }
    let messages = list(body)?.into_iter().enumerate();
    messages.map(|(place, raw)| Ok(message(place, raw)?.1)).collect()
}

/// What goes into every body as it is, in the order of the keys.
pub(crate) fn fields(body: &Object<'_>, notes: &mut Notes) -> Vec<(String, String)> {
    let mut fields = BTreeMap::new();
    for (name, value) in body.fields() {
        if OURS.contains(&name) {
            notes.add(&format!("field `{name}` left out: the run sets it"));
        } else if matches!(name, "custom_id" | "id") {
            notes.add(&format!("field `{name}` left out: it only names the entry"));
        } else if !READ.contains(&name) {
            notes.add(&format!("field `{}` goes into the body", excerpt(name)));
            fields.insert(name.to_owned(), value.get().to_owned());
        }
    }
    fields.into_iter().collect()
}

fn list<'a>(body: &Object<'a>) -> Result<Vec<&'a RawValue>, Fault> {
    const LIST: &str = "an array of objects with `role` and `content`";
    let list = body.need("messages", LIST)?;
    serde_json::from_str(list.get()).map_err(|_| Fault::field("messages", list.get(), LIST))
}

fn talk(body: &Object<'_>) -> Result<Talk<Message>, Fault> {
    let mut talk = Talk::new();
    for (place, raw) in list(body)?.into_iter().enumerate() {
        let (side, message) = message(place, raw)?;
        talk.say(side, message);
    }
    Ok(talk)
}

/// A message: plain where role and text are all it has, as it is where not.
fn message(place: usize, raw: &RawValue) -> Result<(Side, Message), Fault> {
    const ROLES: &str = "`system`, `developer`, `user`, `assistant`, `tool` or `function`";
    let field = |name: &str| format!("messages[{place}].{name}");
    let object: Object<'_> = serde_json::from_str(raw.get()).map_err(|error| {
        if error.is_data() {
            Fault::field(&format!("messages[{place}]"), raw.get(), "an object")
        } else {
            json_fault(raw.get(), &error)
        }
    })?;
    let Some(role) = object.get("role") else {
        return Err(Fault::missing(&field("role"), object.names(), ROLES));
    };
    let name = string(&field("role"), role, ROLES)?;
    let (side, plain) = match name.as_ref() {
        "user" => (Side::Asking, Some(Role::User)),
        "tool" => (Side::Asking, Some(Role::Tool)),
        "function" => (Side::Asking, None),
        "assistant" => (Side::Answering, Some(Role::Assistant)),
        "system" => (Side::Beside, Some(Role::System)),
        "developer" => (Side::Beside, None),
        _ => return Err(Fault::field(&field("role"), role.get(), ROLES)),
    };
    let text = object.get("content").and_then(|content| string("content", content, "").ok());
    let is_plain = object.names().count() == 2;
    let message = match (plain, text) {
        (Some(role), Some(text)) if is_plain => Message::text(role, text.as_ref()),
        _ => Message::Raw(raw.get().into()),
    };
    Ok((side, message))
}
