//! What it takes to measure the same again, and the checklist of what a result must tell.

use goodput_campaign::curve::by_level;
use goodput_campaign::sweep::{Effort, PointSummary, SweepSummary};
use goodput_model::Severity;
use goodput_stats::{Audit, Status};

use super::named_level;
use crate::audit::checks;
use crate::document::{Block, Cell, Column, Fact, Formats, Section, Table};
use crate::number::{cell, count};
use crate::number::{duration, range};
use crate::sweep::{Latency, on_curve, took};
use crate::view::SweepView;

const HTML: Formats = Formats::HTML;

pub(crate) fn section(view: &SweepView<'_>) -> Section {
    let given = view.circumstances;
    let mut all = known(view.summary);
    all.extend(given.facts.iter().map(|(label, text)| Fact::new(label, text)));
    let section = Section::named("reproduce", "Reproduce", "How to measure it again")
        .with_some(HTML, Block::lines("Command", &given.command, false))
        .with_on(HTML, Block::Facts(all))
        .with_some(HTML, spread(view.summary))
        .with_some(HTML, Block::lines("The plan, as its file has it", &given.plan, true));
    let Some(audit) = view.audit else { return section };
    let title = "Checklist, of the sweep and of the run that its answer rests on".to_owned();
    section
        .with_on(HTML, Block::Heading(title))
        .with_on(HTML, Block::Table(checks(&of_sweep(audit, view.summary))))
}

fn known(summary: &SweepSummary) -> Vec<Fact> {
    let (facts, plan) = (&summary.sweep, &summary.plan);
    let points = on_curve(&summary.points);
    let effort = match plan.effort {
        Effort::Quick => "quick",
        Effort::Standard => "standard",
        Effort::Certified => "certified",
    };
    let ends = |of: fn(&PointSummary) -> f64| {
        let all = || points.iter().map(|point| of(point)).filter(|value| value.is_finite());
        let (low, high) = (all().min_by(f64::total_cmp), all().max_by(f64::total_cmp));
        match low.zip(high) {
            Some((low, high)) if duration(low) == duration(high) => duration(low),
            Some((low, high)) => format!("{} to {}", duration(low), duration(high)),
            None => "–".to_owned(),
        }
    };
    let samples: u64 = points.iter().map(|point| point.point.figures.requests).sum();
    let gpus = facts.gpus.map_or("nobody said how many".to_owned(), |gpus| gpus.to_string());
    let slo = plan.slo.as_ref().map_or("none".to_owned(), ToString::to_string);
    [
        ("Target", facts.target.clone()),
        ("Model", facts.model.clone()),
        ("GPUs", gpus),
        ("Workload", facts.workload.clone()),
        ("SLO", slo),
        ("Effort", format!("{effort}, seed {}", plan.seed)),
        ("Warm-up of a point", ends(|point| point.point.ask.burn_in_s)),
        ("Window of a point", ends(|point| point.point.figures.window_s)),
        ("Samples", format!("{} requests in {} points", count(samples), points.len())),
        ("Version", format!("goodput {}", facts.version)),
        ("Begun", facts.started.clone()),
        ("Time", took(summary)),
    ]
    .map(|(name, value)| Fact::new(name, value))
    .to_vec()
}

/// How much runs at one load differ, where there are several.
fn spread(summary: &SweepSummary) -> Option<Block> {
    let points = on_curve(&summary.points);
    let latency = Latency::choose(summary.plan.slo.as_ref(), &points);
    let row = |(_, runs): &(f64, Vec<&PointSummary>)| {
        let first = runs.first()?;
        let p99: Vec<_> =
            runs.iter().filter_map(|point| latency.of(&point.point.figures).p99).collect();
        if p99.len() < 2 {
            return None;
        }
        let values = || p99.iter().map(|figure| figure.value);
        let (low, high) = (values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?);
        let mean = values().sum::<f64>() / p99.len() as f64;
        let each: Vec<String> = p99
            .iter()
            .map(|figure| format!("{}{}", cell(figure.value), range(figure.low, figure.high, cell)))
            .collect();
        let cells = [
            named_level(first.point.ask.level),
            p99.len().to_string(),
            each.join(", "),
            format!("±{:.1} %", (high - low) / 2.0 / mean * 100.0),
        ];
        Some(cells.map(Cell::from).to_vec())
    };
    let rows: Vec<Vec<Cell>> = by_level(&points).iter().filter_map(row).collect();
    let each = format!("p99 {} of each, ms", latency.name());
    let columns = ["load", "runs", each.as_str(), "apart"].map(|head| Column::right(head, 0));
    let caption = "How much runs at one load differ";
    Table::new(caption, caption, columns.into()).with_rows(rows).filled()
}

/// What a run cannot tell by itself and the sweep around it does: how it goes at other loads, and in
/// other runs.
fn of_sweep(audit: &Audit, summary: &SweepSummary) -> Audit {
    let points = on_curve(&summary.points);
    let levels = by_level(&points);
    let ends = levels.first().zip(levels.last()).and_then(|((_, low), (_, high))| {
        Some((low.first()?.point.ask.level, high.first()?.point.ask.level))
    });
    let loads = ends.filter(|_| levels.len() > 1).map(|(low, high)| {
        format!("{} loads, from {} to {}", levels.len(), named_level(low), named_level(high))
    });
    let confirming = summary.goodput.as_ref().map_or(0, |goodput| goodput.runs);
    let runs = (confirming > 1).then(|| format!("{confirming} runs confirm the answer"));
    let mut audit = audit.clone();
    for item in &mut audit.items {
        let found = match item.check.as_str() {
            "sweep" => loads.as_ref(),
            "repeats" => runs.as_ref(),
            _ => None,
        };
        if let Some(evidence) = found {
            (item.status, item.severity) = (Status::Ok, Severity::Info);
            (item.evidence, item.advice) = (evidence.clone(), String::new());
        }
    }
    audit.items.sort_by_key(|item| std::cmp::Reverse((item.severity, item.status)));
    audit
}
