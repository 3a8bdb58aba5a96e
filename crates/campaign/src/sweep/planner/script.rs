//! Servers that follow a script, for tests.

use goodput_model::{EndedBy, StopEarly};
use goodput_stats::SloState;

use crate::sweep::{
    Bounded, Figures, Level, Point, PointAsk, PointSpread, Purpose, SweepPlan, SweepStep,
    TermFigure, next_sweep_step,
};

/// The term of every plan here.
const TERM: &str = "p99 ttft < 500ms";

/// A standard search over rates for p99 TTFT below 500 ms.
pub(crate) fn plan() -> SweepPlan {
    SweepPlan { seed: 7, slo: Some(TERM.parse().unwrap()), ..SweepPlan::default() }
}

fn exactly(value: f64) -> Bounded {
    Bounded { value, low: Some(value), high: Some(value) }
}

fn is_kept(share: f64) -> bool {
    share <= 0.01 + 1e-9
}

fn state(share: f64) -> SloState {
    if is_kept(share) { SloState::Met } else { SloState::Missed }
}

/// Figures of 10,000 requests at a rate, of which this share misses the limit. E2E is 2 s.
pub(crate) fn figures(rate: f64, share: f64) -> Figures {
    let spread = |p50: f64| PointSpread {
        p50: Some(exactly(p50)),
        p90: Some(exactly(2.0 * p50)),
        p99: Some(exactly(4.0 * p50)),
        mean: Some(p50),
    };
    let attainment = Some(exactly(1.0 - share));
    Figures {
        is_complete: true,
        ended_by: Some(EndedBy::Plan),
        window_s: 60.0,
        requests: 10_000,
        ok: 10_000,
        offered_rps: Some(rate),
        scheduled_rps: Some(rate),
        requests_per_s: Some(rate),
        output_tps: Some(100.0 * rate),
        total_tps: None,
        in_flight: Some(2.0 * rate),
        ttft_ms: spread(100.0),
        tpot_ms: spread(20.0),
        e2e_ms: spread(2000.0),
        user_tps: spread(50.0),
        input_tokens: Some(100.0),
        output_tokens: Some(100.0),
        over_saturated: Some(false),
        queue_limited: Some(false),
        balance: Some(1.0),
        is_steady: Some(true),
        attainment,
        n_eff: Some(10_000.0),
        goodput_rps: Some(exactly(rate)),
        terms: vec![TermFigure {
            term: TERM.to_owned(),
            kind: "percentile".to_owned(),
            limit: 500.0,
            value: Some(exactly(if is_kept(share) { 400.0 } else { 600.0 })),
            attainment,
            state: Some(state(share)),
            kept: Some(is_kept(share)),
            target_state: None,
            target_kept: None,
        }],
        slo_state: Some(state(share)),
        ..Figures::default()
    }
}

/// A server that misses 1 % at this load, twice as much 3 % above it, and is lost 20 % above it.
pub(crate) fn server(capacity: f64) -> impl Fn(&PointAsk) -> Figures {
    move |ask| {
        let level = ask.level.value();
        if ask.purpose == Purpose::WarmUp {
            return figures(8.0, 0.0);
        }
        let share = (0.01 * (level / capacity).powf(23.0)).min(1.0);
        let mut found = figures(level, share);
        found.over_saturated = Some(level > 1.2 * capacity);
        if level > 1.2 * capacity && ask.stops == Some(StopEarly::Decided) {
            found.ended_by = Some(EndedBy::Hopeless);
            found.requests_per_s = Some(1.1 * capacity);
        }
        found
    }
}

/// Everything that is asked of a server, to the end.
pub(crate) fn sweep(plan: &SweepPlan, mut server: impl FnMut(&PointAsk) -> Figures) -> Vec<Point> {
    let mut points = Vec::new();
    while let SweepStep::Measure(ask) = next_sweep_step(plan, &points) {
        points.push(Point { ask, figures: server(&ask) });
        assert!(points.len() < 300, "it does not end");
    }
    points
}

/// Purpose and level of each.
pub(crate) fn asked(points: &[Point]) -> Vec<(Purpose, f64)> {
    points.iter().map(|point| (point.ask.purpose, point.ask.level.value())).collect()
}

/// Levels of one purpose.
pub(crate) fn levels(points: &[Point], purpose: Purpose) -> Vec<f64> {
    let of = |point: &&Point| point.ask.purpose == purpose;
    points.iter().filter(of).map(|point| point.ask.level.value()).collect()
}

/// A point by hand.
pub(crate) fn point(number: u32, purpose: Purpose, level: f64, figures: Figures) -> Point {
    let ask = PointAsk {
        number,
        purpose,
        level: Level::Rate(level),
        burn_in_s: 1.0,
        seconds: 60.0,
        requests: None,
        seed: 0,
        stops: Some(StopEarly::Hopeless),
    };
    Point { ask, figures }
}
