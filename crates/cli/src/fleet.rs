//! A fleet of ranks that send one load, and which of them this process is.

mod launch;

use std::path::Path;
use std::process::ExitCode;

use goodput_fleet::{Token, detect_rank, with_port};
use goodput_lab::Lab;
use goodput_lab::fleet::{Followed, Meeting, fleet_failed};
use goodput_model::{Plan, Shard};

pub(crate) use launch::fleet;

use crate::args::{ShardArgs, ShardName};
use crate::error::{Failed, exit};
use crate::plan;

/// The variable that holds the token that all ranks of a fleet know.
const TOKEN: &str = "GOODPUT_FLEET_TOKEN";

/// What this process is in a fleet.
pub(crate) enum FleetRole {
    /// No fleet.
    Alone,
    /// It sends its shard, and waits for no other rank.
    Shard(Shard),
    /// It decides what is measured and when.
    Coordinator(Meeting),
    /// It follows the coordinator.
    Rank(Meeting),
}

impl FleetRole {
    /// Which shard of the load it sends.
    pub(crate) fn shard(&self) -> Shard {
        match self {
            Self::Alone => Shard::WHOLE,
            Self::Shard(shard) => *shard,
            Self::Coordinator(meeting) | Self::Rank(meeting) => meeting.shard,
        }
    }

    /// Reads the role from the flags and the environment.
    pub(crate) fn from_args(args: &ShardArgs) -> Result<Self, Failed> {
        let (shard, host) = match args.shard {
            None => return Ok(Self::Alone),
            Some(ShardName::Is(shard)) => (shard, None),
            Some(ShardName::Auto) => {
                let found =
                    detect_rank(|name| std::env::var(name).ok()).map_err(launch::launch_failure)?;
                let host = found.rendezvous();
                if found.shard.is_part() && host.is_none() && args.rendezvous.is_none() {
                    return Err(Failed::usage(format!(
                        "{} gives the rank of this process, but not where rank 0 is",
                        found.by
                    ))
                    .hint("give the address of rank 0 with --rendezvous HOST:PORT"));
                }
                (found.shard, host)
            }
        };
        if !shard.is_part() {
            return Ok(Self::Alone);
        }
        let at: Option<String> = args.rendezvous.clone().or(host);
        let Some(at) = at else { return Ok(Self::Shard(shard)) };
        let at = with_port(at);
        let meeting = Meeting { shard, at, token: read_token()?, join_within: args.join_within };
        Ok(if shard.index() == 0 { Self::Coordinator(meeting) } else { Self::Rank(meeting) })
    }
}

/// Carries out the coordinator's orders until the coordinator sends the last one.
pub(crate) fn follow_coordinator(
    meeting: &Meeting,
    lab: Lab,
    plan: &Plan,
    path: &Path,
) -> Result<ExitCode, Failed> {
    Ok(ExitCode::from(match meeting.follow_coordinator(lab, plan, path, &plan::check)? {
        Followed::Done => exit::OK,
        Followed::Refused => exit::TARGET,
        Followed::Interrupted => exit::INTERRUPTED,
    }))
}

fn read_token() -> Result<Option<Token>, Failed> {
    match std::env::var(TOKEN) {
        Ok(text) => Token::new(&text).map(Some).map_err(|error| fleet_failed(&error)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(Failed::usage(format!("{TOKEN} is not valid UTF-8")))
        }
    }
}
