//! Histograms with fixed bounds.

use goodput_model::Nanos;

/// A histogram over whole numbers: nanoseconds or tokens.
///
/// It knows the bounds of every dialect at once, so that each can be shown with its own bounds and
/// exact counts from one observation.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    /// Units in one of what is shown: 10⁹ for nanoseconds shown as seconds.
    scale: f64,
    bounds: Vec<u64>,
    /// One more than bounds: the last is for what is above all of them.
    counts: Vec<u64>,
    count: u64,
    sum: u128,
}

impl Histogram {
    /// Of times, shown in seconds.
    pub(super) fn of_times(bounds: &[&[f64]]) -> Self {
        Self::new(1e9, bounds)
    }

    /// Of numbers of tokens and the like.
    pub(super) fn of_counts(bounds: &[&[f64]]) -> Self {
        Self::new(1.0, bounds)
    }

    fn new(scale: f64, lists: &[&[f64]]) -> Self {
        let all = lists.iter().flat_map(|list| list.iter());
        let mut bounds: Vec<u64> = all.map(|bound| units(*bound, scale)).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let counts = vec![0; bounds.len() + 1];
        Self { scale, bounds, counts, count: 0, sum: 0 }
    }

    /// The same value `times` over.
    pub(super) fn add(&mut self, value: u64, times: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count = count.saturating_add(times);
        }
        self.count = self.count.saturating_add(times);
        self.sum = self.sum.saturating_add(u128::from(value) * u128::from(times));
    }

    pub(super) fn add_time(&mut self, time: Nanos) {
        self.add(time.0, 1);
    }

    /// Values not above `bound`, which must be one of those it was made with.
    pub(super) fn up_to(&self, bound: f64) -> u64 {
        let last = self.bounds.partition_point(|own| *own <= units(bound, self.scale));
        self.counts.iter().take(last).fold(0, |sum, count| sum.saturating_add(*count))
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Of all values, in what is shown.
    pub(super) fn sum(&self) -> f64 {
        self.sum as f64 / self.scale
    }
}

/// The largest whole number that is not above the bound; times are rounded, because 0.3 s is not
/// exactly a number of the machine.
fn units(bound: f64, scale: f64) -> u64 {
    if scale > 1.0 { (bound * scale).round() as u64 } else { bound.floor() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_is_in_its_bucket() {
        let mut histogram = Histogram::of_times(&[&[0.3, 1.0], &[0.5]]);
        histogram.add_time(Nanos::from_millis(300));
        histogram.add_time(Nanos(300_000_001));
        histogram.add(Nanos::from_millis(2_000).0, 3);
        assert_eq!(histogram.up_to(0.3), 1);
        assert_eq!(histogram.up_to(0.5), 2);
        assert_eq!(histogram.up_to(1.0), 2);
        assert_eq!(histogram.count(), 5);
        assert!((histogram.sum() - 6.600_000_001).abs() < 1e-12);
    }

    #[test]
    fn counts_below_a_broken_bound() {
        let mut histogram = Histogram::of_counts(&[&[40.96, 81.92]]);
        for value in [0, 40, 41, 81, 82, u64::MAX] {
            histogram.add(value, 1);
        }
        assert_eq!(histogram.up_to(40.96), 2);
        assert_eq!(histogram.up_to(81.92), 4);
        assert_eq!(histogram.count(), 6);
        histogram.add(u64::MAX, u64::MAX);
        histogram.add(u64::MAX, u64::MAX);
        assert_eq!(histogram.count(), u64::MAX);
        assert!(histogram.sum().is_finite());
    }
}
