//! How sure it is where the SLO is crossed.
//!
//! Runs near the limit are few and short, and misses come in clusters, so a standard error says too
//! little about it. Instead every curve that the runs allow is weighed: where it crosses, how steep it
//! is, how much more runs differ than their requests explain, and how much of a queue short runs do
//! not see. What is stated are quantiles of that. A curve that may be flat makes them wide, above and
//! below as the runs have it; where nothing bounds it they are open.
//!
//! Far from the crossing no curve has one shape, and probes that were stopped are short. Such runs only
//! say on which side of them the crossing lies, as loud as their requests allow.
//! `docs/design/015-goodput-search.md` has how often they hold the truth.

use super::super::Bounded;
use super::fit::FitMark;

/// 95 % lie between these.
const ENDS: (f64, f64) = (0.025, 0.975);
/// No server's curve has quite the shape that is fitted: closer than this share of the load no end is known.
const SHAPE: f64 = 0.02;
/// How steep curves of misses are where a queue forms: the middle and the spread of the logarithm.
const STEEP: f64 = 18.0;
const STEEP_SD: f64 = 0.8;
/// The share of curves that are flat, and how flat those are: any slope between these is as likely.
const FLAT_SHARE: f64 = 0.12;
const FLAT: (f64, f64) = (0.2, 8.0);
/// Slopes that are looked at.
const SLOPES: (f64, f64) = (0.2, 200.0);
const SLOPE_STEPS: usize = 24;
/// Crossings that are looked at: to this factor on both sides of the runs, close together near them.
const REACH: f64 = 30.0;
const CROSSING_STEPS: usize = 141;
const BUNCHED: f64 = 5.0;
/// How many times more runs may differ than their requests explain, from 1 up.
const SPREADS: [f64; 6] = [1.0, 1.4, 2.0, 2.8, 4.0, 5.6];
/// A run that lasts n answers looks like a long one at a load that is lower by these shares of 1/n: a
/// queue grows over several answers. About 0.6 in simulated time.
const KINDNESS: [f64; 3] = [0.0, 0.8, 1.6];
/// What a run that is hardly longer than an answer looks like is not known.
const MOST_KINDNESS: f64 = 0.2;

/// Misses beyond the allowed share prove that a load is over the limit where chance brings a deviance
/// this large in 1 of 100 runs.
const PROVEN: f64 = 6.63;

/// A curve that the runs allow.
#[derive(Debug, Clone, Copy)]
struct CurveCell {
    /// Logarithm of the load at which it crosses.
    x: f64,
    slope: f64,
    weight: f64,
}

/// Curves, each as likely as the runs make it.
#[derive(Debug, Clone)]
pub(super) struct Belief {
    cells: Vec<CurveCell>,
    /// Weight of all curves that cross up to each of these, ascending.
    steps: Vec<(f64, f64)>,
    /// The logit of the allowed share.
    goal: f64,
    /// Logarithm of the lowest crossing that was looked at.
    lowest: f64,
    /// Whether some load was shown to be over the limit. Where none was, a search that stopped short by
    /// bad luck looks the same, and no upper end can be trusted.
    is_bounded: bool,
}

impl Belief {
    /// What runs say about where misses reach this share: those that the curve goes through, and those
    /// next to it. None for fewer than two runs. A crossing above the ceiling is out of the question.
    pub(super) fn new(
        marks: &[FitMark],
        far: &[FitMark],
        allowed: f64,
        ceiling: Option<f64>,
    ) -> Option<Self> {
        let total: f64 = marks.iter().map(|mark| mark.weight).sum();
        if marks.len() + far.len() < 2 || !(total > 0.0 && total.is_finite()) {
            return None;
        }
        let allowed = allowed.clamp(1e-4, 0.9999);
        let goal = logit(allowed);
        let center = marks.iter().map(|mark| mark.weight * mark.x).sum::<f64>() / total;
        let ceiling = ceiling.map_or(f64::INFINITY, f64::ln);
        let crossings: Vec<f64> = crossing_grid(center).filter(|x| *x <= ceiling).collect();
        let spread = DevianceSpread::from_marks(marks);
        let mut cells = Vec::with_capacity(crossings.len() * SLOPE_STEPS);
        let slopes: Vec<(f64, f64)> = slope_prior().collect();
        let kinds = KINDNESS.map(|by| (shift_load(marks, by), shift_load(far, by)));
        for (place, x) in crossings.iter().enumerate() {
            let width = crossing_width(&crossings, place);
            for (slope, prior) in &slopes {
                let at = |mark: &FitMark| miss_share_at(goal, *slope, *x, mark.x);
                let likelihood = |(near, far): &(Vec<FitMark>, Vec<FitMark>)| {
                    let near: f64 = near.iter().map(|mark| mark_deviance(mark, at(mark))).sum();
                    let wrong = |mark| wrong_side_deviance(mark, at(mark), allowed);
                    spread.likelihood(near + far.iter().map(wrong).sum::<f64>())
                };
                let seen: f64 = kinds.iter().map(likelihood).sum();
                // As likely at every height of the curve: so are crossings in proportion to its slope.
                cells.push(CurveCell {
                    x: *x,
                    slope: *slope,
                    weight: seen * prior * slope * width,
                });
            }
        }
        let all: f64 = cells.iter().map(|cell| cell.weight).sum();
        if !(all > 0.0 && all.is_finite()) {
            return None;
        }
        for cell in &mut cells {
            cell.weight /= all;
        }
        let mut sum = 0.0;
        let steps = cells.chunks(slopes.len()).filter_map(|cells| {
            sum += cells.iter().map(|cell| cell.weight).sum::<f64>();
            Some((cells.first()?.x, sum))
        });
        let steps: Vec<(f64, f64)> = steps.collect();
        let over = marks.iter().chain(far).filter(|mark| mark.y > allowed);
        let shown: f64 = over.map(|mark| mark_deviance(mark, allowed)).sum();
        let is_bounded = ceiling.is_finite() || shown > PROVEN;
        Some(Self { cells, steps, goal, lowest: center - REACH.ln(), is_bounded })
    }

    /// The middle of all crossings, and the ends between which 95 % of them lie; an end that nothing
    /// bounds is open.
    pub(super) fn crossing(&self) -> Bounded {
        let at = |share: f64| weighted_quantile(&self.steps, share);
        // As far down as was looked nothing bounds it.
        let low = Some(at(ENDS.0)).filter(|x| x - self.lowest > 0.1);
        let high = Some(at(ENDS.1)).filter(|_| self.is_bounded);
        Bounded {
            value: at(0.5).exp(),
            low: low.map(|x| (x - SHAPE).exp()),
            high: high.map(|x| (x + SHAPE).exp()),
        }
    }

    /// How likely the limit lies below this load.
    pub(super) fn probability_below(&self, level: f64) -> f64 {
        let x = level.ln();
        let (mut last, mut below) = ((self.lowest, 0.0), 0.0);
        for step in &self.steps {
            if step.0 >= x {
                let part = ((x - last.0) / (step.0 - last.0).max(1e-12)).clamp(0.0, 1.0);
                return (below + part * (step.1 - last.1)).clamp(0.0, 1.0);
            }
            below = step.1;
            last = *step;
        }
        1.0
    }

    /// The share of requests that keep it at this load.
    pub(super) fn attainment_at(&self, level: f64) -> Bounded {
        let x = level.ln();
        let of =
            |cell: &CurveCell| (1.0 - miss_share_at(self.goal, cell.slope, cell.x, x), cell.weight);
        let mut shares: Vec<(f64, f64)> = self.cells.iter().map(of).collect();
        shares.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sum = 0.0;
        for (_, weight) in &mut shares {
            sum += *weight;
            *weight = sum;
        }
        let at = |part: f64| weighted_quantile(&shares, part);
        Bounded { value: at(0.5), low: Some(at(ENDS.0)), high: Some(at(ENDS.1)) }
    }
}

fn logit(share: f64) -> f64 {
    (share / (1.0 - share)).ln()
}

/// The share of misses at a load, by a curve.
fn miss_share_at(goal: f64, slope: f64, crossing: f64, x: f64) -> f64 {
    1.0 / (1.0 + (-(goal + slope * (x - crossing))).clamp(-40.0, 40.0).exp())
}

/// Where sums of weights reach a share of all.
fn weighted_quantile(steps: &[(f64, f64)], share: f64) -> f64 {
    let mut last: Option<(f64, f64)> = None;
    for &(value, sum) in steps {
        if sum >= share {
            let Some((before, had)) = last else { return value };
            let part = (share - had) / (sum - had).max(1e-300);
            return before + (value - before) * part.clamp(0.0, 1.0);
        }
        last = Some((value, sum));
    }
    last.map_or(f64::NAN, |(value, _)| value)
}

/// Crossings that are looked at, ascending.
fn crossing_grid(center: f64) -> impl Iterator<Item = f64> {
    let half = (CROSSING_STEPS / 2) as f64;
    let at = move |step: usize| (BUNCHED * (step as f64 - half) / half).sinh() / BUNCHED.sinh();
    (0..CROSSING_STEPS).map(move |step| center + REACH.ln() * at(step))
}

/// What a crossing stands for: half of the way to both neighbors.
fn crossing_width(crossings: &[f64], place: usize) -> f64 {
    let at = |place: Option<usize>| place.and_then(|place| crossings.get(place));
    let here = at(Some(place)).copied().unwrap_or(0.0);
    let before = at(place.checked_sub(1)).map_or(0.0, |before| here - before);
    let after = at(place.checked_add(1)).map_or(0.0, |after| after - here);
    0.5 * (before + after)
}

/// Slopes that are looked at, each with how usual it is.
fn slope_prior() -> impl Iterator<Item = (f64, f64)> {
    let (low, high) = (SLOPES.0.ln(), SLOPES.1.ln());
    let flat = 1.0 / (FLAT.1 / FLAT.0).ln();
    (0..SLOPE_STEPS).map(move |step| {
        let log = low + (high - low) * step as f64 / (SLOPE_STEPS - 1) as f64;
        let off = (log - STEEP.ln()) / STEEP_SD;
        let steep = (-0.5 * off * off).exp() / (STEEP_SD * std::f64::consts::TAU.sqrt());
        let is_flat = (FLAT.0.ln() - 1e-9..=FLAT.1.ln()).contains(&log);
        let flat = if is_flat { flat } else { 0.0 };
        (log.exp(), (1.0 - FLAT_SHARE) * steep + FLAT_SHARE * flat)
    })
}

/// The runs as long ones would have been.
fn shift_load(marks: &[FitMark], by: f64) -> Vec<FitMark> {
    let shift = |mark: &FitMark| (1.0 - (by * mark.answers).clamp(0.0, MOST_KINDNESS)).ln();
    marks.iter().map(|mark| FitMark { x: mark.x + shift(mark), ..*mark }).collect()
}

/// How far a run is from a curve that has this share of misses there.
fn mark_deviance(mark: &FitMark, due: f64) -> f64 {
    let part = |seen: f64, due: f64| if seen > 0.0 { seen * (seen / due).ln() } else { 0.0 };
    2.0 * mark.weight * (part(mark.y, due) + part(1.0 - mark.y, 1.0 - due)).max(0.0)
}

/// How much a run speaks against a curve that has the crossing on the other side of it.
fn wrong_side_deviance(mark: &FitMark, due: f64, allowed: f64) -> f64 {
    let is_wrong = (mark.y > allowed) != (due > allowed);
    if is_wrong { (mark_deviance(mark, due) - mark_deviance(mark, allowed)).max(0.0) } else { 0.0 }
}

/// How likely a deviance is, whatever the spread between runs.
struct DevianceSpread {
    /// Runs that tell of it, without the curve that goes through them.
    runs: f64,
}

impl DevianceSpread {
    fn from_marks(marks: &[FitMark]) -> Self {
        // A run without a miss fits to any spread.
        let told = marks.iter().filter(|mark| mark.y > 0.0).count();
        Self { runs: told as f64 }
    }

    fn likelihood(&self, deviance: f64) -> f64 {
        let of = |spread: &f64| (-0.5 * deviance / spread - 0.5 * self.runs * spread.ln()).exp();
        SPREADS.iter().map(of).sum()
    }
}
