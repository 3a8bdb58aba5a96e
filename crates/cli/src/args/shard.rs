//! What can be typed about one of several clients.

use std::time::Duration;

use clap::Args;
use goodput_model::Shard;

use super::positive_time;

/// Which part of the load this client sends, and where it meets the others.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Several clients")]
pub(crate) struct ShardArgs {
    /// Send only this part of the load: client K, from 0, of N; `auto` asks Slurm, Kubernetes, Ray
    /// or MPI. The parts of all N are the load of one client, to the byte
    #[arg(long, value_name = "K/N|auto")]
    pub(crate) shard: Option<ShardName>,

    /// Where clients meet for a common start: client 0 listens there, the others go there. Without
    /// it (and without `auto`) each begins when it is started; `goodput merge` joins their folders.
    /// Beyond the loopback GOODPUT_FLEET_TOKEN is needed
    #[arg(long, value_name = "HOST:PORT", requires = "shard")]
    pub(crate) rendezvous: Option<String>,

    /// How long to wait for the other clients before the run begins without those that are missing
    #[arg(long, value_name = "TIME", value_parser = positive_time, default_value = "2m", requires = "shard")]
    pub(crate) join_within: Duration,
}

/// One part, or whichever the environment says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShardName {
    /// By the environment.
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
