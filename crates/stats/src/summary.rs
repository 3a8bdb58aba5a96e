//! The shape of `summary.json`, version 1. Paths are added, never renamed.
//!
//! Data alone: these types know nothing of the modules that fill them, so that each of those may
//! know all of these.

mod client;
mod gpu;
mod load;
mod metric;
mod requests;
mod run;
mod saturation;
mod server;
mod slices;
mod slo;
pub(crate) mod steady;
mod until;
mod waterfall;
mod workload;

pub use client::{
    CanarySummary, ClientSummary, HostSummary, LittlesLaw, Stalls, TcpSummary, ThreadSummary,
};
pub use gpu::{Energy, GpuDevice, GpuSummary, PerToken};
pub use load::{GapTest, LoadSummary};
pub use metric::{Metric, Percentile, Quality, Quick, Spread};
pub(crate) use requests::CUT_OFF;
pub use requests::{ErrorDetail, Requests, Throughput, Tokens};
pub use run::{RunFacts, RunState};
pub use saturation::{Saturation, Slope};
pub use server::{
    AgainstClient, BucketPercentile, CounterSummary, EndpointSummary, HistogramSummary,
    LevelSummary, Mark, QueueBand, QueueSummary, Reconciled, ReplicaChange, ScalingSummary,
    ServerSummary, TimelinePoint, TtftByQueue,
};
pub use slices::Slices;
pub use slo::{FluiditySummary, SloMisses, SloState, SloSummary, SloTermSummary, TtftFit};
pub(crate) use steady::{Cut, Steadiness};
pub use until::{GoalSummary, UntilSummary};
pub use waterfall::{Waterfall, WaterfallBand, WaterfallPart};
pub use workload::{
    Breakdown, CacheRotation, CacheSummary, LengthCheck, Lengths, RecountSummary, ReplaySummary,
    SessionsSummary, Slice, StructuredSummary,
};

use std::collections::BTreeMap;

use goodput_model::{Caveat, Verdict};
use serde::{Deserialize, Serialize};

/// Everything known about a run, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// `goodput.summary/1`
    pub schema: String,
    /// Whether to believe it.
    pub verdict: Verdict,
    /// Reasons to doubt it, and what to know.
    pub caveats: Vec<Caveat>,
    /// What was run.
    pub run: RunFacts,
    /// The load, as planned and as delivered.
    pub load: LoadSummary,
    /// Outcomes of the measured requests.
    pub requests: Requests,
    /// Tokens of the measured requests.
    pub tokens: Tokens,
    /// Rates inside the window.
    pub throughput: Throughput,
    /// Rates from the first request to the last answer, for comparison with tools that compute them
    /// that way.
    pub whole_run: Throughput,
    /// TTFT, TPOT and E2E of all requests, those of warm-up and cooldown included.
    #[serde(default)]
    pub whole_run_latency_ms: BTreeMap<String, Spread>,
    /// The measured part, in seconds since the first instant.
    pub window: WindowSummary,
    /// Whether the window was one state; none if the load was not meant to be steady.
    #[serde(default)]
    pub steadiness: Option<Steadiness>,
    /// Whether the server kept up; none if arrivals depend on answers, and below 30 s.
    #[serde(default)]
    pub saturation: Option<Saturation>,
    /// The distributions.
    pub metrics: BTreeMap<String, Metric>,
    /// Where the time to the first token went; none without streams.
    #[serde(default)]
    pub waterfall: Option<Waterfall>,
    /// The health of the client.
    #[serde(default)]
    pub client: ClientSummary,
    /// Lengths as planned and as counted.
    #[serde(default)]
    pub lengths: Lengths,
    /// The main figures by a shared property of requests; empty if requests do not differ.
    #[serde(default)]
    pub breakdown: Breakdown,
    /// The prefix cache, planned and observed; none without either.
    #[serde(default)]
    pub cache: Option<CacheSummary>,
    /// How closely a replay followed its trace.
    #[serde(default)]
    pub replay: Option<ReplaySummary>,
    /// Answers under constraints, by kind.
    #[serde(default)]
    pub structured: BTreeMap<String, StructuredSummary>,
    /// Answers counted by a tokenizer of goodput.
    #[serde(default)]
    pub recount: Option<RecountSummary>,
    /// Sessions of several requests.
    #[serde(default)]
    pub sessions: Option<SessionsSummary>,
    /// The result against the SLO; none without one.
    #[serde(default)]
    pub slo: Option<SloSummary>,
    /// What `--until` asked for, and what is known; none without it.
    #[serde(default)]
    pub until: Option<UntilSummary>,
    /// The server's own figures; none if it reports none.
    #[serde(default)]
    pub server: Option<ServerSummary>,
    /// What the GPUs did; none if no source reported it.
    #[serde(default)]
    pub gpu: Option<GpuSummary>,
}

impl Summary {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.summary/1";
}

/// The measured part of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowSummary {
    /// Where it begins.
    pub start_s: f64,
    /// Where it ends.
    pub end_s: f64,
    /// `steady`, or `makespan` without a steady part: a burst, or very few requests.
    pub kind: String,
    /// What an automatic warm-up cut; none without one.
    #[serde(default)]
    pub cut: Option<Cut>,
}
