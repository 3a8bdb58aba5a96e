//! Whole numbers in bins: each small one in a bin of its own, larger ones in bins whose width grows
//! with them.

/// How often each number was seen, in 2^`bits` bins for each doubling.
#[derive(Debug, Clone)]
pub(super) struct NumberCounts {
    bits: u32,
    bins: Vec<u64>,
    n: u64,
    largest: u32,
}

impl NumberCounts {
    /// Numbers below 2^(`bits` + 1) are kept as they are, larger ones to one part in 2^`bits`.
    pub(super) fn new(bits: u32) -> Self {
        Self { bits, bins: Vec::new(), n: 0, largest: 0 }
    }

    pub(super) fn add(&mut self, value: u32) {
        let bin = self.bin_index(value);
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += 1;
        self.n += 1;
        self.largest = self.largest.max(value);
    }

    /// The same with what others have counted, in bins of the same width.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.bins.len() < other.bins.len() {
            self.bins.resize(other.bins.len(), 0);
        }
        for (count, more) in self.bins.iter_mut().zip(&other.bins) {
            *count += more;
        }
        self.n += other.n;
        self.largest = self.largest.max(other.largest);
    }

    pub(super) fn len(&self) -> u64 {
        self.n
    }

    fn bin_index(&self, value: u32) -> usize {
        let doublings = value.checked_ilog2().unwrap_or(0).saturating_sub(self.bits);
        ((doublings as usize) << self.bits) + (value >> doublings) as usize
    }

    /// The smallest number of a bin.
    fn bin_start(&self, bin: usize) -> u64 {
        let doublings = (bin >> self.bits).saturating_sub(1);
        ((bin - (doublings << self.bits)) as u64) << doublings
    }

    /// Bins that are not empty: their smallest number, and how many they hold.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let filled = self.bins.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(bin, count)| (self.bin_start(bin), *count))
    }

    /// The smallest number of the bin that holds this one.
    pub(super) fn bin_floor(&self, value: u32) -> u64 {
        self.bin_start(self.bin_index(value))
    }

    /// How many are as large as this one, or in its bin.
    pub(super) fn count_at_least(&self, value: u32) -> u64 {
        self.bins.iter().skip(self.bin_index(value)).sum()
    }

    /// The numbers of these ranks, which rise, from 1; the largest is known as it is.
    pub(super) fn values_at_ranks(&self, ranks: impl Iterator<Item = u64>) -> Vec<Option<u64>> {
        let mut bins = self.iter();
        let (mut current, mut so_far) = (None, 0);
        let mut find = |rank: u64| {
            while so_far < rank {
                let (first, count) = bins.next()?;
                (current, so_far) = (Some(first), so_far + count);
            }
            current
        };
        let largest = u64::from(self.largest);
        let exact = |rank: u64, found: u64| if rank >= self.n { largest } else { found };
        ranks.map(|rank| find(rank.max(1)).map(|found| exact(rank, found))).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bins_follow_each_other_without_a_gap() {
        let counts = NumberCounts::new(3);
        let mut before = 0;
        for value in 0..5_000u32 {
            let bin = counts.bin_index(value);
            assert!(bin == before || bin == before + 1, "{value}: {bin} after {before}");
            before = bin;
            let first = counts.bin_floor(value);
            assert!(first <= u64::from(value) && u64::from(value) - first <= first / 8, "{value}");
        }
        assert_eq!(counts.bin_floor(15), 15);
        assert_eq!((counts.bin_floor(17), counts.bin_floor(u32::MAX)), (16, 0xf000_0000));
    }

    proptest! {
        #[test]
        fn ranks_are_those_of_the_sorted_numbers(mut values in prop::collection::vec(0u32..3_000, 1..200)) {
            let mut counts = NumberCounts::new(12);
            for value in &values {
                counts.add(*value);
            }
            values.sort_unstable();
            let ranks = 1..=values.len() as u64;
            let found: Vec<u64> = counts.values_at_ranks(ranks).into_iter().flatten().collect();
            let sorted: Vec<u64> = values.iter().map(|value| u64::from(*value)).collect();
            prop_assert_eq!(found, sorted);
            let middle = values[values.len() / 2];
            let as_large = values.iter().filter(|value| **value >= middle).count() as u64;
            prop_assert_eq!(counts.count_at_least(middle), as_large);
        }
    }
}
