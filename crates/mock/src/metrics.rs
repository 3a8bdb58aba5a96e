//! `/metrics`: what an engine says of itself, in the words of several engines.
//!
//! Nothing here reads a clock or a socket; the server says what happened and how long it took.

mod bounds;
mod llamacpp;
mod own;
mod page;
mod sglang;
mod tgi;
mod vllm;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::str::FromStr;

use goodput_model::{BoundedHistogram, Nanos};
pub use goodput_sim::Gauges;

use crate::faults::{FaultCounts, Label};
use crate::tally::LATE;

/// Whose names the page uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetricNames {
    /// vLLM 0.32.0.
    #[default]
    Vllm,
    /// SGLang.
    Sglang,
    /// Text Generation Inference.
    Tgi,
    /// llama.cpp's llama-server.
    Llamacpp,
}

impl MetricNames {
    /// All of them with their names.
    pub const NAMES: [(Self, &'static str); 4] = [
        (Self::Vllm, "vllm"),
        (Self::Sglang, "sglang"),
        (Self::Tgi, "tgi"),
        (Self::Llamacpp, "llamacpp"),
    ];
}

impl FromStr for MetricNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::NAMES.iter().find(|(_, name)| *name == text);
        known.map(|(dialect, _)| *dialect).ok_or_else(|| {
            let names: Vec<&str> = Self::NAMES.iter().map(|(_, name)| *name).collect();
            format!("`{text}` is not a metrics dialect; expected one of {}", names.join(", "))
        })
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// The model's own end.
    Stop,
    /// The limit of tokens.
    Length,
    /// A call of a tool.
    ToolCalls,
    /// The client left.
    Abort,
}

/// A request at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Why it ended.
    pub reason: FinishReason,
    /// From arrival to the last token.
    pub e2e: Nanos,
    /// From leaving the queue to the first token.
    pub prefill: Nanos,
    /// From the first token to the last.
    pub decode: Nanos,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Those of them that the prefix cache had.
    pub cached_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// The limit the request set, if any.
    pub max_tokens: Option<u64>,
    /// Answers asked for.
    pub n: u64,
}

/// Everything counted since the start.
#[derive(Debug, Clone)]
pub struct MockMetrics {
    /// Tokens of a block of the KV cache.
    block_tokens: u64,
    arrived: u64,
    prompt_tokens: u64,
    generation_tokens: u64,
    cached_tokens: u64,
    /// Stop, length and abort, in this order.
    finished: [u64; 3],
    /// The longest sequence so far, prompt and answer.
    longest: u64,
    refused: BTreeMap<u16, u64>,
    ttft: BoundedHistogram,
    queue: BoundedHistogram,
    prefill: BoundedHistogram,
    decode: BoundedHistogram,
    inference: BoundedHistogram,
    e2e: BoundedHistogram,
    /// One observation for each step that gave a request tokens.
    gaps: BoundedHistogram,
    /// One for each token, with its part of the gap.
    gaps_per_token: BoundedHistogram,
    /// Means of requests: decode time by the tokens after the first.
    per_output_token: BoundedHistogram,
    /// Means of requests: time of inference by all tokens.
    mean_per_token: BoundedHistogram,
    request_prompt: BoundedHistogram,
    request_computed: BoundedHistogram,
    request_output: BoundedHistogram,
    max_tokens: BoundedHistogram,
    n: BoundedHistogram,
    events: u64,
    late_events: u64,
    lateness: BoundedHistogram,
    faults: FaultCounts,
    connections: u64,
    connections_open: u64,
    /// Tokens per second between the last two calls of [`MockMetrics::scraped`].
    throughput: f64,
    last_scrape: (Nanos, u64),
}

impl MockMetrics {
    /// Nothing so far; a block of the KV cache holds `block_tokens`, and these faults may happen.
    pub fn new(block_tokens: u64, faults: impl Iterator<Item = Label>) -> Self {
        use bounds::{
            LATENESS, SGLANG_GAP, SGLANG_QUEUE, SGLANG_REQUEST, SGLANG_TTFT, VLLM_GAP, VLLM_N,
            VLLM_REQUEST, VLLM_TOKENS, VLLM_TTFT,
        };
        let (durations, tokens) = (bounds::tgi_durations(), bounds::tgi_tokens());
        let counts = || BoundedHistogram::from_count_bounds(&[&VLLM_TOKENS, &tokens]);
        Self {
            block_tokens,
            arrived: 0,
            prompt_tokens: 0,
            generation_tokens: 0,
            cached_tokens: 0,
            finished: [0; 3],
            longest: 0,
            refused: BTreeMap::new(),
            ttft: BoundedHistogram::from_time_bounds(&[&VLLM_TTFT, &SGLANG_TTFT]),
            queue: BoundedHistogram::from_time_bounds(&[&VLLM_REQUEST, &SGLANG_QUEUE, &durations]),
            prefill: BoundedHistogram::from_time_bounds(&[&VLLM_REQUEST]),
            decode: BoundedHistogram::from_time_bounds(&[&VLLM_REQUEST]),
            inference: BoundedHistogram::from_time_bounds(&[&VLLM_REQUEST, &durations]),
            e2e: BoundedHistogram::from_time_bounds(&[&VLLM_REQUEST, &SGLANG_REQUEST, &durations]),
            gaps: BoundedHistogram::from_time_bounds(&[&VLLM_GAP]),
            gaps_per_token: BoundedHistogram::from_time_bounds(&[&SGLANG_GAP]),
            per_output_token: BoundedHistogram::from_time_bounds(&[&VLLM_GAP]),
            mean_per_token: BoundedHistogram::from_time_bounds(&[&durations]),
            request_prompt: counts(),
            request_computed: counts(),
            request_output: counts(),
            max_tokens: counts(),
            n: BoundedHistogram::from_count_bounds(&[&VLLM_N]),
            events: 0,
            late_events: 0,
            lateness: BoundedHistogram::from_time_bounds(&[&LATENESS]),
            faults: FaultCounts::new(faults),
            connections: 0,
            connections_open: 0,
            throughput: 0.0,
            last_scrape: (Nanos::ZERO, 0),
        }
    }

    /// As after a start: everything counted is nothing again. What is open stays open.
    pub fn reset_counts(&mut self, faults: impl Iterator<Item = Label>) {
        let connections_open = self.connections_open;
        *self = Self { connections_open, ..Self::new(self.block_tokens, faults) };
    }

    /// A request that the engine takes.
    pub fn count_arrival(&mut self) {
        self.arrived += 1;
    }

    /// A request that got this status instead of an answer.
    pub fn count_refusal(&mut self, status: u16) {
        *self.refused.entry(status).or_default() += 1;
    }

    /// A prompt has been worked through, of which some tokens were in the cache; so long it had
    /// waited, and so long that took.
    pub fn add_prefill(&mut self, tokens: u64, cached: u64, queue: Nanos, prefill: Nanos) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(cached);
        self.queue.add_time(queue);
        self.prefill.add_time(prefill);
    }

    /// The first token of an answer; it counts as one token.
    pub fn add_first_token(&mut self, ttft: Nanos) {
        self.generation_tokens += 1;
        self.ttft.add_time(ttft);
    }

    /// Tokens after the first that came together, so long after those before them.
    pub fn add_tokens(&mut self, n: u64, gap: Nanos) {
        let Some(part) = gap.0.checked_div(n) else { return };
        self.generation_tokens = self.generation_tokens.saturating_add(n);
        self.gaps.add_time(gap);
        self.gaps_per_token.add(part, n);
    }

    /// The end of an answer. Only those that came to their own end have times.
    pub fn add_finished(&mut self, request: &Finished) {
        let reason = match request.reason {
            // vLLM's engine knows no tools: such an answer stopped.
            FinishReason::Stop | FinishReason::ToolCalls => 0,
            FinishReason::Length => 1,
            FinishReason::Abort => 2,
        };
        self.finished[reason] += 1;
        let (prompt, output) = (request.prompt_tokens, request.output_tokens);
        self.longest = self.longest.max(prompt.saturating_add(output));
        if request.reason == FinishReason::Abort {
            return;
        }
        self.e2e.add_time(request.e2e);
        self.decode.add_time(request.decode);
        let inference = request.prefill + request.decode;
        self.inference.add_time(inference);
        let steps = output.saturating_sub(1);
        self.per_output_token.add(request.decode.0.checked_div(steps).unwrap_or(0), 1);
        self.mean_per_token.add(inference.0.checked_div(output).unwrap_or(0), 1);
        self.request_prompt.add(prompt, 1);
        self.request_computed.add(prompt.saturating_sub(request.cached_tokens), 1);
        self.request_output.add(output, 1);
        if let Some(limit) = request.max_tokens {
            self.max_tokens.add(limit, 1);
        }
        self.n.add(request.n, 1);
    }

    /// A token event that was written; so long after the instant the model gave it, where that was
    /// not meant to be so.
    pub fn count_event(&mut self, lateness: Option<Nanos>) {
        self.events += 1;
        if let Some(lateness) = lateness {
            self.late_events += u64::from(lateness > LATE);
            self.lateness.add(lateness.0, 1);
        }
    }

    /// A fault that happened.
    pub fn count_fault(&mut self, kind: Label) {
        self.faults.add(kind);
    }

    /// A connection opened.
    pub fn count_connect(&mut self) {
        self.connections += 1;
        self.connections_open += 1;
    }

    /// A connection ended.
    pub fn count_disconnect(&mut self) {
        self.connections_open = self.connections_open.saturating_sub(1);
    }

    /// To be called before a page is made: throughput is that since the page before.
    pub fn note_scrape(&mut self, since_start: Nanos) {
        let (last, tokens) = self.last_scrape;
        let seconds = (since_start - last).as_secs();
        if seconds > 0.0 {
            self.throughput = self.generation_tokens.saturating_sub(tokens) as f64 / seconds;
            self.last_scrape = (since_start, self.generation_tokens);
        }
    }

    /// The page.
    pub fn render(&self, dialect: MetricNames, gauges: &Gauges, model: &str) -> String {
        match dialect {
            MetricNames::Vllm => vllm::render(self, gauges, model),
            MetricNames::Sglang => sglang::render(self, gauges, model),
            MetricNames::Tgi => tgi::render(self, gauges),
            MetricNames::Llamacpp => llamacpp::render(self, gauges),
        }
    }
}

/// A part of a whole; nothing of nothing is nothing.
fn ratio_or_zero(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
