//! What an engine is given, and what it gives back.

use std::fmt;
use std::sync::Arc;

use goodput_model::Nanos;

/// One request, as far as an engine's timing depends on it.
#[derive(Debug, Clone)]
pub struct SimJob {
    /// Its number: outputs carry it, and everything random about the request follows from it.
    pub id: u64,
    /// Token ids of the prompt.
    pub prompt: Arc<[u32]>,
    /// Tokens to generate. None at all means prefill only, as for embeddings: the job finishes at
    /// the end of its prefill, with no new token.
    pub output_tokens: u32,
    /// What [`TokenOf`] makes the answer's token ids from.
    pub answer_seed: u64,
}

/// The id of generated token `index`, so that the cache knows an answer when a later turn repeats it.
pub type TokenOf = fn(answer_seed: u64, index: u32) -> u32;

/// Tokens of one request that came at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// Which request.
    pub id: u64,
    /// When.
    pub at: Nanos,
    /// Tokens that came now.
    pub new_tokens: u32,
    /// Tokens so far, with these.
    pub total_tokens: u32,
    /// Nothing follows.
    pub finished: bool,
    /// When the request was first scheduled.
    pub admitted: Nanos,
    /// Tokens of the prompt that the prefix cache had when it was first scheduled.
    pub cached_tokens: u32,
    /// How often the request lost its place for lack of KV blocks.
    pub preemptions: u32,
}

/// The request is refused: the waiting queue is at its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull;

impl fmt::Display for QueueFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the engine's waiting queue is full")
    }
}

impl std::error::Error for QueueFull {}

/// What an engine would show on its metrics page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gauges {
    /// Requests that have been scheduled and are not finished.
    pub running: u64,
    /// Requests that have not been scheduled, or were preempted.
    pub waiting: u64,
    /// KV blocks that belong to a running request.
    pub kv_blocks_used: u64,
    /// KV blocks there are.
    pub kv_blocks_total: u64,
    /// Tokens looked up in the prefix cache, each request once; a counter.
    pub prefix_queries: u64,
    /// Tokens of those that were found; a counter.
    pub prefix_hits: u64,
    /// Preemptions; a counter.
    pub preemptions: u64,
    /// Steps begun; a counter.
    pub steps: u64,
    /// Draft tokens proposed; a counter.
    pub spec_drafted: u64,
    /// Draft tokens accepted; a counter.
    pub spec_accepted: u64,
}

impl Gauges {
    /// With counters that count from an earlier look on.
    #[must_use]
    pub fn since(self, earlier: &Self) -> Self {
        Self {
            prefix_queries: self.prefix_queries.saturating_sub(earlier.prefix_queries),
            prefix_hits: self.prefix_hits.saturating_sub(earlier.prefix_hits),
            preemptions: self.preemptions.saturating_sub(earlier.preemptions),
            steps: self.steps.saturating_sub(earlier.steps),
            spec_drafted: self.spec_drafted.saturating_sub(earlier.spec_drafted),
            spec_accepted: self.spec_accepted.saturating_sub(earlier.spec_accepted),
            ..self
        }
    }
}
