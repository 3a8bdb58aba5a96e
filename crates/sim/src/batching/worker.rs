//! One worker: its queue, its running list, its KV cache, and how a step is put together.

use std::collections::VecDeque;

use goodput_model::Nanos;

use super::sequence::{Sequence, SequencePlace, SequenceTable};
use crate::job::TokenOf;
use crate::kv::KvPool;
use crate::step::StepShape;

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerRole {
    /// Prefill and decode.
    Whole,
    /// Prefill only; the KV goes to the decode worker.
    Prefill,
    /// Decode only, of what a prefill worker has computed.
    Decode,
}

/// What holds for every worker.
#[derive(Clone, Copy)]
pub(super) struct BatchRules {
    pub(super) max_seqs: usize,
    pub(super) budget: u32,
    pub(super) block_tokens: u32,
    /// Whether prompts are computed in parts, with what decodes.
    pub(super) is_chunked: bool,
    pub(super) drafts: u32,
    pub(super) token_of: TokenOf,
}

/// A step as it was put together.
#[derive(Default)]
pub(super) struct StepPlan {
    pub(super) shape: StepShape,
    /// Tokens that it may still take.
    budget: u32,
    /// Sequences that lost their place, the latest first.
    pub(super) preempted: Vec<u32>,
    pub(super) drafted: u64,
    /// Tokens looked up in the prefix cache, and tokens found.
    pub(super) queried: u64,
    pub(super) hit: u64,
}

pub(super) struct SimWorker {
    pub(super) role: WorkerRole,
    pub(super) running: Vec<u32>,
    pub(super) waiting: VecDeque<u32>,
    pub(super) pool: KvPool,
    /// When the current step ends.
    pub(super) end: Option<Nanos>,
    /// Entries of the two lists whose clients left.
    pub(super) gone_running: usize,
    pub(super) gone_waiting: usize,
    /// Shapes that have been run before: bit *i* for up to 2^*i* sequences, or prefill tokens.
    seen_decode: u64,
    seen_prefill: u64,
    found: Vec<u32>,
}

impl SimWorker {
    pub(super) fn new(role: WorkerRole, pool: KvPool) -> Self {
        Self {
            role,
            running: Vec::new(),
            waiting: VecDeque::new(),
            pool,
            end: None,
            gone_running: 0,
            gone_waiting: 0,
            seen_decode: 0,
            seen_prefill: 0,
            found: Vec::new(),
        }
    }

    /// Requests that it has.
    pub(super) fn request_count(&self) -> usize {
        self.running.len() + self.waiting.len() - self.gone_running - self.gone_waiting
    }

    /// How many of a step's shapes, decode and prefill, are run for the first time.
    pub(super) fn new_shapes(&mut self, shape: &StepShape) -> u64 {
        let mut first = 0;
        for (count, seen) in [
            (shape.decode_seqs, &mut self.seen_decode),
            (shape.prefill_tokens, &mut self.seen_prefill),
        ] {
            let bit = 1 << count.next_power_of_two().trailing_zeros();
            if count > 0 && *seen & bit == 0 {
                *seen |= bit;
                first += 1;
            }
        }
        first
    }

    /// Puts the next step together: running sequences first, then waiting ones while there is
    /// budget, place and memory. A step that preempts a sequence admits none. Where prompts are not
    /// computed in parts, those that wait go first, whole and alone.
    pub(super) fn plan_step(
        &mut self,
        at: Nanos,
        rules: &BatchRules,
        table: &mut SequenceTable,
    ) -> StepPlan {
        self.drop_gone(table);
        let mut plan = StepPlan { budget: rules.budget, ..StepPlan::default() };
        if !rules.is_chunked && self.role != WorkerRole::Decode {
            self.admit_all(at, rules, table, &mut plan);
            if plan.shape.tokens() > 0 {
                return plan;
            }
        }
        let mut next = 0;
        while plan.budget > 0
            && let Some(&index) = self.running.get(next)
        {
            let Some(sequence) = table.get(index) else { break };
            let tokens = sequence.tokens_wanted(self.draft_tokens(rules)).min(plan.budget);
            let blocks = (sequence.computed + tokens).div_ceil(rules.block_tokens) as usize;
            let missing = blocks.saturating_sub(sequence.blocks.len()) as u32;
            while self.pool.free() < missing && self.running.len() > next {
                self.preempt(table, &mut plan);
            }
            if self.running.len() <= next {
                break;
            }
            let Some(sequence) = table.get_mut(index) else { break };
            self.schedule(sequence, tokens, rules, &mut plan);
            next += 1;
        }
        if plan.preempted.is_empty() && (rules.is_chunked || self.role == WorkerRole::Decode) {
            self.admit_all(at, rules, table, &mut plan);
        }
        plan
    }

    /// Admits those that wait, in their order, while there is budget, place and memory.
    fn admit_all(
        &mut self,
        at: Nanos,
        rules: &BatchRules,
        table: &mut SequenceTable,
        plan: &mut StepPlan,
    ) {
        while plan.budget > 0 && self.running.len() < rules.max_seqs {
            let Some(index) = self.next_waiting(table) else { break };
            let Some(sequence) = table.get_mut(index) else { break };
            let Some(tokens) = self.admit(sequence, rules, plan) else { break };
            sequence.place = SequencePlace::Running;
            sequence.admitted.get_or_insert(at);
            self.schedule(sequence, tokens, rules, plan);
            self.waiting.pop_front();
            self.running.push(index);
        }
    }

    fn draft_tokens(&self, rules: &BatchRules) -> u32 {
        if self.role == WorkerRole::Prefill { 0 } else { rules.drafts }
    }

    /// The first that waits, past those whose clients left.
    fn next_waiting(&mut self, table: &mut SequenceTable) -> Option<u32> {
        loop {
            let index = *self.waiting.front()?;
            if table.get(index).is_some_and(|sequence| sequence.place == SequencePlace::Waiting) {
                return Some(index);
            }
            self.waiting.pop_front();
            self.gone_waiting = self.gone_waiting.saturating_sub(1);
            table.remove(index);
        }
    }

    /// The latest running sequence loses its blocks and its place.
    fn preempt(&mut self, table: &mut SequenceTable, plan: &mut StepPlan) {
        let Some(index) = self.running.pop() else { return };
        if let Some(sequence) = table.get_mut(index) {
            self.pool.release(&mut sequence.blocks);
            sequence.computed = 0;
            sequence.scheduled = 0;
            sequence.preemptions += 1;
            sequence.place = SequencePlace::Waiting;
        }
        plan.preempted.push(index);
    }

    /// Gives a waiting sequence what the cache has of it, and says how many tokens it computes in
    /// this step; nothing if not all of its tokens fit into the cache, though a chunk may come first,
    /// or if a whole prompt does not fit into what is left of the step.
    fn admit(
        &mut self,
        sequence: &mut Sequence,
        rules: &BatchRules,
        plan: &mut StepPlan,
    ) -> Option<u32> {
        let known = sequence.known_tokens();
        self.found.clear();
        let mut idle = 0;
        if self.pool.caching() {
            // The last token is always computed: its result is what is wanted.
            let whole = (known - 1) / rules.block_tokens;
            sequence.hash(whole as usize, rules.block_tokens, rules.token_of);
            idle = self.pool.find(&sequence.hashes[..whole as usize], &mut self.found);
        }
        let hit = self.found.len() as u32 * rules.block_tokens;
        let before = if self.role == WorkerRole::Decode { known - 1 } else { hit };
        sequence.computed = before;
        let wanted = sequence.tokens_wanted(self.draft_tokens(rules));
        // A whole prompt that is longer than any budget has a step for itself.
        let is_whole = !rules.is_chunked && self.role != WorkerRole::Decode;
        let tokens = if is_whole { wanted } else { wanted.min(plan.budget) };
        let has_room = tokens <= plan.budget || plan.budget == rules.budget;
        let blocks = known.max(before + tokens).div_ceil(rules.block_tokens);
        if !has_room || self.pool.free() < blocks - self.found.len() as u32 + idle {
            sequence.computed = 0;
            return None;
        }
        for block in &self.found {
            self.pool.add_holder(*block);
        }
        sequence.blocks.extend_from_slice(&self.found);
        sequence.registered = self.found.len() as u32;
        if sequence.admitted.is_none() && self.pool.caching() {
            sequence.cached = hit;
            plan.queried += u64::from(known);
            plan.hit += u64::from(hit);
        }
        Some(tokens)
    }

    /// Puts `tokens` of a sequence into the step: blocks, hashes of those that become full, shape.
    fn schedule(
        &mut self,
        sequence: &mut Sequence,
        tokens: u32,
        rules: &BatchRules,
        plan: &mut StepPlan,
    ) {
        let after = sequence.computed + tokens;
        while (sequence.blocks.len() as u32) < after.div_ceil(rules.block_tokens) {
            // There is one: the callers have counted.
            let Some(block) = self.pool.allocate() else { break };
            sequence.blocks.push(block);
        }
        // Draft tokens may be wrong, so a block is full when known tokens fill it.
        let full = after.min(sequence.known_tokens()) / rules.block_tokens;
        if self.pool.caching() && full > sequence.registered {
            sequence.hash(full as usize, rules.block_tokens, rules.token_of);
            let pairs = sequence.blocks.iter().zip(&sequence.hashes);
            for (block, hash) in pairs.take(full as usize).skip(sequence.registered as usize) {
                self.pool.index_block(*block, *hash);
            }
            sequence.registered = full;
        }
        if sequence.is_decoding() {
            plan.shape.add_decode(tokens, sequence.known_tokens());
            plan.drafted += u64::from(tokens - 1);
        } else {
            plan.shape.add_prefill(tokens, sequence.computed);
        }
        sequence.scheduled = tokens;
        plan.budget = plan.budget.saturating_sub(tokens);
    }

    /// Takes those whose clients left out of the running list.
    pub(super) fn drop_gone(&mut self, table: &mut SequenceTable) {
        if self.gone_running == 0 {
            return;
        }
        self.running.retain(|&index| {
            let stays =
                table.get(index).is_some_and(|sequence| sequence.place == SequencePlace::Running);
            if !stays {
                table.remove(index);
            }
            stays
        });
        self.gone_running = 0;
    }
}
