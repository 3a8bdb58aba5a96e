//! The circumstances of a merged run, from those of its clients.

use std::collections::HashSet;

use goodput_model::{EndedBy, ShardPart};
use goodput_record::{Manifest, Merged, State};

use super::check::ClientFolder;
use super::health;

/// Notes of all clients that are kept.
const NOTES: usize = 50;

/// While it is being made: what the first of all says, with nothing that is of one machine alone.
pub(super) fn begin(clients: &[ClientFolder]) -> Manifest {
    let mut manifest = clients[0].manifest.clone();
    if let Some(watcher) = watcher(clients) {
        let seen = &clients[watcher].manifest;
        manifest.system = seen.system.clone();
        manifest.workload.cache_counters = seen.workload.cache_counters;
    }
    manifest.state = State::Running;
    manifest.shard = None;
    // Each client has said for itself how its clock went, and what its machine carries.
    (manifest.clocks_end, manifest.ceiling) = (None, None);
    // Their ids are unlike each other.
    manifest.trace_nonce = None;
    manifest
}

/// The client whose view of the server is kept: the first that saw it to the end.
pub(super) fn watcher(clients: &[ClientFolder]) -> Option<usize> {
    let sees = |client: &&ClientFolder| {
        let system = &client.manifest.system;
        !system.metrics.is_empty() || !system.gpus.is_empty()
    };
    let is_whole = |client: &ClientFolder| client.manifest.state == State::Complete;
    let place =
        |found: &ClientFolder| clients.iter().position(|client| std::ptr::eq(client, found));
    let all = || clients.iter().filter(sees);
    all().find(|client| is_whole(client)).or_else(|| all().next()).and_then(place)
}

/// Once its logs are there.
pub(super) fn end(
    clients: &[(&ClientFolder, &Merged)],
    begun: Manifest,
    shards: Vec<ShardPart>,
) -> Manifest {
    let all = || clients.iter().map(|(client, _)| &client.manifest);
    // Those that were there to the end say how it ended.
    let cut: HashSet<u32> =
        shards.iter().filter(|part| part.has_gap()).map(|part| part.facts.shard.index()).collect();
    let was_there = |manifest: &&Manifest| {
        manifest.shard.as_ref().is_none_or(|facts| !cut.contains(&facts.shard.index()))
    };
    let last = || all().filter(was_there);
    let mut manifest = begun;
    manifest.state = match last().map(|manifest| manifest.state).max_by_key(|state| rank(*state)) {
        Some(state) => state,
        None => State::Running,
    };
    manifest.ended = all().filter_map(|manifest| manifest.ended.clone()).max();
    let all_stopped = last().all(|manifest| manifest.stopped_s.is_some());
    let stopped = last().filter_map(|manifest| manifest.stopped_s);
    // Until the first of them stopped, all of the load was there; what came after a rule had ended the
    // run, by who did not hear of it, is of another load.
    let decided = health::decided_s(clients);
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

/// A run that went to its end for one client went to its end; what others lack is said of them. Of one
/// that the user has stopped, clients that are led do not know why they were.
fn rank(state: State) -> u8 {
    match state {
        State::Running => 0,
        State::Complete => 1,
        State::Interrupted => 2,
    }
}
