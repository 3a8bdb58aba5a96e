//! `goodput run`: one load level, measured once or several times, recorded, reported.

mod once;
mod recorder;
mod series;

pub(crate) use recorder::Board;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use goodput_engine::FdLimit;
use goodput_model::{EndedBy, Mode, Plan, Rate, Verdict};
use goodput_record::FolderError;
use goodput_stats::{RunState, SloState, Summary};

use crate::args::RunArgs;
use crate::error::{Failed, exit};
use crate::hub::Hub;
use crate::signals::Signals;
use crate::{host, output, plan, report};

/// What all runs of one use of the verb share.
struct Setup<'a> {
    args: &'a RunArgs,
    hub: Hub,
    fd_limit: FdLimit,
    signals: Signals,
}

/// Runs the verb.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failed> {
    let plan = plan::resolve(args)?;
    let hub = Hub::new(args.output.quiet);
    say_what_it_takes(&plan, args);
    if args.output.dry_run {
        return once::dry_run(plan, &hub, args.output.json);
    }
    let fd_limit = goodput_engine::raise_fd_limit();
    let setup = Setup { args, hub, fd_limit, signals: Signals::default() };
    let path = folder_path(args, &plan);
    match args.repeat {
        None => {
            let summary = once::prepare(&setup, plan)?.measure(&setup, &path, None)?;
            show(args, &path, &report::json(&summary), || goodput_report::text(&summary))?;
            Ok(ExitCode::from(code(&summary)))
        }
        Some(repeats) => {
            let series = series::measure(&setup, &plan, &path, repeats)?;
            let found = series.repeats();
            show(args, &path, &report::json(&found), || goodput_report::repeats_text(&found))?;
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

fn show(
    args: &RunArgs,
    path: &Path,
    json: &str,
    text: impl FnOnce() -> String,
) -> Result<(), Failed> {
    if args.output.json {
        output::data(json.as_bytes())?;
    } else if !args.output.quiet {
        output::data(text().as_bytes())?;
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
