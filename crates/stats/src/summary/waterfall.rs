//! The shape of `summary.waterfall`.

use serde::{Deserialize, Serialize};

/// Where the time to the first token went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Waterfall {
    /// Mean over the tenth of all requests around the median.
    pub median: WaterfallBand,
    /// Mean over the slowest hundredth.
    pub slowest: WaterfallBand,
}

/// Parts of TTFT from schedule, averaged over the same requests, so that they add up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaterfallBand {
    /// Number of requests.
    pub n: u64,
    /// Their mean TTFT.
    pub ttft_ms: f64,
    /// Its parts in order of time.
    pub parts: Vec<WaterfallPart>,
}

/// One part of TTFT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaterfallPart {
    /// `held` (by a cap), `slip`, `blocked` (waiting for a connection), `dns`, `connect`, `tls`,
    /// `send`, `wait` (for the headers), `header_to_byte`, `byte_to_token`.
    pub name: String,
    /// How long.
    pub ms: f64,
}
