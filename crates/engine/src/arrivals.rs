//! The arrivals of an open loop: each worker begins its share of the sessions at their instants,
//! whatever the server does.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use goodput_model::Nanos;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;

use crate::feeder::{PreparedBacklog, ScheduledSession};
use crate::pacing::StepInstant;
use crate::senders::Sender;
use crate::worker::EngineWorker;

/// The sessions that one worker begins.
pub(crate) struct Arrivals {
    /// In order of their instants.
    pub(crate) sessions: Receiver<ScheduledSession>,
    pub(crate) ahead: Arc<PreparedBacklog>,
    /// The run's first instant.
    pub(crate) start: oneshot::Receiver<Nanos>,
    /// Sessions may begin as long as these are there.
    pub(crate) senders: [Sender; 2],
}

impl EngineWorker {
    /// Waits for each arrival and begins its session. Instants are absolute: lateness at one arrival
    /// never moves another, and a backlog after a stall is sent with its lateness on record.
    pub(crate) async fn serve_open(self: &Rc<Self>, arrivals: Arrivals) {
        let Arrivals { mut sessions, ahead, start, senders } = arrivals;
        let Ok(epoch) = start.await else { return };
        let control = self.shared.control.clone();
        let mut stopped = pin!(control.wait_until_stopped());
        loop {
            let arrival = tokio::select! {
                biased;
                () = &mut stopped => break,
                arrival = sessions.recv() => arrival,
            };
            let Some(ScheduledSession { at, visit }) = arrival else { break };
            ahead.remove(&visit);
            let scheduled = epoch + at;
            let lag = tokio::select! {
                biased;
                () = &mut stopped => break,
                lag = self.lead.sleep_until(&self.timer, scheduled) => lag,
            };
            self.begin_session(visit, StepInstant { at: Some(scheduled), pacer_lag: Some(lag) });
        }
        drop(senders);
    }
}
