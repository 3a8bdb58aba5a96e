//! [`Control`]: stopping a run from outside, gently or at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// A handle that stops a run. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Control {
    stopping: Arc<AtomicBool>,
    /// True once answers are no longer waited for.
    abort: watch::Sender<bool>,
}

impl Control {
    /// A handle for a run that is about to start.
    pub fn new() -> Self {
        Self { stopping: Arc::default(), abort: watch::Sender::new(false) }
    }

    /// Send nothing more, wait for what is under way.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Wait for nothing more.
    pub fn abort(&self) {
        self.stop();
        self.abort.send_replace(true);
    }

    /// Whether a stop was asked for.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn aborted(&self) -> watch::Receiver<bool> {
        self.abort.subscribe()
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}
