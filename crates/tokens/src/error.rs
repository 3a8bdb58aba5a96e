//! Why a tokenizer or a count is missing.

use std::path::PathBuf;

use goodput_model::{Feature, LeftOut};

use crate::approximate::APPROXIMATE;

/// No published tokenizer comes near it.
pub(crate) const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// Why a tokenizer or a count is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenizerError {
    /// The file cannot be read.
    #[error("{}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// The file is too large for a tokenizer.
    #[error("{}: larger than {} MiB, the limit for a tokenizer", path.display(), MAX_FILE_BYTES >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is not what its name says.
    #[error("{}: line {line}: not a tokenizer: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A vocabulary whose name does not say how text is split.
    #[error(
        "{}: the name of a .tiktoken file must contain the split pattern (cl100k, o200k, p50k or r50k)",
        path.display()
    )]
    UnknownSplit {
        /// The file.
        path: PathBuf,
    },
    /// This text cannot be split.
    #[error("tokenizer {name} cannot count this text: {why}")]
    Text {
        /// The tokenizer.
        name: String,
        /// What the tokenizer says.
        why: String,
    },
    /// This build cannot read the file.
    #[error("{}: {}", path.display(), LeftOut(*feature))]
    LeftOut {
        /// The file.
        path: PathBuf,
        /// The part that would read it.
        feature: Feature,
    },
    /// An estimate knows counts, and no ids.
    #[error("tokenizer {APPROXIMATE} only estimates counts and has no ids")]
    NoIds,
}

impl TokenizerError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => {
                "name a tokenizer.json, a folder with one, a .tiktoken file, or a built-in tokenizer: cl100k_base, o200k_base, approximate"
            }
            Self::TooLarge { .. } | Self::Malformed { .. } => {
                "download the complete tokenizer.json from the model's repository"
            }
            Self::UnknownSplit { .. } => {
                "rename the file after its split pattern, as in cl100k_base.tiktoken"
            }
            Self::LeftOut { .. } => LeftOut::HINT,
            Self::Text { .. } | Self::NoIds => "use another tokenizer, such as o200k_base",
        }
    }
}

/// At most 80 characters of foreign text, none of which can move the cursor.
pub(crate) fn safe_excerpt(text: &str) -> String {
    const MOST: usize = 80;
    let shown: String = text.chars().take(MOST).flat_map(escape_char).collect();
    if text.chars().nth(MOST).is_some() { format!("{shown}…") } else { shown }
}

fn escape_char(character: char) -> impl Iterator<Item = char> {
    let escape = character.is_control().then(|| character.escape_default());
    let plain = escape.is_none().then_some(character);
    escape.into_iter().flatten().chain(plain)
}
