//! The collector: brings records and observations to the caller's sink, on a thread of its own.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, OnceLock};

use goodput_clock::now;
use goodput_model::{CanaryReading, LoopLag, Nanos, RequestRecord};

use crate::self_check::Observations;

/// How often the sink is asked to make its records safe.
const FLUSH_EVERY: Nanos = Nanos::from_millis(200);

/// How often workers and host are looked at.
const OBSERVE_EVERY: Nanos = Nanos::from_millis(1_000);

/// Takes the records of a run, on a thread of its own.
pub trait Sink: Send {
    /// One request has ended.
    fn record(&mut self, record: RequestRecord);
    /// Called about once a second with what workers have seen of themselves since the last call,
    /// and how long ago the run began.
    fn observe(&mut self, at: Nanos, beats: Vec<LoopLag>, canary: Vec<CanaryReading>);
    /// Called a few times a second: what was recorded must now survive the process.
    fn flush(&mut self);
}

/// Brings records and observations to the sink.
pub(crate) struct RecordCollector<S> {
    pub(crate) epoch: Arc<OnceLock<Nanos>>,
    pub(crate) seen: Arc<Observations>,
    pub(crate) sink: S,
}

impl<S: Sink> RecordCollector<S> {
    /// Runs until the last worker is gone; the sink, with everything.
    pub(crate) fn collect(mut self, records: &Receiver<RequestRecord>) -> S {
        let mut flushed = now();
        let mut observed = Nanos::ZERO;
        loop {
            match records.recv_timeout(FLUSH_EVERY.into()) {
                Ok(record) => self.sink.record(record),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.forward_observations();
                    self.sink.flush();
                    return self.sink;
                }
            }
            let present = now();
            if present - observed >= OBSERVE_EVERY {
                observed = present;
                self.forward_observations();
            }
            if present - flushed >= FLUSH_EVERY {
                flushed = present;
                self.sink.flush();
            }
        }
    }

    fn forward_observations(&mut self) {
        // Before the epoch there is nothing to see but the start.
        if let Some(epoch) = self.epoch.get() {
            let (beats, canary) = self.seen.take_all();
            self.sink.observe(now() - *epoch, beats, canary);
        }
    }
}
