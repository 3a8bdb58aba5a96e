//! Tags and notes of a run, kept in its folder.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use goodput_files::read_inside;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The file in the folder of a run.
pub(crate) const NOTES: &str = "notes.json";

/// Bytes of notes at most.
pub(crate) const MOST_NOTES: usize = 64 * 1024;

/// Tags of one run, and letters of a tag.
const MOST_TAGS: usize = 20;
const LONGEST_TAG: usize = 40;

/// Bytes of the file: every byte of the notes may need six.
const MOST_FILE: u64 = 1 << 20;

/// What people wrote about a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Notes {
    /// Short words to find it by.
    pub(crate) tags: Vec<String>,
    /// Anything.
    pub(crate) text: String,
}

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct NotesFile {
    schema: String,
    #[serde(flatten)]
    notes: Notes,
}

/// Why notes cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotesError {
    /// Too much of it.
    #[error("notes have at most 64 KiB, and 20 tags of at most 40 letters")]
    TooMuch,
    /// Someone else was faster.
    #[error("the notes have changed in the meantime")]
    Changed,
    /// There is a file that this version does not understand: it may hold notes of a user.
    #[error("the folder has a notes.json that cannot be read ({0}): move it away first")]
    Unreadable(String),
    /// The disk, or the rights of its folder.
    #[error("cannot write the notes: {0}")]
    Io(#[from] io::Error),
}

impl Notes {
    /// The format this version writes.
    pub(crate) const SCHEMA: &'static str = "goodput.notes/1";

    /// From what was typed: tags with commas between them.
    pub(crate) fn parse(tags: &str, text: &str) -> Result<Self, NotesError> {
        let mut own: Vec<String> = Vec::new();
        for tag in tags.split(',').map(clean_tag).filter(|tag| !tag.is_empty()) {
            if tag.chars().count() > LONGEST_TAG {
                return Err(NotesError::TooMuch);
            }
            if !own.contains(&tag) {
                own.push(tag);
            }
        }
        let text = text.replace("\r\n", "\n").trim_end().to_owned();
        if own.len() > MOST_TAGS || text.len() > MOST_NOTES {
            return Err(NotesError::TooMuch);
        }
        Ok(Self { tags: own, text })
    }

    /// Those of a folder; none if there are none, or they cannot be read.
    pub(crate) fn read(folder: &Path) -> Self {
        Self::read_existing(folder).unwrap_or_default()
    }

    /// Those of a folder; none without a file, or with an empty one.
    fn read_existing(folder: &Path) -> Result<Self, NotesError> {
        match read_inside(&folder.join(NOTES), MOST_FILE) {
            Ok(bytes) if bytes.is_empty() => Ok(Self::default()),
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(|kept: NotesFile| kept.notes)
                .map_err(|error| NotesError::Unreadable(error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(NotesError::Unreadable(error.to_string())),
        }
    }

    /// What tells these from others.
    pub(crate) fn version_mark(&self) -> String {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        short_hash(&bytes)
    }

    /// Keeps them in a folder, whole or not at all, unless its notes are not those with this mark
    /// any more, or cannot be read.
    pub(crate) fn write(&self, folder: &Path, was: &str) -> Result<(), NotesError> {
        if Self::read_existing(folder)?.version_mark() != was {
            return Err(NotesError::Changed);
        }
        let kept = NotesFile { schema: Self::SCHEMA.to_owned(), notes: self.clone() };
        let bytes = serde_json::to_vec_pretty(&kept).map_err(io::Error::other)?;
        let (path, temporary) = (folder.join(NOTES), folder.join(".notes.json.new"));
        // What is left of a write that was cut off; a link there is removed, not followed.
        let _ = fs::remove_file(&temporary);
        let whole = File::create_new(&temporary)
            .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&temporary, &path));
        if whole.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        Ok(whole?)
    }
}

/// Sixteen hexadecimal digits.
pub(crate) fn short_hash(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().take(8).fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Without line ends and other marks that no tag needs.
fn clean_tag(tag: &str) -> String {
    let text: String = tag.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
