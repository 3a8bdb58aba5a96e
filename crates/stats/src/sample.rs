//! [`Sample`]: values of one metric, some of which are known only to be larger than anything seen.

use crate::summary::{Metric, Percentile, Quick};
use crate::workload::Spread;

/// The values of a metric. All are kept; nothing is binned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    values: Vec<f64>,
    censored: u64,
}

impl Sample {
    /// Adds a value.
    pub fn push(&mut self, value: f64) {
        self.values.push(value);
    }

    /// Adds a value that was never reached: the request ran into a time limit first.
    pub fn push_censored(&mut self) {
        self.censored += 1;
    }

    /// Number of values, censored ones included.
    pub fn len(&self) -> u64 {
        self.values.len() as u64 + self.censored
    }

    /// Whether there is no value at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sorts the values, once, before quantiles are asked for.
    pub(crate) fn sort(&mut self) {
        self.values.sort_unstable_by(f64::total_cmp);
    }

    /// The nearest-rank percentile of sorted values; `None` when there are no values, or when it
    /// falls among the censored ones.
    pub(crate) fn percentile(&self, percent: f64) -> Option<f64> {
        let n = self.len();
        // 99.9 % of 1000 is 999, whatever binary fractions make of it.
        let rank = (n as f64 * percent / 100.0 - 1e-9).ceil().max(1.0) as usize;
        self.values.get(rank - 1).copied()
    }

    /// Mean of the values that were reached.
    pub(crate) fn mean(&self) -> Option<f64> {
        (!self.values.is_empty())
            .then(|| self.values.iter().sum::<f64>() / self.values.len() as f64)
    }

    fn standard_deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares: f64 = self.values.iter().map(|value| (value - mean).powi(2)).sum();
        (self.values.len() > 1).then(|| (squares / (self.values.len() - 1) as f64).sqrt())
    }

    /// The 99th percentile, but never one of the two largest: a single mishap proves nothing.
    pub(crate) fn third_largest_or_p99(mut self) -> Option<f64> {
        self.sort();
        let third = self.values.len().checked_sub(3).map(|rank| self.values[rank])?;
        self.percentile(99.0).map(|p99| p99.min(third))
    }

    /// The distribution in three numbers.
    pub fn quick(mut self) -> Quick {
        self.sort();
        Quick {
            p50: self.percentile(50.0),
            p99: self.percentile(99.0),
            max: self.percentile(100.0),
        }
    }

    /// The distribution of a slice.
    pub(crate) fn spread(mut self) -> Spread {
        self.sort();
        Spread {
            n: self.len(),
            mean: self.mean().filter(|_| self.censored == 0),
            p50: self.percentile(50.0),
            p90: self.percentile(90.0),
            p99: self.percentile(99.0),
        }
    }

    /// Everything about the metric, with these percentiles.
    pub(crate) fn metric(mut self, unit: &str, percentiles: &[f64]) -> Metric {
        self.sort();
        let percentile = |percent: &f64| {
            let value = self.percentile(*percent);
            let is_censored = value.is_none() && self.censored > 0;
            (percent.to_string(), Percentile { value, low: None, high: None, is_censored })
        };
        Metric {
            unit: unit.to_owned(),
            n: self.len(),
            censored: self.censored,
            // Of those that ended alone they would flatter the rest.
            mean: self.mean().filter(|_| self.censored == 0),
            std: self.standard_deviation().filter(|_| self.censored == 0),
            min: self.values.first().copied(),
            max: self.values.last().copied().filter(|_| self.censored == 0),
            percentiles: percentiles.iter().map(percentile).collect(),
        }
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self { values: values.into_iter().collect(), censored: 0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(values: &[f64], censored: u64) -> Sample {
        let mut sample = Sample { values: values.to_vec(), censored };
        sample.sort();
        sample
    }

    #[test]
    fn nearest_rank_by_hand() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        let cases = [(50.0, 5.0), (51.0, 6.0), (90.0, 9.0), (90.1, 10.0), (0.1, 1.0), (99.9, 10.0)];
        for (percent, expected) in cases {
            assert_eq!(sample(&ten, 0).percentile(percent), Some(expected), "p{percent}");
        }
        let thousand: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!(sample(&thousand, 0).percentile(99.9), Some(999.0));
        assert_eq!(sample(&thousand, 0).percentile(99.0), Some(990.0));
        assert_eq!(sample(&[7.0], 0).percentile(50.0), Some(7.0));
        assert_eq!(sample(&[], 0).percentile(50.0), None);
    }

    #[test]
    fn censored_values_are_the_largest() {
        let mixed = sample(&[1.0, 2.0, 3.0], 1);
        assert_eq!(mixed.percentile(75.0), Some(3.0));
        assert_eq!(mixed.percentile(76.0), None);
        let metric = mixed.metric("ms", &[50.0, 99.0]);
        assert_eq!((metric.n, metric.censored, metric.max), (4, 1, None));
        assert!(metric.percentiles["99"].is_censored && !metric.percentiles["50"].is_censored);
    }

    #[test]
    fn moments() {
        let metric = sample(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], 0).metric("ms", &[]);
        assert_eq!(metric.mean, Some(5.0));
        assert!((metric.std.unwrap() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(sample(&[1.0], 0).metric("ms", &[]).std, None);
    }

    proptest! {
        /// The definition itself: the smallest value with at least q percent at or below it.
        #[test]
        fn percentile_is_its_definition(
            values in prop::collection::vec(0u32..50, 1..60),
            tenths in 1u32..1000,
        ) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let percent = f64::from(tenths) / 10.0;
            let reached = |x: f64| values.iter().filter(|v| **v <= x).count() as u64 * 1000;
            let brute = values.iter().copied().filter(|x| reached(*x) >= u64::from(tenths) * values.len() as u64);
            let expected = brute.min_by(f64::total_cmp);
            prop_assert_eq!(sample(&values, 0).percentile(percent), expected);
        }
    }
}
