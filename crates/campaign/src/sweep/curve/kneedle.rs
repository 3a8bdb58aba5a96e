//! The knee by the shape of a curve (Satopää, Albrecht, Irwin and Raghavan 2011): where throughput
//! over load lies farthest above the straight line from its first point to its last, provided that
//! it comes back toward that line afterwards.

use super::{Kneedle, bootstrap, by_level, positive_value};
use crate::sweep::PointSummary;

/// Fewer levels have no shape.
const FEWEST: usize = 5;
/// How far the curve must come back, in mean distances between levels.
const SENSITIVITY: f64 = 1.0;

pub(super) fn find_kneedle(points: &[&PointSummary]) -> Option<Kneedle> {
    let means = mean_throughputs(points);
    let level = first_knee(&means)?;
    let again = |points: &[&PointSummary]| first_knee(&mean_throughputs(points));
    let level = bootstrap::bootstrap_interval(points, level, again);
    Some(Kneedle { level, points: means.len() as u32 })
}

/// Throughput by level: all answers over all seconds.
pub(super) fn mean_throughputs(points: &[&PointSummary]) -> Vec<(f64, f64)> {
    let mean = |(level, points): (f64, Vec<&PointSummary>)| {
        let runs = points.iter().filter_map(|point| {
            let figures = &point.point.figures;
            let rate = figures.requests_per_s.filter(|rate| rate.is_finite())?;
            Some((rate * figures.window_s, figures.window_s))
        });
        let (answers, seconds) = runs.fold((0.0, 0.0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
        positive_value(Some(seconds)).map(|seconds| (level, answers / seconds))
    };
    by_level(points).into_iter().filter_map(mean).collect()
}

/// The first knee of a concave, rising curve whose abscissae ascend.
pub(super) fn first_knee(curve: &[(f64, f64)]) -> Option<f64> {
    knee_place(curve).and_then(|place| curve.get(place)).map(|point| point.0)
}

/// Its place.
pub(super) fn knee_place(curve: &[(f64, f64)]) -> Option<usize> {
    if curve.len() < FEWEST {
        return None;
    }
    let [x, y] = [|p: &(f64, f64)| p.0, |p: &(f64, f64)| p.1].map(|of| normalize(curve, of));
    let above: Vec<f64> = y?.iter().zip(x?).map(|(y, x)| y - x).collect();
    let step = 1.0 / (curve.len() - 1) as f64;
    // A threshold holds from its maximum to the next one.
    let mut candidate: Option<(usize, f64)> = None;
    for (index, window) in above.windows(3).enumerate() {
        let &[before, here, after] = window else { continue };
        let place = index + 1;
        if here > before && here >= after {
            candidate = Some((place, here - SENSITIVITY * step));
        }
        if let Some((knee, threshold)) = candidate
            && after < threshold
        {
            return Some(knee);
        }
    }
    None
}

/// From 0 to 1; none if all is the same, or not a number.
fn normalize(curve: &[(f64, f64)], of: fn(&(f64, f64)) -> f64) -> Option<Vec<f64>> {
    let (low, high) = curve
        .iter()
        .map(of)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let span = positive_value(Some(high - low))?;
    curve.iter().map(of).map(|v| v.is_finite().then(|| (v - low) / span)).collect()
}
