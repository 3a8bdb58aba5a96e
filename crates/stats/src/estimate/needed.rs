//! Time to confidence: how many requests an interval of some width needs.

use super::{TAIL, minimum_for_figure, minimum_for_interval, normal_quantile};
use crate::summary::Percentile;

/// Standard deviation of the logarithm of a latency where nothing is known yet: the middle half of
/// all requests within a factor of 2 of one another, p99 at 3.2 times the median.
pub const DEFAULT_SIGMA: f64 = 0.5;

/// Beyond this no plan goes.
const MOST: f64 = 1e15;

/// Before a run: about so many independent requests bring the interval of this percentile to
/// ±`relative`, if latencies are log-normal with this `sigma`. At least as many as the figure needs
/// to stand for itself. None for a percentile outside (0, 100) or a width that is not positive.
pub fn requests_before(percent: f64, relative: f64, sigma: f64) -> Option<u64> {
    let q = percent / 100.0;
    let least = minimum_for_figure(q)?.max(minimum_for_interval(q)?);
    let is_meant = relative > 0.0 && sigma >= 0.0 && sigma.is_finite();
    let z = normal_quantile(q);
    let density = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    // The standard error of the estimated quantile, relative to it, times the root of n.
    let spread = (q * (1.0 - q)).sqrt() * sigma / density;
    let n = (normal_quantile(1.0 - TAIL) / relative * spread).powi(2);
    is_meant.then(|| (n.ceil().min(MOST) as u64).max(least))
}

/// During or after a run: about so many requests like these `n` bring the interval of this
/// percentile to ±`relative`: widths shrink with the root of their number. Where there is no
/// interval yet, as many as bring the first one. None for a percentile outside (0, 100), for a width
/// that is not positive, or where more requests would not help: beyond the time limit.
pub fn requests_needed(percent: f64, relative: f64, n: u64, estimate: &Percentile) -> Option<u64> {
    let least = minimum_for_interval(percent / 100.0)?;
    if relative.is_nan() || relative <= 0.0 || estimate.is_censored || estimate.high_is_censored {
        return None;
    }
    let enough = |n: f64| (n.ceil().min(MOST) as u64).max(least);
    let (Some(low), Some(high)) = (estimate.low, estimate.high) else {
        let independent = estimate.n_eff.filter(|n_eff| *n_eff > 0.0);
        return Some(enough(independent.map_or(0.0, |n_eff| n as f64 * least as f64 / n_eff)));
    };
    let value = estimate.value.filter(|value| *value > 0.0)?;
    let half_width = (high - low) / 2.0 / value;
    Some(enough(n as f64 * (half_width / relative).powi(2)))
}
