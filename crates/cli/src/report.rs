//! `goodput report`: the numbers of a saved run, computed anew from its log.

use std::path::Path;
use std::process::ExitCode;

use goodput_model::Plan;
use goodput_record::{FolderError, Manifest, RunFolder, SeriesFolder, State};
use goodput_stats::{RunFacts, RunState, Summary, analyse, repeats};
use serde::Serialize;

use crate::args::{Format, ReportArgs};
use crate::error::{Failed, exit};
use crate::sweep::{self, Saved};
use crate::{beside, compare, output};

/// Runs the verb.
pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failed> {
    let is_json = args.json || args.format == Format::Json;
    if !args.folder.exists() {
        return Err(Failed::usage(format!("`{}` does not exist", args.folder.display()))
            .hint("a report is of the folder that a run, a sweep or a comparison printed"));
    }
    // A run may lie in a folder with any name beside it; only one without a run of its own is several.
    let series =
        SeriesFolder::open(&args.folder).filter(|_| RunFolder::open(&args.folder).is_err());
    let page = if let Some(saved) = compare::read(&args.folder) {
        let comparison = saved?;
        match args.format {
            _ if is_json => json(&comparison),
            Format::Markdown => goodput_report::compare_markdown(&comparison),
            Format::Junit => goodput_report::compare_junit(&comparison),
            Format::Text | Format::Json => goodput_report::compare_text(&comparison),
        }
    } else if matches!(args.format, Format::Markdown | Format::Junit) {
        return Err(Failed::usage("only a comparison has a page of that kind")
            .hint("`--format text` and `--format json` go with every folder"));
    } else if let Some(saved) = sweep::read(&args.folder) {
        match saved? {
            Saved::One(summary) if is_json => json(&summary),
            Saved::One(summary) => goodput_report::sweep_text(&summary),
            Saved::Many(sweeps) if is_json => json(&sweeps),
            Saved::Many(sweeps) => goodput_report::sweeps_text(&sweeps),
        }
    } else if let Some(series) = series {
        let found = repeats(&read_all(&series));
        if is_json { json(&found) } else { goodput_report::repeats_text(&found) }
    } else {
        let summary = read(&args.folder)?;
        if is_json { json(&summary) } else { goodput_report::text(&summary) }
    };
    output::data(page.as_bytes())?;
    if let Some(to) = &args.traces {
        beside::export_saved(&args.folder, to)?;
    }
    Ok(ExitCode::from(exit::OK))
}

/// A saved run.
pub(crate) struct Read {
    pub(crate) plan: Plan,
    pub(crate) manifest: Manifest,
    pub(crate) summary: Summary,
}

/// The numbers of a saved run.
pub(crate) fn read(path: &Path) -> Result<Summary, Failed> {
    read_as(path, |_| Ok(())).map(|read| read.summary)
}

/// A saved run with its numbers, computed as if this had been asked of it.
pub(crate) fn read_as(
    path: &Path,
    ask: impl FnOnce(&mut Plan) -> Result<(), Failed>,
) -> Result<Read, Failed> {
    let unreadable = |error: FolderError| {
        Failed::usage(error.to_string())
            .hint("a run folder holds plan.toml, manifest.json and requests.log")
    };
    let folder = RunFolder::open(path).map_err(unreadable)?;
    let mut plan = folder.plan().map_err(unreadable)?;
    let manifest = folder.manifest().map_err(unreadable)?;
    ask(&mut plan)?;
    let summary = summarise(&folder, &plan, &manifest, 0)?;
    Ok(Read { plan, manifest, summary })
}

/// The numbers of several saved runs; what cannot be read is named and left out.
fn read_all(series: &SeriesFolder) -> Vec<Summary> {
    let runs = series.numbers().into_iter().map(|number| read(&series.run(number)));
    runs.filter_map(|run| {
        run.map_err(|failed| output::note(&format!("warning: left out: {failed}"))).ok()
    })
    .collect()
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
        system: manifest.system.clone(),
    };
    // Opened once already: a log that vanishes in between reads as empty.
    let samples: Vec<_> = folder.samples().collect();
    let records = || folder.records().into_iter().flatten();
    Ok(analyse(plan, facts, records, &samples, folder.judgements()))
}

/// A summary as its file has it.
pub(crate) fn json(summary: &impl Serialize) -> String {
    serde_json::to_string_pretty(summary).unwrap_or_default() + "\n"
}
