//! `goodput run`: one load level, measured once or several times, recorded, reported.

use std::path::Path;
use std::process::ExitCode;

use goodput_lab::RunContext;
use goodput_lab::fleet::lone_shard;
use goodput_lab::run::prepare_run;
use goodput_lab::series::{RunSeries, measure_repeats};
use goodput_model::{EndedBy, Plan, ShardFacts, Verdict};
use goodput_stats::{RunState, SloState, Summary, summarize_repeats};

use crate::args::{OutputArgs, RunArgs};
use crate::error::{Failed, exit};
use crate::fleet::{self, FleetRole};
use crate::result::{folder_path, show_result};
use crate::setup::Setup;
use crate::{explicit_flags, plan, report, workload};

/// The flags that can be combined with `--plan`.
const WITH_PLAN: [&str; 19] = [
    "target",
    "repeat",
    "model",
    "slo",
    "attainment",
    "goodput",
    "out",
    "percentiles",
    "early_stopping",
    "save_text",
    "dry_run",
    "metrics",
    "metrics_urls",
    "metrics_interval",
    "metrics_map",
    "gpu",
    "gpu_idle",
    "meta",
    "trace_share",
];

/// Runs the verb: a plan by what was typed, this process's role in a fleet, and one run or several.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failed> {
    if args.plan.is_some() {
        explicit_flags::refuse_with("plan", &WITH_PLAN)?;
    }
    let plan = plan::resolve_plan(args)?;
    let mut setup = Setup::new(args.output.quiet, !args.workload.no_length_check);
    if args.output.dry_run {
        return dry_run(&setup.with_hooks(&args.endpoint)?, &plan, args.output.json);
    }
    let path = folder_path(args.output.out.as_deref(), &plan, "run");
    let role = FleetRole::from_args(&args.shard)?;
    setup.lab.shard = role.shard();
    if let FleetRole::Rank(meeting) = role {
        return fleet::follow_coordinator(&meeting, setup.lab, &plan, &path);
    }
    let mut setup = setup.with_hooks(&args.endpoint)?.with_metrics_page(&args.endpoint)?;
    setup = setup.with_progress(&args.output, "run");
    let shard = join_fleet(&mut setup, role, &plan, args.repeat.is_some())?;
    match args.repeat {
        None => measure_once(&setup, plan, &path, shard, &args.output),
        Some(repeats) => run_repeatedly(&setup, &plan, &path, repeats, &args.output),
    }
}

/// Prints what would be sent, and how long a run takes until its figures are certain enough.
fn dry_run(setup: &Setup, plan: &Plan, json: bool) -> Result<ExitCode, Failed> {
    let code = workload::dry_run(plan.clone(), &setup.hub, json)?;
    setup.observer.prepared(plan);
    Ok(code)
}

/// Joins the fleet: the coordinator gathers the other ranks; a shard that does not wait for others
/// is stated in the result.
fn join_fleet(
    setup: &mut Setup,
    role: FleetRole,
    plan: &Plan,
    is_repeated: bool,
) -> Result<Option<ShardFacts>, Failed> {
    match role {
        FleetRole::Alone | FleetRole::Rank(_) => Ok(None),
        FleetRole::Shard(_) if is_repeated => {
            Err(Failed::usage("several runs of a fleet need a coordinator")
                .hint("add --rendezvous HOST:PORT of rank 0, or use --shard auto"))
        }
        FleetRole::Shard(shard) => Ok(Some(lone_shard(shard, plan)?)),
        FleetRole::Coordinator(meeting) => {
            setup.lab.runner = Box::new(meeting.gather_ranks(setup, plan, is_repeated)?);
            Ok(None)
        }
    }
}

/// Measures the plan once, and prints the result.
fn measure_once(
    setup: &Setup,
    plan: Plan,
    path: &Path,
    shard: Option<ShardFacts>,
    output: &OutputArgs,
) -> Result<ExitCode, Failed> {
    let prepared = prepare_run(setup, plan)?;
    setup.observer.prepared(&prepared.plan);
    let summary = prepared.run(setup, path, RunContext { shard, ..RunContext::default() })?;
    report::write_run_page(path, &summary);
    show_result(output, path, &report::to_json(&summary), || {
        goodput_report::run_text(&summary, output.detail_level())
    })?;
    Ok(ExitCode::from(exit_code(&summary)))
}

/// Measures the plan several times, and prints the combined result. The worst run decides the exit
/// code.
fn run_repeatedly(
    setup: &Setup,
    plan: &Plan,
    path: &Path,
    times: u32,
    output: &OutputArgs,
) -> Result<ExitCode, Failed> {
    let RunSeries { summaries, failed } = measure_repeats(setup, plan, path, times)?;
    let found = summarize_repeats(&summaries);
    report::write_repeats_page(path, &found);
    show_result(output, path, &report::to_json(&found), || {
        goodput_report::repeats_text(&found, output.detail_level())
    })?;
    if let Some(failed) = failed {
        return Err(failed);
    }
    let stopped = setup.interrupt.is_interrupted().then_some(exit::INTERRUPTED);
    let codes = summaries.iter().map(exit_code).chain(stopped);
    Ok(ExitCode::from(codes.max_by_key(|code| code_severity(*code)).unwrap_or(exit::OK)))
}

/// How bad an exit code is: stopped, target gone, void, anything else, good.
fn code_severity(code: u8) -> u8 {
    match code {
        exit::INTERRUPTED => 4,
        exit::TARGET => 3,
        exit::VOID => 2,
        exit::OK => 0,
        _ => 1,
    }
}

/// The exit code of the process.
pub(crate) fn exit_code(summary: &Summary) -> u8 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_code_weighs_most() {
        let mut codes = [0, 5, 130, 4, 3];
        codes.sort_by_key(|code| code_severity(*code));
        assert_eq!(codes, [0, 4, 5, 3, 130]);
    }
}
