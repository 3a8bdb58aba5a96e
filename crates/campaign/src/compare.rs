//! A comparison: the same requests at the same instants on two or more servers, in blocks. What to
//! measure next is a pure function of what has been measured so far, so a comparison that was
//! stopped goes on where it was, and ends at a look once everything asked is known.

mod answer;
mod blocks;
mod comparable;
mod design;
pub(crate) mod doubts;
mod floor;
mod gate;
mod metric;
mod rank;
mod reported;
mod saved;
mod settings;
pub(crate) mod summary;
pub(crate) mod table;
mod together;

#[cfg(test)]
mod tests;

pub(crate) use answer::findings_with_failures;
pub use answer::{FigureOutcome, Finding, findings};
pub use comparable::{Difference, Matter, SideFacts, find_differences, text_fingerprint};
pub use design::{DesignStep, count_blocks, estimate_remaining_s, next_design_step};
pub use floor::{Floor, measure_noise_floor};
pub use gate::{Gate, GateError, GateResult, Limit, judge_gates};
pub use metric::{
    Better, ComparedMetric, Figure, MetricScale, comparable_figures, find_metric, tested_metrics,
};
pub use rank::{Rank, rank_sides};
pub use reported::{FileComparison, FileFigure, ReportedSide};
pub use saved::{SavedSide, compare_saved};
pub use settings::{ServerSetting, SettingAgreement};
pub use summary::{
    AxisRow, CompareFacts, CompareState, Comparison, ComparisonContext, LevelComparison, Proof,
    Side, Stopped,
};

use std::collections::BTreeMap;

use goodput_model::{Caveat, Severity, Verdict};
use serde::{Deserialize, Serialize};

use crate::sweep::Level;

/// What is compared in each block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// A run of every side at every level.
    #[default]
    Runs,
    /// A search for the highest load that keeps the SLO, on every side.
    Goodput,
}

/// In which order the sides of a block are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockOrder {
    /// Every second block in the reverse order of the one before it, which is random.
    #[default]
    Abba,
    /// A new random order for each block.
    Random,
}

/// The settings of a comparison, without the plans of its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Design {
    /// Names of the sides; the others are compared with the first.
    pub sides: Vec<String>,
    /// What is compared.
    pub quantity: Quantity,
    /// Load levels; empty if goodput is searched for.
    pub levels: Vec<Level>,
    /// Blocks after which it may end, ascending; the last is the end.
    pub looks: Vec<u32>,
    /// Order within a block.
    pub order: BlockOrder,
    /// Whether all sides of a block run at once.
    pub at_once: bool,
    /// Measured seconds of each run.
    pub run_s: f64,
    /// Load before the measured part of each run, in seconds.
    pub burn_in_s: f64,
    /// Pause after each run, in seconds.
    pub settle_s: f64,
    /// Seed of the first runs; each block has one of its own at each level, which all sides share.
    pub seed: u64,
    /// Relative changes smaller than this do not matter.
    pub margin: f64,
    /// Margins of single metrics that are not `margin`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub margins: BTreeMap<String, f64>,
    /// Probability of a wrong verdict about any of the tested figures.
    pub alpha: f64,
    /// The gates; empty: the default figures against the margin.
    #[serde(default)]
    pub gates: Vec<Gate>,
    /// The figures that are tested without gates; empty: the default ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub family: Vec<String>,
    /// Whether both sides are the same target, to measure the noise floor.
    #[serde(default)]
    pub same_target: bool,
    /// Settings of the servers that the comparison is about: their difference casts no doubt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub under_test: Vec<String>,
    /// What each side changes against the first, whose own text is empty (`precision=fp8`); nothing
    /// where the sides are not variants of one baseline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub varied: Vec<String>,
}

/// Two unnamed sides at no level: eight blocks' worth of defaults.
impl Default for Design {
    fn default() -> Self {
        Self {
            sides: Vec::new(),
            quantity: Quantity::Runs,
            levels: Vec::new(),
            looks: vec![6, 8, 12, 16],
            order: BlockOrder::Abba,
            at_once: false,
            run_s: 30.0,
            burn_in_s: 5.0,
            settle_s: 1.0,
            seed: 1,
            margin: 0.03,
            margins: BTreeMap::new(),
            alpha: 0.05,
            gates: Vec::new(),
            family: Vec::new(),
            same_target: false,
            under_test: Vec::new(),
            varied: Vec::new(),
        }
    }
}

/// Points of failures that do not matter: fewer than of other shares.
const ERROR_MARGIN: f64 = 0.01;

impl Design {
    /// Changes of this metric smaller than this do not matter.
    pub fn margin_of(&self, metric: &str) -> f64 {
        let usual = if metric == "error_share" { ERROR_MARGIN } else { self.margin };
        self.margins.get(metric).copied().unwrap_or(usual)
    }
}

/// A run to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAsk {
    /// From 1; also the number of its folder.
    pub number: u32,
    /// From 1.
    pub block: u32,
    /// Place among the sides.
    pub side: u32,
    /// Place among the levels; 0 if goodput is searched for.
    pub level: u32,
    /// Seed of arrivals and prompts: that of its block at its level.
    pub seed: u64,
}

/// A run that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedRun {
    /// What was asked.
    pub ask: RunAsk,
    /// Whether to believe it.
    pub verdict: Verdict,
    /// The most serious caveat, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Caveat>,
    /// Its figures, by name.
    pub figures: BTreeMap<String, Figure>,
    /// What should be the same on all sides.
    pub facts: SideFacts,
}

/// The first of the gravest caveats of a run, without those about its length; none if it has only
/// notes.
pub fn gravest_caveat(caveats: &[Caveat]) -> Option<Caveat> {
    let of = |severity| {
        let mut grave = caveats.iter().filter(|caveat| caveat.severity == severity);
        grave.find(|caveat| !caveat.code.is_about_length())
    };
    of(Severity::Void).or_else(|| of(Severity::Warn)).cloned()
}
