//! How much time may be spent awake before an instant, for the sake of being on time.

use std::cell::Cell;

use goodput_clock::now;
use goodput_model::Nanos;

/// How long before an instant one wakes.
const LEAD: Nanos = Nanos::from_micros(200);

/// One part in this many of the time may be spent awake and waiting.
const SHARE: u64 = 4;

/// As much of that can be saved up.
const MOST: Nanos = Nanos::from_millis(5);

/// Time that may be spent awake, and when it was last reckoned.
pub(crate) struct SpinBudget(Cell<(Nanos, Nanos)>);

impl Default for SpinBudget {
    fn default() -> Self {
        Self(Cell::new((MOST, now())))
    }
}

impl SpinBudget {
    /// How long before an instant to wake: nothing if too much has been spent.
    pub(crate) fn wake_lead(&self) -> Nanos {
        if self.saved_time() >= LEAD { LEAD } else { Nanos::ZERO }
    }

    /// Being awake, which costs until it ends.
    pub(crate) fn begin_awake(&self) -> Awake<'_> {
        Awake(self, now())
    }

    fn saved_time(&self) -> Nanos {
        let (saved, since) = self.0.get();
        let present = now();
        let saved = (saved + Nanos((present - since).0 / SHARE)).min(MOST);
        self.0.set((saved, present));
        saved
    }
}

/// Being awake since an instant; what it cost is reckoned at its end, however it ends.
pub(crate) struct Awake<'a>(&'a SpinBudget, Nanos);

impl Drop for Awake<'_> {
    fn drop(&mut self) {
        let saved = self.0.saved_time();
        self.0.0.set((saved - (now() - self.1), now()));
    }
}
