//! Ctrl-C once: stop sending, wait for what is under way. Twice, or once everything has been sent:
//! stop now. Both write the report. Who cannot wait for that either leaves with a third.

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
    /// The runs under way, each with a number.
    controls: Arc<Mutex<Vec<(u64, Control)>>>,
}

/// A run that listens, until this is dropped.
pub(crate) struct Listening(Signals, u64);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.runs().retain(|run| run.0 != self.1);
    }
}

/// How long the user waits for something beside a run that may take any time.
pub(crate) struct Patience {
    control: Control,
    /// The user had stopped the run before this began; then only a further signal ends it.
    was_stopped: bool,
    _listening: Listening,
}

impl Patience {
    /// From now on.
    pub(crate) fn new(signals: &Signals) -> std::io::Result<Self> {
        let (control, was_stopped) = (Control::new(), signals.is_interrupted());
        let listening = signals.watch(&control)?;
        Ok(Self { control, was_stopped, _listening: listening })
    }

    /// Whether the user does not want to wait any longer.
    pub(crate) fn is_over(&self) -> bool {
        if self.was_stopped { self.control.is_aborting() } else { self.control.is_stopping() }
    }
}

impl Signals {
    /// Whether the user has stopped the run.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// From now on signals stop this run; where there was one already, it sends nothing.
    pub(crate) fn watch(&self, control: &Control) -> std::io::Result<Listening> {
        let number = {
            let mut runs = self.runs();
            let number = runs.last().map_or(0, |last| last.0 + 1);
            runs.push((number, control.clone()));
            number
        };
        let listening = Listening(self.clone(), number);
        self.listen_once()?;
        if self.is_interrupted() {
            control.stop();
        }
        Ok(listening)
    }

    /// From now on a signal does not end the process.
    pub(crate) fn listen_once(&self) -> std::io::Result<()> {
        if self.listening.set(()).is_ok() { self.listen() } else { Ok(()) }
    }

    fn runs(&self) -> MutexGuard<'_, Vec<(u64, Control)>> {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens for signals on a thread of its own until the process ends.
    fn listen(&self) -> std::io::Result<()> {
        let this = self.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        // Before the thread starts: a signal that comes meanwhile would end the process.
        let mut signals = {
            let _inside = runtime.enter();
            kinds.into_iter().map(signal).collect::<std::io::Result<Vec<_>>>()?
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(async move {
                loop {
                    next(&mut signals).await;
                    this.hear();
                }
            });
        })?;
        Ok(())
    }

    /// The user wants to stop, by a signal or a key.
    pub(crate) fn hear(&self) {
        let is_first = !self.interrupted.swap(true, Ordering::Relaxed);
        let runs = self.runs().clone();
        // Of runs that go on at once, all stop.
        if runs.is_empty() {
            // Between two runs: what there is of them is on disk.
            if !is_first {
                leave();
            }
            output::note("\nstopping: nothing more will be sent (again to leave at once)");
        } else if runs.iter().any(|(_, run)| !run.is_draining() && !run.is_stopping()) {
            output::note(
                "\nstopping: no more requests; waiting for answers (again to stop at once)",
            );
            for (_, run) in &runs {
                run.stop();
            }
        } else if runs.iter().all(|(_, run)| run.is_aborting()) {
            leave();
        } else {
            output::note("\nstopping at once (again to leave without a report)");
            for (_, run) in &runs {
                run.abort();
            }
        }
    }
}

#[expect(clippy::exit, reason = "the user does not want to wait for a server that does not answer")]
fn leave() {
    crate::terminal::abandon();
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

/// Signals that end the process no longer; those that come are kept until somebody listens.
pub(crate) struct Ears {
    runtime: tokio::runtime::Runtime,
    kinds: Vec<SignalKind>,
    signals: Vec<Signal>,
}

impl Ears {
    /// From now on.
    pub(crate) fn new(kinds: &[SignalKind]) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signals = {
            let _inside = runtime.enter();
            kinds.iter().map(|kind| signal(*kind)).collect::<Result<Vec<_>, _>>()?
        };
        Ok(Self { runtime, kinds: kinds.to_vec(), signals })
    }

    /// Hears each signal, whatever it means; without one, looks up every so often. Goes on while
    /// `heard` says so.
    pub(crate) fn hear(
        mut self,
        every: std::time::Duration,
        mut heard: impl FnMut(Option<SignalKind>) -> bool,
    ) {
        self.runtime.block_on(async {
            loop {
                let next = tokio::time::timeout(every, next(&mut self.signals)).await;
                if !heard(next.ok().map(|place| self.kinds[place])) {
                    return;
                }
            }
        });
    }
}

/// The next of several signals, by its place among them.
async fn next(signals: &mut [Signal]) -> usize {
    std::future::poll_fn(|cx| {
        let any = signals.iter_mut().position(|signal| signal.poll_recv(cx).is_ready());
        any.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_begins_after_the_stop_sends_nothing() {
        let signals = Signals::default();
        // No handlers in the process that tests.
        signals.listening.set(()).unwrap();
        let (before, after) = (Control::new(), Control::new());
        let _first = signals.watch(&before).unwrap();
        assert!(!before.is_stopping());
        signals.hear();
        let _second = signals.watch(&after).unwrap();
        assert!(before.is_stopping() && after.is_stopping());
    }

    #[test]
    fn who_has_stopped_the_run_can_still_end_what_follows() {
        let signals = Signals::default();
        signals.listening.set(()).unwrap();
        let before = Patience::new(&signals).unwrap();
        assert!(!before.is_over());
        signals.hear();
        assert!(before.is_over());
        drop(before);
        // What tidies up is not ended by the signal that ended the run.
        let after = Patience::new(&signals).unwrap();
        assert!(!after.is_over());
        signals.hear();
        assert!(after.is_over());
    }
}
