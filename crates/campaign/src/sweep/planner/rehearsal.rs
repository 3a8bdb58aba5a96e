//! A sweep before it: what it will measure, as far as that does not depend on the server.

use goodput_model::EndedBy;
use goodput_stats::SloState;

use super::{SweepStep, estimate_time, next_sweep_step};
use crate::sweep::{
    Bounded, Figures, Level, Point, PointAsk, PointSpread, Purpose, SweepPlan, TimeEstimate,
};

/// What an answer takes where nothing is known, in milliseconds: the mean, and the 99th percentile.
const ANSWER_MS: [f64; 2] = [1_000.0, 4_000.0];

/// Points at most: a plan may have a thousand levels.
const MOST: usize = 2_000;

/// What a sweep will do on a server that keeps up with every given level and answers in a second.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepRehearsal {
    /// The warm-up and the given levels, in the order of their points. What a search measures
    /// depends on the server, and is left out.
    pub points: Vec<PointAsk>,
    /// How long all of it takes there, the search too; none if that cannot be told.
    pub estimate: Option<TimeEstimate>,
}

/// Goes through a plan without a server.
pub fn rehearse_sweep(plan: &SweepPlan) -> SweepRehearsal {
    let mut done: Vec<Point> = Vec::new();
    let mut time = None;
    while let SweepStep::Measure(ask) = next_sweep_step(plan, &done) {
        let is_given = matches!(
            ask.purpose,
            Purpose::WarmUp | Purpose::Grid | Purpose::Anchor | Purpose::Twin
        );
        if !is_given || done.len() >= MOST {
            break;
        }
        done.push(Point { ask, figures: figures_that_keep_up(&ask) });
        // As a sweep states it: after its warm-up.
        time = time.or_else(|| estimate_time(plan, &done, None));
    }
    SweepRehearsal { points: done.into_iter().map(|point| point.ask).collect(), estimate: time }
}

/// The figures of a server that keeps up.
fn figures_that_keep_up(ask: &PointAsk) -> Figures {
    let exactly = |value: f64| Bounded { value, low: Some(value), high: Some(value) };
    let [mean, p99] = ANSWER_MS;
    let answer = PointSpread {
        p50: Some(exactly(mean)),
        p90: Some(exactly(mean)),
        p99: Some(exactly(p99)),
        mean: Some(mean),
    };
    let rate = match ask.level {
        Level::Rate(rate) => rate,
        Level::Users(users) => f64::from(users) / (mean / 1e3),
    };
    let requests = (rate * ask.seconds).clamp(1.0, 1e9) as u64;
    Figures {
        is_complete: true,
        ended_by: Some(EndedBy::Plan),
        window_s: ask.seconds,
        requests,
        ok: requests,
        offered_rps: Some(rate).filter(|_| matches!(ask.level, Level::Rate(_))),
        requests_per_s: Some(rate),
        in_flight: Some(rate * mean / 1e3),
        ttft_ms: answer,
        e2e_ms: answer,
        over_saturated: Some(false),
        queue_limited: Some(false),
        balance: Some(1.0),
        is_steady: Some(true),
        attainment: Some(exactly(1.0)),
        n_eff: Some(requests as f64),
        slo_state: Some(SloState::Met),
        is_target_kept: Some(true),
        ..Figures::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(plan: &SweepPlan) -> Vec<(Purpose, f64)> {
        let points = rehearse_sweep(plan).points.into_iter();
        points.map(|ask| (ask.purpose, ask.level.value())).collect()
    }

    #[test]
    fn given_levels_are_in_the_order_of_the_sweep() {
        let plan = SweepPlan {
            levels: vec![10.0, 20.0, 30.0, 40.0],
            search: false,
            point_s: Some(60.0),
            burn_in_s: Some(5.0),
            ..SweepPlan::default()
        };
        let grid = [10.0, 30.0, 40.0, 20.0].map(|level| (Purpose::Grid, level));
        let found = levels(&plan);
        assert_eq!(found[0], (Purpose::WarmUp, 16.0));
        assert_eq!(found[1..5], grid);
        assert_eq!((found.len(), found[5].0), (6, Purpose::Anchor));
        // Five points of 65 s, with drains and pauses.
        let estimate = rehearse_sweep(&plan).estimate.unwrap();
        assert!(estimate.points >= 5, "{estimate:?}");
        assert!((325.0..=500.0).contains(&estimate.seconds), "{estimate:?}");
    }

    #[test]
    fn a_search_is_not_foreseen_beyond_its_given_levels() {
        let plan =
            SweepPlan { slo: Some("p99 ttft < 500ms".parse().unwrap()), ..SweepPlan::default() };
        assert_eq!(levels(&plan), [(Purpose::WarmUp, 16.0)]);
        assert!(rehearse_sweep(&plan).estimate.unwrap().seconds > 600.0);
    }
}
