//! `goodput run`: one load level, measured once or several times, recorded, reported.

use std::path::Path;
use std::process::ExitCode;

use goodput_lab::RunContext;
use goodput_lab::fleet::alone;
use goodput_lab::run::prepare;
use goodput_lab::series::{RunSeries, repeat};
use goodput_model::{EndedBy, Plan, ShardFacts, Verdict};
use goodput_stats::{RunState, SloState, Summary, repeats};

use crate::args::{OutputArgs, RunArgs};
use crate::error::{Failed, exit};
use crate::fleet::{self, FleetRole};
use crate::result::{folder_path, show};
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
    let plan = plan::resolve(args)?;
    let mut setup = Setup::new(args.output.quiet, !args.workload.no_length_check);
    if args.output.dry_run {
        return dry_run(&setup.hooked(&args.endpoint)?, &plan, args.output.json);
    }
    let path = folder_path(args.output.out.as_deref(), &plan, "run");
    let role = FleetRole::from_args(&args.shard)?;
    setup.lab.shard = role.shard();
    if let FleetRole::Rank(meeting) = role {
        return fleet::follow(&meeting, setup.lab, &plan, &path);
    }
    let mut setup = setup.hooked(&args.endpoint)?.listening(&args.endpoint)?;
    setup = setup.showing(&args.output, "run");
    let shard = take_part(&mut setup, role, &plan, args.repeat.is_some())?;
    match args.repeat {
        None => once(&setup, plan, &path, shard, &args.output),
        Some(repeats) => repeatedly(&setup, &plan, &path, repeats, &args.output),
    }
}

/// What would be sent, and how long it takes to be sure.
fn dry_run(setup: &Setup, plan: &Plan, json: bool) -> Result<ExitCode, Failed> {
    let code = workload::dry_run(plan.clone(), &setup.hub, json)?;
    setup.observer.prepared(plan);
    Ok(code)
}

/// Joins the fleet: the coordinator gathers the other ranks; a shard that does not wait for others
/// is stated in the result.
fn take_part(
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
        FleetRole::Shard(shard) => Ok(Some(alone(shard, plan)?)),
        FleetRole::Coordinator(meeting) => {
            setup.lab.runner = Box::new(meeting.gather(setup, plan, is_repeated)?);
            Ok(None)
        }
    }
}

/// Measures the plan once, and shows what came of it.
fn once(
    setup: &Setup,
    plan: Plan,
    path: &Path,
    shard: Option<ShardFacts>,
    output: &OutputArgs,
) -> Result<ExitCode, Failed> {
    let prepared = prepare(setup, plan)?;
    setup.observer.prepared(&prepared.plan);
    let summary = prepared.run(setup, path, RunContext { shard, ..RunContext::default() })?;
    report::keep_run(path, &summary);
    show(output, path, &report::json(&summary), || {
        goodput_report::text(&summary, output.detail())
    })?;
    Ok(ExitCode::from(code(&summary)))
}

/// Measures the plan several times, and shows what the runs say together. The worst of them decides.
fn repeatedly(
    setup: &Setup,
    plan: &Plan,
    path: &Path,
    times: u32,
    output: &OutputArgs,
) -> Result<ExitCode, Failed> {
    let RunSeries { summaries, failed } = repeat(setup, plan, path, times)?;
    let found = repeats(&summaries);
    report::keep_repeats(path, &found);
    show(output, path, &report::json(&found), || {
        goodput_report::repeats_text(&found, output.detail())
    })?;
    if let Some(failed) = failed {
        return Err(failed);
    }
    let stopped = setup.interrupt.is_interrupted().then_some(exit::INTERRUPTED);
    let codes = summaries.iter().map(code).chain(stopped);
    Ok(ExitCode::from(codes.max_by_key(|code| weight(*code)).unwrap_or(exit::OK)))
}

/// How bad an exit code is: stopped, target gone, void, anything else, good.
fn weight(code: u8) -> u8 {
    match code {
        exit::INTERRUPTED => 4,
        exit::TARGET => 3,
        exit::VOID => 2,
        exit::OK => 0,
        _ => 1,
    }
}

/// What the process ends with.
pub(crate) fn code(summary: &Summary) -> u8 {
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
        codes.sort_by_key(|code| weight(*code));
        assert_eq!(codes, [0, 4, 5, 3, 130]);
    }
}
