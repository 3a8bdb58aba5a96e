//! The sample: percentiles, how many requests stand behind them, for how long, of what lengths.

#![expect(clippy::unnecessary_wraps, reason = "checks have one signature")]

use goodput_model::{LengthRange, Reported, ReportedMetric, SourceTool};

use super::Source::{Checklist, CommonMistakes, MeasurementTraps, ReportContents};
use super::words::{duration_s, number_text, percent_text, requests_sent};
use super::{Check, CheckFinding};

/// Requests below which a p99 is noise, and a p99.9.
const P99_REQUESTS: u64 = 1_000;
const P999_REQUESTS: u64 = 100_000;
const SECONDS: f64 = 60.0;
const LATENCIES: f64 = 5.0;

pub(super) const CHECKS: [Check; 11] = [
    Check::new(Checklist, "tail_percentiles", "p50, p99 and p99.9", check_tail_percentiles),
    Check::new(CommonMistakes, "p99_samples", "samples for p99", check_p99_samples),
    Check::new(CommonMistakes, "p999_samples", "samples for p99.9", check_p999_samples),
    Check::new(ReportContents, "request_count", "number of requests", check_request_count),
    Check::new(Checklist, "duration", "duration", check_long_enough),
    Check::new(
        MeasurementTraps,
        "duration_vs_latency",
        "duration against latency",
        check_duration_vs_latency,
    ),
    Check::new(Checklist, "both_phases", "TTFT and TPOT", check_both_phases),
    Check::new(Checklist, "latency_bound", "throughput under a bound", check_latency_bound),
    Check::new(Checklist, "prompt_lengths", "prompt lengths", check_prompt_lengths),
    Check::new(ReportContents, "output_lengths", "output lengths", check_output_lengths),
    Check::new(CommonMistakes, "repeats", "variance over runs", check_repeats),
];

/// The metrics that a reader needs; one of the two of the decode phase is enough.
fn headline_metrics(run: &Reported) -> [(&'static str, Option<&ReportedMetric>); 3] {
    let get = |name: &str| run.metrics.get(name);
    [("TTFT", get("ttft")), ("TPOT or ITL", get("tpot").or(get("itl"))), ("E2E", get("e2e"))]
}

fn check_tail_percentiles(run: &Reported) -> Option<CheckFinding> {
    let mut lacking = Vec::new();
    for (name, metric) in headline_metrics(run) {
        let Some(metric) = metric else {
            lacking.push(format!("{name} altogether"));
            continue;
        };
        let absent = [50.0, 99.0, 99.9].into_iter().filter(|p| metric.percentile(*p).is_none());
        let absent: Vec<_> = absent.map(|percent| format!("p{percent}")).collect();
        if !absent.is_empty() {
            lacking.push(format!("{} of {name}", absent.join(" and ")));
        }
    }
    Some(if lacking.is_empty() {
        CheckFinding::ok("p50, p99 and p99.9 of TTFT, TPOT and E2E are stated")
    } else {
        let advice = match run.tool {
            SourceTool::VllmPython | SourceTool::VllmRust => {
                "--percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 50,90,99,99.9"
            }
            _ => "state them; a mean hides what the slowest users get",
        };
        CheckFinding::missing(format!("not stated: {}", lacking.join("; ")), advice)
    })
}

fn states_percentile(run: &Reported, percent: f64) -> bool {
    run.metrics.values().any(|metric| metric.percentile(percent).is_some())
}

/// What a percentile says that rests on `n` requests.
fn check_percentile_samples(run: &Reported, percent: f64, needed: u64) -> Option<CheckFinding> {
    if !states_percentile(run, percent) {
        return None;
    }
    let Some(n) = run.ok.or_else(|| requests_sent(run)) else {
        return Some(CheckFinding::missing("the number of requests is not stated", "state it"));
    };
    let beyond = n as f64 * (100.0 - percent) / 100.0;
    let said = format!("p{percent} from {n} requests: {} lie beyond it", number_text(beyond));
    let advice = format!("measure {needed} requests or more, or leave p{percent} out");
    Some(match () {
        () if n >= needed => CheckFinding::ok(said),
        // Ours shows such a figure only with its interval, or says that there is none.
        () if run.tool == SourceTool::Goodput => CheckFinding::note(said, advice),
        () => CheckFinding::doubtful(format!("{said}, so chance decides its value"), advice),
    })
}

fn check_p99_samples(run: &Reported) -> Option<CheckFinding> {
    check_percentile_samples(run, 99.0, P99_REQUESTS)
}

fn check_p999_samples(run: &Reported) -> Option<CheckFinding> {
    check_percentile_samples(run, 99.9, P999_REQUESTS)
}

fn check_request_count(run: &Reported) -> Option<CheckFinding> {
    Some(match requests_sent(run) {
        None => {
            CheckFinding::missing("not stated", "state how many requests were sent and completed")
        }
        Some(0) => CheckFinding::wrong("no request at all", "nothing was measured"),
        Some(n) => CheckFinding::ok(format!("{n} requests")),
    })
}

fn check_long_enough(run: &Reported) -> Option<CheckFinding> {
    let advice = "measure at least 60 s at each load, 10 minutes for a figure to publish";
    Some(match duration_s(run) {
        None => CheckFinding::missing("the duration is not stated", advice),
        Some(seconds) if seconds < SECONDS => CheckFinding::doubtful(
            format!(
                "{} s: too short to show preemption, eviction, or a slow minute",
                number_text(seconds)
            ),
            advice,
        ),
        Some(seconds) => CheckFinding::ok(format!("{} s", number_text(seconds))),
    })
}

fn check_duration_vs_latency(run: &Reported) -> Option<CheckFinding> {
    let seconds = duration_s(run)?;
    let p99 = run.metrics.get("e2e")?.percentile(99.0).filter(|p99| *p99 > 0.0)? / 1e3;
    let said =
        format!("{} s, {} times the p99 of E2E", number_text(seconds), number_text(seconds / p99));
    Some(if seconds < LATENCIES * p99 {
        CheckFinding::doubtful(
            format!("{said}: most of the run is startup and drain"),
            "measure at least five times the p99 of E2E",
        )
    } else {
        CheckFinding::ok(said)
    })
}

fn check_both_phases(run: &Reported) -> Option<CheckFinding> {
    let [(_, ttft), (_, decode), _] = headline_metrics(run);
    Some(match (ttft.is_some(), decode.is_some()) {
        (true, true) => CheckFinding::ok("prefill (TTFT) and decode (TPOT or ITL) are stated"),
        (true, false) => {
            CheckFinding::missing("only TTFT: the decode phase is not stated", "state TPOT")
        }
        (false, true) => {
            CheckFinding::missing("only TPOT: the prefill phase is not stated", "state TTFT")
        }
        (false, false) => CheckFinding::missing("neither TTFT nor TPOT is stated", "state both"),
    })
}

fn check_latency_bound(run: &Reported) -> Option<CheckFinding> {
    if run.metrics.is_empty() {
        return Some(CheckFinding::doubtful(
            "throughput without any latency: any server reaches it by letting users wait",
            "state the latency at this throughput, or the goodput under a bound",
        ));
    }
    let Some(goodput) = &run.goodput else {
        return Some(CheckFinding::missing(
            "no limit on latency: the file does not say how much of the throughput was useful",
            "state an SLO and the goodput under it",
        ));
    };
    let rate = goodput.requests_per_s.map(|rate| format!("{} req/s", number_text(rate)));
    let share = goodput.share.map(percent_text);
    let figure = rate.or(share).unwrap_or_else(|| "no figure".to_owned());
    // Ours counts by scheduled instants, and so against another number of requests.
    let is_ours = run.tool == SourceTool::Goodput;
    let within = is_ours
        || run.requests_per_s.is_none_or(|all| {
            goodput.requests_per_s.is_none_or(|good| good <= all * 1.001 && good >= 0.0)
        });
    Some(match () {
        () if !within => CheckFinding::wrong(
            format!("goodput of {figure} above the throughput it is part of"),
            "do not use these figures",
        ),
        () if goodput.terms.is_empty() => CheckFinding::note(
            format!("goodput of {figure}, but the bound is not stated"),
            "state it",
        ),
        () => CheckFinding::ok(format!("goodput of {figure} under {}", goodput.terms)),
    })
}

fn range_text(range: LengthRange) -> String {
    format!("{} to {} tokens", number_text(range.min), number_text(range.max))
}

fn check_prompt_lengths(run: &Reported) -> Option<CheckFinding> {
    let recorded = run.workload.as_ref().filter(|workload| !workload.contains("random"));
    Some(match run.input_lengths {
        None if recorded.is_some() => {
            CheckFinding::ok(format!("those of {}", recorded.map_or("", String::as_str)))
        }
        None => CheckFinding::missing("not stated", "state the distribution, or save the details"),
        Some(range) if range.min == range.max => CheckFinding::doubtful(
            format!(
                "every prompt has {} tokens: how the server schedules requests of different \
                 lengths stays hidden",
                number_text(range.min)
            ),
            "draw lengths from a distribution, or use recorded traffic",
        ),
        Some(range) => CheckFinding::ok(range_text(range)),
    })
}

fn check_output_lengths(run: &Reported) -> Option<CheckFinding> {
    Some(match run.output_lengths {
        None => CheckFinding::missing("not stated", "state the distribution, or save the details"),
        Some(range) if range.min == range.max => CheckFinding::note(
            format!("every answer has {} tokens", number_text(range.min)),
            "equal answers end together; draw lengths from a distribution",
        ),
        Some(range) => CheckFinding::ok(range_text(range)),
    })
}

fn check_repeats(run: &Reported) -> Option<CheckFinding> {
    Some(match run.repeats {
        Some(n) if n > 1 => CheckFinding::ok(format!("{n} runs")),
        _ => CheckFinding::missing(
            "one run: the variation between runs is unknown",
            "repeat it and state mean and spread over the runs",
        ),
    })
}
