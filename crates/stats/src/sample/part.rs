//! What a sample keeps of one slice of time, and ranks in it.

/// The values of one slice of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SlicePart {
    pub(super) values: Vec<f64>,
    /// Where each value stands for all that equal it: how many there are up to it. Empty if each
    /// stands for itself.
    pub(super) up_to: Vec<u64>,
    pub(super) censored: u64,
    /// How long requests took that then failed.
    pub(super) failed: Vec<f64>,
}

impl SlicePart {
    /// Failures that took longer than this.
    pub(super) fn failed_beyond(&self, value: f64) -> u64 {
        let up_to = self.failed.partition_point(|failed| failed.total_cmp(&value).is_le());
        (self.failed.len() - up_to) as u64
    }

    pub(super) fn len(&self) -> u64 {
        self.reached_count() + self.censored
    }

    /// Number of values that were reached.
    pub(super) fn reached_count(&self) -> u64 {
        self.count_before(self.values.len())
    }

    /// How many there are before this place.
    pub(super) fn count_before(&self, place: usize) -> u64 {
        if self.up_to.is_empty() {
            return place as u64;
        }
        place.checked_sub(1).and_then(|last| self.up_to.get(last)).copied().unwrap_or(0)
    }

    /// Each value, and how many it stands for.
    pub(super) fn counted_values(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let count = |place: usize| self.count_before(place + 1) - self.count_before(place);
        self.values.iter().enumerate().map(move |(place, value)| (*value, count(place)))
    }

    /// The value of this rank (from 1) of sorted values.
    pub(super) fn at_rank(&self, rank: u64) -> Option<f64> {
        let place = if self.up_to.is_empty() {
            usize::try_from(rank).ok()?.checked_sub(1)?
        } else {
            self.up_to.partition_point(|count| *count < rank)
        };
        self.values.get(place).copied()
    }

    /// Sum without the rounding errors of long sums (Neumaier).
    pub(super) fn sum(&self) -> f64 {
        let (mut sum, mut lost) = (0.0f64, 0.0);
        for (value, count) in self.counted_values() {
            let value = value * count as f64;
            let next = sum + value;
            lost +=
                if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
            sum = next;
        }
        // Of an infinite sum nothing is lost but sense.
        if sum.is_finite() { sum + lost } else { sum }
    }
}

/// The place behind the values of a sorted part that are at most this one.
pub(super) fn end_of_values(part: &SlicePart, at: f64) -> usize {
    part.values.partition_point(|other| other.total_cmp(&at).is_le())
}

/// Numbers as whole ones of the same order as `total_cmp`'s.
fn sort_key(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

pub(super) fn from_sort_key(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key ^ 1 << 63 } else { !key })
}

/// How many of these sorted values are at most the value of this key.
pub(super) fn count_up_to(part: &SlicePart, limit: u64) -> u64 {
    part.count_before(part.values.partition_point(|value| sort_key(*value) <= limit))
}
