//! From what was typed to a [`SweepRequest`].

use std::path::Path;
use std::time::Duration;

use goodput_campaign::sweep::{Axis, Effort, SweepPlan, geometric_levels, sorted_levels};
use goodput_lab::FolderCommands;
use goodput_lab::serve::Command;
use goodput_lab::sweep::{ServerRequest, SweepRequest, set_default_attainment};
use goodput_model::{LoadExtent, Plan, Rate};

use crate::args::{AxisName, LevelArgs, LoadArgs, PointArgs, SloArgs, SweepArgs};
use crate::error::Failed;
use crate::explicit_flags;
use crate::plan::{self, Flags};

/// What was typed.
pub(super) fn from_flags(args: &SweepArgs) -> Result<SweepRequest, Failed> {
    let is_demo = args.target.as_deref() == Some(BARE);
    let target = args.target.as_deref().map(sweep_target);
    let mut workload = args.workload.clone();
    if is_demo && !explicit_flags::is_typed("workload") {
        SHORT_ANSWERS.clone_into(&mut workload.workload);
    }
    let slo = slo_or_default(args);
    let load = load_args(&args.point);
    let flags = Flags {
        target: target.as_deref(),
        load: &load,
        workload: &workload,
        slo: &slo,
        endpoint: &args.endpoint,
        output: &args.output,
    };
    let mut plan = plan::plan_from_flags(&flags)?;
    set_default_attainment(&mut plan.measure);
    let sweep = sweep_plan(&args.levels, &args.point, is_demo, &plan)?;
    let serve = args.serve.serve.as_ref().map(|command| ServerRequest {
        command: command.clone(),
        timeout_s: args.serve.serve_timeout.as_secs_f64(),
    });
    let request = SweepRequest {
        gpus: args.levels.gpus,
        serve,
        vary: args.levels.vary.clone(),
        max_s: args.point.max_time.map(|time| time.as_secs_f64()),
        ..SweepRequest::new(sweep, plan)
    };
    request.check()?;
    Ok(request)
}

/// What the folder at `path` would run: the server's command, and the values in it.
pub(super) fn folder_commands(
    request: &SweepRequest,
    path: &Path,
    args: &SweepArgs,
) -> Result<FolderCommands, Failed> {
    let command = request.serve.as_ref().map(|serve| &serve.command);
    let names =
        command.map(|text| Command::placeholder_names(text)).transpose()?.unwrap_or_default();
    let is_value =
        |text: &&String| text.split_once('=').is_some_and(|(name, _)| names.contains(name.trim()));
    let flags = |command: Option<&String>, vary: Vec<&String>| -> Vec<_> {
        let command = command.map(|text| ("--serve", text.clone()));
        let vary = vary.into_iter().map(|text| ("--vary", text.clone()));
        command.into_iter().chain(vary).collect()
    };
    let found = flags(command, request.vary.iter().filter(is_value).collect());
    let typed = flags(args.serve.serve.as_ref(), args.levels.vary.iter().collect());
    FolderCommands::new(path, found, &typed, args.allow_commands)
}

/// The target that stands for "no server at all".
const BARE: &str = "mock";

/// The workload of such a sweep: a small machine that does something else as well keeps up with it.
const SHORT_ANSWERS: &str = "short_chat";

/// For a sweep the plain mock is the profile that is made for it.
pub(super) fn sweep_target(typed: &str) -> String {
    if typed == BARE { "mock:light".to_owned() } else { typed.to_owned() }
}

/// Without a word about it, users were promised what the preset says.
fn slo_or_default(args: &SweepArgs) -> SloArgs {
    let mut slo = args.slo.clone();
    if slo.slo.is_none() && slo.goodput.is_empty() && !args.levels.no_search {
        slo.slo = Some("interactive".to_owned());
    }
    slo
}

/// Load flags as `run` has them; the rate stands for the levels to come.
fn load_args(args: &PointArgs) -> LoadArgs {
    LoadArgs {
        rate: Some(Rate::PerSecond(1.0)),
        arrivals: args.arrivals,
        schedule: None,
        idle: None,
        burstiness: None,
        max_concurrency: args.max_concurrency,
        concurrency: None,
        think_time: Duration::ZERO,
        duration: args.duration,
        num_requests: None,
        until: None,
        min_duration: None,
        warmup: Some(LoadExtent::Time(args.warmup.unwrap_or_default())),
        cooldown: Duration::ZERO,
        drain: args.drain,
        client: args.client.clone(),
    }
}

fn sweep_plan(
    levels: &LevelArgs,
    point: &PointArgs,
    is_demo: bool,
    plan: &Plan,
) -> Result<SweepPlan, Failed> {
    let axis = match levels.over {
        _ if !levels.concurrency.is_empty() => Axis::Concurrency,
        AxisName::Rate => Axis::Rate,
        AxisName::Concurrency => Axis::Concurrency,
    };
    let effort = match (levels.quick, levels.certified) {
        (true, _) => Effort::Quick,
        (_, true) => Effort::Certified,
        // A first try should not take half an hour.
        _ if is_demo => Effort::Quick,
        _ => Effort::Standard,
    };
    if axis == Axis::Concurrency && (point.max_concurrency.is_some() || levels.closed_loop_too) {
        return Err(Failed::usage(
            "--max-concurrency and --closed-loop-too do not apply to a closed loop",
        )
        .hint("remove them"));
    }
    let given = given_levels(levels, axis)?;
    let bounds = (given.first().copied(), given.last().copied());
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    Ok(SweepPlan {
        axis,
        least: levels.from.or(bounds.0),
        most: levels.to.or(bounds.1),
        levels: given,
        effort,
        search: !levels.no_search,
        sustained_s: seconds(point.sustained),
        point_s: seconds(point.duration),
        point_requests: point.num_requests,
        burn_in_s: seconds(point.warmup),
        settle_s: point.settle.as_secs_f64(),
        twins: levels.closed_loop_too,
        seed: point.client.seed,
        slo: plan.measure.slo.clone(),
        attainment: plan.measure.attainment,
    })
}

/// The levels that are measured in any case, ascending, each once.
fn given_levels(levels: &LevelArgs, axis: Axis) -> Result<Vec<f64>, Failed> {
    let mut given: Vec<f64> = levels.concurrency.iter().copied().map(f64::from).collect();
    for rate in &levels.rates {
        let Rate::PerSecond(rate) = rate else {
            return Err(Failed::usage("a sweep cannot use the rate `inf`")
                .hint("`goodput run --rate inf` sends everything at once"));
        };
        given.push(*rate);
    }
    if let (Some(from), Some(to)) = (levels.from, levels.to) {
        if from >= to {
            let message = format!("--from {from} is not below --to {to}");
            return Err(Failed::usage(message).hint("write --from 1 --to 50 --points 12"));
        }
        given.extend(geometric_levels(from, to, levels.points.unwrap_or(0)));
    }
    Ok(sorted_levels(axis, &given, levels.points.is_some()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Verb};

    fn asked(line: &str) -> Result<SweepRequest, Failed> {
        let words = ["goodput", "sweep"].into_iter().chain(line.split_whitespace());
        let Verb::Sweep(args) = Arguments::try_parse_from(words).unwrap().verb else {
            panic!("another verb")
        };
        from_flags(&args)
    }

    #[test]
    fn levels_of_every_kind() {
        let given = |line: &str| asked(line).unwrap().sweep.levels;
        assert_eq!(given("http://x --rates 10,2,5,2"), [2.0, 5.0, 10.0]);
        assert_eq!(given("http://x --rates 30/m,2/s"), [0.5, 2.0]);
        assert_eq!(given("http://x --concurrency 8,1"), [1.0, 8.0]);
        assert_eq!(given("http://x --from 1 --to 8 --points 4"), [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(given("http://x --from 1 --to 50 --points 3"), [1.0, 7.07, 50.0]);
        assert_eq!(
            given("http://x --over concurrency --from 1 --to 4 --points 5"),
            [1.0, 2.0, 3.0, 4.0]
        );
        assert_eq!(given("http://x"), [0.0; 0]);
        assert!(asked("http://x --rates inf").is_err());
        assert!(asked("http://x --from 5 --to 5 --points 2").is_err());
        assert!(asked("http://x --concurrency 4 --max-concurrency 4").is_err());
    }

    #[test]
    fn what_is_meant_without_a_word() {
        let plain = asked("http://x").unwrap().sweep;
        assert_eq!((plain.axis, plain.effort, plain.search), (Axis::Rate, Effort::Standard, true));
        assert_eq!((plain.least, plain.most), (None, None));
        let preset: goodput_model::Slo = "interactive".parse().unwrap();
        assert_eq!(plain.slo, Some(preset));
        assert_eq!(asked("http://x --no-search").unwrap().sweep.slo, None);
        let bounded = asked("http://x --rates 2,5 --quick").unwrap().sweep;
        assert_eq!((bounded.least, bounded.most), (Some(2.0), Some(5.0)));
        assert_eq!(bounded.effort, Effort::Quick);
        let mock = asked("mock").unwrap();
        assert_eq!(mock.plan.target.url, "mock:light");
        assert_eq!(mock.plan.workload.classes[0].name, "short_chat");
        assert_eq!(mock.sweep.effort, Effort::Quick);
        assert_eq!(asked("mock:slots=4").unwrap().sweep.effort, Effort::Standard);
    }
}
