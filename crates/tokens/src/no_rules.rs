//! A build without `tokenizer.json`: reading it fails and says so.

use std::path::Path;

use goodput_model::Feature;

use crate::error::TokenizerError;

/// The rules of a build that has none: it has no value.
#[derive(Clone)]
pub(crate) enum JsonRules {}

impl JsonRules {
    /// Fails.
    pub(crate) fn parse(path: &Path, _bytes: &[u8]) -> Result<Self, TokenizerError> {
        Err(TokenizerError::LeftOut { path: path.to_owned(), feature: Feature::Tokenizers })
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
        let error = JsonRules::parse(Path::new("tokenizer.json"), b"{}").err().unwrap();
        let expected =
            "tokenizer.json: built without `tokenizers`: this build cannot read a tokenizer.json";
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().contains("--features full"), "{}", error.hint());
    }
}
