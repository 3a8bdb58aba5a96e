//! [`NameLookup`]: what it took to find the target's addresses.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// What it took to learn which addresses the target's host name stands for. It happens once, before
/// the first request, so no latency contains it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NameLookup {
    /// How long the resolver took, in milliseconds; null if the URL holds an address, so that
    /// nothing had to be resolved.
    pub ms: Option<f64>,
    /// Number of addresses that were found.
    pub addresses: u64,
}

impl NameLookup {
    /// Of a host name that took this long, or of an address, which takes nothing.
    pub fn new(took: Option<Nanos>, addresses: usize) -> Self {
        Self { ms: took.map(Nanos::as_ms), addresses: addresses as u64 }
    }
}
