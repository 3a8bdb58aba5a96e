//! Which form a file has: by its name and its first entry.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use serde_json::value::RawValue;

use crate::error::{DatasetError, Fault, Place, names};
use crate::input::{open, open_file};
use crate::items::Items;
use crate::object::Object;

/// Forms of data sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Conversations of `from` and `value`, in a JSON array or one on each line.
    Sharegpt,
    /// Bodies of the chat API, or lines of the batch API.
    Messages,
    /// JSON objects with a prompt.
    Prompts,
    /// A table with a header.
    Csv,
    /// One prompt on each line.
    Text,
    /// A Parquet table.
    Parquet,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Sharegpt, Self::Messages, Self::Prompts, Self::Csv, Self::Text, Self::Parquet];

    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sharegpt => "sharegpt",
            Self::Messages => "messages",
            Self::Prompts => "prompts",
            Self::Csv => "csv",
            Self::Text => "text",
            Self::Parquet => "parquet",
        }
    }
}

/// Forms of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceFormat {
    /// Milliseconds, lengths and `hash_ids` of 512 tokens, one object on each line.
    Mooncake,
    /// Seconds, lengths, chats and `hash_ids` of 16 tokens, one object on each line.
    Bailian,
    /// A table of `Timestamp`, `Request tokens`, `Response tokens`.
    Burstgpt,
    /// A table of `TIMESTAMP`, `ContextTokens`, `GeneratedTokens`.
    Azure,
    /// What goodput records.
    Goodput,
    /// LiteLLM's payloads of requests, or its table of spending.
    Litellm,
    /// An access log of nginx.
    Nginx,
    /// OpenTelemetry's spans with `gen_ai` attributes.
    Otel,
}

impl TraceFormat {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Mooncake,
        Self::Bailian,
        Self::Burstgpt,
        Self::Azure,
        Self::Goodput,
        Self::Litellm,
        Self::Nginx,
        Self::Otel,
    ];

    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mooncake => "mooncake",
            Self::Bailian => "bailian",
            Self::Burstgpt => "burstgpt",
            Self::Azure => "azure",
            Self::Goodput => "goodput",
            Self::Litellm => "litellm",
            Self::Nginx => "nginx",
            Self::Otel => "otel",
        }
    }

    /// Whether it is a log of what people asked, whose names and words go no further.
    pub(crate) fn is_log(self) -> bool {
        matches!(self, Self::Litellm | Self::Nginx | Self::Otel)
    }
}

/// A name that no form has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no {what}, expected one of {known}")]
pub struct UnknownFormat {
    name: String,
    what: &'static str,
    known: String,
}

pub(crate) fn by_name<T: Copy>(
    text: &str,
    what: &'static str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, UnknownFormat> {
    let wanted = text.trim();
    all.iter().copied().find(|one| name(*one) == wanted).ok_or_else(|| UnknownFormat {
        name: crate::error::excerpt(text),
        what,
        known: names(all.iter().map(|one| name(*one))),
    })
}

impl FromStr for Format {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        by_name(text, "form of a data set", &Self::ALL, Self::name)
    }
}

impl FromStr for TraceFormat {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        by_name(text, "form of a trace", &Self::ALL, Self::name)
    }
}

/// The form of a data set.
pub(crate) fn of_dataset(
    path: &Path,
    asked: Option<Format>,
    prompt_column: Option<&str>,
) -> Result<Format, DatasetError> {
    match asked {
        // `prompts` may also mean a table or plain lines.
        None | Some(Format::Prompts) => {}
        Some(asked) => return Ok(asked),
    }
    if is_parquet(path)? {
        return Ok(Format::Parquet);
    }
    let (_, first) = first_item(path)?;
    let is_json = first.starts_with(['{', '[']);
    let known = is_json.then(|| of_object(&first, prompt_column)).flatten();
    match extension(path).as_str() {
        "parquet" => {
            Err(DatasetError::file(path, "is no Parquet file: it does not begin with `PAR1`"))
        }
        "txt" | "text" | "md" => Ok(known.unwrap_or(Format::Text)),
        "csv" | "tsv" if !is_json => Ok(Format::Csv),
        extension => match known {
            Some(format) => Ok(format),
            None if asked.is_some() && is_json => Ok(Format::Prompts),
            None if asked.is_some() && extension.is_empty() => Ok(Format::Text),
            None => Err(DatasetError::file(path, unknown(&first))),
        },
    }
}

fn unknown(first: &str) -> Fault {
    let formats = names(Format::ALL.map(Format::name));
    let hint = format!("say which form it has: {formats}, and which column has the prompt");
    if !first.starts_with('{') {
        // It may be a log: what people wrote is not quoted.
        return Fault::with_hint("cannot tell its form: it begins with no JSON object", hint);
    }
    match serde_json::from_str::<Object<'_>>(first) {
        Err(error) => Fault::with_hint(
            format!("its first entry is no JSON object: {error}"),
            "one object on each line is expected, or an array of objects",
        ),
        Ok(object) if object.get("timestamp").is_some() || object.get("schema").is_some() => {
            let there = names(object.names());
            let what = format!("is no data set but a trace or a workload; fields there: {there}");
            Fault::with_hint(what, "replay it as a trace, or run it as a frozen workload")
        }
        Ok(object) => {
            let there = names(object.names());
            Fault::with_hint(
                format!(
                    "no field `conversations`, `messages` or `prompt`, expected one of them; \
                     fields there: {there}"
                ),
                hint,
            )
        }
    }
}

/// The form that an object has by its fields.
fn of_object(text: &str, prompt_column: Option<&str>) -> Option<Format> {
    let object: Object<'_> = serde_json::from_str(text).ok()?;
    let has = |name: &str| object.get(name).is_some();
    if prompt_column.is_some_and(|column| {
        has(column) && !matches!(column, "messages" | "conversations" | "conversation")
    }) {
        Some(Format::Prompts)
    } else if has("conversations") || has("conversation") {
        Some(Format::Sharegpt)
    } else if has("messages") || (has("body") && has("custom_id")) {
        Some(Format::Messages)
    } else if crate::prompts::PROMPTS.iter().any(|name| has(name)) {
        Some(Format::Prompts)
    } else {
        None
    }
}

/// The form of a trace.
pub(crate) fn of_trace(
    path: &Path,
    asked: Option<TraceFormat>,
) -> Result<TraceFormat, DatasetError> {
    if let Some(asked) = asked {
        return Ok(asked);
    }
    let (place, first) = first_document(path)?;
    if !first.starts_with('{') {
        let header = first.to_ascii_lowercase();
        let has = |name: &str| header.contains(name);
        if has("contexttokens") {
            return Ok(TraceFormat::Azure);
        }
        if has("request tokens") {
            return Ok(TraceFormat::Burstgpt);
        }
        if (has("starttime") || has("start_time")) && has("completion_tokens") {
            return Ok(TraceFormat::Litellm);
        }
    }
    let object = if first.starts_with('{') {
        let object = crate::trace::object(&first);
        Some(object.map_err(|fault| DatasetError::new(path, place, fault))?)
    } else {
        None
    };
    let has = |name: &str| object.as_ref().is_some_and(|object| object.get(name).is_some());
    if object.as_ref().is_some_and(|object| is_schema(object, "goodput.trace/")) {
        Ok(TraceFormat::Goodput)
    } else if has("input_length") && has("parent_chat_id") {
        Ok(TraceFormat::Bailian)
    } else if has("input_length") {
        Ok(TraceFormat::Mooncake)
    } else if let Some(log) = object.as_ref().and_then(of_log) {
        Ok(log)
    } else {
        // What people wrote is not quoted.
        let there = object.as_ref().map_or_else(
            || "its first line is no header of a known form".to_owned(),
            |object| format!("its first object has {}", names(object.names())),
        );
        let formats = names(TraceFormat::ALL.map(TraceFormat::name));
        Err(DatasetError::file(
            path,
            Fault::with_hint(
                format!(
                    "cannot tell its form: {there}, expected an object with \
                     `timestamp` and `input_length`, a header with `ContextTokens` or \
                     `Request tokens`, LiteLLM's log, or OpenTelemetry's spans"
                ),
                format!("say which form it has: {formats}"),
            ),
        ))
    }
}

/// Whether the object names a schema that begins like this: the version is its reader's to check.
pub(crate) fn is_schema(object: &Object<'_>, family: &str) -> bool {
    let named = object.get("schema").and_then(|raw: &RawValue| {
        serde_json::from_str::<Cow<'_, str>>(raw.get()).ok().map(|name| name.starts_with(family))
    });
    named == Some(true)
}

/// The log that begins with this object.
fn of_log(object: &Object<'_>) -> Option<TraceFormat> {
    if crate::trace::is_spans(object) {
        Some(TraceFormat::Otel)
    } else if crate::trace::is_litellm(object) {
        Some(TraceFormat::Litellm)
    } else {
        None
    }
}

/// The first item of a JSON file, or the first line of another; an object may have several lines.
fn first_document(path: &Path) -> Result<(Place, String), DatasetError> {
    first(path, Items::documents(path)?)
}

/// The first item of a JSON file, or the first line of another.
pub(crate) fn first_item(path: &Path) -> Result<(Place, String), DatasetError> {
    first(path, Items::new(path, open(path)?)?)
}

fn first(path: &Path, mut items: Items) -> Result<(Place, String), DatasetError> {
    match items.next(path)? {
        None => Err(DatasetError::file(path, "holds no entries")),
        Some((place, piece)) => match crate::trace::piece(piece) {
            Ok(text) => Ok((place, text.trim().to_owned())),
            Err(fault) => Err(DatasetError::new(path, place, fault)),
        },
    }
}

pub(crate) fn is_parquet(path: &Path) -> Result<bool, DatasetError> {
    let mut magic = [0; 4];
    let read = open_file(path)?.take(4).read(&mut magic);
    read.map_err(|error| DatasetError::io(path, "read", &error))?;
    Ok(&magic == b"PAR1")
}

pub(crate) fn extension(path: &Path) -> String {
    path.extension().map(|text| text.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}
