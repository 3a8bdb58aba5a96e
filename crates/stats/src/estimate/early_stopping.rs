//! MLPerf's early stopping: an upper bound of a percentile with 99 % confidence.

use super::binomial::{binomial_cdf, first_where};

/// One less its confidence.
const DOUBT: f64 = 0.01;

/// The rank (from 1) of the value that stands for quantile `q` of `n` values: `n - t + 1` with the
/// largest `t` that `n >= h_min(t) + t` allows, where `h_min(t)` is the smallest `h` with `I_q(h,
/// t+1) < 0.01`. None if there are too few.
pub(crate) fn early_stopping_rank(n: u64, q: f64) -> Option<u64> {
    if !(q > 0.0 && q < 1.0) {
        return None;
    }
    // I_q(n-t, t+1) is the chance of at most t values beyond the quantile; it grows with t.
    let too_many = first_where(n, |t| binomial_cdf(t, n, 1.0 - q) >= DOUBT);
    let t = too_many.checked_sub(1).filter(|t| *t > 0)?;
    Some(n - t + 1)
}
