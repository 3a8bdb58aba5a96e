//! [`Token`]: the secret that all clients of a run share.

use std::fmt;
use std::ops::RangeInclusive;

use crate::FleetError;
use crate::crypto::{Bytes32, hmac};

/// A secret that says who belongs together. It is never sent, shown or written.
#[derive(Clone)]
pub struct Token(Bytes32);

impl Token {
    /// How many characters it has.
    pub const LENGTH: RangeInclusive<usize> = 16..=256;

    /// From the text that all ranks are given.
    pub fn new(text: &str) -> Result<Self, FleetError> {
        let is_fit =
            Self::LENGTH.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_fit { Ok(Self::of(text)) } else { Err(FleetError::UnfitToken) }
    }

    /// Stands where there is none: everybody knows it, so it keeps nobody out.
    pub(crate) fn none() -> Self {
        Self::of("")
    }

    fn of(text: &str) -> Self {
        Self(hmac(b"goodput fleet token", &[text.as_bytes()]))
    }

    /// What follows from the token for one use in one conversation.
    pub(crate) fn derive(&self, purpose: &str, transcript: &Bytes32) -> Bytes32 {
        hmac(&self.0, &[purpose.as_bytes(), b"\0", transcript])
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_enough_and_in_one_line() {
        assert!(Token::new("0123456789abcdef").is_ok());
        for text in
            ["", "0123456789abcde", "0123456789 abcdef", "0123456789abcdef\n", "0123456789abcdeé"]
        {
            assert!(matches!(Token::new(text), Err(FleetError::UnfitToken)), "{text}");
        }
        assert!(Token::new(&"a".repeat(257)).is_err());
    }

    #[test]
    fn it_is_not_shown() {
        assert_eq!(format!("{:?}", Token::new("0123456789abcdef").unwrap()), "Token");
    }
}
