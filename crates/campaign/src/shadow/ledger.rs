//! [`Ledger`]: every pair so far, in bounded memory.

use std::collections::BTreeMap;

use goodput_model::{Nanos, Verdict};

use super::blocks::{comparison_cells, has_enough_values, pairs_needed, tested_metrics};
use super::report::PairTotals;
use super::slot::PairSlot;
use super::unsent::Unsent;
use super::{Pair, PairSettings, ShadowFacts, doubts};
use crate::compare::summary::overall_outcome;
use crate::compare::table::paired_table;
use crate::compare::{
    CompareFacts, Comparison, Design, Matter, Side, doubts as of_compare, findings_with_failures,
    judge_gates,
};

/// Stretches of time at most; when there would be more, each becomes twice as long. So blocks grow
/// with the time, and a week takes as much room as a morning.
const MOST_SLOTS: u64 = 128;

/// A last stretch that lasted less than this share of its length is not a block.
const NEARLY: f64 = 0.9;

/// Fewer blocks than this tell nothing.
const FEWEST: usize = 3;

/// Everything about the pairs so far, in bounded memory. The order in which they came does not matter.
#[derive(Debug)]
pub struct Ledger {
    settings: PairSettings,
    /// Length of a slot.
    length: u64,
    slots: BTreeMap<u64, PairSlot>,
    pub(super) totals: PairTotals,
}

impl Ledger {
    /// Without pairs.
    pub fn new(settings: PairSettings) -> Self {
        let length = Nanos::from_secs_f64(settings.block_s.clamp(0.001, 1e6)).0;
        Self { settings, length, slots: BTreeMap::new(), totals: PairTotals::default() }
    }

    /// Adds a pair.
    pub fn add(&mut self, pair: &Pair) {
        while pair.at.0 / self.length >= MOST_SLOTS {
            self.double_slot_length();
        }
        self.slots.entry(pair.at.0 / self.length).or_default().add(pair);
        self.totals.add(pair);
    }

    fn double_slot_length(&mut self) {
        self.length = self.length.saturating_mul(2);
        for (number, slot) in std::mem::take(&mut self.slots) {
            self.slots.entry(number / 2).or_default().merge(&slot);
        }
    }

    /// Values that are told apart, over all slots: what the memory grows with.
    #[cfg(test)]
    pub(super) fn distinct_values(&self) -> usize {
        let of = |slot: &PairSlot| {
            slot.times
                .iter()
                .flatten()
                .chain(&slot.ratios)
                .map(super::times::Times::distinct_values)
                .sum::<usize>()
        };
        self.slots.values().map(of).sum()
    }

    /// Blocks with at least the required number of pairs completed on both sides, and with
    /// values enough for the gates; where one side hardly ever does, with this many pairs of any kind.
    fn blocks(&self) -> Vec<PairSlot> {
        let least = u64::from(self.settings.block_pairs.max(1));
        let well = least.max(pairs_needed(&self.settings.gates));
        let blocks = self.blocks_where(|block| {
            block.good >= well && has_enough_values(block, &self.settings.gates)
        });
        if blocks.len() >= FEWEST {
            blocks
        } else {
            self.blocks_where(|block| block.pairs >= least)
        }
    }

    /// Blocks that are enough, in the order of time; the last short one joins the one before.
    fn blocks_where(&self, is_enough: impl Fn(&PairSlot) -> bool) -> Vec<PairSlot> {
        let mut blocks: Vec<PairSlot> = Vec::new();
        let mut open: Option<PairSlot> = None;
        let newest = self.slots.keys().next_back().copied();
        for (number, slot) in &self.slots {
            let mut block = open.take().unwrap_or_default();
            block.merge(slot);
            let lasted = slot.last.0.saturating_sub(number * self.length) as f64;
            let is_whole = newest != Some(*number) || lasted >= NEARLY * self.length as f64;
            if is_whole && is_enough(&block) {
                blocks.push(block);
            } else {
                open = Some(block);
            }
        }
        if let Some(rest) = open {
            match blocks.last_mut() {
                Some(last) => last.merge(&rest),
                None => blocks.push(rest),
            }
        }
        blocks
    }

    /// What the pairs say.
    pub fn compare(
        &self,
        facts: CompareFacts,
        shadow: &ShadowFacts,
        sides: [Side; 2],
    ) -> Comparison {
        let blocks = self.blocks();
        let runs = comparison_cells(&blocks, &self.settings.gates);
        let differences = doubts::shadow_differences(&self.totals, &sides);
        let is_spoiled = |metric: &str| {
            differences.iter().any(|one| one.matter == Matter::Refuse && one.affects_metric(metric))
        };
        let design = Design {
            sides: sides.iter().map(|side| side.name.clone()).collect(),
            looks: vec![u32::try_from(blocks.len()).unwrap_or(u32::MAX)],
            at_once: true,
            run_s: Nanos(self.length).as_secs(),
            burn_in_s: 0.0,
            settle_s: 0.0,
            seed: 0,
            margin: self.settings.margin,
            alpha: self.settings.alpha,
            gates: self.settings.gates.clone(),
            family: tested_metrics(&runs, is_spoiled),
            ..Design::default()
        };
        let mut findings =
            findings_with_failures(&design, &runs, Some(self.totals.failed_on_one_side()));
        of_compare::clear_void_verdicts(&mut findings, &differences);
        let unsent = Unsent::from_facts(shadow);
        unsent.mark_findings(&mut findings);
        let mut gates = judge_gates(&design.gates, &findings);
        unsent.judge_gates(&mut gates);
        let report = self.totals.shadow_report(&self.settings, shadow, &blocks);
        let mut caveats = of_compare::difference_caveats(&design, &differences, &findings, false);
        caveats.extend(doubts::shadow_caveats(&report, &facts, &design, &runs));
        caveats.extend(of_compare::finding_caveats(&design, &findings, None, None));
        let count = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
        let sides = Vec::from(sides);
        let mut levels = paired_table(&design, &sides, &runs);
        unsent.show_in_tables(&mut levels, &findings);
        Comparison {
            verdict: Verdict::from_caveats(&caveats),
            caveats,
            comparison: CompareFacts { blocks: count, ..facts },
            outcome: overall_outcome(&gates, &findings),
            levels,
            design,
            sides,
            differences,
            findings,
            gates,
            runs,
            shadow: Some(report),
            ..Comparison::default()
        }
    }
}
