//! *How many*: tokenizers, and where they lie.
//!
//! A [`Tokenizer`] counts the tokens of a text: by the rules of a `tokenizer.json`, by one of the
//! vocabularies that are built in, or, without any, by an [estimate](TYPICAL_ERROR). Counts never
//! hold a token that is not in the text: what a chat template or a server adds is not counted here.

mod approximate;
pub mod hub;
#[cfg(all(test, feature = "tokenizers"))]
#[allow(dead_code, unreachable_pub, reason = "a test looks at its error alone")]
mod no_rules;
#[cfg(all(test, feature = "vocabularies"))]
#[allow(dead_code, unreachable_pub, reason = "a test looks at its error alone")]
mod no_vocabulary;
#[cfg(feature = "tokenizers")]
mod rules;
#[cfg(not(feature = "tokenizers"))]
#[path = "no_rules.rs"]
mod rules;
#[cfg(feature = "vocabularies")]
mod vocabulary;
#[cfg(not(feature = "vocabularies"))]
#[path = "no_vocabulary.rs"]
mod vocabulary;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goodput_model::{Feature, LeftOut};

pub use approximate::TYPICAL_ERROR;
pub use walk::{TextUnit, estimate};

use rules::JsonRules;
use vocabulary::Vocabulary;

/// Names of the tokenizers that need no file.
pub const BUILTIN: [&str; 3] = ["cl100k_base", "o200k_base", APPROXIMATE];

const APPROXIMATE: &str = "approximate";

/// The file that a folder of a model holds.
pub const FILE_NAME: &str = "tokenizer.json";

/// No published tokenizer comes near it.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// Counts tokens. Clones share the vocabulary.
#[derive(Clone)]
pub struct Tokenizer {
    name: Arc<str>,
    rules: TokenRules,
}

#[derive(Clone)]
enum TokenRules {
    Vocabulary(Vocabulary),
    Json(Arc<JsonRules>),
    Approximate,
}

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

impl Tokenizer {
    /// One of [`BUILTIN`], if this build has it.
    pub fn builtin(name: &str) -> Option<Self> {
        let rules = match name {
            APPROXIMATE => TokenRules::Approximate,
            _ => TokenRules::Vocabulary(Vocabulary::builtin(name)?),
        };
        Some(Self { name: name.into(), rules })
    }

    /// From a `tokenizer.json`, a folder that holds one, or a `.tiktoken` vocabulary.
    pub fn from_file(path: &Path) -> Result<Self, TokenizerError> {
        let file = if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() };
        let bytes = read(&file)?;
        let is_vocabulary = file.extension().is_some_and(|extension| extension == "tiktoken");
        let rules = if is_vocabulary {
            TokenRules::Vocabulary(Vocabulary::parse(&file, &bytes)?)
        } else {
            TokenRules::Json(Arc::new(JsonRules::parse(&file, &bytes)?))
        };
        Ok(Self { name: path.display().to_string().into(), rules })
    }

    /// The built-in name, or the path it was read from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether counts are those of a vocabulary, and not estimates.
    pub fn is_exact(&self) -> bool {
        !matches!(self.rules, TokenRules::Approximate)
    }

    /// Tokens of this text, without any that a model wants before or after it.
    pub fn count(&self, text: &str) -> Result<u32, TokenizerError> {
        match &self.rules {
            TokenRules::Approximate => Ok(approximate::count(text)),
            _ => self.encode(text).map(|ids| u32::try_from(ids.len()).unwrap_or(u32::MAX)),
        }
    }

    /// Ids of the tokens of this text, without any that a model wants before or after it.
    ///
    /// Special tokens that are spelt out in the text are text to a `.tiktoken` vocabulary, and
    /// special to a `tokenizer.json`, as they are to a server.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let encoded = match &self.rules {
            TokenRules::Vocabulary(vocabulary) => vocabulary.encode(text),
            TokenRules::Json(rules) => rules.encode(text),
            TokenRules::Approximate => return Err(TokenizerError::NoIds),
        };
        encoded.map_err(|why| self.refused(&why))
    }

    fn refused(&self, why: &str) -> TokenizerError {
        TokenizerError::Text { name: self.name.to_string(), why: excerpt(why) }
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tokenizer").field(&self.name).finish()
    }
}

/// The whole file, if it is not too large.
fn read(path: &Path) -> Result<Vec<u8>, TokenizerError> {
    let unreadable = |error: std::io::Error| TokenizerError::Unreadable {
        path: path.to_owned(),
        why: error.to_string(),
    };
    goodput_files::read(path, MAX_FILE_BYTES).map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => TokenizerError::TooLarge { path: path.to_owned() },
        _ => unreadable(error),
    })
}

/// At most 80 characters of foreign text, none of which can move the cursor.
fn excerpt(text: &str) -> String {
    const MOST: usize = 80;
    let shown: String = text.chars().take(MOST).flat_map(escaped).collect();
    if text.chars().nth(MOST).is_some() { format!("{shown}…") } else { shown }
}

fn escaped(character: char) -> impl Iterator<Item = char> {
    let escape = character.is_control().then(|| character.escape_default());
    let plain = escape.is_none().then_some(character);
    escape.into_iter().flatten().chain(plain)
}

#[cfg(test)]
mod tests;
