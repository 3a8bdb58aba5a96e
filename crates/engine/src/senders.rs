//! [`Senders`]: who may still send.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts those that may still send: every worker that begins sessions, and every session with steps
/// to come.
#[derive(Debug, Clone, Default)]
pub(crate) struct Senders(Arc<AtomicU64>);

/// One of them, until dropped.
#[derive(Debug)]
pub(crate) struct Sender(Arc<AtomicU64>);

impl Senders {
    pub(crate) fn add_sender(&self) -> Sender {
        self.0.fetch_add(1, Relaxed);
        Sender(Arc::clone(&self.0))
    }

    /// Whether everything has been sent.
    pub(crate) fn are_gone(&self) -> bool {
        self.0.load(Relaxed) == 0
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
