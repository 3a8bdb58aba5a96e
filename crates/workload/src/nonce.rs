//! The number that makes a prompt unlike every other.

use goodput_model::random::{Domain, RandomStream};

/// Requests of one session that have nonces of their own.
const REQUEST_BITS: u32 = 20;

/// Numbers that never repeat within one seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nonces(u64);

impl Nonces {
    pub(crate) fn new(seed: u64) -> Self {
        Self(RandomStream::new(seed, Domain::Text, u64::MAX).next_bits())
    }

    /// The nonce of a request: a keyed one-to-one map, so no two of the first 2^20 requests of the
    /// first 2^44 sessions have the same.
    pub(crate) fn value(self, session: u64, request: u64) -> u64 {
        let number = (session << REQUEST_BITS) | (request & ((1 << REQUEST_BITS) - 1));
        // Each step can be undone: an odd factor has an inverse, and so has a shifted difference.
        let mut z = number ^ self.0;
        z = (z ^ (z >> 31)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        z = (z ^ (z >> 29)).wrapping_mul(0xa076_1d64_78bd_642f);
        z ^ (z >> 32)
    }
}

/// The number of the request whose text is common to many: no session asks it.
pub(crate) const COMMON: u64 = (1 << REQUEST_BITS) - 1;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_nonce_comes_twice_and_seeds_differ() {
        let nonces = Nonces::new(1);
        let all: HashSet<u64> = (0..20_000)
            .flat_map(|session| (0..5).map(move |request| nonces.value(session, request)))
            .collect();
        assert_eq!(all.len(), 100_000);
        assert_ne!(Nonces::new(2).value(0, 0), nonces.value(0, 0));
    }

    #[test]
    fn the_first_six_digits_alone_are_almost_always_enough() {
        // A template may fill ten of the sixteen tokens of the first block; six words of eight
        // bits are left then. By chance 100,000 of 2^48 numbers meet with a probability of 2e-5.
        let nonces = Nonces::new(7);
        let heads: HashSet<u64> = (0..100_000).map(|n| nonces.value(n, 0) >> 16).collect();
        assert_eq!(heads.len(), 100_000);
    }
}
