//! The order of several sides, with ties where the data cannot tell.

use std::collections::BTreeSet;

use goodput_stats::paired::{nominal_alpha, test_paired};
use serde::{Deserialize, Serialize};

use super::answer::{LEAST, judge_change, widen_to_counts};
use super::blocks::{
    Blocks, center_of_values, difference_to_change, level_count, log_differences, side_count,
};
use super::design::looks_in_order;
use super::doubts::voids_verdict;
use super::metric::tested_metrics;
use super::{
    Better, ComparedMetric, ComparedRun, Design, Difference, FigureOutcome, Finding, find_metric,
};

/// The place of one side by one figure at one level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rank {
    /// Name of the metric.
    pub metric: String,
    /// Place of the level.
    pub level: u32,
    /// Place of the side.
    pub side: u32,
    /// One more than the number of sides that are better beyond chance.
    pub rank: u32,
    /// Its value, as in [`super::Finding`].
    pub value: f64,
    /// Places of the sides that are better beyond chance: better than this one, or than one that is
    /// better than it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<u32>,
    /// Places of the sides that are known to differ by less than the margin. One of them may still
    /// be better, and also be in `behind`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub like: Vec<u32>,
}

/// Every side by every tested figure, best first; empty of fewer than three sides. Between the
/// reference and another side the finding decides, so that no place claims more than the verdict.
/// Pairs without the reference have the level that the first of as many tests as there are pairs
/// would have, in addition to all of α that the findings take. Who is better than one that is better than a
/// third is better than that third, even if those two were not told apart. A side that one of `spoiled` takes a figure from has no place by it.
pub fn rank_sides(
    design: &Design,
    done: &[ComparedRun],
    findings: &[Finding],
    spoiled: &[Difference],
) -> Vec<Rank> {
    rank_runs(design, level_count(design), &Blocks::new(design, done), findings, spoiled)
}

/// Runs whose sides can be put in order.
pub(super) trait Runs {
    /// What a side has of a figure; none if one of its runs lacks it.
    fn side_value(&self, metric: &ComparedMetric, level: u32, side: u32) -> Option<f64>;

    /// Two sides against each other: the ends of the interval of the second's change; none if
    /// nothing can be told.
    fn test_sides(
        &self,
        at: (&ComparedMetric, u32),
        sides: [u32; 2],
        alpha: f64,
    ) -> Option<[f64; 2]>;
}

impl Runs for Blocks<'_> {
    fn side_value(&self, metric: &ComparedMetric, level: u32, side: u32) -> Option<f64> {
        let values = self.pairs(&metric.name, level, [side, side]);
        let is_whole = values.len() == self.complete.len();
        center_of_values(metric, values.iter().map(|pair| pair[0])).filter(|_| is_whole)
    }

    fn test_sides(
        &self,
        at: (&ComparedMetric, u32),
        sides: [u32; 2],
        alpha: f64,
    ) -> Option<[f64; 2]> {
        let (metric, level) = at;
        let own = log_differences(metric, &self.pairs(&metric.name, level, sides));
        let found = test_paired(&own, alpha).filter(|found| found.n >= LEAST)?;
        let counts = self.share_counts(&metric.name, level, sides);
        let ends = widen_to_counts([found.low, found.high], counts, alpha);
        Some(ends.map(|end| difference_to_change(metric, end)))
    }
}

/// The ranking of any runs.
pub(super) fn rank_runs(
    design: &Design,
    levels: u32,
    runs: &impl Runs,
    findings: &[Finding],
    spoiled: &[Difference],
) -> Vec<Rank> {
    let mut all = Vec::new();
    if side_count(design) < 3 {
        return all;
    }
    for level in 0..levels {
        for metric in tested_metrics(design).iter().filter_map(|name| find_metric(name)) {
            let is_spoiled = |side: u32| {
                spoiled.iter().any(|found| found.side == side && voids_verdict(found, &metric.name))
            };
            let own = (0..side_count(design)).filter(|side| !is_spoiled(*side));
            let rank = |side: u32| {
                let value = runs.side_value(&metric, level, side)?;
                let (behind, like) = (Vec::new(), Vec::new());
                Some(Rank {
                    metric: metric.name.clone(),
                    level,
                    side,
                    rank: 1,
                    value,
                    behind,
                    like,
                })
            };
            // Without one that has no value the others would look better than they are.
            let ranks: Option<Vec<Rank>> = own.map(rank).collect();
            if let Some(ranks) = ranks.filter(|ranks| ranks.len() > 1) {
                all.extend(assign_places(design, &metric, runs, ranks, findings));
            }
        }
    }
    all
}

/// Sides with their places by one figure at one level, best first.
fn assign_places(
    design: &Design,
    metric: &ComparedMetric,
    runs: &impl Runs,
    mut ranks: Vec<Rank>,
    findings: &[Finding],
) -> Vec<Rank> {
    let sides: Vec<u32> = ranks.iter().map(|rank| rank.side).collect();
    let pairs = sides.iter().flat_map(|one| sides.iter().map(move |other| [*one, *other]));
    let level = ranks.first().map_or(0, |rank| rank.level);
    let alpha = strict_alpha(design, findings);
    let mut order = SideOrder::default();
    // Those with the reference come first.
    for [one, other] in pairs.filter(|[one, other]| one < other) {
        let mut own = findings.iter().filter(|found| (found.side, found.level) == (other, level));
        let found = own.find(|found| found.metric == metric.name).map(|found| found.outcome);
        let between = || {
            let ends = runs.test_sides((metric, level), [one, other], alpha)?;
            Some(judge_change(metric, ends, ends, design.margin_of(&metric.name)))
        };
        // The second of the pair is the candidate.
        match if one == 0 { found } else { between() } {
            Some(FigureOutcome::Better) => order.add_better(other, one),
            Some(FigureOutcome::Worse) => order.add_better(one, other),
            Some(FigureOutcome::Equivalent) => {
                for rank in &mut ranks {
                    let twin = if rank.side == one { Some(other) } else { None };
                    rank.like.extend(twin.or((rank.side == other).then_some(one)));
                }
            }
            _ => {}
        }
    }
    for rank in &mut ranks {
        rank.behind = order.ahead_of(rank.side).collect();
        rank.rank = 1 + rank.behind.len() as u32;
    }
    let is_up = metric.better == Better::Higher;
    ranks.sort_by(|a, b| {
        let by_value = a.value.total_cmp(&b.value);
        a.rank.cmp(&b.rank).then(if is_up { by_value.reverse() } else { by_value })
    });
    ranks
}

/// Who is better than whom, closed: better than one that is better is better. So a side that is better
/// has fewer before it, and no place contradicts a pair.
#[derive(Default)]
struct SideOrder {
    /// The better and the worse.
    pairs: BTreeSet<(u32, u32)>,
}

impl SideOrder {
    /// One side is better than another, and so are all that are better than the one. A pair that
    /// goes against what is known already is left out: where rates are zero means may run in a circle,
    /// and then the findings, which came first, hold.
    fn add_better(&mut self, better: u32, worse: u32) {
        if self.pairs.contains(&(worse, better)) {
            return;
        }
        let above: Vec<u32> = self.ahead_of(better).chain([better]).collect();
        let after = self.pairs.iter().filter(|(above, _)| *above == worse);
        let below: Vec<u32> = after.map(|(_, below)| *below).chain([worse]).collect();
        let all = above.iter().flat_map(|above| below.iter().map(move |below| (*above, *below)));
        self.pairs.extend(all);
    }

    /// Those that are better than this one.
    fn ahead_of(&self, side: u32) -> impl Iterator<Item = u32> {
        self.pairs.iter().filter(move |(_, worse)| *worse == side).map(|(better, _)| *better)
    }
}

/// The level of a pair without the reference: that of the simultaneous intervals of all pairs of
/// sides, by every tested figure at every level, at every look. The findings have all of α already;
/// these pairs add α (k − 2) / k of k sides at most.
fn strict_alpha(design: &Design, findings: &[Finding]) -> f64 {
    let tested = findings.iter().filter(|finding| finding.is_tested).count();
    let pairs = tested as f64 * f64::from(side_count(design)) / 2.0;
    nominal_alpha(&looks_in_order(design), design.alpha / pairs.max(1.0))
}
