//! [`LogHistogram`]: times in fine buckets, from which percentiles are told within 2 %.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Nanos;

/// Finer than this is not told apart: 2⁷ ns.
const GRAIN: u32 = 7;
/// Buckets of an octave: values are told within half of 1/32 of them.
const FINE: u32 = 5;
/// Times above 2⁴⁰ grains (39 hours) are taken for that.
const LARGEST: u64 = (1 << 40) - 1;
const BUCKETS: usize = 36 << FINE;

/// Counts by bucket, of one client or of several: those of several add up exactly.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LogHistogram {
    /// As many as are needed: the last is not zero.
    #[serde(serialize_with = "serialize_buckets", deserialize_with = "deserialize_buckets")]
    counts: Vec<u64>,
    /// Values that were still growing when they were given up: longer than anything.
    unfinished: u64,
    /// The largest that was finished.
    max: Nanos,
}

impl LogHistogram {
    /// One more.
    pub fn add(&mut self, time: Nanos) {
        self.add_to_bucket(bucket_index(time), 1);
        self.max = self.max.max(time);
    }

    /// One more that was given up.
    pub fn add_unfinished(&mut self) {
        self.unfinished = self.unfinished.saturating_add(1);
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        for (place, count) in other.filled_buckets() {
            self.add_to_bucket(place, count);
        }
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
        self.max = self.max.max(other.max);
    }

    /// What came since these counts.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut since = Self { max: self.max, ..Self::default() };
        since.unfinished = self.unfinished.saturating_sub(before.unfinished);
        for (place, count) in self.filled_buckets() {
            let then = before.counts.get(place).copied().unwrap_or(0);
            since.add_to_bucket(place, count.saturating_sub(then));
        }
        since
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        self.counts.clear();
        (self.unfinished, self.max) = (0, Nanos::ZERO);
    }

    /// How many there are, finished or not.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(self.unfinished, |sum, count| sum.saturating_add(*count))
    }

    /// The largest in milliseconds, infinite where one was given up.
    pub fn max_ms(&self) -> Option<f64> {
        let max = if self.unfinished > 0 { f64::INFINITY } else { self.max.as_ms() };
        (self.count() > 0).then_some(max)
    }

    /// The value below which this share lies, in milliseconds within 2 %.
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        let count = self.count();
        let rank = (share * count as f64).ceil().max(1.0) as u64;
        let mut sum = 0u64;
        for (place, count) in self.filled_buckets() {
            sum = sum.saturating_add(count);
            if sum >= rank {
                return Some(bucket_middle(place).min(self.max).as_ms());
            }
        }
        (count > 0).then_some(f64::INFINITY)
    }

    fn filled_buckets(&self) -> impl Iterator<Item = (usize, u64)> {
        self.counts.iter().copied().enumerate().filter(|(_, count)| *count > 0)
    }

    /// A peer may say any number, and any bucket.
    fn add_to_bucket(&mut self, place: usize, count: u64) {
        if count == 0 || place >= BUCKETS {
            return;
        }
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        if let Some(sum) = self.counts.get_mut(place) {
            *sum = sum.saturating_add(count);
        }
    }
}

/// Buckets that hold something, by number.
fn serialize_buckets<S: Serializer>(counts: &[u64], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(counts.iter().enumerate().filter(|(_, count)| **count > 0))
}

fn deserialize_buckets<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
    let mut own = LogHistogram::default();
    for (place, count) in BTreeMap::<u16, u64>::deserialize(from)? {
        own.add_to_bucket(usize::from(place), count);
    }
    Ok(own.counts)
}

/// Linear up to 2⁵ grains, then 2⁵ buckets for each doubling.
fn bucket_index(time: Nanos) -> usize {
    let grains = (time.0 >> GRAIN).min(LARGEST);
    let shift = (u64::BITS - grains.leading_zeros()).saturating_sub(FINE + 1);
    ((u64::from(shift) << FINE) + (grains >> shift)) as usize
}

/// The middle of a bucket.
fn bucket_middle(place: usize) -> Nanos {
    let shift = (place >> FINE).saturating_sub(1) as u32;
    let from = (place as u64 - (u64::from(shift) << FINE)) << shift;
    Nanos((from << GRAIN) + (1 << (shift + GRAIN)) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_told_within_two_percent() {
        let mut time = 5_000u64;
        while time < 86_400_000_000_000 {
            let told = bucket_middle(bucket_index(Nanos(time))).0 as f64;
            assert!((told / time as f64 - 1.0).abs() < 0.02, "{time} as {told}");
            time += time / 7;
        }
        // Neighbors in order, and the largest in the last.
        let all: Vec<u64> = (0..BUCKETS).map(|place| bucket_middle(place).0).collect();
        assert!(all.is_sorted());
        assert!((0..BUCKETS).all(|place| bucket_index(bucket_middle(place)) == place));
        assert_eq!(bucket_index(Nanos(u64::MAX)), BUCKETS - 1);
        assert_eq!(bucket_index(Nanos(0)), 0);
    }

    #[test]
    fn no_number_and_no_bucket_is_too_large() {
        let mut sum = LogHistogram::default();
        sum.add_to_bucket(7, u64::MAX);
        sum.add_to_bucket(BUCKETS, 1);
        sum.merge(&sum.clone());
        assert_eq!(sum.count(), u64::MAX);
        assert!(sum.quantile_ms(0.99).is_some());
    }
}
