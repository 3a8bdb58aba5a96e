//! Curves against independent programs (`tests/oracle/curve.json`, written by `make.py` next to
//! it), and against points whose answer is known by construction.

mod fronts;

use goodput_model::{EndedBy, StopEarly, Verdict};
use proptest::prelude::*;
use serde_json::Value;

use super::isotonic::pool_falling;
use super::kneedle::first_knee as kneedle_of;
use super::*;
use crate::sweep::{
    Axis, Configuration, Effort, Figures, Goodput, GoodputState, Level, Miss, Point, PointAsk,
    PointSpread, SweepFacts, SweepPlan, SweepState, SweepSummary, TimeEstimate,
};

fn fixture() -> Value {
    serde_json::from_str(include_str!("../../../tests/oracle/curve.json")).unwrap()
}

fn rows(key: &str) -> Vec<Value> {
    fixture()[key].as_array().unwrap().clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn pairs(value: &Value) -> Vec<(f64, f64)> {
    value.as_array().unwrap().iter().map(numbers).map(|pair| (pair[0], pair[1])).collect()
}

#[test]
fn kneedle_agrees_with_kneed() {
    for row in rows("knees") {
        assert_eq!(kneedle_of(&pairs(&row["curve"])), row["knee"].as_f64(), "{row}");
    }
}

#[test]
fn usl_agrees_with_scipy() {
    for row in rows("usl") {
        let [n, x, seconds] = ["n", "x", "seconds"].map(|key| numbers(&row[key]));
        let points: Vec<PointSummary> = n
            .iter()
            .zip(&x)
            .zip(&seconds)
            .map(|((n, x), seconds)| {
                with(open(*x, *n), |point| point.point.figures.window_s = *seconds)
            })
            .collect();
        let usl = fit_curve(&points).usl.unwrap();
        let (law, expected) = ([usl.gamma, usl.alpha, usl.beta], numbers(&row["law"]));
        // SciPy ends where its steps are small: some six digits, and never quite on a bound.
        for (found, expected) in law.iter().zip(&expected) {
            assert!((found - expected).abs() <= 2e-4 * expected.abs() + 2e-5, "{law:?} {row}");
        }
        let squares: f64 = points
            .iter()
            .map(|point| &point.point.figures)
            .map(|figures| {
                (figures.in_flight.unwrap(), figures.requests_per_s.unwrap(), figures.window_s)
            })
            .map(|(n, x, seconds)| {
                let below = 1.0 + law[1] * (n - 1.0) + law[2] * n * (n - 1.0);
                seconds / x * (x - law[0] * n / below).powi(2)
            })
            .sum();
        assert!(squares <= row["squares"].as_f64().unwrap() * (1.0 + 1e-9) + 1e-9, "{row}");
    }
}

#[test]
fn isotonic_agrees_with_scikit_learn() {
    for row in rows("falling") {
        let found = pool_falling(&pairs(&row["values"]));
        for (found, expected) in found.iter().zip(numbers(&row["falling"])) {
            assert!((found - expected).abs() < 1e-12, "{row}");
        }
        assert_eq!(found.len(), row["values"].as_array().unwrap().len());
    }
}

/// An open-loop point of 60 s whose server keeps up, with this many in flight.
pub(super) fn open(rate: f64, in_flight: f64) -> PointSummary {
    let figures = Figures {
        is_complete: true,
        ended_by: Some(EndedBy::Plan),
        window_s: 60.0,
        requests: (rate * 60.0) as u64,
        ok: (rate * 60.0) as u64,
        offered_rps: Some(rate),
        scheduled_rps: Some(rate),
        requests_per_s: Some(rate),
        output_tps: Some(rate * 100.0),
        total_tps: Some(rate * 600.0),
        in_flight: Some(in_flight),
        e2e_ms: PointSpread { mean: Some(1000.0), ..PointSpread::default() },
        input_tokens: Some(500.0),
        output_tokens: Some(100.0),
        over_saturated: Some(false),
        queue_limited: Some(false),
        balance: Some(1.0),
        is_steady: Some(true),
        ..Figures::default()
    };
    let ask = PointAsk {
        number: 1,
        purpose: Purpose::Grid,
        level: Level::Rate(rate),
        burn_in_s: 5.0,
        seconds: 60.0,
        requests: None,
        seed: 1,
        stops: Some(StopEarly::Hopeless),
    };
    PointSummary {
        folder: "001".to_owned(),
        point: Point { ask, figures },
        standing: PointStanding::Met,
    }
}

fn with(mut point: PointSummary, change: impl FnOnce(&mut PointSummary)) -> PointSummary {
    change(&mut point);
    point
}

/// A short probe: no verdict on its course, and this share of its arrivals ended inside it.
fn short(rate: f64, in_flight: f64, ended: f64, standing: PointStanding) -> PointSummary {
    with(open(rate, in_flight), |point| {
        let figures = &mut point.point.figures;
        (figures.window_s, figures.requests) = (15.0, (rate * 15.0) as u64);
        figures.ok = figures.requests;
        (figures.over_saturated, figures.balance) = (None, None);
        figures.requests_per_s = Some(rate * ended);
        point.standing = standing;
    })
}

fn saturated(rate: f64) -> PointSummary {
    with(open(rate, 400.0), |point| {
        point.point.figures.over_saturated = Some(true);
        point.point.figures.balance = Some(0.8);
        point.point.figures.requests_per_s = Some(rate * 0.8);
    })
}

#[test]
fn the_knee_is_the_highest_level_that_is_delivered() {
    let points = [open(10.0, 10.0), open(20.0, 25.0), saturated(30.0), saturated(40.0)];
    assert_eq!(fit_curve(&points).knee, Some(Knee { level: 20.0, beyond: Some(30.0) }));
    assert_eq!(fit_curve(&points[..2]).knee, Some(Knee { level: 20.0, beyond: None }));
    assert_eq!(fit_curve(&points[2..]).knee, None);
    assert_eq!(fit_curve(&[]), Curve::default());
}

#[test]
fn what_is_under_way_at_the_end_of_a_short_point_is_not_lost() {
    // 300 scheduled, 282 ended: 18 more in flight than at its start, of 40 on average (3 sd are 26.8).
    let kept = short(20.0, 40.0, 0.94, PointStanding::Met);
    assert_eq!(fit_curve(&[kept]).knee, Some(Knee { level: 20.0, beyond: None }));
    // The same where it is unknown whether the queue grows.
    let missed = PointStanding::Missed(Miss::Term("p99 ttft < 500ms".to_owned()));
    let unclear = [open(10.0, 10.0), short(20.0, 40.0, 0.94, missed.clone())];
    assert_eq!(fit_curve(&unclear).knee, Some(Knee { level: 10.0, beyond: None }));
    // 300 due, 240 ended: 60 more are beyond chance.
    let lost = [open(10.0, 10.0), short(20.0, 40.0, 0.8, missed)];
    assert_eq!(fit_curve(&lost).knee, Some(Knee { level: 10.0, beyond: Some(20.0) }));
    assert_eq!(fit_curve(&unclear).too_short, [20.0]);
    assert_eq!(fit_curve(&lost).too_short, [0.0; 0]);
    // Without burn-in a window begins with an empty server.
    let cold =
        with(short(20.0, 40.0, 0.80, PointStanding::Met), |point| point.point.ask.burn_in_s = 0.0);
    assert_eq!(fit_curve(&[cold]).knee, Some(Knee { level: 20.0, beyond: None }));
}

#[test]
fn a_point_that_was_given_up_is_never_delivered() {
    let given_up = with(open(75.7, 10.0), |point| {
        point.point.figures.ended_by = Some(EndedBy::Hopeless);
        point.standing = PointStanding::Missed(Miss::Term("p99 ttft < 500ms".to_owned()));
    });
    let found = fit_curve(&[open(10.0, 10.0), given_up]);
    assert_eq!(found.knee, Some(Knee { level: 10.0, beyond: None }));
    assert_eq!(found.too_short, [75.7]);
    // A finished one next to it says more.
    let both = fit_curve(&[open(10.0, 10.0), given_up_at(20.0), open(20.0, 25.0)]);
    assert_eq!(both.knee.map(|knee| knee.level), Some(20.0));
}

fn given_up_at(rate: f64) -> PointSummary {
    with(open(rate, 25.0), |point| point.point.figures.ended_by = Some(EndedBy::Hopeless))
}

#[test]
fn requests_that_fail_are_not_delivered() {
    let refused = with(open(30.0, 30.0), |point| {
        let figures = &mut point.point.figures;
        (figures.ok, figures.failed) = (1780, 20);
        figures.requests_per_s = Some(1780.0 / 60.0);
    });
    let points = [open(10.0, 10.0), refused];
    assert_eq!(fit_curve(&points).knee, Some(Knee { level: 10.0, beyond: Some(30.0) }));
}

#[test]
fn a_closed_loop_has_no_knee_by_rule() {
    let users = |n: u32| {
        with(open(10.0, f64::from(n)), |point| {
            point.point.ask.level = Level::Users(n);
            point.point.figures.offered_rps = None;
            point.point.figures.balance = None;
        })
    };
    assert_eq!(fit_curve(&[users(1), users(2), users(4)]).knee, None);
}

#[test]
fn warm_up_twins_and_spoiled_points_are_left_out() {
    let purposes = [Purpose::WarmUp, Purpose::Twin]
        .map(|purpose| with(open(50.0, 10.0), |point| point.point.ask.purpose = purpose));
    for point in purposes {
        assert!(!is_on_curve(&point));
    }
    for unclear in
        [Unclear::Client, Unclear::ServerGone, Unclear::Interrupted, Unclear::GivenUpTooEarly]
    {
        assert!(!is_on_curve(
            &with(open(1.0, 1.0), |p| p.standing = PointStanding::Unclear(unclear))
        ));
    }
    let void = with(open(1.0, 1.0), |point| point.point.figures.verdict = Verdict::Void);
    assert!(!is_on_curve(&void));
    // Without an SLO every point is unclear, and still has its place.
    let nothing = |p: &mut PointSummary| p.standing = PointStanding::Unclear(Unclear::Nothing);
    assert!(is_on_curve(&with(open(1.0, 1.0), nothing)));
}

#[test]
fn shapes_of_a_law_that_is_known() {
    // X(N) with a peak at √(0.95/0.001) = 30.8.
    let point = |n: f64| {
        let x = 2.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.001 * n * (n - 1.0));
        with(open(x, n), |point| point.point.ask.level = Level::Users(n as u32))
    };
    let points: Vec<PointSummary> = [1., 2., 4., 8., 16., 32., 64.].map(point).into();
    let usl = fit_curve(&points).usl.unwrap();
    let peak = usl.peak.unwrap();
    assert!((peak.value - (0.95f64 / 0.001).sqrt()).abs() < 1e-3, "{usl:?}");
    assert!(peak.low.unwrap() <= peak.value && peak.value <= peak.high.unwrap(), "{usl:?}");
    assert_eq!((usl.points, usl.r2 > 0.999_999), (7, true), "{usl:?}");
    assert_eq!(fit_curve(&points[..5]).usl, None);
    let kneedle = fit_curve(&points).kneedle.unwrap();
    assert_eq!((kneedle.level.value, kneedle.points), (16.0, 7));
    assert_eq!(fit_curve(&points[..4]).kneedle, None);
    assert_eq!(fit_curve(&points), fit_curve(&points), "the same again");
}

#[test]
fn a_server_that_does_not_slow_down_has_no_peak() {
    let points: Vec<PointSummary> =
        (1..9).map(|n| open(f64::from(n), 4.0 * f64::from(n))).collect();
    let usl = fit_curve(&points).usl.unwrap();
    assert!((usl.gamma - 0.25).abs() < 1e-9 && usl.peak.is_none(), "{usl:?}");
    // A peak at 3,162 that 8 in flight say nothing about.
    let far = |n: u32| {
        let n = f64::from(n);
        open(n / (1.0 + 1e-7 * n * (n - 1.0)), n)
    };
    let usl = fit_curve(&(1..9).map(far).collect::<Vec<_>>()).usl.unwrap();
    assert!((usl.beta / 1e-7 - 1.0).abs() < 0.01 && usl.peak.is_none(), "{usl:?}");
}

#[test]
fn intervals_come_of_points_drawn_again() {
    let points: Vec<PointSummary> = (0..40).map(|n| open(f64::from(n), 1.0)).collect();
    let points: Vec<&PointSummary> = points.iter().collect();
    let mean = |points: &[&PointSummary]| {
        Some(points.iter().map(|point| level_value(point)).sum::<f64>() / points.len() as f64)
    };
    let found = bootstrap::bootstrap_interval(&points, 19.5, mean);
    // A mean of 40 draws from 0 to 39 has a standard deviation of √((40² − 1)/12/40) = 1.825; 400
    // draws know the ends of their middle 95 % to about a tenth of it.
    let (low, high) = (found.low.unwrap(), found.high.unwrap());
    assert!((low - (19.5 - 1.96 * 1.825)).abs() < 0.5, "{found:?}");
    assert!((high - (19.5 + 1.96 * 1.825)).abs() < 0.5, "{found:?}");
    // A shape that few draws have carries no interval; an end at infinity is not known.
    assert_eq!(bootstrap::bootstrap_interval(&points, 1.0, |_| None), bounded(1.0));
    assert_eq!(bootstrap::bootstrap_interval(&points, 1.0, |_| Some(f64::INFINITY)), bounded(1.0));
}

#[test]
fn repeats_of_one_level_are_one_level() {
    let points: Vec<PointSummary> = (0..8).map(|i| open(10.0, 10.0 + f64::from(i))).collect();
    assert_eq!((fit_curve(&points).usl, fit_curve(&points).kneedle), (None, None));
}

fn bounded(value: f64) -> Bounded {
    Bounded { value, low: None, high: None }
}

#[test]
fn attainment_falls_and_weighs_by_independent_requests() {
    let point = |rate: f64, share: f64, n_eff: f64| {
        with(open(rate, 1.0), |point| {
            point.point.figures.attainment = Some(bounded(share));
            point.point.figures.n_eff = Some(n_eff);
        })
    };
    // Out of order; 20 and 30 violate and are pooled 1 : 3.
    let points = [point(30.0, 0.98, 300.0), point(10.0, 1.0, 50.0), point(20.0, 0.94, 100.0)];
    let found = fit_curve(&points).attainment;
    assert_eq!(found.iter().map(|at| at.0).collect::<Vec<_>>(), [10.0, 20.0, 30.0]);
    assert_eq!(found[0].1, 1.0);
    assert!((found[1].1 - 0.97).abs() < 1e-12 && found[1].1 == found[2].1, "{found:?}");
}

#[test]
fn the_front_and_the_peak() {
    let point = |rate: f64, tpot: f64, goodput: f64| {
        with(open(rate, 1.0), |point| {
            point.point.figures.tpot_ms.p50 = Some(bounded(tpot));
            point.point.figures.goodput_rps = Some(bounded(goodput));
        })
    };
    let lost =
        with(point(50.0, 60.0, 2.0), |p| p.standing = PointStanding::Missed(Miss::OverSaturated));
    // The second is beaten by the third in both.
    let points = [point(10.0, 20.0, 9.0), point(20.0, 40.0, 19.0), point(25.0, 35.0, 15.0), lost];
    let found = fit_curve(&points);
    assert_eq!((found.pareto, found.peak), (vec![0, 2], Some(1)));
}

fn answered(name: &str, confirmed: f64, rejected: Option<f64>) -> Configuration {
    let goodput = Goodput {
        state: if rejected.is_some() { GoodputState::Found } else { GoodputState::AtLeast },
        because: String::new(),
        slo: "ttft < 500ms".to_owned(),
        axis: Axis::Rate,
        confirmed: Some(confirmed),
        rejected,
        confirmed_rps: Some(confirmed),
        rejected_rps: rejected,
        measured: None,
        measured_rps: None,
        attainment: None,
        seen_attainment: None,
        attainment_low: None,
        attainment_high: None,
        crossing: None,
        runs: 2,
        requests: 3000,
        over_claim_risk: Some(0.05),
    };
    let plan = SweepPlan {
        axis: Axis::Rate,
        levels: Vec::new(),
        least: None,
        most: None,
        effort: Effort::Quick,
        search: true,
        sustained_s: None,
        point_s: None,
        point_requests: None,
        burn_in_s: None,
        settle_s: 0.0,
        twins: false,
        seed: 1,
        slo: None,
        attainment: None,
    };
    let sweep = SweepSummary {
        schema: SweepSummary::SCHEMA.to_owned(),
        verdict: Verdict::Valid,
        caveats: Vec::new(),
        sweep: SweepFacts {
            version: "0".to_owned(),
            started: String::new(),
            state: SweepState::Complete,
            target: String::new(),
            model: String::new(),
            workload: String::new(),
            gpus: None,
            estimated: None::<TimeEstimate>,
            took_s: 1.0,
            ..SweepFacts::default()
        },
        plan,
        goodput: Some(goodput),
        kept_loads: Vec::new(),
        figures: Vec::new(),
        measured_with: None,
        sustained: None,
        curve: Curve::default(),
        points: Vec::new(),
    };
    Configuration {
        values: [("x".to_owned(), name.to_owned())].into(),
        folder: name.to_owned(),
        start: None,
        failed: None,
        sweep: Some(sweep),
    }
}

#[test]
fn the_best_configuration_and_how_sure_that_is() {
    let [a, b] = [answered("2048", 20.0, Some(21.0)), answered("4096", 22.4, Some(23.1))];
    let (place, because) = best_configuration(&[a.clone(), b.clone()]);
    assert_eq!(place, Some(1));
    assert_eq!(
        because,
        "beats x=2048 by 12 %: their intervals [22.4, 23.1] and [20.0, 21.0] req/s do not overlap"
    );
    let close = answered("8192", 22.0, Some(22.5));
    let (place, because) = best_configuration(&[a.clone(), b.clone(), close]);
    assert_eq!((place, because.as_str()), (Some(1), "tied within the intervals with x=8192"));
    // Nothing that was allowed was too much: it may be the better one.
    let open_end = answered("1", 10.0, None);
    let (_, because) = best_configuration(&[b.clone(), open_end]);
    assert_eq!(because, "tied within the intervals with x=1");
    let mut unclear = a.clone();
    unclear.sweep.as_mut().unwrap().goodput.as_mut().unwrap().state = GoodputState::Unclear;
    let (place, because) = best_configuration(&[unclear.clone(), b.clone()]);
    let expected =
        "the only one with a goodput; not compared, because they have no goodput: x=2048";
    assert_eq!((place, because.as_str()), (Some(1), expected));
    assert_eq!(best_configuration(&[unclear]), (None, "no configuration has a goodput".to_owned()));
    // A void sweep is not an answer.
    let mut void = b;
    void.sweep.as_mut().unwrap().verdict = Verdict::Void;
    assert_eq!(best_configuration(&[void, a]).0, Some(1));
    assert!(best_configuration(&[]).1.starts_with("the sweep did not search for a goodput"));
}

fn wild() -> impl Strategy<Value = f64> {
    let odd = [0.0, -1.0, 1e308, -1e308, 1e-308, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    prop_oneof![3 => 0.1f64..100.0, 1 => proptest::sample::select(odd.to_vec())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_number_breaks_a_curve(all in proptest::collection::vec([wild(), wild(), wild(), wild(), wild()], 0..12)) {
        let points: Vec<PointSummary> = all
            .iter()
            .map(|[rate, in_flight, ended, window, share]| with(open(*rate, *in_flight), |point| {
                let figures = &mut point.point.figures;
                (figures.requests_per_s, figures.window_s) = (Some(*ended), *window);
                (figures.balance, figures.n_eff) = (None, Some(*share));
                figures.attainment = Some(bounded(*share));
                figures.goodput_rps = Some(bounded(*share));
                figures.tpot_ms.p50 = Some(bounded(*in_flight));
            }))
            .collect();
        let found = fit_curve(&points);
        prop_assert!(found.attainment.iter().all(|at| (0.0..=1.0).contains(&at.1)), "{found:?}");
        prop_assert!(found.attainment.windows(2).all(|pair| pair[0].1 >= pair[1].1));
        prop_assert!(found.pareto.iter().chain(&found.peak).all(|place| *place < points.len()));
    }
}
