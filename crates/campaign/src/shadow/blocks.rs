//! Blocks of time: which there are, and their figures as `compare` takes them.

use std::collections::{BTreeMap, BTreeSet};

use goodput_model::Verdict;
use goodput_stats::minimum_for_interval;

use super::slot::{PairSlot, TIMED};
use crate::compare::{ComparedRun, Figure, Gate, RunAsk, SideFacts};

/// Percentiles of every time; others are there where a gate asks for them.
const PERCENTS: [&str; 4] = ["50", "90", "95", "99"];

/// The fewest values of a block in which this percentile says something: below that its interval is
/// not estimable, and the tail of a block is its slowest request. None for figures that are not percentiles.
pub(super) fn fewest_values(percent: &str) -> Option<u64> {
    percent.parse::<f64>().ok().and_then(|percent| minimum_for_interval(percent / 100.0))
}

/// The percentiles that gates ask for.
fn gated_percentiles(gates: &[Gate]) -> impl Iterator<Item = &str> {
    gates.iter().filter_map(|gate| Some(gate.metric.rsplit_once("_p")?.1))
}

/// Good pairs that a block needs, so that the figures of these gates can be told in it.
pub(super) fn pairs_needed(gates: &[Gate]) -> u64 {
    gated_percentiles(gates).filter_map(fewest_values).max().unwrap_or(0)
}

/// Whether a block has values enough for every gated percentile: not every answer has every time.
pub(super) fn has_enough_values(block: &PairSlot, gates: &[Gate]) -> bool {
    let has = |gate: &Gate| {
        let Some((name, percent)) = gate.metric.rsplit_once("_p") else { return true };
        let place = TIMED.iter().position(|timed| *timed == name);
        let Some((place, least)) = place.zip(fewest_values(percent)) else { return true };
        block.times.get(place).is_some_and(|times| times.iter().all(|times| times.count() >= least))
    };
    gates.iter().all(has)
}

/// The figures of a block by their names, of both sides: every percentile that it has values enough
/// for, and the share of errors.
fn block_figures(block: &PairSlot, percents: &[&str]) -> [BTreeMap<String, Figure>; 2] {
    let mut both = [BTreeMap::new(), BTreeMap::new()];
    let mut put = |side: usize, name: String, value: f64| {
        let figure = Figure { value, low: None, high: None };
        both[side].insert(name, figure);
    };
    for (name, times) in TIMED.iter().zip(&block.times) {
        for percent in percents {
            let (Some(least), Ok(number)) = (fewest_values(percent), percent.parse::<f64>()) else {
                continue;
            };
            let is_enough = times.iter().all(|times| times.count() >= least);
            for (side, times) in times.iter().enumerate().filter(|_| is_enough) {
                if let Some(value) = times.percentile(number) {
                    put(side, format!("{name}_p{percent}"), value);
                }
            }
        }
    }
    for (side, failed) in block.failed.iter().enumerate() {
        let share = *failed as f64 / block.pairs.max(1) as f64;
        put(side, "error_share".to_owned(), share);
    }
    both
}

/// The blocks as cells of a comparison. Only figures that every block has are there: those of some
/// would be a choice.
pub(super) fn comparison_cells(blocks: &[PairSlot], gates: &[Gate]) -> Vec<ComparedRun> {
    let percents: BTreeSet<&str> = PERCENTS.into_iter().chain(gated_percentiles(gates)).collect();
    let percents: Vec<&str> = percents.into_iter().collect();
    let mut all: Vec<_> =
        blocks.iter().map(|block| (block, block_figures(block, &percents))).collect();
    let everywhere: Vec<String> = all.first().map_or_else(Vec::new, |(_, [first, _])| {
        let has = |name: &&String| all.iter().all(|(_, [one, _])| one.contains_key(*name));
        first.keys().filter(has).cloned().collect()
    });
    let mut cells = Vec::with_capacity(2 * all.len());
    for (block, (slot, figures)) in (1u32..).zip(&mut all) {
        for (side, figures) in (0u32..).zip(figures) {
            figures.retain(|name, _| everywhere.contains(name));
            let number = 2 * block - 1 + side;
            let failed = slot.failed.get(side as usize).copied().unwrap_or_default();
            cells.push(ComparedRun {
                ask: RunAsk { number, block, side, level: 0, seed: 0 },
                verdict: Verdict::Valid,
                doubt: None,
                figures: std::mem::take(figures),
                facts: SideFacts {
                    requests: slot.pairs,
                    ok: slot.pairs - failed.min(slot.pairs),
                    failed_share: failed as f64 / slot.pairs.max(1) as f64,
                    ..SideFacts::default()
                },
            });
        }
    }
    cells
}

/// What is tested where no gate says otherwise: the middle and the tail of the wait for the first token
/// and of the pace after it, or of whole answers where nothing is streamed; and errors. The tail is the
/// furthest that every block has values enough for.
pub(super) fn tested_metrics(
    cells: &[ComparedRun],
    is_spoiled: impl Fn(&str) -> bool,
) -> Vec<String> {
    let has = |name: &String| cells.first().is_some_and(|cell| cell.figures.contains_key(name));
    let of = |time: &str| {
        let name = |percent: &str| format!("{time}_p{percent}");
        let tail = ["99", "95", "90"].map(name).into_iter().find(has);
        let both = [Some(name("50")).filter(has), tail].into_iter().flatten();
        both.filter(|name| !is_spoiled(name)).collect::<Vec<String>>()
    };
    let mut names = of("ttft");
    names.extend(of("tpot"));
    if names.is_empty() {
        names = of("e2e");
    }
    names.push("error_share".to_owned());
    names
}
