//! `goodput run`: one load level, measured, recorded, reported.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use goodput_engine::{Control, Ended, Live, Run, Sink, Snapshot};
use goodput_model::{
    Beat, CanaryReading, Extent, Load, Mode, Nanos, Plan, Rate, RequestRecord, Sample, Verdict,
};
use goodput_observe::Host;
use goodput_record::{
    FolderError, Logs, Manifest, RunFolder, Spool, Spooled, State, TargetFacts, WorkloadFacts,
};
use goodput_stats::{SloState, Summary};
use goodput_workload::Workload;

use crate::args::RunArgs;
use crate::error::{Failed, exit};
use crate::hub::Hub;
use crate::judge::Judge;
use crate::materials::{self, Materials};
use crate::progress::Progress;
use crate::readiness::{self, Ready};
use crate::{calibrate, canary, host, mock, output, plan, report, signals, vocabulary, workload};

/// Runs the verb.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failed> {
    let quiet = args.output.quiet;
    let mut plan = plan::resolve(args)?;
    let hub = Hub::new(quiet);
    let setting = materials::setting(&plan.load);
    let materials = Materials::gather(&mut plan.workload, setting, &hub)?;
    if args.output.dry_run {
        return workload::dry_run(&mut plan, materials, args.output.json);
    }
    let fd_limit = goodput_engine::raise_fd_limit();
    check_connections(&plan, fd_limit)?;
    let ready = readiness::wait(&mut plan, quiet)?;
    let may_ask = !args.workload.no_length_check;
    vocabulary::settle(&mut plan, &ready, materials.tokenizer.as_ref(), (may_ask, quiet))?;
    readiness::reset_cache(&plan, &ready)?;
    let tokenizer = materials.tokenizer.clone();
    let workload = materials.workload(&plan.workload)?;
    let judge = Judge::new(&plan, &workload, tokenizer.as_ref(), &hub)?;
    plan::check_workload(&plan, &workload)?;
    let mut manifest = manifest(&plan, &ready, &workload, fd_limit.0);
    let path = folder_path(args, &plan);
    let (folder, logs) =
        RunFolder::create(&path, &plan, &manifest).map_err(|error| folder_failed(&error))?;
    let answers =
        judge.is_some().then(|| Spool::new(&path)).transpose().map_err(|error| {
            Failed::usage(format!("cannot write to `{}`: {error}", path.display()))
        })?;
    let texts = plan.workload.save_text.then(|| path.clone());
    let recorder = Recorder { logs, host: Host::new(), texts, answers };
    let cache_before = readiness::prefix_cache(&plan, &ready);
    let mut sent = send(&plan, &ready, workload, recorder, quiet)?;
    let cache_after = cache_before.and_then(|_| readiness::prefix_cache(&plan, &ready));
    manifest.workload.cache_counters = cache_after
        .zip(cache_before)
        .and_then(|(after, before)| after.since(before))
        .map(|seen| (seen.queries, seen.hits));
    if let (Some(judge), Some(answers)) = (judge, sent.ended.sink.answers.take()) {
        // The run is over: its numbers must not be lost with its judgements.
        if let Err(failed) = judge.judge(answers, &path, quiet) {
            output::note(&format!("warning: {failed}"));
        }
    }
    let summary = conclude(&plan, folder, manifest, sent)?;
    show(args, &summary, &path)?;
    if let Some(mock) = &ready.mock {
        mock::warn_if_late(mock);
    }
    Ok(ExitCode::from(code(&summary)))
}

/// How sending ended.
struct Sent {
    ended: Ended<Recorder>,
    interrupted: bool,
    /// Requests that were let go.
    requests: u64,
    /// The workload had no more sessions.
    is_exhausted: bool,
    /// What came of the workload that could not be known beforehand.
    notes: Vec<String>,
}

/// Sends the load.
fn send(
    plan: &Plan,
    ready: &Ready,
    workload: Workload,
    recorder: Recorder,
    quiet: bool,
) -> Result<Sent, Failed> {
    let internal = |error: &dyn std::fmt::Display| Failed::internal(error.to_string());
    let control = Control::new();
    let interrupted = signals::listen(control.clone()).map_err(|error| internal(&error))?;
    let live = Arc::new(Live::default());
    let kept = workload.clone();
    let (_server, canary) = plan.measure.canary.then(canary::start).and_then(started).unzip();
    let run = Run {
        load: plan.load.clone(),
        timeout: plan.target.timeout,
        workload: Box::new(workload),
        dialect: ready.dialect.clone(),
        endpoint: Arc::clone(&ready.endpoint),
        connections: plan.target.connections,
        keep_text: plan.workload.save_text,
        keep_answers: recorder.answers.is_some(),
        session_header: plan::session_header(&plan.workload)?,
        pacing: host::pacing(),
        canary,
        pin_to: if plan.load.pin { goodput_clock::allowed_cpus() } else { Vec::new() },
    };
    let _progress = Progress::start(&live, quiet);
    let ended =
        goodput_engine::run(run, &control, &live, recorder).map_err(|error| internal(&error))?;
    let Snapshot { sessions, started: requests, .. } = live.snapshot();
    let is_exhausted = kept.sessions().is_some_and(|all| sessions >= all);
    let notes = kept.repeats(sessions);
    Ok(Sent { ended, interrupted: interrupted.is_set(), requests, is_exhausted, notes })
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
    let Recorder { logs, .. } = sent.ended.sink;
    let (unwritten, unwritten_samples) = (logs.requests.finish(), logs.samples.finish());
    manifest.state = if sent.interrupted { State::Interrupted } else { State::Complete };
    manifest.ended = Some(host::timestamp());
    manifest.clocks_end = Some(host::clocks());
    manifest.lost_records = sent.ended.lost + unwritten.lost;
    manifest.workload.cut_requests = sent.ended.cut_requests;
    manifest.workload.notes.extend(sent.notes);
    manifest.workload.ended_early = sent.is_exhausted && wants_more(&plan.load, sent.requests);
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

/// Whether the load would have gone on after so many requests.
fn wants_more(load: &Load, sent: u64) -> bool {
    let warmup = match load.warmup {
        Extent::Requests(requests) => requests,
        Extent::Time(_) | Extent::Auto => 0,
    };
    match load.num_requests {
        Some(asked) => sent < asked.saturating_add(warmup),
        None => load.duration.is_some(),
    }
}

/// Writes records as they come.
struct Recorder {
    logs: Logs,
    host: Host,
    /// The run folder, when texts are kept.
    texts: Option<PathBuf>,
    /// Answers to be judged after the run.
    answers: Option<Spool>,
}

impl Sink for Recorder {
    fn record(&mut self, record: RequestRecord) {
        self.logs.requests.append(&record);
        if let Some(path) = &self.texts
            && let Err(error) = RunFolder::append_text(path, &record)
        {
            output::note(&format!("warning: {error}; texts are no longer kept"));
            self.texts = None;
        }
        if let (Some(answers), Some(text)) = (&mut self.answers, record.exchange.text) {
            let class = record.planned.class.to_string();
            let (index, constraint) = (record.index, record.planned.constraint);
            answers.push(Spooled { index, class, constraint, text });
        }
    }

    fn observe(&mut self, at: Nanos, beats: Vec<Beat>, canary: Vec<CanaryReading>) {
        self.logs.samples.append(&Sample { at, host: self.host.sample(), beats, canary });
    }

    fn flush(&mut self) {
        self.logs.requests.flush();
        self.logs.samples.flush();
    }
}

/// A closed loop, a cap or a burst says how many connections it takes.
fn check_connections(plan: &Plan, limit: goodput_engine::FdLimit) -> Result<(), Failed> {
    let wanted = match plan.load.mode {
        Mode::Closed { concurrency, .. } => u64::from(concurrency),
        Mode::Open { rate: Rate::Infinite, .. } if plan.load.mode.cap().is_none() => {
            plan.load.num_requests.unwrap_or(0)
        }
        _ => plan.load.mode.cap().map_or(0, u64::from),
    };
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

fn manifest(plan: &Plan, ready: &Ready, workload: &Workload, fd_limit: u64) -> Manifest {
    let calibration = plan.workload.calibration.as_ref();
    Manifest {
        schema: Manifest::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        state: State::Running,
        started: host::timestamp(),
        ended: None,
        host: host::facts(fd_limit),
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
        ceiling: calibrate::ceiling(plan),
        lost_records: 0,
        workload: WorkloadFacts {
            hash: workload.hash(),
            notes: workload.notes().to_vec(),
            calibration: calibration.map(|found| found.source.name().to_owned()),
            cut_requests: 0,
            cache_counters: None,
            ended_early: false,
        },
    }
}

/// `--out`, or a name under `runs/` that is still free.
fn folder_path(args: &RunArgs, plan: &Plan) -> PathBuf {
    if let Some(out) = &args.output.out {
        return out.clone();
    }
    let name = format!("{}-{}-run", host::timestamp().replace(':', "-"), plan.workload.name);
    let first = Path::new("runs").join(&name);
    let mut others = (2..1000).map(|n| Path::new("runs").join(format!("{name}-{n}")));
    if first.exists() { others.find(|path| !path.exists()).unwrap_or(first) } else { first }
}

fn folder_failed(error: &FolderError) -> Failed {
    let failed = Failed::usage(error.to_string());
    match error {
        FolderError::Occupied(_) => failed.hint("name a new folder with --out"),
        _ => failed.hint("--out names another folder"),
    }
}

fn show(args: &RunArgs, summary: &Summary, path: &Path) -> Result<(), Failed> {
    if args.output.json {
        output::data(report::json(summary).as_bytes())?;
    } else if !args.output.quiet {
        output::data(goodput_report::text(summary).as_bytes())?;
    }
    if !args.output.quiet {
        output::note(&format!(
            "\nrun folder: {}",
            goodput_report::plain(&path.display().to_string())
        ));
    }
    Ok(())
}

fn code(summary: &Summary) -> u8 {
    if summary.run.state == goodput_stats::RunState::Interrupted {
        exit::INTERRUPTED
    } else if summary.requests.scheduled > 0 && summary.requests.ok == 0 {
        exit::TARGET
    } else if summary.verdict == Verdict::Void {
        exit::VOID
    } else {
        match summary.slo.as_ref().map(|slo| slo.state) {
            Some(SloState::Missed) => exit::MISSED,
            Some(SloState::Undecided) => exit::VOID,
            Some(SloState::Met | SloState::Reported) | None => exit::OK,
        }
    }
}
