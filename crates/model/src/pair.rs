//! Two servers that were sent the same request.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// How alike two answers are, without their text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Likeness {
    /// Whether they are the same to the byte.
    pub exact: bool,
    /// Characters that are the same from the beginning.
    pub prefix: u32,
    /// Characters of the primary's answer, and of the candidate's.
    pub lengths: [u32; 2],
}

/// What is known of a pair of requests, apart from what each server did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairNote {
    /// Its number among the pairs, from 0: the index of both records.
    pub number: u64,
    /// When the request arrived, from the beginning.
    pub at: Nanos,
    /// How similar the answers are, if that was compared.
    pub likeness: Option<Likeness>,
}
