//! The shapes of `summary.requests`, `summary.tokens` and the rates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::run::RunFacts;

/// Outcomes of the measured requests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Requests {
    /// Scheduled inside the window.
    pub scheduled: u64,
    /// Completed.
    pub ok: u64,
    /// Failed.
    pub failed: u64,
    /// Failures by class.
    pub errors: BTreeMap<String, u64>,
    /// Failures by how far the request had come.
    pub errors_by_stage: BTreeMap<String, u64>,
    /// Failures by class and stage together, most frequent first, each with its first message.
    pub error_details: Vec<ErrorDetail>,
    /// Requests before the window.
    pub warmup: u64,
    /// Requests after the window.
    pub cooldown: u64,
    /// Pooled connections that turned out dead and were reopened.
    pub reconnects: u64,
    /// Requests that opened a connection of their own.
    pub connects: u64,
    /// Answers that came in one piece although streams were requested.
    #[serde(default)]
    pub whole: u64,
    /// Finish reasons of completed requests.
    pub finish_reasons: BTreeMap<String, u64>,
}

/// The class of requests that were given up when the run ended.
pub(crate) const CUT_OFF: &str = "cut_off";

impl Requests {
    /// Those that were given up when the run ended.
    pub(crate) fn cut_off_count(&self) -> u64 {
        self.errors.get(CUT_OFF).copied().unwrap_or_default()
    }

    /// Those that failed by themselves: what a point gave up when it ended early did not.
    pub(crate) fn failed_count(&self, run: &RunFacts) -> u64 {
        self.failed.saturating_sub(if run.gave_up() { self.cut_off_count() } else { 0 })
    }

    /// The share of those; none without any request.
    pub(crate) fn failed_share(&self, run: &RunFacts) -> Option<f64> {
        (self.scheduled > 0).then(|| self.failed_count(run) as f64 / self.scheduled as f64)
    }
}

/// Failures of one class at one stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDetail {
    /// Class of the failure.
    pub class: String,
    /// How far the requests had come.
    pub stage: String,
    /// How many.
    pub count: u64,
    /// What the server or the system said about the first of them. Foreign text.
    pub message: String,
}

/// Tokens of the measured requests that completed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tokens {
    /// Prompt tokens.
    pub input: u64,
    /// What counted them: `usage`, `planned`, or `mixed`.
    pub input_source: String,
    /// Output tokens.
    pub output: u64,
    /// What counted them: `usage`, `token_ids`, `tokenizer`, `chunks`, or `mixed`.
    pub output_source: String,
    /// Completed requests without a token count; `output` does not include them.
    #[serde(default)]
    pub uncounted: u64,
    /// Prompt tokens from the server's cache, if it reports them.
    pub cached: Option<u64>,
    /// Prompt tokens that stand for images, if the server reports them.
    #[serde(default)]
    pub image: Option<u64>,
    /// Events that carried tokens.
    pub chunks: u64,
    /// Those that shared a socket read with another.
    pub coalesced_chunks: u64,
}

/// Rates.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Throughput {
    /// Completed requests per second.
    pub requests_per_s: Option<f64>,
    /// Output tokens by their arrival, per second.
    pub output_tokens_per_s: Option<f64>,
    /// Prompt tokens (counted when the first token arrives) and output tokens, per second.
    pub total_tokens_per_s: Option<f64>,
}
