//! Continuous batching: the events of an engine made of one or more workers.
//!
//! A request spends a fixed time in the frontend, waits in arrival order, and is computed in steps.
//! A running step is not changed: a request that arrives during it waits for the next. At its end
//! every sequence whose tokens are all computed gives its next token or tokens.
//!
//! With prefill workers of their own, a request is prefilled on the one with the fewest requests,
//! its KV then travels, its first token comes with the end of the transfer, and the decode worker
//! goes on. A sequence that the decode worker preempts is prefilled again, so decode steps never
//! contain prefill tokens. The blocks on the prefill worker are free when the transfer begins.
//!
//! A request that could not fit in an empty cache finishes at once, without a token: waiting for
//! memory that will never be there would block everybody behind it.

mod sequence;
mod worker;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use goodput_model::Nanos;
use goodput_model::random::{Domain, RandomStream};

use self::sequence::{Sequence, SequencePlace, SequenceTable};
use self::worker::{BatchRules, SimWorker, WorkerRole};
use crate::job::{Gauges, Output, QueueFull, SimJob, TokenOf};
use crate::kv::KvPool;
use crate::profile;

pub(crate) struct BatchingEngine {
    settings: profile::BatchingProfile,
    rules: BatchRules,
    seed: u64,
    now: Nanos,
    /// No step begins before these: the engine has started, and is no longer held.
    warm: Nanos,
    held: Nanos,
    /// Requests that are not finished, and when there last were none.
    live: usize,
    idle_since: Nanos,
    has_run: bool,
    table: SequenceTable,
    by_id: HashMap<u64, u32>,
    /// Requests in the frontend, and when they leave it.
    entering: VecDeque<(Nanos, u32)>,
    gone_entering: usize,
    /// KV on its way: when it is there, order of departure.
    transfers: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    gone_transfers: usize,
    departures: u64,
    /// The one that decodes comes first.
    workers: Vec<SimWorker>,
    counts: Gauges,
}

impl BatchingEngine {
    pub(crate) fn new(settings: &profile::BatchingProfile, seed: u64, token_of: TokenOf) -> Self {
        let settings = settings.on_hardware();
        let kv = &settings.kv;
        let worker = |role| SimWorker::new(role, KvPool::new(kv.blocks.max(1), kv.prefix_caching));
        let workers = match settings.disaggregated {
            None => vec![worker(WorkerRole::Whole)],
            Some(split) => std::iter::once(worker(WorkerRole::Decode))
                .chain((0..split.prefill_workers.max(1)).map(|_| worker(WorkerRole::Prefill)))
                .collect(),
        };
        Self {
            rules: BatchRules {
                max_seqs: settings.scheduler.max_num_seqs.max(1) as usize,
                budget: settings.scheduler.max_num_batched_tokens.max(1),
                block_tokens: kv.block_tokens.max(1),
                is_chunked: settings.scheduler.chunked_prefill,
                drafts: settings.speculative.map_or(0, |speculative| speculative.tokens),
                token_of,
            },
            settings,
            seed,
            now: Nanos::ZERO,
            warm: Nanos::ZERO,
            held: Nanos::ZERO,
            live: 0,
            idle_since: Nanos::ZERO,
            has_run: false,
            table: SequenceTable::default(),
            by_id: HashMap::new(),
            entering: VecDeque::new(),
            gone_entering: 0,
            transfers: BinaryHeap::new(),
            gone_transfers: 0,
            departures: 0,
            workers,
            counts: Gauges::default(),
        }
    }

    pub(crate) fn submit(&mut self, at: Nanos, job: SimJob) -> Result<(), QueueFull> {
        self.now = self.now.max(at);
        let limit = self.settings.scheduler.max_queue;
        if limit.is_some_and(|limit| self.gauges().waiting >= u64::from(limit)) {
            return Err(QueueFull);
        }
        if self.live == 0 && self.is_cold() {
            self.warm = self.now.max(self.held) + self.settings.start.cold_start.nanos();
        }
        self.has_run = true;
        self.live += 1;
        let random = (self.rules.drafts > 0)
            .then(|| Box::new(RandomStream::new(self.seed, Domain::Service, job.id)));
        let id = job.id;
        let index = self.table.insert(Sequence::new(job, random));
        self.by_id.insert(id, index);
        let enters = self.now.max(self.held) + self.settings.scheduler.frontend.nanos();
        self.entering.push_back((enters, index));
        Ok(())
    }

    fn is_cold(&self) -> bool {
        let timeout = self.settings.start.idle_timeout;
        let idle = self.now - self.idle_since;
        !self.has_run || timeout.is_some_and(|timeout| idle > timeout.nanos())
    }

    pub(crate) fn cancel(&mut self, id: u64) {
        let Some(index) = self.by_id.remove(&id) else { return };
        let Some(sequence) = self.table.get_mut(index) else { return };
        let was = std::mem::replace(&mut sequence.place, SequencePlace::Gone);
        let worker = &mut self.workers[sequence.worker];
        worker.pool.release(&mut sequence.blocks);
        match was {
            SequencePlace::Frontend => self.gone_entering += 1,
            SequencePlace::Transfer => self.gone_transfers += 1,
            SequencePlace::Waiting => worker.gone_waiting += 1,
            SequencePlace::Running => worker.gone_running += 1,
            SequencePlace::Gone => return,
        }
        self.note_departure(self.now);
    }

    fn note_departure(&mut self, at: Nanos) {
        self.live = self.live.saturating_sub(1);
        if self.live == 0 {
            self.idle_since = at;
        }
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        let begin = self.now.max(self.warm).max(self.held);
        let of_worker =
            |worker: &SimWorker| worker.end.or((worker.request_count() > 0).then_some(begin));
        let steps = self.workers.iter().filter_map(of_worker);
        let entering = self.entering.front().map(|(at, _)| *at);
        let transfer = self.transfers.peek().map(|Reverse((at, ..))| *at);
        steps.chain(entering).chain(transfer).min()
    }

    pub(crate) fn advance(&mut self, until: Nanos, out: &mut Vec<Output>) {
        while let Some(at) = self.next()
            && at <= until
        {
            self.now = self.now.max(at);
            self.process_instant(at, out);
        }
        self.now = self.now.max(until);
    }

    pub(crate) fn hold(&mut self, from: Nanos, length: Nanos) {
        let from = from.max(self.now);
        self.held = self.held.max(from) + length;
        let later = |at: Nanos| if at >= from { at + length } else { at };
        if self.warm > from {
            self.warm += length;
        }
        for (at, _) in &mut self.entering {
            *at = later(*at);
        }
        let transfers = std::mem::take(&mut self.transfers).into_iter();
        self.transfers = transfers.map(|Reverse((at, n, i))| Reverse((later(at), n, i))).collect();
        for worker in &mut self.workers {
            worker.end = worker.end.map(later);
        }
    }

    pub(crate) fn reset_prefix_cache(&mut self) {
        for worker in &mut self.workers {
            worker.pool.clear_index();
        }
    }

    pub(crate) fn gauges(&self) -> Gauges {
        let mut gauges = self.counts;
        gauges.waiting = (self.entering.len() - self.gone_entering) as u64;
        gauges.running = (self.transfers.len() - self.gone_transfers) as u64;
        for worker in &self.workers {
            gauges.running += (worker.running.len() - worker.gone_running) as u64;
            gauges.waiting += (worker.waiting.len() - worker.gone_waiting) as u64;
            gauges.kv_blocks_used += u64::from(worker.pool.used());
            gauges.kv_blocks_total += u64::from(worker.pool.total());
        }
        gauges
    }

    /// Everything of one instant: what ends, what arrives, then what begins.
    fn process_instant(&mut self, at: Nanos, out: &mut Vec<Output>) {
        for number in 0..self.workers.len() {
            if self.workers[number].end.is_some_and(|end| end <= at) {
                self.end_step(number, at, out);
            }
        }
        while let Some(&Reverse((due, _, index))) = self.transfers.peek()
            && due <= at
        {
            self.transfers.pop();
            self.receive_kv(at, index, out);
        }
        while let Some(&(due, index)) = self.entering.front()
            && due <= at
        {
            self.entering.pop_front();
            self.enter_queue(at, index, out);
        }
        if at < self.warm.max(self.held) {
            return;
        }
        for number in 0..self.workers.len() {
            if self.workers[number].end.is_none() && self.workers[number].request_count() > 0 {
                self.begin_step(number, at);
            }
        }
    }

    /// A request leaves the frontend.
    fn enter_queue(&mut self, at: Nanos, index: u32, out: &mut Vec<Output>) {
        let Some(sequence) = self.table.get(index) else { return };
        if sequence.place == SequencePlace::Gone {
            self.gone_entering = self.gone_entering.saturating_sub(1);
            self.table.remove(index);
            return;
        }
        let total = u64::from(self.workers[0].pool.total());
        let room = total * u64::from(self.rules.block_tokens);
        if sequence.most_kv_tokens() > room.min(u64::from(u32::MAX / 4)) {
            out.push(Output { finished: true, ..sequence.output(at, 0) });
            self.remove_request(at, index);
            return;
        }
        let worker = self.prefill_worker();
        self.queue(index, worker, false);
    }

    /// The one that a request is prefilled on.
    fn prefill_worker(&self) -> usize {
        let others = self.workers.iter().enumerate().skip(1);
        others.min_by_key(|(_, worker)| worker.request_count()).map_or(0, |(number, _)| number)
    }

    fn queue(&mut self, index: u32, number: usize, in_front: bool) {
        let Some(sequence) = self.table.get_mut(index) else { return };
        sequence.place = SequencePlace::Waiting;
        sequence.worker = number;
        let waiting = &mut self.workers[number].waiting;
        if in_front { waiting.push_front(index) } else { waiting.push_back(index) }
    }

    /// The KV of a prefilled request has come to the decode worker, and its token to the client.
    fn receive_kv(&mut self, at: Nanos, index: u32, out: &mut Vec<Output>) {
        let Some(sequence) = self.table.get(index) else { return };
        if sequence.place == SequencePlace::Gone {
            self.gone_transfers = self.gone_transfers.saturating_sub(1);
            self.table.remove(index);
            return;
        }
        let output = sequence.output(at, 1);
        out.push(output);
        if output.finished {
            self.remove_request(at, index);
        } else {
            self.queue(index, 0, false);
        }
    }

    fn begin_step(&mut self, number: usize, at: Nanos) {
        let worker = &mut self.workers[number];
        let plan = worker.plan_step(at, &self.rules, &mut self.table);
        let mut time = self.settings.step.step_time(&plan.shape);
        if plan.shape.tokens() == 0 {
            // Cannot be: an empty cache holds any request that was let in. Time passes all the same.
            time += Nanos::from_millis(1);
        }
        if plan.drafted > 0 {
            time += self.settings.speculative.map(|s| s.draft.nanos()).unwrap_or_default();
        }
        for _ in 0..worker.new_shapes(&plan.shape) {
            time += self.settings.start.first_use.nanos();
        }
        worker.end = Some(at + time);
        self.counts.steps += 1;
        self.counts.spec_drafted += plan.drafted;
        self.counts.prefix_queries += plan.queried;
        self.counts.prefix_hits += plan.hit;
        self.counts.preemptions += plan.preempted.len() as u64;
        // The latest comes first, so in the end the earliest is in front.
        for index in plan.preempted {
            let number = self.prefill_worker();
            self.queue(index, number, true);
        }
    }

    fn end_step(&mut self, number: usize, at: Nanos, out: &mut Vec<Output>) {
        self.workers[number].end = None;
        let mut running = std::mem::take(&mut self.workers[number].running);
        running.retain(|&index| self.finish_sequence_step(number, at, index, out));
        self.workers[number].running = running;
        self.workers[number].gone_running = 0;
    }

    /// What a step has done for one sequence, and whether that stays in the running list.
    fn finish_sequence_step(
        &mut self,
        number: usize,
        at: Nanos,
        index: u32,
        out: &mut Vec<Output>,
    ) -> bool {
        let Some(sequence) = self.table.get_mut(index) else { return false };
        if sequence.place == SequencePlace::Gone {
            self.table.remove(index);
            return false;
        }
        let scheduled = std::mem::take(&mut sequence.scheduled);
        if scheduled == 0 {
            return true;
        }
        let mut new_tokens = 1;
        if sequence.is_decoding() {
            let acceptance = self.settings.speculative.map_or(0.0, |s| s.acceptance);
            let accepted = sequence.accepted_drafts(scheduled - 1, acceptance);
            self.counts.spec_accepted += u64::from(accepted);
            new_tokens += accepted;
            sequence.computed += new_tokens;
        } else {
            sequence.computed += scheduled;
            if sequence.computed < sequence.known_tokens() {
                return true;
            }
            new_tokens = new_tokens.min(sequence.output);
        }
        sequence.generated += new_tokens;
        if self.workers[number].role == WorkerRole::Prefill && new_tokens > 0 {
            self.send_kv(number, at, index);
            return false;
        }
        let output = sequence.output(at, new_tokens);
        out.push(output);
        if output.finished {
            self.remove_request(at, index);
        }
        !output.finished
    }

    /// A prefilled request's KV starts on its way.
    fn send_kv(&mut self, number: usize, at: Nanos, index: u32) {
        let Some(sequence) = self.table.get_mut(index) else { return };
        let (latency, each) = self
            .settings
            .disaggregated
            .map_or((Nanos::ZERO, 0.0), |split| (split.latency.nanos(), split.ns_per_token));
        let there = at + latency + Nanos((f64::from(sequence.computed) * each).round() as u64);
        self.workers[number].pool.release(&mut sequence.blocks);
        sequence.place = SequencePlace::Transfer;
        self.transfers.push(Reverse((there, self.departures, index)));
        self.departures += 1;
    }

    /// Nothing more comes of a request.
    fn remove_request(&mut self, at: Nanos, index: u32) {
        let Some(sequence) = self.table.get_mut(index) else { return };
        self.workers[sequence.worker].pool.release(&mut sequence.blocks);
        let id = sequence.id;
        if self.by_id.get(&id) == Some(&index) {
            self.by_id.remove(&id);
        }
        self.table.remove(index);
        self.note_departure(at);
    }
}
