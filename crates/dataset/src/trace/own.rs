//! The trace that goodput records: a header, and one row for each request.

use std::path::Path;

use goodput_model::{Api, Message, Role, safe_excerpt};
use serde_json::value::RawValue;

use super::TraceSelection;
use super::decimal::parse_time_field;
use super::lines::parse_blocks;
use super::row::SCHEMA;
use crate::entry::{RecordedService, TokenCounter};
use crate::error::{DatasetError, EntryError};
use crate::input::open_text;
use crate::items::Items;
use crate::messages;
use crate::object::{JsonObject, parse_string, unknown_field};
use crate::pass::{EntryNotes, ItemOutcome, Keeper, Pass, PassTally};
use crate::{DatasetEntry, DatasetTurn};

/// The first version: no more than instants, lengths and blocks.
const FIRST: &str = "goodput.trace/1";
const HEADER: [&str; 5] = ["schema", "block_tokens", "tokenizer", "started", "text"];
const FIELDS: [&str; 21] = [
    "at",
    "session",
    "class",
    "input_tokens",
    "output_tokens",
    "blocks",
    "took",
    "after",
    // The first version ends here.
    "endpoint",
    "model",
    "input_by",
    "output_by",
    "cached_tokens",
    "params",
    "ttft",
    "gaps",
    "status",
    "finish",
    "failure",
    "body",
    "answer",
];
const FIRST_FIELDS: usize = 8;

/// What the header says.
struct Stated {
    is_first: bool,
    block_tokens: Option<u32>,
}

/// One pass over a trace.
pub(super) fn scan_own(
    path: &Path,
    options: &TraceSelection,
    keeper: &mut dyn Keeper,
) -> Result<(PassTally, Option<u32>), DatasetError> {
    let mut items = Items::new(path, open_text(path)?)?;
    let stated = match items.next(path)? {
        None => return Err(DatasetError::file(path, "holds no entries")),
        Some((place, piece)) => {
            let stated = piece.and_then(parse_header);
            stated.map_err(|fault| DatasetError::new(path, place, fault))?
        }
    };
    let block = options.block_tokens.or(stated.block_tokens);
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    while let Some((place, piece)) = items.next(path)? {
        pass.read_item(place, |_, notes| {
            let text = piece?;
            if text.trim().is_empty() {
                return Ok(ItemOutcome::Skip("blank line".to_owned()));
            }
            let object = JsonObject::parse(text)?;
            if stated.is_first {
                check_known_fields(&object, FIELDS.get(..FIRST_FIELDS).unwrap_or_default())?;
                return read_entry(&object, block, |row| row.required_tokens("output_tokens"))
                    .map(ItemOutcome::Entry);
            }
            check_known_fields(&object, &FIELDS)?;
            read_recorded(&object, block, notes)
        })?;
    }
    Ok((pass.finish(items.finish(path)?)?, block))
}

fn parse_header(text: &str) -> Result<Stated, EntryError> {
    let object = JsonObject::parse(text)?;
    let schema = object.required("schema", SCHEMA)?;
    let name = parse_string("schema", schema, SCHEMA)?;
    if name != SCHEMA && name != FIRST {
        return Err(EntryError::with_hint(
            format!("field `schema` is `{}`, expected `{SCHEMA}`", safe_excerpt(schema.get())),
            "it may come from another version of goodput",
        ));
    }
    check_known_fields(&object, &HEADER)?;
    Ok(Stated { is_first: name == FIRST, block_tokens: object.tokens("block_tokens")? })
}

fn check_known_fields(object: &JsonObject<'_>, fields: &[&str]) -> Result<(), EntryError> {
    match object.names().find(|name| !fields.contains(name)) {
        Some(name) => Err(unknown_field(name, fields)),
        None => Ok(()),
    }
}

/// Instants, lengths and blocks.
fn read_entry(
    object: &JsonObject<'_>,
    block: Option<u32>,
    output: impl Fn(&JsonObject<'_>) -> Result<u32, EntryError>,
) -> Result<DatasetEntry, EntryError> {
    let at = parse_time_field("at", object.required("at", "seconds")?.get(), 9)?;
    let time = |name: &str| {
        object.non_null(name).map(|raw| parse_time_field(name, raw.get(), 9)).transpose()
    };
    let blocks = match block {
        Some(block) => parse_blocks(object, "blocks", block.max(1))?,
        None if object.non_null("blocks").is_some() => {
            let there = HEADER.into_iter().take(2);
            return Err(EntryError::missing(
                "block_tokens",
                there,
                "tokens of a block in the header",
            ));
        }
        None => Vec::new(),
    };
    let turn = DatasetTurn {
        input_tokens: Some(object.required_tokens("input_tokens")?),
        output_tokens: Some(output(object)?),
        blocks,
        took: time("took")?,
        after: time("after")?,
        ..DatasetTurn::default()
    };
    let (session, class) = (object.label("session"), object.label("class"));
    Ok(DatasetEntry { at: Some(at), session, class, turns: vec![turn], ..DatasetEntry::default() })
}

/// A row of the second version. A request that was refused for its content is not load, and a
/// prompt whose length is unknown cannot be replayed; both are left out. A request without an
/// answer asks for one token.
fn read_recorded(
    object: &JsonObject<'_>,
    block: Option<u32>,
    notes: &mut EntryNotes,
) -> Result<ItemOutcome, EntryError> {
    let served = read_service(object)?;
    if let Some(status) = served.status.filter(|status| is_client_error(*status)) {
        return Ok(ItemOutcome::Skip(format!("refused with {status} when recorded")));
    }
    if is_zero_field(object, "input_tokens") {
        return Ok(ItemOutcome::Skip("a prompt of unknown length".to_owned()));
    }
    let is_unanswered = is_zero_field(object, "output_tokens");
    if is_unanswered {
        notes.add("row that had no answer when recorded: it requests 1 token");
    }
    let mut entry = read_entry(object, block, |row| {
        if is_unanswered { Ok(1) } else { row.required_tokens("output_tokens") }
    })?;
    for turn in &mut entry.turns {
        if let Some(body) = object.non_null("body")
            && read_body(body, turn, notes).is_none()
        {
            notes.add("body that is not text: its lengths and blocks are used");
        }
        let answer = object.non_null("answer").map(|raw| parse_string("answer", raw, "a text"));
        turn.reply = answer.transpose()?.map(|text| Message::text(Role::Assistant, text.as_ref()));
        let is_known = served != RecordedService::default();
        turn.served = is_known.then(|| Box::new(served.clone()));
    }
    Ok(ItemOutcome::Entry(entry))
}

/// Whether the request itself was wrong: not the hour, nor the server.
fn is_client_error(status: u16) -> bool {
    (400..500).contains(&status) && !matches!(status, 408 | 409 | 425 | 429 | 499)
}

fn is_zero_field(object: &JsonObject<'_>, name: &str) -> bool {
    object.non_null(name).is_some_and(|raw| raw.get() == "0")
}

/// Takes what a body says, and its further fields; none if it cannot be asked again.
fn read_body(raw: &RawValue, turn: &mut DatasetTurn, notes: &mut EntryNotes) -> Option<()> {
    let body: JsonObject<'_> = serde_json::from_str(raw.get()).ok()?;
    turn.messages = messages::body_messages(&body).ok().filter(|said| !said.is_empty())?;
    turn.fields = messages::extra_fields(&body, notes);
    Some(())
}

/// How it was served.
fn read_service(object: &JsonObject<'_>) -> Result<RecordedService, EntryError> {
    let word = |name: &str, expected: &str| {
        let text =
            object.non_null(name).map(|raw| parse_string(name, raw, expected)).transpose()?;
        Ok::<_, EntryError>(text.map(std::borrow::Cow::into_owned))
    };
    let whole = |name: &str| {
        let wrong = |raw: &RawValue| EntryError::field(name, raw.get(), "a whole number");
        object
            .non_null(name)
            .map(|raw| raw.get().parse::<u32>().map_err(|_| wrong(raw)))
            .transpose()
    };
    let counted = |name: &str| {
        let said = word(name, "what counted it")?;
        said.map(|said| parse_one_of(name, &said, &TokenCounter::ALL, TokenCounter::name))
            .transpose()
    };
    let endpoint = word("endpoint", "the name of an API")?;
    let apis = [Api::Chat, Api::Completions];
    let failure = word("failure", "an error class")?;
    let status = whole("status")?.map(|status| {
        let known = u16::try_from(status).ok().filter(|status| (100..1000).contains(status));
        known.ok_or_else(|| EntryError::field("status", &status.to_string(), "an HTTP status"))
    });
    let ttft = object.non_null("ttft").map(|raw| parse_time_field("ttft", raw.get(), 9));
    // Nothing is made of these yet, but that they are there.
    check_list("gaps", object.non_null("gaps"), "an array of microseconds")?;
    if let Some(raw) = object.non_null("params").filter(|raw| !raw.get().starts_with('{')) {
        return Err(EntryError::field("params", raw.get(), "an object"));
    }
    Ok(RecordedService {
        endpoint: endpoint
            .map(|said| parse_one_of("endpoint", &said, &apis, Api::name))
            .transpose()?,
        model: word("model", "the name of a model")?,
        status: status.transpose()?,
        finish: word("finish", "a finish reason")?,
        failure: failure
            .map(|said| {
                said.parse().map_err(|_| EntryError::field("failure", &said, "a known error class"))
            })
            .transpose()?,
        ttft: ttft.transpose()?,
        input_by: counted("input_by")?,
        output_by: counted("output_by")?,
        cached_tokens: whole("cached_tokens")?,
        has_params: object.non_null("params").is_some(),
        has_gaps: object.non_null("gaps").is_some(),
    })
}

fn check_list(name: &str, raw: Option<&RawValue>, expected: &str) -> Result<(), EntryError> {
    let is_list = |raw: &RawValue| serde_json::from_str::<Vec<u32>>(raw.get()).is_ok();
    match raw.filter(|raw| !is_list(raw)) {
        Some(raw) => Err(EntryError::field(name, raw.get(), expected)),
        None => Ok(()),
    }
}

fn parse_one_of<T: Copy>(
    field: &str,
    said: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, EntryError> {
    let found = all.iter().copied().find(|one| name(*one) == said);
    let expected = || crate::error::name_list(all.iter().map(|one| name(*one)));
    found.ok_or_else(|| EntryError::field(field, said, &format!("one of {}", expected())))
}
