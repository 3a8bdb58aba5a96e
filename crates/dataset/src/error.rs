//! What can be wrong with a file: where, what, and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

use goodput_model::safe_excerpt;

/// A file that cannot be used. It names the file, the place in it, the field and the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct DatasetError {
    file: PathBuf,
    place: FilePosition,
    what: String,
    hint: Option<String>,
}

impl DatasetError {
    pub(crate) fn new(file: &Path, place: FilePosition, fault: EntryError) -> Self {
        Self { file: file.to_owned(), place, what: fault.what, hint: fault.hint }
    }

    /// An error of the file as a whole.
    pub(crate) fn file(file: &Path, fault: impl Into<EntryError>) -> Self {
        Self::new(file, FilePosition::File, fault.into())
    }

    pub(crate) fn io(file: &Path, doing: &str, error: &std::io::Error) -> Self {
        Self::file(file, format!("cannot be {doing}: {error}"))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// The line, where the fault has one.
    pub fn line(&self) -> Option<u64> {
        match self.place {
            FilePosition::File | FilePosition::Row(_) => None,
            FilePosition::Line(line) | FilePosition::Item { line, .. } => Some(line),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
}

impl fmt::Display for DatasetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = safe_excerpt(&self.file.to_string_lossy());
        match self.place {
            FilePosition::File => write!(f, "{file}: {}", self.what),
            FilePosition::Line(line) => write!(f, "{file}, line {line}: {}", self.what),
            FilePosition::Row(row) => write!(f, "{file}, row {row}: {}", self.what),
            FilePosition::Item { item, line } => {
                write!(f, "{file}, item {item} (line {line}): {}", self.what)
            }
        }
    }
}

/// Where in a file something stands, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilePosition {
    File,
    Line(u64),
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "rows of Parquet"))]
    Row(u64),
    Item {
        item: u64,
        line: u64,
    },
}

impl FilePosition {
    /// The number that an entry carries.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::File => 0,
            Self::Line(n) | Self::Row(n) | Self::Item { item: n, .. } => n,
        }
    }
}

/// The error, without its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntryError {
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
}

impl EntryError {
    pub(crate) fn with_hint(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: Some(hint.into()) }
    }

    /// A field whose value has the wrong form.
    pub(crate) fn field(name: &str, value: &str, expected: &str) -> Self {
        let (name, value) = (safe_excerpt(name), safe_excerpt(value));
        Self::from(format!("field `{name}` is `{value}`, expected {expected}"))
    }

    /// A field that is not there.
    pub(crate) fn missing<'a>(
        name: &str,
        there: impl IntoIterator<Item = &'a str>,
        expected: &str,
    ) -> Self {
        let (name, there) = (safe_excerpt(name), name_list(there));
        Self::from(format!("no field `{name}`, expected {expected}; fields there: {there}"))
    }
}

impl From<String> for EntryError {
    fn from(what: String) -> Self {
        Self { what, hint: None }
    }
}

impl From<&str> for EntryError {
    fn from(what: &str) -> Self {
        Self::from(what.to_owned())
    }
}

/// A list of foreign names, the first twenty of them.
pub(crate) fn name_list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.into_iter().collect();
    if all.is_empty() {
        return "none".to_owned();
    }
    let mut shown: Vec<String> =
        all.iter().take(20).map(|name| format!("`{}`", safe_excerpt(name))).collect();
    if all.len() > 20 {
        shown.push(format!("and {} more", all.len() - 20));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_short_and_harmless() {
        assert_eq!(safe_excerpt("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\u{a}");
        assert_eq!(safe_excerpt("\u{202e}x"), "\\u{202e}x");
        assert_eq!(safe_excerpt(&"é".repeat(80)), "é".repeat(80));
        assert_eq!(safe_excerpt(&"é".repeat(81)), format!("{}…", "é".repeat(79)));
        let many: Vec<String> = (0..23).map(|n| n.to_string()).collect();
        assert!(name_list(many.iter().map(String::as_str)).ends_with("`19`, and 3 more"));
        assert_eq!(name_list([]), "none");
    }

    #[test]
    fn a_message_names_file_and_place() {
        let error = |place| {
            let fault = EntryError::field("timestamp", "NaN", "milliseconds");
            DatasetError::new(Path::new("t.jsonl"), place, fault)
        };
        let what = "field `timestamp` is `NaN`, expected milliseconds";
        assert_eq!(error(FilePosition::Line(3)).to_string(), format!("t.jsonl, line 3: {what}"));
        assert_eq!(error(FilePosition::Row(3)).to_string(), format!("t.jsonl, row 3: {what}"));
        let item = error(FilePosition::Item { item: 2, line: 9 });
        assert_eq!(item.to_string(), format!("t.jsonl, item 2 (line 9): {what}"));
        assert_eq!((item.line(), error(FilePosition::Row(3)).line()), (Some(9), None));
    }
}
