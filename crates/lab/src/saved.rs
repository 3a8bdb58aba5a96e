//! A saved run, and its numbers.

use std::cell::RefCell;
use std::path::Path;

use goodput_model::{Nanos, Phase, Plan, SloQuestion};
use goodput_record::{Damage, FolderError, LogReader, Manifest, RunFolder, SeriesFolder, State};
use goodput_stats::{RunFacts, RunState, Summary, analyze_with_facts};
use serde::Serialize;

use crate::error::Failed;
use crate::events::Observer;

/// A saved run.
pub struct SavedRun {
    /// What was asked.
    pub plan: Plan,
    /// The circumstances.
    pub manifest: Manifest,
    /// The numbers.
    pub summary: Summary,
}

/// The numbers of a saved run.
pub fn read_summary(path: &Path) -> Result<Summary, Failed> {
    read_summary_judged(path, &SloQuestion::default())
}

/// The numbers of a saved run, judged by this SLO.
pub fn read_summary_judged(path: &Path, slo: &SloQuestion) -> Result<Summary, Failed> {
    read_run_as(path, apply_slo(slo)).map(|read| read.summary)
}

/// Asks an SLO of a plan. A share of good requests without terms would judge nothing.
pub(crate) fn apply_slo(slo: &SloQuestion) -> impl FnOnce(&mut Plan) -> Result<(), Failed> {
    move |plan| {
        slo.apply_to(&mut plan.measure);
        if slo.is_empty() || plan.measure.slo.is_some() {
            return Ok(());
        }
        Err(Failed::usage("--attainment needs an SLO, and the saved result has none")
            .hint("add --slo 'ttft < 500ms, tpot < 50ms'"))
    }
}

/// A saved run with its numbers, computed as if this had been asked of it.
pub fn read_run_as(
    path: &Path,
    ask: impl FnOnce(&mut Plan) -> Result<(), Failed>,
) -> Result<SavedRun, Failed> {
    let folder = RunFolder::open(path).map_err(unreadable_error)?;
    let mut plan = folder.read_plan().map_err(unreadable_error)?;
    let manifest = folder.read_manifest().map_err(unreadable_error)?;
    ask(&mut plan)?;
    let summary = summarize_run(&folder, &plan, &manifest, 0)?;
    Ok(SavedRun { plan, manifest, summary })
}

/// Why the folder of a run cannot be read, with what to do about it.
#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
pub(crate) fn unreadable_error(error: FolderError) -> Failed {
    let failed = Failed::usage(error.to_string());
    match error {
        FolderError::Unfinished(_) => failed.hint("run `goodput merge` again with the same --out"),
        _ => failed.hint("a run folder holds plan.toml, manifest.json, and requests.log"),
    }
}

/// The numbers of several saved runs; what cannot be read is named and left out.
pub fn read_series(
    series: &SeriesFolder,
    slo: &SloQuestion,
    observer: &dyn Observer,
) -> Vec<Summary> {
    let numbers = series.run_numbers().into_iter();
    let runs = numbers.map(|number| read_summary_judged(&series.run_path(number), slo));
    runs.filter_map(|run| run.map_err(|failed| observer.warn(format!("left out: {failed}"))).ok())
        .collect()
}

/// The numbers of a run: a function of its folder, and of what the disk refused to put there.
pub fn summarize_run(
    folder: &RunFolder,
    plan: &Plan,
    manifest: &Manifest,
    unwritten_records: u64,
) -> Result<Summary, Failed> {
    let unreadable = |error: FolderError| Failed::usage(error.to_string());
    folder.read_records().map_err(unreadable)?;
    let damages = RefCell::new(Vec::<Damage>::new());
    let facts = || RunFacts {
        version: manifest.version.clone(),
        started: manifest.started.clone(),
        state: match manifest.state {
            State::Complete => RunState::Complete,
            State::Interrupted => RunState::Interrupted,
            State::Running => RunState::Unfinished,
        },
        target: manifest.target.url.clone(),
        lookup: manifest.target.lookup,
        model: manifest.target.model.clone(),
        api: plan.target.api.name().to_owned(),
        stream: plan.target.stream,
        workload: goodput_workload::describe_workload(&plan.workload),
        seed: plan.load.seed,
        warmup: plan.load.warmup.to_string(),
        lost_records: manifest.lost_records,
        unwritten_records,
        log_damaged: damages.borrow().iter().any(Damage::is_found),
        ceiling: manifest.ceiling,
        workload_hash: manifest.workload.hash.clone(),
        notes: manifest.workload.notes.clone(),
        calibration: manifest.workload.calibration.clone(),
        cut_requests: manifest.workload.cut_requests,
        cache_counters: manifest.workload.cache_counters,
        workload_ended: manifest.workload.ended_early,
        clock_step_ms: manifest.clock_step_ms(),
        stopped_s: manifest.stopped_s,
        ended_by: manifest.ended_by,
        command: manifest.command.clone(),
        repeat: manifest.repeat,
        shard: manifest.shard.clone(),
        shards: manifest.shards.clone(),
        system: manifest.system.clone(),
    };
    // Opened once already: a log that vanishes in between reads as empty.
    let samples: Vec<_> = folder.read_samples().collect();
    // Of several clients some may have gone on when the others had stopped: that is another load.
    let over = manifest.stopped_s.filter(|_| !manifest.shards.is_empty());
    let over = over.map_or(Nanos(u64::MAX), Nanos::from_secs_f64);
    let records = || {
        let log = folder.read_records().ok();
        damages.borrow_mut().extend(log.as_ref().map(LogReader::damage));
        log.into_iter().flat_map(LogReader::read_ahead).map(move |mut record| {
            if record.scheduled > over {
                record.phase = Phase::Cooldown;
            }
            record
        })
    };
    Ok(analyze_with_facts(plan, facts, records, &samples, folder.read_judgements()))
}

/// A summary as its file has it.
pub fn to_json(summary: &impl Serialize) -> String {
    serde_json::to_string_pretty(summary).unwrap_or_default() + "\n"
}
