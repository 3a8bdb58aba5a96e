//! What a sweep is quoted by: the highest load for each term of the SLO, and each figure with the
//! condition it was measured under.

use goodput_campaign::sweep::{KeptLoad, KeptSupport, StatedFigure, SweepSummary};

use super::{axis_unit, bare_percent, level_value_text};
use goodput_document::number::{amount, cell_number, count, range_in_brackets};
use goodput_document::{Block, Column, Formats, Section, Table};
use goodput_model::{Verdict, escape_control};

/// Both tables; nothing without points.
pub(super) fn kept_section(summary: &SweepSummary) -> Section {
    let mut section = Section::with_name("quoted", "Figures", "Figures with their conditions");
    section = section.with_some(Formats::ALL, kept_loads_table(summary).into_block());
    if !summary.kept_loads.is_empty() && !summary.figures.is_empty() {
        section = section.with_on(Formats::TEXT, Block::Gap);
    }
    section.with_some(Formats::ALL, stated_figures_table(summary).into_block())
}

/// The highest load for the whole SLO and for each of its terms.
fn kept_loads_table(summary: &SweepSummary) -> Table {
    let axis = summary.plan.axis;
    let number =
        move |level: Option<f64>| level.map_or("–".to_owned(), |v| level_value_text(axis, v));
    let caption = "From measured loads: the highest that keeps a term, below the lowest that misses \
                   it. Confirmed by independent runs, or as measured by fewer.";
    let title = format!("Highest load for each SLO term ({})", axis_unit(axis));
    let table = Table::from_subjects(title.clone(), caption, &summary.kept_loads)
        .right("highest", 9, move |load| number(load.level))
        .right("missed at", 10, move |load| number(load.missed))
        .with(Column::left("support", 20).gap(2), |load| support_text(load))
        .right("there", 10, |load| limit_figure_text(load))
        .with(Column::prose("SLO term", 2), |load| match &load.term {
            Some(term) => escape_control(term),
            None => "all together".to_owned(),
        })
        .table;
    Table { above: title, ..table }
}

fn support_text(load: &KeptLoad) -> String {
    let runs = if load.runs == 1 { "run" } else { "runs" };
    match load.support {
        KeptSupport::Confirmed => format!("confirmed, {} {runs}", load.runs),
        KeptSupport::Measured => format!("as measured, {} {runs}", load.runs),
        KeptSupport::Missed => "no load keeps it".to_owned(),
        KeptSupport::Unknown => "no usable figures".to_owned(),
    }
}

/// What the term limits, or the share of requests inside it.
fn limit_figure_text(load: &KeptLoad) -> String {
    match (load.value, load.attainment) {
        (Some(value), _) => cell_number(value.value),
        (None, Some(share)) => format!("{} % good", bare_percent(share.value)),
        (None, None) => "–".to_owned(),
    }
}

/// Metric, value, condition.
fn stated_figures_table(summary: &SweepSummary) -> Table {
    let caption = "What the sweep is quoted by, each figure with the load, workload and number of \
                   requests it was measured with; latencies in ms.";
    Table::from_subjects("Metric, value, condition", caption, &summary.figures)
        .left("metric", 14, |found| found.metric.clone())
        .right("value", 27, |found| stated_value(found))
        .with(Column::prose("condition", 2), |found| escape_control(&found.condition))
        .table
}

fn stated_value(found: &StatedFigure) -> String {
    let Some(value) = found.value else { return "–".to_owned() };
    let ends = match (value.low, value.high) {
        (Some(_), Some(_)) => range_in_brackets(value.low, value.high, cell_number),
        _ => String::new(),
    };
    format!("{}{ends} {}", cell_number(value.value), found.unit)
}

/// The highest load for each of several terms, in one line; none where one says it all.
pub(super) fn terms_line(summary: &SweepSummary) -> Option<String> {
    let alone = || summary.kept_loads.iter().filter(|load| load.term.is_some());
    let axis = summary.plan.axis;
    let one = |load: &KeptLoad| {
        let term = escape_control(load.term.as_deref().unwrap_or_default());
        match load.level {
            Some(level) => {
                format!("{} {} for {term}", level_value_text(axis, level), axis_unit(axis))
            }
            None => format!("none for {term}"),
        }
    };
    (alone().count() > 1).then(|| alone().map(one).collect::<Vec<_>>().join("; "))
}

/// The answer as output tokens per second at the SLO; none without an answer.
pub(super) fn tokens_line(summary: &SweepSummary) -> Option<String> {
    let found = |name: &str| {
        let figure = summary.figures.iter().find(|figure| figure.metric == name)?;
        Some(amount(figure.value?.value))
    };
    let tokens = found("goodput").filter(|_| summary.verdict != Verdict::Void)?;
    let each = found("goodput per GPU").map_or(String::new(), |each| format!(" ({each} per GPU)"));
    let goodput = summary.goodput.as_ref()?;
    Some(format!("{tokens} output tok/s{each} at {}", escape_control(&goodput.slo)))
}

/// That the SLO was given afterwards.
pub(super) fn judged_afterwards_note(summary: &SweepSummary) -> Option<String> {
    let before = match summary.measured_with.as_deref()? {
        "none" => "no SLO".to_owned(),
        before => escape_control(before),
    };
    let points = count(summary.points.len() as u64);
    Some(format!("by an SLO given afterwards, from {points} saved points; measured with {before}"))
}

#[cfg(test)]
mod tests;
