//! The table of latencies: each figure with how sure it is.

use std::fmt::{Error, Write};

use goodput_stats::{Metric, Percentile, Quality, Summary, flag_time, minimum_for_figure};

use crate::number::{cell, count};
use crate::render::text::{Fields, LABEL, field};

/// Columns of a cell.
const CELL: usize = 8;

/// The rows of the table: metric, label, and whether it is shown only when it differs from another.
const ROWS: [(&str, &str, Option<&str>); 11] = [
    ("ttft", "TTFT", None),
    ("ttft_sent", " from sent", None),
    ("ttfa", "TTFA", Some("ttft")),
    ("tpot", "TPOT", None),
    ("itl", "ITL", None),
    ("itl_token", "ITL/token", Some("itl")),
    ("max_gap", "Max gap", None),
    ("e2e", "E2E", None),
    ("e2e_sent", " from sent", None),
    ("normalized_latency", "E2E/token", None),
    ("request_tokens_per_s", "tok/s each", None),
];

/// The rows that carry their intervals.
const HEADLINES: [&str; 4] = ["ttft", "tpot", "itl", "e2e"];

pub(crate) fn table(page: &mut String, summary: &Summary) -> Result<(), Error> {
    let shown = rows(summary);
    if shown.is_empty() {
        return writeln!(page, "\nNo latency to show: no request ended well.");
    }
    let percents = summary.metrics.values().next().map(percents).unwrap_or_default();
    heading(page, "ms", &percents)?;
    for (name, label, metric) in &shown {
        row(page, label, metric, &percents)?;
        if HEADLINES.contains(name) {
            ends(page, metric, &percents)?;
        }
    }
    notes(page, summary);
    Ok(())
}

/// The rows: name in the summary, label, figures.
pub(crate) fn rows(summary: &Summary) -> Vec<(&'static str, String, &Metric)> {
    let shown = ROWS.iter().filter(|row| is_shown(summary, row));
    shown
        .filter_map(|(name, label, _)| {
            Some((*name, with_error(summary, name, label), summary.metrics.get(*name)?))
        })
        .collect()
}

/// What the marks of the table mean.
pub(crate) fn notes(page: &mut impl Fields, summary: &Summary) {
    legend(page, summary);
    let metrics: Vec<_> = rows(summary).into_iter().map(|(_, _, metric)| metric).collect();
    for (mark, text) in meanings(&metrics) {
        field(page, mark, &text);
    }
    if let Some(text) = more(summary) {
        field(page, "", &text);
    }
}

/// The table in cells: its head, its rows, and what the marks in them mean.
pub(crate) struct Cells {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) marks: Vec<(&'static str, String)>,
}

/// The table for pages that have room for an interval beside its figure.
pub(crate) fn cells(summary: &Summary) -> Cells {
    let shown: Vec<_> = ROWS.iter().filter(|row| is_shown(summary, row)).collect();
    let percents = summary.metrics.values().next().map(percents).unwrap_or_default();
    let mut head = vec!["ms".to_owned(), "n".to_owned(), "mean".to_owned()];
    head.extend(percents.iter().map(|percent| format!("p{percent}")));
    head.push("max".to_owned());
    let mut rows = Vec::new();
    for (name, label, _) in &shown {
        let Some(metric) = summary.metrics.get(*name) else { continue };
        // What goes on with another row is named by it.
        let base = name.strip_suffix("_sent").unwrap_or(name);
        let above = ROWS.iter().find(|row| row.0 == base).map_or("", |row| row.1);
        let label = match label.strip_prefix(' ') {
            Some(rest) => format!("{above} {rest}"),
            None => with_error(summary, name, label),
        };
        let value = |value: Option<f64>| value.map_or("–".to_owned(), cell);
        let with_ends = |text: String, ends: String| {
            let is_bare = ends.is_empty() || !HEADLINES.contains(name);
            if is_bare { text } else { format!("{text} ({ends})") }
        };
        let mean = interval(metric.mean_low, metric.mean_high, false);
        let mut row = vec![label, count(metric.n), with_ends(value(metric.mean), mean)];
        row.extend(percents.iter().map(|percent| {
            metric.percentiles.get(*percent).map_or("–".to_owned(), |found| {
                with_ends(figure(found), interval(found.low, found.high, found.high_is_censored))
            })
        }));
        row.push(if metric.censored > 0 { ">limit".to_owned() } else { value(metric.max) });
        rows.push(row);
    }
    let metrics: Vec<_> =
        shown.iter().filter_map(|(name, _, _)| summary.metrics.get(*name)).collect();
    let mut marks = meanings(&metrics);
    marks.extend(more(summary).map(|text| ("", text)));
    Cells { head, rows, marks }
}

/// The table of one metric by itself.
pub(crate) fn one(page: &mut String, metric: &Metric) -> Result<(), Error> {
    let percents = percents(metric);
    heading(page, "", &percents)?;
    row(page, "value", metric, &percents)?;
    ends(page, metric, &percents)?;
    for (mark, text) in meanings(&[metric]) {
        field(page, mark, &text);
    }
    Ok(())
}

/// Percentiles in order of size.
pub(crate) fn percents(metric: &Metric) -> Vec<&String> {
    let mut percents: Vec<&String> = metric.percentiles.keys().collect();
    percents.sort_by(|a, b| number(a).total_cmp(&number(b)));
    percents
}

fn heading(page: &mut String, unit: &str, percents: &[&String]) -> Result<(), Error> {
    write!(page, "\n{unit:<LABEL$}{:>6}{:>CELL$}", "n", "mean")?;
    for percent in percents {
        write!(page, "{:>CELL$}", format!("p{percent}"))?;
    }
    writeln!(page, "{:>CELL$}", "max")
}

/// The label with the instrument's own error, where a canary has measured it.
fn with_error(summary: &Summary, name: &str, label: &str) -> String {
    let error = summary.client.canary.and_then(|canary| match name {
        "ttft" => canary.ttft_error_ms.p99,
        "itl" => canary.itl_error_ms.p99,
        _ => None,
    });
    error.map_or_else(|| label.to_owned(), |ms| format!("{label} ±{}", error_text(ms)))
}

/// Never rounded to nothing.
fn error_text(ms: f64) -> String {
    match ms {
        ms if ms < 0.1 => format!("{:.2}", ms.max(0.01)),
        ms if ms < 10.0 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}

fn number(percent: &str) -> f64 {
    percent.parse().unwrap_or(0.0)
}

/// Rows without samples, and rows that repeat another, are left out.
fn is_shown(summary: &Summary, (name, _, twin): &(&str, &str, Option<&str>)) -> bool {
    let metric = summary.metrics.get(*name);
    let is_twin = twin.is_some_and(|twin| {
        let other = summary.metrics.get(twin);
        metric.map(|m| (m.n, m.mean)) == other.map(|m| (m.n, m.mean))
    });
    metric.is_some_and(|metric| metric.n > 0) && !is_twin
}

fn row(page: &mut String, label: &str, metric: &Metric, percents: &[&String]) -> Result<(), Error> {
    let value = |value: Option<f64>| value.map_or("–".to_owned(), cell);
    write!(page, "{label:<LABEL$}{:>6}{:>CELL$}", metric.n, value(metric.mean))?;
    for percent in percents {
        let value = metric.percentiles.get(*percent).map_or_else(|| "–".to_owned(), figure);
        write!(page, "{value:>CELL$}")?;
    }
    writeln!(page, "{:>CELL$}", largest(metric))
}

/// The largest value, where it is known.
pub(crate) fn largest(metric: &Metric) -> String {
    match metric.max {
        _ if metric.censored > 0 => ">limit".to_owned(),
        max => max.map_or("–".to_owned(), cell),
    }
}

/// A percentile as it may stand: by itself, marked, or not at all.
pub(crate) fn figure(percentile: &Percentile) -> String {
    let mark = match percentile.quality {
        Quality::Ok => "",
        Quality::Few | Quality::Rough => "~",
        Quality::NotEstimable => return "n/e".to_owned(),
    };
    match percentile.value {
        _ if percentile.is_censored => format!("{mark}>limit"),
        Some(value) => format!("{mark}{}", cell(value)),
        None => "–".to_owned(),
    }
}

/// From where to where; one end where only that is sure, and empty where neither is.
pub(crate) fn interval(low: Option<f64>, high: Option<f64>, is_censored: bool) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{}–{}", cell(low), cell(high)),
        (Some(low), None) if is_censored => format!("{}–>limit", cell(low)),
        (Some(low), None) => format!("≥ {}", cell(low)),
        (None, Some(high)) => format!("≤ {}", cell(high)),
        (None, None) => String::new(),
    }
}

/// Whether only this end of an interval is sure.
fn is_alone(end: Option<f64>, other: Option<f64>, other_is_censored: bool) -> bool {
    end.is_some() && other.is_none() && !other_is_censored
}

/// Two lines below a metric: from where to where each of its figures may lie.
fn ends(page: &mut String, metric: &Metric, percents: &[&String]) -> Result<(), Error> {
    let percentiles = || percents.iter().filter_map(|percent| metric.percentiles.get(*percent));
    let all = percentiles().map(|found| (found.low, found.high, found.high_is_censored));
    let all: Vec<_> = [(metric.mean_low, metric.mean_high, false)].into_iter().chain(all).collect();
    let text = |mark: &str, value: Option<f64>| {
        value.map_or_else(String::new, |value| format!("{mark}{}", cell(value)))
    };
    let from = all.iter().map(|(low, high, is_censored)| {
        text(if is_alone(*low, *high, *is_censored) { "≥" } else { "" }, *low)
    });
    let to = all.iter().map(|(low, high, is_censored)| match high {
        None if *is_censored => ">limit".to_owned(),
        high => text(if is_alone(*high, *low, false) { "≤" } else { "" }, *high),
    });
    for (label, ends) in [(" 95 % from", from.collect::<Vec<_>>()), ("      to", to.collect())] {
        if ends.iter().any(|end| !end.is_empty()) {
            line(page, label, ends.into_iter())?;
        }
    }
    let completed = percentiles().map(|percentile| percentile.completed);
    if completed.clone().any(|completed| completed.is_some()) {
        let cells = std::iter::once(None).chain(completed);
        line(page, " completed", cells.map(|completed| text("", completed)))?;
    }
    let early = percentiles().map(|percentile| percentile.early_stopping);
    if early.clone().any(|early| early.is_some()) {
        line(page, " MLPerf", std::iter::once(None).chain(early).map(|early| text("", early)))?;
    }
    Ok(())
}

fn line(page: &mut String, label: &str, cells: impl Iterator<Item = String>) -> Result<(), Error> {
    let mut line = format!("{label:<LABEL$}{:>6}", "");
    for text in cells {
        write!(line, "{text:>CELL$}")?;
    }
    writeln!(page, "{}", line.trim_end())
}

/// What stands beside a label.
fn legend(page: &mut impl Fields, summary: &Summary) {
    if let Some(canary) = summary.client.canary {
        let text = format!(
            "this client's own error during the run: p99 over {} answers of a server of known timing \
             inside the process, asked by the same code beside the load",
            count(canary.n)
        );
        field(page, "±", &text);
    }
}

/// What the marks mean, where there are such.
fn meanings(metrics: &[&Metric]) -> Vec<(&'static str, String)> {
    let percentiles = || metrics.iter().flat_map(|metric| metric.percentiles.values());
    let has = |wanted: Quality| percentiles().any(|percentile| percentile.quality == wanted);
    let means = metrics.iter().map(|metric| (metric.mean_low, metric.mean_high, false));
    let ends = percentiles().map(|found| (found.low, found.high, found.high_is_censored));
    let ends: Vec<_> = means.chain(ends).collect();
    let all = [
        (
            "~",
            has(Quality::Few) || has(Quality::Rough),
            "rough: few samples, or neighbors that are alike; read it with its interval (in \
             summary.json where no line shows it)",
        ),
        (
            "≥",
            ends.iter().any(|(low, high, is_censored)| is_alone(*low, *high, *is_censored)),
            "95 % sure to be at least this; this run cannot tell how much more",
        ),
        (
            "≤",
            ends.iter().any(|(low, high, _)| is_alone(*high, *low, false)),
            "95 % sure to be at most this; this run cannot tell how much less",
        ),
        ("n/e", has(Quality::NotEstimable), "not estimable: too few samples for any figure"),
        (
            "completed",
            percentiles().any(|found| found.completed.is_some()),
            "of completed requests alone; the figure above it also counts failures that took longer, \
             as at least that long",
        ),
    ];
    let all = all.into_iter().filter(|(_, is_there, _)| *is_there);
    all.map(|(mark, _, text)| (mark, text.to_owned())).collect()
}

/// What a figure would need that rests on too few requests: the highest up to p99, which takes the
/// others along, or the lowest of those above.
fn more(summary: &Summary) -> Option<String> {
    let metric = ["ttft", "e2e"].iter().find_map(|name| {
        summary.metrics.get(*name).filter(|metric| metric.n > 0 && !metric.percentiles.is_empty())
    })?;
    let is_marked = |percent: &&String| {
        metric.percentiles.get(*percent).is_some_and(|found| found.quality != Quality::Ok)
    };
    let thin: Vec<(&String, u64)> = percents(metric)
        .into_iter()
        .filter(is_marked)
        .filter_map(|percent| Some((percent, minimum_for_figure(number(percent) / 100.0)?)))
        .filter(|(_, minimum)| metric.n < *minimum)
        .collect();
    let up_to_p99 = thin.iter().rfind(|(percent, _)| number(percent) <= 99.0);
    let (percent, minimum) = up_to_p99.or(thin.first())?;
    let seconds = summary.window.end_s - summary.window.start_s;
    // Other loads end by themselves.
    let is_timed = matches!(summary.load.mode.as_str(), "open" | "capped" | "closed");
    let needed = seconds * *minimum as f64 / metric.n as f64;
    let how = if is_timed && needed.is_finite() && needed > 0.0 {
        format!(": --duration {} at this rate", flag_time(needed))
    } else {
        String::new()
    };
    Some(format!("p{percent} needs {} requests to stand alone{how}", count(*minimum)))
}
