//! [`Printer`]: prints the lab's events on stderr.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use goodput_lab::{Event, Observer};
use goodput_report::escape_control;

use crate::{explicit_flags, output, terminal};

/// Prints what happens. Warnings are printed even where notes are not wanted.
#[derive(Debug)]
pub(crate) struct Printer {
    pub(crate) quiet: bool,
    /// Notes that are printed only once and were printed already.
    said: Mutex<BTreeSet<String>>,
}

impl Printer {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, said: Mutex::default() }
    }

    /// Prints an event. Returns whether there was anything to print.
    pub(crate) fn print(&self, event: Event) -> bool {
        let line = match event {
            Event::Note(_) | Event::NoteOnce(_) if self.quiet => return false,
            Event::Note(text) | Event::Notice(text) => escape_control(&text),
            Event::NoteOnce(text) if self.is_new(&text) => escape_control(&text),
            Event::Warning(text) => format!("warning: {}", escape_control(&text)),
            Event::KeyUsed { variable, host } => match self.key_note(&variable, &host) {
                Some(line) => escape_control(&line),
                None => return false,
            },
            _ => return false,
        };
        output::print_note(&line);
        true
    }

    fn is_new(&self, line: &str) -> bool {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(line.to_owned())
    }

    /// Says once which secret goes where, if a file names it and not the command line. `--quiet`
    /// does not silence it.
    fn key_note(&self, variable: &str, host: &str) -> Option<String> {
        if ["api_key_env", "vary"].into_iter().any(explicit_flags::is_typed) {
            return None;
        }
        let is_typed = explicit_flags::is_typed("target") || explicit_flags::is_typed("targets");
        let (kind, chosen) = if is_typed { ("note", "that variable") } else { ("warning", "both") };
        let line = format!("{kind}: the key in ${variable} goes to {host}: a file names {chosen}");
        self.is_new(&line).then_some(line)
    }
}

impl Observer for Printer {
    fn event(&self, event: Event) {
        self.print(event);
    }

    fn lend_terminal(&self) -> Box<dyn Any> {
        Box::new(terminal::lend_terminal())
    }
}
