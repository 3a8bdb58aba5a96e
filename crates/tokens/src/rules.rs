//! The rules of a `tokenizer.json`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::error::{TokenizerError, safe_excerpt};

/// How a `tokenizer.json` splits text.
pub(crate) struct JsonRules(tokenizers::Tokenizer);

impl JsonRules {
    /// The rules in these bytes.
    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, TokenizerError> {
        let malformed = |line: usize, why: &str| TokenizerError::Malformed {
            path: path.to_owned(),
            line,
            why: safe_excerpt(why),
        };
        if bytes.starts_with(b"version https://git-lfs") {
            return Err(malformed(1, "a Git LFS pointer, not the file itself"));
        }
        let parsed = catch_panics(|| serde_json::from_slice::<tokenizers::Tokenizer>(bytes));
        let parsed = parsed.map_err(|why| malformed(1, &why))?;
        let mut rules =
            parsed.map_err(|error| malformed(error.line().max(1), &error.to_string()))?;
        // Such settings are for training; they would cut or fill up what is counted.
        rules.with_truncation(None).map_err(|error| malformed(1, &error.to_string()))?;
        rules.with_padding(None);
        Ok(Self(rules))
    }

    /// Ids of the tokens, or why this text has none.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        let encoded = catch_panics(|| self.0.encode_fast(text, false))?;
        encoded.map(|encoding| encoding.get_ids().to_vec()).map_err(|error| error.to_string())
    }
}

/// What a foreign library returns, or what it said when it gave up: some of its checks on files
/// are assertions.
fn catch_panics<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        let said = payload.downcast_ref::<String>().map(String::as_str);
        said.or(payload.downcast_ref::<&str>().copied()).unwrap_or("it gave up").to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::catch_panics;

    #[test]
    fn what_a_library_says_when_it_gives_up_is_an_error() {
        assert_eq!(catch_panics(|| 1), Ok(1));
        let said = catch_panics(|| assert!(std::hint::black_box(false), "no such token"));
        assert_eq!(said, Err("no such token".to_owned()));
    }
}
