//! The pacer: lets each request of an open loop go at its instant, whatever the server does.

use std::sync::mpsc::Receiver;

use goodput_clock::{now, sleep_until, use_fine_timer_slack};
use goodput_model::{Nanos, Phase};
use tokio::sync::mpsc::UnboundedSender;

use crate::control::Control;
use crate::feeder::{Job, Prepared};

/// How exactly instants are kept, and at what price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// Requests are handed over early and the worker spins for the rest, between its other work.
    Exact,
    /// Nothing spins: for containers whose CPU time is rationed, where spinning would be paid for
    /// by being stopped later. Requests leave as late as the system wakes two threads.
    Sparing,
}

impl Pacing {
    /// How long before its instant a request is handed over: longer than waking the pacer and then
    /// the worker takes on an idle machine (some 50 µs each).
    pub(crate) fn lead(self) -> Nanos {
        match self {
            Self::Exact => Nanos::from_micros(150),
            Self::Sparing => Nanos::ZERO,
        }
    }
}

/// A prepared request with its place in the schedule, as an offset from the epoch.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Nanos,
    pub(crate) phase: Phase,
    pub(crate) prepared: Prepared,
}

/// Waits for each arrival and hands it to the workers in turn. Instants are absolute: lateness at
/// one arrival never moves another, and a backlog after a stall is sent with its lateness on record.
pub(crate) fn pace(
    epoch: Nanos,
    pacing: Pacing,
    arrivals: &Receiver<Arrival>,
    workers: &[UnboundedSender<Job>],
    control: &Control,
) {
    use_fine_timer_slack();
    for (arrival, worker) in arrivals.iter().zip(workers.iter().cycle()) {
        let scheduled = epoch + arrival.at;
        let hand_over = scheduled - pacing.lead();
        if !sleep_until(hand_over, || control.is_stopping()) {
            return;
        }
        let job = Job {
            prepared: arrival.prepared,
            scheduled: Some(scheduled),
            pacer_lag: Some(now() - hand_over),
            phase: arrival.phase,
        };
        if worker.send(job).is_err() {
            return;
        }
    }
}
