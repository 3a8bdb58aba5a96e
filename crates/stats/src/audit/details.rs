//! What the requests of a file say about its figures.

use goodput_model::{Nanos, Reported, ReportedMode, ReportedRequest, SourceTool};

use super::Source::{Arithmetic, MeasurementTraps};
use super::phases::tokens_per_gap;
use super::words::{number_text, percent_text};
use super::{Check, CheckFinding};
use crate::kolmogorov::test_exponential_gaps;
use crate::summary::GapTest;

/// Sums of the same numbers in another order.
const SAME: f64 = 1e-6;
/// Gaps below which the test says little, and the chance below which it is believed.
const MIN_GAPS: usize = 100;
const NOT_POISSON: f64 = 0.001;
/// Requests below which copies are not searched for, pairs of equals that are let pass, and how many times
/// those that chance makes.
const FEWEST_COPIES: usize = 20;
const FEW_PAIRS: f64 = 2.0;
const MANY: f64 = 10.0;

pub(super) const CHECKS: [Check; 8] = [
    Check::new(Arithmetic, "recomputed_statistics", "figures recomputed", check_recomputed),
    Check::new(Arithmetic, "recomputed_totals", "totals recomputed", check_totals),
    Check::new(Arithmetic, "request_latencies", "latencies per request", check_latencies),
    Check::new(Arithmetic, "identical_latencies", "latencies differ", check_identical),
    Check::new(Arithmetic, "copied_requests", "requests are distinct", check_copied),
    Check::new(MeasurementTraps, "arrival_gaps", "gaps between sends", check_arrival_gaps),
    Check::new(MeasurementTraps, "coalesced_chunks", "tokens for each event", check_coalesced),
    Check::new(MeasurementTraps, "one_token_answers", "answers of one token", check_one_token),
];

fn good_requests(run: &Reported) -> Option<Vec<&ReportedRequest>> {
    let good: Vec<_> = run.details.as_ref()?.iter().filter(|request| !request.is_failed).collect();
    (!good.is_empty()).then_some(good)
}

/// Samples of a metric as the tool itself takes them; none if it weighs them otherwise.
fn metric_samples(run: &Reported, metric: &str) -> Option<Vec<f64>> {
    let good = good_requests(run)?;
    let flat =
        matches!(run.tool, SourceTool::VllmPython | SourceTool::VllmRust | SourceTool::Sglang);
    let list: Vec<f64> = match metric {
        "ttft" => good.iter().filter_map(|request| request.ttft_ms).collect(),
        "e2e" => good.iter().filter_map(|request| request.e2e_ms).collect(),
        "itl" if flat => good.iter().flat_map(|r| r.gaps_ms.iter().flatten()).copied().collect(),
        "tpot" if flat => good.iter().filter_map(|request| request_tpot(request)).collect(),
        _ => return None,
    };
    (!list.is_empty()).then_some(list)
}

fn request_tpot(request: &ReportedRequest) -> Option<f64> {
    let tokens = request.output_tokens.filter(|n| *n > 1)?;
    let gaps = || request.gaps_ms.as_ref().map(|gaps| gaps.iter().sum::<f64>());
    let decode = request.e2e_ms.zip(request.ttft_ms).map(|(e2e, ttft)| e2e - ttft).or_else(gaps)?;
    Some(decode / (tokens - 1) as f64)
}

/// The percentile between the two neighbors in rank, as NumPy has it by default.
fn linear_percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let rank = (percent / 100.0).clamp(0.0, 1.0) * last as f64;
    let (low, high) = (sorted.get(rank.floor() as usize)?, sorted.get(rank.ceil() as usize)?);
    Some(low + (high - low) * rank.fract())
}

/// The smallest sample that at least this many do not exceed.
fn nearest_rank_percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let rank = (percent / 100.0 * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank.min(sorted.len()).checked_sub(1)?).copied()
}

/// The sample above that, where the rank is a whole number: what a sum of weights that falls short of
/// it by rounding gives.
fn next_rank_percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let index = (percent / 100.0 * sorted.len() as f64).floor() as usize;
    sorted.get(index.min(sorted.len().checked_sub(1)?)).copied()
}

fn is_within_tolerance(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs()) + 1e-9
}

fn check_recomputed(run: &Reported) -> Option<CheckFinding> {
    // A sample of the requests says nothing about figures of all of them.
    let good = good_requests(run)?.len() as u64;
    if run.ok.is_some_and(|ok| ok != good) && run.tool == SourceTool::Guidellm {
        return None;
    }
    let mut reasons = Vec::new();
    let mut compared = 0;
    for (name, metric) in &run.metrics {
        let Some(mut sorted) = metric_samples(run, name) else { continue };
        let tolerance = match name.as_str() {
            // Without the latencies the wait for the last event, which carries no token, is missing.
            "tpot" if metric_samples(run, "e2e").is_none() => 0.05,
            "tpot" => 1e-3,
            _ => SAME,
        };
        sorted.sort_by(f64::total_cmp);
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        let median = metric.median.map(|median| (50.0, median));
        for (q, value) in metric.percentiles.iter().copied().chain(median) {
            compared += 1;
            let ways = [
                linear_percentile(&sorted, q),
                nearest_rank_percentile(&sorted, q),
                next_rank_percentile(&sorted, q),
            ];
            if !ways.iter().flatten().any(|way| is_within_tolerance(*way, value, tolerance)) {
                let found = ways.iter().flatten().next().copied().unwrap_or_default();
                reasons.push(format!(
                    "{name} p{q}: {} ms stated, {} ms by the requests",
                    number_text(value),
                    number_text(found)
                ));
            }
        }
        let squares = sorted.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        // Of a population or of a sample.
        let n = sorted.len() as f64;
        let deviations = [(squares / n).sqrt(), (squares / (n - 1.0).max(1.0)).sqrt()];
        for (what, stated, found) in
            [("mean", metric.mean, &[mean][..]), ("standard deviation", metric.std, &deviations)]
        {
            // What is missing at the end of an answer changes a deviation by more than a mean.
            let is_known = what == "mean" || tolerance == SAME;
            let Some(stated) = stated.filter(|_| is_known) else { continue };
            compared += 1;
            if !found.iter().any(|found| is_within_tolerance(stated, *found, tolerance)) {
                reasons.push(format!(
                    "{name} {what}: {} ms stated, {} ms by the requests",
                    number_text(stated),
                    number_text(found.first().copied().unwrap_or_default())
                ));
            }
        }
    }
    (compared > 0).then(|| {
        if reasons.is_empty() {
            CheckFinding::ok(format!(
                "{compared} figures (mean, deviation, percentiles by linear interpolation or nearest rank) follow \
                 from {good} requests"
            ))
        } else {
            CheckFinding::wrong(reasons.join("; "), "the figures do not match the requests in the \
                                                file; do not use them")
        }
    })
}

fn check_totals(run: &Reported) -> Option<CheckFinding> {
    let all = run.details.as_ref()?;
    // It cuts warm-up and cooldown from its figures, or keeps a sample of the requests.
    if run.tool == SourceTool::Guidellm && run.asked.is_some_and(|asked| asked != all.len() as u64)
    {
        return Some(CheckFinding::ok(format!(
            "the figures cover {} requests, and the file holds {}",
            run.asked.unwrap_or(0),
            all.len()
        )));
    }
    let good = || all.iter().filter(|request| !request.is_failed);
    let mut reasons = Vec::new();
    let mut compare = |what: &str, stated: Option<u64>, found: u64, tolerance: f64| {
        let differs = |stated: &u64| stated.abs_diff(found) as f64 > tolerance * found as f64;
        if let Some(stated) = stated.filter(differs) {
            reasons.push(format!("{what}: {stated} stated, {found} by the requests"));
        }
    };
    compare("requests", run.asked, all.len() as u64, 0.0);
    compare("successes", run.ok, good().count() as u64, 0.0);
    compare("failures", run.failed, (all.len() - good().count()) as u64, 0.0);
    let sum = |length: fn(&ReportedRequest) -> Option<u64>| {
        good().map(length).try_fold(0_u64, |sum, n| n.map(|n| sum.saturating_add(n)))
    };
    if let Some(output) = sum(|request| request.output_tokens) {
        compare("output tokens", run.output_tokens, output, 0.0);
    }
    // Client and server may count the template or not; failures are in the list, not in the total.
    if let Some(input) = sum(|request| request.input_tokens).filter(|_| all.len() == good().count())
    {
        compare("prompt tokens", run.input_tokens, input, 0.01);
    }
    Some(if reasons.is_empty() {
        CheckFinding::ok(format!("{} requests, and their lengths sum to the totals", all.len()))
    } else {
        CheckFinding::wrong(
            reasons.join("; "),
            "the totals do not match the requests in the file; do \
                                            not use them",
        )
    })
}

fn check_latencies(run: &Reported) -> Option<CheckFinding> {
    let good = good_requests(run)?;
    let negative = |request: &&&ReportedRequest| {
        let gaps = request.gaps_ms.iter().flatten();
        let mut all = gaps.copied().chain(request.ttft_ms).chain(request.e2e_ms);
        all.any(|ms| ms < 0.0 || !ms.is_finite())
    };
    let below = |request: &&&ReportedRequest| {
        request.ttft_ms.zip(request.e2e_ms).is_some_and(|(ttft, e2e)| ttft > e2e * (1.0 + SAME))
    };
    let short = |request: &&&ReportedRequest| {
        let gaps: f64 = request.gaps_ms.iter().flatten().sum();
        let parts = request.ttft_ms.map(|ttft| ttft + gaps);
        parts.zip(request.e2e_ms).is_some_and(|(parts, e2e)| parts > e2e * 1.01 + 1.0)
    };
    let counts = [
        (good.iter().filter(negative).count(), "have a negative time"),
        (good.iter().filter(below).count(), "have a TTFT above their E2E"),
        (good.iter().filter(short).count(), "have gaps that sum to more than their E2E"),
    ];
    let reasons: Vec<_> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    Some(if reasons.is_empty() {
        CheckFinding::ok(format!("{} requests in order", good.len()))
    } else {
        let text = format!("of {} successes {}", good.len(), reasons.join(", "));
        CheckFinding::wrong(text, "the client's clock or its accounting is broken")
    })
}

/// All statistics of TTFT that a file without requests states, where they are one figure.
fn single_ttft_value(run: &Reported) -> Option<f64> {
    let ttft = run.metrics.get("ttft").filter(|_| run.tool != SourceTool::Goodput)?;
    let mean = ttft.mean.filter(|_| run.ok.is_some_and(|ok| ok >= 10))?;
    let same = ttft.percentiles.iter().filter(|(_, value)| *value == mean).count();
    let is_one = same > 1 && same == ttft.percentiles.len() && ttft.std.unwrap_or(0.0) == 0.0;
    is_one.then_some(mean)
}

fn check_identical(run: &Reported) -> Option<CheckFinding> {
    if let Some(value) = single_ttft_value(run).filter(|_| run.details.is_none()) {
        return Some(CheckFinding::wrong(
            format!("mean and every percentile of TTFT are {} ms", number_text(value)),
            "no measurement does that; do not use this file",
        ));
    }
    let list = metric_samples(run, "ttft").filter(|list| list.len() >= 10)?;
    let first = *list.first()?;
    Some(if list.iter().all(|value| *value == first) {
        CheckFinding::wrong(
            format!("all {} requests have a TTFT of exactly {} ms", list.len(), number_text(first)),
            "no measurement does that; do not use this file",
        )
    } else {
        CheckFinding::ok("they do")
    })
}

/// Two requests that agree in their TTFT need not agree in anything else: where they do, to the last
/// digit and far more often than equal figures meet by chance, one is a copy of the other.
fn check_copied(run: &Reported) -> Option<CheckFinding> {
    let good: Vec<_> = good_requests(run)?
        .into_iter()
        .filter(|r| r.ttft_ms.is_some_and(|ttft| ttft > 0.0))
        .collect();
    let rest = |r: &ReportedRequest| {
        let gaps = r.gaps_ms.iter().flatten().map(|gap| gap.to_bits()).collect::<Vec<_>>();
        (r.e2e_ms.map(f64::to_bits), gaps, r.input_tokens, r.output_tokens)
    };
    let has_more = |r: &&ReportedRequest| r.e2e_ms.is_some() || r.gaps_ms.is_some();
    if good.len() < FEWEST_COPIES || !good.iter().all(has_more) {
        return None;
    }
    let first: Vec<_> = good.iter().map(|r| r.ttft_ms.map(f64::to_bits)).collect();
    let rest: Vec<_> = good.iter().map(|r| rest(r)).collect();
    let both: Vec<_> = first.iter().zip(&rest).collect();
    let n = good.len() as f64;
    let chance = equal_pairs(&first) * equal_pairs(&rest) / (n * (n - 1.0) / 2.0);
    let (found, copies) = (equal_pairs(&both), repeat_count(&both));
    Some(if found > FEW_PAIRS + MANY * chance {
        CheckFinding::wrong(
            format!(
                "{copies} of {} requests repeat the TTFT, the gaps, the E2E, and the lengths of \
                 another to the last digit: they were copied, and every figure rests on fewer \
                 requests than stated",
                good.len()
            ),
            "do not use this file; measure as many requests as it claims",
        )
    } else {
        CheckFinding::ok("no request repeats another")
    })
}

/// How many of them are equal to one before.
fn repeat_count<T: Ord>(values: &[T]) -> usize {
    let mut sorted: Vec<&T> = values.iter().collect();
    sorted.sort_unstable();
    sorted.windows(2).filter(|pair| pair[0] == pair[1]).count()
}

/// Pairs of equals.
fn equal_pairs<T: Ord>(values: &[T]) -> f64 {
    let mut sorted: Vec<&T> = values.iter().collect();
    sorted.sort_unstable();
    let among = |group: &[&T]| group.len() as f64 * (group.len() as f64 - 1.0) / 2.0;
    sorted.chunk_by(|a, b| a == b).map(among).sum()
}

fn check_arrival_gaps(run: &Reported) -> Option<CheckFinding> {
    let is_open = run.load.mode == ReportedMode::Open;
    if !is_open || run.load.arrivals.as_deref() != Some("poisson") {
        return None;
    }
    let starts = run.details.iter().flatten().filter_map(|request| request.start_s);
    let mut starts: Vec<f64> = starts.filter(|start| start.is_finite()).collect();
    starts.sort_by(f64::total_cmp);
    let (first, last) = (*starts.first()?, *starts.last()?);
    if starts.len() <= MIN_GAPS || last <= first {
        return None;
    }
    // Against the rate that was kept: whether it is the one asked for is another question.
    let instants: Vec<_> = starts.iter().map(|start| Nanos::from_secs_f64(start - first)).collect();
    let rate = (starts.len() - 1) as f64 / (last - first);
    let GapTest { n, distance, p } = test_exponential_gaps(&instants, rate)?;
    let said = format!(
        "{n} gaps, Kolmogorov–Smirnov distance {} from exponential (p {})",
        number_text(distance),
        number_text(p)
    );
    Some(if p < NOT_POISSON {
        CheckFinding::doubtful(
            format!("{said}: requests were not sent as Poisson arrivals"),
            "the server saw different bursts than stated; use a client that keeps its schedule",
        )
    } else {
        CheckFinding::ok(said)
    })
}

fn check_coalesced(run: &Reported) -> Option<CheckFinding> {
    let has_gaps = run.details.iter().flatten().any(|request| request.gaps_ms.is_some());
    if !has_gaps {
        return tokens_per_gap(run).map(|ratio| {
            CheckFinding::doubtful(
                format!(
                    "by E2E, TTFT, and TPOT, ITL is the time of {} tokens: an event carries that \
                     many, or ITL comes from another run",
                    number_text(ratio)
                ),
                "find out what an event carries; compare TPOT instead of ITL",
            )
        });
    }
    let good = good_requests(run)?;
    let counted = || good.iter().filter_map(|r| r.output_tokens.zip(r.gaps_ms.as_ref()));
    let tokens: u64 =
        counted().map(|(tokens, _)| tokens.saturating_sub(1)).fold(0, u64::saturating_add);
    let gaps: u64 = counted().map(|(_, gaps)| gaps.len() as u64).fold(0, u64::saturating_add);
    if tokens == 0 || gaps == 0 {
        return None;
    }
    let ratio = tokens as f64 / gaps as f64;
    let said = format!("{} tokens for each gap between events", number_text(ratio));
    Some(match ratio {
        ratio if ratio > 1.1 => CheckFinding::doubtful(
            format!("{said}: ITL is the time of several tokens"),
            "compare TPOT instead of ITL",
        ),
        ratio if ratio < 0.9 => CheckFinding::note(
            format!("{said}: {} of the events carry no token", percent_text(1.0 - ratio)),
            "compare TPOT instead of ITL",
        ),
        _ => CheckFinding::ok(said),
    })
}

fn check_one_token(run: &Reported) -> Option<CheckFinding> {
    let good = good_requests(run)?;
    let n = good.iter().filter(|request| request.output_tokens == Some(1)).count();
    Some(if n == 0 {
        CheckFinding::ok("none")
    } else {
        CheckFinding::note(
            format!(
                "{n} of {}: they have no TPOT, and count as zero against any limit on it",
                good.len()
            ),
            "leave them out of TPOT and of attainment by TPOT",
        )
    })
}
