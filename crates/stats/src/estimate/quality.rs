//! How many samples a figure needs to stand without its interval.

/// The fewest samples for a figure of quantile `q` that stands without its interval: ten beyond it
/// up to p99, a hundred further out (1,000 for p99 and 100,000 for p99.9). None outside (0, 1).
pub fn minimum_for_figure(q: f64) -> Option<u64> {
    let beyond = if q > 0.99 { 100.0 } else { 10.0 };
    // 10 / (1 - 0.99) is 1000, whatever binary fractions make of it.
    (q > 0.0 && q < 1.0).then(|| (beyond / (1.0 - q) * (1.0 - 1e-9)).ceil() as u64)
}

/// The fewest samples for any figure of quantile `q`: one of them is expected beyond it. None
/// outside (0, 1).
pub(crate) fn minimum_for_estimate(q: f64) -> Option<u64> {
    (q > 0.0 && q < 1.0).then(|| (1.0 / (1.0 - q).min(q) * (1.0 - 1e-9)).ceil() as u64)
}

/// The same of a mean: five in each of twenty batches.
pub(crate) const MINIMUM_FOR_MEAN: u64 = 100;
