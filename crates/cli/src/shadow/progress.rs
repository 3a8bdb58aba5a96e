//! The progress line of a shadow, and what is said when mirroring stops or goes on.

use std::io::Write;

use goodput_clock::now;
use goodput_live::Standing;
use goodput_model::Nanos;
use goodput_screen::{Phase, Run};

use super::Live;
use crate::args::ShownArgs;
use crate::screen::{Progress as How, Screen};
use crate::signals::Signals;
use crate::{output, terminal};

/// How often the line is rewritten on a terminal, and printed elsewhere.
const TERMINAL: Nanos = Nanos::from_millis(250);
const PLAIN: Nanos = Nanos::from_millis(5_000);

/// Says how far it is.
pub(super) struct Progress {
    quiet: bool,
    screen: Option<Screen>,
    /// The user's wish to stop, by a key of the screen.
    signals: Signals,
    is_rewritten: bool,
    next: Nanos,
    standing: Standing,
}

impl Progress {
    pub(super) fn new(args: &ShownArgs) -> Self {
        let signals = Signals::default();
        let how = How::of(args.screen, args.quiet, "shadow", &signals);
        // A screen that could not be had leaves the terminal to the line.
        let is_rewritten = matches!(how, How::Line | How::Screen(_));
        let next = now() + if is_rewritten { TERMINAL } else { PLAIN };
        let (quiet, screen) = (args.quiet, how.screen().cloned());
        Self { quiet, screen, signals, is_rewritten, next, standing: Standing::Going }
    }

    /// The screen, where there is one.
    pub(super) fn screen(&self) -> Option<Screen> {
        self.screen.clone()
    }

    /// Whether a key said that it shall end.
    pub(super) fn is_stopped(&self) -> bool {
        self.signals.is_interrupted()
    }

    /// Says something, whatever was asked for: somebody waits for it.
    pub(super) fn note(&self, line: &str) {
        self.wipe();
        output::note(line);
    }

    /// Says something, where progress is shown.
    pub(super) fn say(&self, line: &str) {
        if !self.quiet {
            self.note(line);
        }
    }

    /// Says what has changed, and how far it is where that is due.
    pub(super) fn show(&mut self, live: &Live) {
        let standing = live.mirror.tally().standing();
        if std::mem::replace(&mut self.standing, standing) != standing {
            self.note(match standing {
                Standing::Going => "mirroring goes on",
                Standing::SwitchedOff => "mirroring is switched off (SIGUSR1 switches it on again)",
                Standing::Paused => {
                    "warning: mirroring paused: too many of the candidate's last answers failed; \
                     one request tries it again after a while (--stop-at-errors, --retry-after)"
                }
            });
        }
        if self.quiet || now() < self.next {
            return;
        }
        self.next = now() + if self.is_rewritten { TERMINAL } else { PLAIN };
        let text = in_words(live);
        if self.screen.as_ref().is_some_and(|screen| screen.show_traffic(text.clone(), view(live)))
        {
            return;
        }
        let mut err = std::io::stderr().lock();
        // A terminal that went away must not end anything.
        let _ = if self.is_rewritten {
            write!(err, "\r\x1b[2K{text}").and_then(|()| err.flush())
        } else {
            writeln!(err, "{text}")
        };
    }

    /// Nothing more comes.
    pub(super) fn end(&self) {
        terminal::close();
        self.wipe();
    }

    fn wipe(&self) {
        if self.is_rewritten && self.screen.is_none() {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[2K");
        }
    }
}

fn in_words(under_way: &Live) -> String {
    let (tally, seen) = (under_way.mirror.tally(), under_way.board.read());
    let dropped: u64 = tally.dropped().map(|(_, count)| count).sum();
    let mut line = format!(
        "{:6.1} s · {} passed · {} mirrored · {} pairs · {dropped} dropped · {} candidate errors",
        (now() - under_way.began).as_secs(),
        under_way.passed(),
        tally.sent(),
        seen.pairs,
        tally.failed(),
    );
    match tally.standing() {
        Standing::Going => {}
        Standing::SwitchedOff => line.push_str(" · switched off"),
        Standing::Paused => line.push_str(" · paused"),
    }
    if !seen.in_words.is_empty() {
        line.push_str(" · so far ");
        line.push_str(&seen.in_words);
    }
    line
}

/// The same for a screen: what passes, with the latencies of both sides.
fn view(under_way: &Live) -> Run {
    let elapsed = now() - under_way.began;
    let tally = under_way.mirror.tally();
    Run {
        label: "live traffic".to_owned(),
        phase: Phase::Measured,
        elapsed_s: elapsed.as_secs(),
        in_flight: under_way.proxy.in_flight.get(),
        sent: under_way.passed(),
        ok: tally.ok(),
        failed: tally.failed(),
        latencies: under_way.board.latencies(elapsed),
        ..Run::default()
    }
}
