//! Tables of a comparison, as the other pages have them.

use goodput_campaign::compare::{Cell as Run, Comparison, Matter, SideFacts};

use super::forest::{READ, forest};
use crate::compare::tables::{BETTER, CHANGE, SURE, Table};
use crate::compare::words::{label, labels};
use crate::compare::{notes, shadow, tables};
use crate::html::markup::Html;
use crate::html::pieces::{Cell, facts, table};

/// A table as the other pages have it; words that say how something went have their colour.
fn show(html: &mut Html, table_of: &Table) {
    let head: Vec<&str> = table_of.head.iter().map(String::as_str).collect();
    let row = |row: &Vec<String>| row.iter().map(|text| cell(text)).collect();
    let rows: Vec<Vec<Cell>> = table_of.rows.iter().map(row).collect();
    table(html, &table_of.title, &head, &rows);
}

fn cell(text: &str) -> Cell {
    let class = match text.trim_end_matches(" ?") {
        "better" | "yes" => "good",
        "WORSE" | "NO" | "void" => "bad",
        "inconclusive" | "cannot be told yet" => "doubt",
        _ => "",
    };
    Cell { text: text.to_owned(), class }
}

/// What live traffic showed beside the figures, where that was compared.
pub(super) fn live(html: &mut Html, comparison: &Comparison) {
    let Some(found) = &comparison.shadow else { return };
    let notes = shadow::notes(found).into_iter();
    let notes: Vec<(String, String)> = notes.map(|(name, text)| (name.to_owned(), text)).collect();
    facts(html, &notes);
    if let Some(counts) = shadow::counts(comparison, found) {
        show(html, &counts);
    }
}

pub(super) fn gates(html: &mut Html, comparison: &Comparison) {
    if let Some(gates) = tables::gates(comparison) {
        show(html, &gates);
    }
}

/// The forest plot, and the figures it is drawn from.
pub(super) fn differences(html: &mut Html, comparison: &Comparison) {
    let forest = forest(comparison);
    if !forest.is_empty() {
        html.element("figure", &[("id", forest.name)], |html| {
            html.leaf("h3", &[], &forest.title);
            html.element("div", &[("class", "scroll"), ("tabindex", "0")], |html| {
                html.ours(&forest.inline());
            });
            html.leaf("figcaption", &[], READ);
        });
    }
    let pairs = tables::pairs(comparison);
    let of = |tested: bool| {
        let all = pairs.iter().filter_map(move |pair| tables::figures(comparison, *pair, tested));
        all.collect::<Vec<Table>>()
    };
    let tested = of(true);
    for figures in &tested {
        show(html, &figures.columns(&figures.title, &CHANGE));
    }
    if !tested.is_empty() {
        details(html, "How sure each of them is", |html| {
            for figures in &tested {
                show(html, &figures.columns(&figures.title, &SURE));
            }
        });
    }
    let others = of(false);
    if !others.is_empty() {
        details(html, "Other figures: described, not tested", |html| {
            for other in &others {
                show(html, other);
            }
        });
    }
    for remark in tables::remarks(comparison) {
        html.leaf("p", &[], remark);
    }
}

/// What is there for those who look for it.
pub(super) fn details(html: &mut Html, title: &str, fill: impl FnOnce(&mut Html)) {
    html.element("details", &[], |html| {
        html.leaf("summary", &[], title);
        fill(html);
    });
}

/// All figures of all sides: the best one of a row is named at its end, and stands out.
pub(super) fn axes(html: &mut Html, comparison: &Comparison) {
    let all = tables::axes(comparison, None);
    for axes in &all {
        let head: Vec<&str> = axes.head.iter().map(String::as_str).collect();
        let row = |row: &Vec<String>| {
            // What was not tested does not stand out.
            let best = row.last().map_or("", String::as_str);
            let is_best = |place: usize| {
                let name = axes.head.get(place).filter(|name| !name.is_empty());
                place + 1 < row.len()
                    && name.is_some_and(|name| best.split(", ").any(|b| b == name))
            };
            let one = |(place, text): (usize, &String)| Cell {
                text: text.clone(),
                class: if is_best(place) { "best" } else { "" },
            };
            row.iter().enumerate().map(one).collect()
        };
        let rows: Vec<Vec<Cell>> = axes.rows.iter().map(row).collect();
        table(html, &axes.title, &head, &rows);
    }
    if !all.is_empty() {
        html.leaf("p", &[("class", "about")], BETTER);
    }
}

/// What should be the same and is not, and what the sides are.
pub(super) fn differs(html: &mut Html, comparison: &Comparison) {
    html.leaf("p", &[], &notes::differs(comparison));
    let all = notes::differences(comparison);
    if !all.is_empty() {
        html.element("ul", &[("class", "caveats")], |html| {
            for (mark, text) in &all {
                let class = match mark.trim() {
                    word if word == word_of(Matter::Refuse) => "void",
                    word if word == word_of(Matter::Warn) => "warn",
                    _ => "info",
                };
                html.element("li", &[("class", class)], |html| {
                    html.leaf("strong", &[], mark.trim()).text(" ").text(text);
                });
            }
        });
    }
    sides(html, comparison);
}

fn word_of(matter: Matter) -> &'static str {
    notes::mark(matter).trim()
}

/// What each side's first run says of itself, with a word where sides differ.
fn sides(html: &mut Html, comparison: &Comparison) {
    let names = labels(comparison);
    let first = |side: usize| {
        let is_own = |run: &&Run| run.ask.side as usize == side;
        comparison.runs.iter().find(is_own).map(|run| &run.facts)
    };
    let all: Vec<Option<&SideFacts>> = (0..names.len()).map(first).collect();
    // A block of live traffic says nothing of a side that the head of the page does not.
    if all.iter().all(Option::is_none) || comparison.shadow.is_some() {
        return;
    }
    let mut head = vec![String::new()];
    head.extend((0..names.len()).map(|side| label(&names, side as u32)));
    head.push("differs".to_owned());
    let mut rows = Vec::new();
    for (name, of) in FACTS {
        let values: Vec<String> =
            all.iter().map(|facts| facts.map_or_else(String::new, of)).collect();
        if values.iter().all(String::is_empty) {
            continue;
        }
        let is_same = values.windows(2).all(|pair| pair.first() == pair.last());
        let mut row: Vec<Cell> = vec![name.into()];
        row.extend(values.into_iter().map(|text| Cell { text, class: "words" }));
        row.push(if is_same {
            "same".into()
        } else {
            Cell { text: "differs".to_owned(), class: "doubt" }
        });
        rows.push(row);
    }
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    table(html, "Each side by its first run", &head, &rows);
}

type Fact = fn(&SideFacts) -> String;

const FACTS: [(&str, Fact); 11] = [
    ("model", |facts| facts.model.clone()),
    ("API", |facts| facts.api.clone()),
    ("transport", |facts| facts.transport.clone()),
    ("workload", |facts| facts.workload.clone()),
    ("workload hash", |facts| facts.workload_hash.chars().take(16).collect()),
    ("load", |facts| facts.load.clone()),
    ("SLO", |facts| facts.slo.clone()),
    ("sampling", |facts| facts.extra_body.clone()),
    ("prefix cache", |facts| facts.cache.clone()),
    ("measured by", |facts| facts.version.clone()),
    ("measured on", |facts| facts.host.clone()),
];
