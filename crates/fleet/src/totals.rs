//! [`Totals`]: what a member has counted so far, for the screen of rank 0. Results are made from the
//! records, never from this.

use std::collections::BTreeMap;

use goodput_model::Nanos;
use serde::{Deserialize, Serialize};

/// Counts since the first instant of an order. Those of several members add up exactly.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Requests whose instant has come and that were sent.
    pub started: u64,
    /// Requests that have ended, well or not.
    pub ended: u64,
    /// Of those, that failed.
    pub failed: u64,
    /// Requests under way.
    pub in_flight: u64,
    /// Tokens that came back.
    pub output_tokens: u64,
    /// Events of answers.
    pub events: u64,
    /// Times to the first token.
    pub ttft: Histogram,
    /// Times between tokens.
    pub itl: Histogram,
    /// Times for each token after the first.
    pub tpot: Histogram,
    /// Times from the due instant to the end.
    pub e2e: Histogram,
}

/// Counts by bucket; those that are nought are not there. Which times a bucket holds is the matter
/// of those who fill and read it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Histogram {
    /// How many by bucket.
    pub counts: BTreeMap<u16, u64>,
    /// Those that were still growing when they were given up: longer than anything.
    pub unfinished: u64,
    /// The largest that was finished.
    pub max: Nanos,
}

impl Totals {
    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        let sums = [
            (&mut self.started, other.started),
            (&mut self.ended, other.ended),
            (&mut self.failed, other.failed),
            (&mut self.in_flight, other.in_flight),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.events, other.events),
        ];
        for (sum, count) in sums {
            *sum = sum.saturating_add(count);
        }
        self.ttft.merge(&other.ttft);
        self.itl.merge(&other.itl);
        self.tpot.merge(&other.tpot);
        self.e2e.merge(&other.e2e);
    }
}

impl Histogram {
    /// Counts one more in a bucket.
    pub fn add(&mut self, bucket: u16, time: Nanos) {
        self.put(bucket, 1);
        self.max = self.max.max(time);
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.counts {
            self.put(*bucket, *count);
        }
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
        self.max = self.max.max(other.max);
    }

    /// How many there are, finished or not.
    pub fn count(&self) -> u64 {
        self.counts.values().fold(self.unfinished, |sum, count| sum.saturating_add(*count))
    }

    fn put(&mut self, bucket: u16, count: u64) {
        let sum = self.counts.entry(bucket).or_default();
        // A peer may say any number.
        *sum = sum.saturating_add(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(part: u64) -> Totals {
        let mut totals = Totals { started: 10 * part, ended: part, failed: 1, ..Totals::default() };
        (0..part).for_each(|n| totals.ttft.add(n as u16, Nanos(n)));
        totals.e2e.unfinished = part;
        totals
    }

    #[test]
    fn parts_add_up_exactly_in_any_order() {
        let (mut ab, mut ba) = (totals(3), totals(5));
        ab.merge(&totals(5));
        ba.merge(&totals(3));
        assert_eq!(ab, ba);
        assert_eq!((ab.started, ab.ended, ab.failed, ab.e2e.count()), (80, 8, 2, 8));
        assert_eq!(
            ab.ttft.counts.into_iter().collect::<Vec<_>>(),
            [(0, 2), (1, 2), (2, 2), (3, 1), (4, 1)]
        );
        assert_eq!(ab.ttft.max, Nanos(4));
    }

    #[test]
    fn no_number_is_too_large() {
        let mut sum = Totals { started: u64::MAX, ..Totals::default() };
        sum.ttft.counts.insert(7, u64::MAX);
        sum.merge(&sum.clone());
        assert_eq!((sum.started, sum.ttft.count()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn written_and_read_they_are_the_same() {
        let text = serde_json::to_string(&totals(3)).unwrap();
        assert_eq!(serde_json::from_str::<Totals>(&text).unwrap(), totals(3));
    }
}
