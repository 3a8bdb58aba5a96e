//! The shape of `summary.load`: the load, as asked and as delivered.

use serde::{Deserialize, Serialize};

use super::metric::Quick;

/// The load, as planned and as delivered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSummary {
    /// `open`, `shaped`, `replay`, `capped`, `burst` or `closed`.
    pub mode: String,
    /// Arrival process of an open loop.
    pub arrivals: Option<String>,
    /// How the rate changes over time, if it does.
    #[serde(default)]
    pub shape: Option<String>,
    /// Planned rate of arrivals: of sessions, if the workload has them; the mean over the window,
    /// if it changes.
    pub offered_rps: Option<f64>,
    /// Rate of the scheduled instants: the offered rate, with the randomness of this schedule.
    pub scheduled_rps: Option<f64>,
    /// Rate at which requests were actually sent.
    pub delivered_rps: Option<f64>,
    /// Share of scheduled requests that were sent.
    pub delivered_share: Option<f64>,
    /// Coefficient of variation of the gaps between sends.
    pub gap_cv: Option<f64>,
    /// Poisson arrivals: whether the scheduled instants fit.
    #[serde(default)]
    pub due_gaps: Option<GapTest>,
    /// Poisson arrivals: whether requests were actually sent that way.
    #[serde(default)]
    pub sent_gaps: Option<GapTest>,
    /// Users of a closed loop.
    pub concurrency: Option<u32>,
    /// Cold start test (`--idle`): seconds without load before each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<f64>,
    /// Cap of a capped loop.
    pub max_concurrency: Option<u32>,
    /// Requests that the cap held back.
    pub delayed: u64,
    /// Delay caused by the client itself.
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
    /// P-value for exponential gaps.
    pub p: f64,
}
