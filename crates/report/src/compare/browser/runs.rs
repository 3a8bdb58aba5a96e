//! Every run of a comparison, with the way to its own page.

use std::fmt::Write;

use goodput_campaign::compare::{Cell as Run, Comparison};
use goodput_model::Verdict;

use super::CompareView;
use crate::compare::words::{Known, label, labels, level, several};
use crate::document::{Block, Folded};
use crate::markup::Html;

/// More rows than this wait behind a line.
const SHOWN: usize = 24;

/// What the section is called.
pub(crate) fn title(comparison: &Comparison) -> &'static str {
    if comparison.shadow.is_some() { "Blocks" } else { "Runs" }
}

/// All of them; many wait behind a line.
pub(crate) fn block(view: CompareView<'_>) -> Option<Block> {
    let comparison = view.comparison;
    let all = match comparison.shadow {
        Some(_) => several(comparison.comparison.blocks, "block"),
        None => several(comparison.runs.len() as u32, "run"),
    };
    let table = Block::Widget(Html::of(|html| table(html, view)));
    match comparison.runs.len() {
        0 => None,
        n if n <= SHOWN => Some(table),
        _ => Some(Block::Folded(Folded { title: format!("All {all}"), blocks: vec![table] })),
    }
}

/// Names of the figures that are tested, in their order.
fn tested(comparison: &Comparison) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for one in comparison.findings.iter().filter(|one| one.is_tested) {
        if !all.contains(&one.metric.as_str()) {
            all.push(&one.metric);
        }
    }
    all
}

fn table(html: &mut Html, view: CompareView<'_>) {
    let comparison = view.comparison;
    let figures: Vec<(&str, Known)> =
        tested(comparison).into_iter().map(|name| (name, Known::of(name))).collect();
    let block = if comparison.is_paired { "block" } else { "run" };
    let mut head: Vec<String> = ["#", block, "side", "load", "verdict"].map(str::to_owned).to_vec();
    head.extend(figures.iter().map(|(_, known)| known.heading()));
    html.element("div", &[("class", "scroll"), ("tabindex", "0")], |html| {
        html.element("table", &[], |html| {
            let caption = match comparison.shadow {
                Some(_) => "Every block of time, each side over the same requests",
                None => "Every run, in the order measured",
            };
            html.leaf("caption", &[], caption);
            html.element("thead", &[], |html| {
                html.element("tr", &[], |html| {
                    for name in &head {
                        html.leaf("th", &[("scope", "col")], name);
                    }
                });
            });
            html.element("tbody", &[], |html| {
                for run in &comparison.runs {
                    html.element("tr", &[], |html| row(html, view, run, &figures));
                }
            });
        });
    });
}

fn row(html: &mut Html, view: CompareView<'_>, run: &Run, figures: &[(&str, Known)]) {
    let comparison = view.comparison;
    let ask = &run.ask;
    let number = ask.number.to_string();
    html.element("th", &[("scope", "row")], |html| match folder(view, ask.number) {
        Some(folder) => {
            let href = format!("{}/report.html", address(folder));
            html.leaf("a", &[("href", &href), ("title", folder)], &number);
        }
        None => {
            html.text(&number);
        }
    });
    let names = labels(comparison);
    for text in [ask.block.to_string(), label(&names, ask.side), level(comparison, ask.level)] {
        html.leaf("td", &[], &text);
    }
    let why = run.doubt.as_ref().map_or("", |doubt| doubt.message.as_str());
    let class = match run.verdict {
        Verdict::Valid => "good",
        Verdict::Suspect => "doubt",
        Verdict::Void => "bad",
    };
    html.leaf("td", &[("class", class), ("title", why)], run.verdict.name());
    for (name, known) in figures {
        let value = run.figures.get(*name).map_or_else(|| "–".to_owned(), |f| known.value(f.value));
        html.leaf("td", &[], &value);
    }
}

fn folder(view: CompareView<'_>, number: u32) -> Option<&str> {
    view.folders.iter().find(|(known, _)| *known == number).map(|(_, folder)| folder.as_str())
}

/// A folder as a relative address: nothing in its name is a scheme, a query or a place in a page.
fn address(folder: &str) -> String {
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
    out
}
