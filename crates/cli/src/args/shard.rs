//! Arguments of one rank of a fleet.

use std::time::Duration;

use clap::Args;
use goodput_model::Shard;

use super::value::parse_positive_time;

/// Which shard of the load this process sends, and where it meets the other ranks.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct ShardArgs {
    /// Send shard K, from 0, of N; `auto` reads Slurm, Kubernetes, Ray, or MPI
    ///
    /// The shards of all N ranks together are the load of one client, byte for byte.
    #[arg(long, value_name = "K/N|auto")]
    pub(crate) shard: Option<ShardName>,

    /// Address where ranks meet for a common start: rank 0 listens there, the others connect
    ///
    /// Without it (and without `auto`), each rank starts at once, and `goodput merge` joins their
    /// folders. Beyond the loopback address all ranks need GOODPUT_FLEET_TOKEN.
    #[arg(long, value_name = "HOST:PORT", requires = "shard")]
    pub(crate) rendezvous: Option<String>,

    /// How long to wait for the other ranks before the run starts without those that are missing
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time, default_value = "2m", requires = "shard")]
    pub(crate) join_within: Duration,
}

/// One shard, or the one that the environment names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShardName {
    /// The one that the environment names.
    Auto,
    /// This one.
    Is(Shard),
}

impl std::str::FromStr for ShardName {
    type Err = goodput_model::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" { Ok(Self::Auto) } else { text.parse().map(Self::Is) }
    }
}
