//! The knee by rule: the highest offered rate of which at least 99 % is delivered, and under which
//! no queue grows.
//!
//! A closed loop has none: it asks for no more than it gets.
//!
//! Completions are compared with the arrivals of the same window, not with the rate that was asked
//! for: the chance of a schedule is not the server's doing. Even so a short window falls short of
//! 99 % by chance, since the number of requests in flight may differ between its end and its start. The
//! difference of two such counts has a standard deviation of √(2N); what lies within three of them
//! is taken for chance where the point was long enough to be judged by its course, or kept the SLO.
//! Where neither is so, the level counts neither way: it is too short to judge, and named so. A point
//! that was given up never counts as delivered.

use goodput_model::EndedBy;

use super::{Knee, by_level, positive_value};
use crate::sweep::{Figures, Miss, Point, PointStanding, PointSummary};

/// The share that must be delivered.
const SHARE: f64 = 0.99;
/// Standard deviations of what comes and goes in a server that keeps up.
const BEYOND: f64 = 3.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Delivered,
    Short,
    CannotTell,
}

/// Completions per arrival of this window; none in a closed loop.
pub fn delivered_share(figures: &Figures) -> Option<f64> {
    positive_value(figures.offered_rps)?;
    let by_rate = || {
        let due = positive_value(figures.scheduled_rps)?;
        figures.requests_per_s.map(|ended| ended / due)
    };
    figures.balance.or_else(by_rate).filter(|share| share.is_finite())
}

/// The knee, and the levels above it, or all where there is none, that are too short to judge.
pub(super) fn find_knee(points: &[&PointSummary]) -> (Option<Knee>, Vec<f64>) {
    let levels: Vec<(f64, Delivery)> = by_level(points)
        .into_iter()
        .map(|(level, points)| (level, judge_delivery(&points)))
        .collect();
    let is = |wanted: Delivery| move |(_, found): &&(f64, Delivery)| *found == wanted;
    let level = levels.iter().rev().find(is(Delivery::Delivered)).map(|(level, _)| *level);
    let above = || levels.iter().filter(|(at, _)| level.is_none_or(|level| *at > level));
    let beyond = above().find(is(Delivery::Short)).map(|(at, _)| *at);
    let too_short = above().filter(is(Delivery::CannotTell)).map(|(at, _)| *at).collect();
    (level.map(|level| Knee { level, beyond }), too_short)
}

/// Whether the server fell behind, or turned requests away, by the verdict on this point.
pub(in crate::sweep) fn has_fallen_behind(point: &PointSummary) -> bool {
    let miss = matches!(
        point.standing,
        PointStanding::Missed(Miss::OverSaturated | Miss::RateLimited | Miss::Errors)
    );
    miss || point.point.figures.over_saturated == Some(true)
}

/// The runs at one level together.
fn judge_delivery(points: &[&PointSummary]) -> Delivery {
    let is_given_up =
        |point: &&PointSummary| point.point.figures.ended_by == Some(EndedBy::Hopeless);
    match delivery_by_counts(points) {
        Delivery::Delivered if points.iter().all(is_given_up) => Delivery::CannotTell,
        found => found,
    }
}

fn delivery_by_counts(points: &[&PointSummary]) -> Delivery {
    let requests = |is_lost: &dyn Fn(&PointSummary) -> bool| -> f64 {
        points.iter().filter(|point| is_lost(point)).map(|p| p.point.figures.requests as f64).sum()
    };
    let all = requests(&|_| true);
    // Runs that disagree: half of the requests are enough to doubt the level.
    if all > 0.0 && 2.0 * requests(&has_fallen_behind) >= all {
        return Delivery::Short;
    }
    let counted: Vec<RequestCount> =
        points.iter().filter_map(|point| RequestCount::from_point(&point.point)).collect();
    if counted.is_empty() {
        return Delivery::CannotTell;
    }
    let sum = |of: fn(&RequestCount) -> f64| counted.iter().map(of).sum::<f64>();
    let (due, short) = (sum(|count| count.due), sum(|count| count.short));
    let failed = sum(|count| count.failed);
    if failed > (1.0 - SHARE) * due {
        return Delivery::Short;
    }
    // Failed requests and those still in flight are both not delivered.
    if short + failed <= (1.0 - SHARE) * due {
        return Delivery::Delivered;
    }
    let chance = BEYOND * sum(|count| count.variance).sqrt() + sum(|count| count.filling);
    if short > (1.0 - SHARE) * due + chance {
        return Delivery::Short;
    }
    let is_judged = |point: &&PointSummary| {
        point.point.figures.over_saturated == Some(false) || point.standing == PointStanding::Met
    };
    if points.iter().any(is_judged) { Delivery::Delivered } else { Delivery::CannotTell }
}

/// Requests of one run.
struct RequestCount {
    /// Scheduled inside the window.
    due: f64,
    /// More due than ended inside it.
    short: f64,
    /// Due inside it, and failed, whenever that was.
    failed: f64,
    /// Variance of `short` where the server keeps up.
    variance: f64,
    /// What `short` is where the window began with an empty server.
    filling: f64,
}

impl RequestCount {
    fn from_point(point: &Point) -> Option<Self> {
        let figures = &point.figures;
        let ended = delivered_share(figures)?;
        let due = positive_value(figures.scheduled_rps.map(|rate| rate * figures.window_s))?;
        let under_way = positive_value(figures.in_flight).unwrap_or(0.0);
        let answer_s = figures.e2e_ms.mean.or(figures.e2e_ms.p50.map(|p50| p50.value));
        let was_filled = answer_s.is_none_or(|ms| point.ask.burn_in_s * 1000.0 >= ms);
        // A point that was given up has cut its own requests off.
        let is_cut = figures.ended_by == Some(EndedBy::Hopeless);
        let failed = if is_cut { 0.0 } else { figures.failed as f64 };
        // Where the share comes from good answers alone, failures are in it already.
        let in_share = if figures.balance.is_some() { 0.0 } else { failed };
        Some(Self {
            due,
            short: (1.0 - ended) * due - in_share,
            failed,
            variance: 2.0 * under_way,
            filling: if was_filled { 0.0 } else { under_way },
        })
    }
}
