//! How sure shares, means and percentiles of dependent requests are.

use crate::estimate::{BATCHES, Effective, Inflation, Memory, SLICES, TAIL, normal_quantile};
use crate::summary::Metric;

/// Where no request came nearer to its limit than this share of it, no queue that a run could have
/// missed would have made one late.
const FAR: f64 = 0.25;

/// A figure and the interval around it. What lies beyond the time limit is infinite; an end that
/// cannot be trusted is missing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct IntervalEstimate {
    pub(super) value: Option<f64>,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) n_eff: Option<f64>,
}

/// Requests of one slice of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct TimeSlice {
    kept: u64,
    missed: u64,
    /// Those among the missed that failed by themselves, whatever the client was doing.
    failed: u64,
}

/// Requests that keep a promise, by time, and how near they came to its limit.
#[derive(Debug)]
pub(super) struct ShareTally {
    slices: Vec<TimeSlice>,
    /// Requests that a stall of the client spoiled.
    spoiled: u64,
    /// The nearest that one came to the limit, in proportion to it.
    nearest: f64,
}

impl Default for ShareTally {
    fn default() -> Self {
        let slices = vec![TimeSlice::default(); usize::from(SLICES)];
        Self { slices, spoiled: 0, nearest: 0.0 }
    }
}

impl ShareTally {
    pub(super) fn add(&mut self, slice: u16, is_kept: bool, failed_by_itself: bool) {
        if let Some(place) = self.slices.get_mut(usize::from(slice)) {
            place.kept += u64::from(is_kept);
            place.missed += u64::from(!is_kept);
            place.failed += u64::from(failed_by_itself && !is_kept);
        }
    }

    pub(super) fn add_spoiled(&mut self) {
        self.spoiled += 1;
    }

    /// A request came so near to the limit.
    pub(super) fn note_near_limit(&mut self, share: f64) {
        self.nearest = self.nearest.max(share);
    }

    /// Failures to leave out, so that they leave as often as answers do that a stall spoiled: left in
    /// alone they would weigh more.
    pub(super) fn left_out(&self) -> u64 {
        let sum = |of: fn(&TimeSlice) -> u64| self.slices.iter().map(of).sum::<u64>();
        let failed = sum(|slice| slice.failed);
        let answered = sum(|slice| slice.kept + slice.missed) - failed + self.spoiled;
        if self.spoiled == 0 || answered == 0 {
            return 0;
        }
        (failed as f64 * self.spoiled as f64 / answered as f64).round() as u64
    }

    /// Kept ones and all that count, by slice.
    fn counts_by_slice(&self) -> Vec<(u64, u64)> {
        let failed: u64 = self.slices.iter().map(|slice| slice.failed).sum();
        let (out, mut seen, mut gone) = (self.left_out(), 0u64, 0u64);
        let even = |slice: &TimeSlice| {
            seen += slice.failed;
            // As many as are due by now, rounded down, so that the last one ends with all.
            let due = (out * seen).checked_div(failed).unwrap_or(0);
            let now = due - gone;
            gone = due;
            (slice.kept, slice.kept + slice.missed - now)
        };
        self.slices.iter().map(even).collect()
    }

    pub(super) fn kept_count(&self) -> u64 {
        self.slices.iter().map(|slice| slice.kept).sum()
    }

    /// Those that count.
    pub(super) fn total_count(&self) -> u64 {
        self.slices.iter().map(|slice| slice.kept + slice.missed).sum::<u64>() - self.left_out()
    }

    /// The share that is kept and its interval, of requests that remember so much of each other, for
    /// a decision about this share of them.
    pub(super) fn estimate(&self, memory: Memory, needed: Option<f64>) -> IntervalEstimate {
        let is_far = self.nearest <= FAR && self.slices.iter().all(|slice| slice.missed == 0);
        share_interval(&self.counts_by_slice(), memory, needed, is_far)
    }
}

/// The share of good ones and its interval, from (good, total) of each slice of time: Wilson's
/// interval on as many requests as say as much. It never leaves 0 to 1, and where all are good it
/// still ends below 1. The lower end is missing where requests are too much alike for a run this
/// short, unless all are far from their limits.
pub(super) fn share_interval(
    slices: &[(u64, u64)],
    memory: Memory,
    needed: Option<f64>,
    is_far: bool,
) -> IntervalEstimate {
    let add = |sum: (u64, u64), one: &(u64, u64)| (sum.0 + one.0, sum.1 + one.1);
    let (good, total) = slices.iter().fold((0, 0), add);
    if total == 0 {
        return IntervalEstimate::default();
    }
    let p = good as f64 / total as f64;
    let estimate = IntervalEstimate { value: Some(p), ..IntervalEstimate::default() };
    let batches = slices.chunks(slices.len().div_ceil(usize::from(BATCHES)));
    let batches: Vec<(u64, u64)> = batches.map(|batch| batch.iter().fold((0, 0), add)).collect();
    let Some(seen) = Effective::from_batches(batches.iter().map(|(good, total)| (*total, *good)))
    else {
        return estimate;
    };
    // Of a share as of the tail that it is the rest of.
    let q = needed.unwrap_or(p).max(0.5 + f64::EPSILON);
    let effective =
        seen.limited_to(total, miss_inflation(slices, p).max(memory.share_inflation(q)));
    let (low, high) = wilson_interval(p, effective);
    let low = if memory.trusts_quantile(q, effective.n) {
        Some(low)
    } else {
        is_far.then(|| wilson_interval(p, seen).0)
    };
    // As the misses have it: what more a queue's memory costs is in the ends.
    IntervalEstimate { low, high: Some(high), n_eff: Some(seen.n), ..estimate }
}

/// How much more this share varies than that of independent requests, by its own misses.
fn miss_inflation(slices: &[(u64, u64)], p: f64) -> f64 {
    if slices.len() != usize::from(SLICES) {
        return 1.0;
    }
    let total: u64 = slices.iter().map(|slice| slice.1).sum();
    let off = |(good, all): &(u64, u64)| *good as f64 - p * *all as f64;
    let deviations: Vec<f64> = slices.iter().map(off).collect();
    let found = Inflation::from_deviations(&deviations, total as f64 * p * (1.0 - p));
    if found.is_significant(1.0, 2.0) { found.factor } else { 1.0 }
}

fn wilson_interval(p: f64, effective: Effective) -> (f64, f64) {
    let (z, n) = (normal_quantile(1.0 - TAIL), effective.independent_worth());
    let center = p + z * z / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    // Rounding must not take the ends past what was seen.
    (((center - half) / scale).clamp(0.0, p), ((center + half) / scale).clamp(p, 1.0))
}

impl IntervalEstimate {
    /// A mean and its interval.
    pub(super) fn from_mean(metric: &Metric) -> Self {
        Self { value: metric.mean, low: metric.mean_low, high: metric.mean_high, n_eff: None }
    }

    /// What is left of one, in percent: failures of a share of successes.
    pub(super) fn complement_percent(self) -> Self {
        let rest = |share: Option<f64>| share.map(|share| (1.0 - share) * 100.0);
        Self { value: rest(self.value), low: rest(self.high), high: rest(self.low), ..self }
    }
}
