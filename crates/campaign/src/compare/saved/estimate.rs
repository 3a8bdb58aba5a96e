//! What two groups of runs say of one figure.

use goodput_stats::paired::{
    Counts, Unpaired, blocks_to_find, blocks_to_narrow, test_unpaired, test_with_spread,
};

use crate::compare::answer::{Alphas, widen_to_counts};
use crate::compare::blocks::NOTHING;
use crate::compare::{ComparedMetric, Figure, MetricScale};

/// Confidence of a run's own intervals.
const OWN: f64 = 0.95;

/// A difference of two groups of runs, of logarithms or of values.
pub(super) struct DifferenceEstimate {
    spread: KnownSpread,
    /// What was counted behind a share.
    pub(super) counts: Option<Counts>,
}

/// What is known of its spread.
enum KnownSpread {
    /// Several runs on both sides.
    Runs { values: [Vec<f64>; 2], mean: f64 },
    /// Mean, and the floor's standard deviation and error, known to this many degrees of freedom.
    Floor { spread: [f64; 3], degrees: f64 },
    /// The spread of runs is unknown; at most the ends that their own intervals make.
    Own { mean: f64, ends: Option<[f64; 2]> },
}

impl KnownSpread {
    /// Of the runs of the reference and of a candidate; of a side without any nothing. `floor`: the standard deviation of a
    /// difference of two runs, and its degrees of freedom.
    fn from_figures(
        metric: &ComparedMetric,
        sides: [&[Figure]; 2],
        floor: Option<(f64, f64)>,
    ) -> Self {
        if sides.iter().any(|figures| figures.is_empty()) {
            return Self::Own { mean: 0.0, ends: None };
        }
        let scale = ValueScale::from_figures(metric, sides);
        let values = sides.map(|figures| {
            figures.iter().map(|figure| scale.value(figure.value)).collect::<Vec<f64>>()
        });
        let [reference, candidate] = &values;
        let mean = mean_of(candidate) - mean_of(reference);
        if reference.len() > 1 && candidate.len() > 1 {
            return Self::Runs { values, mean };
        }
        let usable = |floor: &(f64, f64)| floor.0.is_finite() && floor.0 > 0.0 && floor.1 > 0.0;
        match floor.filter(usable) {
            Some((sd, degrees)) => {
                // The floor is of a difference: a run's own variance is half of its square.
                let each = |values: &[f64]| 0.5 / values.len().max(1) as f64;
                let error = sd * (each(reference) + each(candidate)).sqrt();
                Self::Floor { spread: [mean, sd, error], degrees }
            }
            None => Self::Own { mean, ends: own_ends(&scale, sides, mean) },
        }
    }
}

impl DifferenceEstimate {
    /// Of the runs of the reference and of a candidate, as [`KnownSpread::from_figures`] has it, and of what was
    /// counted in them.
    pub(super) fn new(
        metric: &ComparedMetric,
        sides: [&[Figure]; 2],
        floor: Option<(f64, f64)>,
        counts: Option<Counts>,
    ) -> Self {
        Self { spread: KnownSpread::from_figures(metric, sides, floor), counts }
    }

    /// Whether it can tell chance from change.
    pub(super) fn is_test(&self) -> bool {
        !matches!(self.spread, KnownSpread::Own { .. })
    }

    pub(super) fn mean(&self) -> f64 {
        match self.spread {
            KnownSpread::Runs { mean, .. }
            | KnownSpread::Floor { spread: [mean, ..], .. }
            | KnownSpread::Own { mean, .. } => mean,
        }
    }

    /// The test of no difference, by how runs spread.
    fn test(&self, alpha: f64) -> Option<Unpaired> {
        match &self.spread {
            KnownSpread::Runs { values: [reference, candidate], .. } => {
                test_unpaired(reference, candidate, alpha)
            }
            KnownSpread::Floor { spread, degrees } => test_with_spread(*spread, *degrees, alpha),
            KnownSpread::Own { .. } => None,
        }
    }

    /// The ends of the interval of confidence 1 − `alpha`; from the runs' own ones that of theirs.
    pub(super) fn interval_ends(&self, alpha: f64) -> Option<[f64; 2]> {
        let tested = self
            .test(alpha)
            .map(|found| widen_to_counts([found.low, found.high], self.counts, alpha));
        let ends = if let KnownSpread::Own { ends, .. } = self.spread { ends } else { tested };
        ends.filter(|ends| ends.iter().all(|end| end.is_finite()))
    }

    pub(super) fn confidence(&self, alpha: f64) -> f64 {
        if self.is_test() { 1.0 - alpha } else { OWN }
    }

    /// Chance of a difference so large, were there none.
    pub(super) fn p_value(&self) -> Option<f64> {
        let counted = self.counts.map_or(0.0, |counts| counts.p_value(0.0));
        self.test(1.0 - OWN).map(|found| found.p.max(counted))
    }

    /// Standard deviation of a difference of two runs.
    pub(super) fn sd(&self) -> Option<f64> {
        self.test(1.0 - OWN).map(|found| found.sd)
    }

    /// Runs on each side until it would be told from a limit in four of five.
    pub(super) fn runs_until_decided(&self, limit: f64, alpha: f64) -> Option<u32> {
        Some(blocks_to_find((self.mean() - limit).abs(), self.sd()?, alpha))
    }

    /// Runs on each side until it would be found, or would fit inside the margin.
    pub(super) fn runs_needed(&self, margin: f64, alphas: Alphas) -> Option<u32> {
        let Alphas { interval, differs } = alphas;
        let (room, sd) = (margin - self.mean().abs(), self.sd()?);
        let narrow = if room > 0.0 { blocks_to_narrow(room, sd, interval) } else { u32::MAX };
        Some(self.runs_until_decided(0.0, differs)?.min(narrow))
    }
}

/// How values become numbers that are subtracted from one another.
struct ValueScale {
    is_log: bool,
    least: f64,
}

impl ValueScale {
    fn from_figures(metric: &ComparedMetric, sides: [&[Figure]; 2]) -> Self {
        let all = sides.into_iter().flatten().map(|figure| figure.value);
        let most = all.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let least = if most > 0.0 { most / NOTHING } else { 1.0 };
        Self { is_log: metric.scale == MetricScale::Ratio, least }
    }

    fn value(&self, value: f64) -> f64 {
        match (self.is_log, value > 0.0) {
            (false, _) => value,
            (true, true) => value.ln(),
            (true, false) => self.least.ln(),
        }
    }
}

/// The ends that the runs' own intervals make: distances of both sides add up in squares.
fn own_ends(scale: &ValueScale, sides: [&[Figure]; 2], mean: f64) -> Option<[f64; 2]> {
    // The squared distance of the mean of some runs from one of its ends.
    let square = |figures: &[Figure], end: fn(&Figure) -> Option<f64>| -> Option<f64> {
        let each = figures
            .iter()
            .map(|figure| Some((scale.value(end(figure)?) - scale.value(figure.value)).powi(2)));
        let sum: f64 = each.sum::<Option<f64>>()?;
        Some(sum / (figures.len().max(1) as f64).powi(2))
    };
    let [reference, candidate] = sides;
    let low = square(candidate, |figure| figure.low)? + square(reference, |figure| figure.high)?;
    let high = square(candidate, |figure| figure.high)? + square(reference, |figure| figure.low)?;
    Some([mean - low.sqrt(), mean + high.sqrt()])
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
