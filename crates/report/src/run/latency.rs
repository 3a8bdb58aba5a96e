//! The table of latencies: each figure with how sure it is.

use goodput_stats::{Metric, Percentile, Quality, Summary, flag_time, minimum_for_figure};

use super::{HTML, MARKDOWN, TEXT, facts};
use goodput_document::number::{cell_number, count, known_or_dash};
use goodput_document::render::text::LABEL;
use goodput_document::{Block, Cell, Column, Fact, Formats, Section, Table};

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

const NO_LATENCY: &str = "No latency to show: no request completed.";

/// A row of the table.
struct LatencyRow<'a> {
    /// In the summary.
    name: &'static str,
    label: String,
    metric: &'a Metric,
}

impl LatencyRow<'_> {
    /// The label where it does not stand below the row that it goes on with.
    fn full_label(&self) -> String {
        let base = self.name.strip_suffix("_sent").unwrap_or(self.name);
        let above = ROWS.iter().find(|row| row.0 == base).map_or("", |row| row.1);
        match self.label.strip_prefix(' ') {
            Some(rest) => format!("{above} {rest}"),
            None => self.label.clone(),
        }
    }
}

pub(super) fn latency_section(summary: &Summary) -> Section {
    let shown = latency_rows(summary);
    let mut section = Section::new("latency", "Latency");
    if shown.is_empty() {
        section = section.with_on(Formats::FLAT, Block::note(NO_LATENCY));
    } else {
        let percents = summary.metrics.values().next().map(sorted_percents).unwrap_or_default();
        section = section
            .with_on(TEXT, Block::Table(narrow_table("ms", &percents, &shown)))
            .with_on(Formats::WIDE, Block::Table(wide_table(&percents, &shown)))
            .with_on(MARKDOWN, Block::Gap)
            .with(Block::Facts(mark_notes(summary, &shown)));
    }
    let rates = (summary.requests.scheduled > 0).then(|| Block::Facts(facts::rate_facts(summary)));
    section.with_some(HTML, rates)
}

/// The rows and percentiles that are read first.
pub(super) fn short_latency_block(summary: &Summary) -> Block {
    const FIRST: [&str; 4] = ["50", "90", "95", "99"];
    let mut shown = latency_rows(summary);
    shown.retain(|row| HEADLINES.contains(&row.name));
    if shown.is_empty() {
        return Block::note(NO_LATENCY);
    }
    let all = summary.metrics.values().next().map(sorted_percents).unwrap_or_default();
    let first: Vec<&String> =
        all.iter().copied().filter(|of| FIRST.contains(&of.as_str())).collect();
    let few = || all.iter().copied().take(FIRST.len()).collect();
    let percents = if first.is_empty() { few() } else { first };
    let table = Table::from_subjects("", "", shown)
        .left("ms", LABEL, |row| row.label.clone())
        .right("n", 9, |row| count(row.metric.n))
        .each(
            percents,
            |percent| Column::right(format!("p{percent}"), CELL + 2),
            |row, percent| {
                row.metric
                    .percentiles
                    .get(percent.as_str())
                    .map_or_else(|| "–".to_owned(), percentile_text)
            },
        )
        .table;
    Block::Table(table)
}

fn latency_rows(summary: &Summary) -> Vec<LatencyRow<'_>> {
    let shown = ROWS.iter().filter(|row| is_row_shown(summary, row));
    shown
        .filter_map(|(name, label, _)| {
            let label = label_with_error(summary, name, label);
            Some(LatencyRow { name, label, metric: summary.metrics.get(*name)? })
        })
        .collect()
}

/// What the marks of the table mean.
fn mark_notes(summary: &Summary, shown: &[LatencyRow<'_>]) -> Vec<Fact> {
    let legend = summary.client.canary.map(|canary| {
        let text = format!(
            "the instrument error during the run: p99 over {} answers of a server of known timing \
             inside the process, measured by the same code during the load",
            count(canary.n)
        );
        Fact::new("±", text).on(Formats::LONG)
    });
    let metrics: Vec<_> = shown.iter().map(|row| row.metric).collect();
    let more = samples_needed_text(summary).map(|text| Fact::new("", text));
    legend.into_iter().chain(mark_meanings(&metrics)).chain(more).collect()
}

/// The table for a page that has room for an interval next to its figure.
fn wide_table(percents: &[&String], shown: &[LatencyRow<'_>]) -> Table {
    let caption = "Milliseconds from the scheduled instant; below each figure its 95 % interval";
    Table::from_subjects("Latency", caption, shown)
        .left("ms", 0, |row| row.full_label())
        .right("n", 0, |LatencyRow { metric, .. }| {
            let beyond = Some(metric.censored).filter(|n| *n > 0);
            let beyond = beyond.map_or(String::new(), |n| format!("{} > limit", count(n)));
            Cell::from(count(metric.n)).note(beyond)
        })
        .right("mean", 0, |LatencyRow { metric, .. }| {
            let ends = interval_text(metric.mean_low, metric.mean_high, false);
            Cell::number(metric.mean, cell_number).note(ends)
        })
        .each(
            percents,
            |percent| Column::right(format!("p{percent}"), 0),
            |row, percent| {
                let Some(found) = row.metric.percentiles.get(**percent) else {
                    return Cell::from("–");
                };
                let ends = interval_text(found.low, found.high, found.high_is_censored);
                let completed = found.completed.map(|ms| format!(" completed {}", cell_number(ms)));
                Cell::from(percentile_text(found)).note(ends + &completed.unwrap_or_default())
            },
        )
        .left("max", 0, |row| largest_text(row.metric))
        .table
}

/// The table for a terminal: intervals stand below the rows that are read first.
fn narrow_table(unit: &str, percents: &[&String], shown: &[LatencyRow<'_>]) -> Table {
    let mut columns =
        vec![Column::left(unit, LABEL), Column::right("n", 6), Column::right("mean", CELL)];
    columns.extend(percents.iter().map(|percent| Column::right(format!("p{percent}"), CELL)));
    columns.push(Column::right("max", CELL));
    let mut rows = Vec::new();
    for LatencyRow { name, label, metric } in shown {
        let mut row = vec![Cell::from(label.as_str()), metric.n.to_string().into()];
        row.push(Cell::number(metric.mean, cell_number));
        row.extend(percents.iter().map(|percent| {
            metric
                .percentiles
                .get(*percent)
                .map_or(Cell::from("–"), |found| percentile_text(found).into())
        }));
        row.push(largest_text(metric).into());
        rows.push(row);
        if HEADLINES.contains(name) {
            rows.extend(interval_lines(metric, percents));
        }
    }
    Table::new("", "", columns).with_rows(rows)
}

/// The table of one metric by itself, and what its marks mean.
pub(crate) fn metric_blocks(metric: &Metric) -> [Block; 2] {
    let row = LatencyRow { name: HEADLINES[0], label: "value".to_owned(), metric };
    let table = narrow_table("", &sorted_percents(metric), &[row]);
    [Block::Table(table), Block::Facts(mark_meanings(&[metric]))]
}

/// Percentiles in order of size.
fn sorted_percents(metric: &Metric) -> Vec<&String> {
    let mut percents: Vec<&String> = metric.percentiles.keys().collect();
    percents.sort_by(|a, b| percent_value(a).total_cmp(&percent_value(b)));
    percents
}

/// The label with the instrument's own error, where a canary has measured it.
fn label_with_error(summary: &Summary, name: &str, label: &str) -> String {
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

fn percent_value(percent: &str) -> f64 {
    percent.parse().unwrap_or(0.0)
}

/// Rows without samples, and rows that repeat another, are left out.
fn is_row_shown(summary: &Summary, (name, _, twin): &(&str, &str, Option<&str>)) -> bool {
    let metric = summary.metrics.get(*name);
    let is_twin = twin.is_some_and(|twin| {
        let other = summary.metrics.get(twin);
        metric.map(|m| (m.n, m.mean)) == other.map(|m| (m.n, m.mean))
    });
    metric.is_some_and(|metric| metric.n > 0) && !is_twin
}

/// The largest value, where it is known.
fn largest_text(metric: &Metric) -> String {
    match metric.max {
        _ if metric.censored > 0 => ">limit".to_owned(),
        max => known_or_dash(max, cell_number),
    }
}

/// A percentile as it may stand: by itself, marked, or not at all.
pub(crate) fn percentile_text(percentile: &Percentile) -> String {
    let mark = match percentile.quality {
        Quality::Ok => "",
        Quality::Few | Quality::Rough => "~",
        Quality::NotEstimable => return "n/e".to_owned(),
    };
    match percentile.value {
        _ if percentile.is_censored => format!("{mark}>limit"),
        Some(value) => format!("{mark}{}", cell_number(value)),
        None => "–".to_owned(),
    }
}

/// From where to where; one end where only that is sure, and empty if neither is.
pub(crate) fn interval_text(low: Option<f64>, high: Option<f64>, is_censored: bool) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{}–{}", cell_number(low), cell_number(high)),
        (Some(low), None) if is_censored => format!("{}–>limit", cell_number(low)),
        (Some(low), None) => format!("≥ {}", cell_number(low)),
        (None, Some(high)) => format!("≤ {}", cell_number(high)),
        (None, None) => String::new(),
    }
}

/// Whether only this end of an interval is sure.
fn is_only_end(end: Option<f64>, other: Option<f64>, other_is_censored: bool) -> bool {
    end.is_some() && other.is_none() && !other_is_censored
}

/// Lines below a metric: from where to where each of its figures may lie, and other views of them.
fn interval_lines(metric: &Metric, percents: &[&String]) -> Vec<Vec<Cell>> {
    let percentiles = || percents.iter().filter_map(|percent| metric.percentiles.get(*percent));
    let all = percentiles().map(|found| (found.low, found.high, found.high_is_censored));
    let all: Vec<_> = [(metric.mean_low, metric.mean_high, false)].into_iter().chain(all).collect();
    let text = |mark: &str, value: Option<f64>| {
        value.map_or_else(String::new, |value| format!("{mark}{}", cell_number(value)))
    };
    let from = all.iter().map(|(low, high, is_censored)| {
        text(if is_only_end(*low, *high, *is_censored) { "≥" } else { "" }, *low)
    });
    let to = all.iter().map(|(low, high, is_censored)| match high {
        None if *is_censored => ">limit".to_owned(),
        high => text(if is_only_end(*high, *low, false) { "≤" } else { "" }, *high),
    });
    let of = |value: fn(&Percentile) -> Option<f64>| -> Vec<String> {
        let values = percentiles().map(|found| text("", value(found)));
        std::iter::once(String::new()).chain(values).collect()
    };
    let lines = [
        (" 95 % from", from.collect()),
        ("      to", to.collect()),
        (" completed", of(|found| found.completed)),
        (" MLPerf", of(|found| found.early_stopping)),
    ];
    let shown = lines.into_iter().filter(|(_, ends)| ends.iter().any(|end| !end.is_empty()));
    let row = |(label, ends): (&str, Vec<String>)| {
        let first = [Cell::from(label), Cell::default()];
        first.into_iter().chain(ends.into_iter().map(Cell::from)).collect()
    };
    shown.map(row).collect()
}

/// What the marks mean, where there are such.
fn mark_meanings(metrics: &[&Metric]) -> Vec<Fact> {
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
            ends.iter().any(|(low, high, is_censored)| is_only_end(*low, *high, *is_censored)),
            "95 % sure to be at least this; this run cannot tell how much more",
        ),
        (
            "≤",
            ends.iter().any(|(low, high, _)| is_only_end(*high, *low, false)),
            "95 % sure to be at most this; this run cannot tell how much less",
        ),
        ("n/e", has(Quality::NotEstimable), "not estimable: too few samples for any figure"),
        (
            "completed",
            percentiles().any(|found| found.completed.is_some()),
            "of completed requests only; the figure above it also counts failures that took \
             longer, as at least that long",
        ),
    ];
    let all = all.into_iter().filter(|(_, is_there, _)| *is_there);
    all.map(|(mark, _, text)| Fact::new(mark, text)).collect()
}

/// What a figure would need that rests on too few requests: the highest up to p99, which takes the
/// others along, or the lowest of those above.
fn samples_needed_text(summary: &Summary) -> Option<String> {
    let metric = ["ttft", "e2e"].iter().find_map(|name| {
        summary.metrics.get(*name).filter(|metric| metric.n > 0 && !metric.percentiles.is_empty())
    })?;
    let is_marked = |percent: &&String| {
        metric.percentiles.get(*percent).is_some_and(|found| found.quality != Quality::Ok)
    };
    let thin: Vec<(&String, u64)> = sorted_percents(metric)
        .into_iter()
        .filter(is_marked)
        .filter_map(|percent| Some((percent, minimum_for_figure(percent_value(percent) / 100.0)?)))
        .filter(|(_, minimum)| metric.n < *minimum)
        .collect();
    let up_to_p99 = thin.iter().rfind(|(percent, _)| percent_value(percent) <= 99.0);
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
