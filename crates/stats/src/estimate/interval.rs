//! The interval of a quantile from dependent values.

use super::binomial::enclosing_ranks;

/// The ranks (from 1) of the two of `n` sorted values that enclose quantile `q`, where they say as
/// much as `n_eff` independent ones.
pub(crate) fn ranks(n: u64, n_eff: f64, q: f64) -> Option<(u64, u64)> {
    let independent = n_eff.min(n as f64).floor();
    let (low, high) = enclosing_ranks(independent as u64, q)?;
    let stretched = |rank: u64| rank as f64 * n as f64 / independent;
    // Outwards, so that rounding never narrows it; whole numbers stay what they are.
    let low = (stretched(low) + 1e-9).floor().max(1.0) as u64;
    let high = (stretched(high) - 1e-9).ceil() as u64;
    Some((low, high.min(n)))
}
