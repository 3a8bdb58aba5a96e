//! How long it takes. What is stated after the warm-up is a function of plan and warm-up alone; the
//! runs near the limit that are not needed in any case use up what the rest has left of it. What is
//! left later follows from the state of the search.

use goodput_model::EndedBy;

use super::super::{Axis, Level, Point, PointAsk, Purpose, SweepPlan};
use super::view::{CurveView, SeenPoint, e2e_s};
use super::{SweepStep, TimeEstimate, Wish, effort, grid, next_sweep_step, search};

/// Points of a bracket, as a rule.
const BRACKET: f64 = 4.0;
/// What coarse probes leave of their time when they end early, as a rule.
const EARLY: f64 = 0.75;
/// The limit usually lies at this many times the rate of the warm-up.
const RISE: f64 = 2.5;
/// Answers take longer under load, as a rule.
const SLOWER: f64 = 1.2;
/// The last answers of a point usually take this many times p99.
const DRAIN: f64 = 1.2;
/// A second of figures takes no more than this by the clock, whatever went on.
const SLOWEST_PACE: f64 = 3.0;

/// A part: in words, its points, and its seconds.
type Part = (&'static str, f64, f64);

/// How long it takes from here, where what was measured has taken so many seconds by the clock; none
/// before the warm-up has told how fast the server is.
pub fn estimate_time(
    plan: &SweepPlan,
    points: &[Point],
    took_s: Option<f64>,
) -> Option<TimeEstimate> {
    let view = CurveView::new(plan, points);
    view.warm?;
    if next_sweep_step(plan, points) == SweepStep::Done {
        return Some(TimeEstimate {
            seconds: 0.0,
            most_seconds: None,
            points: 0,
            parts: Vec::new(),
        });
    }
    let parts = estimate_parts(&view);
    let stated: f64 = parts.iter().map(|part| part.2).sum();
    let planned: f64 = parts.iter().map(|part| part.1).sum();
    let spent = spent_s(&view);
    let pace = clock_per_measured_s(&view, took_s);
    // What is left of each part, in order: what is done has used up the first ones.
    let mut used = spent;
    let mut left = Vec::new();
    for (name, _, seconds) in &parts {
        let taken = used.min(*seconds);
        used -= taken;
        if *seconds - taken > 0.5 {
            left.push(((*name).to_owned(), (*seconds - taken).round()));
        }
    }
    let done = measured_points(&view).count() as f64;
    // Runs near the limit use up the stated time; after them only what is missing counts.
    let stated_left = if is_confirming(&view) { 0.0 } else { stated - spent };
    let seconds = pace * stated_left.max(bracket_s(&view) + needed_s(&view));
    if left.is_empty() || is_confirming(&view) {
        left = vec![("remaining".to_owned(), seconds.round())];
    }
    let points = (planned - done).max(1.0) as u32;
    let spoiled = view.spoiled_points;
    let again = spoiled.expected().filter(|_| !spoiled.is_lasting());
    let most_seconds = again.map(|share| (seconds / (1.0 - share)).round());
    Some(TimeEstimate { seconds: seconds.round(), most_seconds, points, parts: left })
}

/// What the next point takes, with its drain and its pause.
pub fn next_step_s(plan: &SweepPlan, points: &[Point], ask: &PointAsk) -> f64 {
    point_cost_s(&CurveView::new(plan, points), ask.burn_in_s + ask.seconds)
}

/// Seconds by the clock for each second that figures tell of: connections, pauses, and whatever else
/// goes on between two windows.
fn clock_per_measured_s(view: &CurveView<'_>, took_s: Option<f64>) -> f64 {
    let told = spent_s(view) + view.warm.map_or(0.0, |warm| warm.window_s.max(0.0));
    match took_s {
        Some(took_s) if told > 0.0 && measured_points(view).count() > 0 => {
            (took_s / told).clamp(1.0, SLOWEST_PACE)
        }
        _ => 1.0,
    }
}

/// Whether levels are being confirmed.
fn is_confirming(view: &CurveView<'_>) -> bool {
    view.points_for(Purpose::Confirm).next().is_some()
}

/// What bracket and bisection still need.
fn bracket_s(view: &CurveView<'_>) -> f64 {
    if !(view.plan.search && view.plan.slo.is_some()) || is_confirming(view) {
        return 0.0;
    }
    let ratio = match (view.highest_kept(), view.lowest_missed()) {
        (Some(low), Some(high)) => high / low,
        _ => view.pace.growth * view.pace.growth,
    };
    let has_focus = view.points_for(Purpose::Focus).next().is_some();
    if has_focus {
        0.0
    } else {
        bisections_left(ratio, view.pace.close) * EARLY * typical_point_s(view, Purpose::Bisect)
    }
}

/// Points until two levels of this ratio are as close as asked.
fn bisections_left(ratio: f64, close: f64) -> f64 {
    (ratio.ln() / close.ln()).max(1.0).log2().ceil().clamp(0.0, 12.0)
}

/// Whether this run fits into the stated time, together with what must follow it.
pub(super) fn has_time(view: &CurveView<'_>, wish: Wish) -> bool {
    let stated: f64 = estimate_parts(view).iter().map(|part| part.2).sum();
    let cost = point_cost_s(view, view.burn_in_s(wish.level) + view.measured_s(wish));
    spent_s(view) + cost + needed_s(view) <= 1.03 * stated
}

/// Points after the warm-up.
fn measured_points<'a>(view: &CurveView<'a>) -> impl Iterator<Item = &'a Point> {
    view.points.iter().filter(|point| point.ask.purpose != Purpose::WarmUp)
}

/// Seconds of all points after the warm-up, as far as figures tell.
fn spent_s(view: &CurveView<'_>) -> f64 {
    let of = |point: &Point| {
        let is_given_up = point.figures.ended_by == Some(EndedBy::Hopeless);
        let drain = if is_given_up { 1.0 } else { DRAIN * e2e_s(&point.figures).1 };
        let window = point.figures.window_s;
        let window = if window.is_finite() { window.max(0.0) } else { 0.0 };
        point.ask.burn_in_s + window + drain + settle_s(view)
    };
    measured_points(view).map(of).sum()
}

fn settle_s(view: &CurveView<'_>) -> f64 {
    if view.plan.settle_s.is_finite() { view.plan.settle_s.clamp(0.0, 3_600.0) } else { 0.0 }
}

/// A point with its drain and its pause.
fn point_cost_s(view: &CurveView<'_>, load_s: f64) -> f64 {
    load_s + DRAIN * SLOWER * view.e2e_s().1 + settle_s(view)
}

/// What must still come after the runs near the limit: everything before the first confirming run,
/// then what the level that is tried still lacks.
fn needed_s(view: &CurveView<'_>) -> f64 {
    let tried = search::tried_levels(view);
    let Some(&level) = tried.last() else {
        return estimate_parts(view)
            .iter()
            .skip_while(|part| part.0 != CONFIRM)
            .map(|part| part.2)
            .sum();
    };
    let runs = |purpose| search::runs_at(view, purpose, level);
    let has_missed = runs(Purpose::Confirm).any(SeenPoint::is_over);
    let kept = if has_missed { 0 } else { runs(Purpose::Confirm).count() };
    let missing = view.pace.confirms.saturating_sub(kept) as f64;
    let long = view.pace.sustained_s(view.plan);
    let is_sustained = long <= 0.0 || runs(Purpose::Sustain).any(|seen| !seen.is_over());
    let burn = view.burn_in_s(Level::Users(effort::WARM_UP_USERS));
    let sustain = if is_sustained { 0.0 } else { point_cost_s(view, long + burn) };
    let anchor =
        if grid::is_long_enough(view) { typical_point_s(view, Purpose::Bisect) } else { 0.0 };
    missing * typical_point_s(view, Purpose::Confirm) + sustain + anchor
}

const CONFIRM: &str = "confirmation";

/// A typical point of this purpose.
fn typical_point_s(view: &CurveView<'_>, purpose: Purpose) -> f64 {
    let (mean, p99) = view.e2e_s();
    let rate = RISE * f64::from(effort::WARM_UP_USERS) / mean;
    let burn = view.burn_in_s(Level::Users(effort::WARM_UP_USERS));
    point_cost_s(view, SLOWER.min(1.1) * (burn + view.point_length_s(purpose, rate, p99)))
}

/// What is stated: a function of the plan and of the warm-up.
fn estimate_parts(view: &CurveView<'_>) -> Vec<Part> {
    let (plan, pace) = (view.plan, view.pace);
    let levels = grid::grid_levels(view);
    let is_searched = plan.search && plan.slo.is_some();
    let twins = if plan.twins && plan.axis == Axis::Rate { 2.0 } else { 1.0 };
    let coarse = typical_point_s(view, Purpose::Bisect);
    let mut parts: Vec<Part> = Vec::new();
    let mut ratio = pace.growth;
    if levels.is_empty() {
        parts.push(("bracket", BRACKET * twins, BRACKET * twins * EARLY * coarse));
    } else {
        let has_anchor = levels.len() > 2 && grid::is_long_enough(view);
        let n = levels.len() as f64 + f64::from(u8::from(has_anchor));
        parts.push(("given levels", n * twins, n * twins * coarse));
        let (first, last) = (levels.first(), levels.last());
        let steps = (levels.len().max(2) - 1) as f64;
        ratio = first.zip(last).map_or(ratio, |(first, last)| (last / first).powf(1.0 / steps));
    }
    let close = if is_searched { pace.close } else { 1.1 };
    if is_searched || levels.is_empty() {
        let n = bisections_left(ratio, close);
        parts.push(("bisection", n * twins, n * twins * EARLY * coarse));
    }
    if is_searched {
        let n = pace.focus_runs[1] as f64;
        parts.push(("near the limit", n, n * typical_point_s(view, Purpose::Focus)));
        let n = pace.tries * pace.confirms as f64;
        parts.push((CONFIRM, n * twins, n * twins * typical_point_s(view, Purpose::Confirm)));
        let long = pace.sustained_s(plan);
        if long > 0.0 {
            let burn = view.burn_in_s(Level::Users(effort::WARM_UP_USERS));
            parts.push(("sustained run", 1.0, point_cost_s(view, long + burn)));
        }
    }
    if grid::is_long_enough(view) {
        parts.push(("anchor", 1.0, coarse));
    }
    parts
}
