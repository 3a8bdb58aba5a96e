//! Detects the format of a file when the user does not name it.

use std::path::Path;

use crate::DatasetError;
use crate::first::{first_item, is_parquet, is_schema};
use crate::object::JsonObject;
use crate::trace;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Sessions of ours.
    Frozen,
    /// A trace with times.
    Trace,
    /// Prompts or conversations.
    Dataset,
}

/// What this file holds, by its first item. Whatever is neither of ours nor a trace is taken for
/// a dataset.
pub fn file_kind(path: &Path) -> Result<FileKind, DatasetError> {
    if path.is_dir() || is_parquet(path)? {
        return Ok(FileKind::Dataset);
    }
    let (_, first) = first_item(path)?;
    let object: Option<JsonObject<'_>> = serde_json::from_str(&first).ok();
    let is_frozen = object.is_some_and(|object| is_schema(&object, "goodput.workload/"));
    Ok(match trace::detect_format(path, None) {
        _ if is_frozen => FileKind::Frozen,
        Ok(_) => FileKind::Trace,
        Err(_) => FileKind::Dataset,
    })
}
