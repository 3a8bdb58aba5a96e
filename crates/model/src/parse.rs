//! What goes wrong when a value of the vocabulary is read from text.

/// A value that could not be read, and the form that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct ParseError {
    pub(crate) text: String,
    pub(crate) expected: &'static str,
}

pub(crate) fn parse_error(text: &str, expected: &'static str) -> ParseError {
    ParseError { text: text.to_owned(), expected }
}
