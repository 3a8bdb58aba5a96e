//! A comparison in Markdown, for a pull request or the summary of a job.

use std::collections::BTreeSet;
use std::fmt::{Error, Write};

use goodput_campaign::compare::{Comparison, Outcome};
use goodput_model::{Severity, Verdict};

use super::tables::{BETTER, Table};
use super::{DOUBTFUL, answer, notes, tables};
use crate::audit::escaped;

/// The page for a pull request or a job summary.
pub fn compare_markdown(comparison: &Comparison) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, comparison);
    page
}

fn write_page(page: &mut String, comparison: &Comparison) -> Result<(), Error> {
    writeln!(page, "## Comparison: {}\n", word(comparison))?;
    for answer in answer::sentences(comparison) {
        writeln!(page, "**{}**\n", text(&answer))?;
    }
    for (label, prose) in notes::compared(comparison) {
        let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
        writeln!(page, "- {label}{}", text(&prose))?;
    }
    if let Some(gates) = tables::gates(comparison) {
        table(page, &gates)?;
    }
    let pairs = tables::pairs(comparison);
    for tested in pairs.iter().filter_map(|pair| tables::figures(comparison, *pair, true)) {
        table(page, &tested)?;
    }
    let axes = tables::axes(comparison, None);
    for axes in &axes {
        table(page, axes)?;
    }
    if !axes.is_empty() {
        writeln!(page, "\n{}", text(BETTER))?;
    }
    if tables::has_doubts(comparison) {
        writeln!(page, "\n{}", text(DOUBTFUL))?;
    }
    let ranking = tables::ranking(comparison);
    if !ranking.is_empty() {
        writeln!(page, "\n### Ranking\n")?;
    }
    for (figure, order) in ranking {
        writeln!(page, "- {}: {}", text(&figure), text(&order))?;
    }
    writeln!(page, "\n### How far to believe it\n")?;
    writeln!(page, "- Differs: {}", text(&notes::differs(comparison)))?;
    for (mark, prose) in notes::differences(comparison) {
        writeln!(page, "  - **{}** {}", mark.trim(), text(&prose))?;
    }
    writeln!(page, "- Requests: {}", text(&notes::proof(comparison)))?;
    writeln!(page, "- Noise: {}", text(&notes::floor(comparison)))?;
    caveats(page, comparison)?;
    others(page, comparison, &pairs)
}

/// The whole in a plain word.
fn word(comparison: &Comparison) -> &'static str {
    match (comparison.verdict, comparison.outcome) {
        (Verdict::Void, _) => "void",
        (_, Outcome::Better) => "better",
        (_, Outcome::Worse) => "worse",
        (_, Outcome::Equivalent) => "equivalent",
        (_, Outcome::Inconclusive) => "inconclusive",
        (_, Outcome::NoVerdict) => "no verdict",
    }
}

fn caveats(page: &mut String, comparison: &Comparison) -> Result<(), Error> {
    writeln!(page, "- Verdict: **{}**", comparison.verdict.name())?;
    for caveat in &notes::caveats(comparison) {
        let mark = match caveat.severity {
            Severity::Info => "note",
            Severity::Warn => "warning",
            Severity::Void => "void",
        };
        let advice = caveat.advice.as_ref().map_or(String::new(), |advice| format!("; {advice}"));
        let prose = text(&format!("{}{advice}", caveat.message));
        writeln!(page, "  - **{mark}** {prose}")?;
    }
    Ok(())
}

/// Figures that nobody tested are there for those who look for them.
fn others(
    page: &mut String,
    comparison: &Comparison,
    pairs: &BTreeSet<(u32, u32)>,
) -> Result<(), Error> {
    let others: Vec<Table> =
        pairs.iter().filter_map(|pair| tables::figures(comparison, *pair, false)).collect();
    if others.is_empty() {
        return Ok(());
    }
    writeln!(page, "\n<details><summary>Other figures</summary>")?;
    for other in &others {
        table(page, other)?;
    }
    writeln!(page, "\n</details>")
}

fn table(page: &mut String, table: &Table) -> Result<(), Error> {
    writeln!(page, "\n### {}\n", text(&table.title))?;
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| text(cell)).collect();
        format!("| {} |", cells.join(" | "))
    };
    writeln!(page, "{}", line(&table.head))?;
    let last = table.head.len().saturating_sub(1);
    let rule = |place: usize| if place == 0 || place == last { "---" } else { "---:" };
    let rules: Vec<&str> = (0..table.head.len()).map(rule).collect();
    writeln!(page, "|{}|", rules.join("|"))?;
    for row in &table.rows {
        writeln!(page, "{}", line(row))?;
    }
    Ok(())
}

/// Text that may hold foreign words: nothing in it ends a cell, starts a tag, a link or a code span,
/// and nobody is called by it: models are named `@cf/…`, and a mention would reach somebody. Between
/// two dollars GitHub sees mathematics, escaped or not.
fn text(text: &str) -> String {
    escaped(text).replace('@', "@&#8203;").replace('~', "\\~").replace('$', "&#36;")
}
