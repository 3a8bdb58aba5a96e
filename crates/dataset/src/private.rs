//! What keeps people's words and names out of what is made of their logs.
//!
//! A log's names of sessions become numbers, in the order of their first requests: a number says
//! nothing of the name, cannot be matched with another file's, and is the same each time that the
//! file is read. While a file is read they are hashes, so that a long name costs no memory. Faults
//! name fields, and never quote what is in them.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::DatasetEntry;
use crate::error::EntryError;
use crate::input::{Piece, to_hex, too_long_error};
use crate::object::{JsonObject, invalid_number_error, parse_tokens};

/// The longest label that is kept.
const LABEL: usize = 100;

/// A session's name while the file is read.
pub(crate) fn session_key(name: &str) -> String {
    to_hex(Sha256::digest(name.as_bytes()).get(..16).unwrap_or_default())
}

/// Numbers the sessions; one with a single request links nothing, and is none.
pub(crate) fn number_sessions(entries: &mut [DatasetEntry]) {
    let mut sizes: HashMap<String, u64> = HashMap::new();
    for name in entries.iter().filter_map(|entry| entry.session.as_ref()) {
        *sizes.entry(name.clone()).or_default() += 1;
    }
    sizes.retain(|_, size| *size > 1);
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for entry in entries {
        let name = entry.session.take().filter(|name| sizes.contains_key(name));
        entry.session = name.map(|name| {
            let next = numbers.len() + 1;
            numbers.entry(name).or_insert(next).to_string()
        });
    }
}

/// A label of a class, of bounded length.
pub(crate) fn bounded_label(text: &str) -> String {
    text.trim().chars().take(LABEL).collect()
}

/// A piece of a file, or a fault that quotes nothing of it.
pub(crate) fn text_or_fault(piece: Piece<'_>) -> Result<&str, EntryError> {
    piece.map_err(|fault| {
        // What is too long quotes nothing.
        let is_long = ["the line", "the item"].iter().any(|what| fault == too_long_error(what));
        let hint = "convert the file to UTF-8 with `iconv`";
        if is_long { fault } else { EntryError::with_hint("is not UTF-8", hint) }
    })
}

/// A JSON object, or a fault that quotes nothing of it.
pub(crate) fn parse_object(text: &str) -> Result<JsonObject<'_>, EntryError> {
    serde_json::from_str(text).map_err(|error| match error.column() {
        _ if error.is_data() => EntryError::from("no JSON object"),
        column if error.is_eof() => {
            EntryError::from(format!("JSON ends too early at column {column}"))
        }
        column => invalid_number_error(text, error.line(), column)
            .unwrap_or_else(|| EntryError::from(format!("invalid JSON at column {column}"))),
    })
}

/// A field whose value has the wrong form.
pub(crate) fn wrong_field_error(name: &str, expected: &str) -> EntryError {
    EntryError::from(format!("field `{name}` is not {expected}"))
}

/// A length in tokens; none if it is 0, which is how logs say that they do not know.
pub(crate) fn parse_count(name: &str, text: &str) -> Result<Option<u32>, EntryError> {
    if matches!(text.trim(), "0" | "0.0") {
        return Ok(None);
    }
    let expected = "a number of tokens from 0 to 10000000";
    parse_tokens(name, text).map(Some).map_err(|_| wrong_field_error(name, expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_not_called_no_text() {
        for what in ["the line", "the item"] {
            let long = text_or_fault(Err(too_long_error(what))).unwrap_err();
            assert_eq!(long.what, format!("{what} is longer than 64 MiB"));
            assert!(!long.hint.unwrap().contains("iconv"));
        }
        let odd =
            text_or_fault(crate::input::decode_utf8(b"ann is longer than 64 MiB\xff")).unwrap_err();
        assert_eq!(odd.what, "is not UTF-8");
        assert!(odd.hint.unwrap().contains("iconv"));
    }

    #[test]
    fn a_long_name_costs_no_memory() {
        let long = "a".repeat(1 << 20);
        assert_eq!(session_key(&long).len(), 32);
        assert_ne!(session_key(&long), session_key("a"));
    }
}
