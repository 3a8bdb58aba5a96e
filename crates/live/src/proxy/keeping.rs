//! What is held of bodies and answers to be looked at, and how much of it there may be at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use goodput_wire::AnswerTap;

/// Memory of an answer outside of the common allowance: enough for most.
const UNCOUNTED: usize = 8 << 10;

/// Bytes that all workers hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowance(Arc<AtomicUsize>);

impl Allowance {
    /// Whether this many more may be held; then they are.
    pub(crate) fn reserve(&self, bytes: usize, most: usize) -> bool {
        let held = self.0.fetch_add(bytes, Ordering::Relaxed);
        let fits = held.saturating_add(bytes) <= most;
        if !fits {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }

    pub(crate) fn release(&self, bytes: usize) {
        if bytes > 0 {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// What one answer holds of the allowance, until it is dropped.
#[derive(Debug)]
pub(crate) struct Keeping {
    allowance: Allowance,
    most: usize,
    held: usize,
}

impl Keeping {
    pub(crate) fn new(allowance: &Allowance, most: usize) -> Self {
        Self { allowance: allowance.clone(), most, held: 0 }
    }

    /// Counts what the reader of the answer holds by now. Where that is too much, it holds no more.
    pub(crate) fn update_from(&mut self, passing: &mut AnswerTap) {
        let held = passing.held_bytes().saturating_sub(UNCOUNTED);
        if held > self.held && !self.allowance.reserve(held - self.held, self.most) {
            passing.stop_buffering();
            return;
        }
        if held < self.held {
            self.allowance.release(self.held - held);
        }
        self.held = held;
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.allowance.release(self.held);
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::Nanos;
    use goodput_wire::{PassedHead, Read};
    use http::HeaderMap;

    use super::*;

    const READ: Read = Read { at: Nanos(1), sequence: 1, lag_us: None };

    /// An answer in one piece, of which this many bytes have come.
    fn whole(bytes: usize) -> AnswerTap {
        let mut passing = AnswerTap::new(true, false);
        passing.take_head(PassedHead { status: 200, headers: &HeaderMap::new(), read: READ });
        passing.take_bytes(&[b"{".as_slice(), &vec![b' '; bytes - 1]].concat(), READ);
        passing
    }

    #[test]
    fn answers_hold_no_more_together_than_they_may() {
        let allowance = Allowance::default();
        let keeping = || Keeping::new(&allowance, 100_000);
        let (mut one, mut two, mut three) = (keeping(), keeping(), keeping());
        let (mut first, mut second, mut third) = (whole(90_000), whole(90_000), whole(90_000));
        one.update_from(&mut first);
        two.update_from(&mut second);
        assert!(first.held_bytes() >= 90_000);
        assert_eq!(second.held_bytes(), 0, "it goes unjudged");
        two.update_from(&mut second);
        assert!(second.end(READ).failure.is_some());
        drop((one, two));
        three.update_from(&mut third);
        assert!(third.held_bytes() >= 90_000, "what was held is given back");
        third.stop_buffering();
        three.update_from(&mut third);
        assert!(allowance.reserve(100_000, 100_000), "at once, where it is let go");
    }
}
