//! The server's own account, in numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The server's view of the window, next to the client's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ServerSummary {
    /// The pages that were read.
    pub endpoints: Vec<EndpointSummary>,
    /// Levels over the window by name (`running`, `waiting`, `kv_usage` …), over all endpoints: sums
    /// of requests, means of shares.
    #[serde(flatten)]
    pub levels: BTreeMap<String, LevelSummary>,
    /// Totals over the window by name.
    #[serde(default)]
    pub counters: BTreeMap<String, CounterSummary>,
    /// Distributions over the window by name; times are in milliseconds.
    #[serde(default)]
    pub histograms: BTreeMap<String, HistogramSummary>,
    /// The queue.
    #[serde(default)]
    pub queue: Option<QueueSummary>,
    /// What client and server count alike.
    #[serde(default)]
    pub against_client: Option<AgainstClient>,
    /// TTFT by the length of the queue when a request arrived.
    #[serde(default)]
    pub ttft_by_queue: Option<TtftByQueue>,
    /// Share of prompt tokens from the prefix cache, by the counters of the window.
    #[serde(default)]
    pub prefix_hit_rate_counted: Option<f64>,
    /// Share of drafted tokens that were accepted, by the counters of the window.
    #[serde(default)]
    pub speculative_acceptance_counted: Option<f64>,
    /// How the number of replicas followed the load, if a page states it.
    #[serde(default)]
    pub scaling: Option<ScalingSummary>,
    /// What happened when, in seconds since the first instant.
    #[serde(default)]
    pub marks: Vec<Mark>,
    /// Levels over the whole run, thinned to at most 120 points.
    #[serde(default)]
    pub timeline: Vec<TimelinePoint>,
}

/// The number of replicas over the whole run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ScalingSummary {
    /// At the first scrape.
    pub first: f64,
    /// Most of them.
    pub most: f64,
    /// At the last scrape.
    pub last: f64,
    /// The first 120 changes, in order of time.
    pub changes: Vec<ReplicaChange>,
}

/// A change of the number of replicas. It happened between two scrapes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReplicaChange {
    /// The scrape that saw it, in seconds since the first instant.
    pub at_s: f64,
    /// The scrape before that.
    pub after_s: f64,
    /// Replicas before it.
    pub from: f64,
    /// Replicas after it.
    pub to: f64,
    /// Of a rise: when the load last rose before it, in seconds since the first instant; none if the
    /// plan has no such instant.
    pub load_rise_s: Option<f64>,
    /// From that rise of the load to `at_s`.
    pub lag_s: Option<f64>,
}

/// One metrics page.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EndpointSummary {
    /// URL without secrets.
    pub url: String,
    /// The engine whose metric names it uses; empty if unknown.
    pub engine: String,
    /// Answers over the whole run.
    pub answers: u64,
    /// Those inside the window; totals need two of them.
    #[serde(default)]
    pub looks: u64,
    /// Scrapes without an answer.
    pub failures: u64,
    /// The message of the last of them. Foreign text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
    /// The longest time without an answer inside the window, in seconds.
    pub longest_gap_s: f64,
    /// How long answers took.
    pub took_ms: LevelSummary,
    /// Resets of totals: the server restarted.
    pub resets: u64,
    /// Lines that could not be read, in the worst answer.
    pub malformed: u64,
    /// Whether several servers answer there in turn: then it has levels, and no totals.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub several_servers: bool,
    /// Its own levels, if there are several endpoints.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<String, LevelSummary>,
    /// Its own totals likewise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, CounterSummary>,
}

/// A level over the window, from samples of it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LevelSummary {
    /// Samples.
    pub n: u64,
    /// Mean of the samples.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile of the samples.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// A total over the span between two samples inside the window.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CounterSummary {
    /// By how much it grew.
    pub total: f64,
    /// Per second.
    pub per_s: f64,
}

/// A distribution over the span between two samples inside the window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HistogramSummary {
    /// Values.
    pub n: f64,
    /// Their mean, which is exact.
    pub mean: f64,
    /// Percentiles by name (`p50`, `p90`, `p99`), each between the bounds of its bucket.
    pub percentiles: BTreeMap<String, BucketPercentile>,
}

/// A percentile that is only known to lie in a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct BucketPercentile {
    /// Interpolated between the bounds, as if values were spread evenly there; none in the last
    /// bucket, which has no upper bound.
    pub value: Option<f64>,
    /// Not below this.
    pub low: f64,
    /// Not above this.
    pub high: Option<f64>,
}

/// The queue over the window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct QueueSummary {
    /// Most requests that were seen waiting.
    pub waiting_max: f64,
    /// When, in seconds since the first instant.
    pub waiting_max_at_s: f64,
    /// Share of samples in which some waited.
    pub waiting_share: f64,
    /// Requests that the batch never exceeded, whether or not others waited: apparently its limit.
    pub batch_limit: Option<f64>,
    /// Share of samples in which the batch was at that limit.
    pub at_limit_share: Option<f64>,
    /// Share of samples in which it was, with others waiting.
    #[serde(default)]
    pub held_up_share: Option<f64>,
    /// Mean time in the queue, as the server counts it, in milliseconds: of requests that left the
    /// queue, so too low while it grows.
    pub wait_mean_ms: Option<f64>,
    /// Its share of the server's mean TTFT.
    pub wait_share_of_ttft: Option<f64>,
}

/// What client and server count alike.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AgainstClient {
    /// Output tokens from before the first request to after the last answer, or, if a sample is
    /// missing there, between two samples.
    pub output_tokens: Option<Reconciled>,
    /// Prompt tokens likewise.
    pub prompt_tokens: Option<Reconciled>,
    /// Output tokens per second between two samples inside the window, by both.
    pub output_tokens_per_s: Option<Reconciled>,
    /// Mean TTFT from the send, of requests whose first token came between two samples inside the
    /// window, in milliseconds. The difference is outside what the server counts: network, gateway,
    /// reading and tokenizing the prompt.
    pub ttft_mean_ms: Option<Reconciled>,
    /// Mean E2E from the send likewise.
    pub e2e_mean_ms: Option<Reconciled>,
    /// Whether samples exist from before the first request and after the last answer, so that
    /// totals cover the same requests.
    #[serde(default)]
    pub covers_run: bool,
    /// Output tokens that cut answers may have had beyond what arrived, by plan; none if unknown.
    #[serde(default)]
    pub unseen_tokens: Option<f64>,
}

/// One quantity, counted by client and server.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Reconciled {
    /// By the client.
    pub client: f64,
    /// By the server.
    pub server: f64,
    /// Client minus server.
    pub difference: f64,
    /// The same as a share of the server's.
    pub share: Option<f64>,
}

/// TTFT by the length of the queue when a request arrived.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TtftByQueue {
    /// `server` if its gauge was sampled, `inferred` if requests sent without a first token yet
    /// were counted instead.
    pub source: String,
    /// From the shortest queue to the longest.
    pub bands: Vec<QueueBand>,
    /// Rank correlation between queue and TTFT, -1 to 1.
    pub rank_correlation: Option<f64>,
}

/// Requests that found a queue of this length.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct QueueBand {
    /// Fewest that waited.
    pub from: f64,
    /// Most that waited.
    pub to: f64,
    /// Requests.
    pub n: u64,
    /// Median TTFT; none if it lies beyond the time limit.
    pub ttft_p50_ms: Option<f64>,
    /// 99th percentile; none below 100 requests, or if it lies beyond the time limit.
    pub ttft_p99_ms: Option<f64>,
}

/// An event that lasted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Mark {
    /// `kv_pressure`, `preemptions`, `queue`, `restart`, `no_answer`, `rejections`.
    pub kind: String,
    /// Start.
    pub start_s: f64,
    /// End.
    pub end_s: f64,
    /// How much: the highest level, or the count.
    pub value: f64,
}

/// Levels at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct TimelinePoint {
    /// Seconds since the first instant.
    pub at_s: f64,
    /// In the batch.
    pub running: Option<f64>,
    /// In the queue.
    pub waiting: Option<f64>,
    /// Share of the KV cache in use.
    pub kv_usage: Option<f64>,
    /// Generated tokens per second since the point before.
    pub generation_per_s: Option<f64>,
    /// Power of all GPUs, in watts.
    pub power_w: Option<f64>,
}
