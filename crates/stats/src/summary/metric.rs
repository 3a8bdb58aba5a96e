//! Distributions in numbers: a metric, its percentiles, and shorter forms.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Unit of every value.
    pub unit: String,
    /// Number of samples.
    pub n: u64,
    /// Samples that are only known to be larger: requests that hit a time limit.
    pub censored: u64,
    /// Mean; none when a sample is censored.
    pub mean: Option<f64>,
    /// Standard deviation; none when a sample is censored.
    pub std: Option<f64>,
    /// Smallest.
    pub min: Option<f64>,
    /// Largest; none when a sample is censored.
    pub max: Option<f64>,
    /// By percent, as text.
    pub percentiles: BTreeMap<String, Percentile>,
    /// Lower end of the mean's 95 % interval, by batch means.
    #[serde(default)]
    pub mean_low: Option<f64>,
    /// Upper end of it.
    #[serde(default)]
    pub mean_high: Option<f64>,
    /// p99 over p50; none when either is unknown.
    #[serde(default)]
    pub tail_ratio: Option<f64>,
    /// How much a value depends on the previous one in order of scheduled instants (autocorrelation
    /// at lag 1); TTFT only.
    #[serde(default)]
    pub lag1: Option<f64>,
}

/// One percentile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// The value; none without samples, or if it falls among the censored ones.
    pub value: Option<f64>,
    /// Lower end of its 95 % interval; none if not estimable. If `quality` is `rough`, at most one
    /// end is given: the one that can be trusted.
    pub low: Option<f64>,
    /// Upper end of its interval; none if not estimable, or beyond the time limit.
    pub high: Option<f64>,
    /// Whether it lies beyond the time limit.
    #[serde(default)]
    pub is_censored: bool,
    /// Whether the upper end of its interval lies beyond the time limit.
    #[serde(default)]
    pub high_is_censored: bool,
    /// The number of independent samples that would be worth as much; none if unknown.
    #[serde(default)]
    pub n_eff: Option<f64>,
    /// Whether it can stand without its interval.
    #[serde(default)]
    pub quality: Quality,
    /// MLPerf's early-stopping estimate, an upper bound with 99 % confidence; none from too few
    /// samples.
    #[serde(default)]
    pub early_stopping: Option<f64>,
    /// The percentile of completed requests only, if failures that took longer change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<f64>,
}

/// What a percentile may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// The figure stands alone. Summaries of versions without intervals have this value, too.
    #[default]
    Ok,
    /// Few samples: use the interval, not the bare figure.
    Few,
    /// At most one end of its interval can be trusted: too few samples, or neighbors that are too
    /// much alike.
    Rough,
    /// Too few samples for any figure: fewer than one is expected beyond it.
    NotEstimable,
}

impl Quality {
    /// Whether both ends of its interval are known.
    pub fn has_interval(self) -> bool {
        matches!(self, Self::Ok | Self::Few)
    }
}

/// A distribution in three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Quick {
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

/// A distribution in four numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spread {
    /// Number of samples.
    pub n: u64,
    /// Mean; none when a sample is censored.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}
