//! Runs that were not measured in blocks: what can honestly be said from them.
//!
//! Each run of a side is one value of each figure, and sides are compared by Welch's t on logarithms
//! (of shares: on values). A single run has no spread of its own. Where the rig's noise floor is
//! known, that stands for it; where it is not, the run's own interval is shown, which knows how
//! requests spread but not how runs do, and no verdict is given.

mod caveats;
mod estimate;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use goodput_model::Verdict;

use self::estimate::DifferenceEstimate;
use super::answer::{
    Alphas, blocks_by_counts, family_alphas, gates_of_metric, judge_change, outcome_if_tested,
};
use super::blocks::{
    center_of_values, change_to_difference, counts_behind_share, difference_to_change, level_count,
};
use super::doubts;
use super::metric::tested_metrics;
use super::rank::{Runs, rank_runs};
use super::settings::{self, server_settings};
use super::summary::{overall_outcome, with_context};
use super::table::level_table;
use super::together::server_facts;
use super::{
    CompareFacts, ComparedMetric, ComparedRun, Comparison, Design, Difference, Figure,
    FigureOutcome, Finding, Floor, Side, SideFacts, find_differences, find_metric, judge_gates,
};
use crate::sweep::Level;

/// One side of saved runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedSide {
    /// Who it is.
    pub side: Side,
    /// Its runs: one, or those of a series. `ask.level` is the place among the design's levels,
    /// `ask.block` the number of the run at that level.
    pub runs: Vec<ComparedRun>,
}

/// What saved runs say. Runs of a side are taken as independent, and not as paired with anybody's:
/// they were not interleaved. A single run has no spread of its own; then that of the floor is taken,
/// if there is one; otherwise no verdict is given.
pub fn compare_saved(
    facts: CompareFacts,
    design: Design,
    sides: Vec<SavedSide>,
    floor: Option<Floor>,
    insists: bool,
) -> Comparison {
    let mut design = design;
    design.sides = sides.iter().map(|side| side.side.name.clone()).collect();
    let all = Saved { design: &design, sides: &sides, floor: floor.as_ref() };
    let differences = all.worst_differences();
    let mut findings = all.findings();
    let spoiled = if insists { &[][..] } else { &differences };
    doubts::clear_void_verdicts(&mut findings, spoiled);
    let ranking = rank_runs(&all.single_look_design(), all.level_count(), &all, &findings, spoiled);
    let own: Vec<Side> = sides.iter().map(|side| side.side.clone()).collect();
    let table = |level| level_table(&design, level, &own, &all.runs_at_level(level));
    let levels = (0..all.level_count()).map(table).collect();
    let of_runs = all.caveats();
    let cells = runs_of_sides(sides);
    let servers = server_facts(&design, &cells);
    let own = with_context(own, &servers);
    let settings = server_settings(&servers, &design.under_test);
    let mut caveats = doubts::difference_caveats(&design, &differences, &findings, insists);
    caveats.extend(settings::difference_caveats(&settings, &design.sides));
    caveats.extend(doubts::failing_side_caveats(&design, &cells));
    caveats.extend(of_runs);
    caveats.extend(doubts::finding_caveats(&design, &findings, floor.as_ref(), None));
    caveats.extend(settings::setting_notes(&settings, &design.sides, &design.under_test));
    let gates = judge_gates(&design.gates, &findings);
    Comparison {
        verdict: Verdict::from_caveats(&caveats),
        caveats,
        comparison: facts,
        is_paired: false,
        outcome: overall_outcome(&gates, &findings),
        levels,
        sides: own,
        differences,
        settings,
        findings,
        gates,
        ranking,
        runs: cells,
        floor,
        design,
        ..Comparison::default()
    }
}

/// All runs, each under the place of its side.
fn runs_of_sides(sides: Vec<SavedSide>) -> Vec<ComparedRun> {
    let mut all = Vec::new();
    for (side, saved) in (0u32..).zip(sides) {
        for mut cell in saved.runs {
            cell.ask.side = side;
            cell.ask.number = u32::try_from(all.len()).unwrap_or(u32::MAX).saturating_add(1);
            all.push(cell);
        }
    }
    all
}

struct Saved<'a> {
    design: &'a Design,
    sides: &'a [SavedSide],
    floor: Option<&'a Floor>,
}

/// One figure of a candidate against the reference.
struct Compared {
    metric: ComparedMetric,
    level: u32,
    side: u32,
    n: usize,
    centers: [f64; 2],
    estimate: DifferenceEstimate,
    is_whole: bool,
    is_tested: bool,
}

impl Saved<'_> {
    /// Levels of the design, and behind them what sweeps found, where they did.
    fn level_count(&self) -> u32 {
        let own = level_count(self.design);
        let mut cells = self.sides.iter().flat_map(|side| &side.runs);
        own.saturating_add(u32::from(cells.any(|cell| cell.ask.level == own)))
    }

    /// The runs of a side at a level that can be used.
    fn usable_runs(&self, level: u32, side: u32) -> Vec<&ComparedRun> {
        let runs = self.sides.get(side as usize).map_or(&[][..], |side| &side.runs);
        let usable = |cell: &&ComparedRun| cell.ask.level == level && cell.verdict != Verdict::Void;
        runs.iter().filter(usable).collect()
    }

    fn run_count(&self) -> u32 {
        u32::try_from(self.sides.len()).unwrap_or(u32::MAX)
    }

    fn side_name(&self, side: u32) -> &str {
        self.design.sides.get(side as usize).map_or("", String::as_str)
    }

    /// The runs of all sides at a level.
    fn runs_at_level(&self, level: u32) -> Vec<Vec<&ComparedRun>> {
        (0..self.run_count()).map(|side| self.usable_runs(level, side)).collect()
    }

    /// A figure of a side at a level, run by run.
    fn figures_of_side(&self, name: &str, level: u32, side: u32) -> Vec<Figure> {
        let runs = self.usable_runs(level, side);
        let found = runs.iter().filter_map(|cell| cell.figures.get(name));
        found.filter(|figure| figure.value.is_finite()).copied().collect()
    }

    /// Everything that differs, each once for a candidate: where it is worst.
    fn worst_differences(&self) -> Vec<Difference> {
        let mut found: Vec<Difference> = Vec::new();
        for level in 0..self.level_count() {
            let facts = |side: u32| {
                let runs = self.usable_runs(level, side);
                let facts: Vec<&SideFacts> = runs.iter().map(|cell| &cell.facts).collect();
                let own = self.sides.get(side as usize)?.runs.iter();
                // A run that is void has sent what it was to send.
                let seeds = own.filter(|cell| cell.ask.level == level).map(|cell| cell.facts.seed);
                let seed = seeds.min().unwrap_or_default();
                (!facts.is_empty()).then(|| SideFacts { seed, ..SideFacts::merge(&facts) })
            };
            let Some(reference) = facts(0) else { continue };
            for side in 1..self.run_count() {
                let Some(candidate) = facts(side) else { continue };
                for mut new in find_differences(&reference, &candidate, side, false) {
                    if self.design.levels.len() > 1 {
                        new.message = format!("{}{}", self.level_text(level), new.message);
                    }
                    let is_it = |old: &&mut Difference| (old.side, &old.code) == (side, &new.code);
                    match found.iter_mut().find(is_it) {
                        Some(old) if old.matter < new.matter => *old = new,
                        Some(_) => {}
                        None => found.push(new),
                    }
                }
            }
        }
        found
    }

    /// Where a level is, in words.
    fn level_text(&self, level: u32) -> String {
        match self.design.levels.get(level as usize) {
            Some(Level::Rate(rate)) => format!("at {rate}/s: "),
            Some(Level::Users(users)) => format!("with {users} users: "),
            None => String::new(),
        }
    }

    /// Two sides by one figure.
    fn estimate_difference(
        &self,
        metric: &ComparedMetric,
        level: u32,
        sides: [u32; 2],
    ) -> DifferenceEstimate {
        let figures = sides.map(|side| self.figures_of_side(&metric.name, level, side));
        let floor = self.floor.filter(|floor| self.is_floor_of(floor, level, &sides));
        let spread = floor.and_then(|floor| {
            Some((floor.sd.get(&metric.name).copied()?, f64::from(floor.blocks.checked_sub(1)?)))
        });
        let counts =
            counts_behind_share(&metric.name, &sides.map(|side| self.usable_runs(level, side)));
        DifferenceEstimate::new(metric, [&figures[0], &figures[1]], spread, counts)
    }

    /// Whether a floor is of what these sides did at a level: how much runs differ by chance depends
    /// on what is asked and how often, and shorter runs differ by more.
    fn is_floor_of(&self, floor: &Floor, level: u32, sides: &[u32]) -> bool {
        // Loads are written with four digits.
        let is_rate = |text: &str, rate: f64| {
            text.parse().is_ok_and(|known: f64| (known / rate - 1.0).abs() < 1e-3)
        };
        let mut loads = floor.load.split(", ");
        let is_load = match self.design.levels.get(level as usize) {
            Some(Level::Rate(rate)) => {
                loads.any(|load| load.strip_suffix("/s").is_some_and(|text| is_rate(text, *rate)))
            }
            Some(Level::Users(users)) => loads.any(|load| load == format!("{users} users")),
            None => false,
        };
        // A window may end a little before its time.
        let is_like = |cell: &&ComparedRun| {
            cell.facts.workload == floor.workload && floor.run_s <= 1.01 * cell.facts.window_s
        };
        is_load && sides.iter().all(|side| self.usable_runs(level, *side).iter().all(is_like))
    }

    /// One figure of a candidate; none if neither side has it, or one cannot have it. A tested one
    /// that a run lacks stays: its other runs are a choice.
    fn compare_figure(
        &self,
        metric: &ComparedMetric,
        level: u32,
        side: u32,
        is_tested: bool,
    ) -> Option<Compared> {
        let figures = [0, side].map(|side| self.figures_of_side(&metric.name, level, side));
        let is_empty = |figures: &Vec<Figure>| figures.is_empty();
        let has_place = [0, side].iter().all(|side| self.can_have(&metric.name, level, *side));
        if figures.iter().all(is_empty) || !is_tested && figures.iter().any(is_empty) || !has_place
        {
            return None;
        }
        let values = |figures: &Vec<Figure>| {
            center_of_values(metric, figures.iter().map(|figure| figure.value)).unwrap_or_default()
        };
        Some(Compared {
            metric: metric.clone(),
            level,
            side,
            n: figures.iter().map(Vec::len).min().unwrap_or_default(),
            centers: [values(&figures[0]), values(&figures[1])],
            estimate: self.estimate_difference(metric, level, [0, side]),
            is_whole: [0, side]
                .iter()
                .all(|side| self.incomplete_runs(&metric.name, level, *side).is_none()),
            is_tested,
        })
    }

    /// Whether the runs of a side have a place for a figure: there are some, and what is about an
    /// SLO needs one.
    fn can_have(&self, name: &str, level: u32, side: u32) -> bool {
        let runs = self.usable_runs(level, side);
        let has =
            |cell: &&ComparedRun| cell.figures.contains_key(name) || !cell.facts.slo.is_empty();
        let needs_slo = matches!(name, "goodput_rps" | "attainment");
        !runs.is_empty() && (!needs_slo || runs.iter().any(has))
    }

    /// In how many runs of a side a figure is, and how many runs there are, where that is not the same.
    fn incomplete_runs(&self, name: &str, level: u32, side: u32) -> Option<(usize, usize)> {
        let (found, runs) =
            (self.figures_of_side(name, level, side).len(), self.usable_runs(level, side).len());
        (found != runs).then_some((found, runs))
    }

    fn compare_all(&self) -> Vec<Compared> {
        let family = tested_metrics(self.design);
        let cells = self.sides.iter().flat_map(|side| &side.runs);
        let names: BTreeSet<&str> =
            cells.flat_map(|cell| cell.figures.keys().map(String::as_str)).collect();
        let tested = family.iter().map(String::as_str).filter(|name| names.contains(name));
        let others = names.iter().copied().filter(|name| !family.iter().any(|own| own == name));
        let metrics: Vec<ComparedMetric> = tested.chain(others).filter_map(find_metric).collect();
        let mut all = Vec::new();
        for level in 0..self.level_count() {
            for side in 1..self.run_count() {
                for metric in &metrics {
                    let is_tested = family.contains(&metric.name);
                    all.extend(self.compare_figure(metric, level, side, is_tested));
                }
            }
        }
        all.sort_by_key(|compared| !compared.is_tested);
        all
    }

    /// The design with one look: saved runs were not tested before they were done.
    fn single_look_design(&self) -> Design {
        Design { looks: vec![1], ..self.design.clone() }
    }

    fn findings(&self) -> Vec<Finding> {
        let all = self.compare_all();
        let p = |compared: &Compared| {
            compared.estimate.p_value().filter(|_| compared.is_whole).unwrap_or(1.0)
        };
        let tested: Vec<f64> = all.iter().filter(|compared| compared.is_tested).map(p).collect();
        // Saved runs have one look.
        let mut family = family_alphas(self.design, &[], &tested).into_iter();
        let alone = Alphas { interval: self.design.alpha, differs: self.design.alpha };
        let finding = |compared: &Compared| {
            let own = if compared.is_tested { family.next() } else { None };
            compared.finding(self.design, own.unwrap_or(alone))
        };
        all.iter().map(finding).collect()
    }
}

impl Runs for Saved<'_> {
    fn side_value(&self, metric: &ComparedMetric, level: u32, side: u32) -> Option<f64> {
        let figures = self.figures_of_side(&metric.name, level, side);
        let value = center_of_values(metric, figures.iter().map(|figure| figure.value));
        value.filter(|_| self.incomplete_runs(&metric.name, level, side).is_none())
    }

    fn test_sides(
        &self,
        at: (&ComparedMetric, u32),
        sides: [u32; 2],
        alpha: f64,
    ) -> Option<[f64; 2]> {
        let (metric, level) = at;
        let estimate = self.estimate_difference(metric, level, sides);
        let ends = estimate.interval_ends(alpha).filter(|_| estimate.is_test())?;
        Some(ends.map(|end| difference_to_change(metric, end)))
    }
}

impl Compared {
    fn finding(&self, design: &Design, alphas: Alphas) -> Finding {
        let Self { metric, estimate, .. } = self;
        let shown = |difference: f64| difference_to_change(metric, difference);
        let ends = |alpha: f64| estimate.interval_ends(alpha).map(|ends| ends.map(shown));
        let margin = design.margin_of(&metric.name);
        let is_told = estimate.is_test() && (self.is_whole || !self.is_tested);
        let (differs, alpha) = (ends(alphas.differs), alphas.interval);
        let ends = ends(alpha);
        let word = match ends.zip(differs).filter(|_| is_told) {
            Some((ends, differs)) => judge_change(metric, ends, differs, margin),
            None => FigureOutcome::NoVerdict,
        };
        let n = u32::try_from(self.n).unwrap_or(u32::MAX);
        let further = |runs: u32| runs.saturating_sub(n).max(1);
        let counted = |is_told: &dyn Fn([f64; 2]) -> bool| {
            blocks_by_counts(estimate.counts, n, is_told, alpha)
        };
        let needed = ends.filter(|_| is_told).and_then(|ends| {
            let mut gates = gates_of_metric(design, metric).peekable();
            if gates.peek().is_some() {
                let open = gates.filter(|gate| gate.is_kept(ends).is_none());
                let limits = open.map(|gate| change_to_difference(metric, gate.change));
                let runs = |limit: f64| {
                    let counted = counted(&|[low, high]| low > limit || high < limit);
                    Some(further(estimate.runs_until_decided(limit, alpha)?).max(counted))
                };
                limits.filter_map(runs).max()
            } else {
                let is_open = word == FigureOutcome::Inconclusive;
                let is_told =
                    |ends| judge_change(metric, ends, ends, margin) != FigureOutcome::Inconclusive;
                let runs = || estimate.runs_needed(change_to_difference(metric, margin), alphas);
                is_open.then(runs).flatten().map(|runs| further(runs).max(counted(&is_told)))
            }
        });
        Finding {
            metric: metric.name.clone(),
            side: self.side,
            level: self.level,
            n,
            reference: self.centers[0],
            candidate: self.centers[1],
            change: shown(estimate.mean()),
            low: ends.map(|ends| ends[0]),
            high: ends.map(|ends| ends[1]),
            confidence: estimate.confidence(alpha),
            p: estimate.p_value(),
            wilcoxon_p: None,
            hodges_lehmann: None,
            sd: estimate.sd(),
            is_tested: self.is_tested,
            margin,
            outcome: outcome_if_tested(word, self.is_tested),
            further_blocks: needed,
            is_doubtful: false,
        }
    }
}
