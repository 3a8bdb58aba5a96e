//! Reading and writing conditions.

use goodput_model::{MetricName, safe_excerpt};

use super::{Gate, GateError, Limit};
use crate::compare::{MetricScale, find_metric};

/// More conditions than anybody means.
const MOST: usize = 32;

/// Changes in proportion beyond this are slips of the pen.
const LARGEST: f64 = 100.0;

/// Changes smaller than this cannot be measured.
const SMALLEST: f64 = 1e-9;

const EXAMPLE: &str = "an example: `p99 ttft < +5%, goodput > -3%`";

/// Figures of every request, which have percentiles.
const OF_REQUESTS: [&str; 4] = ["ttft", "tpot", "itl", "e2e"];

/// Figures of a whole run by the words people have for them.
const OF_RUN: [(&str, &[&str]); 9] = [
    ("goodput_rps", &["goodput", "good_requests_per_s"]),
    ("attainment", &["slo_attainment"]),
    ("error_share", &["errors", "error_rate", "failed_share", "failures"]),
    ("requests_per_s", &["rps", "req_per_s", "throughput"]),
    ("output_tokens_per_s", &["output_tps", "output_tok_per_s", "tok_per_s"]),
    ("total_tokens_per_s", &["total_tps", "total_tok_per_s"]),
    ("recounted_tokens_per_s", &["recounted_tps", "recounted_tok_per_s"]),
    ("characters_per_s", &["characters"]),
    ("goodput_tokens_per_s", &["good_tokens_per_s"]),
];

pub(super) fn parse_gates(text: &str) -> Result<Vec<Gate>, GateError> {
    let mut found: Vec<Gate> = Vec::new();
    for (number, piece) in text.split(',').enumerate() {
        let wrong = |what: String| {
            let number = number.saturating_add(1);
            Err(GateError(format!(
                "gate {number}, `{}`: {what}; {EXAMPLE}",
                safe_excerpt(piece.trim())
            )))
        };
        if number >= MOST {
            return wrong(format!("more than {MOST} conditions"));
        }
        let gate = match parse_gate(piece) {
            Ok(gate) => gate,
            Err(what) => return wrong(what),
        };
        let is_same = |other: &&Gate| other.metric == gate.metric && other.limit == gate.limit;
        if let Some(other) = found.iter().find(is_same) {
            return wrong(format!("`{other}` already limits the same figure"));
        }
        found.push(gate);
    }
    Ok(found)
}

fn parse_gate(piece: &str) -> Result<Gate, String> {
    let piece = piece.trim();
    if piece.is_empty() {
        return Err("the condition is empty".to_owned());
    }
    let at = piece.find(['<', '>', '≤', '≥']);
    let (words, rest) = at.and_then(|at| piece.split_at_checked(at)).ok_or_else(|| {
        "expected a metric, `<` or `>`, and a change in percent: `<` or `>` is missing".to_owned()
    })?;
    let mut rest = rest.chars();
    let limit = match rest.next() {
        Some('<' | '≤') => Limit::Below,
        _ => Limit::Above,
    };
    let rest = rest.as_str();
    let name = parse_metric(words)?;
    let metric = find_metric(&name).ok_or_else(|| unknown_metric_error(words))?;
    let change = parse_change(rest.strip_prefix('=').unwrap_or(rest), metric.scale)?;
    Ok(Gate { metric: metric.name, limit, change })
}

fn known_metrics() -> String {
    let of_run: Vec<&str> = OF_RUN.iter().map(|(name, _)| *name).collect();
    format!(
        "expected a percentile of {} (as in `p99 ttft`), or one of {}",
        OF_REQUESTS.join(", "),
        of_run.join(", ")
    )
}

fn unknown_metric_error(words: &str) -> String {
    format!(
        "`{}` is not a figure that can be compared: {}",
        safe_excerpt(words.trim()),
        known_metrics()
    )
}

/// The name of a metric in the words that people have for it, in whatever order.
fn parse_metric(words: &str) -> Result<String, String> {
    let text = words.to_lowercase().replace("/s", " per s").replace("per second", "per s");
    let all = text.split(|c: char| c.is_whitespace() || c == '_' || c == '-');
    let (mut statistic, mut name) = (None, Vec::new());
    for word in all.filter(|word| !word.is_empty()) {
        match parse_statistic(word) {
            Some(read) if statistic.is_none() => statistic = Some(read),
            Some(_) => {
                let words = safe_excerpt(words.trim());
                return Err(format!("`{words}` names two percentiles: expected one of them"));
            }
            None => name.push(word),
        }
    }
    let name = name.join("_");
    let of_run = OF_RUN.iter().find(|(known, others)| *known == name || others.contains(&&*name));
    match (of_run, statistic) {
        (Some((known, _)), None) => Ok((*known).to_owned()),
        (Some((known, _)), Some(statistic)) => Err(format!(
            "`{known}` is one figure of the whole run: expected it without `{statistic}`"
        )),
        (None, Some(statistic)) => {
            // Also by the names that other tools have for it.
            let name = name.parse::<MetricName>().map_or(name, |metric| metric.name().to_owned());
            Ok(format!("{name}_{statistic}"))
        }
        (None, None) if OF_REQUESTS.contains(&&*name) => Err(format!(
            "`{name}` is a figure of every request: expected a percentile of it, as in `p99 {name}`"
        )),
        (None, None) => Err(unknown_metric_error(words)),
    }
}

/// `p99`, `p99.9`, `mean` or `median`, as names have it.
fn parse_statistic(word: &str) -> Option<String> {
    if word == "mean" {
        return Some(word.to_owned());
    }
    if word == "median" {
        return Some("p50".to_owned());
    }
    let digits = word.strip_prefix('p')?;
    let is_number = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let percent: f64 = Some(digits).filter(|_| is_number)?.parse().ok()?;
    (percent > 0.0 && percent < 100.0).then(|| format!("p{percent}"))
}

/// A name as a metric of requests and its statistic.
pub(super) fn split_statistic(name: &str) -> Option<(&str, &str)> {
    let (of, statistic) = name.rsplit_once('_')?;
    (parse_statistic(statistic)? == statistic).then_some((of, statistic))
}

fn parse_change(text: &str, scale: MetricScale) -> Result<f64, String> {
    let text = text.trim();
    let expected = |what: &str| {
        let kind = match scale {
            MetricScale::Ratio => "a change in percent like `+5%` or `-3%`",
            MetricScale::Difference => "a change of the share in points like `+1%` or `-0.5%`",
        };
        Err(format!("`{}` {what}: expected {kind}", safe_excerpt(text.trim())))
    };
    let Some(number) = text.strip_suffix('%') else { return expected("has no `%`") };
    // A minus sign as it comes from a document, and the dash that often stands for one.
    let number = number.trim().replace(['−', '–'], "-").replace("- ", "-").replace("+ ", "+");
    let is_plain = number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '+' | '-'));
    // Shifted in the text: a division would round, and not read back to the same bit.
    let change: Option<f64> =
        Some(number).filter(|_| is_plain).and_then(|number| format!("{number}e-2").parse().ok());
    let Some(change) = change else { return expected("is not a number") };
    if change != 0.0 && change.abs() < SMALLEST {
        return expected("is too small");
    }
    let range = match scale {
        MetricScale::Ratio => -1.0..=LARGEST,
        MetricScale::Difference => -1.0..=1.0,
    };
    if !range.contains(&change) || (scale == MetricScale::Ratio && change <= -1.0) {
        return expected("is out of range");
    }
    // A zero has no sign.
    Ok(if change == 0.0 { 0.0 } else { change })
}

/// A change in percent with its sign. The shortest digits that read back, with the point moved by
/// two places.
pub(super) fn percent_text(change: f64) -> String {
    if change == 0.0 {
        return "0%".to_owned();
    }
    let sign = if change < 0.0 { '-' } else { '+' };
    let scientific = format!("{:e}", change.abs());
    let parts = scientific.split_once('e');
    let Some((digits, Ok(exponent))) = parts.map(|(digits, e)| (digits, e.parse::<i32>())) else {
        return format!("{change}%");
    };
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    // Digits before the point.
    let whole = exponent.saturating_add(3);
    let Ok(places) = usize::try_from(whole) else {
        let zeros = "0".repeat(whole.unsigned_abs() as usize);
        return format!("{sign}0.{zeros}{digits}%");
    };
    match digits.split_at_checked(places) {
        Some(("", part)) => format!("{sign}0.{part}%"),
        Some((all, "")) => format!("{sign}{all}%"),
        Some((all, part)) => format!("{sign}{all}.{part}%"),
        None => format!("{sign}{digits:0<places$}%"),
    }
}
