//! [`run`]: the threads of a run, from the first prepared request to the last answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use goodput_clock::{now, pause};
use goodput_model::{Beat, CanaryReading, ConnectionPolicy, Load, Mode, Nanos, RequestRecord};
use goodput_schedule::{Arrivals, Timeline};
use goodput_wire::{Dialect, Endpoint};
use goodput_workload::Workload;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::control::Control;
use crate::feeder::{AHEAD, Feeder, Prepared};
use crate::heart::{Canary, Observations};
use crate::live::Live;
use crate::pacer::{Arrival, Pacing, pace};
use crate::worker::{Shared, Source, Users, work};

/// Records that may wait for the sink: several seconds of the highest rates.
const RECORD_QUEUE: usize = 1 << 14;

/// How often the sink is asked to make its records safe.
const FLUSH_EVERY: Nanos = Nanos::from_millis(200);

/// How often workers and host are looked at.
const OBSERVE_EVERY: Nanos = Nanos::from_millis(1_000);

/// Most requests of a burst built ahead: some hundred megabytes of prompts.
const BURST_AHEAD: usize = 1 << 16;

/// How long the feeder may build ahead before the first request is due.
const HEAD_START: Nanos = Nanos::from_millis(10);

/// What to run.
pub struct Run {
    /// How much, when, for how long.
    pub load: Load,
    /// Limit for one request.
    pub timeout: Duration,
    /// What to send.
    pub workload: Workload,
    /// How to write it.
    pub dialect: Dialect,
    /// Whom to send it to.
    pub endpoint: Arc<Endpoint>,
    /// Whether connections are kept.
    pub connections: ConnectionPolicy,
    /// Whether prompts are handed to the sink.
    pub keep_text: bool,
    /// How exactly instants are kept.
    pub pacing: Pacing,
    /// A server of known timing to ask beside the load.
    pub canary: Option<Canary>,
    /// Processors to pin the workers to, in turn; none leaves them to the system.
    pub pin_to: Vec<usize>,
}

/// Takes the records of a run, on a thread of its own.
pub trait Sink: Send {
    /// One request has ended.
    fn record(&mut self, record: RequestRecord);
    /// Called about once a second with what workers have seen of themselves since the last call,
    /// and how long ago the run began.
    fn observe(&mut self, at: Nanos, beats: Vec<Beat>, canary: Vec<CanaryReading>);
    /// Called a few times a second: what was recorded must now survive the process.
    fn flush(&mut self);
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended<S> {
    /// Records that the sink was too slow to take.
    pub lost: u64,
    /// The sink, with everything it took.
    pub sink: S,
}

/// Why a run could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A thread could not be started, or a runtime not be built.
    #[error("cannot start the engine: {0}")]
    Start(#[from] std::io::Error),
    /// A bug.
    #[error("a thread of the engine ended unexpectedly")]
    Panicked,
}

/// Runs to the end: every request sent, answered or given up, every record handed to the sink.
pub fn run<S: Sink + 'static>(
    run: Run,
    control: &Control,
    live: &Arc<Live>,
    sink: S,
) -> Result<Ended<S>, EngineError> {
    let (records, collected) = sync_channel(RECORD_QUEUE);
    let (epoch, seen) = (Arc::new(OnceLock::new()), Arc::new(Observations::new()));
    let collector = {
        let collector = Collector { epoch: Arc::clone(&epoch), seen: Arc::clone(&seen), sink };
        spawn("collector", move || collector.collect(&collected))?
    };
    let cap = run.load.mode.cap().map(|cap| Semaphore::new(cap as usize));
    let shared = Arc::new(Shared {
        endpoint: Arc::clone(&run.endpoint),
        timeout: run.timeout,
        live: Arc::clone(live),
        control: control.clone(),
        records,
        epoch,
        seen,
        canary: run.canary,
        pacing: run.pacing,
        workers: run.load.mode.workers(run.load.workers),
        pin_to: run.pin_to,
        cap,
        connections: run.connections,
        sent_all: AtomicBool::new(false),
    });
    let timeline = Arc::new(Timeline::new(&run.load));
    let feeder = Feeder { workload: run.workload, dialect: run.dialect, keep_text: run.keep_text };
    let team = match run.load.mode {
        Mode::Open { rate, arrivals, .. } => {
            let arrivals = Arrivals::new(rate, arrivals, run.load.seed);
            start_open(&run.load, (arrivals, run.pacing), feeder, &shared, &timeline)?
        }
        Mode::Shaped { .. } | Mode::Replay { .. } => {
            return Err(EngineError::Start(std::io::Error::other("not yet")));
        }
        Mode::Closed { concurrency, think_time, .. } => {
            let users = (concurrency, Nanos::from(think_time));
            start_closed(users, feeder, &shared, &timeline)?
        }
    };
    let drain = Nanos::from(run.load.drain);
    let outcome = see_through(team, &shared, &timeline, drain);
    // The collector ends when the last sender is gone.
    drop(shared);
    let sink = collector.join().map_err(|_| EngineError::Panicked)?;
    outcome?;
    Ok(Ended { lost: live.lost.load(Relaxed), sink })
}

/// The threads that send.
struct Team {
    /// Finished once everything is on its way: the pacer of an open loop.
    pacer: Option<JoinHandle<()>>,
    feeder: JoinHandle<()>,
    workers: Vec<JoinHandle<std::io::Result<()>>>,
}

fn start_open(
    load: &Load,
    (arrivals, pacing): (Arrivals, Pacing),
    feeder: Feeder,
    shared: &Arc<Shared>,
    timeline: &Arc<Timeline>,
) -> Result<Team, EngineError> {
    let is_burst = arrivals.is_burst();
    // A burst is built as a whole before it leaves.
    let burst = load.num_requests.filter(|_| is_burst).unwrap_or(0);
    let ahead = usize::try_from(burst).unwrap_or(usize::MAX).clamp(AHEAD, BURST_AHEAD);
    let (arrive, due) = sync_channel(ahead);
    let fed = Arc::new(AtomicU64::new(0));
    let feeder = {
        let (timeline, fed) = (Arc::clone(timeline), Arc::clone(&fed));
        spawn("feeder", move || {
            for (index, at) in (0u64..).zip(arrivals) {
                let Some(phase) = timeline.place(at) else { return };
                let Some(prepared) = feeder.prepare(index) else { return };
                if arrive.send(Arrival { at, phase, prepared }).is_err() {
                    return;
                }
                fed.fetch_add(1, Relaxed);
            }
        })?
    };
    let (ready, all_ready) = channel();
    // A burst needs all of its connections at once, unless a cap holds it back.
    let at_once = shared.cap.as_ref().map_or(usize::MAX, Semaphore::available_permits);
    let at_once = usize::try_from(burst).unwrap_or(usize::MAX).min(at_once);
    let connections = u32::try_from(at_once.div_ceil(shared.workers as usize)).unwrap_or(1).max(1);
    let mut inboxes = Vec::new();
    let mut workers = Vec::new();
    for id in 0..shared.workers {
        let (inbox, jobs) = mpsc::unbounded_channel();
        inboxes.push(inbox);
        workers.push(spawn_worker(id, shared, Source::Open(jobs, connections), &ready)?);
    }
    drop(ready);
    wait_for_all(&all_ready);
    let begin = now();
    while !feeder.is_finished() && fed.load(Relaxed) < ahead as u64 {
        if !is_burst && now() - begin > HEAD_START && fed.load(Relaxed) > 0 {
            break;
        }
        pause(Nanos::from_micros(200));
    }
    let epoch = set_epoch(shared);
    let control = shared.control.clone();
    let pacer = spawn("pacer", move || pace(epoch, pacing, &due, &inboxes, &control))?;
    Ok(Team { pacer: Some(pacer), feeder, workers })
}

fn start_closed(
    (concurrency, think_time): (u32, Nanos),
    feeder: Feeder,
    shared: &Arc<Shared>,
    timeline: &Arc<Timeline>,
) -> Result<Team, EngineError> {
    let (ready, all_ready) = channel();
    let prepared = Arc::new(ArrayQueue::new((concurrency as usize).clamp(AHEAD / 4, AHEAD)));
    let mut starts = Vec::new();
    let mut workers = Vec::new();
    let worker_count = shared.workers;
    for id in 0..worker_count {
        let count = concurrency / worker_count + u32::from(id < concurrency % worker_count);
        let (start, started) = oneshot::channel();
        starts.push(start);
        let (prepared, timeline) = (Arc::clone(&prepared), Arc::clone(timeline));
        let users = Users { count, think_time, prepared, timeline, start: started };
        workers.push(spawn_worker(id, shared, Source::Closed(users), &ready)?);
    }
    drop(ready);
    let feeder = {
        let prepared = Arc::clone(&prepared);
        spawn("feeder", move || feed_closed(&feeder, &prepared))?
    };
    wait_for_all(&all_ready);
    // All users start at once, so their first requests are ready before that.
    while prepared.len() < prepared.capacity().min(concurrency as usize) {
        pause(Nanos::from_micros(200));
    }
    let epoch = set_epoch(shared);
    drop(prepared);
    for start in starts {
        // A worker that is gone shows when it is joined.
        let _ = start.send(epoch);
    }
    Ok(Team { pacer: None, feeder, workers })
}

/// Keeps the queue full, in order of the index, until every worker has let go of it.
fn feed_closed(feeder: &Feeder, queue: &Arc<ArrayQueue<Prepared>>) {
    for index in 0u64.. {
        let Some(mut prepared) = feeder.prepare(index) else { return };
        loop {
            if Arc::strong_count(queue) == 1 {
                return;
            }
            match queue.push(prepared) {
                Ok(()) => break,
                Err(back) => prepared = back,
            }
            // The queue lasts far longer than this; waking more often would cost the workers.
            pause(Nanos::from_millis(20));
        }
    }
}

/// The first instant: soon, but ahead of every thread that will look at it.
fn set_epoch(shared: &Shared) -> Nanos {
    *shared.epoch.get_or_init(|| now() + Nanos::from_millis(1))
}

fn wait_for_all(ready: &Receiver<()>) {
    // Ends when every worker has reported and dropped its end.
    while ready.recv().is_ok() {}
}

/// Waits until all is sent and answered; past the drain limit, for nothing more.
fn see_through(
    team: Team,
    shared: &Shared,
    timeline: &Timeline,
    drain: Nanos,
) -> Result<(), EngineError> {
    let mut sent_since = None;
    while !team.workers.iter().all(JoinHandle::is_finished) {
        let present = now();
        let epoch = shared.epoch.get().copied().unwrap_or(present);
        let is_over = timeline.end().is_some_and(|end| present > epoch + end);
        let is_sent = match &team.pacer {
            Some(pacer) => pacer.is_finished(),
            None => is_over || shared.sent_all.load(Relaxed),
        };
        if team.pacer.is_none() && is_sent {
            // Users in thought need not wake up any more.
            shared.control.stop();
        }
        if is_sent || shared.control.is_stopping() {
            shared.control.drain();
            let since = *sent_since.get_or_insert(present);
            if present - since > drain {
                shared.control.abort();
            }
        }
        pause(Nanos::from_millis(20));
    }
    let mut threads = vec![team.feeder];
    threads.extend(team.pacer);
    // The pacer has let go of the feeder's channel by now, so the feeder ends too.
    for thread in threads {
        thread.join().map_err(|_| EngineError::Panicked)?;
    }
    for worker in team.workers {
        worker.join().map_err(|_| EngineError::Panicked)??;
    }
    Ok(())
}

/// Brings records and observations to the sink.
struct Collector<S> {
    epoch: Arc<OnceLock<Nanos>>,
    seen: Arc<Observations>,
    sink: S,
}

impl<S: Sink> Collector<S> {
    /// Runs until the last worker is gone; the sink, with everything.
    fn collect(mut self, records: &Receiver<RequestRecord>) -> S {
        let mut flushed = now();
        let mut observed = Nanos::ZERO;
        loop {
            match records.recv_timeout(FLUSH_EVERY.into()) {
                Ok(record) => self.sink.record(record),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.observe();
                    self.sink.flush();
                    return self.sink;
                }
            }
            let present = now();
            if present - observed >= OBSERVE_EVERY {
                observed = present;
                self.observe();
            }
            if present - flushed >= FLUSH_EVERY {
                flushed = present;
                self.sink.flush();
            }
        }
    }

    fn observe(&mut self) {
        // Before the epoch there is nothing to see but the start.
        if let Some(epoch) = self.epoch.get() {
            let (beats, canary) = self.seen.take();
            self.sink.observe(now() - *epoch, beats, canary);
        }
    }
}

fn spawn_worker(
    id: u32,
    shared: &Arc<Shared>,
    source: Source,
    ready: &Sender<()>,
) -> std::io::Result<JoinHandle<std::io::Result<()>>> {
    let (shared, ready) = (Arc::clone(shared), ready.clone());
    spawn(&format!("worker-{id}"), move || work(id, shared, source, ready))
}

fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body)
}
