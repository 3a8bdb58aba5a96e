//! How sure shares, means and percentiles of dependent requests are.

use crate::estimate::{self, Effective, TAIL, normal_quantile};
use crate::summary::{Metric, Percentile};

/// Batches that the window is cut into.
pub(super) const BATCHES: usize = estimate::BATCHES as usize;

/// A figure and the interval around it. What lies beyond the time limit is infinite.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Estimate {
    pub(super) value: Option<f64>,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) n_eff: Option<f64>,
}

/// The share of good ones and its interval, from (good, total) of each batch: Wilson's interval on
/// as many requests as say as much. It never leaves 0 to 1, and where all are good it still ends
/// below 1.
pub(super) fn attainment_interval(batches: &[(u64, u64)]) -> Estimate {
    let (good, total) =
        batches.iter().fold((0, 0), |sum, batch| (sum.0 + batch.0, sum.1 + batch.1));
    if total == 0 {
        return Estimate::default();
    }
    let p = good as f64 / total as f64;
    let estimate = Estimate { value: Some(p), ..Estimate::default() };
    let Some(effective) = Effective::of(batches.iter().map(|(good, total)| (*total, *good))) else {
        return estimate;
    };
    let (z, n) = (normal_quantile(1.0 - TAIL), effective.deflated());
    let centre = p + z * z / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    // Rounding must not take the ends past what was seen.
    let low = ((centre - half) / scale).clamp(0.0, p);
    let high = ((centre + half) / scale).clamp(p, 1.0);
    Estimate { low: Some(low), high: Some(high), n_eff: Some(effective.n), ..estimate }
}

impl Estimate {
    /// A mean and its interval.
    pub(super) fn of_mean(metric: &Metric) -> Self {
        Self { value: metric.mean, low: metric.mean_low, high: metric.mean_high, n_eff: None }
    }
}

impl From<&Percentile> for Estimate {
    fn from(found: &Percentile) -> Self {
        // An end that is not there although there is an interval lies beyond the time limit.
        let has_ends = found.quality.has_interval();
        let end = |end: Option<f64>| end.or(has_ends.then_some(f64::INFINITY));
        Self { value: found.value, low: end(found.low), high: end(found.high), n_eff: found.n_eff }
    }
}
