//! Which entries are taken: a sample that depends on the file and the seed alone.
//!
//! Each entry has a random key, and those with the smallest keys are taken: the choice does not
//! depend on how much fits into memory, nor on how often the file is read. Counting tokens is
//! slow, so only candidates are counted, in the order of their keys, until enough have passed.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use goodput_model::random::{Domain, RandomStream};

use crate::DatasetEntry;
use crate::error::EntryError;
use crate::filter::LengthFilter;
use crate::pass::Keeper;

/// Text of candidates beyond the sample itself that is held at most.
const SPARE_BYTES: u64 = 64 << 20;
/// What is held of a file at most.
const MOST_BYTES: u64 = 4 << 30;

/// The place of an entry in the random order: its key, and its number where keys are equal.
pub(crate) type Slot = (u64, u64);

/// Refuses more text than is held.
pub(crate) fn check_total_bytes(bytes: u64) -> Result<(), EntryError> {
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    Err(EntryError::with_hint(
        format!("the entries to keep hold more than {} GiB", MOST_BYTES >> 30),
        "take a smaller sample, or a shorter part of the trace",
    ))
}

/// A candidate, ordered by its slot.
pub(crate) struct SampleCandidate {
    pub(crate) slot: Slot,
    pub(crate) entry: DatasetEntry,
    bytes: u64,
}

impl PartialEq for SampleCandidate {
    fn eq(&self, other: &Self) -> bool {
        self.slot == other.slot
    }
}
impl Eq for SampleCandidate {}
impl PartialOrd for SampleCandidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for SampleCandidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.slot.cmp(&other.slot)
    }
}

/// Keeps the entries with the smallest slots behind a given one.
pub(crate) struct Sampler {
    seed: u64,
    /// Slots up to this one were looked at in passes before.
    behind: Option<Slot>,
    /// Most candidates.
    room: usize,
    /// Candidates that stay whatever they weigh.
    floor: usize,
    /// Bytes of text above which candidates beyond those are let go.
    spare: u64,
    bytes: u64,
    /// The smallest slot that was let go: nothing at or above it may be kept.
    cutoff: Option<Slot>,
    heap: BinaryHeap<SampleCandidate>,
}

impl Sampler {
    pub(crate) fn new(seed: u64, behind: Option<Slot>, room: usize, floor: usize) -> Self {
        Self {
            seed,
            behind,
            room: room.max(1),
            floor: floor.max(1),
            spare: SPARE_BYTES,
            bytes: 0,
            cutoff: None,
            heap: BinaryHeap::new(),
        }
    }

    fn slot(&self, number: u64) -> Slot {
        (RandomStream::new(self.seed, Domain::Sampling, number).next_bits(), number)
    }

    /// The candidates in their order, and whether there are more in the file.
    pub(crate) fn finish(self) -> (Vec<SampleCandidate>, bool) {
        (self.heap.into_sorted_vec(), self.cutoff.is_some())
    }
}

impl Keeper for Sampler {
    fn wants(&mut self, number: u64) -> bool {
        let slot = self.slot(number);
        if self.behind.is_some_and(|behind| slot <= behind) {
            return false;
        }
        let is_below = self.cutoff.is_none_or(|cutoff| slot < cutoff);
        let is_full = self.heap.len() >= self.room;
        let fits = !is_full || self.heap.peek().is_none_or(|largest| slot < largest.slot);
        if is_below && !fits {
            self.cutoff = Some(slot);
        }
        is_below && fits
    }

    fn keep(&mut self, number: u64, entry: DatasetEntry) -> Result<Option<String>, EntryError> {
        let bytes = entry.bytes();
        self.bytes += bytes;
        self.heap.push(SampleCandidate { slot: self.slot(number), entry, bytes });
        while self.heap.len() > self.room
            || (self.bytes > self.spare && self.heap.len() > self.floor)
        {
            let Some(gone) = self.heap.pop() else { break };
            self.bytes -= gone.bytes;
            self.cutoff = Some(gone.slot);
        }
        check_total_bytes(self.bytes).map(|()| None)
    }
}

/// Keeps the first entries of the file that pass.
pub(crate) struct FirstEntries<'a> {
    pub(crate) filter: &'a LengthFilter<'a>,
    pub(crate) most: u64,
    pub(crate) entries: Vec<DatasetEntry>,
    pub(crate) bytes: u64,
}

impl Keeper for FirstEntries<'_> {
    fn wants(&mut self, _number: u64) -> bool {
        (self.entries.len() as u64) < self.most
    }

    fn keep(
        &mut self,
        _number: u64,
        mut entry: DatasetEntry,
    ) -> Result<Option<String>, EntryError> {
        if let Some(reason) = self.filter.check(&mut entry) {
            return Ok(Some(reason));
        }
        self.bytes += entry.bytes();
        self.entries.push(entry);
        check_total_bytes(self.bytes).map(|()| None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of 500 entries in the order of as many passes as it takes.
    fn order(room: usize, floor: usize, spare: u64) -> Vec<u64> {
        let (mut found, mut behind) = (Vec::new(), None);
        loop {
            let mut sampler = Sampler { spare, ..Sampler::new(9, behind, room, floor) };
            for number in 0..500 {
                if sampler.wants(number) {
                    let entry = DatasetEntry { line: number, ..DatasetEntry::default() };
                    sampler.keep(number, entry).unwrap();
                }
                assert!(sampler.heap.len() <= room && sampler.bytes <= spare.max(2_000));
            }
            let (candidates, has_more) = sampler.finish();
            behind = candidates.last().map(|candidate| candidate.slot).or(behind);
            found.extend(candidates.iter().map(|candidate| candidate.entry.line));
            if !has_more {
                return found;
            }
        }
    }

    #[test]
    fn the_order_does_not_depend_on_what_fits_into_memory() {
        let mut expected: Vec<u64> = (0..500).collect();
        expected.sort_by_key(|number| RandomStream::new(9, Domain::Sampling, *number).next_bits());
        let size = DatasetEntry::default().bytes();
        for (room, floor, spare) in [
            (500, 1, u64::MAX),
            (1_000, 1, u64::MAX),
            (37, 1, u64::MAX),
            (1, 1, u64::MAX),
            (200, 5, 20 * size),
            (200, 5, 0),
        ] {
            assert_eq!(order(room, floor, spare), expected, "{room} {floor} {spare}");
        }
    }
}
