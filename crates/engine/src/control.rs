//! [`Control`]: stopping a run from outside, gently or at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
pub struct Control {
    state: watch::Sender<Stop>,
    /// The same as `state` beyond [`Stop::No`], for the pacer's tight loop.
    stopping: Arc<AtomicBool>,
    /// Everything has been sent.
    draining: Arc<AtomicBool>,
}

impl Control {
    /// A handle for a run that is about to start.
    pub fn new() -> Self {
        Self {
            state: watch::Sender::new(Stop::No),
            stopping: Arc::default(),
            draining: Arc::default(),
        }
    }

    /// Send nothing more, wait for what is under way.
    pub fn stop(&self) {
        self.reach(Stop::Sending);
    }

    /// Wait for nothing more.
    pub fn abort(&self) {
        self.reach(Stop::Waiting);
    }

    /// Whether nothing more is to be sent.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Whether everything has been sent, and only answers are waited for.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    fn reach(&self, stop: Stop) {
        self.stopping.store(true, Ordering::Relaxed);
        self.state.send_if_modified(|state| {
            let goes_further = stop > *state;
            *state = stop.max(*state);
            goes_further
        });
    }

    /// Returns once nothing more is to be sent.
    pub(crate) async fn stopped(&self) {
        self.reached(Stop::Sending).await;
    }

    /// Returns once nothing more is to be waited for.
    pub(crate) async fn aborted(&self) {
        self.reached(Stop::Waiting).await;
    }

    async fn reached(&self, stop: Stop) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.state.subscribe().wait_for(|state| *state >= stop).await;
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}
