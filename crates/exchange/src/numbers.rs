//! Statistics as numpy has them: percentiles by linear interpolation, deviation of the population.

use std::collections::BTreeMap;

/// Values of a sample, in order of size.
pub(crate) trait Ranked {
    /// How many there are.
    fn len(&self) -> u64;
    /// The value of this rank, from 0.
    fn value_at_rank(&self, rank: u64) -> Option<f64>;
    /// Sum of what `f` makes of each.
    fn sum_of(&self, f: &dyn Fn(f64) -> f64) -> f64;

    fn sum(&self) -> f64 {
        self.sum_of(&|value| value)
    }

    fn mean(&self) -> Option<f64> {
        (self.len() > 0).then(|| self.sum() / self.len() as f64)
    }

    fn standard_deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        Some((self.sum_of(&|value| (value - mean).powi(2)) / self.len() as f64).sqrt())
    }

    fn min(&self) -> Option<f64> {
        self.value_at_rank(0)
    }

    fn max(&self) -> Option<f64> {
        self.value_at_rank(self.len().checked_sub(1)?)
    }

    /// `numpy.percentile` with its usual method.
    fn percentile(&self, percent: f64) -> Option<f64> {
        let last = self.len().checked_sub(1)?;
        let place = percent / 100.0 * last as f64;
        let below = (place.floor() as u64).min(last);
        let (a, b) = (self.value_at_rank(below)?, self.value_at_rank((below + 1).min(last))?);
        let t = place - below as f64;
        // In the form that numpy chose, so that the last digits agree.
        Some(if t < 0.5 { a + (b - a) * t } else { b - (b - a) * (1.0 - t) })
    }
}

/// Values of requests: all are kept.
#[derive(Debug, Default)]
pub(crate) struct Values {
    values: Vec<f64>,
}

impl Values {
    pub(crate) fn push(&mut self, value: f64) {
        self.values.push(value);
    }

    /// Must be called before ranks are asked for.
    pub(crate) fn sort(&mut self) {
        self.values.sort_unstable_by(f64::total_cmp);
    }
}

impl Ranked for Values {
    fn len(&self) -> u64 {
        self.values.len() as u64
    }

    fn value_at_rank(&self, rank: u64) -> Option<f64> {
        self.values.get(usize::try_from(rank).ok()?).copied()
    }

    fn sum_of(&self, f: &dyn Fn(f64) -> f64) -> f64 {
        // Rust's own sum of nothing is -0.
        self.values.iter().fold(0.0, |sum, value| sum + f(*value))
    }
}

/// Gaps up to a second are counted in a list, which is faster.
const LISTED: usize = 1_000_000;

/// Gaps between chunks, in milliseconds. There may be hundreds of millions of them; their grain in
/// the log is a microsecond, so counting equal ones keeps all of them.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// By microseconds, as far as the longest of them.
    listed: Vec<u64>,
    longer: BTreeMap<u64, u64>,
    n: u64,
}

impl Gaps {
    pub(crate) fn push(&mut self, micros: u64) {
        self.n += 1;
        match usize::try_from(micros).ok().filter(|place| *place < LISTED) {
            Some(place) => {
                if self.listed.len() <= place {
                    self.listed.resize(place + 1, 0);
                }
                self.listed[place] += 1;
            }
            None => *self.longer.entry(micros).or_default() += 1,
        }
    }

    /// Each length in milliseconds with its number, ascending.
    fn lengths_with_counts(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let listed = (0u64..).zip(&self.listed).map(|(micros, n)| (micros, *n));
        let all = listed.chain(self.longer.iter().map(|(micros, n)| (*micros, *n)));
        all.filter(|(_, n)| *n > 0).map(|(micros, n)| (micros as f64 / 1e3, n))
    }
}

impl Ranked for Gaps {
    fn len(&self) -> u64 {
        self.n
    }

    fn value_at_rank(&self, rank: u64) -> Option<f64> {
        let mut seen = 0;
        self.lengths_with_counts().find_map(|(ms, n)| {
            seen += n;
            (rank < seen).then_some(ms)
        })
    }

    fn sum_of(&self, f: &dyn Fn(f64) -> f64) -> f64 {
        self.lengths_with_counts().fold(0.0, |sum, (ms, n)| sum + f(ms) * n as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_adds_up_to_a_zero_without_a_sign() {
        for sum in [Values::default().sum(), Gaps::default().sum()] {
            assert!(sum == 0.0 && sum.is_sign_positive(), "{sum}");
        }
    }
}
