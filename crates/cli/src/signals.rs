//! Ctrl-C once: stop sending, wait for requests in flight. Twice, or once everything has been sent:
//! stop now. Both write the report. Who cannot wait for that either leaves with a third.

use goodput_lab::{Interrupt, Stopping};
use rustix::process::{self, Pid, getppid, set_parent_process_death_signal};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::exit;
use crate::output;

pub(crate) use goodput_lab::Interrupt as Signals;
pub(crate) use goodput_lab::interrupt::Watched as Listening;

/// Holds the process that started this one, where its end is to stop this one too.
const PARENT: &str = "GOODPUT_PARENT";

/// Stops this process as Ctrl-C does once its parent ends, where the parent asked for that: a script
/// or notebook that is killed must not leave its load behind.
pub(crate) fn stop_with_parent() {
    let asked = std::env::var(PARENT).ok().and_then(|id| id.parse().ok()).and_then(Pid::from_raw);
    // Commands that this process starts inherit the variable; their parent is another.
    if asked.is_some() && asked == getppid() {
        // A system that refuses this leaves everything else as it is.
        let _ = set_parent_process_death_signal(Some(process::Signal::TERM));
    }
}

/// The user's wish to stop, by signals from the first run on until the process ends.
pub(crate) fn interrupt_on_signals() -> Interrupt {
    Interrupt::new(listen_for_signals)
}

/// Listens for signals on a thread of its own until the process ends.
fn listen_for_signals(interrupt: &Interrupt) -> std::io::Result<()> {
    let interrupt = interrupt.clone();
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
                next_signal(&mut signals).await;
                handle_stop(&interrupt);
            }
        });
    })?;
    Ok(())
}

/// Handles the user's wish to stop, by a signal or a key.
pub(crate) fn handle_stop(interrupt: &Interrupt) {
    match interrupt.escalate() {
        Stopping::Next => {
            output::print_note(
                "\nstopping: sending no more requests (press Ctrl-C again to exit at once)",
            );
        }
        Stopping::Sending => output::print_note(
            "\nstopping: waiting for answers, sending no requests (press Ctrl-C again to stop at once)",
        ),
        Stopping::AtOnce => {
            output::print_note("\nstopping at once (press Ctrl-C again to exit without a report)");
        }
        Stopping::Leave => exit_interrupted(),
    }
}

#[expect(clippy::exit, reason = "the user does not want to wait for a server that does not answer")]
fn exit_interrupted() {
    crate::terminal::abandon_screen();
    std::process::exit(i32::from(exit::INTERRUPTED));
}

/// Waits for a signal to stop, and looks after something every so often; ends too when that is
/// over.
pub(crate) fn wait_until_stopped(
    every: std::time::Duration,
    mut goes_on: impl FnMut() -> bool,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let mut signals = kinds.into_iter().map(signal).collect::<Result<Vec<_>, _>>()?;
        while goes_on() {
            if tokio::time::timeout(every, next_signal(&mut signals)).await.is_ok() {
                break;
            }
        }
        Ok(())
    })
}

/// Signals that no longer end the process; those that arrive are kept until they are read.
pub(crate) struct SignalStreams {
    runtime: tokio::runtime::Runtime,
    kinds: Vec<SignalKind>,
    signals: Vec<Signal>,
}

impl SignalStreams {
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
    pub(crate) fn for_each_signal(
        mut self,
        every: std::time::Duration,
        mut heard: impl FnMut(Option<SignalKind>) -> bool,
    ) {
        self.runtime.block_on(async {
            loop {
                let next = tokio::time::timeout(every, next_signal(&mut self.signals)).await;
                if !heard(next.ok().map(|place| self.kinds[place])) {
                    return;
                }
            }
        });
    }
}

/// The next of several signals, by its place among them.
async fn next_signal(signals: &mut [Signal]) -> usize {
    std::future::poll_fn(|cx| {
        let any = signals.iter_mut().position(|signal| signal.poll_recv(cx).is_ready());
        any.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
    })
    .await
}
