//! The interval of a quantile from dependent values.

use super::Effective;
use super::binomial::{enclosing_ranks, minimum_for_interval};

/// The ranks (from 1) of the two of `n` sorted values that enclose quantile `q` with 95 %: those of
/// as many independent values as these are worth, stretched over all of them. None where they are
/// worth fewer than the fewest that have an interval.
pub(crate) fn ranks(n: u64, effective: Effective, q: f64) -> Option<(u64, u64)> {
    let fewest = minimum_for_interval(q)?;
    let worth = Effective { n: effective.n.min(n as f64), ..effective };
    if worth.n < fewest as f64 {
        return None;
    }
    let independent = (worth.deflated() as u64).max(fewest);
    let (low, high) = enclosing_ranks(independent, q)?;
    let stretched = |rank: u64| rank as f64 * n as f64 / independent as f64;
    // Outwards, so that rounding never narrows it; whole numbers stay what they are.
    let low = (stretched(low) + 1e-9).floor().max(1.0) as u64;
    let high = (stretched(high) - 1e-9).ceil() as u64;
    Some((low, high.min(n)))
}
