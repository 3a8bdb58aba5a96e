//! Trends and level shifts in a series of equidistant values.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::summary::Slope;

/// Longer series are averaged down to at most this many points: all pairs are looked at.
pub(crate) const MOST_POINTS: usize = 600;

/// Mann and Kendall's test for a trend.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct MannKendall {
    /// Pairs that rise minus pairs that fall.
    pub s: i64,
    /// Variance of S without a trend, corrected for ties, of independent values.
    pub variance: f64,
    /// Hamed and Rao's factor on that variance for values that depend on their neighbors.
    pub factor: f64,
    /// Standard score with continuity correction. A factor below one is not used: it would make
    /// the test bolder than for independent values.
    pub z: f64,
    /// Two-sided p-value.
    pub p: f64,
}

/// Pettitt's test for a shift of the level.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Pettitt {
    /// The largest |U|.
    pub k: f64,
    /// Values before the shift.
    pub at: usize,
    /// The approximate p-value, for independent values.
    pub p: f64,
}

/// Averages neighbors so that at most [`MOST_POINTS`] are left; the last may be one of fewer.
/// Returns also how many values a point stands for.
pub(crate) fn average_neighbors(values: &[f64], most: usize) -> (Vec<f64>, usize) {
    let step = values.len().div_ceil(most.max(1)).max(1);
    let mean = |chunk: &[f64]| chunk.iter().sum::<f64>() / chunk.len() as f64;
    (values.chunks(step).map(mean).collect(), step)
}

/// The middle value, or the mean of the two middle ones.
pub(crate) fn median_of(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let is_odd = values.len() % 2 == 1;
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| !is_odd);
    Some(lower.map_or(upper, |lower| f64::midpoint(lower, upper)))
}

/// Ranks from one; equal values share the mean of theirs.
fn mean_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut begin = 0;
    for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = begin as f64 + (group.len() + 1) as f64 / 2.0;
        for index in group {
            ranks[*index] = rank;
        }
        begin += group.len();
    }
    ranks
}

/// The test, with the series' own Theil–Sen slope removed for the factor; `None` below four values.
pub fn mann_kendall(values: &[f64]) -> Option<MannKendall> {
    let n = values.len();
    let slope = theil_sen(values).filter(|_| n >= 4)?;
    let later = |index: usize| values.get(index + 1..).unwrap_or_default();
    let sign = |from: f64, to: f64| i64::from(to > from) - i64::from(to < from);
    let pairs = |(index, from): (usize, &f64)| -> i64 {
        later(index).iter().map(|to| sign(*from, *to)).sum()
    };
    let s: i64 = values.iter().enumerate().map(pairs).sum();
    let variance = variance_of_s(values);
    let rest: Vec<f64> =
        values.iter().enumerate().map(|(index, value)| value - slope * index as f64).collect();
    let factor = hamed_rao(&rest);
    let deviation = (variance * factor.max(1.0)).sqrt();
    let z = match s {
        0 => 0.0,
        _ if deviation <= 0.0 => 0.0,
        s => (s - s.signum()) as f64 / deviation,
    };
    Some(MannKendall { s, variance, factor, z, p: two_sided_p(z) })
}

fn variance_of_s(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|group| term(group.len() as f64)).sum();
    (term(values.len() as f64) - ties) / 18.0
}

fn two_sided_p(z: f64) -> f64 {
    (2.0 * Normal::standard().cdf(-z.abs())).min(1.0)
}

/// By how much dependence inflates the variance of S: from the autocorrelations of the ranks that
/// lie beyond the 95 % limits of white noise.
pub(crate) fn hamed_rao(values: &[f64]) -> f64 {
    let ranks = mean_ranks(values);
    let n = ranks.len() as f64;
    let mean = f64::midpoint(n, 1.0);
    let moved: Vec<f64> = ranks.iter().map(|rank| rank - mean).collect();
    let power: f64 = moved.iter().map(|value| value * value).sum();
    if power <= 0.0 || moved.len() < 4 {
        return 1.0;
    }
    let limit = 1.959_963_984_540_054 / n.sqrt();
    let term = |lag: usize| {
        let later = moved.get(lag..).unwrap_or_default();
        let r = moved.iter().zip(later).map(|(a, b)| a * b).sum::<f64>() / power;
        let k = lag as f64;
        let weight = (n - k) * (n - k - 1.0) * (n - k - 2.0);
        if r.abs() > limit { weight * r } else { 0.0 }
    };
    let sum: f64 = (1..moved.len()).map(term).sum();
    1.0 + 2.0 * sum / (n * (n - 1.0) * (n - 2.0))
}

/// The median of the slopes of all pairs, for each step from one value to the next.
pub fn theil_sen(values: &[f64]) -> Option<f64> {
    let slopes = values.iter().enumerate().flat_map(|(from, a)| {
        let later = values.get(from + 1..).unwrap_or_default();
        later.iter().enumerate().map(move |(gap, b)| (b - a) / (gap + 1) as f64)
    });
    median_of(&slopes.collect::<Vec<_>>())
}

/// The test; `None` below four values.
pub fn pettitt(values: &[f64]) -> Option<Pettitt> {
    let n = values.len() as f64;
    let (mut sum, mut k, mut at) = (0.0, 0.0, 0);
    for (index, rank) in mean_ranks(values).iter().enumerate() {
        sum += rank;
        let u = (2.0 * sum - (index + 1) as f64 * (n + 1.0)).abs();
        if u > k {
            (k, at) = (u, index + 1);
        }
    }
    (values.len() >= 4).then(|| Pettitt { k, at, p: pettitt_p(k, n) })
}

/// Pettitt's approximation for `n` independent values.
pub(crate) fn pettitt_p(k: f64, n: f64) -> f64 {
    (2.0 * (-6.0 * k * k / (n * n * n + n * n)).exp()).min(1.0)
}

/// Least squares over values one apart; `None` below three values.
pub fn least_squares(values: &[f64]) -> Option<Slope> {
    let n = values.len() as f64;
    let freedom = n - 2.0;
    let t =
        StudentsT::new(0.0, 1.0, freedom).ok().filter(|_| values.len() >= 3)?.inverse_cdf(0.975);
    let (middle, mean) = ((n - 1.0) / 2.0, values.iter().sum::<f64>() / n);
    let x = |index: usize| index as f64 - middle;
    let sxx = n * (n * n - 1.0) / 12.0;
    let sxy: f64 = values.iter().enumerate().map(|(i, value)| x(i) * (value - mean)).sum();
    let value = sxy / sxx;
    let rest = |(i, y): (usize, &f64)| (y - mean - value * x(i)).powi(2);
    let squares: f64 = values.iter().enumerate().map(rest).sum();
    let half = t * (squares / freedom / sxx).sqrt();
    Some(Slope { value, low: value - half, high: value + half })
}
