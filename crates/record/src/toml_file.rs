//! Files of TOML. What is wrong with one is said without its text.

use std::io;
use std::path::Path;

use goodput_files::{MOST_TOML, read_text, read_text_inside};
use serde::de::DeserializeOwned;

use crate::error::FolderError;
use crate::nesting::from_toml;

/// The content of a TOML file that the user named.
pub fn read_toml<T: DeserializeOwned>(path: &Path) -> Result<T, FolderError> {
    parse_toml(path, read_text(path, MOST_TOML))
}

/// What a TOML file of a folder of results holds.
pub fn read_toml_inside<T: DeserializeOwned>(path: &Path) -> Result<T, FolderError> {
    parse_toml(path, read_text_inside(path, MOST_TOML))
}

fn parse_toml<T: DeserializeOwned>(
    path: &Path,
    text: io::Result<String>,
) -> Result<T, FolderError> {
    let text =
        text.map_err(|error| FolderError::Io { action: "read", path: path.to_owned(), error })?;
    from_toml(&text).map_err(|error| FolderError::Damaged {
        path: path.to_owned(),
        error: without_text(&text, &error),
    })
}

/// What is wrong, and in which line, but never what stands there: that may be a secret.
fn without_text(text: &str, error: &toml::de::Error) -> String {
    let message = error.message();
    let found = message.find('"').zip(message.rfind('"'));
    let ends =
        found.and_then(|(first, last)| Some((message.get(..first)?, message.get(last + 1..)?)));
    let message = ends.map_or_else(|| message.to_owned(), |(a, b)| format!("{a}\"…\"{b}"));
    let before = error.span().and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message,
    }
}
