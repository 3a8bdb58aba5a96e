//! What a comparison of live traffic says next to its figures.

use goodput_campaign::compare::{CompareState, Comparison};
use goodput_campaign::shadow::{Count, LikenessSummary, OverBlocks, ShadowReport};

use super::notes::LabeledText;
use super::tables::natural_width_table;
use super::words::{count_text, side_labels};
use goodput_document::number::duration;
use goodput_document::number::{cell_number, count, interval_text, percent, trimmed_text};
use goodput_document::{Column, Table};
use goodput_model::escape_control;

/// What a section of it is called.
pub(crate) const TITLE: &str = "Live traffic";

/// `shadow` or `compare`, as verbs and pages call it.
pub(crate) fn verb_name(comparison: &Comparison) -> &'static str {
    if comparison.shadow.is_some() { "shadow" } else { "compare" }
}

/// The name of the whole, at the head of a page.
pub(crate) fn page_name(comparison: &Comparison) -> &'static str {
    if comparison.shadow.is_some() { "Shadow" } else { "Comparison" }
}

/// How pairs were cut into blocks.
pub(crate) fn blocks_text(comparison: &Comparison, shadow: &ShadowReport) -> String {
    let [least, most] = shadow.block_pairs;
    let pairs = match comparison.comparison.blocks {
        0 => String::new(),
        _ if least == most => format!(", {} pairs each", count(least)),
        _ => format!(", {} to {} pairs each", count(least), count(most)),
    };
    let took = match comparison.comparison.took_s {
        s if s > 0.0 => format!("; {} in all", duration(s)),
        _ => String::new(),
    };
    format!(
        "{} of at least {} s{pairs}; both sides of a block are the same requests{took}",
        comparison.comparison.blocks,
        trimmed_text(comparison.design.run_s)
    )
}

/// How it ended, where that is not by itself.
pub(crate) fn state_note(comparison: &Comparison) -> Option<LabeledText> {
    let text = match comparison.comparison.state {
        CompareState::Unfinished => "still running or killed: these are the figures so far",
        CompareState::TargetLost => {
            "ended because a thread of the proxy failed: these are the figures up to then"
        }
        CompareState::Interrupted | CompareState::TimeUp => {
            "stopped early: these are the figures up to then"
        }
        CompareState::Complete => return None,
    };
    Some(("State", text.to_owned()))
}

/// What live traffic showed request by request.
pub(crate) fn live_notes(shadow: &ShadowReport) -> Vec<LabeledText> {
    let facts = &shadow.facts;
    let mut notes = vec![
        (
            "Passed",
            format!(
                "{} requests; {} chosen ({} requested), {} sent to the candidate",
                count(facts.passed),
                count(facts.chosen),
                percent(facts.share),
                count(facts.mirrored)
            ),
        ),
        (
            "Pairs",
            format!(
                "{}, of which {} completed on both sides",
                count(shadow.pairs),
                count(shadow.good)
            ),
        ),
    ];
    if !facts.dropped.is_empty() {
        let all =
            facts.dropped.iter().map(|(why, n)| format!("{} {}", escape_control(why), count(*n)));
        notes.push(("Dropped", all.collect::<Vec<_>>().join(", ")));
    }
    if let Some(why) = &facts.ended {
        notes.push(("Ended early", escape_control(why)));
    }
    if !shadow.slower.is_empty() {
        let all = values_by_metric(&shadow.slower, |share| {
            format!("{}{}", percent(share.value), interval_text(share.low, share.high, percent))
        });
        notes.push(("Slower", format!("the candidate, in this share of the pairs: {all}")));
    }
    if !shadow.ratios.is_empty() {
        let all = values_by_metric(&shadow.ratios, ratio_text);
        notes.push((
            "Ratio",
            format!("candidate's time relative to the primary's, median of the pairs: {all}"),
        ));
    }
    if let Some([one, other]) = shadow.output_tokens {
        let ratio = shadow.output_ratio.as_ref();
        let ratio = ratio.map_or_else(String::new, |ratio| format!("; {}", ratio_text(ratio)));
        let text =
            format!("{} and {} tokens per answer{ratio}", cell_number(one), cell_number(other));
        notes.push(("Output", text));
    }
    if shadow.good > 0 {
        let text = format!(
            "for the same reason on both sides in {} of {} pairs",
            count(shadow.same_finish),
            count(shadow.good)
        );
        notes.push(("Finished", text));
    }
    notes.extend(shadow.likeness.as_ref().map(|found| ("Answers", likeness_text(found))));
    notes
}

fn likeness_text(found: &LikenessSummary) -> String {
    let exact = found.exact as f64 / found.pairs.max(1) as f64;
    let prefix = found.prefix_share.map_or_else(String::new, |share| {
        format!("; identical over the first {} of the longer one (median)", percent(share))
    });
    let length = found
        .length_ratio
        .map_or_else(String::new, |ratio| format!("; ×{ratio:.3} as long in characters (median)"));
    let pairs = count_text(u32::try_from(found.pairs).unwrap_or(u32::MAX), "pair");
    format!("byte-identical in {} of {pairs}{prefix}{length}", percent(exact))
}

/// `TTFT …, E2E …`
fn values_by_metric(
    all: &std::collections::BTreeMap<String, OverBlocks>,
    text: impl Fn(&OverBlocks) -> String,
) -> String {
    let order = ["ttft", "tpot", "e2e"];
    let one = |name: &str| Some(format!("{} {}", name.to_uppercase(), text(all.get(name)?)));
    order.into_iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

/// `×1.102 (1.087 to 1.118)`
fn ratio_text(ratio: &OverBlocks) -> String {
    format!(
        "×{:.3}{}",
        ratio.value,
        interval_text(ratio.low, ratio.high, |end| format!("{end:.3}"))
    )
}

/// How often what happened on each side: statuses, failures, finish reasons.
pub(crate) fn counts_table(comparison: &Comparison, found: &ShadowReport) -> Option<Table> {
    let kinds =
        [("status", &found.statuses), ("failed", &found.failures), ("finished", &found.finishes)];
    let all: Vec<(&str, &Count)> =
        kinds.into_iter().flat_map(|(kind, all)| all.iter().map(move |one| (kind, one))).collect();
    let names = side_labels(comparison);
    let title = "Outcomes of the pairs";
    let is_there = !all.is_empty() && names.len() >= 2;
    let rows = Table::from_subjects(title, title, all)
        .left("", 0, |(kind, _)| *kind)
        .each(
            names.iter().take(2).enumerate(),
            |(_, name)| Column::left(*name, 0),
            |(_, one), (side, _)| one.counts.get(*side).copied().map_or(String::new(), count),
        )
        .left("which", 0, |(_, one)| escape_control(&one.name));
    is_there.then(|| natural_width_table(rows))
}
