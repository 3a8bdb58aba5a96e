//! How long a comparison took, and what it takes to make it again.

use goodput_campaign::compare::{Comparison, Gate, Quantity};

use super::CompareView;
use crate::compare::notes::{looks_text, order_text};
use crate::compare::words::{block_seconds, level_text};
use goodput_document::number::{duration, trimmed_text};
use goodput_document::{Block, Fact, Formats, Section};

use crate::estimate::guessed_duration;

const HTML: Formats = Formats::HTML;

pub(crate) fn time_facts(comparison: &Comparison) -> Vec<Fact> {
    let known = &comparison.comparison;
    let mut all = Vec::new();
    let mut put = |name: &str, text: String| all.push(Fact::new(name, text));
    if !known.started.is_empty() {
        put("Began", known.started.clone());
    }
    if known.took_s > 0.0 {
        put("Took", duration(known.took_s));
    }
    if let Some(said) = known.estimated_s.filter(|said| said.is_finite()) {
        put("Estimated before, at most", guessed_duration(said));
    }
    if known.blocks > 0 {
        put("Complete blocks", known.blocks.to_string());
    }
    if let Some(each) = block_seconds(comparison) {
        put("A block", guessed_duration(each));
    }
    if known.repeats > 0 {
        put("Repeated because a target was unreachable", known.repeats.to_string());
    }
    all
}

/// What was asked, with the command and the plan where they are known.
pub(crate) fn repeat_section(view: CompareView<'_>) -> Section {
    let design = &view.comparison.design;
    let levels = (0..design.levels.len()).map(|place| level_text(view.comparison, place as u32));
    let levels = levels.collect::<Vec<_>>().join(", ");
    let mut all = Vec::new();
    let mut put = |name: &str, text: String| all.push(Fact::new(name, text));
    put("goodput", view.comparison.comparison.version.clone());
    put("Sides", design.sides.join(", "));
    put(
        "Load",
        if design.quantity == Quantity::Goodput { "searched for".to_owned() } else { levels },
    );
    if view.comparison.shadow.is_some() {
        put("Each block at least", format!("{} s", trimmed_text(design.run_s)));
    } else if view.comparison.is_paired {
        put("Seed", design.seed.to_string());
        put("Order", order_text(design).to_owned());
        put("Looks", looks_text(design));
        let seconds = |s: f64| format!("{} s", trimmed_text(s));
        put("Each run", seconds(design.run_s));
        put("Load before it", seconds(design.burn_in_s));
        put("Pause after it", seconds(design.settle_s));
    }
    put("Margin", format!("{} %", trimmed_text(design.margin * 100.0)));
    put("Probability of a wrong verdict", format!("{} %", trimmed_text(design.alpha * 100.0)));
    let gates: Vec<String> = design.gates.iter().map(Gate::to_string).collect();
    put("Gates", gates.join(", "));
    all.retain(|fact| !fact.text.is_empty());
    let mut section = Section::new("repeat", "How to repeat it").with_on(HTML, Block::Facts(all));
    let Some(known) = view.circumstances else { return section };
    section = section.with_on(HTML, Block::facts(known.facts.clone()));
    for (title, text) in [("The command", &known.command), ("The plan", &known.plan)] {
        section = section.with_some(HTML, Block::text_lines(title, text, false));
    }
    section
}
