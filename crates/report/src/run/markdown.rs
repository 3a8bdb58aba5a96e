//! A run in Markdown.

use std::fmt::{Error, Write};

use goodput_model::Verdict;
use goodput_stats::{SloState, SloSummary, Summary};

use super::{clients, latency, slo, workload};
use crate::render::markdown::{judgement, list, table, text};
use crate::run::facts as words;

/// The page of a run, for a pull request or a job summary.
pub fn run_markdown(summary: &Summary) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, summary);
    page
}

fn write_page(page: &mut String, summary: &Summary) -> Result<(), Error> {
    let run = &summary.run;
    let kept = summary.slo.as_ref().map(|slo| slo::state(summary, slo));
    // A void result has no good news.
    let is_void = summary.verdict == Verdict::Void;
    let word = kept.filter(|_| !is_void).unwrap_or(summary.verdict.name());
    writeln!(page, "## Run: {}\n", text(word))?;
    let answer = match &summary.slo {
        Some(promise) => format!("goodput {}", slo::goodput(promise)),
        None => words::throughput(summary),
    };
    let void = if is_void { "These numbers are void: " } else { "" };
    writeln!(page, "**{void}{}**\n", text(&answer))?;
    let facts = [
        ("Target", run.target.clone()),
        ("Model", format!("{} · {}, {}", run.model, run.api, words::streaming(summary))),
        ("Workload", workload::name(run)),
        ("Load", words::load(summary)),
        ("Window", words::window(summary)),
        ("Requests", words::requests(summary)),
        ("Tokens", words::tokens(summary)),
        ("Throughput", words::throughput(summary)),
        ("Made by", format!("goodput {}, seed {}, {}", run.version, run.seed, run.started)),
    ];
    if let Some(part) = clients::part(run) {
        list(page, &[("Shard", part)])?;
    }
    list(page, &facts)?;
    if let Some(promise) = &summary.slo {
        terms(page, promise, is_void)?;
    }
    let found = latency::cells(summary);
    if found.rows.is_empty() {
        writeln!(page, "\nNo latency to show: no request ended well.")?;
    } else {
        table(page, "Latency", &found.head, &found.rows)?;
        writeln!(page)?;
        list(page, &found.marks)?;
    }
    if let Some(clients::Cells { rows, more }) = clients::cells(summary) {
        table(page, "Clients", &clients::HEAD, &rows)?;
        if let Some(more) = more {
            writeln!(page, "\n{}", text(&more))?;
        }
    }
    writeln!(page, "\n### How far to believe it\n")?;
    judgement(page, summary.verdict, &summary.caveats)?;
    let errors = &summary.requests.error_details;
    let errors: Vec<_> = errors.iter().map(|detail| ("Error", words::error(detail))).collect();
    list(page, &errors)
}

/// What was promised, and what came of it.
fn terms(page: &mut String, promise: &SloSummary, is_void: bool) -> Result<(), Error> {
    let state = |state: SloState| match state {
        SloState::Met if is_void => "not shown: void",
        SloState::Reported => "–",
        state => state.name(),
    };
    let mut rows: Vec<Vec<String>> = promise
        .terms
        .iter()
        .map(|term| vec![term.term.clone(), slo::figure(term), state(term.state).to_owned()])
        .collect();
    let judged = state(promise.attainment_state).to_owned();
    rows.push(vec!["all together".to_owned(), slo::goodput(promise), judged]);
    table(page, "SLO", &["term", "seen", "state"], &rows)?;
    writeln!(page, "\n{}", text(&slo::beside(promise)))
}
