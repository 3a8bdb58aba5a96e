//! Keeping instants: a worker sleeps until shortly before each, and yields to its other work for the
//! rest.

use std::cell::Cell;

use goodput_clock::{Timer, now};
use goodput_model::Nanos;

/// How exactly instants are kept, and at what price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerMode {
    /// A worker wakes early by the time that waking takes, and spins for the rest, between its
    /// other work.
    Exact,
    /// Nothing spins: for one processor, where spinning would keep other threads of this process
    /// from it, and for containers whose CPU time is rationed, where it would be paid for by being
    /// stopped later. Requests leave as late as the system wakes a thread.
    Sparing,
}

/// When a step is due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepInstant {
    /// `None` for a user of a closed loop who takes a new session: due when the turn has come.
    pub(crate) at: Option<Nanos>,
    /// How late the worker woke for it; only the first step of an open loop's session is woken for.
    pub(crate) pacer_lag: Option<Nanos>,
}

/// How long before an instant a worker wakes up for it: as long as waking has taken lately.
#[derive(Debug)]
pub(crate) struct WakeLead {
    lead: Cell<Nanos>,
    mode: TimerMode,
}

impl WakeLead {
    /// What waking takes on a machine that was never asked.
    const FIRST: Nanos = Nanos::from_micros(100);
    /// A machine that takes longer is busy; spinning for longer would make it busier.
    const MOST: Nanos = Nanos::from_micros(150);
    /// What one wake-up within the lead takes from it. One that was later adds nineteen times as
    /// much, so the lead settles where one in twenty is later.
    const STEP: Nanos = Nanos(500);

    pub(crate) fn new(mode: TimerMode) -> Self {
        let first = match mode {
            TimerMode::Exact => Self::FIRST,
            TimerMode::Sparing => Nanos::ZERO,
        };
        Self { lead: Cell::new(first), mode }
    }

    pub(crate) fn get(&self) -> Nanos {
        self.lead.get()
    }

    /// Sleeps until shortly before `instant`, and returns how late it woke up for that.
    pub(crate) async fn sleep_until(&self, timer: &Timer, instant: Nanos) -> Nanos {
        let wake = instant - self.lead.get();
        if now() >= wake {
            // Late before it could sleep: that says nothing of how long waking takes.
            return now() - wake;
        }
        timer.sleep_until(wake).await;
        let late = now() - wake;
        self.record_lateness(late);
        late
    }

    fn record_lateness(&self, late: Nanos) {
        if self.mode == TimerMode::Sparing {
            return;
        }
        let lead = self.lead.get();
        let next = if late > lead { lead + Nanos(19 * Self::STEP.0) } else { lead - Self::STEP };
        self.lead.set(next.min(Self::MOST));
    }
}

/// Lets the worker's other work go on until the instant has come.
pub(crate) async fn yield_until(instant: Nanos) {
    while now() < instant {
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lead after many wake-ups that are late by these, in turn.
    fn learned(mode: TimerMode, late_us: &[u64]) -> Nanos {
        let lead = WakeLead::new(mode);
        for us in late_us.iter().cycle().take(20_000) {
            lead.record_lateness(Nanos::from_micros(*us));
        }
        lead.lead.get()
    }

    #[test]
    fn the_lead_settles_where_one_wake_up_in_twenty_is_later() {
        let mut mostly_quick = vec![20; 39];
        mostly_quick.push(120);
        let us = |lead: Nanos| lead.0 / 1_000;
        assert!((10..=30).contains(&us(learned(TimerMode::Exact, &[20]))));
        assert!((10..=40).contains(&us(learned(TimerMode::Exact, &mostly_quick))));
        assert_eq!(us(learned(TimerMode::Exact, &[5_000])), 150);
        assert_eq!(learned(TimerMode::Sparing, &[5_000]), Nanos::ZERO);
    }
}
