//! [`PairSlot`]: what the pairs of a stretch of time say together.

use goodput_model::{Nanos, RequestRecord};
use goodput_stats::{gaps_ms, tpot_ms};

use super::Pair;
use super::times::Times;

/// What is timed of each side, as files call it.
pub(super) const TIMED: [&str; 4] = ["ttft", "tpot", "itl", "e2e"];

/// What is set against each other request by request: places in [`TIMED`].
pub(super) const RATIOS: [usize; 3] = [0, 1, 3];

/// Pairs of a stretch of time.
#[derive(Debug, Clone, Default)]
pub(super) struct PairSlot {
    pub(super) pairs: u64,
    /// Pairs completed on both sides.
    pub(super) good: u64,
    /// Failures of each side.
    pub(super) failed: [u64; 2],
    /// Of each of [`TIMED`], over the pairs in which both sides have it: both sides' values.
    pub(super) times: [[Times; 2]; 4],
    /// Of each of [`RATIOS`]: the candidate's over the primary's, request by request.
    pub(super) ratios: [Times; 3],
    /// Of each of [`RATIOS`]: pairs in which the candidate took longer.
    pub(super) slower: [u64; 3],
    /// Good pairs whose output tokens both sides say, and how many those are.
    pub(super) counted: u64,
    pub(super) output_tokens: [u64; 2],
    /// The latest arrival.
    pub(super) last: Nanos,
}

impl PairSlot {
    pub(super) fn add(&mut self, pair: &Pair) {
        let both = [&pair.primary, &pair.candidate];
        self.pairs += 1;
        self.last = self.last.max(pair.at);
        for (failed, record) in self.failed.iter_mut().zip(both) {
            *failed += u64::from(!record.is_ok());
        }
        if !both.iter().all(|record| record.is_ok()) {
            return;
        }
        self.good += 1;
        let [own, others] = both.map(answer_times);
        for (place, (primary, candidate)) in own.iter().zip(&others).enumerate() {
            // What one side alone has would set other requests against each other.
            if primary.is_empty() || candidate.is_empty() {
                continue;
            }
            let Some(times) = self.times.get_mut(place) else { continue };
            for (times, values) in times.iter_mut().zip([primary, candidate]) {
                for value in values {
                    times.add(*value);
                }
            }
            let Some(ratio) = RATIOS.iter().position(|ratio| *ratio == place) else { continue };
            if let ([one], [other]) = (primary.as_slice(), candidate.as_slice())
                && *one > 0.0
            {
                self.ratios[ratio].add(other / one);
                self.slower[ratio] += u64::from(other > one);
            }
        }
        if let [Some(one), Some(other)] = both.map(|record| record.exchange.output_tokens) {
            self.counted += 1;
            self.output_tokens[0] += u64::from(one.n);
            self.output_tokens[1] += u64::from(other.n);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.pairs += other.pairs;
        self.good += other.good;
        self.counted += other.counted;
        self.last = self.last.max(other.last);
        for side in 0..2 {
            self.failed[side] += other.failed[side];
            self.output_tokens[side] += other.output_tokens[side];
        }
        for (own, others) in self.times.iter_mut().zip(&other.times) {
            own.iter_mut().zip(others).for_each(|(own, other)| own.merge(other));
        }
        for (place, (own, others)) in self.ratios.iter_mut().zip(&other.ratios).enumerate() {
            own.merge(others);
            self.slower[place] += other.slower[place];
        }
    }
}

/// The times of a good answer in milliseconds, in the order of [`TIMED`]: none, one, or of gaps many.
fn answer_times(record: &RequestRecord) -> [Vec<f64>; 4] {
    let stamps = &record.exchange.stamps;
    let since =
        |at: Option<Nanos>| at.map(|at| (at - record.scheduled).as_ms()).into_iter().collect();
    let tpot = tpot_ms(record).into_iter().collect();
    [since(stamps.first_token), tpot, gaps_ms(record), since(stamps.last_token)]
}
