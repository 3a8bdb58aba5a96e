//! *How many*: tokenizers, and where they lie.
//!
//! A [`Tokenizer`] counts the tokens of a text: by the rules of a `tokenizer.json`, by one of the
//! vocabularies that are built in, or, without any, by an [estimate](TYPICAL_ERROR). Counts never
//! hold a token that is not in the text: what a chat template or a server adds is not counted here.

mod approximate;
pub mod hub;
mod vocabulary;
mod walk;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiktoken_rs::CoreBPE;

pub use approximate::TYPICAL_ERROR;
pub use walk::{TextUnit, estimate};

/// Names of the tokenizers that need no file.
pub const BUILTIN: [&str; 5] = ["cl100k_base", "o200k_base", "p50k_base", "r50k_base", APPROXIMATE];

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
    Builtin(&'static CoreBPE),
    Ranks(Arc<CoreBPE>),
    Json(Arc<tokenizers::Tokenizer>),
    Approximate,
}

/// Why there is no tokenizer, or no count.
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
    /// An estimate knows counts, and no ids.
    #[error("tokenizer {APPROXIMATE} only estimates counts and has no ids")]
    NoIds,
}

impl TokenizerError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => {
                "name a tokenizer.json, a folder with one, a .tiktoken file, or a built-in tokenizer: cl100k_base, o200k_base, p50k_base, r50k_base, approximate"
            }
            Self::TooLarge { .. } | Self::Malformed { .. } => {
                "download the complete tokenizer.json from the model's repository"
            }
            Self::UnknownSplit { .. } => {
                "rename the file after its split pattern, as in cl100k_base.tiktoken"
            }
            Self::Text { .. } | Self::NoIds => "use another tokenizer, such as o200k_base",
        }
    }
}

impl Tokenizer {
    /// One of [`BUILTIN`].
    pub fn builtin(name: &str) -> Option<Self> {
        let rules = match name {
            "cl100k_base" => TokenRules::Builtin(tiktoken_rs::cl100k_base_singleton()),
            "o200k_base" => TokenRules::Builtin(tiktoken_rs::o200k_base_singleton()),
            "p50k_base" => TokenRules::Builtin(tiktoken_rs::p50k_base_singleton()),
            "r50k_base" => TokenRules::Builtin(tiktoken_rs::r50k_base_singleton()),
            APPROXIMATE => TokenRules::Approximate,
            _ => return None,
        };
        Some(Self { name: name.into(), rules })
    }

    /// From a `tokenizer.json`, a folder that holds one, or a `.tiktoken` vocabulary.
    pub fn from_file(path: &Path) -> Result<Self, TokenizerError> {
        let file = if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() };
        let bytes = read(&file)?;
        let is_vocabulary = file.extension().is_some_and(|extension| extension == "tiktoken");
        let rules = if is_vocabulary {
            TokenRules::Ranks(Arc::new(vocabulary::parse(&file, &bytes)?))
        } else {
            TokenRules::Json(Arc::new(parse(&file, &bytes)?))
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
        match &self.rules {
            TokenRules::Builtin(ranks) => self.ranked(ranks, text),
            TokenRules::Ranks(ranks) => self.ranked(ranks, text),
            TokenRules::Json(rules) => {
                let encoded = guarded(|| rules.encode_fast(text, false));
                let encoded = encoded.map_err(|why| self.refused(&why))?;
                encoded
                    .map(|encoding| encoding.get_ids().to_vec())
                    .map_err(|error| self.refused(&error.to_string()))
            }
            TokenRules::Approximate => Err(TokenizerError::NoIds),
        }
    }

    fn ranked(&self, ranks: &CoreBPE, text: &str) -> Result<Vec<u32>, TokenizerError> {
        // With no special token allowed, all text is ordinary; unlike `encode_ordinary`, this
        // reports a text that is beyond the limits of the split.
        let encoded = ranks.encode(text, &std::collections::HashSet::new());
        encoded.map(|(ids, _)| ids).map_err(|error| self.refused(&error.message))
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

fn parse(path: &Path, bytes: &[u8]) -> Result<tokenizers::Tokenizer, TokenizerError> {
    let malformed = |line: usize, why: &str| TokenizerError::Malformed {
        path: path.to_owned(),
        line,
        why: excerpt(why),
    };
    if bytes.starts_with(b"version https://git-lfs") {
        return Err(malformed(1, "a Git LFS pointer, not the file itself"));
    }
    let parsed = guarded(|| serde_json::from_slice::<tokenizers::Tokenizer>(bytes));
    let parsed = parsed.map_err(|why| malformed(1, &why))?;
    let mut rules = parsed.map_err(|error| malformed(error.line().max(1), &error.to_string()))?;
    // Such settings are for training; they would cut or fill up what is counted.
    rules.with_truncation(None).map_err(|error| malformed(1, &error.to_string()))?;
    rules.with_padding(None);
    Ok(rules)
}

/// What a foreign library returns, or what it said when it gave up: some of its checks on files
/// are assertions.
fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        let said = payload.downcast_ref::<String>().map(String::as_str);
        said.or(payload.downcast_ref::<&str>().copied()).unwrap_or("it gave up").to_owned()
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
