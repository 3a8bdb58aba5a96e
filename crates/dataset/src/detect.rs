//! Which form a dataset has: by its name and its first entry.

use std::path::Path;

use crate::error::{DatasetError, EntryError, name_list};
use crate::first::{first_item, is_parquet};
use crate::format::{DatasetFormat, lowercase_extension};
use crate::object::JsonObject;
use crate::prompts::PROMPTS;

/// The form of a dataset.
pub(crate) fn detect_format(
    path: &Path,
    asked: Option<DatasetFormat>,
    prompt_column: Option<&str>,
) -> Result<DatasetFormat, DatasetError> {
    match asked {
        // `prompts` may also mean a table or plain lines.
        None | Some(DatasetFormat::Prompts) => {}
        Some(asked) => return Ok(asked),
    }
    if is_parquet(path)? {
        return Ok(DatasetFormat::Parquet);
    }
    let (_, first) = first_item(path)?;
    let is_json = first.starts_with(['{', '[']);
    let known = is_json.then(|| format_of_object(&first, prompt_column)).flatten();
    match lowercase_extension(path).as_str() {
        "parquet" => {
            Err(DatasetError::file(path, "is not a Parquet file: it does not begin with `PAR1`"))
        }
        "txt" | "text" | "md" => Ok(known.unwrap_or(DatasetFormat::Text)),
        "csv" | "tsv" if !is_json => Ok(DatasetFormat::Csv),
        extension => match known {
            Some(format) => Ok(format),
            None if asked.is_some() && is_json => Ok(DatasetFormat::Prompts),
            None if asked.is_some() && extension.is_empty() => Ok(DatasetFormat::Text),
            None => Err(DatasetError::file(path, unknown_format_error(&first))),
        },
    }
}

fn unknown_format_error(first: &str) -> EntryError {
    let formats = name_list(DatasetFormat::ALL.map(DatasetFormat::name));
    let hint = format!("name its format: {formats}, and which column has the prompt");
    if !first.starts_with('{') {
        // It may be a log: what people wrote is not quoted.
        return EntryError::with_hint(
            "cannot tell its form: it does not begin with a JSON object",
            hint,
        );
    }
    match serde_json::from_str::<JsonObject<'_>>(first) {
        Err(error) => EntryError::with_hint(
            format!("its first entry is not a JSON object: {error}"),
            "expected one object on each line, or an array of objects",
        ),
        Ok(object) if object.get("timestamp").is_some() || object.get("schema").is_some() => {
            let there = name_list(object.names());
            let what = format!("is a trace or a workload, not a dataset; its fields: {there}");
            EntryError::with_hint(what, "replay it as a trace, or run it as a frozen workload")
        }
        Ok(object) => {
            let there = name_list(object.names());
            EntryError::with_hint(
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
fn format_of_object(text: &str, prompt_column: Option<&str>) -> Option<DatasetFormat> {
    let object: JsonObject<'_> = serde_json::from_str(text).ok()?;
    let has = |name: &str| object.get(name).is_some();
    if prompt_column.is_some_and(|column| {
        has(column) && !matches!(column, "messages" | "conversations" | "conversation")
    }) {
        Some(DatasetFormat::Prompts)
    } else if has("conversations") || has("conversation") {
        Some(DatasetFormat::Sharegpt)
    } else if has("messages") || (has("body") && has("custom_id")) {
        Some(DatasetFormat::Messages)
    } else if PROMPTS.iter().any(|name| has(name)) {
        Some(DatasetFormat::Prompts)
    } else {
        None
    }
}
