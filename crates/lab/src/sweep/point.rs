//! One point: a run of the plan that all points share, at its own level.

use std::time::Duration;

use goodput_campaign::sweep::{Level, PointAsk, Purpose};
use goodput_model::{LoadExtent, Mode, Plan, Rate};

/// The plan of this point.
pub(super) fn point_plan(base: &Plan, ask: &PointAsk) -> Plan {
    let mut plan = plan_at_level(base, ask.level, ask.seed, (ask.burn_in_s, ask.seconds));
    plan.load.num_requests = ask.requests;
    // A warm-up must warm up, and a twin shows what its loop hides.
    let may_stop = !matches!(ask.purpose, Purpose::WarmUp | Purpose::Twin);
    plan.measure.stop_early = ask.stops.filter(|_| may_stop);
    plan
}

/// The plan at this level, for this many seconds of load before the measured part, and in it.
pub fn plan_at_level(
    base: &Plan,
    level: Level,
    seed: u64,
    (burn_in_s, measured_s): (f64, f64),
) -> Plan {
    let mut plan = base.clone();
    plan.load.seed = seed;
    plan.load.mode = mode_at_level(&base.load.mode, level);
    plan.load.warmup = warmup_extent(base.load.warmup, level, burn_in_s);
    plan.load.duration = Some(to_duration(measured_s));
    plan
}

fn mode_at_level(base: &Mode, level: Level) -> Mode {
    match (level, base) {
        (Level::Users(concurrency), _) => {
            Mode::Closed { concurrency, think_time: Duration::ZERO, pause_first: false }
        }
        (Level::Rate(rate), Mode::Open { arrivals, max_concurrency, .. }) => Mode::Open {
            rate: Rate::PerSecond(rate),
            arrivals: *arrivals,
            max_concurrency: *max_concurrency,
        },
        // A base is always open: sweeps and comparisons see to it, and `many.rs`.
        (Level::Rate(_), other) => other.clone(),
    }
}

/// The burn-in, and as many requests as a cache needs to be warm.
fn warmup_extent(base: LoadExtent, level: Level, burn_in_s: f64) -> LoadExtent {
    match (base, level) {
        (LoadExtent::Requests(requests), Level::Users(_)) => LoadExtent::Requests(requests),
        (LoadExtent::Requests(requests), Level::Rate(rate)) => {
            LoadExtent::Time(to_duration(burn_in_s.max(requests as f64 / rate)))
        }
        _ => LoadExtent::Time(to_duration(burn_in_s)),
    }
}

/// To the millisecond: a plan file that a person can read.
fn to_duration(seconds: f64) -> Duration {
    Duration::from_millis((seconds.clamp(0.0, 1e7) * 1e3).round() as u64)
}
