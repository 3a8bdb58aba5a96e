//! The beginning of a file, by which its form is told.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use serde_json::value::RawValue;

use crate::error::{DatasetError, FilePosition};
use crate::input::{open_file, open_text};
use crate::items::Items;
use crate::object::JsonObject;
use crate::private;

/// The first item of a JSON file, or the first line of another; an object may have several lines.
pub(crate) fn first_document(path: &Path) -> Result<(FilePosition, String), DatasetError> {
    first_of_items(path, Items::new_documents(path)?)
}

/// The first item of a JSON file, or the first line of another.
pub(crate) fn first_item(path: &Path) -> Result<(FilePosition, String), DatasetError> {
    first_of_items(path, Items::new(path, open_text(path)?)?)
}

fn first_of_items(path: &Path, mut items: Items) -> Result<(FilePosition, String), DatasetError> {
    match items.next(path)? {
        None => Err(DatasetError::file(path, "holds no entries")),
        Some((place, piece)) => match private::text_or_fault(piece) {
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

/// Whether the object names a schema that begins like this: the version is its reader's to check.
pub(crate) fn is_schema(object: &JsonObject<'_>, family: &str) -> bool {
    let named = object.get("schema").and_then(|raw: &RawValue| {
        serde_json::from_str::<Cow<'_, str>>(raw.get()).ok().map(|name| name.starts_with(family))
    });
    named == Some(true)
}
