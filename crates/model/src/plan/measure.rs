//! What to compute.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::text::option_duration_text;
use crate::{Slo, Until};

/// What to compute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Percentiles, each in (0, 100).
    pub percentiles: Vec<f64>,
    /// Whether a server of known timing gets requests during the load.
    #[serde(default = "default_true")]
    pub canary: bool,
    /// Whether each percentile also has MLPerf's early-stopping estimate.
    #[serde(default, skip_serializing_if = "is_false")]
    pub early_stopping: bool,
    /// Whether the log holds a hash of each body, which proves that several servers were sent the
    /// same.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hash_bodies: bool,
    /// The SLO.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo: Option<Slo>,
    /// The share of requests, in (0, 1], that must keep all promises about single requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attainment: Option<f64>,
    /// The run may end once this is known; its duration and number of requests are then limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// Measured time before which it does not end by that.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "option_duration_text")]
    pub min_duration: Option<Duration>,
    /// Whether a point of a sweep may end before its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_early: Option<StopEarly>,
}

/// When a point of a sweep may end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopEarly {
    /// Once the server cannot recover: it does not keep up, requests fail, or the SLO is out of
    /// reach whatever follows.
    Hopeless,
    /// Also once it is clear whether the SLO is kept.
    Decided,
}

impl Measure {
    /// Percentiles that are reported where no others are asked for.
    pub const PERCENTILES: [f64; 6] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9];

    /// These percentiles, and nothing else that must be asked for.
    pub fn new(percentiles: Vec<f64>) -> Self {
        Self {
            percentiles,
            canary: true,
            early_stopping: false,
            hash_bodies: false,
            slo: None,
            attainment: None,
            until: None,
            min_duration: None,
            stop_early: None,
        }
    }
}

/// An SLO that is asked of saved results, in place of the one that they were measured with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SloQuestion {
    /// The SLO; none: theirs.
    pub slo: Option<Slo>,
    /// The share of requests that must keep all promises about single requests. It belongs to the
    /// SLO: a new SLO without it asks for none.
    pub attainment: Option<f64>,
}

impl SloQuestion {
    /// Whether nothing is asked: results are judged by what they were measured with.
    pub fn is_empty(&self) -> bool {
        self.slo.is_none() && self.attainment.is_none()
    }

    /// Asks it of a plan, as if it had been asked before the run.
    pub fn apply_to(&self, measure: &mut Measure) {
        if let Some(slo) = &self.slo {
            measure.slo = Some(slo.clone());
            measure.attainment = None;
        }
        measure.attainment = self.attainment.or(measure.attainment);
    }
}

fn default_true() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_false(value: &bool) -> bool {
    !value
}
