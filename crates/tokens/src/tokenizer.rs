//! [`Tokenizer`]: counts and ids of tokens, whatever the rules.

use std::path::Path;
use std::sync::Arc;

use crate::approximate::{self, APPROXIMATE};
use crate::error::{MAX_FILE_BYTES, TokenizerError, safe_excerpt};
use crate::rules::JsonRules;
use crate::vocabulary::Vocabulary;

/// Names of the tokenizers that need no file.
pub const BUILTIN: [&str; 3] = ["cl100k_base", "o200k_base", APPROXIMATE];

/// The file that a folder of a model holds.
pub const FILE_NAME: &str = "tokenizer.json";

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
        let bytes = read_file(&file)?;
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
            TokenRules::Approximate => Ok(approximate::estimate_tokens(text)),
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
        encoded.map_err(|why| self.encode_error(&why))
    }

    fn encode_error(&self, why: &str) -> TokenizerError {
        TokenizerError::Text { name: self.name.to_string(), why: safe_excerpt(why) }
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tokenizer").field(&self.name).finish()
    }
}

/// The whole file, if it is not too large.
fn read_file(path: &Path) -> Result<Vec<u8>, TokenizerError> {
    let unreadable = |error: std::io::Error| TokenizerError::Unreadable {
        path: path.to_owned(),
        why: error.to_string(),
    };
    goodput_files::read(path, MAX_FILE_BYTES).map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => TokenizerError::TooLarge { path: path.to_owned() },
        _ => unreadable(error),
    })
}
