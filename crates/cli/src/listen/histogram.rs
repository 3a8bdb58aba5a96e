//! Histograms of times with fixed bounds.

use goodput_model::Nanos;

/// Bounds in microseconds: those that a dashboard can tell an SLO by.
pub(super) const TTFT: &[u64] = &[
    1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 50_000, 75_000, 100_000, 150_000, 200_000,
    300_000, 500_000, 750_000, 1_000_000, 1_500_000, 2_000_000, 3_000_000, 5_000_000, 10_000_000,
    20_000_000, 40_000_000, 80_000_000,
];
pub(super) const ITL: &[u64] = &[
    500, 1_000, 2_000, 3_000, 5_000, 7_500, 10_000, 15_000, 20_000, 25_000, 30_000, 40_000, 50_000,
    75_000, 100_000, 150_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000,
];
pub(super) const E2E: &[u64] = &[
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_000_000,
    3_000_000,
    5_000_000,
    7_500_000,
    10_000_000,
    15_000_000,
    20_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
    600_000_000,
];
/// Of the client's own lateness.
pub(super) const LATE: &[u64] = &[
    100, 250, 500, 1_000, 2_000, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 1_000_000,
    10_000_000,
];

#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    bounds: &'static [u64],
    /// One for each bound, not added up.
    counts: Vec<u64>,
    /// What is above all bounds.
    above: u64,
    sum: u128,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len()], above: 0, sum: 0 }
    }

    /// A value on a bound is within it.
    pub(super) fn add(&mut self, time: Nanos) {
        let place = self.bounds.partition_point(|bound| bound * 1_000 < time.0);
        match self.counts.get_mut(place) {
            Some(count) => *count += 1,
            None => self.above += 1,
        }
        self.sum += u128::from(time.0);
    }

    /// A time that was still going on when it was given up: longer than every bound, whatever they
    /// are, so that no quantile takes it for a short one.
    pub(super) fn add_unfinished(&mut self, so_far: Nanos) {
        self.above += 1;
        self.sum += u128::from(so_far.0);
    }

    /// Bounds in seconds, each with the number of values that are not above it.
    pub(crate) fn up_to(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = 0;
        self.bounds.iter().zip(&self.counts).map(move |(bound, count)| {
            sum += count;
            (*bound as f64 / 1e6, sum)
        })
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.above
    }

    /// In seconds.
    pub(crate) fn sum(&self) -> f64 {
        self.sum as f64 / 1e9
    }
}
