//! What a rank tells of a run while it runs.

use std::sync::{Mutex, PoisonError};

use goodput_fleet::Totals;
use goodput_model::LogHistogram;
use goodput_stats::RequestTally;

use crate::handle::RunHandle;

/// What was counted so far.
pub(super) fn totals_from_handle(
    handle: &RunHandle,
    tally: &Mutex<RequestTally<LogHistogram>>,
) -> Totals {
    let seen = handle.live.snapshot();
    let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    Totals {
        started: seen.started,
        ended: seen.ok + seen.failed,
        failed: seen.failed,
        in_flight: seen.in_flight(),
        output_tokens: seen.tokens,
        ttft: tally.ttft.clone(),
        itl: tally.itl.clone(),
        tpot: tally.tpot.clone(),
        e2e: tally.e2e.clone(),
        ..Totals::default()
    }
}
