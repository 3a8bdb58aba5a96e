//! The shape of `summary.steadiness` and of a window's cut.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteadyAnswer {
    /// Consistent with one state from the cut to the end.
    Steady,
    /// A metric rises or falls throughout.
    Drifting,
    /// A metric has two levels, one after the other.
    Shifted,
    /// The warm-up never ended.
    NeverSteady,
    /// Too few bins, requests, or successive answers to tell.
    TooShort,
    /// The load was not meant to be steady, or it has no window.
    #[default]
    NotApplicable,
}

/// The cut of MSER-5 in one series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SeriesCut {
    /// The cut of MSER-5, from the beginning of the series.
    pub asked_s: f64,
    /// The part of it that is a cold start and not a fluctuation; zero if none is.
    pub cut_s: f64,
    /// MSER-5 cuts half of the series, its maximum: the series is too short.
    pub at_limit: bool,
    /// Mean of the series before the cut of MSER-5; that of the rest if nothing is cut.
    pub before: f64,
    /// Mean of the series after it.
    pub after: f64,
}

impl SeriesCut {
    /// Up to the limit nothing looked like the rest: the warm-up did not end in time.
    pub fn is_stuck(&self) -> bool {
        self.at_limit && self.cut_s >= self.asked_s
    }

    /// By how much the part before the cut differs, as a share of the rest.
    pub fn difference(&self) -> f64 {
        if self.after == 0.0 { 0.0 } else { (self.before - self.after) / self.after.abs() }
    }
}

/// Where the warm-up ends.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Cut {
    /// The largest over the series, except those that no cut helps. MSER-5 alone would cut a third
    /// of a steady minute.
    pub cut_s: f64,
    /// The largest cut of MSER-5, clear or not.
    pub asked_s: f64,
    /// Each series by name: `in_flight`, `output_tokens_per_s`, `ttft`, `tpot`.
    pub series: BTreeMap<String, SeriesCut>,
}

/// A trend in a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// The series.
    pub metric: String,
    /// Change from beginning to end, as a share of the median.
    pub drift_share: f64,
    /// P-value for a steady run.
    pub p: f64,
}

/// A level that changed once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// The series.
    pub metric: String,
    /// When, in seconds since the run's first instant.
    pub at_s: f64,
    /// Median before.
    pub before: f64,
    /// Median after.
    pub after: f64,
    /// P-value for a steady run.
    pub p: f64,
}

/// Whether the run was steady, and the evidence.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Steadiness {
    /// The answer.
    pub state: SteadyAnswer,
    /// What to cut from the beginning of the judged series.
    pub cut: Cut,
    /// The trend that counts against it, or that of TPOT.
    pub trend: Option<Trend>,
    /// The shift that counts against it.
    pub shift: Option<Shift>,
}

impl Steadiness {
    /// That nothing was seen says nothing of a run in which nothing can be seen.
    pub(crate) fn mark_unseen(&mut self) {
        if self.state == SteadyAnswer::Steady {
            self.state = SteadyAnswer::TooShort;
        }
    }
}
