//! The page of a comparison.

mod blocks;
mod forest;
mod parts;
mod repeat;
mod runs;
#[cfg(test)]
mod tests;

use goodput_campaign::compare::Comparison;

use super::markup::Html;
use super::page::{Page, pictures};
use super::pieces::{answer, caveats, facts, section};
use super::view::{Circumstances, Picture};
use crate::compare::{answer as answers, notes, shadow, tables, words};
use crate::svg::Chart;

/// A comparison, and what lies beside it.
#[derive(Debug, Clone, Copy)]
pub struct CompareView<'a> {
    /// Its numbers.
    pub comparison: &'a Comparison,
    /// The folder of each run that has one, by its number: relative to that of the page.
    pub folders: &'a [(u32, String)],
    /// How to repeat it, where that is known.
    pub circumstances: Option<&'a Circumstances>,
}

/// Numbers alone, without a folder.
impl<'a> From<&'a Comparison> for CompareView<'a> {
    fn from(comparison: &'a Comparison) -> Self {
        Self { comparison, folders: &[], circumstances: None }
    }
}

/// The page of a comparison.
pub fn compare_html<'a>(view: impl Into<CompareView<'a>>) -> String {
    let view = view.into();
    let comparison = view.comparison;
    let parts = parts(view);
    let mut body = Html::default();
    said(&mut body, comparison);
    for (id, title, html) in &parts {
        match *id {
            // It has a heading of its own.
            CAVEATS => {
                body.add(html);
            }
            id => section(&mut body, id, title, |body| {
                body.add(html);
            }),
        }
    }
    let sections: Vec<(&'static str, &'static str)> =
        parts.iter().map(|(id, title, _)| (*id, *title)).collect();
    let title = format!("{}: {}", shadow::name(comparison), words::whole(comparison));
    Page { title: &title, about: &about(comparison), sections: &sections, body }.into_string()
}

/// The answer: a sentence for each candidate.
fn said(html: &mut Html, comparison: &Comparison) {
    let sentences = answers::sentences(comparison);
    if let [sentence] = sentences.as_slice() {
        answer(html, sentence, comparison.verdict);
        return;
    }
    let verdict = comparison.verdict.name();
    html.element("div", &[("id", "answer"), ("class", verdict)], |html| {
        html.element("ul", &[("class", "several")], |html| {
            for sentence in &sentences {
                html.leaf("li", &[("class", "sentence")], sentence);
            }
        });
        html.leaf("p", &[("class", "verdict")], verdict);
    });
}

const CAVEATS: &str = "caveats";

/// Id, title and contents of each section that there is.
fn parts(view: CompareView<'_>) -> Vec<(&'static str, &'static str, Html)> {
    let comparison = view.comparison;
    let all = [
        (CAVEATS, "Caveats", Html::of(|html| caveats(html, &notes::caveats(comparison)))),
        ("compared", "What was compared", Html::of(|html| compared(html, comparison))),
        ("live", shadow::TITLE, Html::of(|html| parts::live(html, comparison))),
        ("gates", "Gates", Html::of(|html| parts::gates(html, comparison))),
        ("differences", "Differences", Html::of(|html| parts::differences(html, comparison))),
        ("blocks", "Block by block", Html::of(|html| blocks::write(html, comparison))),
        ("axes", "All axes", Html::of(|html| parts::axes(html, comparison))),
        ("ranking", "Ranking", Html::of(|html| ranking(html, comparison))),
        ("noise", "Noise floor", Html::of(|html| unless_live(html, comparison, notes::floor))),
        ("requests", "Same requests", Html::of(|html| unless_live(html, comparison, notes::proof))),
        ("differs", "What differs", Html::of(|html| parts::differs(html, comparison))),
        ("runs", runs::title(comparison), Html::of(|html| runs::write(html, view))),
        ("time", "Time", Html::of(|html| repeat::time(html, comparison))),
        ("repeat", "How to repeat it", Html::of(|html| repeat::write(html, view))),
    ];
    all.into_iter().filter(|(_, _, html)| *html != Html::default()).collect()
}

/// Who, when, and by which version.
fn about(comparison: &Comparison) -> String {
    let names = words::labels(comparison);
    let against: Vec<String> =
        words::candidates(comparison).map(|side| words::label(&names, side)).collect();
    let facts = &comparison.comparison;
    let mut parts = Vec::new();
    if !against.is_empty() {
        parts.push(format!("{} against {}", against.join(", "), words::label(&names, 0)));
    }
    parts.extend([&facts.workload, &facts.started].into_iter().filter(|s| !s.is_empty()).cloned());
    if !facts.version.is_empty() {
        parts.push(format!("goodput {}", facts.version));
    }
    parts.join(" · ")
}

/// What is only said of runs.
fn unless_live(html: &mut Html, comparison: &Comparison, text: fn(&Comparison) -> String) {
    if comparison.shadow.is_none() {
        html.leaf("p", &[], &text(comparison));
    }
}

/// Sides, workload, load, blocks and the test.
fn compared(html: &mut Html, comparison: &Comparison) {
    let all: Vec<(String, String)> = notes::compared(comparison)
        .into_iter()
        .map(|(label, text)| (label.to_owned(), text))
        .collect();
    if !all.is_empty() {
        facts(html, &all);
    }
}

fn ranking(html: &mut Html, comparison: &Comparison) {
    let ranking = tables::ranking(comparison);
    if !ranking.is_empty() {
        facts(html, &ranking);
    }
}

/// Its charts as files.
pub fn compare_charts(comparison: &Comparison) -> Vec<Picture> {
    let forest = forest::forest(comparison);
    let first = (!forest.is_empty())
        .then(|| Picture { name: forest.name.to_owned(), svg: forest.standalone() });
    let charts: Vec<Chart> =
        blocks::charts(comparison).into_iter().flat_map(|f| f.charts).collect();
    first.into_iter().chain(pictures(&charts)).collect()
}
