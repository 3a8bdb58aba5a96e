//! The shape of `summary.until`.

use serde::{Deserialize, Serialize};

/// What `--until` asked for, and what is known at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UntilSummary {
    /// The rule as text.
    pub rule: String,
    /// Whether all of it holds over all measured requests.
    pub met: bool,
    /// Whether it is missed by more than what came in after a stop explains.
    #[serde(default)]
    pub missed: bool,
    /// Each part of it.
    pub goals: Vec<GoalSummary>,
}

/// One figure that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalSummary {
    /// This part of the rule as text.
    pub rule: String,
    /// The figure; none where it lies beyond the time limit.
    pub value: Option<f64>,
    /// How far the farther end of its interval lies, in proportion to it.
    pub within: Option<f64>,
    /// How far it may.
    pub asked: f64,
    /// Values that it rests on.
    pub n: u64,
    /// As many independent values would say as much.
    pub n_eff: f64,
    /// About how much longer the run should have been.
    pub more_s: Option<f64>,
    /// Whether it is known as well as asked.
    pub met: bool,
}
