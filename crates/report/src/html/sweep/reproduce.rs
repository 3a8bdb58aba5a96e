//! What it takes to measure the same again, and the checklist of what a result must tell.

use goodput_campaign::curve::by_level;
use goodput_campaign::sweep::{Effort, PointSummary, SweepSummary};
use goodput_model::Severity;
use goodput_stats::{Audit, Status};

use super::super::markup::Html;
use super::super::pieces::{Cell, facts, table};
use super::super::view::SweepView;
use super::named_level;
use crate::number::{cell, count};
use crate::sweep::{Latency, duration, on_curve, range, took};

pub(super) fn fill(html: &mut Html, view: &SweepView<'_>) {
    let given = view.circumstances;
    if !given.command.is_empty() {
        html.leaf("h3", &[], "Command");
        lines(html, &given.command);
    }
    let mut all = known(view.summary);
    all.extend(given.facts.iter().cloned());
    facts(html, &all);
    spread(html, view.summary);
    if !given.plan.is_empty() {
        html.element("details", &[], |html| {
            html.leaf("summary", &[], "The plan, as its file has it");
            lines(html, &given.plan);
        });
    }
    if let Some(audit) = view.audit {
        checklist(html, &of_sweep(audit, view.summary));
    }
}

/// Text with its lines kept.
fn lines(html: &mut Html, text: &str) {
    html.element("pre", &[("tabindex", "0")], |html| {
        for line in text.lines() {
            html.text(line).ours("\n");
        }
    });
}

fn known(summary: &SweepSummary) -> Vec<(String, String)> {
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
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// How much runs at one load differ, where there are several.
fn spread(html: &mut Html, summary: &SweepSummary) {
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
    if rows.is_empty() {
        return;
    }
    let each = format!("p99 {} of each, ms", latency.name());
    let heads = ["load", "runs", each.as_str(), "apart"];
    table(html, "How much runs at one load differ", &heads, &rows);
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

fn checklist(html: &mut Html, audit: &Audit) {
    html.leaf("h3", &[], "Checklist, of the sweep and of the run that its answer rests on");
    html.element("div", &[("class", "scroll checklist"), ("tabindex", "0")], |html| {
        html.element("table", &[], |html| {
            html.element("thead", &[], |html| {
                html.element("tr", &[], |html| {
                    for head in ["check", "", "what the result says", "what to do"] {
                        html.leaf("th", &[("scope", "col")], head);
                    }
                });
            });
            html.element("tbody", &[], |html| {
                for item in &audit.items {
                    let (class, advice) = match item.status {
                        Status::Ok => ("good", ""),
                        Status::Missing | Status::Doubtful => ("doubt", item.advice.as_str()),
                        Status::Wrong => ("bad", item.advice.as_str()),
                    };
                    html.element("tr", &[], |html| {
                        html.leaf("th", &[("scope", "row")], &item.title);
                        html.leaf("td", &[("class", class)], item.status.name());
                        html.leaf("td", &[("class", "prose")], &item.evidence);
                        html.leaf("td", &[("class", "prose")], advice);
                    });
                }
            });
        });
    });
}
