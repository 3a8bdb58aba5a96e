//! `goodput report`: the numbers of a saved run, computed anew from its log.

use std::process::ExitCode;

use goodput_model::Plan;
use goodput_record::{FolderError, Manifest, RunFolder, State};
use goodput_stats::{RunFacts, RunState, Summary, analyse};

use crate::args::{Format, ReportArgs};
use crate::error::{Failed, exit};
use crate::output;

/// Runs the verb.
pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failed> {
    let unreadable = |error: FolderError| {
        Failed::usage(error.to_string())
            .hint("a run folder holds plan.toml, manifest.json and requests.log")
    };
    let folder = RunFolder::open(&args.folder).map_err(unreadable)?;
    let plan = folder.plan().map_err(unreadable)?;
    let manifest = folder.manifest().map_err(unreadable)?;
    let summary = summarise(&folder, &plan, &manifest, 0)?;
    if args.json || args.format == Format::Json {
        output::data(json(&summary).as_bytes())?;
    } else {
        output::data(goodput_report::text(&summary).as_bytes())?;
    }
    Ok(ExitCode::from(exit::OK))
}

/// The numbers of a run: a function of its folder, and of what the disk refused to put there.
pub(crate) fn summarise(
    folder: &RunFolder,
    plan: &Plan,
    manifest: &Manifest,
    unwritten_records: u64,
) -> Result<Summary, Failed> {
    let unreadable = |error: FolderError| Failed::usage(error.to_string());
    let mut check = folder.records().map_err(unreadable)?;
    check.by_ref().for_each(drop);
    let facts = RunFacts {
        version: manifest.version.clone(),
        started: manifest.started.clone(),
        state: match manifest.state {
            State::Complete => RunState::Complete,
            State::Interrupted => RunState::Interrupted,
            State::Running => RunState::Unfinished,
        },
        target: manifest.target.url.clone(),
        model: manifest.target.model.clone(),
        api: plan.target.api.name().to_owned(),
        stream: plan.target.stream,
        workload: goodput_workload::describe(&plan.workload),
        seed: plan.load.seed,
        warmup: plan.load.warmup.to_string(),
        lost_records: manifest.lost_records,
        unwritten_records,
        log_damaged: check.is_damaged(),
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
        repeat: manifest.repeat,
    };
    // Opened once already: a log that vanishes in between reads as empty.
    let samples: Vec<_> = folder.samples().collect();
    let records = || folder.records().into_iter().flatten();
    Ok(analyse(plan, facts, records, &samples, folder.judgements()))
}

/// A summary as its file has it.
pub(crate) fn json(summary: &Summary) -> String {
    serde_json::to_string_pretty(summary).unwrap_or_default() + "\n"
}
