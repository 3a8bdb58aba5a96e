//! Several runs of one plan in Markdown.

use std::fmt::{Error, Write};

use goodput_stats::{Headline, OneRun, Repeats};

use super::{judgement, list, table};
use crate::number::{cell, count};
use crate::repeats::{ROWS, signed, state};
use crate::workload;

/// The page of several runs, for a pull request or a job summary.
pub fn repeats_markdown(repeats: &Repeats) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, repeats);
    page
}

fn write_page(page: &mut String, repeats: &Repeats) -> Result<(), Error> {
    writeln!(page, "## Repeated runs: {}\n", repeats.verdict.name())?;
    let mut facts = Vec::new();
    if let Some(run) = &repeats.run {
        facts.push(("Target", run.target.clone()));
        facts.push(("Model", run.model.clone()));
        facts.push(("Workload", workload::name(run)));
        facts.push(("Made by", format!("goodput {}, {}", run.version, run.started)));
    }
    facts.push(("Load", repeats.load.clone()));
    let runs = format!("{} of {} asked for are in these figures", repeats.used, repeats.asked);
    facts.push(("Runs", runs));
    list(page, &facts)?;
    let known = |(name, label, times): (&str, &str, f64)| {
        repeats.headlines.get(name).map(|figure| headline(label, figure, times))
    };
    let rows: Vec<Vec<String>> = ROWS.into_iter().filter_map(known).collect();
    if rows.is_empty() {
        writeln!(page, "\nNothing to compare: no run ended as planned with a good answer.")?;
    } else {
        let head = ["over runs", "mean", "95 % low", "high", "SD", "CV, %", "min", "max", "differ"];
        table(page, "Over runs", &head, &rows)?;
    }
    let head = ["run", "seed", "window", "ok", "req/s", "TTFT p50", "TTFT p99", "verdict"];
    let rows: Vec<Vec<String>> = repeats.runs.iter().map(one).collect();
    table(page, "Each run", &head, &rows)?;
    writeln!(page, "\n### How far to believe it\n")?;
    judgement(page, repeats.verdict, &repeats.caveats)
}

fn headline(label: &str, figure: &Headline, times: f64) -> Vec<String> {
    let text = |value: Option<f64>| value.map_or("–".to_owned(), |value| signed(value * times));
    vec![
        label.to_owned(),
        signed(figure.mean * times),
        text(figure.low),
        text(figure.high),
        text(figure.sd),
        figure.cv.map_or("–".to_owned(), |cv| format!("{:.1}", cv * 100.0)),
        signed(figure.min * times),
        signed(figure.max * times),
        if figure.differs { "more than they say themselves" } else { "" }.to_owned(),
    ]
}

fn one(run: &OneRun) -> Vec<String> {
    let figure = |name: &str| run.figures.get(name).map_or("–".to_owned(), |value| cell(*value));
    let why = state(run);
    vec![
        format!("repeat-{}", run.number),
        run.seed.to_string(),
        format!("{:.1} s", run.window_s),
        count(run.ok),
        figure("requests_per_s"),
        figure("ttft_p50"),
        figure("ttft_p99"),
        format!("{}{why}", run.verdict.name()),
    ]
}
