//! How long a comparison took, and what it takes to make it again.

use goodput_campaign::compare::{Comparison, Gate, Quantity};

use super::CompareView;
use crate::compare::notes::{looks, order};
use crate::compare::words::{bare_about, block_seconds, level, trimmed};
use crate::html::markup::Html;
use crate::html::pieces::facts;
use crate::sweep::duration;

pub(super) fn time(html: &mut Html, comparison: &Comparison) {
    let known = &comparison.comparison;
    let mut all = Vec::new();
    let mut put = |name: &str, text: String| all.push((name.to_owned(), text));
    if !known.started.is_empty() {
        put("Began", known.started.clone());
    }
    if known.took_s > 0.0 {
        put("Took", duration(known.took_s));
    }
    if let Some(said) = known.estimated_s.filter(|said| said.is_finite()) {
        put("Said before, at most", bare_about(said));
    }
    if known.blocks > 0 {
        put("Complete blocks", known.blocks.to_string());
    }
    if let Some(each) = block_seconds(comparison) {
        put("A block", bare_about(each));
    }
    if known.repeats > 0 {
        put("Measured again because a target was gone", known.repeats.to_string());
    }
    if !all.is_empty() {
        facts(html, &all);
    }
}

/// What was asked, with the command and the plan where they are known.
pub(super) fn write(html: &mut Html, view: CompareView<'_>) {
    let design = &view.comparison.design;
    let levels = (0..design.levels.len()).map(|place| level(view.comparison, place as u32));
    let levels = levels.collect::<Vec<_>>().join(", ");
    let mut all = Vec::new();
    let mut put = |name: &str, text: String| all.push((name.to_owned(), text));
    put("goodput", view.comparison.comparison.version.clone());
    put("Sides", design.sides.join(", "));
    put(
        "Load",
        if design.quantity == Quantity::Goodput { "searched for".to_owned() } else { levels },
    );
    if view.comparison.shadow.is_some() {
        put("Each block at least", format!("{} s", trimmed(design.run_s)));
    } else if view.comparison.is_paired {
        put("Seed", design.seed.to_string());
        put("Order", order(design).to_owned());
        put("Looks", looks(design));
        let seconds = |s: f64| format!("{} s", trimmed(s));
        put("Each run", seconds(design.run_s));
        put("Load before it", seconds(design.burn_in_s));
        put("Pause after it", seconds(design.settle_s));
    }
    put("Margin", format!("{} %", trimmed(design.margin * 100.0)));
    put("Chance of a wrong word", format!("{} %", trimmed(design.alpha * 100.0)));
    let gates: Vec<String> = design.gates.iter().map(Gate::to_string).collect();
    put("Gates", gates.join(", "));
    all.retain(|(_, text)| !text.is_empty());
    facts(html, &all);
    let Some(beside) = view.circumstances else { return };
    if !beside.facts.is_empty() {
        facts(html, &beside.facts);
    }
    for (title, text) in [("The command", &beside.command), ("The plan", &beside.plan)] {
        if !text.is_empty() {
            html.leaf("h3", &[], title);
            html.element("pre", &[], |html| lines(html, text));
        }
    }
}

/// Text of several lines: each is harmless for itself.
fn lines(html: &mut Html, text: &str) {
    for (place, line) in text.lines().enumerate() {
        if place > 0 {
            html.open("br", &[]);
        }
        html.text(line);
    }
}
