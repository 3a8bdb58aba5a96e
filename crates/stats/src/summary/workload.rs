//! What a summary says about the workload: as it was asked for, and as the server saw it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::metric::{Quick, Spread};
use super::slices::Slices;

/// Slices by dimension (`class`, `turn`, `constraint`, `images`, `input_tokens`, `output_tokens`,
/// `worker`, `minute`, `stage`), then by value.
pub type Breakdown = BTreeMap<String, Slices>;

/// Lengths as planned and as counted.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Lengths {
    /// Prompts; none if the server did not count them.
    pub input: Option<LengthCheck>,
    /// Answers; none if no length was requested, or tokens were not counted.
    pub output: Option<LengthCheck>,
}

/// Planned and counted lengths, over the measured completed requests that have both.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LengthCheck {
    /// How many requests.
    pub n: u64,
    /// Mean of the planned lengths, in tokens.
    pub planned_mean: f64,
    /// Mean of the counted ones.
    pub actual_mean: f64,
    /// All counted tokens over all planned ones; none if nothing was planned.
    pub ratio: Option<f64>,
    /// Share of requests with exactly the planned length.
    pub exact_share: f64,
    /// The largest difference of one request.
    pub max_error: u64,
}

/// The requests that share a property.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Slice {
    /// Measured requests.
    pub scheduled: u64,
    /// Completed requests.
    pub ok: u64,
    /// Those that failed.
    pub failed: u64,
    /// Mean prompt length of completed requests.
    pub input_tokens_mean: Option<f64>,
    /// Mean answer length of completed requests with a token count.
    pub output_tokens_mean: Option<f64>,
    /// Time to the first token.
    pub ttft_ms: Spread,
    /// Time per output token.
    pub tpot_ms: Spread,
    /// Gaps between chunks; empty by length, worker, and minute.
    pub itl_ms: Spread,
    /// Time to the last token.
    pub e2e_ms: Spread,
    /// Output tokens per second of the window (of a stage or minute: of its part of the window).
    pub output_tps: Option<f64>,
    /// Good requests completed per second of the same time.
    pub rps: Option<f64>,
    /// Share of good requests, if the run has an SLO.
    #[serde(default)]
    pub attainment: Option<f64>,
}

/// The planned and the observed share of prompts from the prefix cache.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CacheSummary {
    /// Share of prompt tokens that a warm cache would hold, if the workload plans for that.
    pub requested: Option<f64>,
    /// Share of prompt tokens that the server took from its cache, if it reports that.
    pub observed: Option<f64>,
    /// Share of completed requests whose answer reports its cached tokens.
    pub reported_by: f64,
    /// The source: `usage`, `counters` (the server's own, over the whole run), or `none`.
    pub source: String,
    /// How much of a rotation of contexts was measured, if that is the workload.
    #[serde(default)]
    pub rotation: Option<CacheRotation>,
}

/// Contexts that are sent in turn, each with a new question.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CacheRotation {
    /// Contexts of one rotation.
    pub contexts: u64,
    /// Measured rotations: whole where the window begins and ends with a rotation.
    pub measured: f64,
}

/// How closely a replay followed its trace.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReplaySummary {
    /// What was kept of the trace's times: `timestamps` or `think-times`.
    pub keep: String,
    /// Factor on the times of the trace.
    pub time_scale: f64,
    /// Measured requests with an instant in the trace.
    pub n: u64,
    /// How far scheduled instants are from those of the trace, in either direction.
    pub drift_ms: Quick,
    /// The same for the first bytes sent.
    pub sent_drift_ms: Quick,
}

/// Answers under one kind of constraint.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct StructuredSummary {
    /// Measured requests with it.
    pub asked: u64,
    /// Completed requests.
    pub answered: u64,
    /// Answers that could be checked.
    pub checked: u64,
    /// Answers that keep it.
    pub valid: u64,
    /// Valid among checked.
    pub valid_share: Option<f64>,
}

/// Answers counted by one tokenizer, whatever the server says.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RecountSummary {
    /// Which tokenizer.
    pub tokenizer: String,
    /// Measured completed answers that it counted.
    pub n: u64,
    /// Their tokens.
    pub output_tokens: u64,
    /// Their characters.
    pub characters: u64,
    /// Such tokens per second, by their arrival inside the window.
    pub output_tps: Option<f64>,
    /// Its count over the server's, if both exist.
    pub ratio_to_server: Option<f64>,
}

/// Sessions of several requests, over the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct SessionsSummary {
    /// Sessions that sent at least one request.
    pub n: u64,
    /// Requests of each, on average.
    pub requests_mean: f64,
    /// The most steps of one session.
    pub turns_max: u32,
    /// Sessions that began per second of the window.
    pub arrivals_per_s: Option<f64>,
    /// Sessions in a pause between two steps, averaged over the window.
    pub thinking_mean: Option<f64>,
    /// Requests that were not sent because an earlier one failed or the run ended.
    pub cut_requests: u64,
}
