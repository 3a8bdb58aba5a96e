//! Figures of one file that must agree with each other.

use goodput_model::{Reported, ReportedMetric, SourceTool};

use super::Source::Arithmetic;
use super::words::{duration_s, number_text};
use super::{Check, CheckFinding};

/// Rounding of what is printed with few digits.
const ROUNDING: f64 = 1e-6;
/// Rates are quotients of figures that stand in the same file.
const RATE: f64 = 0.005;
/// GuideLLM's are weighted means over time.
const WEIGHTED_RATE: f64 = 0.05;
pub(super) const ADVICE: &str =
    "do not use this file: it was edited, damaged, or written by a broken tool";

pub(super) const CHECKS: [Check; 9] = [
    Check::new(Arithmetic, "percentile_order", "percentiles rise", check_percentile_order),
    Check::new(Arithmetic, "mean_in_range", "mean fits its percentiles", check_mean_in_range),
    Check::new(Arithmetic, "latency_sign", "latencies above zero", check_latency_sign),
    Check::new(Arithmetic, "ttft_below_e2e", "TTFT below E2E", check_ttft_below_e2e),
    Check::new(Arithmetic, "request_sum", "ok + failed = sent", check_request_sum),
    Check::new(Arithmetic, "request_rate", "requests / duration", check_request_rate),
    Check::new(Arithmetic, "token_rate", "tokens / duration", check_token_rate),
    Check::new(Arithmetic, "stated_twice", "figures stated twice", check_stated_twice),
    Check::new(Arithmetic, "not_finite", "values that are not numbers", check_finite),
];

fn reported_metrics(run: &Reported) -> impl Iterator<Item = (&str, &ReportedMetric)> {
    run.metrics.iter().map(|(name, metric)| (name.as_str(), metric))
}

/// Wrong with every reason, or fine with what was looked at.
fn judge_reasons(reasons: &[String], fine: impl Into<String>) -> CheckFinding {
    if reasons.is_empty() {
        CheckFinding::ok(fine)
    } else {
        CheckFinding::wrong(reasons.join("; "), ADVICE)
    }
}

pub(super) fn is_above(a: f64, b: f64) -> bool {
    a > b + ROUNDING * a.abs().max(b.abs())
}

fn check_percentile_order(run: &Reported) -> Option<CheckFinding> {
    let mut reasons = Vec::new();
    let mut compared = 0;
    for (name, metric) in reported_metrics(run) {
        let mut chain: Vec<(String, f64)> = Vec::new();
        chain.extend(metric.min.map(|min| ("min".to_owned(), min)));
        let mut stated = metric.percentiles.clone();
        if let Some(median) = metric.median {
            stated.push((50.0, median));
        }
        stated.sort_by(|a, b| a.0.total_cmp(&b.0));
        chain.extend(stated.iter().map(|(percent, value)| (format!("p{percent}"), *value)));
        chain.extend(metric.max.map(|max| ("max".to_owned(), max)));
        for pair in chain.windows(2) {
            let [(low, a), (high, b)] = pair else { continue };
            compared += 1;
            let is_same = low == high && is_above(*b, *a);
            if is_above(*a, *b) || is_same {
                let sign = if is_same { "differs from" } else { "is above" };
                reasons.push(format!(
                    "{name}: {low} {} {sign} {high} {}",
                    number_text(*a),
                    number_text(*b)
                ));
            }
        }
    }
    (compared > 0).then(|| judge_reasons(&reasons, format!("{compared} pairs in order")))
}

fn check_mean_in_range(run: &Reported) -> Option<CheckFinding> {
    let (mut reasons, mut doubts) = (Vec::new(), Vec::new());
    let mut compared = 0;
    for (name, metric) in reported_metrics(run) {
        let Some(mean) = metric.mean else { continue };
        compared += 1;
        if metric.std.is_some_and(|std| std < 0.0) {
            reasons.push(format!("{name}: a standard deviation below zero"));
        }
        // Our mean holds failures that took longer than it; the other figures do not.
        if run.tool == SourceTool::Goodput && run.failed != Some(0) {
            continue;
        }
        if metric.min.is_some_and(|min| is_above(min, mean))
            || metric.max.is_some_and(|max| is_above(mean, max))
        {
            reasons.push(format!("{name}: mean {} outside min and max", number_text(mean)));
        }
        let n = metric.n.or(run.ok.filter(|_| name != "itl"));
        reasons.extend(mean_beyond_deviation(name, metric, mean, n));
        reasons.extend(mean_beyond_percentiles(name, metric, mean, n));
        reasons.extend(mean_beyond_range(name, metric, mean, n));
        // Gaps come in bunches: of them one in a hundred may well make most of the time.
        let p99 = metric.percentile(99.0).filter(|p99| name != "itl" && is_above(mean, *p99));
        doubts.extend(p99.map(|p99| {
            format!(
                "{name}: mean {} above p99 {}, so the slowest hundredth would take {} ms or more on average",
                number_text(mean),
                number_text(p99),
                number_text(mean + 99.0 * (mean - p99).max(0.0))
            )
        }));
    }
    let advice = "check the slowest requests: a few determine the mean, or the figures come from several \
         runs";
    (compared > 0).then(|| {
        if reasons.is_empty() && !doubts.is_empty() {
            CheckFinding::doubtful(doubts.join("; "), advice)
        } else {
            judge_reasons(&reasons, format!("{compared} means"))
        }
    })
}

/// For every distribution the quantile of a share q lies at most sqrt(q/(1−q)) standard deviations
/// above the mean and sqrt((1−q)/q) below it.
fn mean_beyond_deviation(
    name: &str,
    metric: &ReportedMetric,
    mean: f64,
    n: Option<u64>,
) -> Option<String> {
    let std = metric.std.filter(|std| *std >= 0.0)?;
    let n = n.map_or(f64::INFINITY, |n| n as f64);
    if n < 10.0 {
        return None;
    }
    let median = metric.median.map(|median| (50.0, median));
    let stated = metric.percentiles.iter().copied().chain(median);
    let too_far = |(percent, value): &(f64, f64)| {
        // Ranks of the neighbors that tools may take, so that small samples are not accused.
        let share = percent / 100.0;
        let (below, above) = (share - 1.0 / n, (share + 1.0 / n).min(1.0 - 1.0 / n));
        let most = if value < &mean {
            if below <= 0.0 { n.sqrt() } else { ((1.0 - below) / below).sqrt() }
        } else {
            (above / (1.0 - above)).sqrt()
        };
        is_above((value - mean).abs(), std * most * 1.05 + ROUNDING * mean.abs())
    };
    let (percent, value) = stated.into_iter().find(too_far)?;
    Some(format!(
        "{name}: mean {} and p{percent} {} lie further apart than a standard deviation of {} \
         allows",
        number_text(mean),
        number_text(value),
        number_text(std)
    ))
}

/// Between two percentiles no value lies outside them, which bounds the mean on both sides. Tools take
/// different ranks for a percentile, so a value more or less may be there.
fn mean_beyond_percentiles(
    name: &str,
    metric: &ReportedMetric,
    mean: f64,
    n: Option<u64>,
) -> Option<String> {
    let n = n.filter(|n| *n >= 10)? as f64;
    let median = metric.median.map(|median| (50.0, median));
    let mut steps: Vec<(f64, f64)> = metric.percentiles.iter().copied().chain(median).collect();
    steps.push((0.0, metric.min.unwrap_or(0.0)));
    steps.extend(metric.max.map(|max| (100.0, max)));
    steps.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let (mut least, mut most) = (0.0, 0.0);
    for pair in steps.windows(2) {
        let [(from, low), (to, high)] = pair else { continue };
        // Percentiles that do not rise are told elsewhere.
        if low > high {
            return None;
        }
        (least, most) = (least + (to - from) / 100.0 * low, most + (to - from) / 100.0 * high);
    }
    let (_, first) = steps.first()?;
    let (top, longest) = steps.last()?;
    least += (100.0 - top) / 100.0 * longest;
    let slack = 2.0 * (longest - first) / n + ROUNDING * mean.abs();
    let is_low = mean < least - slack;
    let is_high = metric.max.is_some() && mean > most + slack;
    (is_low || is_high).then(|| {
        let (side, bound) = if is_low { ("below", least) } else { ("above", most) };
        format!(
            "{name}: mean {} {side} the {} that its percentiles allow",
            number_text(mean),
            number_text(bound)
        )
    })
}

/// The variance is at most (max − mean)(mean − min), and at least half of the square of the range over
/// the number of values.
fn mean_beyond_range(
    name: &str,
    metric: &ReportedMetric,
    mean: f64,
    n: Option<u64>,
) -> Option<String> {
    let n = n.filter(|n| *n >= 10)? as f64;
    let std = metric.std.filter(|std| *std >= 0.0)?;
    let (min, max) = metric.min.zip(metric.max)?;
    // Of a sample or of a population.
    let slack = 1.0 + 1.0 / n;
    let most = ((max - mean) * (mean - min)).max(0.0).sqrt();
    let least = (max - min) / (2.0 * n).sqrt();
    let (side, bound) = match () {
        () if is_above(std, most * slack + ROUNDING * mean.abs()) => ("above", most),
        () if is_above(least, std * slack + ROUNDING * mean.abs()) => ("below", least),
        () => return None,
    };
    Some(format!(
        "{name}: a standard deviation of {} {side} the {} that min and max allow",
        number_text(std),
        number_text(bound)
    ))
}

fn check_latency_sign(run: &Reported) -> Option<CheckFinding> {
    let mut reasons = Vec::new();
    for (name, metric) in reported_metrics(run) {
        let values = metric.percentiles.iter().map(|(_, value)| *value);
        let mut all = values.chain(metric.mean).chain(metric.median).chain(metric.min);
        // A gap may be zero if events came in one read; anything else takes time.
        let may_be_zero = matches!(name, "itl" | "tpot");
        if let Some(bad) = all.find(|value| *value < 0.0 || (*value == 0.0 && !may_be_zero)) {
            reasons.push(format!("{name} of {} ms", number_text(bad)));
        }
    }
    if run.duration_s.is_some_and(|seconds| seconds <= 0.0) {
        reasons.push("the duration is not above zero".to_owned());
    }
    (!run.metrics.is_empty()).then(|| judge_reasons(&reasons, "all above zero"))
}

fn check_ttft_below_e2e(run: &Reported) -> Option<CheckFinding> {
    let (ttft, e2e) = (run.metrics.get("ttft")?, run.metrics.get("e2e")?);
    let mut reasons = Vec::new();
    let mut compare = |what: String, pair: Option<(f64, f64)>| {
        if let Some((a, b)) = pair
            && is_above(a, b)
        {
            reasons.push(format!(
                "{what} of TTFT {} ms above that of E2E {} ms",
                number_text(a),
                number_text(b)
            ));
        }
    };
    compare("mean".to_owned(), ttft.mean.zip(e2e.mean));
    for percent in [50.0, 90.0, 95.0, 99.0, 99.9] {
        compare(format!("p{percent}"), ttft.percentile(percent).zip(e2e.percentile(percent)));
    }
    Some(judge_reasons(&reasons, "TTFT is below E2E"))
}

fn check_request_sum(run: &Reported) -> Option<CheckFinding> {
    let (asked, ok) = (run.asked?, run.ok?);
    // AIPerf leaves a count of zero out.
    let failed = run.failed.or((run.tool == SourceTool::Aiperf).then_some(0))?;
    let sum = ok.saturating_add(failed);
    let said = format!("{asked} requested, {sum} accounted for");
    Some(match sum.cmp(&asked) {
        // Those that are missing may have failed.
        std::cmp::Ordering::Less if run.failed.is_none() => return None,
        std::cmp::Ordering::Equal => CheckFinding::ok(said),
        // A dataset may have ended early, or the time; the file does not say.
        std::cmp::Ordering::Less => CheckFinding::doubtful(
            format!("{said}: the file does not say what happened to {} requests", asked - sum),
            "find out whether they were sent",
        ),
        std::cmp::Ordering::Greater => CheckFinding::wrong(said, ADVICE),
    })
}

pub(super) fn rounding_tolerance(run: &Reported) -> f64 {
    match run.tool {
        SourceTool::Guidellm => WEIGHTED_RATE,
        _ => RATE,
    }
}

/// Whether a stated rate is what its parts give; none if a part is missing. Without a duration the
/// rate of the requests stands for it.
fn check_rate(
    run: &Reported,
    what: &str,
    amount: Option<f64>,
    rate: Option<f64>,
) -> Option<String> {
    let (amount, rate) = (amount?, rate?);
    let computed = amount / duration_s(run).filter(|seconds| *seconds > 0.0)?;
    let differs =
        (computed - rate).abs() > rounding_tolerance(run) * computed.abs().max(rate.abs());
    Some(if differs {
        let by = if run.duration_s.is_some() { "duration" } else { "request rate" };
        format!("{} {what} stated, {} by count and {by}", number_text(rate), number_text(computed))
    } else {
        String::new()
    })
}

fn rates_finding(found: &[Option<String>], fine: &str) -> Option<CheckFinding> {
    let known: Vec<_> = found.iter().flatten().collect();
    let reasons: Vec<String> =
        known.iter().filter(|r| !r.is_empty()).map(|r| (*r).clone()).collect();
    (!known.is_empty()).then(|| judge_reasons(&reasons, fine))
}

fn check_request_rate(run: &Reported) -> Option<CheckFinding> {
    // Ours counts completions inside a window, not the requests of the sample.
    if run.tool == SourceTool::Goodput {
        return None;
    }
    let ok = run.ok.filter(|_| run.duration_s.is_some()).map(|ok| ok as f64);
    rates_finding(
        &[check_rate(run, "req/s", ok, run.requests_per_s)],
        "the rate is requests over duration",
    )
}

fn check_token_rate(run: &Reported) -> Option<CheckFinding> {
    if run.tool == SourceTool::Goodput {
        return None;
    }
    let output = run.output_tokens.map(|n| n as f64);
    let total = run.input_tokens.zip(output).map(|(input, output)| input as f64 + output);
    rates_finding(
        &[
            check_rate(run, "output tokens/s", output, run.output_tokens_per_s),
            check_rate(run, "total tokens/s", total, run.total_tokens_per_s),
        ],
        "the rates are tokens over duration",
    )
}

fn check_stated_twice(run: &Reported) -> Option<CheckFinding> {
    (!run.conflicts.is_empty()).then(|| {
        let shown: Vec<_> = run.conflicts.iter().take(4).map(String::as_str).collect();
        let rest = run.conflicts.len() - shown.len();
        let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
        CheckFinding::wrong(format!("{}{more}", shown.join("; ")), ADVICE)
    })
}

fn check_finite(run: &Reported) -> Option<CheckFinding> {
    (run.not_finite > 0).then(|| {
        CheckFinding::doubtful(
            format!("{} values are NaN or infinite: something was divided by zero", run.not_finite),
            "find out which requests they come from",
        )
    })
}
