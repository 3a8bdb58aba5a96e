//! A comparison as a page, as Markdown for a pull request, and as JUnit XML.

mod answer;
mod junit;
mod live;
mod markdown;
mod notes;
mod tables;
#[cfg(test)]
mod tests;
mod wanting;
mod words;

pub use junit::compare_junit;
pub use live::{compare_before, compare_design, compare_step};
pub use markdown::compare_markdown;

use goodput_campaign::compare::{Comparison, Design, Floor, family};

use crate::clip::fit;
use crate::text::{field, judgement};
use crate::wrap::wrap;
use tables::{BETTER, CHANGE, SHORT, SURE, Table, UNITS, WIDTH};

/// Marked with `?` in a table.
const DOUBTFUL: &str =
    "?: signed ranks and t do not agree: an outlier, or blocks that are not alike";

/// The noise floor of a rig in a sentence, by the figures that are usually tested.
pub fn compare_floor(floor: &Floor) -> String {
    let usual = family(&Design::default());
    format!("noise floor: {}", notes::floor_of(floor, |name| usual.contains(name)))
}

/// The page for a terminal.
pub fn compare_text(comparison: &Comparison) -> String {
    let mut page = String::new();
    for (place, answer) in answer::sentences(comparison).iter().enumerate() {
        field(&mut page, if place == 0 { "Answer" } else { "" }, answer);
    }
    page.push('\n');
    for (label, text) in notes::compared(comparison) {
        field(&mut page, label, &text);
    }
    findings(&mut page, comparison);
    if let Some(gates) = tables::gates(comparison) {
        gates.text(&mut page);
    }
    let axes = tables::axes(comparison, Some(WIDTH));
    for table in &axes {
        table.text(&mut page);
    }
    if !axes.is_empty() {
        remark(&mut page, BETTER);
    }
    page.push('\n');
    for (place, (figure, order)) in tables::ranking(comparison).iter().enumerate() {
        let label = if place == 0 { "Ranking" } else { "" };
        field(&mut page, label, &format!("{figure}: {order}"));
    }
    field(&mut page, "Differs", &notes::differs(comparison));
    for (mark, text) in notes::differences(comparison) {
        field(&mut page, mark, &text);
    }
    field(&mut page, "Requests", &notes::proof(comparison));
    field(&mut page, "Noise", &notes::floor(comparison));
    judgement(&mut page, comparison.verdict, &notes::caveats(comparison));
    // Foreign words may be longer than a line.
    fit(&page, WIDTH)
}

/// For each candidate and level: what changed, how sure that is, and the figures beside.
fn findings(page: &mut String, comparison: &Comparison) {
    for pair in tables::pairs(comparison) {
        if let Some(tested) = tables::figures(comparison, pair, true) {
            changes(page, &tested);
            // One run says nothing about how sure.
            if comparison.findings.iter().any(|one| one.is_tested && one.sd.or(one.p).is_some()) {
                tested.columns("How sure", &SURE).text(page);
            }
        }
        if let Some(others) = tables::figures(comparison, pair, false) {
            changes(page, &others);
        }
    }
    if tables::has_doubts(comparison) {
        remark(page, DOUBTFUL);
    }
}

fn changes(page: &mut String, figures: &Table) {
    let whole = figures.columns(&figures.title, &CHANGE);
    if whole.fits() {
        whole.text(page);
        return;
    }
    figures.columns(&figures.title, &SHORT).text(page);
    figures.columns("In units", &UNITS).text(page);
}

/// A line below a table.
fn remark(page: &mut String, text: &str) {
    for line in wrap(text, WIDTH) {
        page.push_str(&line);
        page.push('\n');
    }
}
