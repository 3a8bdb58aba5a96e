//! [`Interrupt`]: the user's wish to stop, and what it means for the runs in flight.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use goodput_engine::RunControl;

/// Begins to listen for the user's wish, for example for signals.
type Listen = dyn Fn(&Interrupt) -> io::Result<()> + Send + Sync;

/// The user's wish to stop. Clones share it.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<InterruptState>);

#[derive(Default)]
struct InterruptState {
    is_set: AtomicBool,
    is_listening: OnceLock<()>,
    listen: Option<Box<Listen>>,
    /// The runs in flight, each with a number.
    controls: Mutex<Vec<(u64, RunControl)>>,
}

impl std::fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Interrupt").field(&self.is_interrupted()).finish()
    }
}

/// What one more wish to stop meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopping {
    /// No run is in flight: nothing more is sent.
    Next,
    /// No more requests; answers are waited for.
    Sending,
    /// Requests in flight are cut off.
    AtOnce,
    /// Everything was stopped before: the user wants to leave without a report.
    Leave,
}

/// A run that stops with the others, until this is dropped.
pub struct Watched(Interrupt, u64);

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.lock_runs().retain(|run| run.0 != self.1);
    }
}

impl Interrupt {
    /// An interrupt that begins to listen when the first run needs it: until then a signal ends the
    /// process as usual.
    pub fn new(listen: impl Fn(&Self) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(InterruptState {
            listen: Some(Box::new(listen)),
            ..InterruptState::default()
        }))
    }

    /// Whether the user wants to stop.
    pub fn is_interrupted(&self) -> bool {
        self.0.is_set.load(Ordering::Relaxed)
    }

    /// From now on a wish to stop also stops this run. After an earlier wish it sends nothing.
    pub fn watch(&self, control: &RunControl) -> io::Result<Watched> {
        let number = {
            let mut runs = self.lock_runs();
            let number = runs.last().map_or(0, |last| last.0 + 1);
            runs.push((number, control.clone()));
            number
        };
        let watched = Watched(self.clone(), number);
        self.listen_once()?;
        if self.is_interrupted() {
            control.stop();
        }
        Ok(watched)
    }

    /// From now on a signal does not end the process.
    pub fn listen_once(&self) -> io::Result<()> {
        match &self.0.listen {
            Some(listen) if self.0.is_listening.set(()).is_ok() => listen(self),
            _ => Ok(()),
        }
    }

    /// The user wants to stop, by a signal or a key. Of runs that go on at once, all stop.
    pub fn escalate(&self) -> Stopping {
        let is_first = !self.0.is_set.swap(true, Ordering::Relaxed);
        let runs = self.lock_runs().clone();
        if runs.is_empty() {
            // Between two runs: what there is of them is on disk.
            return if is_first { Stopping::Next } else { Stopping::Leave };
        }
        if runs.iter().any(|(_, run)| !run.is_draining() && !run.is_stopping()) {
            for (_, run) in &runs {
                run.stop();
            }
            return Stopping::Sending;
        }
        if runs.iter().all(|(_, run)| run.is_aborting()) {
            return Stopping::Leave;
        }
        for (_, run) in &runs {
            run.abort();
        }
        Stopping::AtOnce
    }

    fn lock_runs(&self) -> MutexGuard<'_, Vec<(u64, RunControl)>> {
        self.0.controls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long the user waits for something around a run that may take any time.
pub struct Patience {
    control: RunControl,
    /// The user had stopped the run before this began; then only a further wish ends it.
    was_stopped: bool,
    _watched: Watched,
}

impl Patience {
    /// From now on.
    pub fn new(interrupt: &Interrupt) -> io::Result<Self> {
        let (control, was_stopped) = (RunControl::new(), interrupt.is_interrupted());
        let watched = interrupt.watch(&control)?;
        Ok(Self { control, was_stopped, _watched: watched })
    }

    /// Whether the user does not want to wait any longer.
    pub fn has_run_out(&self) -> bool {
        if self.was_stopped { self.control.is_aborting() } else { self.control.is_stopping() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_begins_after_the_stop_sends_nothing() {
        let interrupt = Interrupt::default();
        let (before, after) = (RunControl::new(), RunControl::new());
        let _first = interrupt.watch(&before).unwrap();
        assert!(!before.is_stopping());
        assert_eq!(interrupt.escalate(), Stopping::Sending);
        let _second = interrupt.watch(&after).unwrap();
        assert!(before.is_stopping() && after.is_stopping());
    }

    #[test]
    fn who_has_stopped_the_run_can_still_end_what_follows() {
        let interrupt = Interrupt::default();
        let before = Patience::new(&interrupt).unwrap();
        assert!(!before.has_run_out());
        interrupt.escalate();
        assert!(before.has_run_out());
        drop(before);
        // What tidies up is not ended by the signal that ended the run.
        let after = Patience::new(&interrupt).unwrap();
        assert!(!after.has_run_out());
        interrupt.escalate();
        assert!(after.has_run_out());
    }

    #[test]
    fn each_further_wish_is_more_urgent() {
        let interrupt = Interrupt::default();
        let control = RunControl::new();
        let watched = interrupt.watch(&control).unwrap();
        let wishes = [interrupt.escalate(), interrupt.escalate(), interrupt.escalate()];
        assert_eq!(wishes, [Stopping::Sending, Stopping::AtOnce, Stopping::Leave]);
        drop(watched);
        assert_eq!(interrupt.escalate(), Stopping::Leave);
        assert_eq!(Interrupt::default().escalate(), Stopping::Next);
    }
}
