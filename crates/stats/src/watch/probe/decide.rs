//! Wald's sequential test on the share of good requests, for requests that depend on one another.
//!
//! Wald's bounds hold for independent requests. In a queue misses come in clumps, and a point without
//! a miss may just not have met one yet. So the log-likelihood is multiplied by what the requests are
//! worth (`n_eff / n` by batches of time, of misses and of waits, whichever is less), and for a yes
//! everything in flight counts as missed: with 0.95 asked for that takes 13 times the mean
//! E2E at least, with 0.9 seven times, and with 0.99 54 times.
//!
//! How often that is wrong, in simulated time (64 slots, answers of 8 s, CV 1; TTFT < 1 s; from an
//! empty server with a burn-in of 42 s; 400 points at each of nine loads from 0.6 to 1.3 times
//! capacity): a point that ended with yes would have been below its target at its planned end in at most
//! 7.8 % of all points (0.9, 300 s), 6.0 % (0.95, 300 s) and 4.0 % (0.99, 600 s), most of it
//! between 0.8 and 0.95 of capacity, and at most 0.8 % up to 0.7; one that ended with no would not have been in
//! at most 2.0 %; a hopeless one in at most 1.2 %. Points of 60 s, 7 times the mean E2E, never end with
//! yes. With ten times the mean E2E instead of the clump up to 37 % of 200 points were wrong with yes.
//! `cargo test --release -p goodput-stats --lib probe_study -- --ignored --nocapture`, 2 cores AMD EPYC,
//! virtual, 2026-11-15.

use goodput_model::Nanos;

use crate::estimate::{BATCHES, Effective, Ratio};
use crate::window::{Window, WindowKind};

/// Nothing is decided before this many measured requests, and this many times the mean E2E.
pub(super) const FEWEST: usize = 100;
pub(super) const ANSWERS: f64 = 5.0;

/// The chance of either wrong decision, of independent requests.
const RISK: f64 = 0.05;

/// A measured request that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedRequest {
    pub(super) due: Nanos,
    /// A bit for each share that it keeps.
    pub(super) kept: u64,
    /// Its wait for the first token, where it has one.
    pub(super) wait_ms: Option<f32>,
}

/// All requests that were due up to some instant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prefix {
    /// Those that have ended.
    pub(super) n: usize,
    /// Those that have not.
    pub(super) unknown: u64,
}

/// What a test says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TestVerdict {
    Kept,
    Missed,
}

/// How far below the share needed another one must lie to be told from it: 2 % at 0.99, 5 % at 0.95
/// and below, in proportion between.
fn decision_margin(needed: f64) -> f64 {
    let above = (needed - 0.95) / 0.04;
    let margin = if needed > 0.99 { 2.0 * (1.0 - needed) } else { 0.05 - 0.03 * above.max(0.0) };
    margin.min(needed / 2.0)
}

/// The measured requests as one share sees them.
#[derive(Debug)]
pub(super) struct ShareSeries<'a> {
    /// In the order in which they were due.
    pub(super) ended: &'a [EndedRequest],
    /// The share's bit.
    pub(super) place: usize,
    pub(super) prefixes: &'a [Prefix],
    pub(super) under_way: u64,
}

impl ShareSeries<'_> {
    /// Whether so large a share is kept; none if that is not clear.
    pub(super) fn decide(&self, needed: f64) -> Option<TestVerdict> {
        // A share of all cannot be proven by a sample.
        if !(needed > 0.0 && needed < 1.0) {
            return None;
        }
        let (p0, p1) = (needed, needed - decision_margin(needed));
        let (good, bad) = ((p1 / p0).ln(), ((1.0 - p1) / (1.0 - p0)).ln());
        let likelihood = |kept: u64, missed: u64| kept as f64 * good + missed as f64 * bad;
        let sums = self.cumulative_misses();
        let split = |n: usize| {
            let missed = sums.get(n).copied().unwrap_or_default();
            ((n as u64).saturating_sub(missed), missed)
        };
        let at_best = |prefix: &Prefix| {
            let (kept, missed) = split(prefix.n);
            likelihood(kept.saturating_add(prefix.unknown), missed)
        };
        let (accept, reject) = ((RISK / (1.0 - RISK)).ln(), ((1.0 - RISK) / RISK).ln());
        // Of few, all may be of one clump.
        let told = self.prefixes.iter().filter(|prefix| prefix.n >= FEWEST);
        let highest = told.max_by(|a, b| at_best(a).total_cmp(&at_best(b)));
        let is_missed = highest.filter(|prefix| at_best(prefix) >= reject);
        if is_missed
            .is_some_and(|prefix| at_best(prefix) * self.independent_worth(prefix.n) >= reject)
        {
            return Some(TestVerdict::Missed);
        }
        let (kept, missed) = split(self.ended.len());
        // Also a clump that has not been met yet: as long as an answer takes, so as many as these.
        let at_worst = likelihood(kept, missed.saturating_add(self.under_way));
        let is_kept =
            at_worst <= accept && at_worst * self.independent_worth(self.ended.len()) <= accept;
        is_kept.then_some(TestVerdict::Kept)
    }

    fn is_kept(&self, ended: &EndedRequest) -> bool {
        ended.kept >> self.place & 1 == 1
    }

    /// Of the first none, one, two …
    fn cumulative_misses(&self) -> Vec<u64> {
        let mut sum = 0;
        let sums = self.ended.iter().map(|ended| {
            sum += u64::from(!self.is_kept(ended));
            sum
        });
        std::iter::once(0).chain(sums).collect()
    }

    /// How much of what independent requests would say the first `n` say, between 0 and 1: by the
    /// spread of their misses over batches of time, and by that of their waits, which are alike
    /// before any of them is missed.
    fn independent_worth(&self, n: usize) -> f64 {
        let ended = self.ended.get(..n).unwrap_or(self.ended);
        let (Some(first), Some(last)) = (ended.first(), ended.last()) else { return 0.0 };
        let window = Window { start: first.due, end: last.due + Nanos(1), kind: WindowKind::Time };
        let mut shares = [(0u64, 0u64); BATCHES as usize];
        let mut waits = [(0u64, 0.0f64); BATCHES as usize];
        let mut all = Moments::default();
        for one in ended {
            let batch = usize::from(window.batch_of(one.due));
            let (Some(share), Some(wait)) = (shares.get_mut(batch), waits.get_mut(batch)) else {
                continue;
            };
            *share = (share.0 + 1, share.1 + u64::from(!self.is_kept(one)));
            if let Some(ms) = one.wait_ms.map(f64::from) {
                *wait = (wait.0 + 1, wait.1 + ms);
                all.add(ms);
            }
        }
        let Some(effective) = Effective::from_batches(shares.into_iter()) else { return 0.0 };
        let by_share = effective.independent_worth() / ended.len() as f64;
        let by_wait = match (Ratio::from_batches(waits.into_iter()), all.variance_of_mean()) {
            (Some(mean), Some(independent)) if mean.variance > 0.0 => independent / mean.variance,
            _ => 1.0,
        };
        by_share.min(by_wait).clamp(0.0, 1.0)
    }
}

/// Mean and spread, one value after another (Welford).
#[derive(Debug, Default)]
struct Moments {
    n: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.n += 1;
        let off = value - self.mean;
        self.mean += off / self.n as f64;
        self.squares += off * (value - self.mean);
    }

    /// Of independent values.
    fn variance_of_mean(&self) -> Option<f64> {
        let less = self.n.checked_sub(1).filter(|less| *less > 0)?;
        Some(self.squares / less as f64 / self.n as f64)
    }
}
