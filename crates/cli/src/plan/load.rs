//! How much load, when, and for how long.

use std::time::Duration;

use goodput_model::{
    ArrivalProcess, ClassPlan, Keep, Load, LoadExtent, Mode, ParseError, Rate, SourcePlan,
    WorkloadPlan,
};

use crate::args::{LoadArgs, ReplayName, TraceArgs};
use crate::error::Failed;

/// How much load, when, and for how long.
pub(super) fn resolve_load(
    args: &LoadArgs,
    workload: &WorkloadPlan,
    trace: &TraceArgs,
) -> Result<Load, Failed> {
    let brings_instants = |class: &ClassPlan| {
        matches!(class.source, SourcePlan::Trace(_) | SourcePlan::Frozen { .. })
    };
    let max_concurrency = args.max_concurrency;
    let mode = if let Some(rate) = args.rate {
        Mode::Open { rate, arrivals: arrival_process(args)?, max_concurrency }
    } else if let Some(shape) = args.schedule.clone() {
        Mode::Shaped { shape, arrivals: arrival_process(args)?, max_concurrency }
    } else if let Some(concurrency) = args.concurrency {
        Mode::Closed { concurrency, think_time: args.think_time, pause_first: false }
    } else if let Some(idle) = args.idle {
        Mode::Closed { concurrency: 1, think_time: idle, pause_first: true }
    } else if workload.classes.iter().any(brings_instants) {
        let keep = match trace.replay {
            ReplayName::Timestamps => Keep::Timestamps,
            ReplayName::ThinkTimes => Keep::ThinkTimes,
        };
        Mode::Replay { time_scale: trace.time_scale, keep, max_concurrency }
    } else {
        return Err(Failed::usage("no load given: set --rate or --concurrency")
            .hint("--rate 20 sends 20 requests per second; --concurrency 64 plays 64 users"));
    };
    let is_replay = matches!(mode, Mode::Replay { .. });
    if !is_replay && (trace.time_scale != 1.0 || trace.replay != ReplayName::Timestamps) {
        return Err(Failed::usage("--time-scale and --replay apply only to the times of a trace")
            .hint("remove them, or remove --rate, --concurrency, --schedule, and --idle"));
    }
    Ok(Load {
        seed: args.client.seed,
        duration: measured_duration(args, &mode),
        num_requests: args.num_requests.or(args.idle.map(|_| 1)),
        warmup: warmup_extent(args, &mode, workload),
        cooldown: args.cooldown,
        drain: args.drain,
        workers: args.client.workers.unwrap_or_else(default_workers),
        pin: args.client.pin,
        mode,
    })
}

/// The length of the measured part, where it is not something else that ends it.
fn measured_duration(args: &LoadArgs, mode: &Mode) -> Option<Duration> {
    let usual = if args.until.is_some() { UNTIL_DURATION } else { DEFAULT_DURATION };
    let default = args.num_requests.is_none().then_some(usual);
    match mode {
        Mode::Open { rate: Rate::Infinite, .. } => None,
        Mode::Shaped { shape, .. } => {
            let warmup = match args.warmup {
                Some(LoadExtent::Time(time)) => time,
                Some(LoadExtent::Requests(_) | LoadExtent::Auto) | None => Duration::ZERO,
            };
            let rest = shape
                .length()
                .map(|length| length.saturating_sub(warmup).saturating_sub(args.cooldown));
            match (args.duration, rest) {
                // Nothing comes after the last stage.
                (Some(asked), Some(rest)) => Some(asked.min(rest)),
                (asked, rest) => asked.or(rest).or(default),
            }
        }
        Mode::Replay { .. } => args.duration,
        _ if args.idle.is_some() => None,
        _ => args.duration.or(default),
    }
}

/// What was asked for; else as many requests as warm a cache, where it is asked to be warm, one
/// rotation of contexts, or what the beginning shows.
fn warmup_extent(args: &LoadArgs, mode: &Mode, workload: &WorkloadPlan) -> LoadExtent {
    let has_one_level = match mode {
        Mode::Open { rate, .. } => *rate != Rate::Infinite,
        Mode::Closed { .. } => args.idle.is_none(),
        Mode::Shaped { .. } | Mode::Replay { .. } => false,
    };
    let usual = if has_one_level { LoadExtent::Auto } else { LoadExtent::Time(Duration::ZERO) };
    let asked = args.warmup.unwrap_or(usual);
    let is_free = asked.is_none() || asked == LoadExtent::Auto;
    match workload.requests_to_warm() {
        n if n > 0 && is_free && args.rate != Some(Rate::Infinite) => LoadExtent::Requests(n),
        _ => asked,
    }
}

/// Contexts in rotation are measured in whole rotations: an open loop that would end by time ends
/// with the last rotation of that many requests, at least one, instead. Not the points of a sweep
/// or the runs of a comparison, whose ends those decide.
pub(super) fn end_with_a_rotation(args: &LoadArgs, workload: &WorkloadPlan, load: &mut Load) {
    let Mode::Open { rate: Rate::PerSecond(rate), .. } = load.mode else { return };
    let (Some(contexts), Some(duration)) = (workload.rotation(), load.duration) else { return };
    if load.num_requests.is_some() || args.until.is_some() {
        return;
    }
    let rotations = (rate * duration.as_secs_f64() / contexts as f64).floor().max(1.0);
    load.num_requests = Some((rotations as u64).saturating_mul(contexts));
    load.duration = None;
}

/// What a quick look takes.
const DEFAULT_DURATION: Duration = Duration::from_mins(1);

/// The default time limit of `--until`.
const UNTIL_DURATION: Duration = Duration::from_mins(10);

/// The default minimum of `--until`, unless the run itself is shorter.
const UNTIL_FLOOR: Duration = Duration::from_secs(30);

/// Measured time before which `--until` does not end a run.
pub(super) fn shortest_duration(args: &LoadArgs, load: &Load) -> Option<Duration> {
    let usual = load.duration.map_or(UNTIL_FLOOR, |longest| longest.min(UNTIL_FLOOR));
    args.until.as_ref().map(|_| args.min_duration.unwrap_or(usual))
}

fn arrival_process(args: &LoadArgs) -> Result<ArrivalProcess, Failed> {
    let Some(shape) = args.burstiness else { return Ok(args.arrivals) };
    let wrong = |error: ParseError| Failed::usage(error.to_string());
    if shape <= 0.0 || !shape.is_finite() {
        return Err(Failed::usage("--burstiness must be a positive number").hint("1 is Poisson"));
    }
    format!("gamma:{}", 1.0 / shape.sqrt()).parse().map_err(wrong)
}

/// One core is left for pacing and recording where there is more than one.
pub(crate) fn default_workers() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cores.saturating_sub(1).clamp(1, 64)).unwrap_or(1)
}
