//! Hashes that say nothing without their salt.

use sha2::{Digest, Sha256};

/// What a hash is for, so that no two uses give the same.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Use {
    Prompt = 1,
    Block = 2,
    Content = 3,
    History = 4,
    Users = 5,
    Answer = 6,
    Session = 7,
    Model = 8,
    Thing = 9,
    Others = 10,
}

/// A hash.
pub(crate) type Key = [u8; 32];

/// The salt of a file.
#[derive(Clone, Copy)]
pub(crate) struct Salt(pub(crate) [u8; 32]);

impl Salt {
    /// A hash that has only begun.
    pub(crate) fn new_hash(&self, what: Use) -> Sha256 {
        Sha256::new().chain_update(self.0).chain_update([what as u8])
    }

    /// The hash of these parts, told apart by their lengths.
    pub(crate) fn hash_parts(&self, what: Use, parts: &[&[u8]]) -> Key {
        let mut hash = self.new_hash(what);
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

/// The first 53 bits of a hash: what every reader of JSON keeps exactly.
pub(crate) fn number_from_key(key: &Key) -> u64 {
    let first = key.iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    first >> 11
}
