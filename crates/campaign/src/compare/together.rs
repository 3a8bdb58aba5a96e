//! What the sides are like over all their runs, and what differs between them that should not.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use goodput_model::Verdict;

use super::blocks::side_count;
use super::{ComparedRun, Design, Difference, SideFacts, find_differences};

/// Everything that differs: between the runs of the sides together, and inside blocks where that
/// happens again and again (two sides that warm each other's cache in turn are alike on average).
pub(super) fn all_differences(design: &Design, done: &[ComparedRun]) -> Vec<Difference> {
    let usable = |cell: &&ComparedRun| cell.verdict != Verdict::Void;
    let has_usable = done.iter().any(|cell| usable(&cell));
    let runs: Vec<&ComparedRun> = done.iter().filter(|cell| !has_usable || usable(cell)).collect();
    let merged = |runs: &mut dyn Iterator<Item = &ComparedRun>, side: u32| {
        let own = runs.filter(|cell| cell.ask.side == side);
        let own: Vec<&SideFacts> = own.map(|cell| &cell.facts).collect();
        (!own.is_empty()).then(|| SideFacts::merge(&own))
    };
    let of = |side: u32| {
        // A run that failed is void, and has failed all the same.
        let failed_share = merged(&mut done.iter(), side)?.failed_share;
        let facts = merged(&mut runs.iter().copied(), side)?;
        Some(SideFacts { failed_share, ..facts })
    };
    let Some(reference) = of(0) else { return Vec::new() };
    let mut all = Vec::new();
    for side in 1..side_count(design) {
        let Some(candidate) = of(side) else { continue };
        // Each once: as it is together, unless it is graver inside blocks.
        let mut worst: Vec<Difference> = find_differences(&reference, &candidate, side, true);
        for found in differences_inside_blocks(&runs, side) {
            match worst.iter_mut().find(|known| known.code == found.code) {
                Some(known) if known.matter < found.matter => *known = found,
                Some(_) => {}
                None => worst.push(found),
            }
        }
        all.extend(worst);
    }
    all
}

/// What is known of the server of each side, over its runs.
pub(super) fn server_facts(design: &Design, done: &[ComparedRun]) -> Vec<BTreeMap<String, String>> {
    let of = |side: u32| {
        let own = done.iter().filter(|cell| cell.ask.side == side);
        let own: Vec<&SideFacts> = own.map(|cell| &cell.facts).collect();
        SideFacts::merge(&own).server
    };
    (0..side_count(design)).map(of).collect()
}

/// What differs in at least two pairs of runs and in a quarter of all, as gravely as it does in
/// this many of them.
fn differences_inside_blocks(runs: &[&ComparedRun], side: u32) -> Vec<Difference> {
    let cell = |block: u32, level: u32, side: u32| {
        runs.iter().find(|cell| {
            cell.ask.block == block && cell.ask.level == level && cell.ask.side == side
        })
    };
    let mut count: usize = 0;
    let mut seen: BTreeMap<String, Vec<Difference>> = BTreeMap::new();
    for reference in runs.iter().filter(|cell| cell.ask.side == 0) {
        let Some(candidate) = cell(reference.ask.block, reference.ask.level, side) else {
            continue;
        };
        count += 1;
        for found in find_differences(&reference.facts, &candidate.facts, side, true) {
            seen.entry(found.code.clone()).or_default().push(found);
        }
    }
    let often = usize::max(2, count.div_ceil(4));
    let of = |mut all: Vec<Difference>| {
        all.sort_by_key(|found| Reverse(found.matter));
        let found = all.get(often - 1)?;
        let times = all.iter().filter(|other| other.matter >= found.matter).count();
        let message =
            format!("in {times} of {count} pairs of runs, for example: {}", found.message);
        Some(Difference { message, ..found.clone() })
    };
    seen.into_values().filter_map(of).collect()
}
