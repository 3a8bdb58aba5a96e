//! [`Token`]: the secret that all ranks of a run share.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use ring::{hmac, pbkdf2};

use crate::FleetError;
use crate::message::Bytes32;

/// How often a token is hashed before it is a key: who has posed as rank 0 to one rank, and now
/// tries words against what that one said, does so for each of them.
const ROUNDS: NonZeroU32 = NonZeroU32::new(100_000).unwrap();

/// What sets these hashes apart from those of the same word elsewhere.
const SALT: &[u8] = b"goodput fleet token";

/// A secret that says who belongs together. It is never sent, shown or written.
#[derive(Clone)]
pub struct Token(hmac::Key);

impl Token {
    /// How many characters it has.
    pub const LENGTH: RangeInclusive<usize> = 16..=256;

    /// From the text that all ranks are given.
    pub fn new(text: &str) -> Result<Self, FleetError> {
        let is_fit =
            Self::LENGTH.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_fit {
            return Err(FleetError::UnfitToken);
        }
        let mut key = [0; 32];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, SALT, text.as_bytes(), &mut key);
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// Used where none is set: it is public, so it protects nothing.
    pub(crate) fn public() -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, &[]))
    }

    /// The proof that one has it, for one connection and role.
    pub(crate) fn prove(&self, bound: &Bytes32) -> Bytes32 {
        let mut proof = [0; 32];
        proof.copy_from_slice(hmac::sign(&self.0, bound).as_ref());
        proof
    }

    /// Whether this is that proof; takes as long wherever they differ.
    pub(crate) fn verify(&self, bound: &Bytes32, proof: &Bytes32) -> bool {
        hmac::verify(&self.0, bound, proof).is_ok()
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
    fn a_proof_is_of_one_token_and_one_connection() {
        let (token, other) = (Token::new("0123456789abcdef"), Token::new("0123456789abcdeg"));
        let (token, other) = (token.unwrap(), other.unwrap());
        let proof = token.prove(&[7; 32]);
        assert!(token.verify(&[7; 32], &proof));
        assert!(!other.verify(&[7; 32], &proof) && !Token::public().verify(&[7; 32], &proof));
        assert!(!token.verify(&[8; 32], &proof));
    }

    #[test]
    fn it_is_not_shown() {
        assert_eq!(format!("{:?}", Token::new("0123456789abcdef").unwrap()), "Token");
    }
}
