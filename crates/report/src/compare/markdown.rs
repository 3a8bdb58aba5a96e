//! A comparison in Markdown, for a pull request or the summary of a job.

use std::collections::BTreeSet;
use std::fmt::{Error, Write};

use goodput_campaign::compare::Comparison;

use super::tables::{BETTER, Table};
use super::{answer, notes, shadow, tables, words};
use crate::markdown::{judgement, list, table, text};

/// The page for a pull request or a job summary.
pub fn compare_markdown(comparison: &Comparison) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, comparison);
    page
}

fn write_page(page: &mut String, comparison: &Comparison) -> Result<(), Error> {
    writeln!(page, "## {}: {}\n", shadow::name(comparison), words::whole(comparison))?;
    for answer in answer::sentences(comparison) {
        writeln!(page, "**{}**\n", text(&answer))?;
    }
    list(page, &notes::compared(comparison))?;
    live(page, comparison)?;
    if let Some(gates) = tables::gates(comparison) {
        show(page, &gates)?;
    }
    let pairs = tables::pairs(comparison);
    for tested in pairs.iter().filter_map(|pair| tables::figures(comparison, *pair, true)) {
        show(page, &tested)?;
    }
    let axes = tables::axes(comparison, None);
    for axes in &axes {
        show(page, axes)?;
    }
    if !axes.is_empty() {
        writeln!(page, "\n{}", text(BETTER))?;
    }
    for remark in tables::remarks(comparison) {
        writeln!(page, "\n{}", text(remark))?;
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
    list(page, &notes::sent(comparison))?;
    judgement(page, comparison.verdict, &notes::caveats(comparison))?;
    others(page, comparison, &pairs)
}

/// What live traffic showed beside the figures, where that was compared.
fn live(page: &mut String, comparison: &Comparison) -> Result<(), Error> {
    let Some(found) = &comparison.shadow else { return Ok(()) };
    writeln!(page, "\n### {}\n", shadow::TITLE)?;
    list(page, &shadow::notes(found))?;
    shadow::counts(comparison, found).map_or(Ok(()), |counts| show(page, &counts))
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
        show(page, other)?;
    }
    writeln!(page, "\n</details>")
}

fn show(page: &mut String, of: &Table) -> Result<(), Error> {
    table(page, &of.title, &of.head, &of.rows)
}
