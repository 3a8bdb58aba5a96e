//! HMAC-SHA-256, comparison in constant time, and bytes that nobody can guess.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// What SHA-256 takes in at once.
const BLOCK: usize = 64;

/// A key or a tag.
pub(crate) type Bytes32 = [u8; 32];

/// HMAC-SHA-256 (RFC 2104) over the parts one after another.
pub(crate) fn hmac(key: &[u8], parts: &[&[u8]]) -> Bytes32 {
    let mut block = [0; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let padded = |with: u8| Sha256::new().chain_update(block.map(|byte| byte ^ with));
    let inner = parts.iter().fold(padded(0x36), Digest::chain_update).finalize();
    padded(0x5c).chain_update(inner).finalize().into()
}

/// Whether two tags are the same; takes as long wherever they differ.
pub(crate) fn is_same(a: &Bytes32, b: &Bytes32) -> bool {
    let differing = a.iter().zip(b).fold(0, |sum, (a, b)| black_box(sum | (a ^ b)));
    black_box(differing) == 0
}

/// A number that is used once.
pub(crate) fn nonce() -> io::Result<Bytes32> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case = (&'static [u8], &'static [&'static [u8]], u128, u128);

    #[test]
    fn tags_are_those_of_rfc_4231() {
        let cases: [Case; 3] = [
            (
                &[0x0b; 20],
                &[b"Hi ", b"There"],
                0xb034_4c61_d8db_3853_5ca8_afce_af0b_f12b,
                0x881d_c200_c983_3da7_26e9_376c_2e32_cff7,
            ),
            (
                b"Jefe",
                &[b"what do ya want for nothing?"],
                0x5bdc_c146_bf60_754e_6a04_2426_0895_75c7,
                0x5a00_3f08_9d27_3983_9dec_58b9_64ec_3843,
            ),
            (
                &[0xaa; 131],
                &[b"Test Using Larger Than Block-Size Key", b" - Hash Key First"],
                0x60e4_3159_1ee0_b67f_0d8a_26aa_cbf5_b77f,
                0x8e0b_c621_3728_c514_0546_040f_0ee3_7f54,
            ),
        ];
        for (key, parts, high, low) in cases {
            let tag = [high.to_be_bytes(), low.to_be_bytes()].concat();
            assert_eq!(hmac(key, parts)[..], tag);
        }
    }

    #[test]
    fn every_byte_counts() {
        let tag = hmac(b"key", &[b"text"]);
        assert!(is_same(&tag, &tag.clone()));
        for place in 0..32 {
            let mut other = tag;
            other[place] ^= 1;
            assert!(!is_same(&tag, &other));
        }
    }

    #[test]
    fn nonces_differ() {
        assert_ne!(nonce().unwrap(), nonce().unwrap());
    }
}
