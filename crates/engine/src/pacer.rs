//! The pacer: lets each request of an open loop go at its instant, whatever the server does.

use std::sync::mpsc::Receiver;

use goodput_clock::{use_fine_timer_slack, wait_until};
use goodput_model::{Nanos, Phase};
use tokio::sync::mpsc::UnboundedSender;

use crate::control::Control;
use crate::feeder::{Job, Prepared};

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
    arrivals: &Receiver<Arrival>,
    workers: &[UnboundedSender<Job>],
    control: &Control,
) {
    use_fine_timer_slack();
    for (arrival, worker) in arrivals.iter().zip(workers.iter().cycle()) {
        let scheduled = epoch + arrival.at;
        if !wait_until(scheduled, || control.is_stopping()) {
            return;
        }
        let job =
            Job { prepared: arrival.prepared, scheduled: Some(scheduled), phase: arrival.phase };
        if worker.send(job).is_err() {
            return;
        }
    }
}
