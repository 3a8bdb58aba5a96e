//! Runs by their blocks: which blocks count, and the pairs of values in them.

use std::collections::{BTreeMap, BTreeSet};

use goodput_model::Verdict;
use goodput_stats::paired::Counts;

use super::{ComparedMetric, ComparedRun, Design, MetricScale};

/// A ratio with nothing on one side counts as this much: a rate of zero is the worst there is, and
/// must not leave the test for want of a logarithm.
pub(super) const NOTHING: f64 = 100.0;

/// The runs of a comparison by block, level and side.
pub(super) struct Blocks<'a> {
    cells: BTreeMap<(u32, u32, u32), &'a ComparedRun>,
    /// Those with a run of each side at each level, none of them void; ascending.
    pub(super) complete: Vec<u32>,
    /// Those with a void run: they do not count, and others are measured in their place.
    pub(super) spoiled: BTreeSet<u32>,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(design: &Design, done: &'a [ComparedRun]) -> Self {
        let mut cells = BTreeMap::new();
        for cell in done {
            cells.insert((cell.ask.block, cell.ask.level, cell.ask.side), cell);
        }
        let numbers: BTreeSet<u32> = cells.keys().map(|key| key.0).collect();
        let voids = cells.values().filter(|cell| cell.verdict == Verdict::Void);
        let spoiled: BTreeSet<u32> = voids.map(|cell| cell.ask.block).collect();
        let (sides, levels) = (side_count(design), level_count(design));
        let is_complete = |block: &u32| {
            (0..levels)
                .all(|level| (0..sides).all(|side| cells.contains_key(&(*block, level, side))))
        };
        let complete = numbers.difference(&spoiled).copied().filter(is_complete).collect();
        Self { cells, complete, spoiled }
    }

    /// Whether this run was measured.
    pub(super) fn has_run(&self, block: u32, level: u32, side: u32) -> bool {
        self.cells.contains_key(&(block, level, side))
    }

    /// Complete blocks.
    pub(super) fn count_complete(&self) -> u32 {
        u32::try_from(self.complete.len()).unwrap_or(u32::MAX)
    }

    /// The runs of a side at a level in complete blocks.
    pub(super) fn runs_of_side(
        &self,
        level: u32,
        side: u32,
    ) -> impl Iterator<Item = &'a ComparedRun> {
        self.complete
            .iter()
            .filter_map(move |block| self.cells.get(&(*block, level, side)).copied())
    }

    /// Every name of a figure in complete blocks.
    pub(super) fn figure_names(&self) -> BTreeSet<&'a str> {
        let counts = |key: &(u32, u32, u32)| self.complete.binary_search(&key.0).is_ok();
        let cells = self.cells.iter().filter(|(key, _)| counts(key));
        cells.flat_map(|(_, cell)| cell.figures.keys().map(String::as_str)).collect()
    }

    /// Reference and candidate in each complete block where both have the figure.
    pub(super) fn pairs(&self, name: &str, level: u32, sides: [u32; 2]) -> Vec<[f64; 2]> {
        let value = |block: u32, side: u32| {
            let cell = self.cells.get(&(block, level, side))?;
            cell.figures.get(name).map(|figure| figure.value).filter(|value| value.is_finite())
        };
        let pair = |block: &u32| Some([value(*block, sides[0])?, value(*block, sides[1])?]);
        self.complete.iter().filter_map(pair).collect()
    }

    /// What was counted behind a share of both sides.
    pub(super) fn share_counts(&self, name: &str, level: u32, sides: [u32; 2]) -> Option<Counts> {
        counts_behind_share(name, &sides.map(|side| self.runs_of_side(level, side).collect()))
    }
}

/// What was counted behind a share in the runs of two sides; none of a figure that is not a share, or where a run
/// with it does not say of how many requests.
pub(super) fn counts_behind_share(name: &str, sides: &[Vec<&ComparedRun>; 2]) -> Option<Counts> {
    let mut all = Counts::default();
    for (side, runs) in sides.iter().enumerate() {
        for cell in runs {
            let Some(figure) = cell.figures.get(name) else { continue };
            let trials = match name {
                "error_share" => cell.facts.requests,
                "attainment" => cell.facts.judged,
                _ => 0,
            };
            let share =
                Some(figure.value).filter(|share| trials > 0 && (0.0..=1.0).contains(share))?;
            all.trials[side] += trials;
            all.events[side] += (share * trials as f64).round() as u64;
        }
    }
    Some(all)
}

/// How many sides.
pub(super) fn side_count(design: &Design) -> u32 {
    u32::try_from(design.sides.len()).unwrap_or(u32::MAX)
}

/// How many levels: one where goodput is searched for.
pub(super) fn level_count(design: &Design) -> u32 {
    u32::try_from(design.levels.len()).unwrap_or(u32::MAX).max(1)
}

/// One number for each pair: the logarithm of the ratio, or the difference.
pub(super) fn log_differences(metric: &ComparedMetric, pairs: &[[f64; 2]]) -> Vec<f64> {
    let of = |[reference, candidate]: &[f64; 2]| match metric.scale {
        MetricScale::Difference => candidate - reference,
        MetricScale::Ratio => match (*reference > 0.0, *candidate > 0.0) {
            (true, true) => (candidate / reference).ln(),
            (true, false) => -NOTHING.ln(),
            (false, true) => NOTHING.ln(),
            (false, false) => 0.0,
        },
    };
    pairs.iter().map(of).collect()
}

/// A difference as it is shown: of a logarithm the change in proportion.
pub(super) fn difference_to_change(metric: &ComparedMetric, difference: f64) -> f64 {
    match metric.scale {
        MetricScale::Difference => difference,
        MetricScale::Ratio => difference.exp_m1(),
    }
}

/// A change as a difference; the inverse of [`difference_to_change`].
pub(super) fn change_to_difference(metric: &ComparedMetric, change: f64) -> f64 {
    match metric.scale {
        MetricScale::Difference => change,
        MetricScale::Ratio => change.ln_1p(),
    }
}

/// The value of a side over its blocks: geometric mean of a ratio (the mean, where a value is
/// zero), mean of a difference.
pub(super) fn center_of_values(
    metric: &ComparedMetric,
    values: impl Iterator<Item = f64> + Clone,
) -> Option<f64> {
    let n = values.clone().count() as f64;
    if n == 0.0 {
        return None;
    }
    let is_ratio = metric.scale == MetricScale::Ratio && values.clone().all(|value| value > 0.0);
    Some(if is_ratio {
        (values.map(f64::ln).sum::<f64>() / n).exp()
    } else {
        values.sum::<f64>() / n
    })
}
