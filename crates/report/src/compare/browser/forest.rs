//! The forest plot of the tested figures.

use goodput_campaign::compare::{Better, Comparison, FigureOutcome, Finding, MetricScale};
use goodput_model::Verdict;

use crate::compare::tables::candidates_by_level;
use crate::compare::words::{FigureWords, outcome_word};
use goodput_document::Block;
use goodput_document::markup::Html;
use goodput_document::svg::forest::{Forest, ForestGroup, ForestMark, ForestRow};

/// How to read it.
const READ: &str = "Each row is a tested figure: the point is its change against the reference, \
                    the line its interval, and the gray band the changes that do not matter. A \
                    line inside the band means equivalent; a line on one side of zero means better \
                    or worse. ↓ lower is better, ↑ higher is better; an arrow at the end of a line \
                    means that it continues.";

/// Every tested figure, a group for each candidate at each level.
pub(super) fn forest_plot(comparison: &Comparison) -> Forest {
    let groups = candidates_by_level(comparison).into_iter().filter_map(|pair| {
        let own = comparison.findings.iter().filter(|one| one.is_tested && pair.is_about(one));
        let rows: Vec<ForestRow> = own.map(|one| forest_row(one, comparison.verdict)).collect();
        let title = pair.title(comparison);
        (!rows.is_empty()).then_some(ForestGroup { title, rows })
    });
    Forest {
        name: "forest",
        title: "Differences with their intervals and margins".to_owned(),
        groups: groups.collect(),
    }
}

/// The plot for a page.
pub(crate) fn forest_block(comparison: &Comparison) -> Option<Block> {
    let forest = forest_plot(comparison);
    let drawn = Html::from_fn(|html| {
        html.element("figure", &[("id", forest.name)], |html| {
            html.text_element("h3", &[], &forest.title);
            html.element("div", &[("class", "scroll"), ("tabindex", "0")], |html| {
                html.trusted(&forest.inline_svg());
            });
            html.text_element("figcaption", &[], READ);
        });
    });
    (!forest.is_empty()).then_some(Block::Widget(drawn))
}

fn forest_row(finding: &Finding, verdict: Verdict) -> ForestRow {
    let known = FigureWords::new(&finding.metric);
    let is_there = finding.n > 0;
    let shown = |value: f64| value * 100.0;
    // Void numbers are not a result.
    let (mark, word) = match verdict {
        Verdict::Void => (ForestMark::None, "void".to_owned()),
        _ => (forest_mark(finding.outcome), outcome_word(finding.outcome).to_owned()),
    };
    let arrow = match known.better {
        Better::Lower => '↓',
        Better::Higher => '↑',
    };
    let doubt = if finding.is_doubtful { " ?" } else { "" };
    ForestRow {
        name: format!("{arrow} {}", known.heading()),
        change: is_there.then(|| shown(finding.change)),
        ends: finding.low.zip(finding.high).filter(|_| is_there).map(|(l, h)| (shown(l), shown(h))),
        margin: margin_percent(finding, &known),
        text: known.short_change(finding),
        mark,
        says: format!(
            "{} {}, margin {}, {word}",
            known.name_in_sentence(),
            known.change_with_interval(finding),
            known.margin_text(finding.margin)
        ),
        word: word + doubt,
    }
}

/// Both ends of what does not matter, in percent: of a ratio the same both ways.
pub(super) fn margin_percent(finding: &Finding, known: &FigureWords) -> (f64, f64) {
    let margin = finding.margin;
    let least = match known.scale {
        MetricScale::Ratio => 1.0 / (1.0 + margin) - 1.0,
        MetricScale::Difference => -margin,
    };
    (least * 100.0, margin * 100.0)
}

fn forest_mark(outcome: FigureOutcome) -> ForestMark {
    match outcome {
        FigureOutcome::Better => ForestMark::Better,
        FigureOutcome::Worse => ForestMark::Worse,
        FigureOutcome::Equivalent => ForestMark::Same,
        FigureOutcome::Inconclusive => ForestMark::Open,
        FigureOutcome::NoVerdict | FigureOutcome::Described => ForestMark::None,
    }
}
