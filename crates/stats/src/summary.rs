//! The shape of `summary.json`, version 1. Paths are added, never renamed.

mod client;

use std::collections::BTreeMap;

use goodput_model::{
    Caveat, Ceiling, EndedBy, Repeat, ShardFacts, ShardPart, SystemFacts, Verdict,
};
use serde::{Deserialize, Serialize};

pub use client::{
    CanarySummary, ClientSummary, HostSummary, LittlesLaw, Stalls, TcpSummary, ThreadSummary,
};

use crate::estimate::Quality;
use crate::gpu::GpuSummary;
use crate::saturation::Saturation;
use crate::server::ServerSummary;
use crate::slo::SloSummary;
use crate::steady::{Cut, Steadiness};
use crate::until::UntilSummary;
use crate::window::Window;
use crate::workload::{
    Breakdown, CacheSummary, Lengths, RecountSummary, ReplaySummary, SessionsSummary, Spread,
    StructuredSummary,
};

/// Everything that is known about a run, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// `goodput.summary/1`
    pub schema: String,
    /// Whether to believe it.
    pub verdict: Verdict,
    /// Why not, and what to know.
    pub caveats: Vec<Caveat>,
    /// What was run.
    pub run: RunFacts,
    /// The load, as asked and as delivered.
    pub load: LoadSummary,
    /// What became of the measured requests.
    pub requests: Requests,
    /// Tokens of the measured requests.
    pub tokens: Tokens,
    /// Rates inside the window.
    pub throughput: Throughput,
    /// Rates from the first request to the last answer, for comparison with tools that do so.
    pub whole_run: Throughput,
    /// TTFT, TPOT and E2E of all requests, those of warm-up and cooldown included.
    #[serde(default)]
    pub whole_run_latency_ms: BTreeMap<String, Spread>,
    /// The measured part, in seconds since the first instant.
    pub window: WindowSummary,
    /// Whether the window was one state; none where the load was not meant to be steady.
    #[serde(default)]
    pub steadiness: Option<Steadiness>,
    /// Whether the server kept up; none where arrivals depend on answers, and below 30 s.
    #[serde(default)]
    pub saturation: Option<Saturation>,
    /// The distributions.
    pub metrics: BTreeMap<String, Metric>,
    /// Where the time to the first token went; none without streams.
    #[serde(default)]
    pub waterfall: Option<Waterfall>,
    /// How the client fared.
    #[serde(default)]
    pub client: ClientSummary,
    /// Lengths as planned and as counted.
    #[serde(default)]
    pub lengths: Lengths,
    /// The main figures by what requests have in common; empty where they do not differ.
    #[serde(default)]
    pub breakdown: Breakdown,
    /// The prefix cache, asked for and seen; none where neither was.
    #[serde(default)]
    pub cache: Option<CacheSummary>,
    /// How close a replay kept to its trace.
    #[serde(default)]
    pub replay: Option<ReplaySummary>,
    /// Answers under constraints, by kind.
    #[serde(default)]
    pub structured: BTreeMap<String, StructuredSummary>,
    /// Answers counted by a tokenizer of ours.
    #[serde(default)]
    pub recount: Option<RecountSummary>,
    /// Sessions of several requests.
    #[serde(default)]
    pub sessions: Option<SessionsSummary>,
    /// How it did against its SLO; none without one.
    #[serde(default)]
    pub slo: Option<SloSummary>,
    /// What `--until` asked for, and what is known; none where it did not.
    #[serde(default)]
    pub until: Option<UntilSummary>,
    /// The server's own account; none where it gives none.
    #[serde(default)]
    pub server: Option<ServerSummary>,
    /// What GPUs did; none where nobody told.
    #[serde(default)]
    pub gpu: Option<GpuSummary>,
}

impl Summary {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.summary/1";
}

/// What was run, for the head of a report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunFacts {
    /// Version of goodput that measured.
    pub version: String,
    /// When it began (RFC 3339).
    pub started: String,
    /// How it ended.
    pub state: RunState,
    /// URL without secrets.
    pub target: String,
    /// Model asked for.
    pub model: String,
    /// `chat` or `completions`.
    pub api: String,
    /// Whether answers were streamed.
    pub stream: bool,
    /// The workload in one line.
    pub workload: String,
    /// Seed of arrivals and prompts.
    pub seed: u64,
    /// Warm-up as asked for.
    pub warmup: String,
    /// Records that were measured and lost.
    pub lost_records: u64,
    /// Records that the disk refused: in this report, but not in the folder.
    pub unwritten_records: u64,
    /// Whether the log ended in a damaged frame.
    pub log_damaged: bool,
    /// What the client can carry on its machine, where `goodput calibrate` has found that out.
    #[serde(default)]
    pub ceiling: Option<Ceiling>,
    /// Hash of everything that the plan sends; empty where nobody computed it.
    #[serde(default)]
    pub workload_hash: String,
    /// What a reader should know about the workload.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Who counted the tokens of our words, in one line.
    #[serde(default)]
    pub calibration: Option<String>,
    /// Requests of sessions that were not sent any more because the run ended.
    #[serde(default)]
    pub cut_requests: u64,
    /// Prompt tokens that the server looked up in its prefix cache during the run and found there,
    /// by its own counters.
    #[serde(default)]
    pub cache_counters: Option<(u64, u64)>,
    /// Whether the workload had no more sessions when the run would have gone on.
    #[serde(default)]
    pub workload_ended: bool,
    /// By how much the wall clock moved against the monotonic one during the run.
    #[serde(default)]
    pub clock_step_ms: Option<f64>,
    /// When sending was stopped before its planned end, in seconds since the first instant.
    #[serde(default)]
    pub stopped_s: Option<f64>,
    /// What ended the sending; none of a run that was killed.
    #[serde(default)]
    pub ended_by: Option<EndedBy>,
    /// Which of several runs of one plan this is.
    #[serde(default)]
    pub repeat: Option<Repeat>,
    /// Which of several clients of one plan this is.
    #[serde(default)]
    pub shard: Option<ShardFacts>,
    /// The clients whose records were merged into this one.
    #[serde(default)]
    pub shards: Vec<ShardPart>,
    /// The server's side, as far as it is known.
    #[serde(default)]
    pub system: SystemFacts,
}

impl RunFacts {
    /// Whether the run went as far as it was planned to.
    pub(crate) fn is_complete(&self) -> bool {
        self.state == RunState::Complete
    }

    /// Whether it was a point of a sweep that gave up what was under way.
    pub(crate) fn gave_up(&self) -> bool {
        self.ended_by == Some(EndedBy::Hopeless)
    }

    /// Whether the engine was a mock of ours, in this process or another: it has no hardware.
    pub fn is_simulated(&self) -> bool {
        self.target.starts_with("mock") || self.system.fact(&["engine"]) == Some("goodput mock")
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// As planned.
    #[default]
    Complete,
    /// By the user.
    Interrupted,
    /// Not at all: the process was killed, or still runs.
    Unfinished,
}

/// The load, as asked and as delivered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSummary {
    /// `open`, `shaped`, `replay`, `capped`, `burst` or `closed`.
    pub mode: String,
    /// Arrival process of an open loop.
    pub arrivals: Option<String>,
    /// How the rate changes over time, where it does.
    #[serde(default)]
    pub shape: Option<String>,
    /// Rate of arrivals asked for: of sessions, where there are such; the mean over the window,
    /// where it changes.
    pub offered_rps: Option<f64>,
    /// Rate of the due instants: the offered rate with the chance of this schedule in it.
    pub scheduled_rps: Option<f64>,
    /// Rate at which requests were really sent.
    pub delivered_rps: Option<f64>,
    /// Share of due requests that were sent.
    pub delivered_share: Option<f64>,
    /// Coefficient of variation of the gaps between sends.
    pub gap_cv: Option<f64>,
    /// Poisson arrivals: whether the due instants are what they should be.
    #[serde(default)]
    pub due_gaps: Option<GapTest>,
    /// Poisson arrivals: whether requests really left like that.
    #[serde(default)]
    pub sent_gaps: Option<GapTest>,
    /// Users of a closed loop.
    pub concurrency: Option<u32>,
    /// Cap of a capped loop.
    pub max_concurrency: Option<u32>,
    /// Requests that the cap held back.
    pub delayed: u64,
    /// Lateness of the client itself.
    pub slip_ms: Quick,
    /// Requests under way, averaged over the window.
    pub in_flight_mean: Option<f64>,
    /// Requests under way at the end of the window.
    pub in_flight_end: u64,
}

/// A distribution in three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Quick {
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

/// What became of the measured requests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Requests {
    /// Due inside the window.
    pub scheduled: u64,
    /// Ended well.
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
    /// Pooled connections that turned out dead and were opened anew.
    pub reconnects: u64,
    /// Requests that opened a connection of their own.
    pub connects: u64,
    /// Answers that came in one piece though streams were asked for.
    #[serde(default)]
    pub whole: u64,
    /// Finish reasons of those that ended well.
    pub finish_reasons: BTreeMap<String, u64>,
}

/// The class of requests that were given up when the run ended.
pub(crate) const CUT_OFF: &str = "cut_off";

impl Requests {
    /// Those that were given up when the run ended.
    pub(crate) fn cut_off(&self) -> u64 {
        self.errors.get(CUT_OFF).copied().unwrap_or_default()
    }

    /// Those that failed by themselves: what a point gave up when it ended early did not.
    pub(crate) fn failed_by(&self, run: &RunFacts) -> u64 {
        self.failed.saturating_sub(if run.gave_up() { self.cut_off() } else { 0 })
    }

    /// The share of those; none without any request.
    pub(crate) fn failed_share(&self, run: &RunFacts) -> Option<f64> {
        (self.scheduled > 0).then(|| self.failed_by(run) as f64 / self.scheduled as f64)
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

/// Tokens of the measured requests that ended well.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tokens {
    /// Prompt tokens.
    pub input: u64,
    /// Who counted them: `usage` or `planned`, or `mixed`.
    pub input_source: String,
    /// Output tokens.
    pub output: u64,
    /// Who counted them: `usage`, `token_ids`, `tokenizer` or `chunks`, or `mixed`.
    pub output_source: String,
    /// Good answers that nobody counted the tokens of; they are missing from `output`.
    #[serde(default)]
    pub uncounted: u64,
    /// Prompt tokens from the server's cache, where it says.
    pub cached: Option<u64>,
    /// Prompt tokens that stand for images, where it says.
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
    /// Requests that ended well, per second.
    pub requests_per_s: Option<f64>,
    /// Output tokens by their arrival, per second.
    pub output_tokens_per_s: Option<f64>,
    /// Prompt tokens (counted when the first token arrives) and output tokens, per second.
    pub total_tokens_per_s: Option<f64>,
}

/// The measured part of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowSummary {
    /// Where it begins.
    pub start_s: f64,
    /// Where it ends.
    pub end_s: f64,
    /// `steady`, or `makespan` where there was no steady part: a burst, or very few requests.
    pub kind: String,
    /// What an automatic warm-up cut; none where none was asked for.
    #[serde(default)]
    pub cut: Option<Cut>,
}

impl WindowSummary {
    pub(crate) fn of(window: Window, cut: Option<Cut>) -> Self {
        let kind = if window.is_makespan() { "makespan" } else { "steady" };
        Self {
            start_s: window.start.as_secs(),
            end_s: window.end.as_secs(),
            kind: kind.to_owned(),
            cut,
        }
    }
}

/// One metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Unit of every value.
    pub unit: String,
    /// Number of samples.
    pub n: u64,
    /// Samples that are only known to be larger: requests that ran into a time limit.
    pub censored: u64,
    /// Mean; none when a sample is censored.
    pub mean: Option<f64>,
    /// Standard deviation; none when a sample is censored.
    pub std: Option<f64>,
    /// Smallest.
    pub min: Option<f64>,
    /// Largest; none when a sample is censored.
    pub max: Option<f64>,
    /// By percent, as text.
    pub percentiles: BTreeMap<String, Percentile>,
    /// Lower end of the mean's 95 % interval, by batch means.
    #[serde(default)]
    pub mean_low: Option<f64>,
    /// Upper end of it.
    #[serde(default)]
    pub mean_high: Option<f64>,
    /// p99 over p50; none when either is unknown.
    #[serde(default)]
    pub tail_ratio: Option<f64>,
    /// How much a value tells about the next in order of due instants (autocorrelation at lag 1);
    /// only of TTFT.
    #[serde(default)]
    pub lag1: Option<f64>,
}

/// One percentile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// The value; none when there is no sample or it falls among the censored ones.
    pub value: Option<f64>,
    /// Lower end of its 95 % interval; none where that is not estimable. Where `quality` is `rough`, one
    /// end at most is given: the one that can be trusted.
    pub low: Option<f64>,
    /// Upper end of its interval; none where that is not estimable, or beyond the time limit.
    pub high: Option<f64>,
    /// Whether it lies beyond the time limit.
    #[serde(default)]
    pub is_censored: bool,
    /// Whether the upper end of its interval lies beyond the time limit.
    #[serde(default)]
    pub high_is_censored: bool,
    /// As many independent samples would say as much about it; none where nobody knows.
    #[serde(default)]
    pub n_eff: Option<f64>,
    /// Whether it may stand without its interval.
    #[serde(default)]
    pub quality: Quality,
    /// MLPerf's early-stopping estimate: on the safe side with 99 %; none from too few samples.
    #[serde(default)]
    pub early_stopping: Option<f64>,
    /// The percentile of completed requests alone, where failures that took longer change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<f64>,
}

/// A Kolmogorov–Smirnov test of gaps against the exponential distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GapTest {
    /// Number of gaps.
    pub n: u64,
    /// Largest difference between the two distributions.
    pub distance: f64,
    /// Chance of such a difference, were the gaps exponential.
    pub p: f64,
}

/// Where the time to the first token went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Waterfall {
    /// Mean over the tenth of all requests around the median.
    pub median: WaterfallBand,
    /// Mean over the slowest hundredth.
    pub slowest: WaterfallBand,
}

/// Parts of TTFT from schedule, averaged over the same requests, so that they add up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaterfallBand {
    /// Number of requests.
    pub n: u64,
    /// Their mean TTFT.
    pub ttft_ms: f64,
    /// Its parts in order of time.
    pub parts: Vec<WaterfallPart>,
}

/// One part of TTFT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaterfallPart {
    /// `held` (by a cap), `slip`, `blocked` (waiting for a connection), `dns`, `connect`, `tls`,
    /// `send`, `wait` (for the headers), `header_to_byte`, `byte_to_token`.
    pub name: String,
    /// How long.
    pub ms: f64,
}
