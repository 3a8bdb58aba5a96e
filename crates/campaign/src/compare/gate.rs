//! What must hold between two sides: `p99 ttft < +5%, goodput > -3%`.
//!
//! A condition has a metric, `<` or `>`, and a change. The change is in proportion (`+5%`); of a share
//! it is in points: `attainment > -0.5%` allows to lose half a point. `<=` and `>=` are read as `<` and
//! `>`: no measured interval ends exactly at a limit.
//!
//! Most conditions limit a change for the worse. One that limits a change for the better
//! (`goodput < +5%`) is read too: it holds against gains that are too good to be true, and two of
//! them around zero say that nothing may change. It is missed like any other.

mod read;
#[cfg(test)]
mod tests;

use goodput_model::safe_excerpt;
use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{FigureOutcome, Finding};

/// Which side of its limit a change must stay on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// `<`
    Below,
    /// `>`
    Above,
}

/// One condition. Its text form is that of the command line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Gate {
    /// Name of the metric.
    pub metric: String,
    /// Which side of the limit is allowed.
    pub limit: Limit,
    /// The change allowed, in proportion; of a share: its difference.
    pub change: f64,
}

/// Why a text is not a gate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GateError(pub String);

impl Gate {
    /// Several, separated by commas.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, GateError> {
        read::parse_gates(text)
    }

    /// Whether a change between these ends keeps it; none if it may or may not.
    pub(super) fn is_kept(&self, [low, high]: [f64; 2]) -> Option<bool> {
        let (is_inside, is_outside) = match self.limit {
            Limit::Below => (high < self.change, low >= self.change),
            Limit::Above => (low > self.change, high <= self.change),
        };
        (is_inside != is_outside).then_some(is_inside)
    }
}

impl TryFrom<String> for Gate {
    type Error = GateError;

    fn try_from(text: String) -> Result<Self, GateError> {
        let mut all = Self::parse_all(&text)?;
        match (all.pop(), all.is_empty()) {
            (Some(gate), true) => Ok(gate),
            _ => Err(GateError(format!("`{}` is not one condition", safe_excerpt(text.trim())))),
        }
    }
}

impl From<Gate> for String {
    fn from(gate: Gate) -> Self {
        gate.to_string()
    }
}

/// As it is typed: what it writes reads back to the bit.
impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.limit {
            Limit::Below => '<',
            Limit::Above => '>',
        };
        match read::split_statistic(&self.metric) {
            Some((name, statistic)) => write!(f, "{statistic} {name}")?,
            None => f.write_str(&self.metric)?,
        }
        write!(f, " {sign} {}", read::percent_text(self.change))
    }
}

/// A gate and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateResult {
    /// The condition.
    pub gate: Gate,
    /// Place of the candidate.
    pub side: u32,
    /// Place of the level.
    pub level: u32,
    /// `equivalent`: it holds; `worse`: it does not; otherwise it is undecided.
    pub outcome: FigureOutcome,
    /// The change.
    pub change: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// Every gate at every level for every candidate. A figure that a run lacks has no verdict: a gate
/// that cannot be checked does not hold.
pub fn judge_gates(gates: &[Gate], findings: &[Finding]) -> Vec<GateResult> {
    let places: BTreeSet<(u32, u32)> =
        findings.iter().map(|finding| (finding.level, finding.side)).collect();
    let judged = gates.iter().flat_map(|gate| {
        places.iter().map(move |&(level, side)| {
            let mut here = findings.iter().filter(|f| (f.level, f.side) == (level, side));
            let finding = here.find(|finding| finding.metric == gate.metric);
            GateResult {
                gate: gate.clone(),
                side,
                level,
                outcome: finding
                    .map_or(FigureOutcome::NoVerdict, |finding| gate_outcome(gate, finding)),
                change: finding.map(|finding| finding.change),
                low: finding.and_then(|finding| finding.low),
                high: finding.and_then(|finding| finding.high),
            }
        })
    });
    judged.collect()
}

fn gate_outcome(gate: &Gate, finding: &Finding) -> FigureOutcome {
    let (Some(low), Some(high)) = (finding.low, finding.high) else {
        return FigureOutcome::NoVerdict;
    };
    // The interval of what is not tested is not one of the family.
    if finding.outcome == FigureOutcome::NoVerdict || !finding.is_tested {
        return FigureOutcome::NoVerdict;
    }
    match gate.is_kept([low, high]) {
        None => FigureOutcome::Inconclusive,
        Some(false) => FigureOutcome::Worse,
        Some(true) => FigureOutcome::Equivalent,
    }
}
