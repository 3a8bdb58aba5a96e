//! The shape of `summary.saturation`.

use serde::{Deserialize, Serialize};

/// Whether a server keeps up, and the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Saturation {
    /// More requests arrive than complete: the number in flight and the wait both rise beyond chance, completions
    /// fall short of arrivals, and the rise is of practical size.
    pub over_saturated: bool,
    /// The queue is full: the number in flight rose to a ceiling and waits are many times what they
    /// were at first, or requests are rejected. Latencies then depend on how much of the run came
    /// before that.
    pub queue_limited: bool,
    /// Growth of requests in flight per second, by the Theil–Sen slope.
    pub backlog_growth_per_s: f64,
    /// Completions per arrival over the second half; none without an arrival.
    pub balance: Option<f64>,
    /// The same over all of the window.
    pub balance_all: Option<f64>,
    /// Requests rejected (429, 503) in the second half, as a share of arrivals.
    pub refused_share: f64,
    /// Change of the number in flight per second.
    pub in_flight_slope: Slope,
    /// Change of the median wait, in milliseconds per second; none without waits.
    pub ttft_slope: Option<Slope>,
}

/// A least-squares slope with its 95 % interval from Student's t.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Slope {
    /// Change for each unit of x.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}
