//! What live traffic showed, as it stands in `summary.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What live traffic showed in addition to the figures.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ShadowReport {
    /// How it went.
    pub facts: ShadowFacts,
    /// Pairs that were compared.
    pub pairs: u64,
    /// Pairs completed on both sides: latencies cover these.
    pub good: u64,
    /// Pairs of the smallest block and of the largest.
    pub block_pairs: [u64; 2],
    /// Share of the pairs in which the candidate took longer, by time (`ttft`, `tpot`, `e2e`).
    pub slower: BTreeMap<String, OverBlocks>,
    /// The candidate's time over the primary's, as the median over the pairs of each block, by
    /// time.
    pub ratios: BTreeMap<String, OverBlocks>,
    /// Mean output tokens per answer, and the candidate's over the primary's by blocks; none if
    /// they are not counted.
    pub output_tokens: Option<[f64; 2]>,
    /// The candidate's output tokens over the primary's.
    pub output_ratio: Option<OverBlocks>,
    /// Finish reasons of completed answers of both sides.
    pub finishes: Vec<Count>,
    /// Pairs that completed for the same reason.
    pub same_finish: u64,
    /// HTTP statuses of both sides; without one, `none`.
    pub statuses: Vec<Count>,
    /// Failures of both sides by class.
    pub failures: Vec<Count>,
    /// How similar the answers are, if that was compared.
    pub likeness: Option<LikenessSummary>,
}

/// A figure over blocks, with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OverBlocks {
    /// The value.
    pub value: f64,
    /// Lower end of its 95 % interval; none with too few blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// How often something happened on each side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// What happened. Foreign text: escape it wherever it is shown.
    pub name: String,
    /// On the primary, and on the candidate.
    pub counts: [u64; 2],
}

/// How similar the answers of both sides are.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LikenessSummary {
    /// Pairs that were compared.
    pub pairs: u64,
    /// Those that are byte-identical.
    pub exact: u64,
    /// The median share of the longer answer up to which both are identical.
    pub prefix_share: Option<f64>,
    /// The median of the candidate's length over the primary's, in characters.
    pub length_ratio: Option<f64>,
    /// Characters of an answer on average, on each side.
    pub characters: [f64; 2],
}

/// How a shadow went, apart from its pairs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ShadowFacts {
    /// Share of the requests to mirror.
    pub share: f64,
    /// Requests that passed, to paths that can be mirrored.
    pub passed: u64,
    /// Those that were chosen.
    pub chosen: u64,
    /// Those that were sent to the candidate.
    pub mirrored: u64,
    /// Those with answers from both sides.
    pub pairs: u64,
    /// Chosen ones that have no pair, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Why mirroring ended early, if it did.
    pub ended: Option<String>,
}
