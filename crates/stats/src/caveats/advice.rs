//! Advice in the flags of the run at hand.

use std::time::Duration;

use goodput_model::{Mode, Rate};

use super::Evidence;
use crate::share::shard_of_run;

/// A time as flags take it, rounded up: whole seconds to two minutes, then minutes, then hours.
pub fn duration_flag(seconds: f64) -> String {
    match seconds {
        s if s <= 120.0 => format!("{:.0}s", s.ceil().max(1.0)),
        s if s <= 7200.0 => format!("{:.0}m", (s / 60.0).ceil()),
        s => format!("{:.0}h", (s / 3600.0).ceil()),
    }
}

/// A rate as `--rate` takes it, in two digits.
pub(super) fn rate_flag(per_s: f64) -> String {
    let digits = if per_s < 1.0 { 2 } else { usize::from(per_s < 10.0) };
    format!("{per_s:.digits$}")
}

/// How many requests a second the run at hand made.
pub(super) fn measured_request_rate(e: &Evidence<'_>) -> Option<f64> {
    let measured = e.load.scheduled_rps.or(e.completions_per_s);
    measured.filter(|rate| *rate > 0.0)
}

/// A run of at least this many seconds, in the flags that end this one.
pub(super) fn longer_run_flags(e: &Evidence<'_>, seconds: f64) -> String {
    let load = &e.plan.load;
    match (&load.mode, load.duration, measured_request_rate(e)) {
        (Mode::Open { rate: Rate::Infinite, .. }, _, _) => {
            "raise --num-requests, or give it a --rate".to_owned()
        }
        (Mode::Shaped { .. }, None, _) => {
            format!("make the shape last {}", duration_flag(seconds))
        }
        (Mode::Replay { .. }, _, _) => {
            format!("replay {} of the trace", duration_flag(seconds))
        }
        (_, None, Some(rate)) if load.num_requests.is_some() => {
            let rate = rate * f64::from(shard_of_run(e.run).count());
            format!("--num-requests {} lasts {}", (seconds * rate).ceil(), duration_flag(seconds))
        }
        _ => format!("--duration {}", duration_flag(seconds)),
    }
}

/// A run of this many measured requests, in the flags that end this one.
pub(super) fn larger_run_flags(e: &Evidence<'_>, requests: f64) -> String {
    let load = &e.plan.load;
    match (load.duration, measured_request_rate(e)) {
        (Some(_), Some(rate)) => format!(
            "--duration {} gives {requests:.0} requests at {} req/s",
            duration_flag(requests / rate),
            rate_flag(rate)
        ),
        _ if load.num_requests.is_some() => format!("--num-requests {requests:.0}"),
        _ => format!("measure {requests:.0} requests"),
    }
}

/// Half of the load, in the flag that sets it.
pub(super) fn half_load_flag(e: &Evidence<'_>) -> String {
    match &e.plan.load.mode {
        Mode::Open { rate: Rate::PerSecond(rate), .. } => {
            // Below what it has been seen to answer.
            let answered = e.completions_per_s.filter(|answered| *answered > 0.0);
            // The flag is of all clients, and this may be one of several.
            let answered =
                answered.map(|answered| answered * f64::from(shard_of_run(e.run).count()));
            let less = answered.map_or(rate / 2.0, |answered| (0.8 * answered).min(rate / 2.0));
            format!("offer less, such as --rate {}", rate_flag(less))
        }
        Mode::Closed { concurrency, .. } if *concurrency > 1 => {
            format!("use fewer users, such as --concurrency {}", concurrency / 2)
        }
        Mode::Replay { time_scale, .. } => {
            format!("replay slower, such as --time-scale {}", time_scale * 2.0)
        }
        Mode::Shaped { .. } => "lower the rates of the shape".to_owned(),
        Mode::Open { rate: Rate::Infinite, .. } | Mode::Closed { .. } => {
            "use a larger machine for the client".to_owned()
        }
    }
}

/// What helps a client that has too little processor.
pub(super) fn more_cpu_advice(e: &Evidence<'_>) -> String {
    let workers = e.plan.load.mode.useful_workers(e.plan.load.workers);
    let may_grow = e.plan.load.mode.useful_workers(workers + 1) > workers;
    if may_grow && e.client.cpus > workers + 1 {
        format!("use --workers {}, or {}", (workers * 2).min(e.client.cpus - 1), half_load_flag(e))
    } else {
        format!("give the client its own cores, or {}", half_load_flag(e))
    }
}

/// The limit for one request, as it was given.
pub(super) fn timeout_text(limit: Duration) -> String {
    duration_flag(limit.as_secs_f64())
}
