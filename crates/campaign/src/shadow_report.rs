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
    /// The candidate's time over the primary's, in the middle of the pairs of each block, by time.
    pub ratios: BTreeMap<String, OverBlocks>,
    /// Output tokens of an answer on average, and the candidate's over the primary's by blocks; none
    /// where they are not counted.
    pub output_tokens: Option<[f64; 2]>,
    /// The candidate's output tokens over the primary's.
    pub output_ratio: Option<OverBlocks>,
    /// Finish reasons of both sides, those of good answers.
    pub finishes: Vec<Count>,
    /// Pairs that completed for the same reason.
    pub same_finish: u64,
    /// HTTP statuses of both sides; without one, `none`.
    pub statuses: Vec<Count>,
    /// Failures of both sides by class.
    pub failures: Vec<Count>,
    /// How alike the answers are, where that was looked at.
    pub likeness: Option<LikenessSummary>,
}

/// A figure over blocks, with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OverBlocks {
    /// The value.
    pub value: f64,
    /// Lower end of its 95 % interval; none where there are too few blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// How often something happened on each side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// What. Foreign text: escape it wherever it is shown.
    pub name: String,
    /// On the primary, and on the candidate.
    pub counts: [u64; 2],
}

/// How alike the answers of both sides are.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LikenessSummary {
    /// Pairs that were looked at.
    pub pairs: u64,
    /// Those that are the same to the byte.
    pub exact: u64,
    /// The median share of the longer answer that is the same from the beginning.
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
    /// Share of the requests that was to be mirrored.
    pub share: f64,
    /// Requests that passed, of the paths that can be mirrored.
    pub passed: u64,
    /// Those that were chosen.
    pub chosen: u64,
    /// Those that the candidate was sent.
    pub mirrored: u64,
    /// Those of which both sides are known.
    pub pairs: u64,
    /// Chosen ones that have no pair, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Why mirroring ended before the end, where it did.
    pub ended: Option<String>,
}
