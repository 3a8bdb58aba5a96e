//! What a client tells of a run while it goes on.

use std::sync::PoisonError;

use goodput_fleet::Totals;

use crate::run::Hands;

/// What was counted so far.
pub(super) fn of(hands: &Hands) -> Totals {
    let seen = hands.live.snapshot();
    let told = hands.told.as_ref();
    let times = told.map(|told| told.lock().unwrap_or_else(PoisonError::into_inner).told());
    Totals {
        started: seen.started,
        ended: seen.ok + seen.failed,
        failed: seen.failed,
        in_flight: seen.in_flight(),
        output_tokens: seen.tokens,
        ..times.unwrap_or_default()
    }
}
