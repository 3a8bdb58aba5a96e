//! The engine model in real time: what it says happens at an instant is handed out at that instant.
//!
//! The model never waits for this process. If we are late the next step still begins when the model
//! says so, and the lateness shows in `/metrics`, not in the model's times.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use goodput_clock::{Timer, now, pause};
use goodput_model::Nanos;
use goodput_sim::{Gauges, Output, Profile, QueueFull, SimEngine, SimJob};
use tokio::sync::Notify;

use crate::api::{Finish, token_at};
use crate::metrics::{FinishReason, Finished, MockMetrics};
use crate::spin_budget::SpinBudget;

/// Emissions that may wait for a client that does not read before equal ones are kept as one.
const APART: usize = 1024;

/// Room for the choices of one request in the number of a job.
const CHOICE_BITS: u32 = 12;

/// The engine and all clients that wait for it.
pub(crate) struct EngineDriver {
    engine: RefCell<SimEngine>,
    pub(crate) timer: Timer,
    /// Something came or went, so the next instant may be another.
    changed: Notify,
    tracks: RefCell<HashMap<u64, Track>>,
    outputs: RefCell<Vec<Output>>,
    vigil: SpinBudget,
    metrics: Rc<RefCell<MockMetrics>>,
}

/// A job in progress.
struct Track {
    flow: Rc<ChoiceFeed>,
    choice: u32,
    arrived: Nanos,
    first_token: Option<Nanos>,
    last_token: Nanos,
    prefill: Nanos,
    prompt_tokens: u32,
    output_tokens: u32,
    limit: Option<u32>,
    n: u32,
    reason: Finish,
}

/// What is asked of the engine for one choice of an answer.
pub(crate) struct EngineOrder {
    pub(crate) choice: u32,
    pub(crate) prompt: Arc<[u32]>,
    pub(crate) output_tokens: u32,
    pub(crate) answer_seed: u64,
    /// The limit that the request set, its choices, and why its answer ends: for the metrics.
    pub(crate) limit: Option<u32>,
    pub(crate) n: u32,
    pub(crate) reason: Finish,
}

impl EngineDriver {
    pub(crate) fn new(
        profile: &Profile,
        seed: u64,
        metrics: Rc<RefCell<MockMetrics>>,
    ) -> io::Result<Rc<Self>> {
        Ok(Rc::new(Self {
            engine: RefCell::new(SimEngine::new(profile, seed, token_at)),
            timer: Timer::new()?,
            changed: Notify::new(),
            tracks: RefCell::default(),
            outputs: RefCell::default(),
            vigil: SpinBudget::default(),
            metrics,
        }))
    }

    /// Hands out what the model does, for as long as the server lives.
    pub(crate) async fn run(&self) {
        loop {
            let next = self.engine.borrow().next();
            match next {
                None => self.changed.notified().await,
                Some(at) => tokio::select! {
                    biased;
                    () = self.wait_until(at) => {}
                    () = self.changed.notified() => {}
                },
            }
            self.advance(now());
            // A model that is always due must not keep the sockets waiting.
            tokio::task::yield_now().await;
        }
    }

    /// Waits for an instant, awake for the last bit of it: a sleeping thread wakes a tenth of a
    /// millisecond late. That costs processor time, so there is a limit to its share, and a server
    /// with much to do goes without; it is rarely asleep anyway.
    async fn wait_until(&self, at: Nanos) {
        self.timer.sleep_until(at - self.vigil.wake_lead()).await;
        let _awake = self.vigil.begin_awake();
        while now() < at {
            tokio::task::yield_now().await;
        }
    }

    /// The whole server stands still for so long: the model as well as the sockets.
    pub(crate) fn pause(&self, length: Nanos) {
        let from = now();
        self.advance(from);
        self.engine.borrow_mut().hold(from, length);
        pause(length);
        self.changed.notify_one();
    }

    /// Hands a request to the engine. All of its choices are taken, or none.
    pub(crate) fn submit(
        self: &Rc<Self>,
        number: u64,
        orders: Vec<EngineOrder>,
    ) -> Result<Ticket, QueueFull> {
        let arrived = now();
        // What was due before it came must not see it.
        self.advance(arrived);
        let flow = Rc::new(ChoiceFeed::default());
        let mut ticket = Ticket { driver: Rc::clone(self), flow, jobs: Vec::new() };
        for order in orders {
            // Random draws of a request depend only on its own number.
            let id = number << CHOICE_BITS | u64::from(order.choice);
            let track = Track {
                flow: Rc::clone(&ticket.flow),
                choice: order.choice,
                arrived,
                first_token: None,
                last_token: arrived,
                prefill: Nanos::ZERO,
                prompt_tokens: order.prompt.len() as u32,
                output_tokens: 0,
                limit: order.limit,
                n: order.n,
                reason: order.reason,
            };
            let EngineOrder { prompt, output_tokens, answer_seed, .. } = order;
            let job = SimJob { id, prompt, output_tokens, answer_seed };
            // Dropping the ticket takes back the choices that were accepted before.
            self.engine.borrow_mut().submit(arrived, job)?;
            self.metrics.borrow_mut().count_arrival();
            self.tracks.borrow_mut().insert(id, track);
            ticket.jobs.push(id);
        }
        self.changed.notify_one();
        Ok(ticket)
    }

    pub(crate) fn gauges(&self) -> Gauges {
        self.engine.borrow().gauges()
    }

    pub(crate) fn reset_prefix_cache(&self) {
        self.advance(now());
        self.engine.borrow_mut().reset_prefix_cache();
    }

    fn advance(&self, until: Nanos) {
        let mut outputs = self.outputs.take();
        self.engine.borrow_mut().advance(until, &mut outputs);
        let mut tracks = self.tracks.borrow_mut();
        for output in outputs.drain(..) {
            let Some(track) = tracks.get_mut(&output.id) else { continue };
            track.count_output(&output, &mut self.metrics.borrow_mut());
            track.flow.push(Emission::new(track.choice, &output));
            if output.finished {
                tracks.remove(&output.id);
            }
        }
        self.outputs.replace(outputs);
    }
}

impl Track {
    fn count_output(&mut self, output: &Output, metrics: &mut MockMetrics) {
        if self.first_token.is_none() {
            self.prefill = output.at - output.admitted;
            let (tokens, cached) = (self.prompt_tokens, output.cached_tokens);
            let queue = output.admitted - self.arrived;
            metrics.add_prefill(u64::from(tokens), u64::from(cached), queue, self.prefill);
        }
        if output.new_tokens > 0 {
            match self.first_token {
                None => {
                    self.first_token = Some(output.at);
                    metrics.add_first_token(output.at - self.arrived);
                }
                Some(_) => {
                    metrics.add_tokens(u64::from(output.new_tokens), output.at - self.last_token);
                }
            }
            self.last_token = output.at;
            self.output_tokens += output.new_tokens;
        }
        if output.finished {
            let reason = match self.reason {
                Finish::Stop => FinishReason::Stop,
                Finish::Length => FinishReason::Length,
                Finish::ToolCalls => FinishReason::ToolCalls,
            };
            metrics.add_finished(&self.finished_request(reason, output.at, output.cached_tokens));
        }
    }

    fn finished_request(&self, reason: FinishReason, at: Nanos, cached_tokens: u32) -> Finished {
        Finished {
            reason,
            e2e: at - self.arrived,
            prefill: self.prefill,
            decode: self.last_token - self.first_token.unwrap_or(self.last_token),
            prompt_tokens: u64::from(self.prompt_tokens),
            cached_tokens: u64::from(cached_tokens),
            output_tokens: u64::from(self.output_tokens),
            max_tokens: self.limit.map(u64::from),
            n: u64::from(self.n),
        }
    }
}

/// A request's hold on the engine: what comes for it, and the right to give it up.
pub(crate) struct Ticket {
    driver: Rc<EngineDriver>,
    flow: Rc<ChoiceFeed>,
    jobs: Vec<u64>,
}

impl Ticket {
    /// The next thing that the engine made for it.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Emission> {
        let mut pending = self.flow.pending.borrow_mut();
        if let Some(first) = pending.front_mut() {
            let emission = Emission { events: 1, ..*first };
            first.events -= 1;
            if first.events == 0 {
                pending.pop_front();
            }
            return Poll::Ready(emission);
        }
        self.flow.waker.set(Some(cx.waker().clone()));
        Poll::Pending
    }

    pub(crate) async fn next(&self) -> Emission {
        poll_fn(|cx| self.poll_next(cx)).await
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Its place is free from now on, not from when the engine last did something.
        self.driver.advance(now());
        let mut tracks = self.driver.tracks.borrow_mut();
        let mut is_given_up = false;
        for id in &self.jobs {
            if let Some(track) = tracks.remove(id) {
                self.driver.engine.borrow_mut().cancel(*id);
                let end = track.finished_request(FinishReason::Abort, now(), 0);
                self.driver.metrics.borrow_mut().add_finished(&end);
                is_given_up = true;
            }
        }
        if is_given_up {
            self.driver.changed.notify_one();
        }
    }
}

/// Something that the engine made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Emission {
    pub(crate) choice: u32,
    /// The model's instant.
    pub(crate) at: Nanos,
    /// When the engine first worked on it.
    pub(crate) admitted: Nanos,
    pub(crate) new_tokens: u32,
    pub(crate) cached_tokens: u32,
    pub(crate) finished: bool,
    /// A client was waiting for it.
    pub(crate) awaited: bool,
    /// How many in a row are like this one.
    events: u32,
}

impl Emission {
    fn new(choice: u32, output: &Output) -> Self {
        Self {
            choice,
            at: output.at,
            admitted: output.admitted,
            new_tokens: output.new_tokens,
            cached_tokens: output.cached_tokens,
            finished: output.finished,
            awaited: false,
            events: 1,
        }
    }

    /// Whether the other can be told from this one by nothing but its instant.
    fn is_like(&self, other: &Self) -> bool {
        self.choice == other.choice
            && self.new_tokens == other.new_tokens
            && !self.finished
            && !other.finished
    }
}

/// From the driver to one answer.
#[derive(Default)]
struct ChoiceFeed {
    pending: RefCell<VecDeque<Emission>>,
    waker: Cell<Option<Waker>>,
}

impl ChoiceFeed {
    fn push(&self, mut emission: Emission) {
        let waker = self.waker.take();
        emission.awaited = waker.is_some();
        let mut pending = self.pending.borrow_mut();
        let is_full = pending.len() > APART;
        match pending.back_mut() {
            Some(last) if last.is_like(&emission) && (is_full || last.at == emission.at) => {
                last.events += 1;
            }
            _ => pending.push_back(emission),
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
