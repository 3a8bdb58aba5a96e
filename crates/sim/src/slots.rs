//! The model without batching: a slot, then drawn delays.
//!
//! Instants are absolute: a request that waited starts at the very instant at which a slot came
//! free, and each token is counted from the one before it, so nothing drifts.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};

use goodput_model::Nanos;
use goodput_model::random::{Domain, RandomStream};

use crate::job::{Gauges, Output, QueueFull, SimJob};
use crate::profile::Delays;

/// A request that has a slot.
struct SlotJob {
    id: u64,
    output_tokens: u32,
    sent: u32,
    admitted: Nanos,
    random: RandomStream,
}

/// A request that waits.
struct Queued {
    /// Its number in order of arrival.
    order: u64,
    id: u64,
    output_tokens: u32,
}

pub(crate) struct Slots {
    settings: Delays,
    seed: u64,
    now: Nanos,
    /// Nothing begins before this: the engine was held.
    ready: Nanos,
    waiting: VecDeque<Queued>,
    /// Of the requests in `waiting`, those whose clients left.
    left: HashSet<u64>,
    /// Next token of each request being served: instant, order of arrival.
    due: BinaryHeap<Reverse<(Nanos, u64)>>,
    served: HashMap<u64, SlotJob>,
    /// Order of arrival of each request that is not finished.
    by_id: HashMap<u64, u64>,
    arrived: u64,
}

impl Slots {
    pub(crate) fn new(settings: &Delays, seed: u64) -> Self {
        Self {
            settings: settings.clone(),
            seed,
            now: Nanos::ZERO,
            ready: Nanos::ZERO,
            waiting: VecDeque::new(),
            left: HashSet::new(),
            due: BinaryHeap::new(),
            served: HashMap::new(),
            by_id: HashMap::new(),
            arrived: 0,
        }
    }

    pub(crate) fn submit(&mut self, at: Nanos, job: &SimJob) -> Result<(), QueueFull> {
        self.now = self.now.max(at);
        let order = self.arrived;
        let queued = Queued { order, id: job.id, output_tokens: job.output_tokens };
        if self.has_slot() {
            self.start_request(self.now, &queued);
        } else {
            let waiting = self.gauges().waiting;
            if self.settings.max_queue.is_some_and(|limit| waiting >= u64::from(limit)) {
                return Err(QueueFull);
            }
            self.waiting.push_back(queued);
        }
        self.by_id.insert(job.id, order);
        self.arrived += 1;
        Ok(())
    }

    pub(crate) fn cancel(&mut self, id: u64) {
        let Some(order) = self.by_id.remove(&id) else { return };
        if self.served.remove(&order).is_some() {
            // Its entry in `due` finds nothing and is passed over.
            self.fill_free_slots(self.now);
        } else {
            self.left.insert(order);
        }
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    pub(crate) fn advance(&mut self, until: Nanos, out: &mut Vec<Output>) {
        while let Some(&Reverse((at, order))) = self.due.peek() {
            if at > until {
                break;
            }
            self.due.pop();
            self.emit_token(at, order, out);
        }
        self.now = self.now.max(until);
    }

    pub(crate) fn hold(&mut self, from: Nanos, length: Nanos) {
        let from = from.max(self.now);
        self.ready = self.ready.max(from) + length;
        let due = std::mem::take(&mut self.due);
        let later =
            |Reverse((at, order))| Reverse((if at >= from { at + length } else { at }, order));
        self.due = due.into_iter().map(later).collect();
    }

    pub(crate) fn gauges(&self) -> Gauges {
        Gauges {
            running: self.served.len() as u64,
            waiting: (self.waiting.len() - self.left.len()) as u64,
            ..Gauges::default()
        }
    }

    fn has_slot(&self) -> bool {
        self.served.len() < self.settings.slots as usize
    }

    /// The next token of the request that was arrived as number `order`.
    fn emit_token(&mut self, at: Nanos, order: u64, out: &mut Vec<Output>) {
        let Some(served) = self.served.get_mut(&order) else { return };
        let new_tokens = 1.min(served.output_tokens);
        served.sent += new_tokens;
        let finished = served.sent >= served.output_tokens;
        out.push(Output {
            id: served.id,
            at,
            new_tokens,
            total_tokens: served.sent,
            finished,
            admitted: served.admitted,
            cached_tokens: 0,
            preemptions: 0,
        });
        if finished {
            let id = served.id;
            self.served.remove(&order);
            if self.by_id.get(&id) == Some(&order) {
                self.by_id.remove(&id);
            }
            self.fill_free_slots(at);
        } else {
            let next = at + self.settings.itl.draw(&mut served.random);
            self.due.push(Reverse((next, order)));
        }
    }

    /// Gives free slots to those who wait.
    fn fill_free_slots(&mut self, at: Nanos) {
        while self.has_slot() {
            let Some(queued) = self.waiting.pop_front() else { break };
            if self.left.remove(&queued.order) {
                continue;
            }
            self.start_request(at, &queued);
        }
    }

    fn start_request(&mut self, at: Nanos, queued: &Queued) {
        let at = at.max(self.ready);
        let mut random = RandomStream::new(self.seed, Domain::Service, queued.id);
        let first = at + self.settings.ttft.draw(&mut random);
        self.due.push(Reverse((first, queued.order)));
        let (id, output_tokens) = (queued.id, queued.output_tokens);
        let served = SlotJob { id, output_tokens, sent: 0, admitted: at, random };
        self.served.insert(queued.order, served);
    }
}
