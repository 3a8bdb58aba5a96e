//! The levels that were asked for: in an order that does not confound load with time, none far
//! beyond saturation, and one of them again at the end.

use super::super::{Effort, Purpose};
use super::Wish;
use super::view::{CurveView, SeenPoint, is_same_level};

/// Levels this far beyond the lowest that saturates are not measured.
const BEYOND: f64 = 1.5;

/// Even places upwards, then odd places downwards.
pub(super) fn alternate_levels(levels: &[f64]) -> Vec<f64> {
    let even = levels.iter().step_by(2);
    let odd = levels.iter().skip(1).step_by(2);
    even.copied().chain(odd.rev().copied()).collect()
}

/// The levels of the plan inside its bounds, each once.
pub(super) fn grid_levels(view: &CurveView<'_>) -> Vec<f64> {
    let good = |level: &&f64| level.is_finite() && **level > 0.0;
    let mut levels: Vec<f64> =
        view.plan.levels.iter().filter(good).map(|level| view.clamp_level(*level)).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup_by(|a, b| is_same_level(*a, *b));
    levels
}

/// The next level of the grid, then its anchor; none when all is measured.
pub(super) fn next_grid_level(view: &CurveView<'_>) -> Option<Wish> {
    let levels = grid_levels(view);
    // Whatever has changed since: each was asked for once.
    let is_done = |level: f64| {
        view.points.iter().any(|point| {
            point.ask.purpose == Purpose::Grid && is_same_level(point.ask.level.value(), level)
        })
    };
    let lost = view.points_for(Purpose::Grid).filter(|seen| seen.is_wall());
    let lost = lost.map(|seen| seen.level).min_by(f64::total_cmp);
    let is_wanted = |level: f64| lost.is_none_or(|lost| level < BEYOND * lost) && !is_done(level);
    if let Some(level) = alternate_levels(&levels).into_iter().find(|level| is_wanted(*level)) {
        return Some(view.wish_at(Purpose::Grid, level));
    }
    let wants_anchor = levels.len() > 2 && anchor_count(view) == 0 && is_long_enough(view);
    anchor_level(view).filter(|_| wants_anchor).map(|level| view.wish_at(Purpose::Anchor, level))
}

/// Whether points are long enough for an anchor to tell anything.
pub(super) fn is_long_enough(view: &CurveView<'_>) -> bool {
    view.plan.effort != Effort::Quick
}

/// How often an anchor was measured.
pub(super) fn anchor_count(view: &CurveView<'_>) -> usize {
    view.points.iter().filter(|point| point.ask.purpose == Purpose::Anchor).count()
}

/// A level that was kept, near the middle of those; the lowest where none was.
pub(super) fn anchor_level(view: &CurveView<'_>) -> Option<f64> {
    let is_grid = |seen: &&SeenPoint<'_>| matches!(seen.purpose, Purpose::Grid | Purpose::Bracket);
    let mut kept: Vec<f64> = view
        .seen
        .iter()
        .filter(is_grid)
        .filter(|seen| !seen.is_over())
        .map(|seen| seen.level)
        .collect();
    kept.sort_by(f64::total_cmp);
    kept.get(kept.len() / 2)
        .copied()
        .or_else(|| view.seen.iter().map(|seen| seen.level).min_by(f64::total_cmp))
}
