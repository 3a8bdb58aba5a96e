//! Ctrl-C once: stop sending, wait for what is under way. Twice, or once everything has been sent:
//! stop now. Both write the report.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use goodput_engine::Control;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::exit;
use crate::output;

/// The user's wish to stop, heard from the first run on until the process ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals {
    interrupted: Arc<AtomicBool>,
    listening: Arc<OnceLock<()>>,
    /// The run under way.
    control: Arc<Mutex<Option<Control>>>,
}

/// A run that listens, until this is dropped.
pub(crate) struct Listening(Signals);

impl Drop for Listening {
    fn drop(&mut self) {
        *self.0.run() = None;
    }
}

impl Signals {
    /// Whether the user has stopped the run.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// From now on signals stop this run.
    pub(crate) fn watch(&self, control: &Control) -> std::io::Result<Listening> {
        *self.run() = Some(control.clone());
        if self.listening.set(()).is_ok() {
            self.listen()?;
        }
        Ok(Listening(self.clone()))
    }

    fn run(&self) -> MutexGuard<'_, Option<Control>> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens for signals on a thread of its own until the process ends.
    fn listen(&self) -> std::io::Result<()> {
        let this = self.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(async move {
                let kinds =
                    [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
                let Ok(mut signals) = kinds.into_iter().map(signal).collect::<Result<Vec<_>, _>>()
                else {
                    return;
                };
                loop {
                    next(&mut signals).await;
                    this.hear();
                }
            });
        })?;
        Ok(())
    }

    fn hear(&self) {
        let is_first = !self.interrupted.swap(true, Ordering::Relaxed);
        let run = self.run().clone();
        match run {
            // Between two runs: what there is of them is on disk.
            None if is_first => {
                output::note("\nstopping: nothing more will be sent (again to leave at once)");
            }
            None => leave(),
            Some(run) if !run.is_draining() && !run.is_stopping() => {
                output::note(
                    "\nstopping: no more requests; waiting for answers (again to stop at once)",
                );
                run.stop();
            }
            Some(run) => {
                output::note("\nstopping at once");
                run.abort();
            }
        }
    }
}

#[expect(clippy::exit, reason = "the user does not want to wait for a server that does not answer")]
fn leave() {
    std::process::exit(i32::from(exit::INTERRUPTED));
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
