//! The live screen: takes the terminal when the first run begins, draws what goes on from a thread
//! of its own, and gives the terminal back before anything is printed.

use std::ops::Deref;
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_lab::{Interrupt, UpcomingRun};
use goodput_model::Nanos;
use goodput_monitor::{Keys, LatestSnapshot, LiveRunView, ScreenRun};

use crate::args::ScreenName;
use crate::terminal::{self, Canvas, Whose};
use crate::{notes, output, signals};

/// Between two pictures, and after a key.
const EVERY: Nanos = Nanos::from_millis(200);
const AFTER_KEY: Nanos = Nanos::from_millis(100);

/// How long a key is waited for before the thread looks whether it should end.
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
    /// Chooses what was requested, as far as the terminal allows it.
    pub(crate) fn new(
        how: ScreenName,
        quiet: bool,
        verb: &'static str,
        interrupt: &Interrupt,
    ) -> Self {
        use std::io::IsTerminal;
        match how {
            _ if quiet => Self::None,
            ScreenName::Auto if terminal::can_show_screen() => {
                Self::Screen(Screen(LatestSnapshot::new(verb, interrupt)))
            }
            ScreenName::Auto | ScreenName::Line if std::io::stderr().is_terminal() => Self::Line,
            _ => Self::Lines,
        }
    }

    /// Whether a line is rewritten. A screen that could not be had leaves the terminal to the line.
    pub(crate) fn rewrites_line(&self) -> bool {
        matches!(self, Self::Line | Self::Screen(_))
    }

    /// The screen, where there is one.
    pub(crate) fn screen(&self) -> Option<&Screen> {
        if let Self::Screen(screen) = self { Some(screen) } else { None }
    }
}

/// A board on the terminal.
#[derive(Debug, Clone)]
pub(crate) struct Screen(LatestSnapshot);

impl Deref for Screen {
    type Target = LatestSnapshot;

    fn deref(&self) -> &LatestSnapshot {
        &self.0
    }
}

impl Screen {
    /// Shows a run from here on. None if the terminal cannot be had.
    pub(crate) fn follow(&self, run: &UpcomingRun<'_>) -> Option<ScreenRun> {
        let following = self.0.follow(run);
        self.ensure_drawing().then_some(following)
    }

    /// Shows traffic that is not ours as it is now. Whether the terminal can be had.
    pub(crate) fn show_traffic(&self, title: String, run: LiveRunView) -> bool {
        self.0.set_traffic(title, run);
        self.ensure_drawing()
    }

    /// Whether there is a thread that draws, started now where there was none.
    fn ensure_drawing(&self) -> bool {
        let own = self.clone();
        let builder = std::thread::Builder::new().name("screen".to_owned());
        terminal::ensure_drawing(|canvas| builder.spawn(move || own.draw_until_over(canvas)))
    }

    /// Draws until the screen is closed or the terminal is gone.
    fn draw_until_over(&self, mut canvas: Canvas) {
        let (mut keys, mut next) = (Keys::default(), now());
        while !terminal::is_drawing_over() {
            let whose = *terminal::lock_owner();
            if whose == Whose::Back {
                return;
            }
            if whose == Whose::Lent {
                canvas.mark_stale();
                pause(Nanos::from_millis(20));
                continue;
            }
            if now() >= next {
                next = now() + EVERY;
                let view = self.view(&keys, now(), notes::held_lines(), output::has_color());
                if canvas.draw(|frame| goodput_monitor::draw_screen(&view, frame)).is_err() {
                    break;
                }
            }
            match keys.wait_for_key(LOOK, || signals::handle_stop(self.interrupt())) {
                Ok(true) => next = next.min(now() + AFTER_KEY),
                Ok(false) => {}
                // Where no key is read, Ctrl-C must be a signal again.
                Err(_) => break,
            }
        }
        // Tried once more at the end where the terminal does not take it now.
        terminal::give_back_terminal();
    }
}
