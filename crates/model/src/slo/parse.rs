//! Reading an [`Slo`].

use std::str::FromStr;

use super::{PRESETS, Slo, SloLimit, SloMetric, SloRelation, SloStatistic, SloTerm};
use crate::{MetricName, safe_excerpt};

/// More terms than anybody means.
const MOST_TERMS: usize = 32;

/// The longest latency that a limit can name: eleven days.
const LONGEST_MS: f64 = 1e9;

/// The shortest: a nanosecond.
const SHORTEST_MS: f64 = 1e-6;

/// The largest rate that a limit can name.
const FASTEST: f64 = 1e12;

/// A term that cannot be parsed, or that contradicts another one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("SLO term {number}, `{term}`: {what}")]
pub struct SloError {
    /// Which term, from 1.
    number: usize,
    /// Its text, short and harmless.
    term: String,
    /// What is wrong with it.
    what: String,
}

impl FromStr for Slo {
    type Err = SloError;
    fn from_str(text: &str) -> Result<Self, SloError> {
        let error = |number: usize, term: &str, what: String| {
            Err(SloError { number: number + 1, term: safe_excerpt(term.trim()), what })
        };
        // With each term: the number of the part it comes from, and whether a preset holds it.
        let mut found: Vec<(SloTerm, usize, bool)> = Vec::new();
        for (number, part) in text.split(',').enumerate() {
            if found.len() >= MOST_TERMS {
                return error(number, part, format!("more than {MOST_TERMS} terms"));
            }
            let (terms, is_preset) = match parse_part(part.trim()) {
                Ok(read) => read,
                Err(what) => return error(number, part, what),
            };
            for term in terms {
                match found.iter_mut().find(|(other, ..)| is_same_term(other, &term)) {
                    None => found.push((term, number, is_preset)),
                    // Terms next to a preset override the preset.
                    Some(place) if place.2 && !is_preset => *place = (term, number, false),
                    Some(place) if is_preset && !place.2 => {}
                    Some((other, at, _)) => {
                        let earlier = at.saturating_add(1);
                        let what = format!("term {earlier} already limits this figure (`{other}`)");
                        return error(number, part, what);
                    }
                }
            }
        }
        let slo = Self { terms: found.iter().map(|(term, ..)| *term).collect() };
        let fluidity = found.iter().find(|(term, ..)| term.metric == SloMetric::Fluidity);
        if let Some((term, number, _)) = fluidity.filter(|_| slo.token_limit_ms().is_none()) {
            const WHAT: &str = "fluidity needs a deadline for tokens: add a limit on tpot or itl";
            return error(*number, &term.to_string(), WHAT.to_owned());
        }
        Ok(slo)
    }
}

fn is_same_term(one: &SloTerm, other: &SloTerm) -> bool {
    one.metric == other.metric && one.statistic == other.statistic
}

/// The terms of one part between commas, and whether they are those of a preset.
fn parse_part(text: &str) -> Result<(Vec<SloTerm>, bool), String> {
    let sign = text.find(['<', '>', '≤', '≥']);
    if let Some(at) = sign {
        let (left, right) = text.split_at(at);
        let (relation, limit) = parse_relation(right).ok_or("expected `<`, `<=`, `>` or `>=`")?;
        return Ok((vec![parse_term(left.split_whitespace(), Some(relation), limit)?], false));
    }
    if text.contains(':') {
        return Ok((vec![parse_colons(text)?], false));
    }
    let preset = PRESETS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    let Some((_, terms)) = preset else {
        let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
        if let Some(name) = crate::closest_name(text, names.iter().copied()) {
            return Err(format!("`{text}` is not a preset; did you mean `{name}`?"));
        }
        return Err(format!(
            "expected a term like `p99 ttft < 500ms`, `ttft:p99:lt:500ms` or `errors < 1%`, or a \
             preset ({})",
            names.join(", ")
        ));
    };
    let terms: Result<Vec<_>, String> =
        terms.split(',').map(|term| Ok(parse_part(term.trim())?.0)).collect();
    Ok((terms?.concat(), true))
}

/// The sign at the beginning, and what follows it.
fn parse_relation(text: &str) -> Option<(SloRelation, &str)> {
    const SIGNS: [(&str, SloRelation); 6] = [
        ("<=", SloRelation::AtMost),
        (">=", SloRelation::AtLeast),
        ("≤", SloRelation::AtMost),
        ("≥", SloRelation::AtLeast),
        ("<", SloRelation::Below),
        (">", SloRelation::Above),
    ];
    SIGNS.iter().find_map(|(sign, relation)| Some((*relation, text.strip_prefix(sign)?)))
}

/// `ttft:p99:lt:500ms`, `ttft:lt:500ms`, or `ttft:500`, which another tool takes as "at most".
fn parse_colons(text: &str) -> Result<SloTerm, String> {
    const EXPECTED: &str = "expected `METRIC:p99:lt:LIMIT`, `METRIC:lt:LIMIT` (lt, le, gt or ge) \
                            or `METRIC:LIMIT`";
    let parts: Vec<&str> = text.split(':').map(str::trim).collect();
    let word = |word: &str| match word.to_ascii_lowercase().as_str() {
        "lt" => Ok(SloRelation::Below),
        "le" | "lte" => Ok(SloRelation::AtMost),
        "gt" => Ok(SloRelation::Above),
        "ge" | "gte" => Ok(SloRelation::AtLeast),
        _ => Err(EXPECTED.to_owned()),
    };
    match parts[..] {
        [name, limit] => parse_term([name].into_iter(), None, limit),
        [name, sign, limit] => parse_term([name].into_iter(), Some(word(sign)?), limit),
        [name, statistic, sign, limit] => {
            parse_term([statistic, name].into_iter(), Some(word(sign)?), limit)
        }
        _ => Err(EXPECTED.to_owned()),
    }
}

fn parse_term<'a>(
    words: impl Iterator<Item = &'a str>,
    relation: Option<SloRelation>,
    limit: &str,
) -> Result<SloTerm, String> {
    let words: Vec<&str> = words.collect();
    let (statistic, name) = match words[..] {
        [name] => (SloStatistic::Plain, name),
        [statistic, name] => (parse_statistic(statistic)?, name),
        _ => return Err("expected a metric before the sign, as in `p99 ttft < 500ms`".to_owned()),
    };
    let metric = parse_metric(name)?;
    if metric.is_run_wide() && statistic != SloStatistic::Plain {
        return Err(format!(
            "`{}` is a figure of the whole run and has no percentile",
            metric.name()
        ));
    }
    let is_floor = metric.is_better_high();
    let at_limit = if is_floor { SloRelation::AtLeast } else { SloRelation::AtMost };
    let relation = relation.unwrap_or(at_limit);
    if relation.is_floor() != is_floor {
        let (kind, sign) = if is_floor { ("a lower", ">") } else { ("an upper", "<") };
        return Err(format!(
            "`{}` has {kind} limit: expected `{sign}` or `{sign}=`",
            metric.name()
        ));
    }
    let limit = parse_limit(metric, limit)?;
    let term = SloTerm { metric, statistic, relation, limit };
    check_reachable(&term)?;
    Ok(term)
}

/// A limit that every run meets, or none, is a mistake.
fn check_reachable(term: &SloTerm) -> Result<(), String> {
    let top = match term.metric {
        SloMetric::Fluidity => 1.0,
        SloMetric::Errors => 100.0,
        _ => return Ok(()),
    };
    let limit = term.limit.base;
    let is_kept_by_some = if term.relation.is_floor() {
        term.relation.holds(top, limit)
    } else {
        term.relation.holds(0.0, limit)
    };
    if limit <= top && is_kept_by_some {
        return Ok(());
    }
    let unit = term.metric.unit();
    Err(format!("every run or no run would meet this: expected a limit from 0 to {top}{unit}"))
}

fn parse_statistic(word: &str) -> Result<SloStatistic, String> {
    let word = word.to_ascii_lowercase();
    if word == "mean" {
        return Ok(SloStatistic::Mean);
    }
    let percent = word.strip_prefix('p').and_then(parse_plain_number);
    match percent {
        Some(percent) if percent > 0.0 && percent < 100.0 => Ok(SloStatistic::Percentile(percent)),
        _ => {
            Err("expected `mean` or a percentile like `p99` or `p99.9` before the metric"
                .to_owned())
        }
    }
}

fn parse_metric(word: &str) -> Result<SloMetric, String> {
    let name = word.to_ascii_lowercase().replace('-', "_");
    match name.as_str() {
        "fluidity" => Ok(SloMetric::Fluidity),
        "errors" | "error_rate" => Ok(SloMetric::Errors),
        "rps" | "requests_per_s" => Ok(SloMetric::Rps),
        "output_tps" | "output_tokens_per_s" => Ok(SloMetric::OutputTps),
        name => name.parse::<MetricName>().map(SloMetric::Request).map_err(|_| {
            let names: Vec<&str> = MetricName::ALL.iter().map(|metric| metric.name()).collect();
            format!(
                "`{}` is not a metric: expected {}, fluidity, errors, rps or output_tps",
                safe_excerpt(word),
                names.join(", ")
            )
        }),
    }
}

fn parse_limit(metric: SloMetric, text: &str) -> Result<SloLimit, String> {
    let text = text.trim();
    if metric.unit() == "ms" {
        return parse_time_limit(metric, text);
    }
    let fixed = |base: f64| SloLimit { base, per_token: 0.0 };
    match metric {
        SloMetric::Errors => parse_percent(text).map(fixed),
        SloMetric::Fluidity => parse_plain_number(text)
            .map(fixed)
            .ok_or_else(|| "expected a number from 0 to 1 as the limit".to_owned()),
        _ => parse_plain_number(text.strip_suffix("/s").unwrap_or(text).trim_end())
            .filter(|rate| *rate > 0.0 && *rate <= FASTEST)
            .map(fixed)
            .ok_or_else(|| "expected a positive number as the limit".to_owned()),
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    const EXPECTED: &str = "expected a share like `1%` or `0.01` as the limit";
    match text.strip_suffix('%') {
        Some(percent) => parse_plain_number(percent.trim_end()).ok_or_else(|| EXPECTED.to_owned()),
        // A bare 1 may be meant as one percent or as all.
        None => parse_plain_number(text)
            .filter(|share| *share < 1.0)
            .map(|share| share * 100.0)
            .ok_or_else(|| EXPECTED.to_owned()),
    }
}

/// `500ms`, `200ms + 0.5ms/token`.
fn parse_time_limit(metric: SloMetric, text: &str) -> Result<SloLimit, String> {
    let mut limit = SloLimit { base: 0.0, per_token: 0.0 };
    let mut seen = [false; 2];
    for part in text.split('+').map(str::trim) {
        let per_token = part.strip_suffix("/token").or_else(|| part.strip_suffix("/tok"));
        let place = match per_token {
            Some(_) => &mut limit.per_token,
            None => &mut limit.base,
        };
        if std::mem::replace(&mut seen[usize::from(per_token.is_some())], true) {
            return Err("expected a time, or a time and a time per token".to_owned());
        }
        *place = parse_time_ms(per_token.unwrap_or(part).trim_end())?;
    }
    if limit.is_linear() && !metric.depends_on_prompt() {
        return Err(format!(
            "only ttft, ttfa, and e2e can have a limit per prompt token: expected a plain time for \
             `{}`",
            metric.name()
        ));
    }
    Ok(limit)
}

/// A time in ms.
fn parse_time_ms(text: &str) -> Result<f64, String> {
    let end = text.find(|c: char| !is_number_char(c)).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim() {
        "" | "ms" => Some(1.0),
        "s" => Some(1e3),
        "m" => Some(6e4),
        "us" | "µs" => Some(1e-3),
        _ => None,
    };
    let time = parse_plain_number(number).zip(factor).map(|(number, factor)| number * factor);
    time.filter(|ms| (SHORTEST_MS..=LONGEST_MS).contains(ms)).ok_or_else(|| {
        "expected a time above zero as the limit, like `500ms`, `2s`, `1m` or `800us` (a bare \
         number is ms), or `200ms + 0.5ms/token`"
            .to_owned()
    })
}

fn is_number_char(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

/// Digits with at most one point: neither signs nor exponents.
fn parse_plain_number(text: &str) -> Option<f64> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.filter(|_| text.chars().all(is_number_char))
}
