//! Ctrl-C once: stop sending, wait for what is under way. Twice, or once everything has been sent:
//! stop now. Both write the report.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use goodput_engine::Control;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::output;

/// Whether the user has stopped the run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Listens for signals on a thread of its own until the process ends.
pub(crate) fn listen(control: Control) -> std::io::Result<Interrupted> {
    let interrupted = Interrupted::default();
    let flag = interrupted.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async move {
            let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
            let Ok(mut signals) = kinds.into_iter().map(signal).collect::<Result<Vec<_>, _>>()
            else {
                return;
            };
            next(&mut signals).await;
            flag.0.store(true, Ordering::Relaxed);
            if !control.is_draining() {
                output::note(
                    "\nstopping: no more requests; waiting for answers (again to stop at once)",
                );
                control.stop();
                next(&mut signals).await;
            }
            output::note("\nstopping at once");
            control.abort();
        });
    })?;
    Ok(interrupted)
}

/// Waits for a signal to stop, and looks after something every so often; ends too when that is
/// over.
pub(crate) fn until_stopped(
    every: std::time::Duration,
    mut goes_on: impl FnMut() -> bool,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let mut signals = kinds.into_iter().map(signal).collect::<Result<Vec<_>, _>>()?;
        while goes_on() {
            if tokio::time::timeout(every, next(&mut signals)).await.is_ok() {
                break;
            }
        }
        Ok(())
    })
}

/// The next of several signals.
async fn next(signals: &mut [Signal]) {
    std::future::poll_fn(|cx| {
        let any = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
        if any { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
