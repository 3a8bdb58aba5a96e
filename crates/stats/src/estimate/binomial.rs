//! The binomial distribution, and the order statistics that enclose a quantile of independent
//! values (Hahn and Meeker).

use statrs::function::gamma::ln_gamma;

use super::{LEVEL, TAIL};

/// The chance of at most `k` in `n` trials of this probability.
///
/// The sum of the shorter tail, term by term from its largest: the continued fraction of the usual
/// library functions needs more steps with more trials, and `statrs` stops at 140.
pub(crate) fn binomial_cdf(k: u64, n: u64, probability: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    if (k as f64) < n as f64 * probability {
        binomial_lower_tail(k, n, probability)
    } else {
        1.0 - binomial_lower_tail(n - k - 1, n, 1.0 - probability)
    }
}

/// At most `k`, which lies below the mean, so that terms fall from `k` downwards.
fn binomial_lower_tail(k: u64, n: u64, probability: f64) -> f64 {
    let (of, trials) = (k as f64, n as f64);
    let choices = ln_gamma(trials + 1.0) - ln_gamma(of + 1.0) - ln_gamma(trials - of + 1.0);
    let largest = choices + of * probability.ln() + (trials - of) * (-probability).ln_1p();
    let odds = (1.0 - probability) / probability;
    let (mut sum, mut term, mut left) = (1.0, 1.0, of);
    while left > 0.0 && term > sum * 1e-17 {
        term *= left / (trials - left + 1.0) * odds;
        sum += term;
        left -= 1.0;
    }
    (largest.exp() * sum).min(1.0)
}

/// The ranks (from 1) of the two of `n` independent values that enclose quantile `q` with 95 %,
/// equal-tailed: the largest `l` with `F(l-1) <= 2.5 %` and the smallest `u` with `F(u-1) >= 97.5
/// %`. None if there are too few values for one of them.
pub(crate) fn enclosing_ranks(n: u64, q: f64) -> Option<(u64, u64)> {
    if n < minimum_for_interval(q)? {
        return None;
    }
    // F(l-1) <= tail holds up to some l, F(u-1) >= 1-tail from some u on.
    let low = first_where(n, |rank| binomial_cdf(rank, n, q) > TAIL);
    let high = first_where(n, |rank| rank > 0 && binomial_cdf(rank - 1, n, q) >= 1.0 - TAIL);
    (low >= 1 && high <= n).then_some((low, high))
}

/// The first of `0..=n` for which the condition holds; it goes on holding. `n + 1` without any.
pub(super) fn first_where(n: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut from, mut to) = (0, n + 1);
    while from < to {
        let middle = from + (to - from) / 2;
        if holds(middle) { to = middle } else { from = middle + 1 }
    }
    from
}

/// The fewest independent values with a two-sided 95 % interval of quantile `q`: below that the
/// truth lies beyond the largest (or smallest) of them too often. None outside (0, 1).
pub fn minimum_for_interval(q: f64) -> Option<u64> {
    fewest_values(q.max(1.0 - q), TAIL)
}

/// The fewest independent values whose largest is a one-sided 95 % upper bound of quantile `q`.
/// None outside (0, 1).
pub fn minimum_for_bound(q: f64) -> Option<u64> {
    fewest_values(q, 1.0 - LEVEL)
}

/// The smallest `n` with `q^n <= chance`.
fn fewest_values(q: f64, chance: f64) -> Option<u64> {
    (q > 0.0 && q < 1.0).then(|| (chance.ln() / q.ln()).ceil().max(1.0) as u64)
}
