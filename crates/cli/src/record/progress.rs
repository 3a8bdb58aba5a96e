//! What the user sees of a recording: one line that is rewritten on a terminal, a plain line now and
//! then elsewhere, and a summary.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use goodput_clock::now;
use goodput_live::Tally;
use goodput_model::Nanos;

use super::counts::{Counts, Lost, get};
use super::scribe::Written;
use crate::live::Crowd;
use crate::output;

/// How often the line is rewritten on a terminal, and printed elsewhere.
const TERMINAL: Nanos = Nanos::from_millis(1_000);
const PLAIN: Nanos = Nanos::from_millis(30_000);

/// Files that are named in the summary, at most.
const MOST_NAMED: usize = 5;

/// The progress line.
pub(super) struct Progress {
    quiet: bool,
    is_terminal: bool,
    begin: Nanos,
    next: Nanos,
    tally: Arc<Tally>,
    counts: Arc<Counts>,
}

impl Progress {
    pub(super) fn new(quiet: bool, tally: &Arc<Tally>, counts: &Arc<Counts>) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let begin = now();
        let next = begin + if is_terminal { TERMINAL } else { PLAIN };
        let (tally, counts) = (Arc::clone(tally), Arc::clone(counts));
        Self { quiet, is_terminal, begin, next, tally, counts }
    }

    /// Shows the line, if it is time.
    pub(super) fn look(&mut self, present: Nanos) {
        if self.quiet || present < self.next {
            return;
        }
        self.next = present + if self.is_terminal { TERMINAL } else { PLAIN };
        let text = self.line(present - self.begin);
        let mut err = std::io::stderr().lock();
        // A terminal that went away must not end the proxy.
        let _ = if self.is_terminal {
            write!(err, "\r\x1b[2K{text}").and_then(|()| err.flush())
        } else {
            writeln!(err, "{text}")
        };
    }

    fn line(&self, elapsed: Nanos) -> String {
        let refused = if self.counts.is_refused.load(std::sync::atomic::Ordering::Relaxed) {
            " · the disk refuses"
        } else {
            ""
        };
        format!(
            "{:.0} s · {} requests · {} in flight · {} rows · {} lost{refused}",
            elapsed.as_secs(),
            self.tally.requests.get(),
            self.tally.in_flight.get(),
            get(&self.counts.rows),
            self.counts.lost()
        )
    }

    /// Says something, with the line out of the way.
    pub(super) fn note(&self, line: &str) {
        self.clear();
        output::note(line);
    }

    /// Takes the line away.
    pub(super) fn clear(&self) {
        if self.is_terminal && !self.quiet {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[2K");
        }
    }
}

/// What was recorded, line by line; foreign text is in it.
pub(super) fn summary(
    (counts, written): (&Counts, &Written),
    took: Nanos,
    shown: &str,
) -> Vec<String> {
    let (asked, rows) = (get(&counts.asked), get(&counts.rows));
    let mut lines = vec![format!("recorded {rows} of {asked} requests in {:.1} s", took.as_secs())];
    for (why, _, meaning) in Lost::ALL {
        match counts.lost_by(why) {
            0 => {}
            lost => lines.push(format!("  lost: {lost} ({meaning})")),
        }
    }
    let left_out = get(&counts.left_out);
    if left_out > 0 {
        lines.push(format!("  left out: {left_out} (by --share, or past the limit)"));
    }
    let other = get(&counts.other);
    if other > 0 {
        lines.push(format!("  passed on only: {other} to paths that are no API"));
    }
    if !written.models.is_empty() {
        let models: Vec<String> = written
            .models
            .iter()
            .map(|(model, requests)| format!("{model} ({requests})"))
            .collect();
        lines.push(format!("  models: {}", models.join(", ")));
    }
    if written.sessions > 0 {
        lines.push(format!("  sessions: {}", written.sessions));
    }
    let (files, bytes) = (&written.files, get(&counts.bytes));
    for file in files.iter().take(MOST_NAMED) {
        lines.push(format!("  file: {}", file.display()));
    }
    if files.len() > MOST_NAMED {
        let last = files.last().map(|file| file.display().to_string()).unwrap_or_default();
        lines.push(format!("  and {} more, up to {last}", files.len() - MOST_NAMED));
    }
    lines.push(format!("  size: {bytes} bytes"));
    if let Some(file) = files.first().filter(|_| rows > 0) {
        let file = file.display();
        lines.push(format!("look at it: goodput workload show --trace {file}"));
        lines.push(format!("replay it:  goodput run {shown} --trace {file}"));
    }
    lines
}

/// The same for programs.
pub(super) fn json((counts, written): (&Counts, &Written), took: Nanos, crowd: &Crowd) -> String {
    let lost: serde_json::Map<_, _> = Lost::ALL
        .into_iter()
        .map(|(why, name, _)| (name.to_owned(), counts.lost_by(why).into()))
        .collect();
    let files: Vec<_> = written.files.iter().map(|file| file.display().to_string()).collect();
    let summary = serde_json::json!({
        "duration_s": took.as_secs(),
        "requests": get(&counts.asked),
        "rows": get(&counts.rows),
        "lost": lost,
        "left_out": get(&counts.left_out),
        "other_paths": get(&counts.other),
        "models": written.models,
        "sessions": written.sessions,
        "connections": crowd.json(),
        "files": files,
        "bytes": get(&counts.bytes),
    });
    format!("{summary:#}\n")
}
