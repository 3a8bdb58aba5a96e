//! The search: bracket, bisection, runs near the limit, confirmation, the long run.

use goodput_model::EndedBy;

use super::super::{Axis, Purpose};
use super::fit::{self, Crossing};
use super::view::{CurveView, SeenPoint, e2e_s, is_same_level};
use super::{Wish, estimate, grid};

/// Levels that may be tried to confirm.
const TRIES: usize = 8;
/// A second look at a contradiction is had so often.
const LOOKS: usize = 3;
/// Where each run near the limit lies, in proportion to the estimate.
const AROUND: [f64; 6] = [1.0, 1.02, 0.99, 1.01, 0.98, 1.0];
/// The answer lies no further below the estimate than this.
const MOST_MARGIN: f64 = 0.08;
/// Steps down after a plain miss are as large as the estimate has them, to this factor.
const PLAIN_STEP: f64 = 0.8;
/// Fewer requests in flight than this, and still over the limit: no load meets it.
const IDLE: f64 = 0.1;
/// Points that show the knee where nothing is searched for.
const AROUND_KNEE: usize = 4;

/// What the search wants next; none when it is done.
pub(super) fn next_search_wish(view: &CurveView<'_>) -> Option<Wish> {
    let is_searched = view.plan.search && view.plan.slo.is_some();
    if !is_searched {
        let knee = || bracket_or_bisect(view, 1.0 + 0.4 / AROUND_KNEE as f64);
        return if view.plan.levels.is_empty() { knee() } else { None }
            .or_else(|| closing_anchor(view));
    }
    remeasure_missed(view)
        .or_else(|| bracket_or_bisect(view, view.pace.close))
        .or_else(|| focus_near_limit(view))
        .or_else(|| confirming_run(view))
        .or_else(|| sustained_run(view))
        .or_else(|| closing_anchor(view))
}

/// A level that was missed below one that is kept.
fn remeasure_missed(view: &CurveView<'_>) -> Option<Wish> {
    let conflict = view.conflicts.last().filter(|conflict| conflict.again.is_none())?;
    (view.conflicts.len() <= LOOKS).then(|| view.wish_at(Purpose::Anchor, conflict.missed))
}

/// Bracket and bisection, until the two ends are as close as this ratio.
fn bracket_or_bisect(view: &CurveView<'_>, close: f64) -> Option<Wish> {
    let ends = (view.highest_kept(), view.lowest_missed());
    // Later runs are finer: their chance must not open the bracket again. Where a server that
    // changed has left no end of it, it begins again.
    let is_closed = ends.0.is_some() && ends.1.is_some();
    if is_closed && view.seen.iter().any(|seen| !seen.is_coarse()) {
        return None;
    }
    let growth = view.pace.growth;
    match ends {
        (None, None) => Some(view.wish_at(Purpose::Bracket, first_bracket_level(view))),
        (Some(low), None) => {
            let next = view.clamp_level((growth * low).max(low + smallest_step(view)));
            (next > low * 1.001).then(|| view.wish_at(Purpose::Bracket, next))
        }
        (None, Some(high)) => {
            let next = view.clamp_level(high / growth);
            let is_lower = next < high * 0.999 && !is_nearly_idle(view, high);
            is_lower.then(|| view.wish_at(Purpose::Bracket, next))
        }
        (Some(low), Some(high)) => {
            let is_open =
                high > low && high / low > close && high - low > 1.5 * smallest_step(view);
            is_open.then(|| view.wish_at(Purpose::Bisect, bisection_level(view, low, high)))
        }
    }
}

/// The smallest difference of two levels.
fn smallest_step(view: &CurveView<'_>) -> f64 {
    match view.plan.axis {
        Axis::Rate => 0.0,
        Axis::Concurrency => 1.0,
    }
}

/// The geometric middle; where the upper end is over-saturated, rather what was answered there.
fn bisection_level(view: &CurveView<'_>, low: f64, high: f64) -> f64 {
    let middle = (low * high).sqrt();
    let at_high = view.seen.iter().filter(|seen| is_same_level(seen.level, high) && seen.is_wall());
    let answered = at_high.filter_map(|seen| seen.figures.requests_per_s).next_back();
    let is_rate = view.plan.axis == Axis::Rate;
    match answered.filter(|rate| is_rate && rate.is_finite() && high / low > 1.3) {
        Some(rate) => {
            let quarter = (high / low).powf(0.25);
            (0.9 * rate).clamp(low * quarter, high / quarter)
        }
        None => middle,
    }
}

/// Where the bracket begins.
fn first_bracket_level(view: &CurveView<'_>) -> f64 {
    let users = f64::from(super::effort::WARM_UP_USERS);
    let Some(warm) = view.warm else { return 1.0 };
    let rate = warm.requests_per_s.filter(|rate| rate.is_finite() && *rate > 0.0);
    match view.plan.axis {
        Axis::Rate => 0.4 * rate.unwrap_or(users / e2e_s(warm).0),
        Axis::Concurrency => users / 2.0,
    }
}

/// Whether hardly any request is in flight at this level.
fn is_nearly_idle(view: &CurveView<'_>, level: f64) -> bool {
    let at = view.seen.iter().filter(|seen| is_same_level(seen.level, level));
    let under_way = |seen: &SeenPoint<'_>| match view.plan.axis {
        Axis::Rate => seen.level * e2e_s(seen.figures).0,
        Axis::Concurrency => seen.level,
    };
    at.map(under_way).any(|under_way| under_way < IDLE)
}

/// Runs near the estimated limit: some in any case, more while the stated time allows.
fn focus_near_limit(view: &CurveView<'_>) -> Option<Wish> {
    let is_later =
        |seen: &SeenPoint<'_>| matches!(seen.purpose, Purpose::Confirm | Purpose::Sustain);
    let high = view.lowest_missed()?;
    let low = view.highest_kept()?;
    if view.seen.iter().any(is_later) || is_client_limited(view) {
        return None;
    }
    let done = view.points_for(Purpose::Focus).count();
    let [least, _, most] = view.pace.focus_runs;
    let level = estimated_limit(view).map_or((low * high).sqrt(), |crossing| crossing.level);
    let level = level * AROUND.get(done % AROUND.len()).copied().unwrap_or(1.0);
    // Coarse probes see too little of slow queues: the limit may lie well below their bracket.
    let wish = view.wish_at(Purpose::Focus, level.clamp(0.5 * low.min(high), 1.05 * high.max(low)));
    let whole = view
        .points_for(Purpose::Focus)
        .filter(|seen| seen.figures.ended_by != Some(EndedBy::Hopeless));
    let has_time = || estimate::has_time(view, wish);
    let is_wanted = whole.count() < least && done < 2 * least + 2;
    (is_wanted || (done < most && has_time())).then_some(wish)
}

/// Whether the upper end is this client's.
pub(super) fn is_client_limited(view: &CurveView<'_>) -> bool {
    view.client_limit()
        .is_some_and(|limit| view.lowest_missed().is_some_and(|high| is_same_level(high, limit)))
}

/// The estimated limit, below whatever is a wall.
pub(super) fn estimated_limit(view: &CurveView<'_>) -> Option<Crossing> {
    let crossing = fit::lowest_crossing(view)?;
    let kept = highest_kept(view);
    Some(match lowest_wall(view).filter(|wall| *wall < crossing.level) {
        // The curve says nothing about it: it lies between what was kept and the wall.
        Some(wall) if kept > 0.0 => {
            let error = ((wall / kept).ln().abs() / 2.0).clamp(1e-3, 0.1);
            Crossing { level: wall, error }
        }
        Some(wall) => Crossing { level: wall, ..crossing },
        None => crossing,
    })
}

fn highest_kept(view: &CurveView<'_>) -> f64 {
    let kept = view.seen.iter().filter(|seen| !seen.is_over()).map(|seen| seen.level);
    kept.fold(0.0, f64::max)
}

/// The lowest level that the limit lies below, whatever a curve says. A probe that was stopped bounds
/// nothing: it stopped because of the little that it had seen.
pub(super) fn lowest_wall(view: &CurveView<'_>) -> Option<f64> {
    // Near the limit a queue may grow by chance: a wall is one where nothing beyond it was kept.
    let kept = highest_kept(view);
    let is_seen = |seen: &&SeenPoint<'_>| seen.is_wall() && (seen.is_whole() || !seen.is_coarse());
    let walls = view.seen.iter().filter(is_seen).map(|seen| seen.level);
    walls.filter(|wall| *wall > kept).chain(view.shadow).min_by(f64::total_cmp)
}

/// The level to confirm by what is known now.
fn level_to_confirm(view: &CurveView<'_>) -> Option<f64> {
    let (low, high) = (view.highest_kept(), view.lowest_missed());
    let (Some(low), Some(_)) = (low, high) else {
        // Nothing that is allowed is too much; or nothing is kept.
        return low;
    };
    if is_client_limited(view) {
        return Some(low);
    }
    let Some(limit) = estimated_limit(view) else { return Some(low) };
    let by_error = (view.pace.errors * limit.error).clamp(view.pace.margin, MOST_MARGIN);
    let margin = by_error.max(queue_correction(view).min(MOST_MARGIN));
    Some(limit.level * (1.0 - margin))
}

/// By how much runs near the limit see too little of the queue: it grows over several answers.
fn queue_correction(view: &CurveView<'_>) -> f64 {
    let kind = |seen: &SeenPoint<'_>| e2e_s(seen.figures).0 / seen.figures.window_s.max(1e-3);
    let near = view.points_for(Purpose::Focus).map(kind).max_by(f64::total_cmp);
    view.pace.kindness * near.unwrap_or(0.0)
}

/// The levels that confirmation was tried at, in order.
pub(super) fn tried_levels(view: &CurveView<'_>) -> Vec<f64> {
    let mut levels: Vec<f64> = view.points_for(Purpose::Confirm).map(|seen| seen.level).collect();
    levels.dedup_by(|a, b| is_same_level(*a, *b));
    levels
}

/// Independent runs at the answer: all of them must keep the SLO.
fn confirming_run(view: &CurveView<'_>) -> Option<Wish> {
    let tried = tried_levels(view);
    let Some(&level) = tried.last() else {
        return level_to_confirm(view).map(|level| view.wish_at(Purpose::Confirm, level));
    };
    if has_failed_confirmation(view, level) {
        let [first, later] = view.pace.steps;
        let (most, least) = if tried.len() > 4 { later } else { first };
        // A plain miss lies far from the limit: small steps would not get there.
        let is_plain = runs_at(view, Purpose::Confirm, level).any(|s| s.is_over() && s.is_clear);
        let most = if is_plain { PLAIN_STEP } else { most };
        let next = level_to_confirm(view).unwrap_or(level).clamp(most * level, least * level);
        let next = next.min(level - smallest_step(view));
        let next = view.clamp_level(next);
        let is_lower = next < level * 0.999;
        return (is_lower && tried.len() < TRIES).then(|| view.wish_at(Purpose::Confirm, next));
    }
    let runs = runs_at(view, Purpose::Confirm, level).count();
    (runs < view.pace.confirms).then(|| view.wish_at(Purpose::Confirm, level))
}

pub(super) fn runs_at<'b, 'a>(
    view: &'b CurveView<'a>,
    purpose: Purpose,
    level: f64,
) -> impl Iterator<Item = &'b SeenPoint<'a>> {
    view.points_for(purpose).filter(move |seen| is_same_level(seen.level, level))
}

/// Whether a confirming run at this level missed, or the long run for more than bad luck.
fn has_failed_confirmation(view: &CurveView<'_>, level: f64) -> bool {
    let missed = |purpose| runs_at(view, purpose, level).filter(|seen| seen.is_over()).count();
    let is_wall = runs_at(view, Purpose::Sustain, level).any(SeenPoint::is_wall);
    missed(Purpose::Confirm) > 0 || is_wall || missed(Purpose::Sustain) > 1
}

/// The level that all confirming runs kept.
pub(super) fn confirmed_level(view: &CurveView<'_>) -> Option<f64> {
    let level = *tried_levels(view).last()?;
    let runs = runs_at(view, Purpose::Confirm, level).count();
    (runs >= view.pace.confirms && !has_failed_confirmation(view, level)).then_some(level)
}

/// The long run.
fn sustained_run(view: &CurveView<'_>) -> Option<Wish> {
    let level = confirmed_level(view)?;
    let is_wanted = view.pace.sustained_s(view.plan) > 0.0
        && runs_at(view, Purpose::Sustain, level).all(SeenPoint::is_over);
    is_wanted.then(|| view.wish_at(Purpose::Sustain, level))
}

/// The anchor once more: is it still the same server?
fn closing_anchor(view: &CurveView<'_>) -> Option<Wish> {
    let anchor = grid::anchor_level(view)?;
    let first = view.points.iter().position(|point| is_same_level(point.ask.level.value(), anchor));
    let is_last = view.points.last().is_some_and(|point| point.ask.purpose == Purpose::Anchor);
    // Where that is all that was measured there is nothing to compare.
    let is_wanted = view.points.len() > first? + 3 && !is_last && grid::is_long_enough(view);
    is_wanted.then(|| view.wish_at(Purpose::Anchor, anchor))
}
