//! The table of latencies: each figure with how sure it is.

use std::fmt::{Error, Write};

use goodput_stats::{Metric, Percentile, Quality, Summary, minimum_for_figure};

use crate::number::{cell, count};
use crate::text::{Fields, LABEL, field};

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
            interval(page, metric, &percents)?;
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
    let percents = summary.metrics.values().next().map(percents).unwrap_or_default();
    marks(page, &metrics, &percents);
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
        let mut row = vec![label, count(metric.n), value(metric.mean)];
        row.extend(percents.iter().map(|percent| {
            metric.percentiles.get(*percent).map_or("–".to_owned(), |found| {
                let ends = match (found.low, found.high) {
                    (Some(low), Some(high)) if HEADLINES.contains(name) => {
                        format!(" ({}–{})", cell(low), cell(high))
                    }
                    _ => String::new(),
                };
                figure(percent, metric.n, found) + &ends
            })
        }));
        row.push(if metric.censored > 0 { ">limit".to_owned() } else { value(metric.max) });
        rows.push(row);
    }
    let metrics: Vec<_> =
        shown.iter().filter_map(|(name, _, _)| summary.metrics.get(*name)).collect();
    Cells { head, rows, marks: meanings(&metrics, &percents) }
}

/// The table of one metric by itself.
pub(crate) fn one(page: &mut String, metric: &Metric) -> Result<(), Error> {
    let percents = percents(metric);
    heading(page, "", &percents)?;
    row(page, "value", metric, &percents)?;
    interval(page, metric, &percents)?;
    marks(page, &[metric], &percents);
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
        write!(page, "{:>CELL$}", figure(percent, metric.n, &metric.percentiles[*percent]))?;
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
pub(crate) fn figure(percent: &str, n: u64, percentile: &Percentile) -> String {
    let mark = match percentile.quality {
        Quality::Ok => "",
        Quality::Few | Quality::Rough => "~",
        Quality::NotEstimable if is_enough(percent, n) => "?",
        Quality::NotEstimable => return "n/e".to_owned(),
    };
    match percentile.value {
        _ if percentile.is_censored => format!("{mark}>limit"),
        Some(value) => format!("{mark}{}", cell(value)),
        None => "–".to_owned(),
    }
}

/// Whether there are as many samples as the figure needs to stand alone, were they independent.
fn is_enough(percent: &str, n: u64) -> bool {
    minimum_for_figure(number(percent) / 100.0).is_some_and(|minimum| n >= minimum)
}

/// Two lines below a metric: from where to where each of its figures may lie.
fn interval(page: &mut String, metric: &Metric, percents: &[&String]) -> Result<(), Error> {
    let percentiles = || percents.iter().map(|percent| &metric.percentiles[*percent]);
    if percentiles().all(|percentile| percentile.low.is_none()) && metric.mean_low.is_none() {
        return Ok(());
    }
    let text = |value: Option<f64>| value.map_or_else(String::new, cell);
    let from = percentiles().map(|percentile| text(percentile.low));
    let to = percentiles().map(|percentile| match percentile.high {
        None if percentile.high_is_censored => ">limit".to_owned(),
        high => text(high),
    });
    line(page, " 95 % from", &text(metric.mean_low), from)?;
    line(page, "      to", &text(metric.mean_high), to)?;
    let early = percentiles().map(|percentile| percentile.early_stopping);
    if early.clone().any(|early| early.is_some()) {
        line(page, " MLPerf", "", early.map(text))?;
    }
    Ok(())
}

fn line(
    page: &mut String,
    label: &str,
    mean: &str,
    cells: impl Iterator<Item = String>,
) -> Result<(), Error> {
    let mut line = format!("{label:<LABEL$}{:>6}{mean:>CELL$}", "");
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
fn marks(page: &mut impl Fields, metrics: &[&Metric], percents: &[&String]) {
    for (mark, text) in meanings(metrics, percents) {
        field(page, mark, &text);
    }
}

fn meanings(metrics: &[&Metric], percents: &[&String]) -> Vec<(&'static str, String)> {
    let has = |wanted: Quality, enough: Option<bool>| {
        metrics.iter().any(|metric| {
            metric.percentiles.iter().any(|(percent, percentile)| {
                percentile.quality == wanted
                    && enough.is_none_or(|enough| is_enough(percent, metric.n) == enough)
            })
        })
    };
    let needs: Vec<_> = percents
        .iter()
        .filter(|percent| number(percent) >= 99.0)
        .filter_map(|percent| {
            let minimum = minimum_for_figure(number(percent) / 100.0)?;
            Some(format!("p{percent} {}", count(minimum)))
        })
        .collect();
    let needs = if needs.is_empty() { String::new() } else { format!(" ({})", needs.join(", ")) };
    let mut all = Vec::new();
    if has(Quality::Few, None) {
        let text = format!(
            "fewer samples than the figure needs to stand alone{needs}: take its interval (in summary.json where no line shows it)"
        );
        all.push(("~", text));
    }
    if has(Quality::NotEstimable, Some(true)) {
        let text = "enough samples, but they depend on each other: no interval can be given";
        all.push(("?", text.to_owned()));
    }
    if has(Quality::NotEstimable, Some(false)) {
        all.push(("n/e", "not estimable from so few samples".to_owned()));
    }
    all
}
