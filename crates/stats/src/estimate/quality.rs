//! Whether a percentile may stand without its interval.

use serde::{Deserialize, Serialize};

/// What a percentile may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// The figure stands for itself. Summaries from before there were intervals say so too.
    #[default]
    Ok,
    /// Few samples: the interval stands, the bare figure does not.
    Few,
    /// The interval is not estimable: too few samples, or too dependent ones.
    NotEstimable,
}

/// The fewest samples for a figure of quantile `q` that stands without its interval: ten beyond it
/// up to p99, a hundred further out (1,000 for p99 and 100,000 for p99.9). None outside (0, 1).
pub fn minimum_for_figure(q: f64) -> Option<u64> {
    let beyond = if q > 0.99 { 100.0 } else { 10.0 };
    // 10 / (1 - 0.99) is 1000, whatever binary fractions make of it.
    (q > 0.0 && q < 1.0).then(|| (beyond / (1.0 - q) * (1.0 - 1e-9)).ceil() as u64)
}

/// The same of a mean: five in each of twenty batches.
pub(crate) const MINIMUM_FOR_MEAN: u64 = 100;
