//! What the requests of a file say about its tails, its beginning and its kinds of requests.

use goodput_model::{Nanos, Reported, ReportedMetric, ReportedMode, ReportedRequest, SourceTool};

use super::Source::MeasurementTraps;
use super::words::{mean_e2e_s, number_text, percent_text};
use super::{Check, CheckFinding};
use crate::modes::find_two_modes;
use crate::sample::Sample;
use crate::series::SeriesTally;
use crate::steady::judge_latencies;
use crate::summary::steady::{SeriesCut, Steadiness, SteadyAnswer};

/// Fewer requests say nothing about the course of a run.
const FEWEST: usize = 50;
/// Of fewer the p95 and the p99 may be one request.
const FEWEST_CUT: usize = 200;

pub(super) const CHECKS: [Check; 5] = [
    Check::new(MeasurementTraps, "tail_interval", "interval of p99 TTFT", check_tail_interval),
    Check::new(MeasurementTraps, "cold_requests", "slow first requests", check_cold_requests),
    Check::new(MeasurementTraps, "latency_trend", "trend in latencies", check_latency_trend),
    Check::new(MeasurementTraps, "clipped_tail", "tail not cut off", check_clipped_tail),
    Check::new(MeasurementTraps, "two_groups", "groups of latencies", check_two_groups),
];

/// A latency of the good requests, in order of sending where the file says it, else in its own.
fn latency_in_order(run: &Reported, of: fn(&ReportedRequest) -> Option<f64>) -> Vec<f64> {
    let good = run.details.iter().flatten().filter(|request| !request.is_failed);
    let mut timed: Vec<(f64, f64)> = good
        .enumerate()
        .filter_map(|(place, request)| {
            let value = of(request).filter(|value| value.is_finite())?;
            Some((request.start_s.unwrap_or(place as f64), value))
        })
        .collect();
    timed.sort_by(|a, b| a.0.total_cmp(&b.0));
    timed.into_iter().map(|(_, value)| value).collect()
}

fn ttft_in_order(run: &Reported) -> Option<Vec<f64>> {
    Some(latency_in_order(run, |request| request.ttft_ms)).filter(|values| values.len() >= FEWEST)
}

fn check_tail_interval(run: &Reported) -> Option<CheckFinding> {
    let values = ttft_in_order(run)?;
    let found = Sample::from_series(&values).estimate(99.0);
    let (n, value) = (values.len(), number_text(found.value?));
    let worth = found.n_eff.map_or(n as f64, |n_eff| n_eff.min(n as f64));
    Some(match found.low.zip(found.high) {
        Some((low, high)) => CheckFinding::ok(format!(
            "{value} ms, 95 % interval {} to {} ms from {n} requests worth {worth:.0} independent ones",
            number_text(low),
            number_text(high)
        )),
        None => CheckFinding::note(
            format!(
                "{value} ms from {n} requests that are worth {worth:.0} independent ones: too few \
                 for an interval"
            ),
            "take p50 and p90, or measure longer",
        ),
    })
}

/// When each good request was sent, in seconds since the first; evenly over the run where the file
/// has only their order.
fn good_send_times(run: &Reported) -> Option<Vec<(f64, &ReportedRequest)>> {
    let good = run.details.iter().flatten().filter(|request| !request.is_failed);
    let good: Vec<_> = good.filter(|request| request.ttft_ms.is_some()).collect();
    let starts: Option<Vec<f64>> =
        good.iter().map(|request| request.start_s.filter(|start| start.is_finite())).collect();
    let evenly = || {
        let span = run.duration_s? - mean_e2e_s(run).unwrap_or(0.0);
        let step = span.max(0.0) / good.len().max(1) as f64;
        Some((0..good.len()).map(|place| place as f64 * step).collect())
    };
    let starts: Vec<f64> = starts.or_else(evenly)?;
    let first = starts.iter().copied().fold(f64::INFINITY, f64::min);
    let mut sent: Vec<_> = starts.iter().map(|start| start - first).zip(good).collect();
    sent.sort_by(|a, b| a.0.total_cmp(&b.0));
    (sent.len() >= FEWEST).then_some(sent)
}

/// The run's own judgement of its course, by TTFT and TPOT; none if it is too short for one, or
/// where all came at once and each waits for those before it.
fn judge_course(run: &Reported) -> Option<Steadiness> {
    let sent = good_send_times(run).filter(|_| run.load.mode != ReportedMode::Burst)?;
    let mut tally = SeriesTally::default();
    for (at, request) in &sent {
        tally.add_reported(Nanos::from_secs_f64(*at), request);
    }
    let (last, _) = sent.last()?;
    let found = judge_latencies(&tally.series_between(Nanos::ZERO, Nanos::from_secs_f64(*last)));
    (!found.cut.series.is_empty()).then_some(found)
}

fn check_cold_requests(run: &Reported) -> Option<CheckFinding> {
    let cut = judge_course(run)?.cut;
    let is_cold = |one: &&SeriesCut| one.cut_s > 0.0 && !one.is_stuck() && one.difference() > 0.0;
    let cold: Vec<_> = cut.series.iter().filter(|(_, one)| is_cold(one)).collect();
    let Some(seconds) = cold.iter().map(|(_, one)| one.cut_s).reduce(f64::max) else {
        return Some(CheckFinding::ok(format!(
            "the first requests are like the rest (MSER-5 would cut {} s, none of it clearly \
             slower)",
            number_text(cut.asked_s)
        )));
    };
    let figures: Vec<_> = cold
        .iter()
        .map(|(name, one)| {
            let name = name.to_uppercase();
            format!("{name} is {} ms, then {} ms", number_text(one.before), number_text(one.after))
        })
        .collect();
    let n = good_send_times(run)?.iter().filter(|(at, _)| *at < seconds).count();
    Some(CheckFinding::doubtful(
        format!(
            "in the first {} s ({n} requests) {}: a cold start is in the figures",
            number_text(seconds),
            figures.join(", ")
        ),
        "warm the server up with requests of the measured shape, and leave them out",
    ))
}

fn check_latency_trend(run: &Reported) -> Option<CheckFinding> {
    let Steadiness { state, trend, shift, .. } = judge_course(run)?;
    let trend = trend?;
    let line = format!(
        "{} changes by {} from first to last request (Mann–Kendall, p {:.4})",
        trend.metric.to_uppercase(),
        percent_text(trend.drift_share),
        trend.p
    );
    let said = match (state, shift) {
        (SteadyAnswer::Shifted, Some(shift)) => format!(
            "{} is {} ms up to {} s and {} ms from there on (Pettitt, p {:.4})",
            shift.metric.to_uppercase(),
            number_text(shift.before),
            number_text(shift.at_s),
            number_text(shift.after),
            shift.p
        ),
        (SteadyAnswer::NeverSteady, _) => format!("{line} and never settles"),
        (SteadyAnswer::Drifting, _) => line,
        _ => {
            return Some(CheckFinding::ok(format!(
                "{line}, within the chance variation of a queue"
            )));
        }
    };
    Some(CheckFinding::doubtful(
        format!("{said}: the server did not keep up, or changed its state"),
        "the latencies depend on the length of the run; offer less load, or measure longer",
    ))
}

/// Whether the slowest of this many are one and the same figure, by the requests or by the percentiles.
fn shared_tail_value(values: &mut [f64], metric: Option<&ReportedMetric>, n: u64) -> Option<f64> {
    if values.len() >= FEWEST_CUT {
        values.sort_by(f64::total_cmp);
        let longest = *values.last()?;
        let many = (values.len() / 100).max(3);
        let at_end = values.iter().rev().take_while(|value| **value == longest).count();
        let differ = values.chunk_by(|a, b| a == b).count();
        // A coarse clock makes equals everywhere.
        return (at_end >= many && differ > values.len() / 2).then_some(longest);
    }
    let metric = metric.filter(|_| n >= FEWEST_CUT as u64)?;
    let (p50, p95) = (metric.percentile(50.0)?, metric.percentile(95.0)?);
    let is_end = metric.percentile(99.0)? == p95 && metric.max.is_none_or(|max| max == p95);
    (is_end && p95 > 1.1 * p50).then_some(p95)
}

fn check_clipped_tail(run: &Reported) -> Option<CheckFinding> {
    // A simulated server of ours may well be that regular.
    let n = run.ok.filter(|_| run.tool != SourceTool::Goodput)?;
    let kinds: [(&str, Vec<f64>); 2] = [
        ("ttft", latency_in_order(run, |request| request.ttft_ms)),
        ("e2e", latency_in_order(run, |request| request.e2e_ms)),
    ];
    let found = kinds.into_iter().find_map(|(name, mut values)| {
        Some((name, shared_tail_value(&mut values, run.metrics.get(name), n)?))
    });
    found.map(|(name, value)| {
        CheckFinding::doubtful(
            format!(
                "the slowest requests all have {} of exactly {} ms: the tail was cut there",
                name.to_uppercase(),
                number_text(value)
            ),
            "request the figures without the cut; percentiles beyond it are unknown",
        )
    })
}

fn check_two_groups(run: &Reported) -> Option<CheckFinding> {
    let kinds: [(&str, Vec<f64>); 2] = [
        ("TTFT", latency_in_order(run, |request| request.ttft_ms)),
        ("E2E", latency_in_order(run, |request| request.e2e_ms)),
    ];
    if kinds.iter().all(|(_, values)| values.len() < FEWEST) {
        return None;
    }
    for (name, mut values) in kinds {
        values.sort_by(f64::total_cmp);
        if let Some(modes) = find_two_modes(&values) {
            return Some(CheckFinding::note(
                format!(
                    "{name} has two groups: {} around {} ms, {} around {} ms; one percentile over both \
                     describes neither",
                    percent_text(modes.low_share),
                    number_text(modes.low_median),
                    percent_text(1.0 - modes.low_share),
                    number_text(modes.high_median)
                ),
                "report each kind of request separately",
            ));
        }
    }
    Some(CheckFinding::ok("one group of TTFT and of E2E"))
}
