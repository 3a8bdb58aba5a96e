//! Which form a trace has: by its first entry.

use std::path::Path;

use super::litellm::is_litellm;
use super::otel::is_spans;
use crate::error::{DatasetError, EntryError, name_list};
use crate::first::{first_document, is_schema};
use crate::format::TraceFormat;
use crate::object::JsonObject;
use crate::private;

/// The form of a trace.
pub(crate) fn detect_format(
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
        let object = private::parse_object(&first);
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
    } else if let Some(log) = object.as_ref().and_then(format_of_log) {
        Ok(log)
    } else {
        // What people wrote is not quoted.
        let there = object.as_ref().map_or_else(
            || "its first line is not a known header".to_owned(),
            |object| format!("its first object has {}", name_list(object.names())),
        );
        let formats = name_list(TraceFormat::ALL.map(TraceFormat::name));
        Err(DatasetError::file(
            path,
            EntryError::with_hint(
                format!(
                    "cannot tell its form: {there}, expected an object with \
                     `timestamp` and `input_length`, a header with `ContextTokens` or \
                     `Request tokens`, LiteLLM's log, or OpenTelemetry's spans"
                ),
                format!("name its format: {formats}"),
            ),
        ))
    }
}

/// The log that begins with this object.
fn format_of_log(object: &JsonObject<'_>) -> Option<TraceFormat> {
    if is_spans(object) {
        Some(TraceFormat::Otel)
    } else if is_litellm(object) {
        Some(TraceFormat::Litellm)
    } else {
        None
    }
}
