//! The shape of `summary.load`: the load, as asked and as delivered.

use serde::{Deserialize, Serialize};

use super::metric::Quick;

/// The load, as asked and as delivered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSummary {
    /// `open`, `shaped`, `replay`, `capped`, `burst` or `closed`.
    pub mode: String,
    /// Arrival process of an open loop.
    pub arrivals: Option<String>,
    /// How the rate changes over time, where it does.
    #[serde(default)]
    pub shape: Option<String>,
    /// Rate of arrivals asked for: of sessions, where there are such; the mean over the window,
    /// where it changes.
    pub offered_rps: Option<f64>,
    /// Rate of the due instants: the offered rate with the chance of this schedule in it.
    pub scheduled_rps: Option<f64>,
    /// Rate at which requests were really sent.
    pub delivered_rps: Option<f64>,
    /// Share of due requests that were sent.
    pub delivered_share: Option<f64>,
    /// Coefficient of variation of the gaps between sends.
    pub gap_cv: Option<f64>,
    /// Poisson arrivals: whether the due instants are what they should be.
    #[serde(default)]
    pub due_gaps: Option<GapTest>,
    /// Poisson arrivals: whether requests really left like that.
    #[serde(default)]
    pub sent_gaps: Option<GapTest>,
    /// Users of a closed loop.
    pub concurrency: Option<u32>,
    /// Cap of a capped loop.
    pub max_concurrency: Option<u32>,
    /// Requests that the cap held back.
    pub delayed: u64,
    /// Lateness of the client itself.
    pub slip_ms: Quick,
    /// Requests in flight, averaged over the window.
    pub in_flight_mean: Option<f64>,
    /// Requests in flight at the end of the window.
    pub in_flight_end: u64,
}

/// A Kolmogorov–Smirnov test of gaps against the exponential distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GapTest {
    /// Number of gaps.
    pub n: u64,
    /// Largest difference between the two distributions.
    pub distance: f64,
    /// Chance of such a difference, were the gaps exponential.
    pub p: f64,
}
