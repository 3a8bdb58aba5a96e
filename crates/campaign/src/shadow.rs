//! A candidate under a share of live traffic, next to the server that answers users: pairs of the same
//! request, in blocks of time, and what `compare`'s statistics say of them.
//!
//! The unit is the block. Requests of one minute share the load, the queue and the neighbors of that
//! minute, so a test over requests finds differences where there are none; two blocks of a minute have
//! next to nothing in common. Both sides of a block are the same requests.

mod blocks;
mod doubts;
mod ledger;
mod report;
mod slot;
mod times;
mod unsent;

#[cfg(test)]
mod tests;

pub use goodput_model::Likeness;
pub use ledger::Ledger;

pub use crate::shadow_report::{Count, LikenessSummary, OverBlocks, ShadowFacts, ShadowReport};

use goodput_model::{Nanos, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::compare::Gate;

/// One request that both servers were sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// When it arrived, from the beginning.
    pub at: Nanos,
    /// What the primary did; its scheduled instant is when the exchange with it began.
    pub primary: RequestRecord,
    /// What the candidate did; likewise.
    pub candidate: RequestRecord,
    /// How similar the answers are, if that was compared.
    pub likeness: Option<Likeness>,
}

/// How pairs are set against each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PairSettings {
    /// Least length of a block in seconds.
    pub block_s: f64,
    /// Least pairs of a block: one that has fewer goes on.
    pub block_pairs: u32,
    /// Relative changes smaller than this do not matter.
    pub margin: f64,
    /// Probability of a wrong verdict about any of the tested figures.
    pub alpha: f64,
    /// What must hold.
    pub gates: Vec<Gate>,
}

/// Figures of every request, whose percentiles live traffic tells.
const TIMES: [&str; 4] = ["ttft", "tpot", "itl", "e2e"];

/// Whether live traffic can tell what this gate asks for: it says nothing about a load that is set.
pub fn can_judge(gate: &Gate) -> bool {
    let time = gate.metric.rsplit_once("_p").map(|(time, _)| time);
    gate.metric == "error_share" || time.is_some_and(|time| TIMES.contains(&time))
}

/// Default least number of pairs in a block.
pub const BLOCK_PAIRS: u32 = 20;

impl Default for PairSettings {
    fn default() -> Self {
        Self {
            block_s: 60.0,
            block_pairs: BLOCK_PAIRS,
            margin: 0.03,
            alpha: 0.05,
            gates: Vec::new(),
        }
    }
}
