//! What a client tells of a run while it goes on.

use std::sync::{Mutex, PoisonError};

use goodput_fleet::Totals;
use goodput_lab::RunHandle;

use crate::screen::Tally;

/// What was counted so far.
pub(super) fn of(handle: &RunHandle, tally: &Mutex<Tally>) -> Totals {
    let seen = handle.live.snapshot();
    Totals {
        started: seen.started,
        ended: seen.ok + seen.failed,
        failed: seen.failed,
        in_flight: seen.in_flight(),
        output_tokens: seen.tokens,
        ..tally.lock().unwrap_or_else(PoisonError::into_inner).told()
    }
}
