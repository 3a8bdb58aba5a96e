//! The live screen: takes the terminal when the first run begins, draws what goes on from a thread
//! of its own, and gives the terminal back before anything is printed.
//!
//! Workers are not touched. Counters are those of the engine; what a request says in the end is
//! added up on the collector's thread; a few times a second the screen's thread looks at both.

mod campaign;
mod histogram;
mod keys;
mod tally;
mod view;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_lab::{Interrupt, Observation, RunHandle, RunSink, RunView};
use goodput_model::{Nanos, RequestRecord};
use goodput_monitor::{Campaign, Run as ScreenRun};

use crate::args::ScreenName;
use crate::notes;
use crate::signals;
use crate::terminal::{self, Canvas, Whose};
use keys::Keys;

pub(crate) use tally::Tally;

/// Between two pictures, and after a key.
const EVERY: Nanos = Nanos::from_millis(200);
const AFTER_KEY: Nanos = Nanos::from_millis(100);

/// How long a key is waited for before the thread looks whether it shall end.
const LOOK: Duration = Duration::from_millis(50);

/// How progress is shown.
#[derive(Debug, Clone)]
pub(crate) enum Progress {
    /// Not at all.
    None,
    /// A line every few seconds.
    Lines,
    /// One line that is rewritten.
    Line,
    /// On a screen of its own.
    Screen(Screen),
}

impl Progress {
    /// As it was asked for, and as the terminal allows.
    pub(crate) fn of(
        how: ScreenName,
        quiet: bool,
        verb: &'static str,
        interrupt: &Interrupt,
    ) -> Self {
        use std::io::IsTerminal;
        match how {
            _ if quiet => Self::None,
            ScreenName::Auto if terminal::is_fit() => Self::Screen(Screen::new(verb, interrupt)),
            ScreenName::Auto | ScreenName::Line if std::io::stderr().is_terminal() => Self::Line,
            _ => Self::Lines,
        }
    }

    /// The screen, where there is one.
    pub(crate) fn screen(&self) -> Option<&Screen> {
        if let Self::Screen(screen) = self { Some(screen) } else { None }
    }
}

/// What is on the screen.
#[derive(Debug, Clone)]
pub(crate) struct Screen(Arc<Shown>);

#[derive(Debug)]
struct Shown {
    verb: &'static str,
    interrupt: Interrupt,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The run under way, or the last.
    run: Option<Arc<Run>>,
    campaign: Option<Campaign>,
    /// A title and what stands in the place of a run, where the traffic is not ours.
    traffic: Option<(String, ScreenRun)>,
}

/// A run on the screen.
#[derive(Debug)]
struct Run {
    facts: view::Facts,
    handle: RunHandle,
    seen: Mutex<view::Seen>,
}

/// A run that is shown while it lasts.
#[derive(Debug)]
pub(crate) struct Following(Arc<Run>);

impl Screen {
    fn new(verb: &'static str, interrupt: &Interrupt) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Shown { verb, interrupt: interrupt.clone(), state }))
    }

    /// Shows a run from here on. None where the terminal cannot be had.
    pub(crate) fn follow(&self, run: &RunView<'_>) -> Option<Following> {
        let run = Arc::new(Run {
            facts: view::Facts::new(run),
            handle: run.handle.clone(),
            seen: Mutex::new(view::Seen::new(run.plan)),
        });
        lock(&self.0.state).run = Some(Arc::clone(&run));
        self.is_drawn().then_some(Following(run))
    }

    /// Shows traffic that is not ours as it is now. Whether the terminal can be had.
    pub(crate) fn show_traffic(&self, title: String, run: ScreenRun) -> bool {
        lock(&self.0.state).traffic = Some((title, run));
        self.is_drawn()
    }

    /// What the runs are a part of.
    pub(crate) fn set_campaign(&self, campaign: Campaign) {
        lock(&self.0.state).campaign = Some(campaign);
    }

    /// Whether there is a thread that draws, started now where there was none.
    fn is_drawn(&self) -> bool {
        let own = self.clone();
        let builder = std::thread::Builder::new().name("screen".to_owned());
        terminal::is_drawn(|canvas| builder.spawn(move || own.show(canvas)))
    }

    /// Draws until it is over, or the terminal went away.
    fn show(&self, mut canvas: Canvas) {
        let (mut keys, mut next) = (Keys::default(), now());
        while !terminal::is_over() {
            let whose = *terminal::hold();
            if whose == Whose::Back {
                return;
            }
            if whose == Whose::Lent {
                canvas.spoil();
                pause(Nanos::from_millis(20));
                continue;
            }
            if now() >= next {
                next = now() + EVERY;
                let view = view::of(&self.0, &keys, now());
                if canvas.draw(|frame| goodput_monitor::draw(&view, frame)).is_err() {
                    break;
                }
            }
            match keys.wait(LOOK, || signals::hear(&self.0.interrupt)) {
                Ok(true) => next = next.min(now() + AFTER_KEY),
                Ok(false) => {}
                // Where no key is read, Ctrl-C must be a signal again.
                Err(_) => break,
            }
        }
        // Tried once more at the end where the terminal does not take it now.
        terminal::give_back();
    }
}

impl RunSink for Following {
    fn record(&mut self, record: &RequestRecord) {
        lock(&self.0.seen).tally.add(record);
    }

    fn observe(&mut self, seen: &Observation<'_>) {
        let Observation { at, beats, scrapes, gpus } = *seen;
        let handle = &self.0.handle;
        let snapshot = handle.live.of_all();
        let mut seen = lock(&self.0.seen);
        seen.tally.hear(at, &lock(&handle.others));
        seen.epoch = Some(now() - at);
        seen.course.look(at, snapshot.started);
        seen.tally.look(scrapes, gpus);
        seen.tally.tick(at, beats, snapshot);
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let mut seen = lock(&self.0.seen);
        seen.took = seen.epoch.map(|epoch| now() - epoch);
        seen.is_over = true;
    }
}

/// What a thread that panicked has left can still be shown.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lines that were said while the screen was there, the latest last.
fn notes() -> Vec<String> {
    notes::kept()
}
