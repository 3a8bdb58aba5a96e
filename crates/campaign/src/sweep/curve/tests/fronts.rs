//! Fronts by tails, where TTFT bends, and the knee of closed loops.

use super::super::{FrontLatency, fit_curve};
use super::{bounded, open, with};
use crate::sweep::{Level, PointSummary};

fn tails(rate: f64, ttft: f64, tpot: f64) -> PointSummary {
    with(open(rate, 1.0), |point| {
        let figures = &mut point.point.figures;
        figures.ttft_ms.p50 = Some(bounded(10.0));
        figures.ttft_ms.p99 = Some(bounded(ttft));
        figures.tpot_ms.p50 = Some(bounded(5.0));
        figures.tpot_ms.p99 = Some(bounded(tpot));
    })
}

#[test]
fn fronts_by_the_tail_of_each_latency() {
    // The second has the longest TTFT tail of all, the third the longest TPOT tail.
    let points = [tails(10.0, 50.0, 20.0), tails(20.0, 400.0, 30.0), tails(30.0, 90.0, 80.0)];
    let found = fit_curve(&points);
    assert_eq!(found.fronts[&FrontLatency::TtftP99], [0, 2]);
    assert_eq!(found.fronts[&FrontLatency::TpotP99], [0, 1, 2]);
    // The medians are alike: the most throughput beats all others.
    assert_eq!((found.front, &found.pareto), (FrontLatency::TpotP50, &vec![2]));
    let chosen = found.with_front(FrontLatency::TtftP99);
    assert_eq!((chosen.front, chosen.pareto), (FrontLatency::TtftP99, vec![0, 2]));
}

/// A load that is not delivered is on no front, however short the point was.
#[test]
fn overloaded_points_are_on_no_front() {
    let short = with(tails(50.0, 20.0, 2.0), |point| {
        let figures = &mut point.point.figures;
        (figures.over_saturated, figures.balance) = (None, Some(0.78));
        (figures.output_tps, figures.in_flight) = (Some(3900.0), Some(30.0));
    });
    let points = [tails(10.0, 50.0, 20.0), tails(30.0, 90.0, 80.0), short];
    let found = fit_curve(&points);
    assert_eq!(found.knee.unwrap().level, 30.0);
    for (latency, front) in &found.fronts {
        assert!(!front.contains(&2), "{latency:?}");
    }
}

#[test]
fn ttft_bends_where_it_leaves_its_flat_part() {
    let bend = |ttfts: &[f64]| {
        let point = |(rate, ttft): (u32, &f64)| {
            with(open(f64::from(rate) * 10.0, 1.0), |point| {
                point.point.figures.ttft_ms.p50 = Some(bounded(*ttft));
            })
        };
        let points: Vec<PointSummary> = (1..).zip(ttfts).map(point).collect();
        fit_curve(&points).ttft_bend
    };
    assert_eq!(bend(&[20.0, 21.0, 22.0, 23.0, 24.0, 300.0, 900.0]), Some(50.0));
    assert_eq!(bend(&[20.0, 40.0, 60.0, 80.0, 100.0, 120.0]), None, "a line has no bend");
    assert_eq!(bend(&[20.0, 21.0, 300.0, 900.0]), None, "four levels have no shape");
    // A dip by chance is not faster.
    assert_eq!(bend(&[20.0, 21.0, 20.5, 22.0, 24.0, 300.0, 900.0]), Some(50.0));
}

#[test]
fn closed_loops_have_a_knee_where_more_users_give_little_more() {
    let knee = |rates: &[f64]| {
        let point = |(number, rate): (u32, &f64)| {
            with(open(*rate, 1.0), |point| {
                let figures = &mut point.point.figures;
                (figures.offered_rps, figures.scheduled_rps) = (None, None);
                point.point.ask.level = Level::Users(1 << number);
            })
        };
        let points: Vec<PointSummary> = (0..).zip(rates).map(point).collect();
        fit_curve(&points).users_knee
    };
    // 95 of 100 with 8 users; 94 with 4 is too little.
    assert_eq!(knee(&[30.0, 60.0, 94.0, 95.0, 100.0]), Some(8.0));
    assert_eq!(knee(&[30.0, 60.0, 120.0, 240.0]), None, "it still rises");
    assert_eq!(knee(&[]), None);
}
