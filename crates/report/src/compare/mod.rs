//! A comparison as a page, as Markdown for a pull request, and as JUnit XML.

pub(crate) mod answer;
mod junit;
mod live;
mod markdown;
pub(crate) mod notes;
pub(crate) mod shadow;
pub(crate) mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod wanting;
pub(crate) mod words;

pub use junit::compare_junit;
pub use live::{
    CompareLevel, CompareRow, compare_before, compare_design, compare_so_far, compare_step,
};
pub use markdown::compare_markdown;

use goodput_campaign::compare::{Comparison, Design, Finding, Floor, family};

use crate::clip::fit;
use crate::text::{WIDTH, field, judgement};
use crate::wrap::wrap;
use tables::{BARE, BESIDE, BETTER, CHANGE, LESS_SURE, SHORT, SURE, Table, UNITS, VALUES};

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
    live(&mut page, comparison);
    findings(&mut page, comparison);
    if let Some(gates) = tables::gates(comparison) {
        let ways: [&[(&str, &[usize])]; 2] = [
            &[("Gates", &[0, 1, 2, 3, 4])],
            &[("Gates", &[0, 1, 2, 4]), ("Changes", &[0, 1, 2, 3])],
        ];
        first_that_fits(&mut page, &gates, &ways);
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
    for (label, text) in notes::sent(comparison) {
        field(&mut page, label, &text);
    }
    judgement(&mut page, comparison.verdict, &notes::caveats(comparison));
    // Foreign words may be longer than a line.
    fit(&page, WIDTH)
}

/// What live traffic showed beside the figures, where that was compared.
fn live(page: &mut String, comparison: &Comparison) {
    let Some(found) = &comparison.shadow else { return };
    page.push('\n');
    page.push_str(shadow::TITLE);
    page.push('\n');
    for (label, text) in shadow::notes(found) {
        field(page, label, &text);
    }
    if let Some(counts) = shadow::counts(comparison, found) {
        counts.text(page);
    }
}

/// For each candidate and level: what changed, how sure that is, and the figures beside.
fn findings(page: &mut String, comparison: &Comparison) {
    for pair in tables::pairs(comparison) {
        if let Some(tested) = tables::figures(comparison, pair, true) {
            // One run says nothing about how sure.
            let is_sure = |one: &Finding| one.is_tested && one.sd.or(one.p).is_some();
            if comparison.findings.iter().any(is_sure) {
                surely_changed(page, &tested);
            } else {
                changed(page, &tested);
            }
        }
        if let Some(others) = tables::figures(comparison, pair, false) {
            changed(page, &others);
        }
    }
    for text in tables::remarks(comparison) {
        remark(page, text);
    }
}

/// What changed and how sure that is, in as few tables as there is room for.
fn surely_changed(page: &mut String, figures: &Table) {
    let title = figures.title.as_str();
    let sure = ("How sure", &LESS_SURE[..]);
    let units = ("In units, and the change by ranks", &BESIDE[..]);
    first_that_fits(
        page,
        figures,
        &[
            &[(title, &CHANGE), ("How sure", &SURE)],
            &[(title, &SHORT), sure, units],
            &[(title, &BARE), sure, (VALUES.0, &VALUES.1), units],
        ],
    );
}

/// What changed, in as few tables as there is room for.
fn changed(page: &mut String, figures: &Table) {
    let title = figures.title.as_str();
    let units = ("In units", &UNITS[..]);
    first_that_fits(
        page,
        figures,
        &[
            &[(title, &CHANGE)],
            &[(title, &SHORT), units],
            &[(title, &BARE), (VALUES.0, &VALUES.1), units],
        ],
    );
}

/// Tables of some columns each, with their titles: the first way in which all fit, or the last.
fn first_that_fits(page: &mut String, of: &Table, ways: &[&[(&str, &[usize])]]) {
    for (place, way) in ways.iter().enumerate() {
        let tables: Vec<Table> =
            way.iter().map(|(title, places)| of.columns(title, places)).collect();
        if place + 1 == ways.len() || tables.iter().all(Table::fits) {
            return tables.iter().for_each(|table| table.text(page));
        }
    }
}

/// A line below a table.
fn remark(page: &mut String, text: &str) {
    for line in wrap(text, WIDTH) {
        page.push_str(&line);
        page.push('\n');
    }
}
