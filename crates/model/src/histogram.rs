//! [`BoundedHistogram`]: counts below fixed bounds, as pages of metrics show them.

mod log;

pub use log::LogHistogram;

use crate::Nanos;

/// A histogram over whole numbers: nanoseconds or tokens.
///
/// It takes several lists of bounds at once, so that each can be shown with exact counts from one
/// observation.
#[derive(Debug, Clone)]
pub struct BoundedHistogram {
    /// Units in one of what is shown: 10⁹ for nanoseconds shown as seconds.
    scale: f64,
    bounds: Vec<u64>,
    /// One more than bounds: the last is for what is above all of them.
    counts: Vec<u64>,
    count: u64,
    sum: u128,
}

impl BoundedHistogram {
    /// Of times, with bounds in seconds.
    pub fn from_time_bounds(bounds: &[&[f64]]) -> Self {
        Self::new(1e9, bounds)
    }

    /// Of numbers of tokens and the like.
    pub fn from_count_bounds(bounds: &[&[f64]]) -> Self {
        Self::new(1.0, bounds)
    }

    fn new(scale: f64, lists: &[&[f64]]) -> Self {
        let all = lists.iter().flat_map(|list| list.iter());
        let mut bounds: Vec<u64> = all.map(|bound| units_of_bound(*bound, scale)).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let counts = vec![0; bounds.len() + 1];
        Self { scale, bounds, counts, count: 0, sum: 0 }
    }

    /// The same value `times` over.
    pub fn add(&mut self, value: u64, times: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count = count.saturating_add(times);
        }
        self.count = self.count.saturating_add(times);
        self.sum = self.sum.saturating_add(u128::from(value) * u128::from(times));
    }

    /// One time; one on a bound is within it.
    pub fn add_time(&mut self, time: Nanos) {
        self.add(time.0, 1);
    }

    /// A time that was still going on when it was given up: longer than every bound, whatever they
    /// are, so that no quantile takes it for a short one.
    pub fn add_unfinished(&mut self, so_far: Nanos) {
        if let Some(above) = self.counts.last_mut() {
            *above = above.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(u128::from(so_far.0));
    }

    /// Bounds as shown, each with the number of values that are not above it.
    pub fn cumulative_counts(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = 0u64;
        self.bounds.iter().zip(&self.counts).map(move |(bound, count)| {
            sum = sum.saturating_add(*count);
            (*bound as f64 / self.scale, sum)
        })
    }

    /// Values not above `bound`, which must be one of those it was made with.
    pub fn count_up_to(&self, bound: f64) -> u64 {
        let last = self.bounds.partition_point(|own| *own <= units_of_bound(bound, self.scale));
        self.counts.iter().take(last).fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Of all values, in what is shown.
    pub fn sum(&self) -> f64 {
        self.sum as f64 / self.scale
    }
}

/// The largest whole number that is not above the bound; times are rounded, because 0.3 s is not
/// exactly a number of the machine.
fn units_of_bound(bound: f64, scale: f64) -> u64 {
    if scale > 1.0 { (bound * scale).round() as u64 } else { bound.floor() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_is_in_its_bucket() {
        let mut histogram = BoundedHistogram::from_time_bounds(&[&[0.3, 1.0], &[0.5]]);
        histogram.add_time(Nanos::from_millis(300));
        histogram.add_time(Nanos(300_000_001));
        histogram.add(Nanos::from_millis(2_000).0, 3);
        assert_eq!(histogram.count_up_to(0.3), 1);
        assert_eq!(histogram.count_up_to(0.5), 2);
        assert_eq!(histogram.count_up_to(1.0), 2);
        assert_eq!(histogram.count(), 5);
        assert!((histogram.sum() - 6.600_000_001).abs() < 1e-12);
    }

    #[test]
    fn counts_below_a_broken_bound() {
        let mut histogram = BoundedHistogram::from_count_bounds(&[&[40.96, 81.92]]);
        for value in [0, 40, 41, 81, 82, u64::MAX] {
            histogram.add(value, 1);
        }
        assert_eq!(histogram.count_up_to(40.96), 2);
        assert_eq!(histogram.count_up_to(81.92), 4);
        assert_eq!(histogram.count(), 6);
        histogram.add(u64::MAX, u64::MAX);
        histogram.add(u64::MAX, u64::MAX);
        assert_eq!(histogram.count(), u64::MAX);
        assert!(histogram.sum().is_finite());
    }
}
