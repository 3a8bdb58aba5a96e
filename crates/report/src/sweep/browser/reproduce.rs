//! What it takes to measure the same again, and the checklist of what a result must tell.

use goodput_campaign::curve::by_level;
use goodput_campaign::sweep::{Bounded, Effort, PointSummary, SweepSummary, sweep_audit};

use super::named_level;
use crate::audit::checks_table;
use crate::sweep::{Latency, duration_text, points_on_curve};
use crate::view::SweepView;
use goodput_document::number::{cell_number, count};
use goodput_document::number::{duration, range_in_brackets};
use goodput_document::{Block, Fact, Formats, Section, Table};

const HTML: Formats = Formats::HTML;

pub(crate) fn reproduce_section(view: &SweepView<'_>) -> Section {
    let given = view.circumstances;
    let mut all = known_facts(view.summary);
    all.extend(given.facts.iter().map(|(label, text)| Fact::new(label, text)));
    let section = Section::with_name("reproduce", "Reproduce", "How to measure it again")
        .with_some(HTML, Block::text_lines("Command", &given.command, false))
        .with_on(HTML, Block::Facts(all))
        .with_some(HTML, spread_block(view.summary))
        .with_some(HTML, Block::text_lines("The plan file", &given.plan, true));
    let Some(audit) = view.audit else { return section };
    let title = "Checklist of the sweep and of the run that stands for it".to_owned();
    section
        .with_on(HTML, Block::Heading(title))
        .with_on(HTML, Block::Table(checks_table(&sweep_audit(view.summary, audit))))
}

fn known_facts(summary: &SweepSummary) -> Vec<Fact> {
    let (facts, plan) = (&summary.sweep, &summary.plan);
    let points = points_on_curve(&summary.points);
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
    let gpus = facts.gpus.map_or("not given (--gpus N)".to_owned(), |gpus| gpus.to_string());
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
        ("Time", duration_text(summary)),
    ]
    .map(|(name, value)| Fact::new(name, value))
    .to_vec()
}

/// How much runs at one load differ, where there are several.
fn spread_block(summary: &SweepSummary) -> Option<Block> {
    let points = points_on_curve(&summary.points);
    let latency = Latency::choose(summary.plan.slo.as_ref(), &points);
    let row = |(_, runs): (f64, Vec<&PointSummary>)| {
        let p99: Vec<Bounded> =
            runs.iter().filter_map(|point| latency.spread_of(&point.point.figures).p99).collect();
        (p99.len() > 1).then_some((runs.first()?.point.ask.level, p99))
    };
    let caption = "How much runs at one load differ";
    Table::from_subjects(caption, caption, by_level(&points).into_iter().filter_map(row))
        .right("load", 0, |(level, _)| named_level(*level))
        .right("runs", 0, |(_, p99)| p99.len().to_string())
        .right(format!("p99 {} of each, ms", latency.title()), 0, |(_, p99)| {
            let one = |it: &Bounded| {
                format!(
                    "{}{}",
                    cell_number(it.value),
                    range_in_brackets(it.low, it.high, cell_number)
                )
            };
            p99.iter().map(one).collect::<Vec<_>>().join(", ")
        })
        .right("apart", 0, |(_, p99)| {
            let values = || p99.iter().map(|figure| figure.value);
            let (low, high) =
                (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
            let mean = values().sum::<f64>() / p99.len() as f64;
            format!("±{:.1} %", (high - low) / 2.0 / mean * 100.0)
        })
        .table
        .into_block()
}
