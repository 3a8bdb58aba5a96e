//! The progress line: rewritten in place on a terminal, a plain line every few seconds elsewhere.

use std::io::Write;

use goodput_clock::now;
use goodput_model::Nanos;

/// How often the line is rewritten on a terminal, and printed elsewhere.
const TERMINAL: Nanos = Nanos::from_millis(250);
const PLAIN: Nanos = Nanos::from_millis(5_000);

/// Shows a line when it is due, and notes with the line out of the way.
#[derive(Debug)]
pub struct Ticker {
    quiet: bool,
    /// Whether the line is rewritten.
    is_terminal: bool,
    /// Whether notes take the line away first.
    is_wiped: bool,
    every: Nanos,
    next: Nanos,
    /// Prints a line for the user.
    say: fn(&str),
}

impl Ticker {
    /// The line comes this often, and notes go to `say`.
    pub fn new(quiet: bool, is_terminal: bool, every: Nanos, say: fn(&str)) -> Self {
        let is_terminal = is_terminal && !quiet;
        Self { quiet, is_terminal, is_wiped: is_terminal, every, next: now() + every, say }
    }

    /// The line comes as often as its place allows.
    pub fn for_line(quiet: bool, is_rewritten: bool, say: fn(&str)) -> Self {
        Self::new(quiet, is_rewritten, if is_rewritten { TERMINAL } else { PLAIN }, say)
    }

    /// A screen is shown instead of the line, where it can be had.
    #[must_use]
    pub fn hidden_by_screen(self) -> Self {
        Self { is_wiped: false, ..self }
    }

    /// Whether the line is to be shown now.
    pub fn is_due(&mut self) -> bool {
        let present = now();
        let is_due = !self.quiet && present >= self.next;
        if is_due {
            self.next = present + self.every;
        }
        is_due
    }

    /// Shows the line.
    pub fn show(&self, line: &str) {
        let mut err = std::io::stderr().lock();
        // A terminal that went away must not end what it shows.
        let _ = if self.is_terminal {
            write!(err, "\r\x1b[2K{line}").and_then(|()| err.flush())
        } else {
            writeln!(err, "{line}")
        };
    }

    /// Says something, where progress is shown.
    pub fn print(&self, line: &str) {
        if !self.quiet {
            self.print_always(line);
        }
    }

    /// Says something, however quiet it is to be.
    pub fn print_always(&self, line: &str) {
        self.clear();
        (self.say)(line);
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if self.is_wiped {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[2K");
        }
    }
}
