//! What the blocks say about each figure.

use goodput_stats::paired::{
    Discordant, Paired, blocks_to_find, blocks_to_narrow, nominal, paired,
};
use serde::{Deserialize, Serialize};

use super::blocks::{Blocks, centre, change, difference, differences, levels, sides};
use super::design::looks;
use super::metric::family;
use super::{Better, Cell, Design, Gate, Metric, metric};

/// What can be said of one figure of a candidate against the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It changed for the better.
    Better,
    /// It changed for the worse.
    Worse,
    /// It changed by less than the margin, or not at all.
    Equivalent,
    /// More blocks are needed to tell.
    Inconclusive,
    /// Nothing can be said: too few runs, or what was compared is not comparable.
    NoVerdict,
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
    /// The change: candidate over reference less one of a ratio, candidate less reference of a
    /// difference.
    pub change: f64,
    /// Lower end of its interval; none where there are too few blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Confidence of that interval: what repeated looks and other tests leave of 95 %.
    pub confidence: f64,
    /// Chance of such a change, were there none (paired t).
    pub p: Option<f64>,
    /// The same by signed ranks.
    pub wilcoxon_p: Option<f64>,
    /// The change by Hodges and Lehmann, in the unit of `change`.
    pub hodges_lehmann: Option<f64>,
    /// Standard deviation between blocks, in the unit of `change` (of a ratio: of its logarithm).
    pub sd: Option<f64>,
    /// Whether it belongs to the family that is tested; others are described, each for itself.
    pub is_tested: bool,
    /// Changes smaller than this do not matter.
    pub margin: f64,
    /// What can be said.
    pub outcome: Outcome,
    /// Further blocks until it can be told, about; of an inconclusive one, or of a gated one until
    /// its last open gate can be.
    pub further_blocks: Option<u32>,
    /// Signed ranks and t do not agree: an outlier, or blocks that are not alike.
    pub is_doubtful: bool,
}

/// Fewer blocks than this tell nothing.
pub(super) const LEAST: u32 = 3;

/// Every figure of every candidate at every level, tested ones first.
pub fn findings(design: &Design, done: &[Cell]) -> Vec<Finding> {
    findings_of(design, done, None)
}

/// The same where failures were counted pair by pair: the interval of errors is then as wide as these
/// counts leave it, however alike blocks are.
pub(crate) fn findings_of(
    design: &Design,
    done: &[Cell],
    failed: Option<Discordant>,
) -> Vec<Finding> {
    let blocks = Blocks::of(design, done);
    let family = family(design);
    let named = family.iter().map(String::as_str).filter(|name| blocks.names().contains(name));
    let others = blocks.names().into_iter().filter(|name| !family.iter().any(|own| own == name));
    let metrics: Vec<Metric> = named.chain(others).filter_map(metric).collect();
    let mut pairs = Vec::new();
    for level in 0..levels(design) {
        for side in 1..sides(design) {
            for metric in &metrics {
                let values = blocks.pairs(&metric.name, level, [0, side]);
                let is_tested = family.contains(&metric.name);
                let is_whole = values.len() == blocks.complete.len();
                let counts = failed.filter(|_| metric.name == "error_share");
                pairs.push(Pairs { metric, level, side, values, counts, is_tested, is_whole });
            }
        }
    }
    // What would be tested stays, though nobody has a value: it may be too bad to have one.
    pairs.retain(|pairs| pairs.is_tested || !pairs.values.is_empty());
    pairs.sort_by_key(|pairs| !pairs.is_tested);
    let alphas = alphas(design, &pairs);
    pairs.iter().zip(alphas).map(|(pairs, alphas)| pairs.finding(design, alphas)).collect()
}

/// The values of one figure of one candidate, and of the reference, block by block.
struct Pairs<'a> {
    metric: &'a Metric,
    level: u32,
    side: u32,
    values: Vec<[f64; 2]>,
    /// The trials behind a share, where they were counted.
    counts: Option<Discordant>,
    is_tested: bool,
    /// Whether every block has it. Otherwise those that have it are a choice.
    is_whole: bool,
}

/// The levels at which a figure is told: that of its interval, and that of its word against zero.
#[derive(Clone, Copy)]
struct Alphas {
    interval: f64,
    word: f64,
}

/// For each its level: Holm's steps over those that are tested, each other one for itself.
///
/// A gate asks whether the change is beyond its limit, not whether there is one; so of a gated
/// figure the step is that of its limit, the least sure one where it has two. Such steps say nothing
/// about zero: that word has the level of the first step.
fn alphas(design: &Design, all: &[Pairs<'_>]) -> Vec<Alphas> {
    let p = |pairs: &Pairs<'_>| {
        let own = differences(pairs.metric, &pairs.values);
        let against = |limit: f64| {
            let shifted: Vec<f64> = own.iter().map(|own| own - limit).collect();
            let counted = pairs.counts.map_or(0.0, |counts| counts.p(limit));
            paired(&shifted, design.alpha).map_or(1.0, |found| found.p).max(counted)
        };
        let limits = gates(design, pairs.metric).map(|gate| difference(pairs.metric, gate.change));
        let sure = limits.filter(|limit| limit.is_finite()).map(against).reduce(f64::max);
        if pairs.is_whole { sure.unwrap_or_else(|| against(0.0)) } else { 1.0 }
    };
    let tested: Vec<f64> = all.iter().filter(|pairs| pairs.is_tested).map(p).collect();
    let mut steps = steps(design, &tested).into_iter();
    let alone = nominal(&looks(design), design.alpha);
    let first = nominal(&looks(design), design.alpha / tested.len().max(1) as f64);
    let of = |pairs: &Pairs<'_>| {
        let step = if pairs.is_tested { steps.next() } else { None };
        let interval = step.unwrap_or(alone);
        let is_gated = pairs.is_tested && !design.gates.is_empty();
        Alphas { interval, word: if is_gated { first } else { interval } }
    };
    all.iter().map(of).collect()
}

/// The gates of this metric.
pub(super) fn gates<'a>(design: &'a Design, metric: &'a Metric) -> impl Iterator<Item = &'a Gate> {
    design.gates.iter().filter(|gate| gate.metric == metric.name)
}

/// The level of each of a family with these p: Holm's divisor of α first, and then what repeated looks
/// leave of it. (The other way round is a little too kind: looks cost more of a small α.)
pub(super) fn steps(design: &Design, p: &[f64]) -> Vec<f64> {
    let looks = looks(design);
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p.get(*a).unwrap_or(&1.0).total_cmp(p.get(*b).unwrap_or(&1.0)));
    let mut levels = vec![0.0; p.len()];
    let mut divisor = p.len();
    let mut level = nominal(&looks, design.alpha / divisor.max(1) as f64);
    for place in order {
        let own = p.get(place).copied().unwrap_or(1.0);
        if let Some(slot) = levels.get_mut(place) {
            *slot = level;
        }
        // The first that is not below its share ends the steps: the others share its level.
        if own < level && divisor > 1 {
            divisor -= 1;
            level = nominal(&looks, design.alpha / divisor as f64);
        } else {
            divisor = 1;
        }
    }
    levels
}

impl Pairs<'_> {
    fn finding(&self, design: &Design, alphas: Alphas) -> Finding {
        let metric = self.metric;
        let own = differences(metric, &self.values);
        let n = u32::try_from(own.len()).unwrap_or(u32::MAX);
        let value = |side: usize| {
            let values = self.values.iter().filter_map(move |pair| pair.get(side).copied());
            centre(metric, values).unwrap_or_default()
        };
        let mut found = self.paired(&own, alphas.interval).filter(|_| n >= LEAST);
        if let Some((found, counts)) = found.as_mut().zip(self.counts) {
            found.p = found.p.max(counts.p(0.0));
        }
        let mean = own.iter().sum::<f64>() / f64::from(n.max(1));
        let shown = |difference: f64| change(metric, difference);
        let ends = |found: &Paired| [shown(found.low), shown(found.high)];
        let margin = design.margin_of(&metric.name);
        let is_told = self.is_whole || !self.is_tested;
        let word = found.filter(|_| is_told).and_then(|_| self.paired(&own, alphas.word));
        let outcome = word.map_or(Outcome::NoVerdict, |word| outcome(metric, ends(&word), margin));
        let further = found.filter(|_| is_told).and_then(|found| {
            let mut gates = gates(design, metric).peekable();
            let alpha = alphas.interval;
            if gates.peek().is_some() {
                let open = gates.filter(|gate| gate.is_kept(ends(&found)).is_none());
                let limits = open.map(|gate| difference(metric, gate.change));
                let blocks = |limit| {
                    let counted =
                        self.counted_blocks(n, |[low, high]| low > limit || high < limit, alpha);
                    blocks_to_tell(&found, limit, alpha).max(counted)
                };
                limits.map(blocks).max()
            } else {
                let is_told = |ends| self::outcome(metric, ends, margin) != Outcome::Inconclusive;
                (outcome == Outcome::Inconclusive).then(|| {
                    further_blocks(&found, difference(metric, margin), alpha)
                        .max(self.counted_blocks(n, is_told, alpha))
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
            outcome,
            further_blocks: further,
            // Inside the margin an outlier changes nothing.
            is_doubtful: outcome != Outcome::Equivalent
                && found.is_some_and(|found| is_doubtful(&found)),
        }
    }
}

/// Further blocks beyond which nobody waits.
const FURTHEST: u32 = 1_000_000;

impl Pairs<'_> {
    /// What blocks say, and no surer than the counts behind them.
    fn paired(&self, own: &[f64], alpha: f64) -> Option<Paired> {
        let mut found = paired(own, alpha)?;
        if let Some([low, high]) = self.counts.and_then(|counts| counts.interval(alpha)) {
            found.low = found.low.min(low);
            found.high = found.high.max(high);
        }
        Some(found)
    }

    /// Further blocks like the `n` so far until counts alone would tell it.
    fn counted_blocks(&self, n: u32, is_told: impl Fn([f64; 2]) -> bool, alpha: f64) -> u32 {
        let Some(counts) = self.counts else { return 0 };
        let with = |further: u32| {
            let times = |count: u64| {
                (count as f64 * f64::from(n + further) / f64::from(n.max(1))).round() as u64
            };
            Discordant { pairs: times(counts.pairs), only: counts.only.map(times) }
        };
        let mut further = 1;
        while further < FURTHEST && !with(further).interval(alpha).is_some_and(&is_told) {
            further += 1 + further / 8;
        }
        further
    }
}

/// What an interval of a change says against the margin. A ratio's margin is the same both ways: 3 %
/// more is as much as 1/1.03 of it, so that who is the reference does not matter.
pub(super) fn outcome(metric: &Metric, [low, high]: [f64; 2], margin: f64) -> Outcome {
    let most = margin;
    let least = change(metric, -difference(metric, margin));
    let better_up = metric.better == Better::Higher;
    if low > least && high < most {
        Outcome::Equivalent
    } else if low > 0.0 {
        if better_up { Outcome::Better } else { Outcome::Worse }
    } else if high < 0.0 {
        if better_up { Outcome::Worse } else { Outcome::Better }
    } else {
        Outcome::Inconclusive
    }
}

/// Blocks until the change that is seen would be told from a limit in four of five.
fn blocks_to_tell(found: &Paired, limit: f64, alpha: f64) -> u32 {
    let needed = blocks_to_find((found.mean - limit).abs(), found.sd, alpha);
    needed.saturating_sub(found.n).max(1)
}

/// Blocks until the change that is seen would be found in four of five, or until the interval would
/// fit inside the margin, whichever comes first.
fn further_blocks(found: &Paired, margin: f64, alpha: f64) -> u32 {
    let room = margin - found.mean.abs();
    let narrow = if room > 0.0 { blocks_to_narrow(room, found.sd, alpha) } else { u32::MAX };
    blocks_to_tell(found, 0.0, alpha).min(narrow.saturating_sub(found.n).max(1))
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
