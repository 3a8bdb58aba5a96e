//! One point: a run of the plan that all points share, at its own level.

use std::time::Duration;

use goodput_campaign::sweep::{Ask, Level, Purpose};
use goodput_model::{Extent, Mode, Plan, Rate};

/// The plan of this point.
pub(super) fn plan(base: &Plan, ask: &Ask) -> Plan {
    let mut plan = base.clone();
    let load = &mut plan.load;
    load.seed = ask.seed;
    load.mode = mode(&base.load.mode, ask.level);
    load.warmup = warmup(base.load.warmup, ask);
    load.duration = Some(seconds(ask.seconds));
    load.num_requests = ask.requests;
    // A warm-up must warm up, and a twin shows what its loop hides.
    let may_stop = !matches!(ask.purpose, Purpose::WarmUp | Purpose::Twin);
    plan.measure.stop_early = may_stop.then_some(ask.stops);
    plan
}

fn mode(base: &Mode, level: Level) -> Mode {
    match (level, base) {
        (Level::Users(concurrency), _) => {
            Mode::Closed { concurrency, think_time: Duration::ZERO, pause_first: false }
        }
        (Level::Rate(rate), Mode::Open { arrivals, max_concurrency, .. }) => Mode::Open {
            rate: Rate::PerSecond(rate),
            arrivals: *arrivals,
            max_concurrency: *max_concurrency,
        },
        // A base is always open; see `asked.rs` and `many.rs`.
        (Level::Rate(_), other) => other.clone(),
    }
}

/// The burn-in, and as many requests as a cache needs to be warm.
fn warmup(base: Extent, ask: &Ask) -> Extent {
    match (base, ask.level) {
        (Extent::Requests(requests), Level::Users(_)) => Extent::Requests(requests),
        (Extent::Requests(requests), Level::Rate(rate)) => {
            Extent::Time(seconds(ask.burn_in_s.max(requests as f64 / rate)))
        }
        _ => Extent::Time(seconds(ask.burn_in_s)),
    }
}

/// To the millisecond: a plan file that a person can read.
fn seconds(seconds: f64) -> Duration {
    Duration::from_millis((seconds.clamp(0.0, 1e7) * 1e3).round() as u64)
}
