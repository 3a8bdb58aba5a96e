//! One run of a plan: everything ready, the load sent, the record closed and turned into numbers.

mod context;
mod recorder;
mod start;

pub use context::{InProcess, Lab, RunContext, Runner};
pub use start::StartBarrier;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use goodput_engine::{Begin, EngineRun, RunEnd, Sink, Snapshot};
use goodput_mock::MockServer;
use goodput_model::{
    ClockOffset, EndedBy, GpuPlan, Load, LoadExtent, Mode, Nanos, Plan, Rate, Shard, SystemFacts,
    Tracer,
};
use goodput_observe::HostSampler;
use goodput_record::{Manifest, RunFolder, Spool, State, TargetFacts, TextWriter, WorkloadFacts};
use goodput_stats::{Summary, Watch};
use goodput_workload::Workload;

use crate::error::{Failed, folder_failed};
use crate::events::{Observer, UpcomingRun};
use crate::handle::RunHandle;
use crate::hooks::{self, HookedRun, RunHooks};
use crate::hub::Hub;
use crate::inputs::{self, WorkloadInputs};
use crate::judge::AnswerJudge;
use crate::readiness::{self, Ready};
use crate::server::ServerWatch;
use crate::token_calibration::{self, Questions};
use crate::{calibrate, canary, checks, host, saved, system};
use recorder::RunRecorder;

/// Reads the files that the plan names, and settles what they say about the workload.
pub fn gather_inputs(plan: &mut Plan, hub: &Hub) -> Result<WorkloadInputs, Failed> {
    let setting = inputs::load_setting(&plan.load);
    WorkloadInputs::gather(&mut plan.workload, setting, hub)
}

/// A run that can begin: its target answers, and its workload is there.
pub struct Prepared {
    /// With everything settled that it left open.
    pub plan: Plan,
    /// The target.
    pub ready: Arc<Ready>,
    workload: Workload,
    judge: Option<AnswerJudge>,
}

/// Gathers what the plan needs and waits for its target.
pub fn prepare_run(lab: &Lab, mut plan: Plan) -> Result<Prepared, Failed> {
    let inputs = gather_inputs(&mut plan, &lab.hub)?;
    check_connections(&plan, lab)?;
    let stopped = || lab.interrupt.is_interrupted().then(token_calibration::stopped_error);
    let ready = Arc::new(readiness::wait_ready_unless(&mut plan, &*lab.observer, &stopped)?);
    build_run(lab, plan, inputs, ready)
}

/// The same on a target that is ready already.
pub fn prepare_on(lab: &Lab, mut plan: Plan, ready: Arc<Ready>) -> Result<Prepared, Failed> {
    let inputs = gather_inputs(&mut plan, &lab.hub)?;
    check_connections(&plan, lab)?;
    build_run(lab, plan, inputs, ready)
}

fn build_run(
    lab: &Lab,
    mut plan: Plan,
    inputs: WorkloadInputs,
    ready: Arc<Ready>,
) -> Result<Prepared, Failed> {
    let questions = Questions {
        are_allowed: lab.may_ask,
        is_stopped: &|| lab.interrupt.is_interrupted(),
        observer: &*lab.observer,
    };
    token_calibration::calibrate_target(&mut plan, &ready, inputs.tokenizer.as_ref(), &questions)?;
    if !lab.is_led {
        readiness::reset_cache(&plan, &ready)?;
    }
    let tokenizer = inputs.tokenizer.clone();
    let workload = inputs.build_workload(&plan.workload)?;
    let judge = AnswerJudge::new(&plan, &workload, tokenizer.as_ref(), &lab.hub)?;
    checks::check_workload(&plan, &workload)?;
    Ok(Prepared { plan, ready, workload, judge })
}

impl Prepared {
    /// Hash of everything that will be sent.
    pub fn workload_hash(&self) -> String {
        self.workload.hash()
    }

    /// Sends the load, records it in a folder at `path`, and turns it into numbers, wherever runs are
    /// carried out.
    pub fn run(self, lab: &Lab, path: &Path, context: RunContext) -> Result<Summary, Failed> {
        lab.runner.run(self, lab, path, context)
    }

    /// The same in this process.
    pub fn run_in_process(
        self,
        lab: &Lab,
        path: &Path,
        mut context: RunContext,
    ) -> Result<Summary, Failed> {
        let Self { plan, ready, workload, judge } = self;
        let mut manifest = begin_manifest(&plan, &ready, &workload, lab, &context);
        let tracer = hooks::new_tracer(&plan, &mut manifest);
        let (mut folder, logs) =
            RunFolder::create(path, &plan, &manifest).map_err(|error| folder_failed(&error))?;
        let answers = judge.is_some().then(|| open_spool(path)).transpose()?;
        let texts = open_text_file(&plan, &mut folder)?;
        let (handle, label) = (context.handle.clone(), context.label.clone());
        let seen = plan_for_rank(&plan, lab);
        // Until the report is written a signal stops the run, not the process.
        let internal = |error: std::io::Error| Failed::internal(error.to_string());
        let _watched = lab.interrupt.watch(&handle.control).map_err(internal)?;
        let hooks = RunHooks::new(
            &lab.hooks,
            &*lab.observer,
            &lab.interrupt,
            HookedRun { plan: &plan, ready: &ready, folder: path, label: &label },
        );
        hooks.run_before_command()?;
        let server = ServerWatch::start(&seen, &ready, &*lab.observer, &lab.interrupt);
        let server = hooks.undo_on_failure(server)?;
        server.describe(&mut manifest.system);
        // Of a run that is killed, what is known; a disk that is full shows soon enough.
        let _ = folder.write_manifest(&manifest);
        let mut sinks = std::mem::take(&mut context.sinks);
        sinks.extend(lab.observer.follow(&UpcomingRun {
            plan: &plan,
            // The engine inside the process listens at another port each time.
            target: if ready.mock.is_some() { &plan.target.url } else { &ready.shown },
            model: &ready.model,
            folder: path,
            label: &label,
            end: context.end,
            is_silent: context.is_silent,
            handle: &handle,
        }));
        let recorder = RunRecorder {
            observer: Arc::clone(&lab.observer),
            handle: handle.clone(),
            logs,
            host: HostSampler::new(),
            texts,
            answers,
            watch: Watch::new(&seen),
            ended_by: None,
            looks: server.open_looks(),
            sinks,
            epoch: None,
        };
        hooks.start_profiler()?;
        context.begin =
            context.begin.map(|begin| note_begin(begin, path, &manifest, &handle.clock));
        let load = PreparedLoad { plan: &plan, ready: &ready, workload, tracer };
        let mut sent = load.send(lab, context, recorder);
        manifest.ended = Some(host::timestamp());
        // The last look first: what follows may stop the server.
        let server = server.finish(&plan, handle.control.was_told_to_abort(), &*lab.observer);
        if let Ok(sent) = &mut sent {
            sent.ended.sink.write_last_samples();
        }
        hooks.stop_profiler();
        let mut sent = sent?;
        server.describe(&mut manifest.system);
        record_begin(&mut manifest, sent.ended.epoch, &handle.clock);
        manifest.workload.cache_counters = server.cache_counters();
        sent.ended.sink.flush();
        restore_removed_folder(&mut folder, &plan, &manifest, &*lab.observer);
        if let Some((judge, answers)) = judge.zip(sent.ended.sink.answers.take()) {
            judge_answers(&judge, answers, path, &*lab.observer);
        }
        let summary = conclude_run(&plan, folder, manifest, sent)?;
        hooks.export_traces();
        ready.mock.as_ref().map(|mock| warn_if_late(mock, (0, 0), &*lab.observer));
        Ok(summary)
    }
}

/// The run is over: its numbers must not be lost with its judgements.
fn judge_answers(judge: &AnswerJudge, answers: Spool, path: &Path, observer: &dyn Observer) {
    let judged = judge.judge_answers(answers, path, observer);
    judged.unwrap_or_else(|failed| observer.warn(failed.to_string()));
}

/// Where answers wait until they are judged.
fn open_spool(path: &Path) -> Result<Spool, Failed> {
    let unwritable =
        |error| Failed::usage(format!("cannot write to `{}`: {error}", path.display()));
    Spool::new(path).map_err(unwritable)
}

/// The file for prompts and answers, where they are kept.
fn open_text_file(plan: &Plan, folder: &mut RunFolder) -> Result<Option<TextWriter>, Failed> {
    let texts = plan.workload.save_text.then(|| folder.create_texts());
    texts.transpose().map_err(|error| folder_failed(&error))
}

/// A folder that was removed meanwhile is written again, from the logs that are still open.
fn restore_removed_folder(
    folder: &mut RunFolder,
    plan: &Plan,
    manifest: &Manifest,
    observer: &dyn Observer,
) {
    if folder.has_own_log() {
        return;
    }
    let gone = format!("`{}` was removed during the run", folder.path().display());
    observer.warn(match folder.restore(plan, manifest) {
        Ok(()) => format!("{gone}: writing it again from the open log"),
        Err(error) => format!(
            "{gone} and cannot be written again: {error}; the figures below are not saved anywhere"
        ),
    });
}

/// Observers that run during the load. A rank with a coordinator does not end a run by itself, and leaves the
/// server to the one that leads.
fn plan_for_rank(plan: &Plan, lab: &Lab) -> Plan {
    let mut plan = plan.clone();
    if lab.is_led {
        (plan.measure.until, plan.measure.stop_early) = (None, None);
        (plan.observe.metrics, plan.observe.gpu) = (false, GpuPlan::Off);
        plan.observe.gpu_idle = Duration::ZERO;
    }
    plan
}

/// A common start that is on disk before the first request: a client that is killed leaves behind when
/// it began.
fn note_begin(
    begin: Begin,
    path: &Path,
    manifest: &Manifest,
    clock: &Arc<OnceLock<ClockOffset>>,
) -> Begin {
    let (path, mut manifest, clock) = (path.to_owned(), manifest.clone(), Arc::clone(clock));
    Box::new(move || {
        let at = begin();
        record_begin(&mut manifest, Some(at), &clock);
        // A disk that is full shows soon enough.
        let _ = RunFolder::open(&path).map(|folder| folder.write_manifest(&manifest));
        at
    })
}

/// Notes when a run began, on clocks that differ from those of who leads by so much.
fn record_begin(manifest: &mut Manifest, epoch: Option<Nanos>, clock: &OnceLock<ClockOffset>) {
    manifest.epoch_ns = epoch.map(|epoch| epoch.0);
    if let (Some(shard), Some(clock)) = (&mut manifest.shard, clock.get()) {
        shard.clock = Some(*clock);
    }
}

/// How sending ended.
struct Sent {
    ended: RunEnd<RunRecorder>,
    interrupted: bool,
    /// The workload had no more sessions, and the load would have gone on.
    ended_early: bool,
    /// What came of the workload that could not be known beforehand.
    notes: Vec<String>,
}

/// A load that is about to be sent.
struct PreparedLoad<'a> {
    plan: &'a Plan,
    ready: &'a Ready,
    workload: Workload,
    tracer: Option<Tracer>,
}

impl PreparedLoad<'_> {
    fn send(
        self,
        lab: &Lab,
        context: RunContext,
        mut recorder: RunRecorder,
    ) -> Result<Sent, Failed> {
        let internal = |error: &dyn std::fmt::Display| Failed::internal(error.to_string());
        let Self { plan, ready, workload, tracer } = self;
        let RunHandle { control, live, .. } = recorder.handle.clone();
        let kept = workload.clone();
        let canary = plan.measure.canary.then(canary::start_canary).transpose();
        let canary = canary.unwrap_or_else(|error| {
            // A run goes on without its canary.
            lab.observer.warn(format!("could not start the canary: {error}"));
            None
        });
        let (_server, canary) = canary.unzip();
        let shard = context.shard.as_ref().map_or(Shard::WHOLE, |facts| facts.shard);
        let run = EngineRun {
            load: plan.load.clone(),
            shard,
            begin: context.begin,
            timeout: plan.target.timeout,
            workload: Box::new(workload),
            dialect: ready.dialect.clone(),
            endpoint: Arc::clone(&ready.endpoint),
            connections: plan.target.connections,
            keep_text: plan.workload.save_text,
            keep_answers: recorder.answers.is_some(),
            hash_bodies: plan.measure.hash_bodies,
            session_header: checks::parse_session_header(&plan.workload)?,
            tracer,
            pacing: host::timer_mode(),
            canary,
            pin_to: if plan.load.pin { goodput_clock::allowed_cpus() } else { Vec::new() },
        };
        recorder.sinks.iter_mut().for_each(|sink| sink.begin());
        if let Some(start) = &context.start {
            start.wait();
        }
        let mut ended = goodput_engine::run(run, &control, &live, recorder)
            .map_err(|error| internal(&error))?;
        // What follows, a profile that is written or answers that are judged, is not part of the run.
        ended.sink.sinks.clear();
        let Snapshot { sessions, started: requests, .. } = live.snapshot();
        let is_exhausted = kept
            .session_count()
            .is_some_and(|all| sessions >= sessions_of_shard(&kept, all, shard));
        // Of all clients, about: each sends its turn.
        let notes = kept.repeat_notes(sessions.saturating_mul(u64::from(shard.count())));
        let ended_early = is_exhausted && has_ended_early(&plan.load, shard, requests, &kept);
        let interrupted = lab.interrupt.is_interrupted();
        Ok(Sent { ended, interrupted, ended_early, notes })
    }
}

/// Sessions of so many that this client sends.
fn sessions_of_shard(workload: &Workload, all: u64, shard: Shard) -> u64 {
    if !shard.is_part() {
        return all;
    }
    (0..all).filter(|number| shard.sends_turn(workload.deal_turn(*number))).count() as u64
}

/// Closes the record and turns it into numbers.
fn conclude_run(
    plan: &Plan,
    mut folder: RunFolder,
    mut manifest: Manifest,
    sent: Sent,
) -> Result<Summary, Failed> {
    // To the microsecond: a number that reads back from its file as it was written.
    let stopped = sent.ended.stopped.map(|at| (at.0 / 1_000) as f64 / 1e6);
    let RunRecorder { logs, ended_by, observer, .. } = sent.ended.sink;
    let (unwritten, unwritten_samples) = (logs.requests.finish(), logs.samples.finish());
    manifest.state = if sent.interrupted { State::Interrupted } else { State::Complete };
    manifest.clocks_end = Some(host::read_clocks());
    manifest.stopped_s = stopped;
    let otherwise = if stopped.is_some() { EndedBy::User } else { EndedBy::Plan };
    manifest.ended_by = Some(ended_by.unwrap_or(otherwise));
    manifest.records = Some(unwritten.written);
    manifest.lost_records = sent.ended.lost + unwritten.lost;
    manifest.workload.cut_requests = sent.ended.cut_requests;
    manifest.workload.notes.extend(sent.notes);
    manifest.workload.ended_early = sent.ended_early;
    if manifest.workload.ended_early {
        let note = "the workload ended before the run: no requests were left to send";
        manifest.workload.notes.push(note.to_owned());
    }
    if let Some(error) = &unwritten.error {
        observer.warn(format!("part of the request log could not be written: {error}"));
    }
    let frames = unwritten.frames;
    folder.keep_unwritten(unwritten, unwritten_samples);
    let summary = saved::summarize_run(&folder, plan, &manifest, frames)?;
    // A full disk must not swallow the numbers: they are printed all the same.
    for outcome in [folder.write_manifest(&manifest), folder.write_summary(&summary)] {
        if let Err(error) = outcome {
            observer.warn(error.to_string());
        }
    }
    Ok(summary)
}

/// Whether the load would have gone on after all sessions of a workload that ends, of which this client
/// has sent that number of requests.
fn has_ended_early(load: &Load, shard: Shard, sent: u64, workload: &Workload) -> bool {
    let own = shard.shard_load(load);
    let warmup = match own.warmup {
        LoadExtent::Requests(requests) => requests,
        LoadExtent::Time(_) | LoadExtent::Auto => 0,
    };
    let is_closed = matches!(load.mode, Mode::Closed { .. });
    match own.num_requests {
        // The users of this client alone; else the sessions of all count, by their number.
        Some(asked) if is_closed || !shard.is_part() => sent < asked.saturating_add(warmup),
        Some(asked) => {
            let all = (0..workload.session_count().unwrap_or(0))
                .filter_map(|it| workload.request_count(it));
            all.sum::<u64>() < asked.saturating_add(warmup)
        }
        None => load.duration.is_some(),
    }
}

/// A closed loop, a cap or a burst says how many connections it takes.
fn check_connections(plan: &Plan, lab: &Lab) -> Result<(), Failed> {
    let limit = lab.fd_limit;
    let wanted = match plan.load.mode {
        Mode::Closed { concurrency, .. } => u64::from(concurrency),
        Mode::Open { rate: Rate::Infinite, .. } if plan.load.mode.most_in_flight().is_none() => {
            plan.load.num_requests.unwrap_or(0)
        }
        _ => plan.load.mode.most_in_flight().map_or(0, u64::from),
    };
    let wanted = lab.shard.share_of(wanted);
    // The engine inside the process holds the other end of every connection.
    let ends = if plan.target.url.starts_with("mock") { 2 } else { 1 };
    if wanted.saturating_mul(ends) <= limit.connections() {
        return Ok(());
    }
    Err(Failed::usage(format!("{wanted} connections exceed the limit of {} open files", limit.0))
        .hint("raise the limit with `ulimit -n`, or lower --concurrency or --max-concurrency"))
}

fn begin_manifest(
    plan: &Plan,
    ready: &Ready,
    workload: &Workload,
    lab: &Lab,
    context: &RunContext,
) -> Manifest {
    let calibration = plan.workload.calibration.as_ref();
    Manifest {
        schema: Manifest::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: lab.build.clone(),
        state: State::Running,
        started: host::timestamp(),
        ended: None,
        stopped_s: None,
        ended_by: None,
        command: lab.redacted_command(),
        repeat: context.repeat,
        shard: context.shard.clone(),
        shards: Vec::new(),
        host: goodput_record::Host {
            name: context.shard.as_ref().map(|_| host::host_name()),
            ..host::host_facts(lab.fd_limit.0)
        },
        target: TargetFacts {
            url: ready.shown.clone(),
            route: ready.endpoint.route().to_owned(),
            address: ready
                .endpoint
                .addresses()
                .first()
                .map_or_else(String::new, ToString::to_string),
            model: ready.model.clone(),
            probe_ms: ready.probe.map(Nanos::as_ms),
            lookup: Some(ready.endpoint.lookup()),
        },
        clocks: host::read_clocks(),
        clocks_end: None,
        epoch_ns: None,
        trace_nonce: None,
        ceiling: calibrate::known_ceiling(plan, &*lab.observer),
        records: None,
        lost_records: 0,
        workload: WorkloadFacts {
            hash: workload.hash(),
            notes: workload.notes().to_vec(),
            calibration: calibration.map(|found| found.source.name().to_owned()),
            cut_requests: 0,
            cache_counters: None,
            ended_early: false,
        },
        system: SystemFacts {
            found: system::server_facts(plan, ready),
            said: plan.system.clone(),
            profiled: lab.hooks.profile,
            ..SystemFacts::default()
        },
    }
}

/// Of the token events of a simulated engine, this many may leave late.
const TOO_LATE: f64 = 0.01;

/// Warns, once for all runs, when the simulated engine is behind with the events since `seen`; returns what has been seen
/// now.
pub fn warn_if_late(mock: &MockServer, seen: (u64, u64), observer: &dyn Observer) -> (u64, u64) {
    let present = (mock.tally().events(), mock.tally().late_events());
    let (events, late) = (present.0 - seen.0, present.1 - seen.1);
    if mock.has_delays() && late as f64 > events as f64 * TOO_LATE {
        observer.note_once(
            "warning: the mock cannot keep up on this machine: more than 1 % of its token events are \
             over 1 ms late, and latencies include that; stop other programs or lower the load",
        );
    }
    present
}
