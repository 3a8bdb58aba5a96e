//! A build without vocabularies: reading one fails and says so.

use std::path::Path;

use goodput_model::Feature;

use crate::error::TokenizerError;

/// The vocabulary of a build that has none: it has no value.
#[derive(Clone)]
pub(crate) enum Vocabulary {}

impl Vocabulary {
    /// None.
    pub(crate) fn builtin(_name: &str) -> Option<Self> {
        None
    }

    /// Fails.
    pub(crate) fn parse(path: &Path, _bytes: &[u8]) -> Result<Self, TokenizerError> {
        Err(TokenizerError::LeftOut { path: path.to_owned(), feature: Feature::Vocabularies })
    }

    /// Never called.
    pub(crate) fn encode(&self, _text: &str) -> Result<Vec<u32>, String> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_is_left_out() {
        assert!(Vocabulary::builtin("o200k_base").is_none());
        let error = Vocabulary::parse(Path::new("a.tiktoken"), b"").err().unwrap();
        let expected = "a.tiktoken: built without `vocabularies`: this build cannot count tokens with a vocabulary";
        assert_eq!(error.to_string(), expected);
    }
}
