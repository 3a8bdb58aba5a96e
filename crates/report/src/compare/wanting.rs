//! Why a figure has no verdict.

use std::collections::BTreeSet;

use goodput_campaign::compare::{ComparedRun, Comparison, FigureOutcome, Finding, Matter};
use goodput_model::Verdict;

use super::words::{count_text, side_label};
use goodput_model::escape_control;

/// Why a figure has no verdict, where it has none.
pub(super) fn missing_verdict_reason(comparison: &Comparison, finding: &Finding) -> Option<String> {
    if finding.outcome != FigureOutcome::NoVerdict {
        return None;
    }
    let refused = comparison.differences.iter().find(|one| {
        one.side == finding.side
            && one.matter == Matter::Refuse
            && one.affects_metric(&finding.metric)
    });
    let usable = |side: u32| {
        let is_own = |cell: &&ComparedRun| (cell.ask.side, cell.ask.level) == (side, finding.level);
        let own = comparison.runs.iter().filter(is_own);
        own.filter(|cell| cell.verdict != Verdict::Void).count()
    };
    missing_side_text(comparison, finding)
        .or_else(|| refused.map(|one| format!("not comparable: {}", escape_control(&one.message))))
        .or_else(|| {
            let n = count_text(finding.n, "block");
            let is_few = comparison.is_paired && finding.n < 3;
            is_few.then(|| format!("{n} that count, and at least 3 are needed"))
        })
        .or_else(|| {
            let has_no_spread = !comparison.is_paired && finding.p.is_none() && finding.n > 0;
            let of = |side: u32| {
                let runs = u32::try_from(usable(side)).unwrap_or(u32::MAX);
                format!("{} of {}", count_text(runs, "usable run"), side_label(comparison, side))
            };
            let runs = || format!("{}, {}", of(0), of(finding.side));
            has_no_spread.then(|| format!("{}, and no noise floor for it", runs()))
        })
}

/// `B has it in 3 of 8 runs`: which side lacks a figure, where one does.
pub(super) fn missing_side_text(comparison: &Comparison, finding: &Finding) -> Option<String> {
    let is_void = |cell: &ComparedRun| cell.verdict == Verdict::Void;
    // A block with a void run does not count.
    let spoiled: BTreeSet<u32> = comparison
        .runs
        .iter()
        .filter(|cell| comparison.is_paired && is_void(cell))
        .map(|cell| cell.ask.block)
        .collect();
    let with = |side: u32| {
        let own = comparison.runs.iter().filter(|cell| {
            (cell.ask.side, cell.ask.level) == (side, finding.level)
                && !is_void(cell)
                && !spoiled.contains(&cell.ask.block)
        });
        let has = |cell: &&ComparedRun| {
            cell.figures.get(&finding.metric).is_some_and(|figure| figure.value.is_finite())
        };
        (own.clone().filter(has).count(), own.count())
    };
    let one = |side: u32| {
        let (found, runs) = with(side);
        let name = side_label(comparison, side);
        (found < runs).then(|| format!("{name} has it in {found} of {runs} runs"))
    };
    let both: Vec<String> = [0, finding.side].into_iter().filter_map(one).collect();
    (!both.is_empty()).then(|| both.join(", "))
}
