//! What is said, as JSON in frames. Fields that a version does not know are skipped; versions that
//! differ do not meet, though.

use goodput_model::{ClockOffset, Nanos};
use serde::{Deserialize, Serialize};

use crate::{Refusal, Totals};

/// Prompts and answers, where they were kept.
pub(crate) const TEXT: &str = "text.jsonl";

/// A proof, or what it is made over.
pub(crate) type Bytes32 = [u8; 32];

/// The files that a rank may hand over, and no others.
pub const UPLOADED: [&str; 7] = [
    "plan.toml",
    "manifest.json",
    "requests.log",
    "server.log",
    "judgements.log",
    TEXT,
    "summary.json",
];

/// Why files of an order that is over are not taken; either end may be the first to know.
pub(crate) const WENT_ON: &str = "rank 0 continued without them";

/// What all ranks are to do together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Numbered upwards.
    pub number: u64,
    /// What it is part of.
    pub kind: OrderKind,
    /// The whole plan as text; secrets are not in it.
    pub plan: String,
    /// Where rank 0 keeps what ranks leave, for those that share its disk.
    pub folder: String,
    /// The hash of what it sends: who would send something else must refuse.
    pub workload: String,
}

/// What an order is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrderKind {
    /// The one run: who comes after its start is turned away.
    Run,
    /// A point of several: who comes late waits for the next.
    Point,
}

/// The first words of a rank, as every version of the protocol says them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    pub(crate) goodput_fleet: u32,
    pub(crate) version: String,
}

/// What an end says before it knows who is at the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HelloAnswer {
    Proof(Bytes32),
    Refused(Refusal),
}

/// Who a rank is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) rank: u32,
    pub(crate) of: u32,
    pub(crate) host: String,
}

/// From a rank to rank 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ToCoordinator {
    Beat,
    Pong {
        id: u64,
        mono: Nanos,
        wall: Nanos,
    },
    Ready {
        number: u64,
    },
    Cannot {
        number: u64,
        why: String,
    },
    Totals {
        number: u64,
        totals: Box<Totals>,
    },
    Done {
        number: u64,
        summary: String,
    },
    Offer {
        number: u64,
        files: Vec<(String, u64)>,
    },
    /// The files are where they belong.
    Kept {
        number: u64,
    },
    /// The next file of those offered; this many bytes follow as pieces.
    File {
        name: String,
    },
    /// All files are sent.
    Sent,
    /// The rest will not come.
    Cut(String),
}

/// From rank 0 to a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ToRank {
    Welcome {
        fleet: String,
        silence: Nanos,
    },
    Refused(Refusal),
    Beat,
    Ping {
        id: u64,
    },
    Clock(ClockOffset),
    Order(Order),
    Go {
        number: u64,
        at: Nanos,
        clock: ClockOffset,
    },
    /// Go was said without this rank.
    Off {
        number: u64,
    },
    Stop {
        number: u64,
    },
    Abort {
        number: u64,
    },
    /// The files that were offered may be sent.
    Take {
        number: u64,
    },
    /// What became of them.
    Taken {
        number: u64,
        refused: Option<String>,
    },
    End,
}

/// Text of a peer, cut to what is shown of it.
pub(crate) fn clip_text(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
