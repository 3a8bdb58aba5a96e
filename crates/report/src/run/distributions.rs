//! How latencies are distributed.

use goodput_stats::{Distribution, Metric, Summary};

use super::latency::percentile_text;
use crate::view::RunView;
use goodput_document::number::{cell_number, count};
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Rule, Shape};

/// What is drawn: name in the summary, words, and the names of its charts.
const DRAWN: [(&str, &str, &str, &str); 4] = [
    ("ttft", "TTFT", "cdf-ttft", "histogram-ttft"),
    ("tpot", "TPOT", "cdf-tpot", "histogram-tpot"),
    ("itl", "ITL", "cdf-itl", "histogram-itl"),
    ("e2e", "E2E", "cdf-e2e", "histogram-e2e"),
];

/// A limit that lies farther outside than this would squeeze the rest.
const FAR: f64 = 5.0;

pub(super) fn distribution_charts(view: &RunView<'_>) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (place, (name, words, cdf_name, histogram_name)) in DRAWN.into_iter().enumerate() {
        let Some(found) = view.details.distributions.get(name).filter(|found| found.n > 0) else {
            continue;
        };
        let known = view.summary.metrics.get(name).map(shown_percentiles).unwrap_or_default();
        let mut rules: Vec<Rule> =
            known.iter().map(|(_, value, text)| Rule::Place(*value, text.clone())).collect();
        rules.extend(slo_limit_rules(view.summary, name, found));
        charts.push(Chart {
            name: cdf_name,
            ..cdf_chart(words, place, found, &known, rules.clone())
        });
        charts.push(Chart { name: histogram_name, ..histogram_chart(words, place, found, rules) });
    }
    charts
}

/// The percentiles that may stand, as the table has them: percent, value, words.
fn shown_percentiles(metric: &Metric) -> Vec<(&'static str, f64, String)> {
    let known = |percent: &'static str| {
        let found = metric.percentiles.get(percent)?;
        let value = found.value.filter(|value| *value > 0.0 && !found.is_censored)?;
        let text = percentile_text(found);
        (text != "n/e").then(|| (percent, value, format!("p{percent} {text}")))
    };
    let tail = ["99", "95", "90"].into_iter().find_map(known);
    known("50").into_iter().chain(tail).collect()
}

/// What the SLO allows, where it lies near.
fn slo_limit_rules(summary: &Summary, name: &str, found: &Distribution) -> Vec<Rule> {
    let terms = summary.slo.iter().flat_map(|slo| &slo.terms);
    let most = found.quantiles.last().map_or(0.0, |(_, value)| *value);
    let least = found.quantiles.first().map_or(0.0, |(_, value)| *value);
    let is_of = |term: &str| {
        term.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
    };
    terms
        .filter(|term| term.unit == "ms" && is_of(&term.term))
        .filter(|term| term.limit <= most * FAR && term.limit >= least / FAR)
        .map(|term| Rule::Place(term.limit, term.term.clone()))
        .collect()
}

fn beyond_limit_text(found: &Distribution) -> String {
    match found.censored {
        0 => String::new(),
        n => format!(" {} hit a time limit and lie beyond the right end.", count(n)),
    }
}

fn cdf_chart(
    words: &str,
    tone: usize,
    found: &Distribution,
    known: &[(&'static str, f64, String)],
    rules: Vec<Rule>,
) -> Chart {
    let dots = found.quantiles.iter().map(|(share, value)| Dot::new(*value, share * 100.0));
    let known = known
        .iter()
        .map(|(percent, value, _)| format!("{percent} % are at most {} ms", cell_number(*value)));
    let known: Vec<_> = known.collect();
    Chart::new("", format!("{words}: share of samples up to a value"))
        .with_caption(format!(
            "Of {} samples {}.{}",
            count(found.n),
            if known.is_empty() {
                "no percentile can be given".to_owned()
            } else {
                known.join(", ")
            },
            beyond_limit_text(found)
        ))
        .with_axes(ChartAxis::log("ms"), "% of samples")
        .with_series([ChartSeries::new(words, Shape::Line, tone, dots.collect())])
        .with_rules(rules)
}

fn histogram_chart(words: &str, tone: usize, found: &Distribution, rules: Vec<Rule>) -> Chart {
    let ends = found.histogram.iter().skip(1).map(|(from, _)| Some(*from)).chain([None]);
    let dots: Vec<Dot> = found
        .histogram
        .iter()
        .zip(ends)
        .map(|((from, n), to)| {
            let to = to.map_or(String::new(), |to| format!(" to {}", cell_number(to)));
            Dot {
                note: format!("{}{to} ms: {}", cell_number(*from), count(*n)),
                ..Dot::new(*from, *n as f64)
            }
        })
        .collect();
    let fullest = found.histogram.iter().max_by_key(|(_, n)| *n);
    let fullest = fullest.map_or(String::new(), |(from, n)| {
        format!(
            " The largest bin has {} samples and begins at {} ms.",
            count(*n),
            cell_number(*from)
        )
    });
    Chart::new("", format!("{words}: samples by value"))
        .with_caption(format!(
            "{} samples in bins of equal ratio.{fullest}{}",
            count(found.n),
            beyond_limit_text(found)
        ))
        .with_axes(ChartAxis::log("ms"), "samples")
        .with_series([ChartSeries::new(words, Shape::Bars, tone, dots)])
        .with_rules(rules)
}
