//! *How many*: tokenizers, and where they lie.
//!
//! A [`Tokenizer`] counts the tokens of a text: by the rules of a `tokenizer.json`, by one of the
//! vocabularies that are built in, or, without any, by an [estimate](TYPICAL_ERROR). Counts never
//! hold a token that is not in the text: what a chat template or a server adds is not counted here.

mod approximate;
mod error;
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
#[cfg(test)]
mod tests;
mod tokenizer;
#[cfg(feature = "vocabularies")]
mod vocabulary;
#[cfg(not(feature = "vocabularies"))]
#[path = "no_vocabulary.rs"]
mod vocabulary;
mod walk;

pub use approximate::TYPICAL_ERROR;
pub use error::TokenizerError;
pub use tokenizer::{BUILTIN, FILE_NAME, Tokenizer};
pub use walk::{TextUnit, estimate_tokens};
