//! What can go wrong at a rendezvous, and what to do about it.

use std::io;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::PROTOCOL;

/// Why a rendezvous failed.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The token is too short, too long, or has blanks.
    #[error("the fleet token is not valid")]
    UnfitToken,
    /// A fleet beyond the loopback without a token.
    #[error("a fleet at {0} needs a token, because other machines can reach that address")]
    TokenRequired(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// Rank 0 did not appear before the deadline, or the caller gave up.
    #[error("rank 0 was not found at `{address}`: {why}")]
    NoCoordinator {
        /// Where it was looked for.
        address: String,
        /// What the last try said.
        why: String,
    },
    /// Rank 0 does not want this rank.
    #[error("{0}")]
    Refused(Refusal),
    /// What listens there cannot prove that it has the token.
    #[error("the process at the rendezvous address has a different token")]
    Impostor,
    /// The other end is not there anymore, or not heard anymore.
    #[error("lost the connection: {0}")]
    Lost(String),
    /// More than a message may hold.
    #[error("{what} is too large to send: {bytes} bytes, at most {most}")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        most: usize,
    },
    /// Orders are numbered upwards.
    #[error("order {0} does not follow the previous one")]
    OutOfOrder(u64),
    /// Files could not be handed over.
    #[error("the files were refused: {0}")]
    Upload(String),
    /// The system refuses something that it should not.
    #[error("a system call failed: {0}")]
    System(#[from] io::Error),
}

impl FleetError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::UnfitToken => {
                "set GOODPUT_FLEET_TOKEN at every rank to 16 to 256 letters and digits, for example from `openssl rand -hex 32`"
            }
            Self::TokenRequired(_) => {
                "set GOODPUT_FLEET_TOKEN to the same secret at every rank: `openssl rand -hex 32`"
            }
            Self::Listen(_, error) if error.kind() == io::ErrorKind::AddrInUse => {
                "another program uses it: choose another port at every rank"
            }
            Self::Listen(..) => "rank 0 must listen on an address of its own machine",
            Self::NoCoordinator { .. } => {
                "rank 0 must run, and its port must be open to this machine"
            }
            Self::Refused(refusal) => refusal.hint(),
            Self::Impostor => {
                "another program listens there, or GOODPUT_FLEET_TOKEN differs between the ranks"
            }
            _ => return None,
        })
    }
}

/// Why rank 0 turns a rank away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// Another version of the protocol or of goodput.
    #[error(
        "rank 0 runs goodput {coordinator} (protocol {protocol}), this is goodput {rank} (protocol {PROTOCOL})"
    )]
    Version {
        /// The protocol that rank 0 speaks.
        protocol: u32,
        /// The version of rank 0.
        coordinator: String,
        /// The version of the rank.
        rank: String,
    },
    /// Another token, or one where none is, or none if one is.
    #[error("rank 0 has a different token")]
    Token,
    /// There is such a rank already.
    #[error("rank {0} has already joined")]
    Taken(u32),
    /// Rank 0 waits for another number of ranks.
    #[error("rank 0 expects {coordinator} ranks, and this is one of {rank}")]
    Count {
        /// How many rank 0 waits for, itself included.
        coordinator: u32,
        /// How many the rank was told.
        rank: u32,
    },
    /// Rank 0 is the one that listens.
    #[error("rank 0 is the coordinator and cannot join")]
    Zero,
    /// The run has begun, and there is but one.
    #[error("the run began without this rank")]
    Begun,
}

impl Refusal {
    /// The same, as rank 0 says it of the one that came.
    pub(crate) fn text_for_coordinator(&self) -> String {
        match self {
            Self::Version { coordinator, rank, .. } => {
                format!("runs goodput {rank}, and this is goodput {coordinator}")
            }
            Self::Token => "has another token".to_owned(),
            Self::Taken(_) => "joined a second time".to_owned(),
            Self::Count { coordinator, rank } => {
                format!("is one of {rank} ranks, and this fleet has {coordinator}")
            }
            Self::Zero => "cannot join as rank 0, the coordinator".to_owned(),
            Self::Begun => "joined after the start".to_owned(),
        }
    }

    fn hint(&self) -> &'static str {
        match self {
            Self::Version { .. } => "install one version of goodput on all machines",
            Self::Token => {
                "set GOODPUT_FLEET_TOKEN to the same secret at every rank, with no TLS-terminating proxy between them"
            }
            Self::Taken(_) => "every process needs its own rank: check `--shard`",
            Self::Count { .. } => "N of `--shard K/N` must be the same at every rank",
            Self::Zero => "exactly one process is shard 0/N",
            Self::Begun => "start all ranks at about the same time, or let rank 0 wait longer",
        }
    }
}

/// Why a job was not made, not started, or lost; or why the environment does not tell which rank
/// this is.
#[derive(Debug)]
pub struct LaunchError {
    /// Whether the user asked for what cannot be done; otherwise an engine or the system failed.
    pub is_usage: bool,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl LaunchError {
    /// Wrong usage.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { is_usage: true, message: message.into(), hint: None }
    }

    /// An engine or the system failed.
    pub fn engine(message: impl Into<String>) -> Self {
        Self { is_usage: false, ..Self::usage(message) }
    }

    /// The same with advice.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl std::error::Error for LaunchError {}

impl std::fmt::Display for LaunchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&goodput_model::escape_control(&self.message))
    }
}
