//! What the server has done, readable from other threads while it runs.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use goodput_model::Nanos;

/// Counts since the server's start.
#[derive(Debug, Default)]
pub struct MockTally {
    pub(crate) requests: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) late_events: AtomicU64,
    pub(crate) lost_truth: AtomicU64,
    pub(crate) faults: Mutex<BTreeMap<String, u64>>,
}

/// Later than this is late.
pub(crate) const LATE: Nanos = Nanos::from_millis(1);

impl MockTally {
    /// A token event left, so long after its instant.
    pub(crate) fn note_event_left(&self, lateness: Option<Nanos>) {
        self.events.fetch_add(1, Relaxed);
        if lateness.is_some_and(|lateness| lateness > LATE) {
            self.late_events.fetch_add(1, Relaxed);
        }
    }

    /// A fault happened.
    pub(crate) fn count_fault(&self, kind: &str) {
        if let Ok(mut faults) = self.faults.lock() {
            *faults.entry(kind.to_owned()).or_default() += 1;
        }
    }

    /// Requests for an answer.
    pub fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// Token events that left.
    pub fn events(&self) -> u64 {
        self.events.load(Relaxed)
    }

    /// Token events that left more than a millisecond after the model's instant, though the client
    /// was ready for them: the server could not keep up.
    pub fn late_events(&self) -> u64 {
        self.late_events.load(Relaxed)
    }

    /// Truth records that were lost because they were not collected in time.
    pub fn lost_truth(&self) -> u64 {
        self.lost_truth.load(Relaxed)
    }

    /// Faults that were injected, by kind.
    pub fn faults(&self) -> BTreeMap<String, u64> {
        self.faults.lock().map(|faults| faults.clone()).unwrap_or_default()
    }
}
