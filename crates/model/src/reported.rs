//! [`Reported`]: what a result file of any tool states, in one vocabulary and one set of
//! units (milliseconds, seconds, tokens). What the file does not state is `None`, never a guess.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Who wrote a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceTool {
    /// This program.
    Goodput,
    /// `vllm bench serve`, in Python.
    VllmPython,
    /// `vllm-bench`, its twin in Rust.
    VllmRust,
    /// SGLang's `bench_serving`.
    Sglang,
    /// NVIDIA AIPerf.
    Aiperf,
    /// NVIDIA GenAI-Perf, AIPerf's elder.
    GenaiPerf,
    /// GuideLLM.
    Guidellm,
}

impl SourceTool {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::VllmPython => "vllm bench serve",
            Self::VllmRust => "vllm-bench (Rust)",
            Self::Sglang => "SGLang bench_serving",
            Self::Aiperf => "AIPerf",
            Self::GenaiPerf => "GenAI-Perf",
            Self::Guidellm => "GuideLLM",
        }
    }
}

/// What a result file states about one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    /// Who wrote it.
    pub tool: SourceTool,
    /// In which version.
    pub version: Option<String>,
    /// Which of the runs in the file; empty if there is one only.
    pub label: String,
    /// Runs at other loads that stand in the same file.
    pub siblings: u64,
    /// Model asked for.
    pub model: Option<String>,
    /// API or backend, in the tool's word.
    pub backend: Option<String>,
    /// When it began, in the tool's form.
    pub started: Option<String>,
    /// Time that the throughput is divided by, in seconds.
    pub duration_s: Option<f64>,
    /// The load.
    pub load: ReportedLoad,
    /// Warm-up.
    pub warmup: ReportedWarmup,
    /// Requests that were to be sent.
    pub asked: Option<u64>,
    /// Completed requests.
    pub ok: Option<u64>,
    /// Those that did not.
    pub failed: Option<u64>,
    /// Prompt tokens.
    pub input_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// Output tokens by the tool's own tokenizer, where it states both.
    pub recounted_tokens: Option<u64>,
    /// What counted the output tokens.
    pub token_source: Option<String>,
    /// Completed requests per second.
    pub requests_per_s: Option<f64>,
    /// Output tokens per second.
    pub output_tokens_per_s: Option<f64>,
    /// All tokens per second.
    pub total_tokens_per_s: Option<f64>,
    /// The distributions in ms: `ttft`, `tpot`, `itl`, `e2e`, `e2e_sched`.
    pub metrics: BTreeMap<String, ReportedMetric>,
    /// What was sent, in the tool's word: the name of a dataset, or of a distribution.
    pub workload: Option<String>,
    /// Prompt lengths.
    pub input_lengths: Option<LengthRange>,
    /// Output lengths.
    pub output_lengths: Option<LengthRange>,
    /// Seed of arrivals or prompts.
    pub seed: Option<u64>,
    /// Whether answers were streamed.
    pub streaming: Option<bool>,
    /// A bound on latency, and what kept it.
    pub goodput: Option<ReportedGoodput>,
    /// Repeated runs that the figures rest on.
    pub repeats: Option<u64>,
    /// The system under test.
    pub setup: ReportedSetup,
    /// What is wrong with the run by the tool's own word: cancelled, incomplete, warnings.
    pub remarks: Vec<String>,
    /// Values in the file that are not finite: NaN and the infinities.
    pub not_finite: u64,
    /// What the file states twice and not alike, in words.
    #[serde(default)]
    pub conflicts: Vec<String>,
    /// Every request, where the file holds them.
    pub details: Option<Vec<ReportedRequest>>,
}

impl Reported {
    /// A result of which nothing is known but who wrote it.
    pub fn new(tool: SourceTool) -> Self {
        Self {
            tool,
            version: None,
            label: String::new(),
            siblings: 0,
            model: None,
            backend: None,
            started: None,
            duration_s: None,
            load: ReportedLoad::default(),
            warmup: ReportedWarmup::default(),
            asked: None,
            ok: None,
            failed: None,
            input_tokens: None,
            output_tokens: None,
            recounted_tokens: None,
            token_source: None,
            requests_per_s: None,
            output_tokens_per_s: None,
            total_tokens_per_s: None,
            metrics: BTreeMap::new(),
            workload: None,
            input_lengths: None,
            output_lengths: None,
            seed: None,
            streaming: None,
            goodput: None,
            repeats: None,
            setup: ReportedSetup::default(),
            remarks: Vec::new(),
            not_finite: 0,
            conflicts: Vec::new(),
            details: None,
        }
    }
}

/// Who decided when a request started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportedMode {
    /// A schedule.
    Open,
    /// A schedule, held to a number of requests at once.
    Capped,
    /// Everything at once.
    Burst,
    /// A number of users, each waiting for its answer.
    Closed,
    /// The file does not say.
    #[default]
    Unknown,
}

/// The load, as the file states it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReportedLoad {
    /// Who decided when a request started.
    pub mode: ReportedMode,
    /// Rate asked for, in requests per second.
    pub rate_rps: Option<f64>,
    /// Arrival process.
    pub arrivals: Option<String>,
    /// Shape of the gaps: 1 is Poisson, below 1 is burstier.
    pub burstiness: Option<f64>,
    /// Users of a closed loop, or the cap of an open one.
    pub concurrency: Option<u64>,
    /// Most requests in flight at once, as measured.
    pub peak_concurrency: Option<f64>,
    /// Mean number of requests in flight, as measured.
    #[serde(default)]
    pub mean_concurrency: Option<f64>,
}

/// Warm-up, as the file states it. Zero is stated; `None` is not.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ReportedWarmup {
    /// In requests.
    pub requests: Option<u64>,
    /// In seconds.
    pub seconds: Option<f64>,
}

/// One distribution, as far as it is stated.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReportedMetric {
    /// Number of samples.
    pub n: Option<u64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Standard deviation.
    pub std: Option<f64>,
    /// Median, where it is stated apart from the percentiles.
    pub median: Option<f64>,
    /// Smallest.
    pub min: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Percentiles, as (percent, value), in order of percent.
    pub percentiles: Vec<(f64, f64)>,
}

impl ReportedMetric {
    /// The value of a percentile, where it is stated; the median counts as the 50th.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let stated = self.percentiles.iter().find(|(p, _)| *p == percent).map(|(_, value)| *value);
        if percent == 50.0 { stated.or(self.median) } else { stated }
    }

    /// Whether it states anything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Lengths in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LengthRange {
    /// Shortest.
    pub min: f64,
    /// Longest.
    pub max: f64,
}

/// A bound on latency, and what kept it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReportedGoodput {
    /// The bound, in the tool's words; empty if the file has only the figure.
    pub terms: String,
    /// Requests per second that kept it.
    pub requests_per_s: Option<f64>,
    /// Share of the requests that kept it.
    pub share: Option<f64>,
}

/// The system under test, as the file states it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReportedSetup {
    /// Kind of accelerator.
    pub hardware: Option<String>,
    /// How many of them.
    pub gpus: Option<u64>,
    /// What joins them.
    pub interconnect: Option<String>,
    /// Number format or quantization of the weights.
    pub precision: Option<String>,
    /// Engine and version.
    pub engine: Option<String>,
    /// Settings of the engine.
    pub flags: Option<String>,
    /// How busy accelerator, memory or KV cache were.
    pub utilisation: Option<String>,
    /// Version of the accelerator's driver.
    #[serde(default)]
    pub driver: Option<String>,
    /// How the model is spread: tensor, pipeline, data.
    #[serde(default)]
    pub parallelism: Option<String>,
    /// Longest sequence, most sequences and tokens in a batch.
    #[serde(default)]
    pub limits: Option<String>,
    /// Whether prompts may come from a prefix cache.
    #[serde(default)]
    pub prefix_caching: Option<String>,
    /// What of the utilization is not stated.
    #[serde(default)]
    pub utilisation_lacks: Option<String>,
    /// Revision of the model.
    #[serde(default)]
    pub model_revision: Option<String>,
    /// Most sequences in a batch.
    #[serde(default)]
    pub batch_limit: Option<String>,
    /// Most requests that may wait.
    #[serde(default)]
    pub queue_limit: Option<String>,
    /// How many sequences the batch had.
    #[serde(default)]
    pub batch: Option<String>,
    /// What computes attention.
    #[serde(default)]
    pub attention_backend: Option<String>,
    /// In which order requests are served.
    #[serde(default)]
    pub scheduling: Option<String>,
    /// The network between client and server.
    #[serde(default)]
    pub network: Option<String>,
    /// Where weights and caches lie.
    #[serde(default)]
    pub storage: Option<String>,
    /// How much the engine logs.
    #[serde(default)]
    pub logging: Option<String>,
}

/// One request of a file that holds them all.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReportedRequest {
    /// When it was sent, in seconds of the tool's clock.
    pub start_s: Option<f64>,
    /// Time to the first token.
    pub ttft_ms: Option<f64>,
    /// Time to the end.
    pub e2e_ms: Option<f64>,
    /// Gaps between chunks.
    pub gaps_ms: Option<Vec<f64>>,
    /// Prompt tokens.
    pub input_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// Whether it failed.
    pub is_failed: bool,
}

impl ReportedRequest {
    /// The whole time it took: stated, or to the last chunk.
    pub fn total_ms(&self) -> Option<f64> {
        let gaps = self.gaps_ms.as_ref().map(|gaps| gaps.iter().sum::<f64>());
        self.e2e_ms.or_else(|| Some(self.ttft_ms? + gaps?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_50th_percentile() {
        let metric = ReportedMetric { median: Some(2.0), ..ReportedMetric::default() };
        assert_eq!(metric.percentile(50.0), Some(2.0));
        assert_eq!(metric.percentile(99.0), None);
        assert!(ReportedMetric::default().is_empty());
    }
}
