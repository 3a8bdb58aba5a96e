//! What a server says about itself, in one vocabulary for all engines, and what its GPUs say.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// How a figure behaves over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalKind {
    /// A level: it goes up and down.
    Gauge,
    /// A total: it goes up only.
    Counter,
    /// A distribution, of seconds unless its name says otherwise.
    Histogram,
}

/// Declares the enum, its names for files and scripts, and the list of all.
macro_rules! signals {
    ($($(#[$doc:meta])* $variant:ident = $name:literal is $kind:ident,)*) => {
        /// A figure that servers state about themselves.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Signal {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl Signal {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable name: `running`, `queue_time`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// How it behaves over time.
            pub fn kind(self) -> SignalKind {
                match self {
                    $(Self::$variant => SignalKind::$kind,)*
                }
            }
        }
    };
}

signals! {
    /// Requests in the batch.
    Running = "running" is Gauge,
    /// Requests taken, but not in the batch.
    Waiting = "waiting" is Gauge,
    /// Sequences in one step, where a server tells that apart from the requests that run.
    BatchSize = "batch_size" is Gauge,
    /// Share of the KV cache in use, 0 to 1.
    KvUsage = "kv_usage" is Gauge,
    /// Share of prompt tokens from the prefix cache, 0 to 1, as the server averages it.
    PrefixHitRate = "prefix_hit_rate" is Gauge,
    /// Share of drafted tokens that were accepted, 0 to 1, as the server averages it.
    SpeculativeAcceptance = "speculative_acceptance" is Gauge,
    /// Tokens that a step of speculative decoding yields, as the server averages it.
    SpeculativeLength = "speculative_length" is Gauge,
    /// Prompt tokens.
    PromptTokens = "prompt_tokens" is Counter,
    /// Generated tokens.
    GenerationTokens = "generation_tokens" is Counter,
    /// Prompt tokens looked up in the prefix cache.
    PrefixQueries = "prefix_queries" is Counter,
    /// Those found there.
    PrefixHits = "prefix_hits" is Counter,
    /// Requests that had to leave the batch.
    Preemptions = "preemptions" is Counter,
    /// Requests that ended.
    RequestsEnded = "requests_ended" is Counter,
    /// Requests turned away.
    Rejections = "rejections" is Counter,
    /// Tokens drafted by speculative decoding.
    DraftedTokens = "drafted_tokens" is Counter,
    /// Those accepted.
    AcceptedTokens = "accepted_tokens" is Counter,
    /// Seconds spent on prompts.
    PromptSeconds = "prompt_seconds" is Counter,
    /// Seconds spent on generation.
    GenerationSeconds = "generation_seconds" is Counter,
    /// To the first token.
    Ttft = "ttft" is Histogram,
    /// Between tokens.
    Itl = "itl" is Histogram,
    /// Per output token of a request.
    Tpot = "tpot" is Histogram,
    /// Whole requests.
    E2e = "e2e" is Histogram,
    /// In the queue.
    QueueTime = "queue_time" is Histogram,
    /// Computing the prompt.
    PrefillTime = "prefill_time" is Histogram,
    /// From the first token to the last.
    DecodeTime = "decode_time" is Histogram,
    /// Tokens computed in one step.
    StepTokens = "step_tokens" is Histogram,
    /// `kv_usage` of the engine whose KV cache is fullest, where one page speaks of several.
    KvUsageMax = "kv_usage_max" is Gauge,
    /// Replicas that are ready, by the word of what scales them.
    Replicas = "replicas" is Gauge,
}

/// A distribution as a server counts it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Buckets {
    /// Upper bounds, rising; the last is infinite. Empty if only sum and count are known.
    pub bounds: Vec<f64>,
    /// Values up to each bound, all smaller ones included.
    pub cumulative: Vec<f64>,
    /// Sum of all values.
    pub sum: f64,
    /// Number of all values.
    pub count: f64,
}

/// One figure at one instant. Totals and distributions count from the first look at the endpoint, a
/// server that started again in between notwithstanding.
#[derive(Debug, Clone, PartialEq)]
pub enum SignalValue {
    /// A gauge, or a counter.
    Number(f64),
    /// A histogram.
    Buckets(Buckets),
}

/// What one endpoint said in one answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerReading {
    /// In our vocabulary.
    pub values: BTreeMap<Signal, SignalValue>,
    /// Series that went down since the look before, where they only go up: a server that started
    /// again.
    pub resets: u32,
    /// Lines that could not be read.
    pub malformed: u32,
    /// Whether several servers answer here in turn. The page has no totals then, because any of
    /// them may have counted.
    pub of_several: bool,
}

/// One question to one endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct Scrape {
    /// When the answer describes the server: halfway between question and answer, on the run's
    /// clock. What the server's own clock says is not used. Before the first request it is zero.
    pub at: Nanos,
    /// How long the answer took.
    pub took: Nanos,
    /// Which endpoint, in the order of the manifest.
    pub endpoint: u32,
    /// The outcome.
    pub outcome: Result<ServerReading, String>,
}

/// One GPU at one instant. What a source does not tell is absent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GpuSample {
    /// When, on the run's clock.
    pub at: Nanos,
    /// Which, in the order of the manifest.
    pub gpu: u32,
    /// Share of time in which some kernel ran, 0 to 1.
    pub busy: Option<f64>,
    /// Share of cycles in which a multiprocessor had work, 0 to 1.
    pub sm_active: Option<f64>,
    /// Share of cycles in which the tensor cores worked, 0 to 1.
    pub tensor_active: Option<f64>,
    /// Share of cycles in which the memory was read or written, 0 to 1: bandwidth in use.
    pub dram_active: Option<f64>,
    /// Memory in use, in bytes.
    pub memory_used: Option<f64>,
    /// Power, in watts: as the source averages it.
    pub power_w: Option<f64>,
    /// Energy since some beginning, in joules.
    pub energy_j: Option<f64>,
    /// Clock of the multiprocessors, in MHz.
    pub sm_clock_mhz: Option<f64>,
    /// Clock of the memory, in MHz.
    pub memory_clock_mhz: Option<f64>,
    /// Degrees Celsius.
    pub temperature_c: Option<f64>,
    /// Why it is slower than it could be; empty if nothing holds it back.
    pub throttled: Option<Vec<String>>,
}

/// What a GPU is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuFacts {
    /// Product name.
    pub name: String,
    /// What distinguishes it from others of its kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uuid: String,
    /// The board that it is on, if a source reports parts of boards, which share one energy meter.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub board: String,
    /// Memory, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<f64>,
    /// Power limit, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_limit_w: Option<f64>,
    /// How it is connected: `PCIe 5 x16, 18 NVLinks`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub interconnect: String,
}

/// The server's side of a run, as far as it is known.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemFacts {
    /// Metrics pages that were scraped during the load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricsSource>,
    /// The source of GPU data: `nvml`, or the URL of an exporter. Empty without data.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gpu_source: String,
    /// Why GPU data is missing although it might exist.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gpu_absent: String,
    /// The driver's version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gpu_driver: String,
    /// The GPUs, in the order of their samples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuFacts>,
    /// Power of all GPUs with the server idle, if measured, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_idle_w: Option<f64>,
    /// Whether the server was told to profile itself during the load.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub profiled: bool,
    /// What the server's endpoints report: `engine`, `engine_version`, `max_model_len`. Foreign
    /// text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub found: BTreeMap<String, String>,
    /// What the user states (`--meta`, `[system]` of a plan).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub said: BTreeMap<String, String>,
}

impl SystemFacts {
    /// The first of these facts that is known, by the user's word before that of the server.
    pub fn fact(&self, names: &[&str]) -> Option<&str> {
        let mut all = [&self.said, &self.found]
            .into_iter()
            .flat_map(|facts| names.iter().filter_map(|name| facts.get(*name)).map(String::as_str));
        all.find(|value| !value.is_empty())
    }
}

/// One page of metrics.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MetricsSource {
    /// URL without secrets.
    pub url: String,
    /// The engine whose names it uses: `vllm`, `sglang`, the name of a map; empty if the names are
    /// unknown.
    pub engine: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (place, signal) in Signal::ALL.iter().enumerate() {
            assert!(Signal::ALL[..place].iter().all(|other| other.name() != signal.name()));
        }
    }
}
