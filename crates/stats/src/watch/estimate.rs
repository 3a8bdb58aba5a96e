//! How well a figure is known during a run.

use goodput_model::StopFigure;

use crate::estimate::{
    MINIMUM_FOR_MEAN, lag1_correlation, minimum_for_figure, minimum_for_interval,
    sample_size_factor,
};
use crate::sample::Sample;

/// A figure and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    /// None if it lies beyond the time limit.
    pub(crate) value: Option<f64>,
    /// None if there are too few values, or too dependent ones.
    pub(crate) ends: Option<(f64, f64)>,
    pub(crate) n: u64,
    /// The number of independent values that would be worth as much.
    pub(crate) n_eff: f64,
    /// Whether neighbors are so alike that requests wait for one another: an interval of a tail is
    /// then too narrow, whatever the arithmetic says.
    pub(crate) is_queueing: bool,
}

impl Estimate {
    /// The farther end of the interval, in proportion to the value.
    pub(crate) fn relative_half_width(&self) -> Option<f64> {
        let (value, (low, high)) = (self.value?, self.ends?);
        let farther = (high - value).max(value - low);
        // Nothing is zero to within any share of it.
        if farther == 0.0 { Some(0.0) } else { (value > 0.0).then(|| farther / value) }
    }

    /// This many times as many values bring it within this share of the value.
    pub(crate) fn sample_size_factor(&self, wanted: f64) -> Option<f64> {
        let (value, (low, high), within) = (self.value?, self.ends?, self.relative_half_width()?);
        let half = if within > 0.0 { (high - low) / 2.0 / value } else { 0.0 };
        Some(sample_size_factor(half, within - half, wanted))
    }
}

/// The figure of these values, in the order in which they were due; none of no values. Those that
/// were never reached are infinite.
pub(crate) fn estimate_figure(figure: StopFigure, values: &[f64]) -> Option<Estimate> {
    let mut sample = Sample::from_series(values);
    let n = sample.len();
    let found = match figure {
        StopFigure::Mean => {
            sample.sort();
            let ends = sample.mean_interval().and_then(|found| found.low.zip(found.high));
            let value = sample.mean().filter(|_| values.iter().all(|value| value.is_finite()));
            let n_eff = sample.mean_n_eff().unwrap_or_default();
            // A mean has no tail: its batches hold what a queue does to it.
            Estimate { value, ends, n, n_eff, is_queueing: false }
        }
        StopFigure::Percentile(percent) => {
            let found = sample.estimate(percent);
            let (ends, n_eff) = (found.low.zip(found.high), found.n_eff.unwrap_or_default());
            let is_queueing = is_queueing(values, &sample);
            Estimate { value: found.value, ends, n, n_eff, is_queueing }
        }
    };
    (n > 0).then_some(found)
}

/// A correlation of neighbors above this is a queue.
const ALIKE: f64 = 0.5;

/// Values that spread less than this around their mean do not show a queue, however alike neighbors are.
const SMALL: f64 = 0.1;

/// Whether the correlation of neighbors is that of a queue.
fn is_queueing(values: &[f64], sample: &Sample) -> bool {
    let reached = values.iter().copied().filter(|value| value.is_finite());
    let is_alike = lag1_correlation(reached).is_some_and(|correlation| correlation > ALIKE);
    let spread = sample.standard_deviation().zip(sample.mean());
    is_alike && spread.is_some_and(|(spread, mean)| spread > SMALL * mean.abs())
}

/// The fewest values from which a figure stands for itself.
pub(crate) fn fewest_values(figure: StopFigure) -> u64 {
    match figure {
        StopFigure::Mean => MINIMUM_FOR_MEAN,
        StopFigure::Percentile(percent) => {
            let q = percent / 100.0;
            let fewest = minimum_for_figure(q).zip(minimum_for_interval(q));
            // Outside (0, 100) no number is enough.
            fewest.map_or(u64::MAX, |(figure, interval)| figure.max(interval))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::estimate::student_quantile;

    const P95: StopFigure = StopFigure::Percentile(95.0);

    #[test]
    fn a_quantile_by_hand() {
        // 1 to 2000 in an order in which every batch has five of the hundred largest.
        let values: Vec<f64> = (0..2000).map(|i| f64::from((i % 20) * 100 + i / 20 + 1)).collect();
        let found = estimate_figure(P95, &values).unwrap();
        assert_eq!((found.value, found.n, found.n_eff), (Some(1900.0), 2000, 2000.0));
        // 2,000·(1.9600/2.0930)² are 1,753 independent ones; of those ranks 1,647 and 1,684
        // enclose p95.
        assert_eq!(found.ends, Some((1879.0, 1922.0)));
        assert_eq!(found.relative_half_width(), Some(22.0 / 1900.0));
    }

    #[test]
    fn dependence_widens_it() {
        // One batch in ten is slow throughout: 200 values say as much as few.
        let values: Vec<f64> = (0..2000)
            .map(|i| if i / 100 % 10 == 9 { 9.0 } else { 1.0 + f64::from(i % 7) })
            .collect();
        let found = estimate_figure(StopFigure::Percentile(88.0), &values).unwrap();
        // Shares of the batches beyond the quantile: 18 times none or few, twice all.
        let shares: Vec<f64> = values
            .chunks(100)
            .map(|batch| batch.iter().filter(|x| **x > found.value.unwrap()).count() as f64 / 100.0)
            .collect();
        let center = shares.iter().sum::<f64>() / 20.0;
        let v = shares.iter().map(|x| (x - center).powi(2)).sum::<f64>() / 19.0 / 20.0;
        assert!(found.n_eff <= center * (1.0 - center) / v + 1e-9);
        assert!(found.n_eff < 40.0 && found.ends.is_none(), "{found:?}");
    }

    #[test]
    fn few_equal_and_endless_values() {
        let equal = estimate_figure(P95, &[7.0; 200]).unwrap();
        assert_eq!((equal.ends, equal.relative_half_width()), (Some((7.0, 7.0)), Some(0.0)));
        assert_eq!(estimate_figure(P95, &[7.0; 71]).unwrap().ends, None);
        assert_eq!(estimate_figure(P95, &[7.0]).unwrap().relative_half_width(), None);
        assert_eq!(estimate_figure(P95, &[]), None);
        let mut cut = vec![1.0; 1000];
        cut[900..].fill(f64::INFINITY);
        let found = estimate_figure(P95, &cut).unwrap();
        assert_eq!((found.value, found.relative_half_width()), (None, None));
        assert_eq!(estimate_figure(StopFigure::Mean, &cut).unwrap().value, None);
        assert_eq!(estimate_figure(P95, &[0.0; 200]).unwrap().relative_half_width(), Some(0.0));
    }

    #[test]
    fn neighbors_that_are_alike_are_a_queue() {
        let saw = |i: u32, height: f64| 10.0 + height * f64::from(i % 50);
        let wave: Vec<f64> = (0..1000).map(|i| saw(i, 1.0)).collect();
        assert!(estimate_figure(P95, &wave).unwrap().is_queueing);
        let low: Vec<f64> = (0..1000).map(|i| saw(i, 0.01)).collect();
        assert!(!estimate_figure(P95, &low).unwrap().is_queueing, "alike, but all about the same");
        let mixed: Vec<f64> = (0..1000).map(|i| saw(i * 27, 1.0)).collect();
        assert!(!estimate_figure(P95, &mixed).unwrap().is_queueing);
        assert!(!estimate_figure(P95, &[5.0; 100]).unwrap().is_queueing);
        assert!(!estimate_figure(P95, &[f64::INFINITY; 100]).unwrap().is_queueing);
    }

    #[test]
    fn a_mean_by_hand() {
        // Twenty batches of five: their means are 1 and 3 in turn.
        let values: Vec<f64> = (0..100).map(|i| if i / 5 % 2 == 0 { 1.0 } else { 3.0 }).collect();
        let found = estimate_figure(StopFigure::Mean, &values).unwrap();
        // Variance of the means 20/19, of their mean 1/19.
        let margin = student_quantile(0.975, 19) * (1.0f64 / 19.0).sqrt();
        let (low, high) = found.ends.unwrap();
        assert!((low - (2.0 - margin)).abs() < 1e-12 && (high - (2.0 + margin)).abs() < 1e-12);
        // The values' own variance is 100/99.
        assert!((found.n_eff - 19.0 * 100.0 / 99.0).abs() < 1e-9);
        // Values that are more alike from batch to batch than chance has them are worth no more.
        let mut saw: Vec<f64> = (0..100).map(|i| f64::from(i % 5)).collect();
        saw[0] = 0.5;
        assert_eq!(estimate_figure(StopFigure::Mean, &saw).unwrap().n_eff, 100.0);
        assert_eq!(
            estimate_figure(StopFigure::Mean, &values[..9]).unwrap().ends,
            None,
            "nine batches"
        );
    }

    #[test]
    fn what_is_needed() {
        let figures =
            [50.0, 90.0, 95.0, 99.0, 99.9].map(|p| fewest_values(StopFigure::Percentile(p)));
        assert_eq!(figures, [20, 100, 200, 1000, 100_000]);
        assert_eq!(
            fewest_values(StopFigure::Percentile(1.0)),
            368,
            "of the lower tail, its interval's"
        );
        assert_eq!(fewest_values(StopFigure::Mean), 100);
        assert_eq!(fewest_values(StopFigure::Percentile(100.0)), u64::MAX);
    }

    proptest! {
        /// Nearest rank by brute force, and ends that enclose it.
        #[test]
        fn ends_enclose_the_value(values in prop::collection::vec(0u32..500, 80..400)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let found = estimate_figure(StopFigure::Percentile(50.0), &values).unwrap();
            let reached = |x: f64| values.iter().filter(|v| **v <= x).count() * 2;
            let expected = values.iter().copied().filter(|x| reached(*x) >= values.len());
            prop_assert_eq!(found.value, expected.min_by(f64::total_cmp));
            if let Some((low, high)) = found.ends {
                prop_assert!(low <= found.value.unwrap() && found.value.unwrap() <= high);
            }
            prop_assert!(found.n_eff > 0.0 && found.n_eff <= values.len() as f64);
        }
    }
}
