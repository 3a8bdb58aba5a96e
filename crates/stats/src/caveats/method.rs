//! Was it asked in a way that can give an answer?

use goodput_model::{
    Caveat, CaveatCode, ConnectionPolicy, LoadExtent, Mode, Plan, Rate, Severity, SloStatistic,
};

use super::client::harmless_error_ms;
use super::{Evidence, advice};
use crate::estimate::minimum_for_figure;
use crate::share;
use crate::steady::LEAST_ANSWERS;
use crate::summary::steady::SteadyAnswer;

/// Measured time in seconds.
const LEAST_SECONDS: f64 = 60.0;
/// Rates of a window of fewer answers after one another are mostly those of its edges.
const FEW_ANSWERS: f64 = 2.0;
/// The correlation of neighbors above which tails are unreliable.
const DEPENDENT: f64 = 0.5;
/// p90 over p50 of TTFT above which it matters what requests wait for.
const WIDE: f64 = 1.1;

/// A profiler takes its time from the server that it looks at.
pub(super) fn check_profiler(e: &Evidence<'_>) -> Option<Caveat> {
    e.run.system.profiled.then(|| {
        let message = "the server was profiling during the load (--profile), which slows it down";
        Caveat::new(CaveatCode::Profiled, Severity::Warn, message)
            .advise("use the profile, and take the figures from a run without --profile")
    })
}

pub(super) fn check_no_warmup(e: &Evidence<'_>) -> Option<Caveat> {
    let load = &e.plan.load;
    let is_unable = load.warmup == LoadExtent::Auto
        && (e.course.cut.is_none()
            || (!e.course.has_cut()
                && e.course
                    .steadiness
                    .as_ref()
                    .is_some_and(|s| s.state == SteadyAnswer::TooShort)));
    (load.warmup.is_none() || is_unable).then(|| {
        let message = if is_unable {
            "no warm-up was cut: this load changes by design, or the run is too short to tell its \
             start from the rest"
        } else {
            "no warm-up: the first requests may have met a cold server"
        };
        let add = if is_unable { "add" } else { "add --warmup auto, or" };
        let advice = match &load.mode {
            Mode::Open { rate: Rate::Infinite, .. } => {
                "send a short burst before this one".to_owned()
            }
            // Every user once, in its measured shape, and once more.
            Mode::Closed { concurrency, .. } => {
                format!("{add} --warmup {}", u64::from(*concurrency).saturating_mul(2).max(50))
            }
            _ if load.duration.is_none() && load.num_requests.is_some() => {
                format!("{add} --warmup 50")
            }
            _ => {
                let rate = advice::measured_request_rate(e).unwrap_or(f64::INFINITY);
                format!("{add} --warmup {}", advice::duration_flag((50.0 / rate).max(10.0)))
            }
        };
        Caveat::new(CaveatCode::NoWarmup, Severity::Info, message).advise(advice)
    })
}

/// A closed loop asks the next question when the last is answered: it never offers more than the
/// server takes.
pub(super) fn check_closed_loop(e: &Evidence<'_>) -> Option<Caveat> {
    let Mode::Closed { concurrency, pause_first, .. } = e.plan.load.mode else { return None };
    (e.requests.ok > 0 && !pause_first).then(|| {
        let message = match concurrency {
            1 => {
                "closed loop with one user: the server never has more than one request, a batch of \
                  1, so the latencies are the lowest it can reach, and the throughput says nothing \
                  about its capacity"
                    .to_owned()
            }
            _ => format!(
                "closed loop: each of {concurrency} users waits for its answer before sending \
                 again, so the queueing of real traffic does not show"
            ),
        };
        let rate = e.completions_per_s.filter(|rate| *rate > 0.0);
        let flag =
            rate.map_or("--rate".to_owned(), |rate| format!("--rate {}", advice::rate_flag(rate)));
        let advice = format!("for latencies under real traffic, measure with {flag}");
        Caveat::new(CaveatCode::ClosedLoop, Severity::Info, message).advise(advice)
    })
}

/// 60 s, and five times the p99 of E2E.
pub(super) fn check_short_window(e: &Evidence<'_>) -> Option<Caveat> {
    let seconds = e.window.seconds();
    let e2e_s = e.key.e2e_p99_ms.map_or(0.0, |ms| ms / 1e3);
    let needed = (LEAST_ANSWERS * e2e_s).max(LEAST_SECONDS);
    (seconds < needed && e.requests.scheduled > 0).then(|| {
        let times = seconds / e2e_s;
        let message = if times < LEAST_ANSWERS {
            let rates = if times < FEW_ANSWERS { ", and its rates mean little" } else { "" };
            format!(
                "the window is {seconds:.1} s, {times:.1} times the p99 of E2E ({e2e_s:.1} s): \
                 most of it is startup and drain{rates}"
            )
        } else {
            format!("the window is {seconds:.1} s; queues and caches take 60 s or more to settle")
        };
        // The rule of `audit` too: such a run shows mostly its own start and end.
        let severity = if times < LEAST_ANSWERS { Severity::Warn } else { Severity::Info };
        Caveat::new(CaveatCode::ShortWindow, severity, message)
            .advise(advice::longer_run_flags(e, needed))
    })
}

fn requests_for_percentile(percent: f64) -> f64 {
    minimum_for_figure(percent / 100.0).map_or(f64::INFINITY, |minimum| minimum as f64)
}

pub(super) fn check_few_samples(e: &Evidence<'_>) -> Option<Caveat> {
    let n = e.key.n;
    let mut asked = e.plan.measure.percentiles.clone();
    asked.retain(|percent| *percent > 0.0 && *percent < 100.0);
    asked.sort_by(f64::total_cmp);
    let is_thin = |percent: &f64| (n as f64) < requests_for_percentile(*percent);
    let first = asked.iter().copied().find(is_thin).filter(|_| n > 0)?;
    let message = format!(
        "percentiles from p{first} up rest on {n} requests; p{first} needs {}",
        requests_for_percentile(first)
    );
    // Up to p99 in one go; what lies above takes a hundred times more.
    let target = asked.iter().copied().rfind(|p| *p <= 99.0).map_or(first, |p| p.max(first));
    let solid = asked.iter().copied().rfind(|percent| *percent < first);
    let until =
        solid.map_or(String::new(), |percent| format!("; until then, use p{percent} at most"));
    // Those that fail say nothing: as many more are to be sent.
    let due = requests_for_percentile(target) * e.requests.scheduled as f64 / n as f64;
    let advice =
        format!("{}, enough for p{target}{until}", advice::larger_run_flags(e, due.ceil()));
    // A single request on an idle server claims no more than it shows, and a shard is part of more.
    let is_alone = e.requests.scheduled > 1 && !share::shard_of_run(e.run).is_part();
    let is_thin_at_head = is_alone && is_thin(&headline_percentile(e.plan));
    let severity = if is_thin_at_head { Severity::Warn } else { Severity::Info };
    Some(Caveat::new(CaveatCode::FewSamples, severity, message).advise(advice))
}

/// The percentile that a run is made for: the highest one in its SLO, or else p95, which the progress
/// line follows too.
fn headline_percentile(plan: &Plan) -> f64 {
    let terms = plan.measure.slo.iter().flat_map(|slo| &slo.terms);
    let asked = terms.filter_map(|term| match term.statistic {
        SloStatistic::Percentile(percent) => Some(percent),
        SloStatistic::Plain | SloStatistic::Mean => None,
    });
    asked.max_by(f64::total_cmp).unwrap_or(95.0)
}

fn high_lag1(lag1: Option<f64>) -> Option<f64> {
    lag1.filter(|lag1| *lag1 > DEPENDENT)
}

/// Neighbors in a queue wait for the same reason, and what grows or drifts has no tail of its own.
pub(super) fn check_unreliable_tail(e: &Evidence<'_>) -> Option<Caveat> {
    let is_over = e.course.saturation.is_some_and(|found| found.over_saturated);
    let state =
        e.course.steadiness.as_ref().map_or(SteadyAnswer::NotApplicable, |found| found.state);
    let is_moving =
        matches!(state, SteadyAnswer::Drifting | SteadyAnswer::Shifted | SteadyAnswer::NeverSteady);
    // Neighboors may be alike in what is nothing but noise.
    let spread = e.key.ttft_p90_ms.zip(e.key.ttft_p50_ms);
    let is_wide = spread.is_some_and(|(p90, p50)| p90 > WIDE * p50);
    let why = match high_lag1(e.key.ttft_lag1).filter(|_| is_wide) {
        Some(lag1) => format!(
            "the TTFT of a request follows that of the one before it (correlation {lag1:.2}), so tails \
             rest on far fewer independent requests than were measured"
        ),
        None if is_over => "the queue grows, so tails depend on how long the run was".to_owned(),
        None if is_moving => "the run was not steady, so its tail mixes several states".to_owned(),
        None => return None,
    };
    let message = format!("tail interval unreliable: queueing; {why}");
    let advice = format!(
        "compare p50, p90, throughput and SLO attainment rather than p99; {}, or {}",
        advice::longer_run_flags(e, 4.0 * e.window.seconds()),
        advice::half_load_flag(e)
    );
    Some(Caveat::new(CaveatCode::TailUnreliable, Severity::Info, message).advise(advice))
}

/// Opening connections inside measured requests: a cost of the client's habits, not of the server.
pub(super) fn check_connects_in_ttft(e: &Evidence<'_>) -> Option<Caveat> {
    let ttft = e.key.ttft_p50_ms?;
    let connect = e.tally.connect_ms;
    let (n, p50) = (e.requests.connects, connect.p50?);
    let share = n as f64 / e.requests.scheduled.max(1) as f64;
    if share <= 0.01 || p50 <= harmless_error_ms(e) {
        return None;
    }
    let is_meant = e.plan.target.connections == ConnectionPolicy::PerRequest;
    let is_large = share >= 0.1 && p50 >= 0.1 * ttft;
    let severity = if is_large && !is_meant { Severity::Warn } else { Severity::Info };
    let message = format!(
        "{:.1} % of the measured requests opened a connection first, which took {p50:.1} ms at \
         the median: that time is part of their TTFT (median {ttft:.1} ms)",
        share * 100.0
    );
    let advice = if is_meant {
        "--connections per-request causes this; --connections reuse avoids it"
    } else if e.plan.load.warmup.is_none() {
        "add a --warmup, so that connections are open when the window begins"
    } else if e.requests.reconnects > 0 {
        "the server closes idle connections: raise its keep-alive time"
    } else {
        "warm up with the full load (a longer --warmup), so that enough connections are open; \
         `ttft_sent` counts from the first byte sent"
    };
    Some(Caveat::new(CaveatCode::ConnectInTtft, severity, message).advise(advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbors_depend_on_each_other_above_one_half() {
        assert_eq!(high_lag1(Some(0.51)), Some(0.51));
        assert_eq!([high_lag1(Some(0.5)), high_lag1(Some(-0.9)), high_lag1(None)], [None; 3]);
    }
}
