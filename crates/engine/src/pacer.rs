//! The pacer: lets each session of an open loop begin at its instant, whatever the server does.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use goodput_clock::{now, sleep_until, use_fine_timer_slack};
use goodput_model::Nanos;
use tokio::sync::mpsc::UnboundedSender;

use crate::control::RunControl;
use crate::feeder::{PreparedBacklog, ScheduledSession};
use crate::session::PreparedSession;

/// How exactly instants are kept, and at what price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerMode {
    /// Requests are handed over early and the worker spins for the rest, between its other work.
    Exact,
    /// Nothing spins: for containers whose CPU time is rationed, where spinning would be paid for
    /// by being stopped later. Requests leave as late as the system wakes two threads.
    Sparing,
}

impl TimerMode {
    /// How long before its instant a request is handed over: longer than waking the pacer and then
    /// the worker takes on an idle machine (some 50 µs each).
    pub(crate) fn lead(self) -> Nanos {
        match self {
            Self::Exact => Nanos::from_micros(150),
            Self::Sparing => Nanos::ZERO,
        }
    }
}

/// A session that begins.
#[derive(Debug)]
pub(crate) struct SessionStart {
    pub(crate) visit: PreparedSession,
    pub(crate) due: StepInstant,
}

/// When a step is due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepInstant {
    /// `None` for a user of a closed loop who takes a new session: due when the turn has come.
    pub(crate) at: Option<Nanos>,
    /// How late the pacer woke for it; only the first step of an open loop's session has a pacer.
    pub(crate) pacer_lag: Option<Nanos>,
}

/// Hands sessions over.
pub(crate) struct Pacer {
    pub(crate) epoch: Nanos,
    pub(crate) pacing: TimerMode,
    pub(crate) arrivals: Receiver<ScheduledSession>,
    pub(crate) ahead: Arc<PreparedBacklog>,
    pub(crate) workers: Vec<UnboundedSender<SessionStart>>,
    pub(crate) control: RunControl,
}

impl Pacer {
    /// Waits for each arrival and hands it to the workers in turn. Instants are absolute: lateness
    /// at one arrival never moves another, and a backlog after a stall is sent with its lateness on
    /// record.
    pub(crate) fn run(self) {
        use_fine_timer_slack();
        for (ScheduledSession { at, visit }, worker) in
            self.arrivals.iter().zip(self.workers.iter().cycle())
        {
            self.ahead.take(&visit);
            let scheduled = self.epoch + at;
            let hand_over = scheduled - self.pacing.lead();
            if !sleep_until(hand_over, || self.control.is_stopping()) {
                return;
            }
            let due = StepInstant { at: Some(scheduled), pacer_lag: Some(now() - hand_over) };
            if worker.send(SessionStart { visit, due }).is_err() {
                return;
            }
        }
    }
}

/// Lets the worker's other work go on until the instant has come: the pacer hands requests over a
/// little early, so that waking this thread is not part of their lateness.
pub(crate) async fn hold_until(instant: Nanos) {
    while now() < instant {
        tokio::task::yield_now().await;
    }
}
