//! What the blocks say about each figure.

use goodput_stats::paired::{
    Counts, Paired, blocks_to_find, blocks_to_narrow, nominal_alpha, simultaneous_alpha,
    stepped_alpha, test_paired,
};
use serde::{Deserialize, Serialize};

use super::blocks::{
    Blocks, center_of_values, change_to_difference, difference_to_change, level_count,
    log_differences, side_count,
};
use super::design::looks_in_order;
use super::metric::tested_metrics;
use super::{Better, ComparedMetric, ComparedRun, Design, Gate, find_metric};

/// The outcome for one figure of a candidate against the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureOutcome {
    /// It changed for the better.
    Better,
    /// It changed for the worse.
    Worse,
    /// It changed by less than the margin, or not at all.
    Equivalent,
    /// More blocks are needed.
    Inconclusive,
    /// No verdict: too few runs, or the sides are not comparable.
    NoVerdict,
    /// It was not tested: its interval describes these runs, not the servers.
    Described,
}

/// One figure of a candidate against the reference, at one level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the metric.
    pub metric: String,
    /// Place of the candidate among the sides.
    pub side: u32,
    /// Place of the level.
    pub level: u32,
    /// Blocks it rests on.
    pub n: u32,
    /// The reference's value: geometric mean over blocks of a ratio, mean of a difference.
    pub reference: f64,
    /// The candidate's.
    pub candidate: f64,
    /// The change: candidate / reference − 1 for a ratio, candidate − reference for a difference.
    pub change: f64,
    /// Lower end of its interval; none with too few blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Confidence of that interval, adjusted for repeated tests and for the other figures: the
    /// intervals of all tested figures hold together with 95 %.
    pub confidence: f64,
    /// P-value of the change (paired t-test).
    pub p: Option<f64>,
    /// The same by signed ranks.
    pub wilcoxon_p: Option<f64>,
    /// The change by Hodges and Lehmann, in the unit of `change`.
    pub hodges_lehmann: Option<f64>,
    /// Standard deviation between blocks, in the unit of `change` (of a ratio: of its logarithm).
    pub sd: Option<f64>,
    /// Whether it belongs to the tested family; other figures are described individually.
    pub is_tested: bool,
    /// Changes smaller than this do not matter.
    pub margin: f64,
    /// The outcome.
    pub outcome: FigureOutcome,
    /// About how many more blocks an inconclusive figure needs; for a gated figure, until its last
    /// open gate can be decided.
    pub further_blocks: Option<u32>,
    /// The signed-rank test and the t-test disagree: an outlier, or blocks that differ.
    pub is_doubtful: bool,
}

/// Fewer blocks than this tell nothing.
pub(super) const LEAST: u32 = 3;

/// Every figure of every candidate at every level, tested ones first.
pub fn findings(design: &Design, done: &[ComparedRun]) -> Vec<Finding> {
    findings_with_failures(design, done, None)
}

/// The same where failures were counted pair by pair, which says more than the counts of each side.
pub(crate) fn findings_with_failures(
    design: &Design,
    done: &[ComparedRun],
    failed: Option<Counts>,
) -> Vec<Finding> {
    let blocks = Blocks::new(design, done);
    let family = tested_metrics(design);
    let named =
        family.iter().map(String::as_str).filter(|name| blocks.figure_names().contains(name));
    let others =
        blocks.figure_names().into_iter().filter(|name| !family.iter().any(|own| own == name));
    let metrics: Vec<ComparedMetric> = named.chain(others).filter_map(find_metric).collect();
    let mut pairs = Vec::new();
    for level in 0..level_count(design) {
        for side in 1..side_count(design) {
            for metric in &metrics {
                let values = blocks.pairs(&metric.name, level, [0, side]);
                let is_tested = family.contains(&metric.name);
                let is_whole = values.len() == blocks.complete.len();
                let of_pairs = failed.filter(|_| metric.name == "error_share");
                let counts =
                    of_pairs.or_else(|| blocks.share_counts(&metric.name, level, [0, side]));
                pairs.push(Pairs { metric, level, side, values, counts, is_tested, is_whole });
            }
        }
    }
    // A figure to be tested stays even without a value: it may be too bad to have one.
    pairs.retain(|pairs| pairs.is_tested || !pairs.values.is_empty());
    pairs.sort_by_key(|pairs| !pairs.is_tested);
    let alphas = alpha_levels(design, &pairs);
    pairs.iter().zip(alphas).map(|(pairs, alphas)| pairs.to_finding(design, alphas)).collect()
}

/// The values of one figure of one candidate, and of the reference, block by block.
struct Pairs<'a> {
    metric: &'a ComparedMetric,
    level: u32,
    side: u32,
    values: Vec<[f64; 2]>,
    /// What was counted behind a share.
    counts: Option<Counts>,
    is_tested: bool,
    /// Whether every block has it. Otherwise those that have it are a choice.
    is_whole: bool,
}

/// The levels at which a figure is told: that of its interval, by which it is equivalent and gates are
/// judged, and that at which it differs.
#[derive(Clone, Copy)]
pub(super) struct Alphas {
    pub(super) interval: f64,
    pub(super) differs: f64,
}

/// For each its levels: intervals of those that are tested hold together, each other one for itself.
fn alpha_levels(design: &Design, all: &[Pairs<'_>]) -> Vec<Alphas> {
    let p = |pairs: &Pairs<'_>| {
        let own = log_differences(pairs.metric, &pairs.values);
        let counted = pairs.counts.map_or(0.0, |counts| counts.p_value(0.0));
        let found = test_paired(&own, design.alpha).filter(|_| pairs.is_whole);
        found.map_or(1.0, |found| found.p.max(counted))
    };
    let tested: Vec<f64> = all.iter().filter(|pairs| pairs.is_tested).map(p).collect();
    let mut family = family_alphas(design, &looks_in_order(design), &tested).into_iter();
    let alone = nominal_alpha(&looks_in_order(design), design.alpha);
    let alone = Alphas { interval: alone, differs: alone };
    let of = |pairs: &Pairs<'_>| {
        let own = if pairs.is_tested { family.next() } else { None };
        own.unwrap_or(alone)
    };
    all.iter().map(of).collect()
}

/// The gates of this metric.
pub(super) fn gates_of_metric<'a>(
    design: &'a Design,
    metric: &'a ComparedMetric,
) -> impl Iterator<Item = &'a Gate> {
    design.gates.iter().filter(|gate| gate.metric == metric.name)
}

/// The levels of each of a family with these p. Which of them differ goes by steps, the surest first;
/// gates ask about their limits instead, and the interval says whether a gated figure differs too.
pub(super) fn family_alphas(design: &Design, looks: &[u32], p: &[f64]) -> Vec<Alphas> {
    let interval = simultaneous_alpha(looks, design.alpha, p.len());
    let mut all = vec![Alphas { interval, differs: interval }; p.len()];
    if !design.gates.is_empty() {
        return all;
    }
    let mut order: Vec<(f64, &mut Alphas)> = p.iter().copied().zip(&mut all).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut level = interval;
    let mut told = 0;
    for (place, (own, alphas)) in order.into_iter().enumerate() {
        alphas.differs = level;
        // The first that is not below its level ends the steps: the others share that level.
        if told == place && own < level {
            told += 1;
            level = stepped_alpha(looks, design.alpha, p.len(), told);
        }
    }
    all
}

impl Pairs<'_> {
    fn to_finding(&self, design: &Design, alphas: Alphas) -> Finding {
        let metric = self.metric;
        let own = log_differences(metric, &self.values);
        let n = u32::try_from(own.len()).unwrap_or(u32::MAX);
        let value = |side: usize| {
            let values = self.values.iter().filter_map(move |pair| pair.get(side).copied());
            center_of_values(metric, values).unwrap_or_default()
        };
        let mut found = self.paired_difference(&own, alphas.interval).filter(|_| n >= LEAST);
        if let Some((found, counts)) = found.as_mut().zip(self.counts) {
            found.p = found.p.max(counts.p_value(0.0));
        }
        let mean = own.iter().sum::<f64>() / f64::from(n.max(1));
        let shown = |difference: f64| difference_to_change(metric, difference);
        let ends = |found: &Paired| [shown(found.low), shown(found.high)];
        let margin = design.margin_of(&metric.name);
        let is_told = self.is_whole || !self.is_tested;
        let differs =
            found.filter(|_| is_told).and_then(|_| self.paired_difference(&own, alphas.differs));
        let word = found.zip(differs).map_or(FigureOutcome::NoVerdict, |(found, differs)| {
            judge_change(metric, ends(&found), ends(&differs), margin)
        });
        let further = found.filter(|_| is_told).and_then(|found| {
            let mut gates = gates_of_metric(design, metric).peekable();
            let alpha = alphas.interval;
            if gates.peek().is_some() {
                let open = gates.filter(|gate| gate.is_kept(ends(&found)).is_none());
                let limits = open.map(|gate| change_to_difference(metric, gate.change));
                let blocks = |limit| {
                    let is_told = |[low, high]: [f64; 2]| low > limit || high < limit;
                    let counted = blocks_by_counts(self.counts, n, is_told, alpha);
                    blocks_until_decided(&found, limit, alpha).max(counted)
                };
                limits.map(blocks).max()
            } else {
                let is_told =
                    |ends| judge_change(metric, ends, ends, margin) != FigureOutcome::Inconclusive;
                (word == FigureOutcome::Inconclusive).then(|| {
                    further_blocks(&found, change_to_difference(metric, margin), alphas)
                        .max(blocks_by_counts(self.counts, n, is_told, alpha))
                })
            }
        });
        Finding {
            metric: metric.name.clone(),
            side: self.side,
            level: self.level,
            n,
            reference: value(0),
            candidate: value(1),
            change: shown(mean),
            low: found.map(|found| shown(found.low)),
            high: found.map(|found| shown(found.high)),
            confidence: 1.0 - alphas.interval,
            p: found.map(|found| found.p),
            wilcoxon_p: found.and_then(|found| found.wilcoxon_p),
            hodges_lehmann: found.map(|found| shown(found.hodges_lehmann)),
            sd: found.map(|found| found.sd),
            is_tested: self.is_tested,
            margin,
            outcome: outcome_if_tested(word, self.is_tested),
            further_blocks: further,
            // Inside the margin an outlier changes nothing.
            is_doubtful: word != FigureOutcome::Equivalent
                && found.is_some_and(|found| is_doubtful(&found)),
        }
    }
}

/// What is said of a figure: of one that is not tested, no word about the servers.
pub(super) fn outcome_if_tested(word: FigureOutcome, is_tested: bool) -> FigureOutcome {
    match word {
        FigureOutcome::NoVerdict => word,
        _ if is_tested => word,
        _ => FigureOutcome::Described,
    }
}

/// The most further blocks that are suggested.
const FURTHEST: u32 = 1_000_000;

impl Pairs<'_> {
    /// What blocks say, and no surer than the counts behind them.
    fn paired_difference(&self, own: &[f64], alpha: f64) -> Option<Paired> {
        let mut found = test_paired(own, alpha)?;
        [found.low, found.high] = widen_to_counts([found.low, found.high], self.counts, alpha);
        Some(found)
    }
}

/// An interval at most as narrow as the counts behind it allow.
pub(super) fn widen_to_counts(
    [low, high]: [f64; 2],
    counts: Option<Counts>,
    alpha: f64,
) -> [f64; 2] {
    let counted = counts.and_then(|counts| counts.difference_interval(alpha));
    counted.map_or([low, high], |counted| [low.min(counted[0]), high.max(counted[1])])
}

/// Further blocks like the `n` so far until counts alone would tell it.
pub(super) fn blocks_by_counts(
    counts: Option<Counts>,
    n: u32,
    is_told: impl Fn([f64; 2]) -> bool,
    alpha: f64,
) -> u32 {
    let Some(counts) = counts else { return 0 };
    let with = |further: u32| {
        let times = |count: u64| {
            (count as f64 * f64::from(n + further) / f64::from(n.max(1))).round() as u64
        };
        Counts { trials: counts.trials.map(times), events: counts.events.map(times) }
    };
    let mut further = 1;
    while further < FURTHEST && !with(further).difference_interval(alpha).is_some_and(&is_told) {
        further += 1 + further / 8;
    }
    further
}

/// What a change says against the margin, by its interval, and by that of whether it differs at all. A
/// ratio's margin is the same both ways: 3 % more is as much as 1/1.03 of it, so that who is the
/// reference does not matter.
pub(super) fn judge_change(
    metric: &ComparedMetric,
    [low, high]: [f64; 2],
    differs: [f64; 2],
    margin: f64,
) -> FigureOutcome {
    let most = margin;
    let least = difference_to_change(metric, -change_to_difference(metric, margin));
    let better_up = metric.better == Better::Higher;
    if low > least && high < most {
        FigureOutcome::Equivalent
    } else if differs[0] > 0.0 {
        if better_up { FigureOutcome::Better } else { FigureOutcome::Worse }
    } else if differs[1] < 0.0 {
        if better_up { FigureOutcome::Worse } else { FigureOutcome::Better }
    } else {
        FigureOutcome::Inconclusive
    }
}

/// Blocks until the change that is seen would be told from a limit in four of five.
fn blocks_until_decided(found: &Paired, limit: f64, alpha: f64) -> u32 {
    let needed = blocks_to_find((found.mean - limit).abs(), found.sd, alpha);
    needed.saturating_sub(found.n).max(1)
}

/// Blocks until the change that is seen would be found in four of five, or until the interval would
/// fit inside the margin, whichever comes first.
fn further_blocks(found: &Paired, margin: f64, alphas: Alphas) -> u32 {
    let Alphas { interval, differs } = alphas;
    let room = margin - found.mean.abs();
    let narrow = if room > 0.0 { blocks_to_narrow(room, found.sd, interval) } else { u32::MAX };
    blocks_until_decided(found, 0.0, differs).min(narrow.saturating_sub(found.n).max(1))
}

/// Whether ranks and t contradict each other: one of them sees chance where the other plainly does
/// not, or the robust estimate lies far from the mean: by more than 0.8 standard errors. Of normal
/// blocks that happens in 3 to 8 of a thousand, and always where one block is 30 standard deviations
/// off.
fn is_doubtful(found: &Paired) -> bool {
    // Below six blocks signed ranks cannot be below 5 %.
    if found.n < 6 {
        return false;
    }
    let error = found.sd / f64::from(found.n).sqrt();
    let is_far = (found.hodges_lehmann - found.mean).abs() > 0.8 * error && error > 0.0;
    let contradict = |one: f64, other: f64| one < 0.05 && other > 0.2;
    is_far
        || found
            .wilcoxon_p
            .is_some_and(|ranks| contradict(ranks, found.p) || contradict(found.p, ranks))
}
