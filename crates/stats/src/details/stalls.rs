//! The longest gaps.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use goodput_model::Nanos;

use super::StallView;
use super::counts::NumberCounts;
use crate::request::Gap;

/// Nothing shorter is a stall, in microseconds.
const SHORTEST_US: u32 = 100_000;

/// A stall is this many times the median gap.
const TIMES: u64 = 10;

/// This many are drawn.
const MOST: usize = 200;

/// What may turn out to be stalls, once the median is known.
#[derive(Debug)]
pub(super) struct StallCandidates {
    /// The longest gaps in microseconds with when they began, the shortest of them on top.
    longest: BinaryHeap<Reverse<(u32, Nanos)>>,
    /// The longest gap of each request.
    each: NumberCounts,
}

impl StallCandidates {
    pub(super) fn new() -> Self {
        Self { longest: BinaryHeap::new(), each: NumberCounts::new(super::GAP_BITS) }
    }

    pub(super) fn add(&mut self, gap: &Gap, us: u32) {
        if us < SHORTEST_US {
            return;
        }
        let is_full = self.longest.len() >= MOST;
        if is_full && self.longest.peek().is_some_and(|Reverse(least)| *least >= (us, gap.from)) {
            return;
        }
        if is_full {
            self.longest.pop();
        }
        self.longest.push(Reverse((us, gap.from)));
    }

    /// The longest gap of a request.
    pub(super) fn end_request(&mut self, longest_us: u32) {
        self.each.add(longest_us);
    }

    pub(super) fn finish(self, gaps: &NumberCounts) -> StallView {
        let middle = gaps.len().div_ceil(2);
        let median = gaps.values_at_ranks([middle].into_iter())[0].unwrap_or(0);
        let wanted = u32::try_from(median.saturating_mul(TIMES)).unwrap_or(u32::MAX);
        // Where a bin begins, so that it can be counted exactly.
        let threshold = gaps.bin_floor(wanted.max(SHORTEST_US));
        let least = u32::try_from(threshold).unwrap_or(u32::MAX);
        let stalls = self.longest.into_iter().map(|Reverse(gap)| gap);
        let mut longest: Vec<(Nanos, u32)> =
            stalls.filter(|(us, _)| *us >= least).map(|(us, from)| (from, us)).collect();
        longest.sort_unstable();
        StallView {
            threshold_ms: threshold as f64 / 1e3,
            count: gaps.count_at_least(least),
            requests: self.each.count_at_least(least),
            longest: longest
                .into_iter()
                .map(|(from, us)| (from.as_secs(), f64::from(us) / 1e3))
                .collect(),
        }
    }
}
