//! How well a figure is known while a run goes on (METHOD 3.4, rule 1).
//!
//! Values in the order in which their requests were due, cut into twenty batches of one size: while
//! a queue is long all requests are slow, and what counts is how often that happened. Values that
//! were never reached are infinite.

use goodput_model::Figure;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Contiguous batches.
pub(crate) const BATCHES: usize = 20;

/// A mean needs so many values in each batch.
const FEWEST: usize = 5;

/// A figure and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    /// None where it lies beyond the time limit.
    pub(crate) value: Option<f64>,
    /// None where there are too few values, or too dependent ones.
    pub(crate) ends: Option<(f64, f64)>,
    pub(crate) n: u64,
    /// As many independent values would say as much.
    pub(crate) n_eff: f64,
    /// Whether neighbours are so alike that requests wait for one another: an interval of a tail is
    /// then too narrow, whatever the arithmetic says (METHOD 3.4, rule 3).
    pub(crate) is_queueing: bool,
}

impl Estimate {
    /// The farther end of the interval, in proportion to the value.
    pub(crate) fn within(&self) -> Option<f64> {
        let (value, (low, high)) = (self.value?, self.ends?);
        let farther = (high - value).max(value - low);
        // Nothing is zero to within any share of it.
        if farther == 0.0 { Some(0.0) } else { (value > 0.0).then(|| farther / value) }
    }
}

/// The figure of these values, in the order in which they were due; none of no values.
pub(crate) fn estimate(figure: Figure, values: &[f64]) -> Option<Estimate> {
    match figure {
        _ if values.is_empty() => None,
        Figure::Mean => Some(mean(values)),
        Figure::Percentile(percent) => Some(quantile(values, percent / 100.0)),
    }
}

fn batches(values: &[f64]) -> impl Iterator<Item = &[f64]> {
    let edge = move |place: usize| place * values.len() / BATCHES;
    (0..BATCHES).map(move |place| &values[edge(place)..edge(place + 1)])
}

/// Variance of the mean of all by the spread of the batches' means.
fn variance_by_batches(values: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let means = batches(values)
        .map(|batch| batch.iter().copied().map(&of).sum::<f64>() / batch.len().max(1) as f64);
    let means: Vec<f64> = means.collect();
    let centre = means.iter().sum::<f64>() / BATCHES as f64;
    let squares: f64 = means.iter().map(|mean| (mean - centre).powi(2)).sum();
    squares / (BATCHES - 1) as f64 / BATCHES as f64
}

fn quantile(values: &[f64], q: f64) -> Estimate {
    let n = values.len();
    let mut ranked = values.to_vec();
    let mut at = |q: f64| {
        // 99.9 % of 1000 is 999, whatever binary fractions make of it.
        let rank = (n as f64 * q - 1e-9).ceil().clamp(1.0, n as f64) as usize;
        *ranked.select_nth_unstable_by(rank - 1, f64::total_cmp).1
    };
    let value = at(q);
    let variance = if n < BATCHES {
        f64::INFINITY
    } else {
        variance_by_batches(values, |x| f64::from(u8::from(x > value)))
    };
    let chance = q * (1.0 - q);
    let n_eff = if variance > 0.0 { (chance / variance).min(n as f64) } else { n as f64 };
    let margin = student(BATCHES as u64 - 1) * (chance / n_eff).sqrt();
    let is_estimable =
        n_eff >= fewest_for_interval(q) as f64 && q - margin > 0.0 && q + margin < 1.0;
    let ends = is_estimable.then(|| (at(q - margin), at(q + margin)));
    let ends = ends.filter(|ends| ends.1.is_finite());
    let value = value.is_finite().then_some(value);
    Estimate { value, ends, n: n as u64, n_eff, is_queueing: is_queueing(values) }
}

/// A correlation of neighbours above this is a queue.
const ALIKE: f64 = 0.5;

/// Values that spread less than this around their mean are no queue, however alike neighbours are.
const SMALL: f64 = 0.1;

/// Whether the correlation of neighbours is that of a queue.
fn is_queueing(values: &[f64]) -> bool {
    let (mut n, mut sum) = (0.0, 0.0);
    for value in values.iter().filter(|value| value.is_finite()) {
        (n, sum) = (n + 1.0, sum + value);
    }
    let mean = sum / n;
    let finite = |value: f64| if value.is_finite() { value - mean } else { 0.0 };
    let square: f64 = values.iter().map(|value| finite(*value).powi(2)).sum();
    let product: f64 = values.windows(2).map(|pair| finite(pair[0]) * finite(pair[1])).sum();
    product > ALIKE * square && (square / n).sqrt() > SMALL * mean.abs()
}

fn mean(values: &[f64]) -> Estimate {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    if n < BATCHES * FEWEST || !mean.is_finite() {
        let value = mean.is_finite().then_some(mean);
        return Estimate { value, ends: None, n: n as u64, n_eff: 0.0, is_queueing: false };
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let spread = squares / (n - 1) as f64;
    // Never surer than independent values would be.
    let variance = variance_by_batches(values, |x| x).max(spread / n as f64);
    let margin = student(BATCHES as u64 - 1) * variance.sqrt();
    let n_eff = if variance > 0.0 { spread / variance } else { n as f64 };
    // A mean has no tail: its batches hold what a queue does to it.
    Estimate {
        value: Some(mean),
        ends: Some((mean - margin, mean + margin)),
        n: n as u64,
        n_eff,
        is_queueing: false,
    }
}

/// The fewest independent values from which a quantile has a two-sided 95 % interval.
fn fewest_for_interval(q: f64) -> u64 {
    let fewest = (0.025f64.ln() / q.max(1.0 - q).ln()).ceil();
    // Beyond any run, rather than not a number.
    if fewest.is_finite() { fewest as u64 } else { u64::MAX }
}

/// The fewest values from which a figure stands for itself: ten beyond it up to p99, a hundred
/// further out; 1,000 for p99 and 100,000 for p99.9.
pub(crate) fn fewest(figure: Figure) -> u64 {
    match figure {
        Figure::Mean => (BATCHES * FEWEST) as u64,
        Figure::Percentile(percent) => {
            let beyond = if percent > 99.0 { 100.0 } else { 10.0 };
            let fewest = (beyond / (1.0 - percent / 100.0) * (1.0 - 1e-9)).ceil();
            (fewest as u64).max(fewest_for_interval(percent / 100.0))
        }
    }
}

/// The 97.5 % quantile of Student's t.
pub(crate) fn student(degrees: u64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees as f64).map_or(f64::NAN, |t| t.inverse_cdf(0.975))
}

/// Standard deviation of the logarithm of a latency where nothing is known yet.
pub const USUAL_SIGMA: f64 = 0.5;

/// Before a run: about so many independent requests bring a figure to ±`within`, if latencies are
/// log-normal with [`USUAL_SIGMA`]. At least as many as the figure needs to stand for itself.
pub fn requests_before(figure: Figure, within: f64) -> u64 {
    let spread = match figure {
        Figure::Mean => (USUAL_SIGMA * USUAL_SIGMA).exp_m1(),
        Figure::Percentile(percent) => {
            let q = percent / 100.0;
            let z = Normal::new(0.0, 1.0).map_or(f64::NAN, |normal| normal.inverse_cdf(q));
            let density = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
            q * (1.0 - q) * (USUAL_SIGMA / density).powi(2)
        }
    };
    let n = (1.96 / within).powi(2) * spread;
    (n.ceil() as u64).max(fewest(figure))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const P95: Figure = Figure::Percentile(95.0);

    #[test]
    fn a_quantile_by_hand() {
        // 1 to 2000 in an order in which every batch has five of the hundred largest.
        let values: Vec<f64> = (0..2000).map(|i| f64::from((i % 20) * 100 + i / 20 + 1)).collect();
        let found = estimate(P95, &values).unwrap();
        assert_eq!((found.value, found.n, found.n_eff), (Some(1900.0), 2000, 2000.0));
        // t(19) is 2.0930 in every table: 0.95 ± 2.0930·√(0.0475/2000) is 0.93980 and 0.96020.
        assert_eq!(found.ends, Some((1880.0, 1921.0)));
        assert_eq!(found.within(), Some(21.0 / 1900.0));
    }

    #[test]
    fn dependence_widens_it() {
        // One batch in ten is slow throughout: 200 values say as much as few.
        let values: Vec<f64> = (0..2000)
            .map(|i| if i / 100 % 10 == 9 { 9.0 } else { 1.0 + f64::from(i % 7) })
            .collect();
        let found = estimate(Figure::Percentile(88.0), &values).unwrap();
        // Shares of the batches beyond the quantile: 18 times none or few, twice all.
        let shares: Vec<f64> = values
            .chunks(100)
            .map(|batch| batch.iter().filter(|x| **x > found.value.unwrap()).count() as f64 / 100.0)
            .collect();
        let centre = shares.iter().sum::<f64>() / 20.0;
        let v = shares.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / 19.0 / 20.0;
        assert!((found.n_eff - 0.88 * 0.12 / v).abs() < 1e-9);
        assert!(found.n_eff < 40.0 && found.ends.is_none(), "{found:?}");
    }

    #[test]
    fn few_equal_and_endless_values() {
        let equal = estimate(P95, &[7.0; 200]).unwrap();
        assert_eq!((equal.ends, equal.within()), (Some((7.0, 7.0)), Some(0.0)));
        assert_eq!(estimate(P95, &[7.0; 71]).unwrap().ends, None);
        assert_eq!(estimate(P95, &[7.0]).unwrap().within(), None);
        assert_eq!(estimate(P95, &[]), None);
        let mut cut = vec![1.0; 1000];
        cut[900..].fill(f64::INFINITY);
        let found = estimate(P95, &cut).unwrap();
        assert_eq!((found.value, found.within()), (None, None));
        assert_eq!(estimate(Figure::Mean, &cut).unwrap().value, None);
        assert_eq!(estimate(P95, &[0.0; 200]).unwrap().within(), Some(0.0));
    }

    #[test]
    fn neighbours_that_are_alike_are_a_queue() {
        let saw = |i: u32, height: f64| 10.0 + height * f64::from(i % 50);
        let wave: Vec<f64> = (0..1000).map(|i| saw(i, 1.0)).collect();
        assert!(estimate(P95, &wave).unwrap().is_queueing);
        let low: Vec<f64> = (0..1000).map(|i| saw(i, 0.01)).collect();
        assert!(!estimate(P95, &low).unwrap().is_queueing, "alike, but all about the same");
        let mixed: Vec<f64> = (0..1000).map(|i| saw(i * 27, 1.0)).collect();
        assert!(!estimate(P95, &mixed).unwrap().is_queueing);
        assert!(!estimate(P95, &[5.0; 100]).unwrap().is_queueing);
        assert!(!estimate(P95, &[f64::INFINITY; 100]).unwrap().is_queueing);
    }

    #[test]
    fn a_mean_by_hand() {
        // Twenty batches of five: their means are 1 and 3 in turn.
        let values: Vec<f64> = (0..100).map(|i| if i / 5 % 2 == 0 { 1.0 } else { 3.0 }).collect();
        let found = estimate(Figure::Mean, &values).unwrap();
        // Variance of the means 20/19, of their mean 1/19.
        let margin = student(19) * (1.0f64 / 19.0).sqrt();
        let (low, high) = found.ends.unwrap();
        assert!((low - (2.0 - margin)).abs() < 1e-12 && (high - (2.0 + margin)).abs() < 1e-12);
        // The values' own variance is 100/99.
        assert!((found.n_eff - 19.0 * 100.0 / 99.0).abs() < 1e-9);
        assert_eq!(estimate(Figure::Mean, &values[..99]).unwrap().ends, None);
    }

    #[test]
    fn what_is_needed() {
        // METHOD 3.4: fewest for any two-sided interval.
        let fewest_of = |percent: f64| fewest_for_interval(percent / 100.0);
        assert_eq!([50.0, 90.0, 95.0, 99.0, 99.9].map(fewest_of), [6, 36, 72, 368, 3688]);
        let figures = [50.0, 90.0, 95.0, 99.0, 99.9].map(|p| fewest(Figure::Percentile(p)));
        assert_eq!(figures, [20, 100, 200, 1000, 100_000]);
        assert!((student(19) - 2.093_024_054_408_263).abs() < 1e-9);
        // (1.96/0.1)²·0.0475·0.25/0.103136² = 428.9
        assert_eq!(requests_before(P95, 0.1), 429);
        assert_eq!(requests_before(Figure::Percentile(99.0), 0.5), 1000);
        // (1.96/0.05)²·(e^0.25 - 1) = 436.4
        assert_eq!(requests_before(Figure::Mean, 0.05), 437);
    }

    proptest! {
        /// Nearest rank by brute force, and ends that enclose it.
        #[test]
        fn ends_enclose_the_value(values in prop::collection::vec(0u32..500, 80..400)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let found = estimate(Figure::Percentile(50.0), &values).unwrap();
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
