//! What to measure next.
//!
//! Everything here is a function of the plan and the points so far. The steps: a warm-up that tells
//! how fast the server is; the levels that were asked for, or a bracket; bisection; runs near the
//! estimated limit; independent runs at the answer; the long run; an anchor to see whether the server
//! is still the same. `docs/design/015-goodput-search.md` says why it is so, and how good it is.

mod answer;
mod belief;
mod disturbance;
mod effort;
mod estimate;
mod findings;
mod fit;
mod grid;
mod kept;
mod rehearsal;
mod search;
mod view;

#[cfg(test)]
pub(crate) mod script;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use goodput_model::StopEarly;

use super::{Level, Point, PointAsk, Purpose, SweepPlan, Unclear};
use view::CurveView;

pub use answer::answer;
pub use estimate::{estimate_time, next_step_s};
pub use findings::sweep_caveats;
pub use kept::{KeptLoad, KeptSupport, kept_loads, weighted_mean};
pub use rehearsal::{SweepRehearsal, rehearse_sweep};

/// Most points of a search, without the requested levels and twins.
const MOST_POINTS: usize = 48;
/// A point that said nothing is asked for again so often.
const AGAIN: usize = 2;

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SweepStep {
    /// Measure this.
    Measure(PointAsk),
    /// Everything is known that should be.
    Done,
}

/// How long a sweep takes from here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimeEstimate {
    /// Seconds in total, including drains and pauses.
    pub seconds: f64,
    /// Seconds that it may take if points are spoiled as often as before; none where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_seconds: Option<f64>,
    /// Points to measure.
    pub points: u32,
    /// Its parts in words, each with its seconds.
    pub parts: Vec<(String, f64)>,
}

/// A level and why.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wish {
    purpose: Purpose,
    level: Level,
}

/// What to measure next, given what has been measured: a function of its arguments alone.
pub fn next_sweep_step(plan: &SweepPlan, points: &[Point]) -> SweepStep {
    let view = CurveView::new(plan, points);
    match next_wish(&view) {
        Some(wish) => SweepStep::Measure(point_ask(&view, wish)),
        None => SweepStep::Done,
    }
}

fn next_wish(view: &CurveView<'_>) -> Option<Wish> {
    let (plan, points) = (view.plan, view.points);
    let twins = points.iter().filter(|point| point.ask.purpose == Purpose::Twin).count();
    let levels = plan.levels.len().min(1000);
    if points.len() >= MOST_POINTS + 2 * levels + twins {
        return None;
    }
    if let Some(last) = points.last()
        && view.must_repeat(last)
    {
        // The server was unreachable, or the run was stopped: the same point again.
        let wish = Wish { purpose: last.ask.purpose, level: last.ask.level };
        return (view.unclear_in_a_row() <= AGAIN).then_some(wish);
    }
    if let Some(last) = points.last()
        && (1..=view.allowed_repeats()).contains(&view.spoiled_in_a_row())
    {
        return Some(Wish { purpose: last.ask.purpose, level: last.ask.level });
    }
    if view.warm.is_none() {
        let level = Level::Users(effort::WARM_UP_USERS);
        return points.is_empty().then_some(Wish { purpose: Purpose::WarmUp, level });
    }
    closed_loop_twin(view)
        .or_else(|| grid::next_grid_level(view))
        .or_else(|| search::next_search_wish(view))
}

/// The closed-loop twin of the last point.
fn closed_loop_twin(view: &CurveView<'_>) -> Option<Wish> {
    let last = view.points.last().filter(|_| view.plan.twins)?;
    let has_twin = matches!(
        last.ask.purpose,
        Purpose::Grid | Purpose::Bracket | Purpose::Bisect | Purpose::Confirm
    );
    let is_open = matches!(last.ask.level, Level::Rate(_));
    let users = last.figures.in_flight.filter(|users| users.is_finite() && *users >= 0.5)?;
    let level = Level::Users(users.round().clamp(1.0, 10_000.0) as u32);
    (has_twin && is_open).then_some(Wish { purpose: Purpose::Twin, level })
}

fn point_ask(view: &CurveView<'_>, wish: Wish) -> PointAsk {
    // Not by counting: a point that is missing must not cost another its place.
    let last = view.points.iter().map(|point| point.ask.number).max().unwrap_or(0);
    let number = last.saturating_add(1);
    let pace = view.pace;
    let is_warm_up = wish.purpose == Purpose::WarmUp;
    PointAsk {
        number,
        purpose: wish.purpose,
        level: wish.level,
        burn_in_s: if is_warm_up { 0.0 } else { view.burn_in_s(wish.level) },
        seconds: if is_warm_up { pace.warm_up_s } else { view.measured_s(wish) },
        requests: is_warm_up.then_some(effort::WARM_UP_REQUESTS),
        seed: point_seed(view.plan.seed, number),
        stops: match wish.purpose {
            // It was given up too early there: this time to its end.
            _ if view.was_given_up(wish) => None,
            Purpose::Bracket | Purpose::Bisect => Some(StopEarly::Decided),
            _ => Some(StopEarly::Hopeless),
        },
    }
}

/// A seed of its own for each point, far from those of sweeps with a seed nearby.
fn point_seed(seed: u64, number: u32) -> u64 {
    let mut z = seed ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    // Readers of JSON keep 53 bits.
    (z ^ (z >> 31)) >> 11
}

/// Whether a point that says nothing does so for a reason that may pass.
fn may_be_transient(unclear: &Unclear) -> bool {
    matches!(unclear, Unclear::ServerGone | Unclear::Interrupted | Unclear::Nothing)
}
