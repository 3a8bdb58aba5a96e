//! What the sides are, by their first runs.

use goodput_campaign::compare::{ComparedRun as Run, Comparison, SideFacts};

use crate::compare::words::{side_label, side_labels};
use goodput_document::{Block, Cell, Column, Table, Tone};

/// What each side's first run says of itself, with a word where sides differ.
pub(crate) fn sides_block(comparison: &Comparison) -> Option<Block> {
    let names = side_labels(comparison);
    let first = |side: usize| {
        let is_own = |run: &&Run| run.ask.side as usize == side;
        comparison.runs.iter().find(is_own).map(|run| &run.facts)
    };
    let all: Vec<Option<&SideFacts>> = (0..names.len()).map(first).collect();
    // A block of live traffic says nothing of a side that the head of the page does not.
    if all.iter().all(Option::is_none) || comparison.shadow.is_some() {
        return None;
    }
    let values = |of: SideFact| -> Vec<String> {
        all.iter().map(|facts| facts.map_or_else(String::new, of)).collect()
    };
    let rows = FACTS.into_iter().map(|(name, of)| (name, values(of)));
    let known = rows.filter(|(_, values)| values.iter().any(|value| !value.is_empty()));
    let caption = "Each side by its first run";
    Table::from_subjects(caption, caption, known)
        .left("", 0, |(name, _)| *name)
        .each(
            0..names.len(),
            |side| Column::left(side_label(comparison, *side as u32), 0),
            |(_, values), side| Cell::from(values[*side].as_str()).tone(Tone::Words),
        )
        .left("differs", 0, |(_, values)| {
            let is_same = values.windows(2).all(|pair| pair.first() == pair.last());
            if is_same { "same".into() } else { Cell::from("differs").tone(Tone::Doubt) }
        })
        .table
        .into_block()
}

type SideFact = fn(&SideFacts) -> String;

const FACTS: [(&str, SideFact); 11] = [
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
