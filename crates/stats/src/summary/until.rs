//! The shape of `summary.until`.

use serde::{Deserialize, Serialize};

/// What `--until` asked for, and what is known at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UntilSummary {
    /// The rule as text.
    pub rule: String,
    /// Whether all of it holds over all measured requests.
    pub met: bool,
    /// Whether it is missed by more than requests that ended after the stop explain.
    #[serde(default)]
    pub missed: bool,
    /// Each part of it.
    pub goals: Vec<GoalSummary>,
}

/// One requested figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalSummary {
    /// This part of the rule as text.
    pub rule: String,
    /// The figure; none if it lies beyond the time limit.
    pub value: Option<f64>,
    /// Distance of the farther end of its interval, relative to it.
    pub within: Option<f64>,
    /// The allowed distance.
    pub asked: f64,
    /// Values that it rests on.
    pub n: u64,
    /// The number of independent values that would be worth as much.
    pub n_eff: f64,
    /// About how much longer the run should have been.
    pub more_s: Option<f64>,
    /// Whether it is known as well as requested.
    pub met: bool,
}
