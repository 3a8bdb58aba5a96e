//! A worker: one current-thread runtime, its connections, and the exchanges it carries.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use goodput_clock::{Timer, now, use_fine_timer_slack};
use goodput_model::{
    ConnectionPolicy, ErrorClass, Exchange, Failure, Nanos, Phase, RequestRecord, Stage, TokenCount,
};
use goodput_schedule::Timeline;
use goodput_wire::{Client, Endpoint};
use tokio::runtime::LocalOptions;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, Semaphore, SemaphorePermit, oneshot};

use crate::control::Control;
use crate::feeder::{Job, Prepared};
use crate::heart::{Canary, CanaryTask, Observations, beat};
use crate::live::Live;
use crate::pacer::Pacing;

/// How long a user of a closed loop waits after a failure that cost no time. Without it a dead
/// server would be asked thousands of times a second.
const BACK_OFF: Nanos = Nanos::from_millis(100);

/// Longest time spent on opening connections before the run.
const CONNECT_AHEAD: Duration = Duration::from_secs(5);

/// What all workers share.
pub(crate) struct Shared {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) timeout: Duration,
    pub(crate) live: Arc<Live>,
    pub(crate) control: Control,
    pub(crate) records: SyncSender<RequestRecord>,
    /// The run's first instant; set before the first request is due.
    pub(crate) epoch: Arc<OnceLock<Nanos>>,
    /// What workers see of themselves.
    pub(crate) seen: Arc<Observations>,
    pub(crate) canary: Option<Canary>,
    pub(crate) pacing: Pacing,
    pub(crate) workers: u32,
    /// Processors to keep to, one per worker in turn.
    pub(crate) pin_to: Vec<usize>,
    /// `--max-concurrency`, over all workers.
    pub(crate) cap: Option<Semaphore>,
    pub(crate) connections: ConnectionPolicy,
    /// A closed loop has sent all it was to send.
    pub(crate) sent_all: AtomicBool,
}

/// Where a worker's requests come from.
pub(crate) enum Source {
    /// Due now: the pacer waited. So many connections are sure to be needed at once.
    Open(UnboundedReceiver<Job>, u32),
    /// Users of a closed loop.
    Closed(Users),
}

/// The users of a closed loop that live on one worker.
pub(crate) struct Users {
    pub(crate) count: u32,
    pub(crate) think_time: Nanos,
    /// Shared by all workers, so that requests leave in order of their index.
    pub(crate) prepared: Arc<ArrayQueue<Prepared>>,
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) start: oneshot::Receiver<Nanos>,
}

/// Runs a worker on the current thread until its source ends and its last answer has come.
pub(crate) fn work(
    id: u32,
    shared: Arc<Shared>,
    source: Source,
    ready: std::sync::mpsc::Sender<()>,
) -> std::io::Result<()> {
    if !shared.pin_to.is_empty() {
        goodput_clock::pin_to(shared.pin_to[id as usize % shared.pin_to.len()])?;
    }
    use_fine_timer_slack();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    runtime.block_on(async move {
        let worker = Rc::new(Worker {
            id,
            client: Client::new(Arc::clone(&shared.endpoint)),
            timer: Timer::new()?,
            shared,
            under_way: Cell::new(0),
            quiet: Notify::new(),
        });
        worker.connect_ahead(&source).await;
        // The engine waits for every worker; it may have given up, and then there is nothing to do.
        let _ = ready.send(());
        drop(ready);
        worker.observe_from_the_epoch();
        match source {
            Source::Open(jobs, _) => worker.serve_open(jobs).await,
            Source::Closed(users) => worker.serve_closed(users).await,
        }
        worker.drain().await;
        Ok(())
    })
}

struct Worker {
    id: u32,
    client: Client,
    timer: Timer,
    shared: Arc<Shared>,
    under_way: Cell<u64>,
    quiet: Notify,
}

impl Worker {
    /// Opens what is sure to be needed. A failure here will show in the requests.
    async fn connect_ahead(&self, source: &Source) {
        if self.shared.connections == ConnectionPolicy::PerRequest {
            return;
        }
        let count = match source {
            Source::Open(_, count) => *count,
            Source::Closed(users) => users.count,
        };
        tokio::select! {
            () = self.client.connect_ahead(count) => {}
            () = tokio::time::sleep(CONNECT_AHEAD) => {}
            () = self.shared.control.stopped() => {}
        }
    }

    /// Starts what this worker observes about itself.
    fn observe_from_the_epoch(self: &Rc<Self>) {
        let worker = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let Worker { id, shared, timer, .. } = worker.as_ref();
            // The engine sets the epoch once all workers are there.
            let epoch = loop {
                match shared.epoch.get() {
                    Some(epoch) => break *epoch,
                    None => timer.sleep_until(now() + Nanos::from_millis(1)).await,
                }
            };
            if let Some(canary) = &shared.canary {
                let task = CanaryTask {
                    canary: canary.clone(),
                    worker: *id,
                    workers: shared.workers,
                    pacing: shared.pacing,
                    epoch,
                    seen: Arc::clone(&shared.seen),
                };
                tokio::task::spawn_local(task.run(timer.clone()));
            }
            let seen = Arc::clone(&shared.seen);
            let (id, timer) = (*id, timer.clone());
            drop(worker);
            beat(id, timer, epoch, seen).await;
        });
    }

    async fn serve_open(self: &Rc<Self>, mut jobs: UnboundedReceiver<Job>) {
        while let Some(job) = jobs.recv().await {
            self.spawn(job, None);
        }
    }

    async fn serve_closed(self: &Rc<Self>, users: Users) {
        let Ok(epoch) = users.start.await else { return };
        let think = ThinkTime { length: users.think_time, timer: self.timer.clone() };
        think.timer.sleep_until(epoch).await;
        let (free, mut next) = unbounded_channel();
        for _ in 0..users.count {
            let _ = free.send(());
        }
        loop {
            tokio::select! {
                biased;
                () = self.shared.control.stopped() => break,
                Some(()) = next.recv() => {}
            }
            let Some(phase) = users.timeline.place(now() - epoch) else {
                self.shared.sent_all.store(true, Relaxed);
                break;
            };
            let prepared = next_prepared(&users.prepared, &think.timer).await;
            let user = User { think: think.clone(), free: free.clone() };
            self.spawn(Job { prepared, scheduled: None, pacer_lag: None, phase }, Some(user));
        }
    }

    /// Waits for the answers that are still to come.
    async fn drain(&self) {
        while self.under_way.get() > 0 {
            self.quiet.notified().await;
        }
    }

    fn spawn(self: &Rc<Self>, job: Job, user: Option<User>) {
        self.under_way.set(self.under_way.get() + 1);
        self.shared.live.started.fetch_add(1, Relaxed);
        let worker = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let (failed_at_once, ended) = worker.carry(job).await;
            worker.under_way.set(worker.under_way.get() - 1);
            if worker.under_way.get() == 0 {
                worker.quiet.notify_one();
            }
            if let Some(user) = user {
                user.think_then_ask(ended, failed_at_once).await;
            }
        });
    }

    /// Carries one request from its due instant to its record. Returns whether it failed without
    /// costing time, and when it ended.
    async fn carry(&self, job: Job) -> (bool, Nanos) {
        // Nobody sets an instant for a user of a closed loop: its request is due when its turn has
        // come. A client too slow to give everybody a turn shows as users missing from the loop.
        let scheduled = job.scheduled.unwrap_or_else(now);
        let request_id = self.shared.endpoint.request_id(job.prepared.index);
        let mut exchange = Exchange { request_id, ..Exchange::default() };
        hold_until(scheduled).await;
        let (cap_wait, slot) = self.wait_for_slot().await;
        exchange.stamps.dispatched = now();
        match &slot {
            Slot::None => exchange.failure = Some(cut_off(Stage::Connect)),
            Slot::Free | Slot::Permit(_) => self.converse(job.prepared.body, &mut exchange).await,
        }
        drop(slot);
        exchange.stamps.ended = now();
        let ended = exchange.stamps.ended;
        let failed_at_once = exchange.failure.as_ref().is_some_and(|failure| {
            matches!(
                failure.class,
                ErrorClass::Connect | ErrorClass::Closed | ErrorClass::LocalLimit | ErrorClass::Tls
            )
        });
        let epoch = self.shared.epoch.get().copied().unwrap_or(scheduled);
        exchange.stamps = exchange.stamps.since(epoch);
        for chunk in &mut exchange.chunks {
            chunk.at = chunk.at - epoch;
        }
        self.record(RequestRecord {
            index: job.prepared.index,
            phase: job.phase,
            worker: self.id,
            scheduled: scheduled - epoch,
            pacer_lag: job.pacer_lag,
            cap_wait,
            planned: job.prepared.planned,
            exchange,
            prompt: job.prepared.prompt,
        });
        (failed_at_once, ended)
    }

    /// Waits for `--max-concurrency`, first come first served, unless the run is stopped first.
    async fn wait_for_slot(&self) -> (Nanos, Slot<'_>) {
        let Some(cap) = &self.shared.cap else { return (Nanos::ZERO, Slot::Free) };
        if let Ok(permit) = cap.try_acquire() {
            return (Nanos::ZERO, Slot::Permit(permit));
        }
        let begin = now();
        let slot = tokio::select! {
            biased;
            () = self.shared.control.stopped() => Slot::None,
            permit = cap.acquire() => permit.map_or(Slot::None, Slot::Permit),
        };
        // Held back by a nanosecond at least: a wait must not read as none.
        ((now() - begin).max(Nanos(1)), slot)
    }

    /// Sends and reads until the answer ends, its time is up, or the run is cut off.
    async fn converse(&self, body: bytes::Bytes, exchange: &mut Exchange) {
        let failure = tokio::select! {
            biased;
            () = self.client.send(body, exchange) => None,
            () = self.shared.control.aborted() => Some(cut_off(exchange.stamps.stage())),
            () = tokio::time::sleep(self.shared.timeout) => {
                let limit = self.shared.timeout.as_secs_f64();
                let message = format!("no complete answer within {limit} s");
                Some(Failure { class: ErrorClass::Timeout, stage: exchange.stamps.stage(), message })
            }
        };
        if failure.is_some() {
            exchange.failure = failure;
        }
    }

    /// Hands a record to the collector. Never waits: what the collector cannot take is counted.
    fn record(&self, record: RequestRecord) {
        let live = &self.shared.live;
        let counter = if record.is_ok() { &live.ok } else { &live.failed };
        let tokens = record.exchange.output_tokens.map_or(0, |TokenCount { n, .. }| n);
        live.tokens.fetch_add(u64::from(tokens), Relaxed);
        if let Some(first) = record.exchange.stamps.first_token
            && record.phase == Phase::Measured
        {
            live.first_token_ns.fetch_add((first - record.scheduled).0, Relaxed);
            live.first_tokens.fetch_add(1, Relaxed);
        }
        counter.fetch_add(1, Relaxed);
        if self.shared.records.try_send(record).is_err() {
            live.lost.fetch_add(1, Relaxed);
        }
    }
}

/// Lets the worker's other work go on until the instant has come: the pacer hands requests over a
/// little early, so that waking this thread is not part of their lateness.
pub(crate) async fn hold_until(instant: Nanos) {
    while now() < instant {
        tokio::task::yield_now().await;
    }
}

/// Leave to send.
enum Slot<'a> {
    /// There is no cap.
    Free,
    /// One of the cap's.
    Permit(#[expect(dead_code, reason = "held, not read")] SemaphorePermit<'a>),
    /// None: the run was stopped first.
    None,
}

fn cut_off(stage: Stage) -> Failure {
    let message = "the run ended before the answer".to_owned();
    Failure { class: ErrorClass::CutOff, stage, message }
}

/// The next request. The feeder is ahead but for the very first ones and for very long prompts.
async fn next_prepared(queue: &ArrayQueue<Prepared>, timer: &Timer) -> Prepared {
    loop {
        match queue.pop() {
            Some(prepared) => return prepared,
            None => timer.sleep_until(now() + Nanos::from_micros(100)).await,
        }
    }
}

/// One user of a closed loop, between an answer and the next question.
struct User {
    think: ThinkTime,
    free: UnboundedSender<()>,
}

#[derive(Clone)]
struct ThinkTime {
    length: Nanos,
    timer: Timer,
}

impl User {
    /// The user asks again a think time after the answer ended.
    async fn think_then_ask(self, ended: Nanos, failed_at_once: bool) {
        let pause =
            if failed_at_once { self.think.length.max(BACK_OFF) } else { self.think.length };
        if pause > Nanos::ZERO {
            self.think.timer.sleep_until(ended + pause).await;
        }
        // The worker no longer listens once the run has sent enough.
        let _ = self.free.send(());
    }
}
