//! What the tests share: files with given content, and a counter of words.
#![allow(dead_code, reason = "each test uses its part")]

use std::path::{Path, PathBuf};

use goodput_dataset::{
    DatasetError, DatasetOptions, Loaded, TraceSelection, load_dataset, load_trace,
};
use goodput_model::{Message, MessagePart, Role};
use tempfile::TempDir;

/// A file in a folder of its own.
pub(crate) struct Scratch {
    _folder: TempDir,
    pub(crate) path: PathBuf,
}

pub(crate) fn file(name: &str, content: impl AsRef<[u8]>) -> Scratch {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    Scratch { _folder: folder, path }
}

/// One token for each word.
pub(crate) fn words(text: &str) -> u32 {
    text.split_whitespace().count() as u32
}

/// Every entry, in the order of the file.
pub(crate) fn all() -> DatasetOptions {
    DatasetOptions { sample: u64::MAX, in_order: true, ..DatasetOptions::default() }
}

pub(crate) fn read(
    name: &str,
    content: impl AsRef<[u8]>,
    options: &DatasetOptions,
) -> Result<Loaded, DatasetError> {
    load_dataset(&file(name, content).path, options, &words)
}

pub(crate) fn read_all(name: &str, content: impl AsRef<[u8]>) -> Loaded {
    read(name, content, &all()).unwrap()
}

pub(crate) fn trace(name: &str, content: impl AsRef<[u8]>) -> Result<Loaded, DatasetError> {
    load_trace(&file(name, content).path, &TraceSelection::default())
}

/// The message of an error, with the folder left out.
pub(crate) fn message(error: &DatasetError) -> String {
    let folder = error.path().parent().unwrap_or(Path::new("")).to_string_lossy().into_owned();
    error.to_string().replace(&format!("{folder}/"), "")
}

pub(crate) fn failure(name: &str, content: impl AsRef<[u8]>) -> String {
    message(&read(name, content, &all()).unwrap_err())
}

pub(crate) fn trace_failure(name: &str, content: impl AsRef<[u8]>) -> String {
    message(&trace(name, content).unwrap_err())
}

pub(crate) fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

pub(crate) fn assistant(text: &str) -> Message {
    Message::text(Role::Assistant, text)
}

pub(crate) fn system(text: &str) -> Message {
    Message::text(Role::System, text)
}

/// The text of the first message of each entry.
pub(crate) fn first_texts(loaded: &Loaded) -> Vec<String> {
    let text = |message: &Message| match message {
        Message::Plain { parts, .. } => match parts.as_slice() {
            [MessagePart::Text(text)] => text.to_string(),
            _ => panic!("no plain text"),
        },
        Message::Raw(json) => json.to_string(),
    };
    loaded.entries.iter().map(|entry| text(&entry.turns[0].messages[0])).collect()
}
