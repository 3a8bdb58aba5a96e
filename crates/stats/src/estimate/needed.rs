//! Time to confidence: how many requests an interval of some width needs.

use super::{
    BATCHES, Effective, MINIMUM_FOR_MEAN, TAIL, interval_ranks, minimum_for_figure,
    minimum_for_interval, normal_chance, normal_quantile, student_quantile,
};
use crate::summary::Percentile;

/// Standard deviation of the logarithm of a latency where nothing is known yet: the middle half of
/// all requests within a factor of 2 of one another, p99 at 3.2 times the median.
pub const DEFAULT_SIGMA: f64 = 0.5;

/// Beyond this no plan goes.
const MOST: f64 = 1e15;

/// Beyond this many values the interval is that of a normal distribution.
const EXACT: f64 = 1e6;

/// Before a run: about this many independent requests bring the interval of this percentile to
/// ±`relative` in half of all runs, if latencies are log-normal with this `sigma`. At least as many as
/// the figure needs to stand for itself. None for a percentile outside (0, 100) or a width that is not
/// positive.
pub fn requests_before(percent: f64, relative: f64, sigma: f64) -> Option<u64> {
    let q = percent / 100.0;
    let least = minimum_for_figure(q)?.max(minimum_for_interval(q)?);
    let z = normal_quantile(q);
    let density = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    // The standard error of the estimated quantile, relative to it, times the root of n.
    let about = requests_for_interval((q * (1.0 - q)).sqrt() * sigma / density, relative, least)?;
    if about as f64 > EXACT {
        return Some(about);
    }
    // The interval that is waited for is that of order statistics, and its farther end counts: each end
    // is as far away as its rank says, give or take the root of the values between.
    let is_within = |n: u64| {
        let end = |rank: u64| (sigma * (normal_quantile(rank as f64 / (n + 1) as f64) - z)).exp();
        let chance = |away: f64, rank: u64| {
            let between = (rank as f64 - q * n as f64).abs().max(1.0);
            normal_chance((relative - away) / away * between.sqrt())
        };
        let found = interval_ranks(n, Effective { n: n as f64, degrees: Some(DEGREES) }, q);
        found.is_some_and(|(low, high)| {
            chance(1.0 - end(low), low) * chance(end(high) - 1.0, high) >= 0.5
        })
    };
    let (mut from, mut to) = (least, about.saturating_mul(64));
    while from < to {
        let middle = from + (to - from) / 2;
        if is_within(middle) { to = middle } else { from = middle + 1 }
    }
    Some(from)
}

/// Degrees of freedom of an interval from batches.
const DEGREES: u64 = BATCHES as u64 - 1;

/// The same for the mean.
pub fn requests_before_mean(relative: f64, sigma: f64) -> Option<u64> {
    requests_for_interval((sigma * sigma).exp_m1().sqrt(), relative, MINIMUM_FOR_MEAN)
}

fn requests_for_interval(spread: f64, relative: f64, least: u64) -> Option<u64> {
    let n = sample_size_factor(student_quantile(1.0 - TAIL, DEGREES) * spread, 0.0, relative);
    let is_meant = relative > 0.0 && spread >= 0.0 && spread.is_finite();
    is_meant.then(|| (n.ceil().min(MOST) as u64).max(least))
}

/// How many times as many values bring the farther end of an interval as near as wanted: half the
/// width shrinks with the root of their number, and by how much more the farther end is away, with
/// their number itself.
pub(crate) fn sample_size_factor(half: f64, skew: f64, wanted: f64) -> f64 {
    ((half + (half * half + 4.0 * skew * wanted).sqrt()) / (2.0 * wanted)).powi(2)
}

/// During or after a run: about this many requests like these `n` bring the interval of this
/// percentile to ±`relative`, by its farther end. Without an interval yet, as many as bring the
/// first one. None for a percentile outside (0, 100), for a width that is not positive, or where
/// more requests would not help: beyond the time limit.
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
    let farther = (high - value).max(value - low) / value;
    Some(enough(n as f64 * sample_size_factor(half_width, farther - half_width, relative)))
}
