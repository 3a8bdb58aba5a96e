//! Whether two sides may be compared at all: everything that should be the same and is not.
//!
//! Sides that are measured here in turn share one plan, and differ only by what the servers did:
//! how long answers are, what came from a cache, how tokens are counted, what failed. Saved runs may
//! differ in everything.

mod checks;
mod facts;
#[cfg(test)]
mod tests;
mod texts;

pub use checks::find_differences;
pub use facts::text_fingerprint;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How much a difference matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Matter {
    /// Worth knowing.
    Info,
    /// It may change figures.
    Warn,
    /// The figures do not measure the same thing: no verdict, unless the user insists.
    Refuse,
}

/// Something that should be the same and is not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The stable name for scripts: `workload_hash`, `cache_state`, `output_length`, …
    pub code: String,
    /// How much it matters.
    pub matter: Matter,
    /// Place of the candidate among the sides.
    pub side: u32,
    /// What differs, in a sentence, with both values.
    pub message: String,
    /// What to do about it.
    pub advice: String,
    /// Metrics that it affects; a metric of requests stands for all its percentiles (`e2e` for
    /// `e2e_p99`); empty: all.
    #[serde(default)]
    pub spoils: Vec<String>,
}

impl Difference {
    /// Whether it spoils the metric of this name.
    pub fn affects_metric(&self, metric: &str) -> bool {
        let is_it = |spoiled: &String| {
            let rest = metric.strip_prefix(spoiled.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("_p") || rest == "_mean")
        };
        self.spoils.is_empty() || self.spoils.iter().any(is_it)
    }
}

/// What should be the same on all sides, for one run or for all runs of a side.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SideFacts {
    /// Version of goodput that measured.
    pub version: String,
    /// The machine that measured: system, processor, processors.
    pub host: String,
    /// Model asked for.
    pub model: String,
    /// `chat` or `completions`, streamed or not.
    pub api: String,
    /// HTTP version and what happens to connections.
    pub transport: String,
    /// The workload in one line.
    pub workload: String,
    /// Hash of everything that the plan sends; several hashes for runs with different seeds.
    pub workload_hash: String,
    /// Fingerprint of the planned workload, independent of the seed and of the server's tokens.
    pub shape: String,
    /// How prompts were calibrated before the run, and a fingerprint of the result; empty without calibration.
    pub calibration: String,
    /// The load in one line: kind of loop, rate or users, arrivals, cap.
    pub load: String,
    /// Seed of arrivals and prompts.
    pub seed: u64,
    /// Measured seconds.
    pub window_s: f64,
    /// Warm-up as planned.
    pub warmup: String,
    /// The SLO as text.
    pub slo: String,
    /// JSON merged into every body: sampling parameters and the like.
    pub extra_body: String,
    /// What was done to the prefix cache before the run.
    pub cache: String,
    /// Measured requests that were scheduled.
    pub requests: u64,
    /// Measured requests that attainment refers to.
    pub judged: u64,
    /// Measured requests that completed.
    pub ok: u64,
    /// Share of measured requests that failed.
    pub failed_share: f64,
    /// What counted the output tokens.
    pub output_source: String,
    /// Mean prompt tokens of a completed request, as the server counts them.
    pub input_mean: Option<f64>,
    /// Mean prompt tokens that the workload planned.
    pub planned_input_mean: Option<f64>,
    /// Mean output tokens of a completed answer, as the server counts them.
    pub output_mean: Option<f64>,
    /// Mean output tokens that the workload planned.
    pub planned_output_mean: Option<f64>,
    /// Mean characters of a completed answer, if answers were recounted.
    pub characters_mean: Option<f64>,
    /// Share of prompt tokens from the prefix cache, as the server reports it.
    pub cached_share: Option<f64>,
    /// The tokenizer that recounted answers.
    pub count_with: Option<String>,
    /// Shortest round trip to the server.
    pub min_rtt_ms: Option<f64>,
    /// Median TTFT, which the network path is compared with.
    pub ttft_ms: Option<f64>,
    /// What decides the server's speed, by name, as the server or the user states it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub server: BTreeMap<String, String>,
}
