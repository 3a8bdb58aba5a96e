//! Ending work at an instant or on a word, however busy the work is.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use goodput_model::Nanos;
use tokio::task::unconstrained;
use tokio::time::sleep;

use crate::now;

/// What `work` gives, or what `end` gives where that comes first.
///
/// `end` is looked at after every step of `work`, outside the runtime's cooperative budget. A socket
/// that always has bytes to read uses all of that budget up, and in a plain `select!` a timer or a
/// notice polled behind it would go unheard for as long as the bytes come. Work that is done when its
/// end comes counts as done.
pub async fn run_until<T, E>(
    end: impl Future<Output = E>,
    work: impl Future<Output = T>,
) -> Result<T, E> {
    let mut end = pin!(unconstrained(end));
    let mut work = pin!(work);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => end.as_mut().poll(cx).map(Err),
    })
    .await
}

/// Returns at an instant. Looks at the clock whenever it is polled: a busy runtime gets round to its
/// own timers late.
pub async fn wait_until(instant: Nanos) {
    let mut timer = pin!(sleep((instant - now()).into()));
    poll_fn(|cx| if now() >= instant { Poll::Ready(()) } else { timer.as_mut().poll(cx) }).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.unwrap().block_on(work)
    }

    /// Work that is never done and never waits: it stops only where the budget makes it.
    async fn busy() {
        loop {
            tokio::task::coop::consume_budget().await;
        }
    }

    #[test]
    fn busy_work_ends_at_its_instant_and_on_a_word() {
        run(async {
            let limit = now() + Nanos::from_millis(20);
            assert_eq!(run_until(wait_until(limit), busy()).await, Err(()));
            assert!(now() >= limit);
            let (tell, told) = tokio::sync::oneshot::channel();
            tell.send("stop").unwrap();
            assert_eq!(run_until(told, busy()).await, Err(Ok("stop")));
        });
    }

    #[test]
    fn what_is_done_counts_as_done() {
        run(async {
            assert_eq!(run_until(wait_until(Nanos::ZERO), async { 7 }).await, Ok(7));
        });
    }
}
