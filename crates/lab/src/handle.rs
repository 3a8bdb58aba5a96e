//! [`RunHandle`]: a run as another thread sees and stops it.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use goodput_engine::{LiveCounters, RunControl};
use goodput_fleet::Totals;
use goodput_model::ClockOffset;
use goodput_stats::Look;

/// A run as another thread sees and stops it. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct RunHandle {
    /// Stops it.
    pub control: RunControl,
    /// The engine's counters.
    pub live: Arc<LiveCounters>,
    /// What its figures were worth when they were looked at last.
    look: Arc<Mutex<Look>>,
    /// What other ranks have counted so far.
    pub others: Arc<Mutex<Totals>>,
    /// This machine's clocks compared to those of rank 0, when all began.
    pub clock: Arc<OnceLock<ClockOffset>>,
    /// It did not begin with the others.
    pub is_off: Arc<AtomicBool>,
}

impl RunHandle {
    /// What its figures were worth when they were looked at last.
    pub fn last_look(&self) -> Look {
        self.look.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_look(&self, look: &Look) {
        self.look.lock().unwrap_or_else(PoisonError::into_inner).clone_from(look);
    }
}
