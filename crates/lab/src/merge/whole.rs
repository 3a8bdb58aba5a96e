//! The circumstances of a merged run, from those of its ranks.

use std::collections::HashSet;

use goodput_model::{EndedBy, ShardPart};
use goodput_record::{Manifest, Merged, State};

use super::check::ShardFolder;
use super::health;

/// Notes of all ranks that are kept.
const NOTES: usize = 50;

/// While it is being made: what the first of all says, with nothing that is of one machine alone.
pub(super) fn initial_manifest(ranks: &[ShardFolder]) -> Manifest {
    let mut manifest = ranks[0].manifest.clone();
    if let Some(watcher) = server_watch_rank(ranks) {
        let seen = &ranks[watcher].manifest;
        manifest.system = seen.system.clone();
        manifest.workload.cache_counters = seen.workload.cache_counters;
    }
    manifest.state = State::Running;
    manifest.shard = None;
    // Each rank has said for itself how its clock went, and what its machine carries.
    (manifest.clocks_end, manifest.ceiling) = (None, None);
    // Their ids are unlike each other.
    manifest.trace_nonce = None;
    manifest
}

/// The rank whose view of the server is kept: the first that saw it to the end.
pub(super) fn server_watch_rank(ranks: &[ShardFolder]) -> Option<usize> {
    let sees = |rank: &&ShardFolder| {
        let system = &rank.manifest.system;
        !system.metrics.is_empty() || !system.gpus.is_empty()
    };
    let is_whole = |rank: &ShardFolder| rank.manifest.state == State::Complete;
    let place = |found: &ShardFolder| ranks.iter().position(|rank| std::ptr::eq(rank, found));
    let all = || ranks.iter().filter(sees);
    all().find(|rank| is_whole(rank)).or_else(|| all().next()).and_then(place)
}

/// Once its logs are there.
pub(super) fn final_manifest(
    ranks: &[(&ShardFolder, &Merged)],
    begun: Manifest,
    shards: Vec<ShardPart>,
) -> Manifest {
    let all = || ranks.iter().map(|(rank, _)| &rank.manifest);
    // Those that were there to the end say how it ended.
    let cut: HashSet<u32> =
        shards.iter().filter(|part| part.has_gap()).map(|part| part.facts.shard.index()).collect();
    let was_there = |manifest: &&Manifest| {
        manifest.shard.as_ref().is_none_or(|facts| !cut.contains(&facts.shard.index()))
    };
    let last = || all().filter(was_there);
    let mut manifest = begun;
    manifest.state =
        match last().map(|manifest| manifest.state).max_by_key(|state| state_precedence(*state)) {
            Some(state) => state,
            None => State::Running,
        };
    manifest.ended = all().filter_map(|manifest| manifest.ended.clone()).max();
    let all_stopped = last().all(|manifest| manifest.stopped_s.is_some());
    let stopped = last().filter_map(|manifest| manifest.stopped_s);
    // Until the first of them stopped, all of the load was there; what came after a rule had ended the
    // run, by who did not hear of it, is of another load.
    let decided = health::rule_stop_s(ranks);
    manifest.stopped_s = decided.or(stopped.min_by(f64::total_cmp).filter(|_| all_stopped));
    let ended_by = || last().filter_map(|manifest| manifest.ended_by);
    let is_rule = |by: &EndedBy| !matches!(by, EndedBy::Plan | EndedBy::User);
    let by_user = || ended_by().find(|by| *by == EndedBy::User);
    manifest.ended_by = ended_by().find(is_rule).or_else(by_user).or_else(|| ended_by().next());
    manifest.records = None;
    manifest.lost_records = all().map(|manifest| manifest.lost_records).sum();
    let workload = &mut manifest.workload;
    workload.cut_requests = all().map(|manifest| manifest.workload.cut_requests).sum();
    workload.ended_early = all().any(|manifest| manifest.workload.ended_early);
    // What the workload is like is the same for all; the first has sent the most of it.
    workload.notes.truncate(NOTES);
    manifest.shards = shards;
    manifest
}

/// A run that went to its end for one rank went to its end; what others lack is said of them. Of one
/// that the user has stopped, ranks that are led do not know why they were.
fn state_precedence(state: State) -> u8 {
    match state {
        State::Running => 0,
        State::Complete => 1,
        State::Interrupted => 2,
    }
}
