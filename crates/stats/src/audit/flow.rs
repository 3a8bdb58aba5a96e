//! Requests, time, and requests in flight: each follows from the other two.

use goodput_model::{Reported, ReportedMode, ReportedRequest, SourceTool};

use super::Source::Arithmetic;
use super::arithmetic::{ADVICE, is_above, rounding_tolerance};
use super::words::{mean_e2e_s, number_text, requests_sent};
use super::{Check, CheckFinding};

/// A mean E2E that is put together from TTFT and TPOT.
const BUILT: f64 = 0.25;
/// Requests that end within less of the duration than this leave a part of it unexplained.
const FILLED: f64 = 0.8;
/// Fewer requests may well begin late or end early.
const FEWEST: usize = 100;

pub(super) const CHECKS: [Check; 3] = [
    Check::new(Arithmetic, "littles_law", "Little's law", check_littles_law),
    Check::new(Arithmetic, "within_duration", "requests inside the run", check_within_duration),
    Check::new(Arithmetic, "sample_counts", "requests behind figures", check_sample_counts),
];

/// Requests in flight on average, by throughput and latency, and by how much that may be off.
fn mean_in_flight(run: &Reported) -> Option<(f64, f64)> {
    let counted = run.ok.zip(run.duration_s.filter(|seconds| *seconds > 0.0));
    let rate = counted.map(|(ok, seconds)| ok as f64 / seconds).or(run.requests_per_s)?;
    let stated = run.metrics.get("e2e").and_then(|metric| metric.mean).map(|ms| ms / 1e3);
    match stated {
        Some(seconds) => Some((rate * seconds, rounding_tolerance(run))),
        None => Some((rate * mean_e2e_s(run)?, BUILT)),
    }
}

fn check_littles_law(run: &Reported) -> Option<CheckFinding> {
    if run.tool == SourceTool::Goodput {
        return None;
    }
    let (peak, mean) = (run.load.peak_concurrency, run.load.mean_concurrency);
    let mut reasons = Vec::new();
    if let Some((peak, sent)) = peak.zip(requests_sent(run))
        && is_above(peak, sent as f64)
    {
        reasons.push(format!(
            "the result states {} requests in flight at once, but only {sent} were sent",
            number_text(peak)
        ));
    }
    let found = mean_in_flight(run);
    if let Some((busy, slack)) = found {
        let said = format!("throughput × E2E is {} requests in flight", number_text(busy));
        if let Some(peak) = peak.filter(|peak| busy > peak * (1.0 + slack)) {
            reasons
                .push(format!("{said} on average, above the stated peak of {}", number_text(peak)));
        }
        if let Some(mean) = mean.filter(|mean| (mean - busy).abs() > slack * mean.max(busy)) {
            reasons.push(format!("{said}, but {} are stated", number_text(mean)));
        }
    }
    if let Some((peak, (least, most))) = peak.zip(most_in_flight(run))
        && !(least - 1.0..=most + 1.0).contains(&peak)
    {
        reasons.push(format!(
            "the result states {} requests in flight at once, but its requests show {least} ({most} \
             within one second)",
            number_text(peak)
        ));
    }
    if !reasons.is_empty() {
        return Some(CheckFinding::wrong(reasons.join("; "), ADVICE));
    }
    check_users(run).or_else(|| {
        let (busy, _) = found.filter(|_| peak.or(mean).is_some())?;
        Some(CheckFinding::ok(format!("{} requests in flight on average", number_text(busy))))
    })
}

/// Against the users of a closed loop, or a cap on an open one.
fn check_users(run: &Reported) -> Option<CheckFinding> {
    let users = run.load.concurrency.filter(|n| *n > 0)? as f64;
    let busy = run.requests_per_s? * mean_e2e_s(run)?;
    if run.load.mode != ReportedMode::Closed {
        return (busy > 1.05 * users).then(|| {
            let said = format!("{} requests in flight on average", number_text(busy));
            CheckFinding::wrong(
                format!("{said}, although no more than {users} were allowed"),
                ADVICE,
            )
        });
    }
    let n = run.ok? as f64;
    let said = format!("{} of {users} users were waiting on average", number_text(busy));
    Some(match busy / users {
        share if share > 1.05 => CheckFinding::wrong(
            format!("{said}: throughput times latency is more than the load allows"),
            ADVICE,
        ),
        share if share < 0.9 && n >= 20.0 * users => CheckFinding::doubtful(
            format!("{said}: the client did not keep its users busy"),
            "check the client's CPU; the server saw less load than stated",
        ),
        _ => CheckFinding::ok(said),
    })
}

/// Most requests in flight by the requests themselves: at one instant, and in any part of one second,
/// which vLLM counts; none for tools that count otherwise.
fn most_in_flight(run: &Reported) -> Option<(f64, f64)> {
    let is_vllm = matches!(run.tool, SourceTool::VllmPython | SourceTool::VllmRust);
    let times = send_and_end_times(run).filter(|_| is_vllm)?;
    let most = |longer: f64| {
        let changes = times.iter().flat_map(|(start, end)| [(*start, 1), (end + longer, -1)]);
        let mut changes: Vec<(f64, i64)> = changes.collect();
        // An end makes room before a start takes it.
        changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let under_way = changes.iter().scan(0, |now, (_, change)| {
            *now += change;
            Some(*now)
        });
        under_way.max().unwrap_or(0) as f64
    };
    Some((most(0.0), most(1.0)))
}

/// From the first send to the last answer.
fn request_span_s(run: &Reported) -> Option<f64> {
    let (first, last) = send_and_end_times(run)?
        .into_iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (s, e)| (a.min(s), b.max(e)));
    (last > first).then_some(last - first)
}

/// Send and end of each completed request, where all of them are in the file.
pub(super) fn send_and_end_times(run: &Reported) -> Option<Vec<(f64, f64)>> {
    let good: Vec<_> = run.details.as_ref()?.iter().filter(|r| !r.is_failed).collect();
    if run.ok.is_some_and(|ok| ok != good.len() as u64) {
        return None;
    }
    let times = |r: &&ReportedRequest| Some((r.start_s?, r.start_s? + r.total_ms()? / 1e3));
    let times: Option<Vec<(f64, f64)>> = good.iter().map(times).collect();
    let is_finite = |(start, end): &(f64, f64)| start.is_finite() && end.is_finite();
    Some(times?.into_iter().filter(is_finite).collect())
}

fn check_within_duration(run: &Reported) -> Option<CheckFinding> {
    // Ours follows requests beyond its window, and GuideLLM leaves its warm-up out of the duration.
    let is_apart = run.tool == SourceTool::Guidellm && run.warmup.seconds.is_some_and(|s| s > 0.0);
    if run.tool == SourceTool::Goodput || is_apart {
        return None;
    }
    let duration = run.duration_s.filter(|seconds| *seconds > 0.0)?;
    let most = duration * (1.0 + rounding_tolerance(run));
    let mut reasons = Vec::new();
    for name in ["ttft", "e2e"] {
        let Some(metric) = run.metrics.get(name) else { continue };
        let values = metric.percentiles.iter().map(|(_, value)| *value);
        let longest = values.chain(metric.max).chain(metric.median).reduce(f64::max);
        if let Some(longest) = longest.map(|ms| ms / 1e3).filter(|seconds| *seconds > most) {
            let name = name.to_uppercase();
            reasons.push(format!(
                "{name} of {} s in a run of {} s",
                number_text(longest),
                number_text(duration)
            ));
        }
    }
    let span = request_span_s(run);
    let said = |span: f64| {
        format!(
            "{} s from the first send to the last answer, {} s stated",
            number_text(span),
            number_text(duration)
        )
    };
    if let Some(span) = span.filter(|span| *span > most) {
        reasons.push(format!("{}: every rate is too high", said(span)));
    }
    if !reasons.is_empty() {
        return Some(CheckFinding::wrong(reasons.join("; "), ADVICE));
    }
    let n = run.details.as_ref().map_or(0, Vec::len);
    Some(match span {
        Some(span) if span < FILLED * duration && run.failed == Some(0) && n >= FEWEST => {
            CheckFinding::doubtful(
                format!("{}: every rate is too low", said(span)),
                "find out what the client did in the rest of the time",
            )
        }
        Some(span) => CheckFinding::ok(said(span)),
        None if run.metrics.contains_key("e2e") => CheckFinding::ok(format!(
            "no latency is longer than the {} s of the run",
            number_text(duration)
        )),
        None => return None,
    })
}

/// A figure that leaves requests out says nothing about those, and they may be the slowest.
fn check_sample_counts(run: &Reported) -> Option<CheckFinding> {
    let ok = run.ok.filter(|_| run.tool != SourceTool::Goodput)?;
    let mut compared = 0;
    let mut short = Vec::new();
    // Answers of one token have no TPOT; GuideLLM counts tokens there.
    let has_pace = run.output_lengths.is_some_and(|range| range.min >= 2.0);
    let names = if has_pace && run.tool != SourceTool::Guidellm {
        &["ttft", "e2e", "tpot"][..]
    } else {
        &["ttft", "e2e"]
    };
    for name in names {
        let Some(n) = run.metrics.get(*name).and_then(|metric| metric.n) else { continue };
        compared += 1;
        let said = format!("{} covers {n} requests, but {ok} completed", name.to_uppercase());
        if n > ok {
            return Some(CheckFinding::wrong(said, ADVICE));
        }
        if n < ok {
            short.push(said);
        }
    }
    (compared > 0).then(|| {
        if short.is_empty() {
            CheckFinding::ok(format!("every figure covers all {ok} requests"))
        } else {
            CheckFinding::doubtful(
                format!("{}: the missing ones may be the slowest", short.join("; ")),
                "find out which requests are missing, and why",
            )
        }
    })
}
