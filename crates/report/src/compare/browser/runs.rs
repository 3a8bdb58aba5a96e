//! Every run of a comparison, with the way to its own page.

use std::fmt::Write;

use goodput_campaign::compare::Comparison;

use super::CompareView;
use crate::compare::words::{FigureWords, count_text, level_text, side_label};
use goodput_document::number::known_or_dash;
use goodput_document::{Block, Cell, Column, Folded, Table};

/// More rows than this wait behind a line.
const SHOWN: usize = 24;

/// What the section is called.
pub(crate) fn runs_title(comparison: &Comparison) -> &'static str {
    if comparison.shadow.is_some() { "Blocks" } else { "Runs" }
}

/// All of them; many wait behind a line.
pub(crate) fn runs_block(view: CompareView<'_>) -> Option<Block> {
    let comparison = view.comparison;
    let all = match comparison.shadow {
        Some(_) => count_text(comparison.comparison.blocks, "block"),
        None => count_text(comparison.runs.len() as u32, "run"),
    };
    let table = Block::Table(runs_table(view));
    match comparison.runs.len() {
        0 => None,
        n if n <= SHOWN => Some(table),
        _ => Some(Block::Folded(Folded { title: format!("All {all}"), blocks: vec![table] })),
    }
}

/// Names of the figures that are tested, in their order.
fn tested_metrics(comparison: &Comparison) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for one in comparison.findings.iter().filter(|one| one.is_tested) {
        if !all.contains(&one.metric.as_str()) {
            all.push(&one.metric);
        }
    }
    all
}

fn runs_table(view: CompareView<'_>) -> Table {
    let comparison = view.comparison;
    let caption = match comparison.shadow {
        Some(_) => "Every block of time; both sides have the same requests",
        None => "Every run, in the order measured",
    };
    let block = if comparison.is_paired { "block" } else { "run" };
    Table::from_subjects(caption, caption, &comparison.runs)
        .left("#", 0, |run| {
            let number = Cell::from(run.ask.number.to_string());
            match run_folder(view, run.ask.number) {
                Some(folder) => {
                    Cell { href: Some(relative_address(folder)), ..number.hint(folder) }
                }
                None => number,
            }
        })
        .left(block, 0, |run| run.ask.block.to_string())
        .left("side", 0, |run| side_label(comparison, run.ask.side))
        .left("load", 0, |run| level_text(comparison, run.ask.level))
        .left("verdict", 0, |run| {
            let why = run.doubt.as_ref().map_or("", |doubt| doubt.message.as_str());
            Cell::from(run.verdict.name()).tone(run.verdict.into()).hint(why)
        })
        .each(
            tested_metrics(comparison),
            |name| Column::left(FigureWords::new(name).heading(), 0),
            |run, name| {
                known_or_dash(run.figures.get(*name), |found| {
                    FigureWords::new(name).value_text(found.value)
                })
            },
        )
        .table
}

fn run_folder(view: CompareView<'_>, number: u32) -> Option<&str> {
    view.folders.iter().find(|(known, _)| *known == number).map(|(_, folder)| folder.as_str())
}

/// The page of a folder as a relative address: nothing in its name is a scheme, a query or a place in a page.
fn relative_address(folder: &str) -> String {
    let mut out = "./".to_owned();
    for byte in folder.trim_start_matches(['/', '\\']).bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'=' | b',' | b'/' => {
                out.push(char::from(byte));
            }
            byte => {
                // Writing to a string cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out + "/report.html"
}
