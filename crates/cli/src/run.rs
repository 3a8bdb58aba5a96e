//! `goodput run`: one load level, measured once or several times, recorded, reported.

mod once;
mod recorder;
mod series;

pub(crate) use once::{dry_run, prepare, prepare_on};
pub(crate) use recorder::Board;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use goodput_engine::FdLimit;
use goodput_model::{EndedBy, Mode, Plan, Rate, Repeat, Verdict};
use goodput_record::{FolderError, SweepFolder};
use goodput_stats::{RunState, SloState, Summary};

use crate::args::{OutputArgs, RunArgs};
use crate::error::{Failed, exit};
use crate::hub::Hub;
use crate::signals::Signals;
use crate::{host, output, plan, report};

/// What all runs of one use of a verb share.
pub(crate) struct Setup {
    /// Neither progress nor notes.
    pub(crate) quiet: bool,
    /// Whether the target may be asked how it counts tokens.
    pub(crate) may_ask: bool,
    pub(crate) hub: Hub,
    pub(crate) fd_limit: FdLimit,
    pub(crate) signals: Signals,
}

impl Setup {
    /// Ready to run.
    pub(crate) fn new(quiet: bool, may_ask: bool) -> Self {
        let fd_limit = goodput_engine::raise_fd_limit();
        Self { quiet, may_ask, hub: Hub::new(quiet), fd_limit, signals: Signals::default() }
    }
}

/// What a run is among others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// Which of several runs of one plan.
    pub(crate) repeat: Option<Repeat>,
    /// What stands before its progress line.
    pub(crate) label: String,
    /// Whether the server's batch and queue are looked at beside the load.
    pub(crate) looks_at_batch: bool,
}

/// Runs the verb.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failed> {
    let plan = plan::resolve(args)?;
    let setup = Setup::new(args.output.quiet, !args.workload.no_length_check);
    say_what_it_takes(&plan, args);
    if args.output.dry_run {
        return dry_run(plan, &setup.hub, args.output.json);
    }
    let path = folder_path(args.output.out.as_deref(), &plan, "run");
    match args.repeat {
        None => {
            let summary = prepare(&setup, plan)?.measure(&setup, &path, &Place::default())?;
            show(&args.output, &path, &report::json(&summary), || goodput_report::text(&summary))?;
            Ok(ExitCode::from(code(&summary)))
        }
        Some(repeats) => {
            let series = series::measure(&setup, &plan, &path, repeats)?;
            let found = series.repeats();
            show(&args.output, &path, &report::json(&found), || {
                goodput_report::repeats_text(&found)
            })?;
            series.code(&setup)
        }
    }
}

/// Before a run at a fixed rate: how long it takes to be sure.
fn say_what_it_takes(plan: &Plan, args: &RunArgs) {
    let has_sessions = plan.workload.classes.iter().any(|class| class.session.is_some());
    if let Mode::Open { rate: Rate::PerSecond(rate), .. } = plan.load.mode
        && !args.output.quiet
        && !has_sessions
    {
        let goals = goodput_stats::goals(plan);
        output::note(&goodput_report::confidence_before(&goals, rate));
    }
}

/// `--out`, or a name under `runs/` that is still free.
pub(crate) fn folder_path(out: Option<&Path>, plan: &Plan, verb: &str) -> PathBuf {
    if let Some(out) = out {
        return out.to_owned();
    }
    let name = format!("{}-{}-{verb}", host::timestamp().replace(':', "-"), plan.workload.name);
    let first = Path::new("runs").join(&name);
    let mut others = (2..1000).map(|n| Path::new("runs").join(format!("{name}-{n}")));
    if first.exists() { others.find(|path| !path.exists()).unwrap_or(first) } else { first }
}

pub(crate) fn folder_failed(error: &FolderError) -> Failed {
    let failed = Failed::usage(error.to_string());
    match error {
        FolderError::Occupied(_) => failed.hint("name a new folder with --out"),
        _ => failed.hint("--out names another folder"),
    }
}

/// Prints the result, and where it is kept.
pub(crate) fn show(
    args: &OutputArgs,
    path: &Path,
    json: &str,
    text: impl FnOnce() -> String,
) -> Result<(), Failed> {
    if args.json {
        output::data(json.as_bytes())?;
    } else if !args.quiet {
        output::data(text().as_bytes())?;
    }
    if !args.quiet {
        output::note(&format!("\nrun folder: {}", shown(path)));
        let page = path.join(SweepFolder::REPORT);
        if page.is_file() {
            output::note(&format!("report: {}", shown(&page)));
        }
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    goodput_report::plain(&path.display().to_string())
}

fn code(summary: &Summary) -> u8 {
    // What came in after a stop by the rule may widen it a little.
    let by_rule = summary.run.ended_by == Some(EndedBy::Until);
    let is_sure =
        summary.until.as_ref().is_none_or(|until| until.met || (by_rule && !until.missed));
    if summary.run.state == RunState::Interrupted {
        exit::INTERRUPTED
    } else if summary.requests.scheduled > 0 && summary.requests.ok == 0 {
        exit::TARGET
    } else if summary.verdict == Verdict::Void {
        exit::VOID
    } else if !is_sure {
        // Too few samples for what was asked.
        exit::VOID
    } else {
        match summary.slo.as_ref().map(|slo| slo.state) {
            Some(SloState::Missed) => exit::MISSED,
            Some(SloState::Undecided) => exit::VOID,
            Some(SloState::Met | SloState::Reported) | None => exit::OK,
        }
    }
}
