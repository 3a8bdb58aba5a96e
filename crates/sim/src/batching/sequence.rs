//! One request inside the engine, and the table that holds them all.

use std::sync::Arc;

use goodput_model::Nanos;
use goodput_model::random::RandomStream;

use crate::job::{Output, SimJob, TokenOf};
use crate::kv::{ROOT, chained_hash};

/// Where a sequence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SequencePlace {
    /// In the frontend.
    Frontend,
    /// On its way from a prefill worker to the decode worker.
    Transfer,
    /// In a worker's queue.
    Waiting,
    /// In a worker's running list.
    Running,
    /// The client left, but an index still lies in some list; the code that finds it there drops
    /// it.
    Gone,
}

/// One request. `computed` of its `known` tokens have their KV; when all have, a step gives the
/// next one. Prefill, decode and recomputation are all this one rule.
pub(super) struct Sequence {
    pub(super) id: u64,
    pub(super) place: SequencePlace,
    pub(super) worker: usize,
    prompt: Arc<[u32]>,
    prompt_len: u32,
    pub(super) output: u32,
    answer_seed: u64,
    pub(super) generated: u32,
    pub(super) computed: u32,
    /// Tokens that the current step computes for it.
    pub(super) scheduled: u32,
    pub(super) blocks: Vec<u32>,
    /// Blocks of those that the cache can find.
    pub(super) registered: u32,
    /// Of the full blocks of known tokens, as far as they were needed.
    pub(super) hashes: Vec<u64>,
    pub(super) admitted: Option<Nanos>,
    pub(super) cached: u32,
    pub(super) preemptions: u32,
    /// Draws of accepted draft tokens.
    pub(super) random: Option<Box<RandomStream>>,
}

impl Sequence {
    pub(super) fn new(job: SimJob, random: Option<Box<RandomStream>>) -> Self {
        Self {
            id: job.id,
            place: SequencePlace::Frontend,
            worker: 0,
            // An empty prompt is one token: templates and tokenizers put at least that in front.
            prompt_len: u32::try_from(job.prompt.len()).unwrap_or(u32::MAX).max(1),
            prompt: job.prompt,
            output: job.output_tokens,
            answer_seed: job.answer_seed,
            generated: 0,
            computed: 0,
            scheduled: 0,
            blocks: Vec::new(),
            registered: 0,
            hashes: Vec::new(),
            admitted: None,
            cached: 0,
            preemptions: 0,
            random,
        }
    }

    /// Tokens there are: the prompt's and the generated ones.
    pub(super) fn known_tokens(&self) -> u32 {
        self.prompt_len.saturating_add(self.generated)
    }

    /// KV tokens that it needs at its end: the last token is never read.
    pub(super) fn most_kv_tokens(&self) -> u64 {
        u64::from(self.prompt_len) + u64::from(self.output.max(1)) - 1
    }

    /// Whether only its newest token is to be computed.
    pub(super) fn is_decoding(&self) -> bool {
        self.generated > 0 && self.known_tokens() - self.computed == 1
    }

    /// Tokens that it would compute in a step, with at most `drafts` draft tokens. No more are
    /// drafted than could still be used.
    pub(super) fn tokens_wanted(&self, drafts: u32) -> u32 {
        if self.is_decoding() {
            1 + drafts.min(self.output.saturating_sub(self.generated + 1))
        } else {
            self.known_tokens() - self.computed
        }
    }

    /// Hashes its first `blocks` full blocks.
    pub(super) fn hash(&mut self, blocks: usize, block_tokens: u32, token_of: TokenOf) {
        while self.hashes.len() < blocks {
            let parent = self.hashes.last().copied().unwrap_or(ROOT);
            let begin = self.hashes.len() as u32 * block_tokens;
            let tokens = (begin..begin + block_tokens).map(|i| self.token_at(i, token_of));
            let hash = chained_hash(parent, tokens);
            self.hashes.push(hash);
        }
    }

    fn token_at(&self, index: u32, token_of: TokenOf) -> u32 {
        if index < self.prompt_len {
            self.prompt.get(index as usize).copied().unwrap_or(0)
        } else {
            token_of(self.answer_seed, index - self.prompt_len)
        }
    }

    /// How many of some draft tokens are accepted: those before the first that is not.
    pub(super) fn accepted_drafts(&mut self, drafts: u32, acceptance: f64) -> u32 {
        let Some(random) = &mut self.random else { return 0 };
        (0..drafts).take_while(|_| random.next_unit() < acceptance).count() as u32
    }

    /// What `new_tokens` more at `at` look like.
    pub(super) fn output(&self, at: Nanos, new_tokens: u32) -> Output {
        Output {
            id: self.id,
            at,
            new_tokens,
            total_tokens: self.generated,
            finished: self.generated >= self.output,
            admitted: self.admitted.unwrap_or(at),
            cached_tokens: self.cached,
            preemptions: self.preemptions,
        }
    }
}

/// Sequences by a small number that is used again after they are gone.
#[derive(Default)]
pub(super) struct SequenceTable {
    entries: Vec<Option<Sequence>>,
    free: Vec<u32>,
}

impl SequenceTable {
    pub(super) fn insert(&mut self, sequence: Sequence) -> u32 {
        if let Some(index) = self.free.pop()
            && let Some(entry) = self.entries.get_mut(index as usize)
        {
            *entry = Some(sequence);
            return index;
        }
        self.entries.push(Some(sequence));
        self.entries.len() as u32 - 1
    }

    pub(super) fn remove(&mut self, index: u32) {
        if let Some(entry) = self.entries.get_mut(index as usize)
            && entry.take().is_some()
        {
            self.free.push(index);
        }
    }

    pub(super) fn get(&self, index: u32) -> Option<&Sequence> {
        self.entries.get(index as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut Sequence> {
        self.entries.get_mut(index as usize)?.as_mut()
    }
}
