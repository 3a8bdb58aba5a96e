//! What a body is known by, so that two servers can be shown to have been sent the same.

use std::ops::Range;

use sha2::{Digest, Sha256};

/// The first eight bytes of the SHA-256 of a body without the value of its `model`, for that is a
/// name which may differ between servers that serve the same.
pub(crate) fn body_hash(body: &[u8], model: Range<usize>) -> u64 {
    let mut hasher = Sha256::new();
    hasher.update(body.get(..model.start).unwrap_or(body));
    hasher.update(body.get(model.end..).unwrap_or_default());
    let digest = hasher.finalize();
    digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_the_beginning_of_sha_256() {
        // SHA-256 of `abc` and of nothing, from FIPS 180-4.
        assert_eq!(body_hash(b"abc", 0..0), 0xba78_16bf_8f01_cfea);
        assert_eq!(body_hash(b"a\"m\"bc", 1..4), 0xba78_16bf_8f01_cfea);
        assert_eq!(body_hash(b"", 0..0), 0xe3b0_c442_98fc_1c14);
    }
}
