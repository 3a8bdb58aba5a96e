//! [`Times`]: how often values were seen, in little memory.

/// Bits of a number that are not looked at: what is left tells values a 512th apart.
const DROPPED: u32 = 43;
/// Half of what is told apart.
const HALF: u64 = 1 << (DROPPED - 1);

/// Positive values, each known to one part in a thousand, and how often each was seen. Days of traffic
/// take as much room as an hour's, and two of them can be added up.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Times {
    /// What was seen and how often, in ascending order. A shadow keeps hundreds of thousands of
    /// these: a vector takes 8 bytes for each, a `BTreeMap` 16 and more.
    counts: Vec<(u32, u32)>,
    n: u64,
}

impl Times {
    /// Adds a value; values that are not numbers, or negative, count as zero.
    pub(super) fn add(&mut self, value: f64) {
        let value = if value > 0.0 { value } else { 0.0 };
        self.add_count(((value.to_bits() + HALF) >> DROPPED) as u32, 1);
        self.n += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (key, count) in &other.counts {
            self.add_count(*key, *count);
        }
        self.n += other.n;
    }

    fn add_count(&mut self, key: u32, more: u32) {
        match self.counts.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(place) => {
                let count = &mut self.counts[place].1;
                *count = count.saturating_add(more);
            }
            Err(place) => self.counts.insert(place, (key, more)),
        }
    }

    /// Values that are told apart: what the memory grows with.
    #[cfg(test)]
    pub(super) fn distinct_values(&self) -> usize {
        self.counts.len()
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.n
    }

    /// The nearest-rank percentile; among values that cannot be told apart as if they lay evenly.
    pub(super) fn percentile(&self, percent: f64) -> Option<f64> {
        let rank = (self.n as f64 * percent / 100.0 - 1e-9).ceil().max(1.0);
        let mut before = 0.0;
        for (key, count) in &self.counts {
            let count = f64::from(*count);
            if before + count >= rank {
                let middle = u64::from(*key) << DROPPED;
                let ends = [middle.saturating_sub(HALF), middle + HALF].map(f64::from_bits);
                let place = (rank - before - 0.5) / count;
                let is_nothing = *key == 0;
                return Some(if is_nothing { 0.0 } else { ends[0] + (ends[1] - ends[0]) * place });
            }
            before += count;
        }
        None
    }

    pub(super) fn median(&self) -> Option<f64> {
        self.percentile(50.0)
    }
}
