//! What the requests of a file say about its tails, its beginning and its kinds of requests.

use goodput_model::{Reported, ReportedRequest};

use super::words::{number, percent};
use super::{Check, Finding, Source};
use crate::modes::two_modes;
use crate::sample::Sample;
use crate::steady::{MOST_POINTS, mann_kendall, median, mser5, theil_sen, thin};

/// Fewer requests say nothing about the course of a run.
const FEWEST: usize = 50;
/// A beginning that is so many times as slow as the rest is a cold start.
const COLD: f64 = 1.5;
/// A trend that chance makes less often than this, and that changes so much of the median.
const ALPHA: f64 = 0.002;
const DRIFT: f64 = 0.2;

pub(super) const CHECKS: [Check; 4] = [
    Check {
        code: "tail_interval",
        title: "how sure p99 TTFT is",
        source: Source::MeasurementTraps,
        run: tail_interval,
    },
    Check {
        code: "cold_requests",
        title: "slow first requests",
        source: Source::MeasurementTraps,
        run: cold_requests,
    },
    Check {
        code: "latency_trend",
        title: "trend in TTFT",
        source: Source::MeasurementTraps,
        run: latency_trend,
    },
    Check {
        code: "two_groups",
        title: "groups of latencies",
        source: Source::MeasurementTraps,
        run: two_groups,
    },
];

/// A latency of the good requests, in order of sending where the file says it, else in its own.
fn in_order(run: &Reported, of: fn(&ReportedRequest) -> Option<f64>) -> Vec<f64> {
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

fn ttft(run: &Reported) -> Option<Vec<f64>> {
    Some(in_order(run, |request| request.ttft_ms)).filter(|values| values.len() >= FEWEST)
}

fn tail_interval(run: &Reported) -> Option<Finding> {
    let values = ttft(run)?;
    let found = Sample::from_series(&values).estimate(99.0);
    let (n, value) = (values.len(), number(found.value?));
    let worth = found.n_eff.map_or(n as f64, |n_eff| n_eff.min(n as f64));
    Some(match found.low.zip(found.high) {
        Some((low, high)) => Finding::ok(format!(
            "{value} ms, 95 % interval {} to {} ms from {n} requests worth {worth:.0} independent ones",
            number(low),
            number(high)
        )),
        None => Finding::note(
            format!(
                "{value} ms from {n} requests that are worth {worth:.0} independent ones: no interval \
                 can be given"
            ),
            "take p50 and p90, or measure longer",
        ),
    })
}

fn cold_requests(run: &Reported) -> Option<Finding> {
    let values = ttft(run)?;
    let cut = mser5(&values)?.cut;
    let (before, after) = values.split_at(cut.min(values.len()));
    let Some((slow, usual)) = median(before).zip(median(after)) else {
        return Some(Finding::ok("the first requests are like the rest (MSER-5 cuts none)"));
    };
    Some(if usual > 0.0 && slow >= COLD * usual {
        Finding::doubtful(
            format!(
                "the first {cut} requests have a median TTFT of {} ms, the rest of {} ms: a cold start is \
                 in the figures",
                number(slow),
                number(usual)
            ),
            "warm the server up with requests of the measured shape, and leave them out",
        )
    } else {
        Finding::ok(format!("MSER-5 cuts {cut} requests, which are about as fast as the rest"))
    })
}

fn latency_trend(run: &Reported) -> Option<Finding> {
    let values = ttft(run)?;
    let (blocks, _) = thin(&values, MOST_POINTS);
    let (test, slope) = (mann_kendall(&blocks)?, theil_sen(&blocks)?);
    let share = slope * blocks.len().saturating_sub(1) as f64 / median(&blocks)?;
    let said =
        format!("{} from first to last request (Mann–Kendall, p {:.4})", percent(share), test.p);
    Some(if test.p < ALPHA && share >= DRIFT {
        Finding::doubtful(
            format!("TTFT grows by {said}: the server did not keep up, or was not steady"),
            "the latencies depend on how long the run was; offer less, or measure longer",
        )
    } else {
        Finding::ok(format!("TTFT changes by {said}"))
    })
}

fn two_groups(run: &Reported) -> Option<Finding> {
    let kinds: [(&str, Vec<f64>); 2] = [
        ("TTFT", in_order(run, |request| request.ttft_ms)),
        ("E2E", in_order(run, |request| request.e2e_ms)),
    ];
    if kinds.iter().all(|(_, values)| values.len() < FEWEST) {
        return None;
    }
    for (name, mut values) in kinds {
        values.sort_by(f64::total_cmp);
        if let Some(modes) = two_modes(&values) {
            return Some(Finding::note(
                format!(
                    "{name} has two groups: {} around {} ms, {} around {} ms; one percentile over both \
                     describes neither",
                    percent(modes.low_share),
                    number(modes.low_median),
                    percent(1.0 - modes.low_share),
                    number(modes.high_median)
                ),
                "report each kind of request by itself",
            ));
        }
    }
    Some(Finding::ok("one group of TTFT and of E2E"))
}
