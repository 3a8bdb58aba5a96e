//! What the points of a sweep say together: knee, shape, front, peak.

use serde::{Deserialize, Serialize};

use crate::sweep::{Bounded, PointSummary};

/// What the points say together. Places are those in the list of points.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Curve {
    /// The knee by rule: the highest level that is delivered and not over-saturated.
    pub knee: Option<Knee>,
    /// The knee by the shape of throughput over load (Kneedle); a description.
    pub kneedle: Option<Kneedle>,
    /// The universal scalability law through throughput over concurrency; a description.
    pub usl: Option<Usl>,
    /// Places of the points on the front of throughput against latency.
    pub pareto: Vec<usize>,
    /// Place of the point with the highest goodput.
    pub peak: Option<usize>,
    /// Attainment over level, made monotone (isotonic regression): level and share.
    pub attainment: Vec<(f64, f64)>,
}

/// The knee by rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// The highest level that is delivered (at least 99 %) and not over-saturated.
    pub level: f64,
    /// The lowest level above it that is not; none where there is none.
    pub beyond: Option<f64>,
}

/// Kneedle's knee.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Kneedle {
    /// Its level, with an interval by bootstrap where that can be had.
    pub level: Bounded,
    /// Points that it rests on; unstable below 8.
    pub points: u32,
}

/// The universal scalability law, X(N) = γN / (1 + α(N−1) + βN(N−1)).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// Throughput of one.
    pub gamma: f64,
    /// Contention.
    pub alpha: f64,
    /// Coherence.
    pub beta: f64,
    /// Where throughput peaks, with its interval; none where it does not.
    pub peak: Option<Bounded>,
    /// Points that it rests on.
    pub points: u32,
    /// Share of the variance that it explains.
    pub r2: f64,
}

/// What these points say together.
pub fn curve(_points: &[PointSummary]) -> Curve {
    Curve::default()
}
