//! One run of a plan: everything ready, the load sent, the record closed and turned into numbers.

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use goodput_engine::{Begin, Ended, Run, Sink, Snapshot};
use goodput_model::{
    ClockOffset, EndedBy, Extent, GpuPlan, Load, Mode, Nanos, Plan, Rate, Shard, SystemFacts,
    Tracer,
};
use goodput_observe::Host;
use goodput_record::{Manifest, RunFolder, Spool, State, TargetFacts, TextWriter, WorkloadFacts};
use goodput_stats::Summary;
use goodput_workload::Workload;

use super::recorder::{Recorder, Watcher};
use super::{Common, Hands, Place, Setup, folder_failed};
use crate::beside::{self, Around};
use crate::error::Failed;
use crate::listen::Facts;
use crate::observe::Observer;
use crate::progress::ProgressLine;
use crate::{calibrate, mock, output, plan, report, workload};
use goodput_lab::hub::Hub;
use goodput_lab::judge::Judge;
use goodput_lab::materials::{self, Materials};
use goodput_lab::readiness::{self, Ready};
use goodput_lab::vocabulary::Questions;
use goodput_lab::{canary, host, system, vocabulary};

/// `--dry-run`: everything but the run.
pub(crate) fn dry_run(mut plan: Plan, hub: &Hub, json: bool) -> Result<ExitCode, Failed> {
    let materials = gather(&mut plan, hub)?;
    workload::dry_run(&mut plan, materials, json)
}

fn gather(plan: &mut Plan, hub: &Hub) -> Result<Materials, Failed> {
    let setting = materials::setting(&plan.load);
    Materials::gather(&mut plan.workload, setting, hub)
}

/// A run that can begin: its target answers, and its workload is there.
pub(crate) struct Prepared {
    /// With everything settled that it left open.
    pub(crate) plan: Plan,
    pub(crate) ready: Arc<Ready>,
    workload: Workload,
    judge: Option<Judge>,
}

/// Gathers what the plan needs and waits for its target.
pub(crate) fn prepare(setup: &Setup, mut plan: Plan) -> Result<Prepared, Failed> {
    let materials = gather(&mut plan, &setup.hub)?;
    check_connections(&plan, setup)?;
    let stopped = || setup.signals.is_interrupted().then(vocabulary::stopped);
    let ready = Arc::new(readiness::wait_unless(&mut plan, &*setup.observer, &stopped)?);
    settle(setup, plan, materials, ready)
}

/// The same on a target that is ready already.
pub(crate) fn prepare_on(
    setup: &Setup,
    mut plan: Plan,
    ready: Arc<Ready>,
) -> Result<Prepared, Failed> {
    let materials = gather(&mut plan, &setup.hub)?;
    check_connections(&plan, setup)?;
    settle(setup, plan, materials, ready)
}

fn settle(
    setup: &Setup,
    mut plan: Plan,
    materials: Materials,
    ready: Arc<Ready>,
) -> Result<Prepared, Failed> {
    let questions = Questions {
        are_allowed: setup.may_ask,
        is_stopped: &|| setup.signals.is_interrupted(),
        observer: &*setup.observer,
    };
    vocabulary::settle(&mut plan, &ready, materials.tokenizer.as_ref(), &questions)?;
    if !setup.is_led {
        readiness::reset_cache(&plan, &ready)?;
    }
    let tokenizer = materials.tokenizer.clone();
    let workload = materials.workload(&plan.workload)?;
    let judge = Judge::new(&plan, &workload, tokenizer.as_ref(), &setup.hub)?;
    plan::check_workload(&plan, &workload)?;
    Ok(Prepared { plan, ready, workload, judge })
}

impl Prepared {
    /// Hash of everything that will be sent.
    pub(crate) fn workload_hash(&self) -> String {
        self.workload.hash()
    }

    /// Sends the load, records it in a folder at `path`, and turns it into numbers: alone, or with the
    /// other clients.
    pub(crate) fn measure(
        self,
        setup: &Setup,
        path: &Path,
        place: &Place,
    ) -> Result<Summary, Failed> {
        match &setup.fleet {
            Some(fleet) => fleet.measure(self, setup, path, place),
            None => self.measure_here(setup, path, place),
        }
    }

    /// What this client sends of it.
    pub(crate) fn measure_here(
        self,
        setup: &Setup,
        path: &Path,
        place: &Place,
    ) -> Result<Summary, Failed> {
        let Self { plan, ready, workload, judge } = self;
        let mut manifest = manifest(&plan, &ready, &workload, setup, place);
        let tracer = beside::tracer(&plan, &mut manifest);
        let (mut folder, logs) =
            RunFolder::create(path, &plan, &manifest).map_err(|error| folder_failed(&error))?;
        let answers = judge.is_some().then(|| Spool::new(path)).transpose().map_err(|error| {
            Failed::usage(format!("cannot write to `{}`: {error}", path.display()))
        })?;
        let texts = texts(&plan, &mut folder)?;
        let hands = place.hands.clone().unwrap_or_default();
        let seen = seen_by(&plan, setup);
        let watcher = Watcher::new(&seen, &hands);
        let (Hands { clock, told, .. }, control) = (hands, watcher.control.clone());
        // Until the report is written a signal stops the run, not the process.
        let _listening = setup
            .signals
            .watch(&watcher.control)
            .map_err(|error| Failed::internal(error.to_string()))?;
        let around = Around::new(setup, (&plan, &ready), path, place);
        around.before()?;
        let observer = around.or_after(Observer::start(&seen, &ready, setup))?;
        observer.describe(&mut manifest.system);
        // Of a run that is killed, what is known; a disk that is full shows soon enough.
        let _ = folder.write_manifest(&manifest);
        let shown = setup.listen.as_ref().map(|listen| {
            let facts = Facts::new(&plan, &ready, (path, &place.label));
            listen.follow(facts, &watcher.live, &watcher.control)
        });
        let screen = setup.progress.screen().filter(|_| !place.is_silent).and_then(|screen| {
            let Watcher { live, board, control, .. } = &watcher;
            screen.follow((&plan, &ready), place, (live, board, control))
        });
        let (host, looks) = (Host::new(), observer.looks());
        let recorder = Recorder {
            logs,
            host,
            texts,
            answers,
            watcher,
            looks,
            shown,
            screen,
            told,
            epoch: None,
        };
        around.start()?;
        let begin = place.begin.clone().map(|begin| noted(begin, path, &manifest, &clock));
        let sent = send(setup, &plan, &ready, (workload, place, tracer, begin), recorder);
        manifest.ended = Some(host::timestamp());
        // The last look first: what follows may stop the server.
        let observer = observer.finish(&plan, control.was_told_to_abort());
        let sent = sent.map(|mut sent| {
            sent.ended.sink.look_last();
            (sent.ended.sink.shown, sent.ended.sink.screen) = (None, None);
            sent
        });
        around.end();
        let mut sent = sent?;
        observer.describe(&mut manifest.system);
        began(&mut manifest, sent.ended.epoch, &clock);
        manifest.workload.cache_counters = observer.cache_counters();
        keep_open(&mut sent.ended.sink, &mut folder, (&plan, &manifest));
        // The run is over: its numbers must not be lost with its judgements.
        if let Some((judge, answers)) = judge.zip(sent.ended.sink.answers.take()) {
            judge.judge(answers, path, &*setup.observer).unwrap_or_else(|failed| {
                output::note(&format!("warning: {failed}"));
            });
        }
        let summary = conclude(&plan, folder, manifest, sent)?;
        around.export();
        if let Some(mock) = ready.mock.as_ref().filter(|_| !setup.quiet) {
            mock::warn_if_late(mock);
        }
        Ok(summary)
    }
}

/// The file for prompts and answers, where they are kept.
fn texts(plan: &Plan, folder: &mut RunFolder) -> Result<Option<TextWriter>, Failed> {
    let texts = plan.workload.save_text.then(|| folder.create_texts());
    texts.transpose().map_err(|error| folder_failed(&error))
}

/// A folder that was removed meanwhile is written anew, from the logs that are still open.
fn keep_open(sink: &mut Recorder, folder: &mut RunFolder, (plan, manifest): (&Plan, &Manifest)) {
    sink.flush();
    if folder.is_there() {
        return;
    }
    let gone = format!("warning: `{}` was removed during the run", folder.path().display());
    let gone = goodput_report::plain(&gone);
    match folder.restore(plan, manifest) {
        Ok(()) => output::note(&format!("{gone}: it is written anew, from the log that is open")),
        Err(error) => output::note(&format!(
            "{gone}, and cannot be written anew: {}; the figures below are kept nowhere else",
            goodput_report::plain(&error.to_string())
        )),
    }
}

/// What is looked at beside the load. A client that is led does not end a run by itself, and leaves the
/// server to the one that leads.
fn seen_by(plan: &Plan, setup: &Setup) -> Plan {
    let mut plan = plan.clone();
    if setup.is_led {
        (plan.measure.until, plan.measure.stop_early) = (None, None);
        (plan.observe.metrics, plan.observe.gpu) = (false, GpuPlan::Off);
        plan.observe.gpu_idle = Duration::ZERO;
    }
    plan
}

/// A common start that is on disk before the first request: a client that is killed leaves behind when
/// it began.
fn noted(
    Common(begin): Common,
    path: &Path,
    manifest: &Manifest,
    clock: &Arc<OnceLock<ClockOffset>>,
) -> Begin {
    let (path, mut manifest, clock) = (path.to_owned(), manifest.clone(), Arc::clone(clock));
    Box::new(move || {
        let at = begin();
        began(&mut manifest, Some(at), &clock);
        // A disk that is full shows soon enough.
        let _ = RunFolder::open(&path).map(|folder| folder.write_manifest(&manifest));
        at
    })
}

/// Notes when a run began, on clocks that differ from those of who leads by so much.
fn began(manifest: &mut Manifest, epoch: Option<Nanos>, clock: &OnceLock<ClockOffset>) {
    manifest.epoch_ns = epoch.map(|epoch| epoch.0);
    if let (Some(shard), Some(clock)) = (&mut manifest.shard, clock.get()) {
        shard.clock = Some(*clock);
    }
}

/// How sending ended.
struct Sent {
    ended: Ended<Recorder>,
    interrupted: bool,
    /// The workload had no more sessions, and the load would have gone on.
    ended_early: bool,
    /// What came of the workload that could not be known beforehand.
    notes: Vec<String>,
}

/// Sends the load.
fn send(
    setup: &Setup,
    plan: &Plan,
    ready: &Ready,
    (workload, place, tracer, begin): (Workload, &Place, Option<Tracer>, Option<Begin>),
    recorder: Recorder,
) -> Result<Sent, Failed> {
    let internal = |error: &dyn std::fmt::Display| Failed::internal(error.to_string());
    let Watcher { control, live, board, .. } = &recorder.watcher;
    let (control, live, board) = (control.clone(), Arc::clone(live), board.clone());
    let kept = workload.clone();
    let (_server, canary) = plan.measure.canary.then(canary::start).and_then(started).unzip();
    let run = Run {
        load: plan.load.clone(),
        shard: place.shard.as_ref().map_or(Shard::WHOLE, |facts| facts.shard),
        begin,
        timeout: plan.target.timeout,
        workload: Box::new(workload),
        dialect: ready.dialect.clone(),
        endpoint: Arc::clone(&ready.endpoint),
        connections: plan.target.connections,
        keep_text: plan.workload.save_text,
        keep_answers: recorder.answers.is_some(),
        hash_bodies: plan.measure.hash_bodies,
        session_header: plan::session_header(&plan.workload)?,
        tracer,
        pacing: host::pacing(),
        canary,
        pin_to: if plan.load.pin { goodput_clock::allowed_cpus() } else { Vec::new() },
    };
    let is_shown = !place.is_silent && recorder.screen.is_none();
    let _progress = is_shown.then(|| {
        ProgressLine::start((&live, board), (&plan.load, &control), &place.label, &setup.progress)
    });
    if let Some(start) = &place.start {
        start.wait();
    }
    let ended =
        goodput_engine::run(run, &control, &live, recorder).map_err(|error| internal(&error))?;
    let Snapshot { sessions, started: requests, .. } = live.snapshot();
    let shard = place.shard.as_ref().map_or(Shard::WHOLE, |facts| facts.shard);
    let is_exhausted =
        kept.sessions().is_some_and(|all| sessions >= own_sessions(&kept, all, shard));
    // Of all clients, about: each sends its turn.
    let notes = kept.repeats(sessions.saturating_mul(u64::from(shard.of())));
    let ended_early = is_exhausted && wants_more(&plan.load, shard, (requests, &kept));
    let interrupted = setup.signals.is_interrupted();
    Ok(Sent { ended, interrupted, ended_early, notes })
}

/// Sessions of so many that this client sends.
fn own_sessions(workload: &Workload, all: u64, shard: Shard) -> u64 {
    if !shard.is_part() {
        return all;
    }
    (0..all).filter(|number| shard.takes(workload.turn(*number))).count() as u64
}

/// A run goes on without its canary, and says so.
fn started<T>(outcome: std::io::Result<T>) -> Option<T> {
    outcome.map_err(|error| output::note(&format!("warning: no canary: {error}"))).ok()
}

/// Closes the record and turns it into numbers.
fn conclude(
    plan: &Plan,
    mut folder: RunFolder,
    mut manifest: Manifest,
    sent: Sent,
) -> Result<Summary, Failed> {
    // To the microsecond: a number that reads back from its file as it was written.
    let stopped = sent.ended.stopped.map(|at| (at.0 / 1_000) as f64 / 1e6);
    let Recorder { logs, watcher, .. } = sent.ended.sink;
    let (unwritten, unwritten_samples) = (logs.requests.finish(), logs.samples.finish());
    manifest.state = if sent.interrupted { State::Interrupted } else { State::Complete };
    manifest.clocks_end = Some(host::clocks());
    manifest.stopped_s = stopped;
    let otherwise = if stopped.is_some() { EndedBy::User } else { EndedBy::Plan };
    manifest.ended_by = Some(watcher.ended_by.unwrap_or(otherwise));
    manifest.records = Some(unwritten.written);
    manifest.lost_records = sent.ended.lost + unwritten.lost;
    manifest.workload.cut_requests = sent.ended.cut_requests;
    manifest.workload.notes.extend(sent.notes);
    manifest.workload.ended_early = sent.ended_early;
    if manifest.workload.ended_early {
        let note = "the workload ended before the run did: there was nothing more to send";
        manifest.workload.notes.push(note.to_owned());
    }
    if let Some(error) = &unwritten.error {
        output::note(&format!("warning: the disk refused part of the record: {error}"));
    }
    let frames = unwritten.frames;
    folder.keep_unwritten(unwritten, unwritten_samples);
    let summary = report::summarise(&folder, plan, &manifest, frames)?;
    // A full disk must not swallow the numbers: they are printed all the same.
    for outcome in [folder.write_manifest(&manifest), folder.write_summary(&summary)] {
        if let Err(error) = outcome {
            output::note(&format!("warning: {error}"));
        }
    }
    Ok(summary)
}

/// Whether the load would have gone on after all sessions of a workload that ends, of which this client
/// has sent so many requests.
fn wants_more(load: &Load, shard: Shard, (sent, workload): (u64, &Workload)) -> bool {
    let own = shard.of_load(load);
    let warmup = match own.warmup {
        Extent::Requests(requests) => requests,
        Extent::Time(_) | Extent::Auto => 0,
    };
    let is_closed = matches!(load.mode, Mode::Closed { .. });
    match own.num_requests {
        // The users of this client alone; else the sessions of all count, by their number.
        Some(asked) if is_closed || !shard.is_part() => sent < asked.saturating_add(warmup),
        Some(asked) => {
            let all = (0..workload.sessions().unwrap_or(0)).filter_map(|it| workload.requests(it));
            all.sum::<u64>() < asked.saturating_add(warmup)
        }
        None => load.duration.is_some(),
    }
}

/// A closed loop, a cap or a burst says how many connections it takes.
fn check_connections(plan: &Plan, setup: &Setup) -> Result<(), Failed> {
    let limit = setup.fd_limit;
    let wanted = match plan.load.mode {
        Mode::Closed { concurrency, .. } => u64::from(concurrency),
        Mode::Open { rate: Rate::Infinite, .. } if plan.load.mode.cap().is_none() => {
            plan.load.num_requests.unwrap_or(0)
        }
        _ => plan.load.mode.cap().map_or(0, u64::from),
    };
    let wanted = setup.shard.share(wanted);
    // The engine inside the process holds the other end of every connection.
    let ends = if plan.target.url.starts_with("mock") { 2 } else { 1 };
    if wanted.saturating_mul(ends) <= limit.connections() {
        return Ok(());
    }
    Err(Failed::usage(format!(
        "{wanted} connections do not fit below the limit of {} open files",
        limit.0
    ))
    .hint("raise it with `ulimit -n`, or ask for fewer at once (--concurrency, --max-concurrency)"))
}

fn manifest(
    plan: &Plan,
    ready: &Ready,
    workload: &Workload,
    setup: &Setup,
    place: &Place,
) -> Manifest {
    let calibration = plan.workload.calibration.as_ref();
    Manifest {
        schema: Manifest::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        state: State::Running,
        started: host::timestamp(),
        ended: None,
        stopped_s: None,
        ended_by: None,
        repeat: place.repeat,
        shard: place.shard.clone(),
        shards: Vec::new(),
        host: goodput_record::Host {
            name: place.shard.as_ref().map(|_| host::name()),
            ..host::facts(setup.fd_limit.0)
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
        },
        clocks: host::clocks(),
        clocks_end: None,
        epoch_ns: None,
        trace_nonce: None,
        ceiling: calibrate::ceiling(plan),
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
            found: system::facts(plan, ready),
            said: plan.system.clone(),
            profiled: setup.beside.profile,
            ..SystemFacts::default()
        },
    }
}
