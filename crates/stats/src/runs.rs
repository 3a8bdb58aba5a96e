//! Values that are seen often, kept once each with their number.

/// A fold costs as much as what is there: not before this many are new.
const FOLD: usize = 1 << 16;

/// Values and how often each was seen. Most gaps of a long run are equal to the microsecond to some
/// others, so that this is far smaller than all of them.
#[derive(Debug)]
pub(crate) struct ValueRuns<T> {
    /// In order.
    runs: Vec<(T, u32)>,
    /// What came last, in any order.
    recent: Vec<T>,
}

impl<T> Default for ValueRuns<T> {
    fn default() -> Self {
        Self { runs: Vec::new(), recent: Vec::new() }
    }
}

impl<T: Ord + Copy> ValueRuns<T> {
    pub(crate) fn push(&mut self, value: T) {
        self.recent.push(value);
        if self.recent.len() >= FOLD.max(self.runs.len()) {
            self.fold();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.recent.is_empty()
    }

    /// Every value in order, with how often it was seen.
    pub(crate) fn sorted(&mut self) -> &[(T, u32)] {
        self.fold();
        &self.runs
    }

    fn fold(&mut self) {
        if self.recent.is_empty() {
            return;
        }
        self.recent.sort_unstable();
        let mut all: Vec<(T, u32)> = Vec::with_capacity(self.runs.len() + 1);
        let mut add = |value: T, count: u32| match all.last_mut() {
            Some(last) if last.0 == value => last.1 = last.1.saturating_add(count),
            _ => all.push((value, count)),
        };
        let mut earlier = self.runs.drain(..).peekable();
        for value in self.recent.drain(..) {
            while let Some((before, count)) = earlier.next_if(|run| run.0 <= value) {
                add(before, count);
            }
            add(value, 1);
        }
        earlier.for_each(|(value, count)| add(value, count));
        self.runs = all;
    }
}

/// Microseconds that have a place of their own.
const DENSE: u32 = 1 << 17;

/// Whole microseconds and how often each was seen: the same, quicker where they are short.
#[derive(Debug, Default)]
pub(crate) struct Micros {
    short: Vec<u32>,
    long: ValueRuns<u32>,
}

impl Micros {
    pub(crate) fn push(&mut self, us: u32) {
        if us >= DENSE {
            return self.long.push(us);
        }
        let place = us as usize;
        if self.short.len() <= place {
            self.short.resize(place + 1, 0);
        }
        self.short[place] = self.short[place].saturating_add(1);
    }

    /// Every value in order, with how often it was seen.
    pub(crate) fn sorted(&mut self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let short = (0..).zip(self.short.iter().copied()).filter(|(_, count)| *count > 0);
        short.chain(self.long.sorted().iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_ones_are_in_one_order() {
        let mut micros = Micros::default();
        for us in [u32::MAX, 7, DENSE, DENSE - 1, 7, 0, DENSE] {
            micros.push(us);
        }
        let sorted: Vec<(u32, u32)> = micros.sorted().collect();
        assert_eq!(sorted, [(0, 1), (7, 2), (DENSE - 1, 1), (DENSE, 2), (u32::MAX, 1)]);
    }

    #[test]
    fn every_value_is_counted_whenever_it_came() {
        let mut runs = ValueRuns::default();
        assert!(runs.is_empty());
        // Two folds by themselves, and one at the end; the last values are new ones below and above.
        for k in 0..150_000u32 {
            runs.push(1 + k % 1_000);
        }
        assert!(runs.runs.len() == 1_000 && !runs.recent.is_empty());
        runs.push(0);
        runs.push(5_000);
        let sorted = runs.sorted();
        assert_eq!((sorted[0], sorted[1], sorted[1_000]), ((0, 1), (1, 150), (1_000, 150)));
        assert_eq!((sorted.len(), sorted[1_001]), (1_002, (5_000, 1)));
        assert!(!runs.is_empty());
    }
}
