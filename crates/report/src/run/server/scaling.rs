//! How the number of replicas followed the load.

use goodput_document::Fact;
use goodput_document::number::count;
use goodput_stats::{ReplicaChange, ScalingSummary};

use super::request_count_text;

/// Changes that are told one by one.
const MOST_TOLD: usize = 6;

/// Every change with its instant, and how long after a rise of the load it was seen.
pub(super) fn fact(scaling: &ScalingSummary) -> Fact {
    let ScalingSummary { first, most, last, changes } = scaling;
    if changes.is_empty() {
        return Fact::new("Replicas", format!("{} throughout", request_count_text(*first)));
    }
    let (most, is_lower) = (request_count_text(*most), most > last);
    let ends =
        format!("{} at first, {} at last", request_count_text(*first), request_count_text(*last));
    let more = changes.len().saturating_sub(MOST_TOLD);
    let parts: Vec<String> = std::iter::once(ends)
        .chain(is_lower.then(|| format!("{most} at most")))
        .chain(changes.iter().take(MOST_TOLD).map(told))
        .chain((more > 0).then(|| format!("and {} more changes", count(more as u64))))
        .collect();
    Fact::new("Replicas", parts.join("; "))
}

fn told(change: &ReplicaChange) -> String {
    let ReplicaChange { at_s, after_s, to, load_rise_s, lag_s, .. } = change;
    let seen = format!("{} at {at_s:.1} s (not yet at {after_s:.1} s)", request_count_text(*to));
    match load_rise_s.zip(*lag_s) {
        Some((rise, lag)) => format!("{seen}, {lag:.1} s after the load rose at {rise:.1} s"),
        None => seen,
    }
}
