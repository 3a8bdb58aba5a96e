//! LiteLLM's logs: payloads of requests (`StandardLoggingPayload`) and rows of its table of
//! spending (`LiteLLM_SpendLogs`), as JSON or CSV.

use std::borrow::Cow;
use std::path::Path;

use serde_json::value::RawValue;

use super::TraceSelection;
use super::moment::parse_moment;
use crate::error::{DatasetError, EntryError, FilePosition};
use crate::input::{BoundedLines, open_text};
use crate::items::Items;
use crate::object::JsonObject;
use crate::pass::{ItemOutcome, Keeper, Pass, PassTally};
use crate::private;
use crate::table::TableReader;
use crate::{DatasetEntry, DatasetTurn};

/// The fields that are read; no other passes.
const FIELDS: [&str; 14] = [
    "startTime",
    "start_time",
    "endTime",
    "end_time",
    "prompt_tokens",
    "completion_tokens",
    "call_type",
    "status",
    "cache_hit",
    "session_id",
    "litellm_session_id",
    "trace_id",
    "model_group",
    "model",
];

/// What a call that answers with tokens has in its type.
const GENERATIONS: [&str; 6] =
    ["completion", "responses", "messages", "generate_content", "pass_through", "passthrough"];

/// Whether an object is a row of such a log, or holds some.
pub(crate) fn is_litellm(object: &JsonObject<'_>) -> bool {
    let is_row = |object: &JsonObject<'_>| {
        let has = |name: &str| object.get(name).is_some();
        let is_timed = has("startTime") || has("start_time");
        is_timed && has("completion_tokens") && has("prompt_tokens")
    };
    let inner = wrapped_payload(object)
        .and_then(|raw| serde_json::from_str::<JsonObject<'_>>(raw.get()).ok());
    let first = page_rows(object).and_then(|rows| rows.first().copied());
    let first = first.and_then(|raw| serde_json::from_str::<JsonObject<'_>>(raw.get()).ok());
    is_row(object) || inner.is_some_and(|o| is_row(&o)) || first.is_some_and(|o| is_row(&o))
}

/// One pass over a log.
pub(super) fn scan_litellm(
    path: &Path,
    options: &TraceSelection,
    keeper: &mut dyn Keeper,
) -> Result<PassTally, DatasetError> {
    let mut lines = BoundedLines::new(open_text(path)?);
    let first = lines.next().map_err(|error| DatasetError::io(path, "read", &error))?;
    let is_table = match first {
        Some((_, Ok(line))) => {
            let line = line.trim();
            !line.is_empty() && !line.starts_with(['{', '['])
        }
        _ => false,
    };
    if is_table { scan_table(path, options, keeper) } else { scan_json(path, options, keeper) }
}

fn scan_json(
    path: &Path,
    options: &TraceSelection,
    keeper: &mut dyn Keeper,
) -> Result<PassTally, DatasetError> {
    let mut items = Items::new_documents(path)?;
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    while let Some((place, piece)) = items.next(path)? {
        let text = match private::text_or_fault(piece) {
            Ok(text) => text,
            Err(fault) => {
                pass.read_item(place, |_, _| Err(fault))?;
                continue;
            }
        };
        // A page of the proxy's answers holds many rows.
        let held =
            serde_json::from_str::<JsonObject<'_>>(text).ok().and_then(|page| page_rows(&page));
        for row in held.iter().flatten() {
            pass.read_item(place, |_, _| entry_from_json(row.get()))?;
        }
        if held.is_none() {
            pass.read_item(place, |_, _| entry_from_json(text))?;
        }
    }
    pass.finish(items.finish(path)?)
}

/// The rows of a page.
fn page_rows<'a>(object: &JsonObject<'a>) -> Option<Vec<&'a RawValue>> {
    let raw = object.non_null("data").or_else(|| object.non_null("logs"))?;
    serde_json::from_str(raw.get()).ok()
}

/// The payload, where it is wrapped.
fn wrapped_payload<'a>(object: &JsonObject<'a>) -> Option<&'a RawValue> {
    object
        .non_null("standard_logging_object")
        .or_else(|| object.non_null("standard_logging_payload"))
}

fn entry_from_json(text: &str) -> Result<ItemOutcome, EntryError> {
    if text.trim().is_empty() {
        return Ok(ItemOutcome::Skip("blank line".to_owned()));
    }
    let outer = private::parse_object(text)?;
    let object = match wrapped_payload(&outer) {
        Some(raw) => private::parse_object(raw.get())?,
        None => outer,
    };
    let metadata: Option<JsonObject<'_>> =
        object.non_null("metadata").and_then(|raw| serde_json::from_str(raw.get()).ok());
    entry_from_field(&|name| {
        let value = scalar_text(&object, name);
        let is_session = name == "litellm_session_id" && value.is_none();
        Ok(if is_session { metadata.as_ref().and_then(|o| scalar_text(o, name)) } else { value })
    })
}

/// A text, number or boolean of an object as text.
fn scalar_text<'a>(object: &JsonObject<'a>, name: &str) -> Option<Cow<'a, str>> {
    let raw = object.non_null(name)?.get();
    let is_scalar = !raw.starts_with(['{', '[']);
    is_scalar.then(|| serde_json::from_str::<String>(raw).map_or(Cow::Borrowed(raw), Cow::Owned))
}

fn scan_table(
    path: &Path,
    options: &TraceSelection,
    keeper: &mut dyn Keeper,
) -> Result<PassTally, DatasetError> {
    let mut table = TableReader::open(path)?;
    let columns = FIELDS.map(|name| table.column(&[name]));
    let is_there = |name: &str| FIELDS.iter().zip(columns).any(|(f, c)| *f == name && c.is_some());
    let needed: [&[&str]; 3] =
        [&["startTime", "start_time"], &["prompt_tokens"], &["completion_tokens"]];
    for names in needed {
        if !names.iter().any(|name| is_there(name)) {
            let hint = "export the table LiteLLM_SpendLogs with a header";
            let what = format!("no column `{}`", names.first().copied().unwrap_or_default());
            return Err(DatasetError::new(
                path,
                FilePosition::Line(1),
                EntryError::with_hint(what, hint),
            ));
        }
    }
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    while let Some(row) = table.next(path)? {
        pass.read_item(row.place, |_, _| {
            entry_from_field(&|name| {
                let place = FIELDS.iter().position(|field| *field == name);
                let column = place.and_then(|place| columns.get(place).copied().flatten());
                match row.optional(column) {
                    Ok(text) => Ok(text.map(Cow::Borrowed)),
                    Err(_) => Err(EntryError::from("the row has other columns than the header")),
                }
            })
        })?;
    }
    pass.finish(table.finish(path)?)
}

type Field<'a> = dyn Fn(&str) -> Result<Option<Cow<'a, str>>, EntryError> + 'a;

fn entry_from_field(field: &Field<'_>) -> Result<ItemOutcome, EntryError> {
    let first = |names: &[&str]| -> Result<Option<Cow<'_, str>>, EntryError> {
        for name in names {
            let text = field(name)?.filter(|text| !text.trim().is_empty());
            if text.is_some() {
                return Ok(text);
            }
        }
        Ok(None)
    };
    let skip = |why: &str| Ok(ItemOutcome::Skip(why.to_owned()));
    let is = |text: Option<Cow<'_, str>>, word: &str| {
        text.is_some_and(|text| text.trim().eq_ignore_ascii_case(word))
    };
    let kind = first(&["call_type"])?;
    if kind.is_some_and(|kind| !GENERATIONS.iter().any(|part| kind.contains(part))) {
        return skip("not a generation");
    }
    if is(first(&["status"])?, "failure") {
        return skip("failed when it was recorded");
    }
    if is(first(&["cache_hit"])?, "true") {
        return skip("answered by LiteLLM's own cache");
    }
    let time = |names: [&str; 2]| {
        let text = first(&names)?;
        let wrong = || private::wrong_field_error(names[0], "an instant");
        text.map(|text| parse_moment(&text).ok_or_else(wrong)).transpose()
    };
    let Some(at) = time(["startTime", "start_time"])? else {
        return Err(EntryError::from("no field `startTime`"));
    };
    let count = |name: &str| {
        let text = first(&[name])?;
        text.map_or(Ok(None), |text| private::parse_count(name, &text))
    };
    let (input, output) = (count("prompt_tokens")?, count("completion_tokens")?);
    if input.is_none() || output.is_none() {
        return skip("without token counts");
    }
    let took = time(["endTime", "end_time"])?.filter(|end| *end >= at).map(|end| end - at);
    let session = first(&["session_id", "litellm_session_id", "trace_id"])?;
    let class = first(&["model_group", "model"])?.map(|name| private::bounded_label(&name));
    let turn =
        DatasetTurn { input_tokens: input, output_tokens: output, took, ..DatasetTurn::default() };
    Ok(ItemOutcome::Entry(DatasetEntry {
        at: Some(at),
        session: session.map(|name| private::session_key(&name)),
        class,
        turns: vec![turn],
        ..DatasetEntry::default()
    }))
}
