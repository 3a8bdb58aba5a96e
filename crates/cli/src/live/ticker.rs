//! The progress line of live traffic: rewritten on a terminal, a plain line now and then elsewhere.

use std::io::Write;

use goodput_clock::now;
use goodput_model::Nanos;

use crate::output;

/// Shows a line when it is due, and notes with the line out of the way.
#[derive(Debug)]
pub(crate) struct Ticker {
    quiet: bool,
    /// Whether the line is rewritten.
    is_terminal: bool,
    /// Whether notes take the line away first.
    is_wiped: bool,
    every: Nanos,
    next: Nanos,
}

impl Ticker {
    /// The line comes this often.
    pub(crate) fn new(quiet: bool, is_terminal: bool, every: Nanos) -> Self {
        let is_terminal = is_terminal && !quiet;
        Self { quiet, is_terminal, is_wiped: is_terminal, every, next: now() + every }
    }

    /// A screen is shown instead of the line, where it can be had.
    pub(crate) fn behind_screen(self) -> Self {
        Self { is_wiped: false, ..self }
    }

    /// Whether the line is to be shown now.
    pub(crate) fn is_due(&mut self) -> bool {
        let present = now();
        let is_due = !self.quiet && present >= self.next;
        if is_due {
            self.next = present + self.every;
        }
        is_due
    }

    /// Shows the line.
    pub(crate) fn show(&self, line: &str) {
        let mut err = std::io::stderr().lock();
        // A terminal that went away must not end the proxy.
        let _ = if self.is_terminal {
            write!(err, "\r\x1b[2K{line}").and_then(|()| err.flush())
        } else {
            writeln!(err, "{line}")
        };
    }

    /// Says something, where progress is shown.
    pub(crate) fn say(&self, line: &str) {
        if !self.quiet {
            self.note(line);
        }
    }

    /// Says something, however quiet it is to be.
    pub(crate) fn note(&self, line: &str) {
        self.wipe();
        output::note(line);
    }

    /// Takes the line away.
    pub(crate) fn wipe(&self) {
        if self.is_wiped {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[2K");
        }
    }
}
