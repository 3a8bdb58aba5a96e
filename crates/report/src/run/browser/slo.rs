//! What users were promised, term by term.

use goodput_model::Verdict;
use goodput_stats::{SloState, SloTermSummary};

use crate::document::{Cell, Tone};
use crate::markup::Html;
use crate::number::{count, percent};
use crate::render::pieces::{fields, words};
use crate::run::slo::{figure, range, rest, state};
use crate::view::RunView;

pub(super) fn fill(html: &mut Html, view: &RunView<'_>) {
    let Some(slo) = &view.summary.slo else { return };
    html.element("p", &[], |html| {
        html.leaf("strong", &[], state(view.summary, slo)).text(": ");
        html.leaf("code", &[], &slo.slo);
    });
    let is_void = view.summary.verdict == Verdict::Void;
    let rows: Vec<_> = slo.terms.iter().map(|term| row(term, is_void)).collect();
    let head = ["term", "measured", "requests inside", "outcome"];
    words(html, "Terms", &head, &rows);
    fields(html, |found| rest(found, slo));
}

fn row(term: &SloTermSummary, is_void: bool) -> Vec<Cell> {
    let tone = match term.state {
        // A void result has no good news.
        SloState::Met if is_void => Tone::Plain,
        SloState::Met => Tone::Good,
        SloState::Missed => Tone::Bad,
        SloState::Undecided => Tone::Doubt,
        SloState::Reported => Tone::Plain,
    };
    let inside = term.attainment.map_or("–".to_owned(), |share| {
        match (term.attainment_low, term.attainment_high) {
            (None, None) => percent(share),
            (low, high) => format!("{} ({})", percent(share), range(low, high, percent)),
        }
    });
    let vacuous = match term.vacuous {
        0 => String::new(),
        n => format!("; {} answers it says nothing about", count(n)),
    };
    let outcome = if is_void && term.state == SloState::Met {
        "not shown: void".to_owned()
    } else {
        format!("{}{vacuous}", term.state.name())
    };
    vec![
        Cell::from(term.term.as_str()),
        Cell::from(figure(term)),
        Cell::from(inside),
        Cell::from(outcome).tone(tone),
    ]
}
