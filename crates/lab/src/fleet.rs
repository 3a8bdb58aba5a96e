//! Several ranks that send one load: a common start, and one result.
//!
//! Every rank is started with the same words. Rank 0 ([`Leading`]) decides what is measured and
//! when, and merges; the others ([`Meeting::follow_coordinator`]) do as they are told, and keep what they measured
//! whatever happens to it.

mod following;
mod job_secrets;
mod leading;
mod totals;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use goodput_fleet::{FleetError, Token};
use goodput_model::{Plan, Shard, ShardFacts, escape_control};

use crate::error::Failed;

pub use following::Followed;
pub use job_secrets::{JobText, job_plan};
pub use leading::Leading;

/// Where ranks meet, and which of them this is.
pub struct Meeting {
    /// The part of the load that this rank sends.
    pub shard: Shard,
    /// Host and port of rank 0.
    pub at: String,
    /// The word that all ranks know.
    pub token: Option<Token>,
    /// How long they wait for each other.
    pub join_within: Duration,
}

/// The folder of one part among the shards of a run.
fn shard_folder(parts: &Path, rank: u32) -> PathBuf {
    parts.join(format!("{rank:04}"))
}

/// What lies next to the shards while they are made: who finds it shares the disk of rank 0.
fn marker_path(parts: &Path, fleet: &str) -> PathBuf {
    parts.join(format!(".fleet-{}", fleet.replace(|sign: char| !sign.is_ascii_alphanumeric(), "-")))
}

/// A shard of this plan that waits for no other.
pub fn lone_shard(shard: Shard, plan: &Plan) -> Result<ShardFacts, Failed> {
    check_sharded_plan(plan, shard)?;
    if plan.measure.until.is_some() {
        return Err(Failed::usage("each rank would stop on its own, judging only its own shard")
            .hint("add --rendezvous HOST:PORT of rank 0, which then stops all ranks"));
    }
    Ok(ShardFacts { shard, fleet: None, clock: None })
}

/// What cannot be sent in parts.
fn check_sharded_plan(plan: &Plan, shard: Shard) -> Result<(), Failed> {
    if plan.target.url.starts_with("mock") {
        return Err(Failed::usage("each rank would start a mock of its own")
            .hint("start one mock with `goodput mock --listen 127.0.0.1:8000` and use its address as the target"));
    }
    // Users can be fewer than ranks; a rank that may have nothing in flight would wait forever.
    match plan.load.mode.most_in_flight().filter(|cap| *cap < shard.count()) {
        None => Ok(()),
        Some(cap) => Err(Failed::usage(format!(
            "{cap} requests in flight cannot be divided among {} ranks",
            shard.count()
        ))
        .hint("--max-concurrency must be at least the number of ranks")),
    }
}

/// The addresses of a meeting place.
fn resolve_rendezvous(at: &str) -> Result<Vec<SocketAddr>, Failed> {
    let found = at.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    found.map_err(|error| {
        Failed::usage(format!("cannot find `{at}`: {error}"))
            .hint("--rendezvous takes the HOST:PORT of rank 0")
    })
}

/// What a meeting cannot do, in words for the terminal.
pub fn fleet_failed(error: &FleetError) -> Failed {
    let failed = Failed::usage(escape_control(&error.to_string()));
    match error.hint() {
        Some(hint) => failed.hint(hint),
        None => failed,
    }
}
