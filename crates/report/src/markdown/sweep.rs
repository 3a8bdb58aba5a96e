//! A sweep, and sweeps under several configurations, in Markdown.

use std::fmt::{Error, Write};

use goodput_campaign::curve::delivered;
use goodput_campaign::sweep::{
    Axis, Bounded, Configuration, GoodputState, PointSummary, SweepSummary, Sweeps,
};
use goodput_model::Verdict;

use super::{judgement, list, table, text};
use crate::number::{amount, cell, count, percent};
use crate::sweep::{
    answer, knee, level_number, level_on, long_run, marked, purpose, range, stands, state, swept,
    took, unit,
};
use crate::sweeps;

/// The page of a sweep, for a pull request or a job summary.
pub fn sweep_markdown(summary: &SweepSummary) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, summary);
    page
}

fn write_page(page: &mut String, summary: &SweepSummary) -> Result<(), Error> {
    writeln!(page, "## Sweep: {}\n", word(summary))?;
    // A void result has no good news.
    let void = if summary.verdict == Verdict::Void { "These numbers are void: " } else { "" };
    writeln!(page, "**{void}{}**\n", text(&answer(summary)))?;
    let facts = &summary.sweep;
    let mut all = vec![
        ("Target", facts.target.clone()),
        ("Model", facts.model.clone()),
        ("Workload", facts.workload.clone()),
        ("Sweep", swept(summary)),
    ];
    all.extend(summary.plan.slo.as_ref().map(|slo| ("SLO", slo.to_string())));
    all.extend(state(summary).map(|state| ("State", state)));
    all.push(("Knee", knee(summary)));
    let axis = summary.plan.axis;
    all.extend(summary.sustained.as_ref().map(|run| ("Sustained", long_run(run, axis))));
    all.push(("Time", took(summary)));
    all.push(("Made by", format!("goodput {}, {}", facts.version, facts.started)));
    list(page, &all)?;
    points(page, summary)?;
    writeln!(page, "\n### How far to believe it\n")?;
    judgement(page, summary.verdict, &summary.caveats)
}

/// The whole in a few plain words.
fn word(summary: &SweepSummary) -> &'static str {
    match summary.goodput.as_ref().map(|goodput| goodput.state) {
        _ if summary.verdict == Verdict::Void => "void",
        Some(GoodputState::Found) => "goodput found",
        Some(GoodputState::AtLeast) => "goodput found, nothing was over the limit",
        Some(GoodputState::Unreachable) => "no load keeps the SLO",
        Some(GoodputState::Unclear) => "goodput cannot be told",
        None => summary.verdict.name(),
    }
}

const HEAD: [&str; 14] = [
    "#",
    "level",
    "for",
    "n",
    "delivered",
    "TTFT p50",
    "TTFT p99",
    "TPOT p50",
    "TPOT p99",
    "output tok/s",
    "good",
    "good/s",
    "front",
    "the SLO",
];

fn points(page: &mut String, summary: &SweepSummary) -> Result<(), Error> {
    if summary.points.is_empty() {
        return Ok(());
    }
    let row = |(place, point): (usize, &PointSummary)| {
        let (ask, figures) = (&point.point.ask, &point.point.figures);
        let front = summary.curve.pareto.contains(&place);
        let share = figures.attainment.map_or("–".to_owned(), |share| {
            format!("{}{}", percent(share.value), range(share.low, share.high, percent))
        });
        vec![
            ask.number.to_string(),
            level_on(summary.plan.axis, ask.level),
            purpose(ask.purpose).to_owned(),
            count(figures.requests),
            delivered(figures).map_or("–".to_owned(), percent),
            marked(figures.ttft_ms.p50),
            with_ends(figures.ttft_ms.p99),
            marked(figures.tpot_ms.p50),
            with_ends(figures.tpot_ms.p99),
            figures.output_tps.map_or("–".to_owned(), cell),
            share,
            figures.goodput_rps.map_or("–".to_owned(), |rate| cell(rate.value)),
            if front { "*" } else { "" }.to_owned(),
            if summary.plan.slo.is_some() { stands(point) } else { String::new() },
        ]
    };
    let rows: Vec<Vec<String>> = summary.points.iter().enumerate().map(row).collect();
    let title = format!("Every point (levels in {}, ms)", unit(summary.plan.axis));
    table(page, &title, &HEAD, &rows)?;
    let text = text(
        "*: no other point has both more output tok/s and less latency; ~: its interval is not known \
         to both ends",
    );
    writeln!(page, "\n{text}")
}

/// A figure with its interval.
fn with_ends(figure: Option<Bounded>) -> String {
    let ends = figure.map_or(String::new(), |found| match (found.low, found.high) {
        (Some(_), Some(_)) => range(found.low, found.high, cell),
        _ => String::new(),
    });
    marked(figure) + &ends
}

/// The page of sweeps under several configurations.
pub fn sweeps_markdown(sweeps: &Sweeps) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_sweeps(&mut page, sweeps);
    page
}

fn write_sweeps(page: &mut String, sweeps: &Sweeps) -> Result<(), Error> {
    let all = &sweeps.configurations;
    writeln!(page, "## Sweeps of {} configurations\n", all.len())?;
    writeln!(page, "**Best: {}**\n", text(&sweeps::best(sweeps)))?;
    judgement(page, sweeps.verdict, &[])?;
    let axis = all.iter().find_map(|one| one.sweep.as_ref()).map_or(Axis::Rate, |s| s.plan.axis);
    let keeps = format!("keeps the SLO, {}", unit(axis));
    let head =
        ["configuration", "start to ready", "first token", &keeps, "good there", "output tok/s"];
    let head: Vec<&str> = head.into_iter().chain(["knee, req/s", "verdict"]).collect();
    let rows: Vec<Vec<String>> = all.iter().map(configuration).collect();
    table(page, "Configurations", &head, &rows)?;
    for one in all {
        let Some(failed) = &one.failed else { continue };
        let first = failed.lines().next().unwrap_or("no reason is known");
        writeln!(page, "\n- **failed** {}: {}", text(&sweeps::name(one)), text(first))?;
    }
    Ok(())
}

fn configuration(one: &Configuration) -> Vec<String> {
    let mut row = vec![sweeps::name(one)];
    row.extend(sweeps::start(one));
    match &one.sweep {
        None => row.extend(["–", "–", "–", "–", "failed"].map(str::to_owned)),
        Some(sweep) => {
            let share = sweep.goodput.as_ref().and_then(|goodput| goodput.attainment);
            let knee = sweep.curve.knee.map(|knee| level_number(Axis::Rate, knee.level));
            row.extend([
                sweeps::answer(sweep),
                share.map_or("–".to_owned(), percent),
                sweeps::there(sweep).map_or("–".to_owned(), amount),
                knee.unwrap_or("–".to_owned()),
                sweep.verdict.name().to_owned(),
            ]);
        }
    }
    row
}
