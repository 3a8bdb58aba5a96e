//! The tests for trends against SciPy, and whole series of known shape.

pub(crate) mod study;

use goodput_model::Nanos;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use study::{Change, Scene};

/// Made by `tests/oracle/make_steady.py`.
const ORACLE: &str = include_str!("../../tests/oracle/steady.json");

fn oracle() -> Vec<(String, Vec<f64>, Value)> {
    let Value::Object(all) = serde_json::from_str(ORACLE).unwrap() else { panic!("no object") };
    let numbers = |facts: &Value| serde_json::from_value(facts["values"].clone()).unwrap();
    all.into_iter().map(|(name, facts)| (name, numbers(&facts), facts)).collect()
}

/// Sums of a few hundred terms in another order differ by this much at most.
fn close(name: &str, ours: f64, theirs: &Value) {
    let theirs = theirs.as_f64().unwrap();
    let difference = (ours - theirs).abs();
    assert!(difference <= 1e-9 * theirs.abs().max(1e-3), "{name}: {ours}, not {theirs}");
}

#[test]
fn as_numpy_and_scipy_have_it() {
    let all = oracle();
    assert_eq!(all.len(), 13);
    for (name, values, facts) in all {
        let found = mser5(&values).unwrap();
        let expected = &facts["mser"];
        assert_eq!(found.cut as u64, expected["cut"], "{name}");
        assert_eq!(found.batches as u64, expected["batches"], "{name}");
        assert_eq!(found.at_limit, expected["at_limit"], "{name}");
        let test = mann_kendall(&values).unwrap();
        let expected = &facts["mann_kendall"];
        assert_eq!(test.s, expected["s"], "{name}");
        close(&name, test.variance, &expected["variance"]);
        close(&name, test.factor, &expected["factor"]);
        close(&name, test.z, &expected["z"]);
        close(&name, test.p, &expected["p"]);
        close(&name, theil_sen(&values).unwrap(), &facts["theil_sen"]);
        let shift = pettitt(&values).unwrap();
        let expected = &facts["pettitt"];
        assert_eq!(shift.k, expected["k"].as_f64().unwrap(), "{name}");
        assert_eq!(shift.at as u64, expected["at"], "{name}");
        close(&name, shift.p, &expected["p"]);
        let slope = least_squares(&values).unwrap();
        let expected = &facts["least_squares"];
        close(&name, slope.value, &expected["value"]);
        close(&name, slope.low, &expected["low"]);
        close(&name, slope.high, &expected["high"]);
    }
}

#[test]
fn too_few_for_a_test() {
    assert_eq!(mann_kendall(&[1.0, 2.0, 3.0]), None);
    assert_eq!(pettitt(&[1.0, 2.0, 3.0]), None);
    assert_eq!(least_squares(&[1.0, 2.0]), None);
    assert_eq!((theil_sen(&[1.0]), theil_sen(&[])), (None, None));
    assert_eq!(median_of(&[]), None);
    assert_eq!(median_of(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
}

#[test]
fn long_series_are_averaged_down() {
    let values: Vec<f64> = (0..1201).map(f64::from).collect();
    let (points, step) = average_neighbors(&values, MOST_POINTS);
    assert_eq!((points.len(), step), (401, 3));
    assert_eq!((points[0], points[400]), (1.0, 1200.0));
}

/// A series in which all four go the same way, with a ripple of a percent.
fn series(shape: impl Fn(usize) -> f64, bins: usize) -> Series {
    let ripple = |i: usize| 1.0 + 0.01 * (i as f64 * 2.4).sin();
    let values =
        |scale: f64| -> Vec<f64> { (0..bins).map(|i| scale * shape(i) * ripple(i)).collect() };
    let medians = |scale| Medians { values: values(scale), counts: vec![20; bins] };
    Series {
        start: Nanos::ZERO,
        bin: Nanos::from_millis(1000),
        in_flight: values(1e6),
        tokens_per_s: values(5000.0),
        ttft: medians(200.0),
        tpot: medians(20.0),
        // As many as take a second each.
        arrivals: vec![1_000_000; bins],
        completions: vec![1_000_000; bins],
        refused: vec![0; bins],
    }
}

#[test]
fn a_span_of_few_answers_is_too_short_to_tell() {
    // A hundred bins of answers that take 19.8 and 20.2 of them.
    let of =
        |ends: u32, bins: usize| Series { completions: vec![ends; bins], ..series(|_| 1.0, bins) };
    assert_eq!(judge_steadiness(&of(50_500, 100)).state, SteadyAnswer::Steady);
    assert_eq!(judge_steadiness(&of(49_500, 100)).state, SteadyAnswer::TooShort);
    // What is seen is seen.
    let drifts = Series { completions: vec![20; 100], ..series(|i| 1.0 + i as f64 / 1e3, 100) };
    assert_eq!(judge_steadiness(&drifts).state, SteadyAnswer::Drifting);
}

#[test]
fn so_few_requests_that_most_bins_have_none_are_too_few_to_tell() {
    let sparse = |every: usize| {
        let counts = (0..60).map(|i| u32::from(i % every == 0)).collect();
        let medians = |scale: f64| Medians { values: vec![scale; 60], counts };
        let all = series(|_| 1.0, 60);
        Series { ttft: medians(200.0), tpot: Medians::default(), ..all }
    };
    assert_eq!(judge_steadiness(&sparse(2)).state, SteadyAnswer::Steady);
    assert_eq!(judge_steadiness(&sparse(3)).state, SteadyAnswer::TooShort);
    // Without streams latency cannot be tested, and the rest decides.
    let whole = Series { ttft: Medians::default(), tpot: Medians::default(), ..sparse(3) };
    assert_eq!(judge_steadiness(&whole).state, SteadyAnswer::Steady);
}

#[test]
fn series_that_could_all_double_by_chance_show_nothing() {
    // One in flight, each for a second: the standard deviation of a line's drift over T bins is
    // sqrt(12·2/T), and four of those are 1 at T = 384. Waits are half and one and a half of their mean
    // in turn: four standard deviations are twice the mean. TPOT likewise, with two of `noise`.
    let of = |bins: usize, noise: f64| {
        let turns = |mean: f64, noise: f64| Medians {
            values: (0..bins)
                .map(|i| mean * (1.0 + noise * (1.0 - 2.0 * (i % 2) as f64)))
                .collect(),
            counts: vec![20; bins],
        };
        Series {
            in_flight: vec![1.0; bins],
            tokens_per_s: vec![20.0; bins],
            completions: vec![1; bins],
            ttft: turns(200.0, 0.5),
            tpot: turns(20.0, noise),
            ..series(|_| 1.0, bins)
        }
    };
    // Sixty bins are not averaged.
    assert_eq!(judge_steadiness(&of(60, 0.51)).state, SteadyAnswer::TooShort);
    assert_eq!(judge_steadiness(&of(60, 0.49)).state, SteadyAnswer::Steady);
    assert_eq!(judge_steadiness(&of(60, 0.49)).trend.unwrap().metric, "tpot");
    // The trend that is shown is that of a series that could show one.
    let long = Series { tpot: Medians::default(), ..of(385, 0.0) };
    assert_eq!(judge_steadiness(&long).state, SteadyAnswer::Steady);
    let short = Series { tpot: Medians::default(), ..of(60, 0.0) };
    assert_eq!(judge_steadiness(&short).state, SteadyAnswer::TooShort);
}

#[test]
fn a_flat_series_is_steady() {
    let found = judge_steadiness(&series(|_| 1.0, 100));
    assert_eq!((found.state, found.cut.cut_s), (SteadyAnswer::Steady, 0.0));
    assert_eq!(found.trend.unwrap().metric, "tpot");
    assert_eq!(judge_steadiness(&series(|_| 1.0, 49)).state, SteadyAnswer::TooShort);
    assert_eq!(judge_steadiness(&series(|_| 1.0, 50)).state, SteadyAnswer::Steady);
    assert_eq!(judge_steadiness(&Series::default()).state, SteadyAnswer::TooShort);
    assert_eq!(Steadiness::default().state, SteadyAnswer::NotApplicable);
}

#[test]
fn a_cold_start_is_cut_where_it_ends() {
    let cold = series(|i| if i < 20 { 1.5 } else { 1.0 }, 100);
    let found = judge_steadiness(&cold);
    assert_eq!((found.state, found.cut.cut_s), (SteadyAnswer::Steady, 20.0));
    assert_eq!(found.cut.series["tpot"].asked_s, 20.0);
    assert!((found.cut.series["tpot"].difference() - 0.5).abs() < 0.01);
    // Less than a tenth is not a cold start, though MSER-5 would cut it.
    let cool = find_cut(&series(|i| if i < 20 { 1.08 } else { 1.0 }, 100));
    assert_eq!((cool.cut_s, cool.asked_s), (0.0, 20.0));
}

#[test]
fn what_goes_on_changing_is_never_steady() {
    let found = judge_steadiness(&series(|i| 1.0 + i as f64 / 100.0, 100));
    assert_eq!((found.state, found.cut.cut_s), (SteadyAnswer::NeverSteady, 0.0));
    assert_eq!(found.cut.asked_s, 50.0);
    let trend = found.trend.unwrap();
    // From 1 to 1.99 about a median of 1.495.
    assert!((trend.drift_share - 0.66).abs() < 0.02, "{trend:?}");
    // Six percent over all are too little for a cut, and enough for a drift; four are nothing.
    assert_eq!(
        judge_steadiness(&series(|i| 1.0 + 0.07 * i as f64 / 100.0, 100)).state,
        SteadyAnswer::Drifting
    );
    assert_eq!(
        judge_steadiness(&series(|i| 1.0 + 0.04 * i as f64 / 100.0, 100)).state,
        SteadyAnswer::Steady
    );
}

#[test]
fn a_step_is_a_shift() {
    for at in [40, 50, 70] {
        let found = judge_steadiness(&series(|i| if i < at { 1.0 } else { 1.08 }, 100));
        assert_eq!(found.state, SteadyAnswer::Shifted, "{at}");
        let shift = found.shift.unwrap();
        // Pettitt's place is where ranks pass the middle one: with uneven parts, one block off.
        assert_eq!(shift.metric, "tpot");
        assert!((shift.at_s - at as f64).abs() <= 2.0, "{shift:?}");
        assert!((shift.after / shift.before - 1.08).abs() < 0.01, "{shift:?}");
    }
    assert_eq!(
        judge_steadiness(&series(|i| if i < 60 { 1.0 } else { 1.04 }, 100)).state,
        SteadyAnswer::Steady
    );
}

#[test]
fn few_requests_make_longer_bins() {
    let mut sparse = series(|i| if i < 120 { 1.0 } else { 1.08 }, 300);
    for medians in [&mut sparse.ttft, &mut sparse.tpot] {
        medians.counts = (0..300).map(|i| u32::from(i % 4 == 0)).collect();
    }
    let found = judge_steadiness(&sparse);
    assert_eq!(
        (found.state, found.shift.unwrap().metric.as_str()),
        (SteadyAnswer::Shifted, "tpot")
    );
    // One in ten cannot be judged on 50 bins; the number in flight still can.
    for medians in [&mut sparse.ttft, &mut sparse.tpot] {
        medians.counts = (0..300).map(|i| u32::from(i % 20 == 0)).collect();
    }
    assert_eq!(judge_steadiness(&sparse).shift.unwrap().metric, "in_flight");
}

#[test]
fn words_of_the_states() {
    let json = serde_json::to_value(judge_steadiness(&series(|i| 1.0 + i as f64, 100))).unwrap();
    assert_eq!(json["state"], "never_steady");
    let back: Steadiness = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(serde_json::to_value(back).unwrap(), json);
}

// Runs of the simulated server; many more of them are in `study`.

#[test]
fn simulated_steady_runs_are_found_steady() {
    for seed in 0..5 {
        let found = judge_steadiness(&Scene::new(seed, 0.6, 180.0).series());
        assert_eq!((found.state, found.cut.cut_s), (SteadyAnswer::Steady, 0.0), "{seed}");
    }
}

#[test]
fn simulated_cold_starts_are_cut() {
    for (seed, change) in [(0, Change::SlowTokens(36.0)), (1, Change::SlowTokens(18.0))] {
        let found = judge_steadiness(&Scene { change, ..Scene::new(seed, 0.6, 180.0) }.series());
        let Change::SlowTokens(until) = change else { continue };
        assert_eq!(found.state, SteadyAnswer::Steady);
        assert!((found.cut.cut_s - until).abs() <= 5.0, "{}", found.cut.cut_s);
    }
    let slow_first = Scene { change: Change::SlowFirst(36.0), ..Scene::new(2, 0.6, 180.0) };
    let cut = find_cut(&slow_first.series());
    assert!((20.0..=45.0).contains(&cut.series["ttft"].cut_s), "{cut:?}");
    assert_eq!(cut.series["tpot"].cut_s, 0.0);
}

#[test]
fn a_load_that_finds_an_empty_server_is_cut() {
    for seed in 0..3 {
        let cold = Scene { slots: 128, warm_s: 0.0, ..Scene::new(seed, 0.9, 180.0) };
        let found = judge_steadiness(&cold.series());
        assert_eq!(found.state, SteadyAnswer::Steady);
        // Requests take 4 s, so after 5 to 15 s about as many are in flight as later.
        assert!((5.0..=15.0).contains(&found.cut.series["in_flight"].cut_s), "{:?}", found.cut);
    }
}

#[test]
fn simulated_changes_are_found() {
    for seed in 0..3 {
        let step = Scene { change: Change::Step(90.0, 1.2), ..Scene::new(seed, 0.6, 180.0) };
        let found = judge_steadiness(&step.series());
        assert_eq!(found.state, SteadyAnswer::Shifted);
        // The series begins at 120 s; a block has 3 s.
        assert!((found.shift.unwrap().at_s - 210.0).abs() <= 6.0);
        let drift = Scene { change: Change::Drift(0.2), ..Scene::new(seed, 0.6, 180.0) };
        let found = judge_steadiness(&drift.series());
        assert!(
            matches!(found.state, SteadyAnswer::Drifting | SteadyAnswer::NeverSteady),
            "{found:?}"
        );
        assert!((found.trend.unwrap().drift_share - 0.18).abs() < 0.05);
    }
}

proptest! {
    #[test]
    fn any_series_is_judged(
        values in prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::ZERO, 0..130),
        counts in prop::collection::vec(0u32..3, 130),
    ) {
        let n = values.len();
        let counts = counts[..n].to_vec();
        let medians = Medians { values: values.clone(), counts: counts.clone() };
        let series = Series {
            start: Nanos::ZERO, bin: Nanos::from_millis(1000),
            in_flight: values.clone(), tokens_per_s: values, ttft: medians.clone(), tpot: medians,
            arrivals: counts.clone(), completions: counts.clone(), refused: counts,
        };
        let found = judge_steadiness(&series);
        prop_assert!(found.cut.cut_s <= n as f64 / 2.0);
        prop_assert!(found.cut.cut_s <= found.cut.asked_s);
        let _ = crate::saturation::judge_saturation(&series);
    }
}

#[test]
fn dependence_of_next_to_nothing_hides_no_step() {
    // From 1 to 17 in the middle; the rest changes slowly, by a thousandth of it.
    let noise = |i: u32| f64::from(i / 6 % 2) * 0.01;
    let values: Vec<f64> = (0..60).map(|i| if i < 30 { 1.0 } else { 17.0 } + noise(i)).collect();
    let place = SeriesStart { name: "in_flight", start_s: 0.0, bin_s: 1.0, beyond: Some(BEYOND) };
    let course = SeriesCourse::from_values(&values, place, None).unwrap();
    assert!(course.shifts && !course.drifts);
    assert_eq!(course.shift.unwrap().at_s, 30.0);
}
