//! Lines for the user on stderr. While a screen is shown they are kept, and printed after it.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines that are kept at most while a screen is shown.
const MOST: usize = 1000;

/// What was said while a screen is shown, to be printed after it.
static KEPT: Mutex<Option<SavedNotes>> = Mutex::new(None);

#[derive(Debug, Default)]
struct SavedNotes {
    lines: Vec<String>,
    /// Lines that did not fit.
    lost: u64,
}

/// Prints a line for the user; while a screen is shown, after it. Secrets that came here by another way
/// than over the wire (a server's own log, a peer) end here.
pub(crate) fn print_note(line: &str) {
    let line = &goodput_wire::scrub_secrets(line.to_owned());
    match lock_held().as_mut() {
        None => {
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
        Some(kept) if kept.lines.len() < MOST => kept.lines.push(line.to_owned()),
        Some(kept) => kept.lost += 1,
    }
}

fn lock_held() -> MutexGuard<'static, Option<SavedNotes>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds lines back from now on.
pub(crate) fn start_holding() {
    lock_held().get_or_insert_default();
}

/// The lines that are held back, without surrounding line breaks.
pub(crate) fn held_lines() -> Vec<String> {
    let kept = lock_held();
    let lines = kept.iter().flat_map(|kept| &kept.lines).flat_map(|note| note.lines());
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Prints the lines that were held back. From now on lines are printed at once.
pub(crate) fn print_held() {
    let Some(kept) = lock_held().take() else { return };
    kept.lines.iter().for_each(|line| print_note(line));
    if kept.lost > 0 {
        print_note(&format!("{} more lines were printed and are lost", kept.lost));
    }
}
