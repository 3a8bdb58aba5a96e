//! [`Printer`]: what the lab tells, on stderr.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use goodput_lab::{Event, Observer};
use goodput_report::plain;

use crate::{output, typed};

/// Prints what happens. Warnings are printed even where notes are not wanted.
#[derive(Debug)]
pub(crate) struct Printer {
    quiet: bool,
    /// Where keys go, of those that were said.
    said: Mutex<BTreeSet<String>>,
}

impl Printer {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, said: Mutex::default() }
    }

    /// Says which secret goes where, once, where a file chose it and not who typed the command. Not even
    /// `--quiet` keeps it back.
    fn say_whose_key(&self, variable: &str, host: &str) {
        if ["api_key_env", "vary"].into_iter().any(typed::is_typed) {
            return;
        }
        let is_typed = typed::is_typed("target") || typed::is_typed("targets");
        let (kind, chosen) = if is_typed { ("note", "that variable") } else { ("warning", "both") };
        let line = format!("{kind}: the key in ${variable} goes to {host}: a file chose {chosen}");
        if self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(line.clone()) {
            output::note(&plain(&line));
        }
    }
}

impl Observer for Printer {
    fn event(&self, event: Event) {
        match event {
            Event::Note(_) if self.quiet => {}
            Event::Note(text) => output::note(&plain(&text)),
            Event::Warning(text) => output::note(&format!("warning: {}", plain(&text))),
            Event::KeyUsed { variable, host } => self.say_whose_key(&variable, &host),
            _ => {}
        }
    }
}
