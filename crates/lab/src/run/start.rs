//! Runs that begin together, each on a thread of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Holds a run back until all others can begin too. Dropped before its run could begin, it holds
/// no run back.
#[derive(Debug)]
pub struct StartBarrier {
    all: Arc<BarrierState>,
    has_begun: AtomicBool,
}

#[derive(Debug)]
struct BarrierState {
    /// Runs that are waited for.
    missing: Mutex<usize>,
    changed: Condvar,
}

impl StartBarrier {
    /// One for each run; all of them begin at the same instant.
    pub fn for_runs(runs: usize) -> Vec<Self> {
        let all = Arc::new(BarrierState { missing: Mutex::new(runs), changed: Condvar::new() });
        let one = |_| Self { all: Arc::clone(&all), has_begun: AtomicBool::new(false) };
        (0..runs).map(one).collect()
    }

    /// This run can begin; returns once all others can, or never will.
    pub fn wait(&self) {
        self.arrive();
        let missing = self.all.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let _all = self.all.changed.wait_while(missing, |missing| *missing > 0);
    }

    fn arrive(&self) {
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            let mut missing = self.all.missing.lock().unwrap_or_else(PoisonError::into_inner);
            *missing = missing.saturating_sub(1);
            self.all.changed.notify_all();
        }
    }
}

impl Drop for StartBarrier {
    fn drop(&mut self) {
        self.arrive();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_begin_together_and_none_waits_for_one_that_failed() {
        let mut starts = StartBarrier::for_runs(3);
        let (failed, last) = (starts.pop().unwrap(), starts.pop().unwrap());
        let first = starts.pop().unwrap();
        let has_begun = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&has_begun);
        let waiting = std::thread::spawn(move || {
            first.wait();
            flag.store(true, Ordering::SeqCst);
        });
        drop(failed);
        goodput_clock::pause(goodput_model::Nanos::from_millis(20));
        assert!(!has_begun.load(Ordering::SeqCst), "one is still missing");
        last.wait();
        waiting.join().unwrap();
        assert!(has_begun.load(Ordering::SeqCst));
    }
}
