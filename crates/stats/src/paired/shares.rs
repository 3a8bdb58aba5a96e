//! Two shares: what counts leave open, however alike blocks are.

use crate::estimate::binomial_cdf;

/// Two shares by what was counted, of independent trials; or what pairs of trials say of the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Trials of each side.
    pub trials: [u64; 2],
    /// Those with the event.
    pub events: [u64; 2],
}

/// Halvings until the end of an interval is as near as it matters.
const STEPS: u32 = 40;

/// The same of a chance.
const CHANCE_STEPS: u32 = 24;

impl Counts {
    /// Trials that both sides went through, by those that ended otherwise on one than on the other:
    /// with the event on the first side alone, and on the second alone.
    pub fn from_pairs(pairs: u64, only: [u64; 2]) -> Self {
        Self { trials: [pairs; 2], events: only }
    }

    /// Where the second share less the first lies with confidence 1 − `alpha`: exact intervals of both
    /// (Clopper and Pearson), put together by squares (Newcombe; of pairs Zou and Donner). Without an
    /// event it is still as wide as `-ln(alpha / 2) / trials`, about. None without trials, or for an
    /// `alpha` outside (0, 1).
    pub fn difference_interval(&self, alpha: f64) -> Option<[f64; 2]> {
        let [of_first, of_second] = [
            share_interval(self.events[0], self.trials[0], alpha)?,
            share_interval(self.events[1], self.trials[1], alpha)?,
        ];
        let share = |side: usize| self.events[side] as f64 / self.trials[side] as f64;
        let (first, second) = (share(0), share(1));
        let change = second - first;
        let low = change - (second - of_second[0]).hypot(of_first[1] - first);
        let high = change + (of_second[1] - second).hypot(first - of_first[0]);
        Some([low.max(-1.0), high.min(1.0)])
    }

    /// The least `alpha` at which the interval leaves this difference out; 1 where none does.
    pub fn p_value(&self, difference: f64) -> f64 {
        let is_outside = |alpha: f64| {
            self.difference_interval(alpha)
                .is_some_and(|[low, high]| difference < low || difference > high)
        };
        let (mut inside, mut outside) = (0.0, 1.0);
        for _ in 0..CHANCE_STEPS {
            let middle = f64::midpoint(inside, outside);
            if is_outside(middle) { outside = middle } else { inside = middle }
        }
        outside
    }
}

/// The exact interval of `k` in `n`, of confidence 1 − `alpha`; none without trials, or for an `alpha`
/// outside (0, 1).
pub fn share_interval(k: u64, n: u64, alpha: f64) -> Option<[f64; 2]> {
    (alpha > 0.0 && alpha < 1.0 && n > 0 && k <= n).then(|| exact_interval(k, n, alpha / 2.0))
}

/// The same with this chance beyond each end.
fn exact_interval(k: u64, n: u64, tail: f64) -> [f64; 2] {
    // At most `k` is the less likely the larger the share is; at least `k` the more.
    let low =
        if k == 0 { 0.0 } else { bisect_share(|share| binomial_cdf(k - 1, n, share) > 1.0 - tail) };
    let high = if k >= n { 1.0 } else { bisect_share(|share| binomial_cdf(k, n, share) > tail) };
    [low, high]
}

/// The share up to which this holds.
fn bisect_share(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if holds(middle) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    }

    #[test]
    fn shares_have_their_exact_intervals() {
        // Of none the upper end is 1 - tail^(1/n); of one of ten, from tables.
        near(exact_interval(0, 60, 0.025)[1], 1.0 - 0.025_f64.powf(1.0 / 60.0));
        assert_eq!((exact_interval(0, 60, 0.025)[0], exact_interval(60, 60, 0.025)[1]), (0.0, 1.0));
        near(exact_interval(60, 60, 0.025)[0], 0.025_f64.powf(1.0 / 60.0));
        let [low, high] = exact_interval(1, 10, 0.025);
        near(low, 1.0 - 0.975_f64.powf(0.1));
        assert!((high - 0.445).abs() < 5e-4, "{high}");
        assert_eq!(share_interval(1, 10, 0.05), Some([low, high]));
        assert_eq!((share_interval(2, 1, 0.05), share_interval(0, 0, 0.05)), (None, None));
    }

    #[test]
    fn nothing_that_differs_is_not_no_difference() {
        let clean = |pairs| Counts::from_pairs(pairs, [0, 0]);
        let [low, high] = clean(60).difference_interval(0.05).unwrap();
        near(high, 1.0 - 0.025_f64.powf(1.0 / 60.0));
        near(low, -high);
        assert!(clean(367).difference_interval(0.05).unwrap()[1] > 0.01);
        assert!(clean(368).difference_interval(0.05).unwrap()[1] < 0.01);
        // Twice the chance of nothing in 400 at one in a hundred.
        near(clean(400).p_value(0.01), 2.0 * 0.99_f64.powi(400));
        near(clean(400).p_value(0.0), 1.0);
        assert_eq!(clean(0).difference_interval(0.05), None);
        assert_eq!(
            (clean(9).difference_interval(0.0), clean(9).difference_interval(1.0)),
            (None, None)
        );
    }

    #[test]
    fn failures_of_both_kinds_take_from_each_other() {
        let found = Counts::from_pairs(1_000_000, [50_000, 50_000]);
        let [low, high] = found.difference_interval(0.05).unwrap();
        // 1.96 · √(0.05 · 0.95 · 2 / 10⁶), and a little for being exact.
        assert!((high - 6.04e-4).abs() < 5e-6, "{high}");
        near(low, -high);
        // One side alone: that of its share.
        let worse = Counts::from_pairs(10, [0, 1]);
        let [low, high] = worse.difference_interval(0.05).unwrap();
        assert!((high - 0.445).abs() < 5e-4 && low < 0.0, "{low} {high}");
        let better = Counts::from_pairs(10, [1, 0]).difference_interval(0.05).unwrap();
        near(better[0], -high);
        assert!(Counts::from_pairs(100, [0, 50]).p_value(0.0) < 1e-6);
    }

    #[test]
    fn shares_of_other_trials_have_each_their_own_end() {
        // Of none in 60 and none in 6,000 each end is that of the side that it hangs on.
        let found = Counts { trials: [60, 6_000], events: [0, 0] };
        let [low, high] = found.difference_interval(0.05).unwrap();
        near(low, 0.025_f64.powf(1.0 / 60.0) - 1.0);
        near(high, 1.0 - 0.025_f64.powf(1.0 / 6_000.0));
        for odd in [[0, 60], [60, 0]] {
            assert_eq!(Counts { trials: odd, events: [0, 0] }.difference_interval(0.05), None);
        }
    }
}
