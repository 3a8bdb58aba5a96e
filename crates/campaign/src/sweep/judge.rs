//! Whether a point keeps the SLO.

use serde::{Deserialize, Serialize};

use super::{Figures, SweepPlan};

/// What came of a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "because")]
pub enum Standing {
    /// It keeps the SLO, by what was seen.
    Met,
    /// It does not.
    Missed(Miss),
    /// The point says nothing.
    Unclear(Unclear),
}

/// Why a point does not keep the SLO.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Miss {
    /// This term of the SLO.
    Term(String),
    /// Too few requests were good.
    Attainment,
    /// More is asked than answered.
    OverSaturated,
    /// The server turns requests away (429, 503): its limit is its capacity.
    RateLimited,
    /// Too many requests failed.
    Errors,
}

/// Why a point says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unclear {
    /// This client was the bottleneck.
    Client,
    /// The server was gone for part of it.
    ServerGone,
    /// It was stopped.
    Interrupted,
    /// Nothing was measured, or nothing was promised.
    Nothing,
}

/// Whether these figures keep the SLO of the plan.
pub fn judge(_figures: &Figures, _plan: &SweepPlan) -> Standing {
    Standing::Unclear(Unclear::Nothing)
}
