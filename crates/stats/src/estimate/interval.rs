//! The interval of a quantile from dependent values.

use super::binomial::{binomial_cdf, enclosing_ranks, first_where, minimum_for_interval};
use super::{Effective, TAIL};

/// The ranks (from 1) of the two of `n` sorted values that enclose quantile `q` with 95 %: those of
/// as many independent values as these are worth, stretched over all of them. None if they are
/// worth fewer than the fewest that have an interval.
pub(crate) fn interval_ranks(n: u64, effective: Effective, q: f64) -> Option<(u64, u64)> {
    let fewest = minimum_for_interval(q)?;
    let worth = Effective { n: effective.n.min(n as f64), ..effective };
    if worth.n < fewest as f64 {
        return None;
    }
    let independent = (worth.independent_worth() as u64).max(fewest);
    let (low, high) = enclosing_ranks(independent, q)?;
    let stretched = |rank: u64| rank as f64 * n as f64 / independent as f64;
    // Outwards, so that rounding never narrows it; whole numbers stay what they are.
    let low = (stretched(low) + 1e-9).floor().max(1.0) as u64;
    let high = (stretched(high) - 1e-9).ceil() as u64;
    Some((low, high.min(n)))
}

/// The rank (from 1) of the largest value below which quantile `q` lies with at most 2.5 %: the
/// lower end alone, where the upper one cannot be trusted. None if all of them may be larger.
pub(crate) fn lower_rank(n: u64, effective: Effective, q: f64) -> Option<u64> {
    let independent = (effective.independent_worth().min(n as f64) as u64).max(1);
    let low = first_where(independent, |rank| binomial_cdf(rank, independent, q) > TAIL);
    // Each stands for as many as it is worth: the middle one of them.
    let stretched = ((low as f64 - 0.5) * n as f64 / independent as f64).floor() as u64;
    (low >= 1 && n > 0 && q > 0.0 && q < 1.0).then(|| stretched.clamp(1, n))
}
