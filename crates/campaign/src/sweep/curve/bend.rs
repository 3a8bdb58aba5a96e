//! Where TTFT bends upward over load, and the knee of a closed loop.

use super::{by_level, kneedle, positive_value};
use crate::sweep::{Level, PointSummary};

/// The share of the highest throughput that the knee of a closed loop gives.
const MOST_OF_IT: f64 = 0.95;

/// The level at which the median TTFT leaves its flat part: the knee of the mirrored curve (level over
/// TTFT), which rises steeply first and flattens where TTFT grows faster than the load. None below
/// five levels, and where TTFT grows in a line. Of falling values the one before counts: more load is
/// not faster.
pub(super) fn ttft_bend(points: &[&PointSummary]) -> Option<f64> {
    let mut highest = 0.0_f64;
    let mean = |(level, points): (f64, Vec<&PointSummary>)| {
        let runs = points.iter().filter_map(|point| {
            let figures = &point.point.figures;
            let ttft = figures.ttft_ms.p50?.value;
            ttft.is_finite().then_some((ttft * figures.requests as f64, figures.requests as f64))
        });
        let (sum, n) = runs.fold((0.0, 0.0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
        highest = highest.max(sum / positive_value(Some(n))?);
        Some((highest, level))
    };
    let mirrored: Vec<(f64, f64)> = by_level(points).into_iter().filter_map(mean).collect();
    kneedle::knee_place(&mirrored).and_then(|place| mirrored.get(place)).map(|(_, level)| *level)
}

/// The fewest users whose throughput is at least 95 % of the highest measured; none where that is the
/// highest number measured, because throughput may still rise.
pub(super) fn fewest_users_at_peak(points: &[&PointSummary]) -> Option<f64> {
    let closed: Vec<&PointSummary> = points
        .iter()
        .filter(|point| matches!(point.point.ask.level, Level::Users(_)))
        .copied()
        .collect();
    let levels = kneedle::mean_throughputs(&closed);
    let most = levels.iter().map(|(_, rate)| *rate).max_by(f64::total_cmp)?;
    let found = levels.iter().position(|(_, rate)| *rate >= MOST_OF_IT * most)?;
    (found + 1 < levels.len()).then(|| levels.get(found).map(|(level, _)| *level)).flatten()
}
