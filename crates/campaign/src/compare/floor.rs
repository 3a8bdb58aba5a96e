//! The noise floor of a rig: how far two measurements of one server lie apart.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::blocks::difference_to_change;
use super::{ComparedRun, Design, find_metric, findings};

/// The noise floor of a rig.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// `goodput.floor/1`
    pub schema: String,
    /// When it was measured (RFC 3339).
    pub date: String,
    /// The machine that measured.
    pub machine: String,
    /// URL without secrets.
    pub target: String,
    /// Model asked for.
    pub model: String,
    /// The load in one line.
    pub load: String,
    /// The workload in one line.
    pub workload: String,
    /// Blocks it rests on.
    pub blocks: u32,
    /// Measured seconds of each run.
    pub run_s: f64,
    /// Runs in these blocks that are suspect.
    #[serde(default)]
    pub suspect_runs: u32,
    /// Standard deviation between blocks, by metric: of the logarithm of a ratio, or of a difference.
    pub sd: BTreeMap<String, f64>,
}

impl Floor {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.floor/1";

    /// What two measurements of one server differ by, on the scale of changes, margins and gates;
    /// none for a metric that was not measured.
    pub fn change_of(&self, name: &str) -> Option<f64> {
        find_metric(name)
            .zip(self.sd.get(name))
            .map(|(metric, sd)| difference_to_change(&metric, *sd))
    }
}

/// The standard deviation between blocks, by metric, of a server compared with itself: the largest
/// over the levels.
pub fn measure_noise_floor(design: &Design, done: &[ComparedRun]) -> BTreeMap<String, f64> {
    let mut largest = BTreeMap::new();
    for finding in findings(design, done) {
        if let Some(sd) = finding.sd {
            let so_far = largest.entry(finding.metric).or_insert(sd);
            *so_far = sd.max(*so_far);
        }
    }
    largest
}
