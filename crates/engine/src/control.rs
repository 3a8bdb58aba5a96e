//! [`RunControl`]: stopping a run from outside, gently or at once.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use goodput_clock::now;
use goodput_model::Nanos;
use tokio::sync::watch;

/// How far a stop has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stop {
    No,
    /// Nothing more is sent.
    Sending,
    /// Nothing more is waited for.
    Waiting,
}

/// A handle that stops a run. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RunControl {
    state: watch::Sender<Stop>,
    /// The same as `state` beyond [`Stop::No`], for loops that look often.
    stopping: Arc<AtomicBool>,
    /// Everything has been sent.
    draining: Arc<AtomicBool>,
    /// What was asked from outside so far.
    told: Arc<AtomicU8>,
    /// When it was stopped from outside, while there was still something to send.
    stopped_at: Arc<OnceLock<Nanos>>,
}

impl RunControl {
    /// A handle for a run that is about to start.
    pub fn new() -> Self {
        Self {
            state: watch::Sender::new(Stop::No),
            stopping: Arc::default(),
            draining: Arc::default(),
            told: Arc::default(),
            stopped_at: Arc::default(),
        }
    }

    /// Send nothing more; wait for the requests in flight.
    pub fn stop(&self) {
        self.note_instant();
        self.told.fetch_max(Stop::Sending as u8, Ordering::Relaxed);
        self.raise_stop(Stop::Sending);
    }

    /// Wait for nothing more.
    pub fn abort(&self) {
        self.note_instant();
        self.told.fetch_max(Stop::Waiting as u8, Ordering::Relaxed);
        self.raise_stop(Stop::Waiting);
    }

    /// Whether the caller has called [`RunControl::stop`] or [`RunControl::abort`]: a run that has
    /// sent everything stops by itself.
    pub fn was_told_to_stop(&self) -> bool {
        self.told.load(Ordering::Relaxed) >= Stop::Sending as u8
    }

    /// Whether the caller has called [`RunControl::abort`].
    pub fn was_told_to_abort(&self) -> bool {
        self.told.load(Ordering::Relaxed) >= Stop::Waiting as u8
    }

    /// Whether nothing more is to be sent.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Whether nothing more is to be waited for.
    pub fn is_aborting(&self) -> bool {
        *self.state.borrow() >= Stop::Waiting
    }

    /// Whether everything has been sent, and only answers are waited for.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// When it was stopped from outside; `None` where everything was sent by then.
    pub(crate) fn stopped_at(&self) -> Option<Nanos> {
        self.stopped_at.get().copied()
    }

    /// Everything has been sent: waiting for a turn is pointless now.
    pub(crate) fn mark_all_sent(&self) {
        self.raise_stop(Stop::Sending);
    }

    /// Answers were waited for long enough.
    pub(crate) fn give_up(&self) {
        self.raise_stop(Stop::Waiting);
    }

    fn note_instant(&self) {
        if !self.is_draining() && !self.is_stopping() {
            self.stopped_at.get_or_init(now);
        }
    }

    pub(crate) fn mark_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    fn raise_stop(&self, stop: Stop) {
        self.stopping.store(true, Ordering::Relaxed);
        self.state.send_if_modified(|state| {
            let goes_further = stop > *state;
            *state = stop.max(*state);
            goes_further
        });
    }

    /// Returns once nothing more is to be sent.
    pub(crate) async fn wait_until_stopped(&self) {
        self.wait_for_stop(Stop::Sending).await;
    }

    /// Returns once nothing more is to be waited for.
    pub(crate) async fn wait_until_aborted(&self) {
        self.wait_for_stop(Stop::Waiting).await;
    }

    async fn wait_for_stop(&self, stop: Stop) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.state.subscribe().wait_for(|state| *state >= stop).await;
    }
}

impl Default for RunControl {
    fn default() -> Self {
        Self::new()
    }
}
