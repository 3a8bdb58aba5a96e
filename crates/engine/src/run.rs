//! [`run`]: the threads of a run, from the first prepared request to the last answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::schedule::{ArrivalSequence, RunTimeline};
use goodput_model::{ConnectionPolicy, Load, LoadShape, Mode, Nanos, Shard, Tracer};
use goodput_wire::{Endpoint, RequestFormat, SessionHeader};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::arrivals::Arrivals;
use crate::collector::{RecordCollector, Sink};
use crate::control::RunControl;
use crate::feeder::{AHEAD, Feeder, OpenFeed, PreparedBacklog, SessionQueue, SessionSource};
use crate::live::LiveCounters;
use crate::pacing::TimerMode;
use crate::self_check::{Canary, Observations};
use crate::senders::Senders;
use crate::session::BodyEncoder;
use crate::users::{UserSettings, Users};
use crate::work::{WorkSource, run_worker};
use crate::worker::WorkerContext;

/// Records that may wait for the sink: several seconds of the highest rates.
const RECORD_QUEUE: usize = 1 << 14;

/// Most requests of a burst built ahead: some hundred megabytes of chat prompts.
const BURST_AHEAD: usize = 1 << 16;

/// How long the feeder may build ahead before the first request is due.
const HEAD_START: Nanos = Nanos::from_millis(10);

/// Waits until the run may begin, and gives its first instant.
pub type Begin = Box<dyn FnOnce() -> Nanos + Send>;

/// What to run.
pub struct EngineRun {
    /// How much, when, for how long, over all shards.
    pub load: Load,
    /// Which part of it this client sends.
    pub shard: Shard,
    /// Called once everything is ready to be sent; without it the run begins at once.
    pub begin: Option<Begin>,
    /// Limit for one request.
    pub timeout: Duration,
    /// What to send.
    pub workload: Box<dyn SessionSource>,
    /// How to write it.
    pub dialect: RequestFormat,
    /// Whom to send it to.
    pub endpoint: Arc<Endpoint>,
    /// Whether connections are kept.
    pub connections: ConnectionPolicy,
    /// Whether prompts and answers are handed to the sink. For answers the endpoint must keep text.
    pub keep_text: bool,
    /// Whether answers are handed to the sink, to be judged after the run. For sessions that quote
    /// answers it is enough that the endpoint keeps text.
    pub keep_answers: bool,
    /// Whether bodies that are a function of the plan alone are hashed into their records.
    pub hash_bodies: bool,
    /// A header that is the same in all requests of a session and differs between sessions.
    pub session_header: Option<SessionHeader>,
    /// Which requests are sent with `traceparent`.
    pub tracer: Option<Tracer>,
    /// How exactly instants are kept.
    pub pacing: TimerMode,
    /// A server of known timing that gets requests during the load.
    pub canary: Option<Canary>,
    /// Processors to pin the workers to, in turn; none leaves them to the system.
    pub pin_to: Vec<usize>,
}

/// How a run ended.
#[derive(Debug)]
pub struct RunEnd<S> {
    /// Records that the sink was too slow to take.
    pub lost: u64,
    /// Requests that sessions had begun to lead to and that were never sent: a step before them
    /// failed, or the run ended. Those beyond the number that was asked for are not among them.
    pub cut_requests: u64,
    /// When sending was stopped through [`RunControl`], since the run's first instant; `None` where
    /// everything had been sent.
    pub stopped: Option<Nanos>,
    /// The run's first instant; `None` where it never came to it.
    pub epoch: Option<Nanos>,
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
    run: EngineRun,
    control: &RunControl,
    live: &Arc<LiveCounters>,
    sink: S,
) -> Result<RunEnd<S>, EngineError> {
    let load = run.shard.shard_load(&run.load);
    let (records, collected) = sync_channel(RECORD_QUEUE);
    let (epoch, seen) = (Arc::new(OnceLock::new()), Arc::new(Observations::new()));
    let collector = {
        let collector =
            RecordCollector { epoch: Arc::clone(&epoch), seen: Arc::clone(&seen), sink };
        spawn_named("collector", move || collector.collect(&collected))?
    };
    let EngineRun { dialect, keep_text, hash_bodies, .. } = run;
    let scribe = BodyEncoder { dialect, keep_text, hash_bodies };
    let senders = Senders::default();
    let shared = Arc::new(WorkerContext {
        endpoint: run.endpoint,
        timeout: run.timeout,
        live: Arc::clone(live),
        control: control.clone(),
        records,
        epoch,
        seen,
        canary: run.canary,
        pacing: run.pacing,
        workers: load.mode.useful_workers(load.workers),
        pin_to: run.pin_to,
        cap: load.mode.most_in_flight().map(|cap| Semaphore::new(cap as usize)),
        connections: run.connections,
        timeline: Arc::new(RunTimeline::new(&load)),
        is_closed: matches!(load.mode, Mode::Closed { .. }),
        scribe: scribe.clone(),
        keep_answers: run.keep_text || run.keep_answers,
        session_header: run.session_header,
        tracer: run.tracer,
        senders: senders.clone(),
        sent_all: AtomicBool::new(false),
        fed_all: AtomicBool::new(false),
        cut_requests: AtomicU64::new(0),
    });
    let feeder = Feeder::new(run.workload, run.shard, scribe, senders);
    let begin = run.begin.unwrap_or_else(|| Box::new(soon_instant));
    let team = start_workers(&load, feeder, begin, &shared)?;
    let outcome = wait_for_completion(team, &shared, Nanos::from(load.drain));
    let cut_requests = shared.cut_requests.load(Ordering::Relaxed);
    let epoch = shared.epoch.get().copied();
    let stopped = control.stopped_at().zip(epoch).map(|(stopped, epoch)| stopped - epoch);
    // The collector ends when the last sender is gone.
    drop(shared);
    let sink = collector.join().map_err(|_| EngineError::Panicked)?;
    outcome?;
    Ok(RunEnd { lost: live.lost.load(Ordering::Relaxed), cut_requests, stopped, epoch, sink })
}

fn start_workers(
    load: &Load,
    feeder: Feeder,
    begin: Begin,
    shared: &Arc<WorkerContext>,
) -> Result<Team, EngineError> {
    match &load.mode {
        Mode::Open { rate, arrivals, .. } => {
            let arrivals = ArrivalSequence::new(*rate, *arrivals, load.seed);
            start_open(load, Some(arrivals), feeder, begin, shared)
        }
        Mode::Shaped { shape, arrivals, .. } => {
            let arrivals = ArrivalSequence::shaped(shape, *arrivals, load.seed);
            start_open(load, Some(arrivals), feeder, begin, shared)
        }
        Mode::Replay { .. } => start_open(load, None, feeder, begin, shared),
        Mode::Closed { concurrency, think_time, pause_first } => {
            let think_time = Nanos::from(*think_time);
            let habits = UserSettings { think_time, pause_first: *pause_first };
            start_closed(*concurrency, habits, feeder, begin, shared)
        }
    }
}

/// The threads that send.
struct Team {
    feeder: JoinHandle<()>,
    workers: Vec<JoinHandle<std::io::Result<()>>>,
    /// Workers of an open loop that have not begun all of their sessions.
    beginning: Senders,
}

/// Starts an open loop; without `arrivals` sessions arrive when the workload says.
fn start_open(
    load: &Load,
    arrivals: Option<ArrivalSequence>,
    feeder: Feeder,
    begin: Begin,
    shared: &Arc<WorkerContext>,
) -> Result<Team, EngineError> {
    let is_burst = arrivals.as_ref().is_some_and(ArrivalSequence::is_burst);
    let burst = burst_size(load, is_burst);
    let capacity = burst.clamp(AHEAD, BURST_AHEAD);
    let (ready, all_ready) = channel();
    // A burst needs all of its connections at once, unless a cap holds it back.
    let at_once = shared.cap.as_ref().map_or(burst, |cap| burst.min(cap.available_permits()));
    let connections = u32::try_from(at_once.div_ceil(shared.workers as usize)).unwrap_or(1).max(1);
    let ahead = Arc::new(PreparedBacklog::default());
    let beginning = Senders::default();
    let (mut inboxes, mut starts, mut workers) = (Vec::new(), Vec::new(), Vec::new());
    for id in 0..shared.workers {
        let (inbox, sessions) = mpsc::channel(capacity.div_ceil(shared.workers as usize));
        let (start, started) = oneshot::channel();
        inboxes.push(inbox);
        starts.push(start);
        let senders = [shared.senders.add_sender(), beginning.add_sender()];
        let arrivals = Arrivals { sessions, ahead: Arc::clone(&ahead), start: started, senders };
        workers.push(spawn_worker(id, shared, WorkSource::Open(arrivals, connections), &ready)?);
    }
    let feeder = {
        let (timeline, ahead) = (Arc::clone(&shared.timeline), Arc::clone(&ahead));
        let feed = OpenFeed { feeder, arrivals, timeline, ahead, workers: inboxes };
        spawn_named("feeder", move || feed.run())?
    };
    drop(ready);
    wait_for_all(&all_ready);
    let since = now();
    let needed = if is_burst { capacity } else { burst.clamp(1, capacity) } as u64;
    while (is_burst || !ahead.is_full()) && !feeder.is_finished() {
        let fed = ahead.fed.load(Ordering::Relaxed);
        if fed >= capacity as u64 || (fed >= needed && now() - since > HEAD_START) {
            break;
        }
        pause(Nanos::from_micros(200));
    }
    // The feeder learns from this count that the workers are gone.
    drop(ahead);
    begin_all(starts, set_epoch(shared, begin));
    Ok(Team { feeder, workers, beginning })
}

/// Requests that are due at one instant, where many are. They are built before it.
fn burst_size(load: &Load, is_burst: bool) -> usize {
    match &load.mode {
        Mode::Shaped { shape: LoadShape::Bursts { size, .. }, .. } => *size as usize,
        _ if is_burst => usize::try_from(load.num_requests.unwrap_or(0)).unwrap_or(usize::MAX),
        _ => 0,
    }
}

fn start_closed(
    concurrency: u32,
    habits: UserSettings,
    feeder: Feeder,
    begin: Begin,
    shared: &Arc<WorkerContext>,
) -> Result<Team, EngineError> {
    let (ready, all_ready) = channel();
    let queue = Arc::new(SessionQueue::new((concurrency as usize).clamp(AHEAD / 4, AHEAD)));
    let mut starts = Vec::new();
    let mut workers = Vec::new();
    let worker_count = shared.workers;
    for id in 0..worker_count {
        let count = concurrency / worker_count + u32::from(id < concurrency % worker_count);
        let (start, started) = oneshot::channel();
        starts.push(start);
        let (queue, sender) = (Arc::clone(&queue), shared.senders.add_sender());
        let users = Users { count, habits, queue, start: started, sender };
        workers.push(spawn_worker(id, shared, WorkSource::Closed(users), &ready)?);
    }
    drop(ready);
    let feeder = {
        let (queue, fed_all) = (Arc::clone(&queue), FedAll(Arc::clone(shared)));
        spawn_named("feeder", move || {
            queue.keep_full(feeder);
            drop(fed_all);
        })?
    };
    wait_for_all(&all_ready);
    // All users start at once, so their first sessions are ready before that.
    while queue.len() < concurrency as usize && !queue.is_full() && !feeder.is_finished() {
        pause(Nanos::from_micros(200));
    }
    let epoch = set_epoch(shared, begin);
    drop(queue);
    begin_all(starts, epoch);
    Ok(Team { feeder, workers, beginning: Senders::default() })
}

/// Tells the workers the run's first instant.
fn begin_all(starts: Vec<oneshot::Sender<Nanos>>, epoch: Nanos) {
    for start in starts {
        // A worker that is gone shows when it is joined.
        let _ = start.send(epoch);
    }
}

/// Tells the users of a closed loop, when dropped, that no session will follow: the workload has
/// ended, or its thread has.
struct FedAll(Arc<WorkerContext>);

impl Drop for FedAll {
    fn drop(&mut self) {
        self.0.fed_all.store(true, Ordering::Release);
    }
}

/// The first instant: ahead of every thread that will look at it.
fn set_epoch(shared: &WorkerContext, begin: Begin) -> Nanos {
    *shared.epoch.get_or_init(begin)
}

fn soon_instant() -> Nanos {
    now() + Nanos::from_millis(1)
}

fn wait_for_all(ready: &Receiver<()>) {
    // Ends when every worker has reported and dropped its end.
    while ready.recv().is_ok() {}
}

/// Waits until all is sent and answered; past the drain limit, for nothing more.
fn wait_for_completion(
    team: Team,
    shared: &WorkerContext,
    drain: Nanos,
) -> Result<(), EngineError> {
    let mut sent_since = None;
    while !team.workers.iter().all(JoinHandle::is_finished) {
        let present = now();
        let epoch = shared.epoch.get().copied().unwrap_or(present);
        let is_over = shared.timeline.end().is_some_and(|end| present > epoch + end);
        let is_sent = shared.senders.are_gone()
            || shared.sent_all.load(Ordering::Relaxed)
            || (is_over && team.beginning.are_gone());
        if shared.is_closed && is_sent {
            // Users in thought need not wake up any more.
            shared.control.mark_all_sent();
        }
        if is_sent || shared.control.is_stopping() {
            shared.control.mark_draining();
            let since = *sent_since.get_or_insert(present);
            if present - since > drain {
                shared.control.give_up();
            }
        }
        pause(Nanos::from_millis(20));
    }
    // The workers have let go of the feeder's channels by now, so the feeder ends too.
    team.feeder.join().map_err(|_| EngineError::Panicked)?;
    for worker in team.workers {
        worker.join().map_err(|_| EngineError::Panicked)??;
    }
    Ok(())
}

fn spawn_worker(
    id: u32,
    shared: &Arc<WorkerContext>,
    source: WorkSource,
    ready: &Sender<()>,
) -> std::io::Result<JoinHandle<std::io::Result<()>>> {
    let (shared, ready) = (Arc::clone(shared), ready.clone());
    spawn_named(&format!("worker-{id}"), move || run_worker(id, shared, source, ready))
}

fn spawn_named<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body)
}
