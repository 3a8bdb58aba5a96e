//! [`Deadline`]: a limit on how long nothing happens, without a timer for each thing that happens.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use goodput_clock::now;
use goodput_model::Nanos;
use tokio::time::{Instant, Sleep, sleep};

/// Runs out when a wait was too long. What happens meanwhile only moves a number; the
/// timer finds out when it fires, and is set again for the rest.
pub(crate) struct Deadline {
    limit: Duration,
    /// Since when nothing has arrived; none while nothing is awaited.
    since: Option<Nanos>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, since: None, timer: None }
    }

    /// Something came.
    pub(crate) fn restart(&mut self) {
        self.since = None;
    }

    /// Nothing is there: ready when that has been so for too long.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let present = now();
        let since = *self.since.get_or_insert(present);
        let waited = Duration::from_nanos((present - since).0);
        let rest = self.limit.saturating_sub(waited);
        // By our own clock: in a task that has used up its budget, by bytes of the other side for
        // instance, the runtime's timer never says that it is time.
        if rest.is_zero() {
            return Poll::Ready(());
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(self.limit)));
        while timer.as_mut().poll(cx).is_ready() {
            // A millisecond more: the runtime's timer has this resolution.
            timer.as_mut().reset(Instant::now() + rest + Duration::from_millis(1));
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::task::coop::{consume_budget, has_budget_remaining};

    use super::*;

    #[test]
    fn a_limit_holds_in_a_task_without_budget() {
        const LIMIT: Duration = Duration::from_millis(20);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ended = runtime.block_on(async {
            let mut deadline = Deadline::new(LIMIT);
            // As one whose other branch always has something to do.
            poll_fn(|cx| {
                while has_budget_remaining() {
                    let _ = std::pin::pin!(consume_budget()).poll(cx);
                }
                let begin = now();
                let mut polls = 0;
                while deadline.poll(cx).is_pending() {
                    polls += 1;
                    assert!(now() - begin < Nanos::from(100 * LIMIT), "{polls}");
                }
                Poll::Ready(now() - begin)
            })
            .await
        });
        assert!(ended >= Nanos::from(LIMIT));
    }

    #[test]
    fn what_comes_sets_it_back() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let limit = Duration::from_millis(50);
            let (mut deadline, begin) = (Deadline::new(limit), now());
            let cx = &mut Context::from_waker(std::task::Waker::noop());
            assert!(deadline.poll(cx).is_pending());
            deadline.since = Some(now() - Nanos::from(limit));
            deadline.restart();
            assert!(deadline.poll(cx).is_pending());
            poll_fn(|cx| deadline.poll(cx)).await;
            assert!(now() - begin >= Nanos::from(limit));
        });
    }
}
