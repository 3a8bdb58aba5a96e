//! [`Deadline`]: a limit on how long nothing happens, without a timer for each thing that happens.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use goodput_clock::now;
use goodput_model::Nanos;
use tokio::time::{Instant, Sleep, sleep};

/// Runs out when somebody has waited for too long. What happens meanwhile only moves a number; the
/// timer finds out when it fires, and is set again for the rest.
pub(crate) struct Deadline {
    limit: Duration,
    /// Since when there has been nothing; none while nobody waits.
    since: Option<Nanos>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, since: None, timer: None }
    }

    /// Something came.
    pub(crate) fn came(&mut self) {
        self.since = None;
    }

    /// Nothing is there: ready when that has been so for too long.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let since = *self.since.get_or_insert_with(now);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(self.limit)));
        while timer.as_mut().poll(cx).is_ready() {
            let waited = Duration::from_nanos((now() - since).0);
            let rest = self.limit.saturating_sub(waited);
            if rest.is_zero() {
                return Poll::Ready(());
            }
            // A millisecond more: the runtime's timer is no finer.
            let rest = rest + Duration::from_millis(1);
            timer.as_mut().reset(Instant::now() + rest);
        }
        Poll::Pending
    }
}
