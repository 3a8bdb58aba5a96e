//! Series of known shape, and runs of a simulated server beyond its capacity.

use goodput_model::Nanos;

use super::*;
use crate::series::Medians;
use crate::steady::tests::study::Scene;

/// Requests in flight and waits at each second, with a ripple of a percent.
fn series(bins: usize, in_flight: impl Fn(f64) -> f64, ttft: impl Fn(f64) -> f64) -> Series {
    let ripple = |i: usize| 1.0 + 0.01 * (i as f64 * 2.4).sin();
    let values = |f: &dyn Fn(f64) -> f64| -> Vec<f64> {
        (0..bins).map(|i| f(i as f64) * ripple(i)).collect()
    };
    Series {
        start: Nanos::ZERO,
        bin: Nanos::from_millis(1000),
        in_flight: values(&in_flight),
        tokens_per_s: vec![1000.0; bins],
        ttft: Medians { values: values(&ttft), counts: vec![10; bins] },
        tpot: Medians::default(),
        arrivals: vec![100; bins],
        completions: vec![90; bins],
        refused: vec![0; bins],
    }
}

#[test]
fn a_queue_that_grows_is_over_saturated() {
    let growing = series(120, |t| 50.0 + 10.0 * t, |t| 100.0 + 100.0 * t);
    let found = judge_saturation(&growing).unwrap();
    assert!(found.over_saturated && !found.queue_limited, "{found:?}");
    assert!((found.backlog_growth_per_s - 10.0).abs() < 0.1);
    assert_eq!(
        (found.balance, found.balance_all, found.refused_share),
        (Some(0.9), Some(0.9), 0.0)
    );
    assert!(found.in_flight_slope.low < 10.05 && found.in_flight_slope.high > 9.95);
    assert!((found.ttft_slope.unwrap().value - 100.0).abs() < 1.0);
}

#[test]
fn each_condition_is_needed() {
    let is_over = |series: &Series| judge_saturation(series).unwrap().over_saturated;
    let growing = || series(120, |t| 50.0 + 10.0 * t, |t| 100.0 + 100.0 * t);
    assert!(is_over(&growing()));
    // Waits stay the same: more requests are in flight because answers are longer.
    assert!(!is_over(&series(120, |t| 50.0 + 10.0 * t, |_| 100.0)));
    assert!(!is_over(&series(120, |_| 50.0, |t| 100.0 + 100.0 * t)));
    let mut balanced = growing();
    balanced.completions = vec![98; 120];
    assert!(!is_over(&balanced));
    // Sure, but small: a twentieth of what is in flight, or what chance brings and takes.
    assert!(!is_over(&series(120, |t| 5000.0 + 2.0 * t, |t| 100.0 + 100.0 * t)));
    assert!(!is_over(&series(120, |t| 30.0 + 0.15 * t, |t| 100.0 + 100.0 * t)));
    assert!(is_over(&series(120, |t| 30.0 + 0.3 * t, |t| 100.0 + 100.0 * t)));
    // Too short for a judgement.
    assert_eq!(judge_saturation(&series(29, |t| 50.0 + 10.0 * t, |t| 100.0 + 100.0 * t)), None);
    assert_eq!(judge_saturation(&Series::default()), None);
}

#[test]
fn a_full_queue_is_flat_and_slow() {
    let full = |t: f64| (10.0 + 5.0 * t).min(110.0);
    let found = judge_saturation(&series(120, full, |t| 50.0 * full(t))).unwrap();
    assert!(found.queue_limited && !found.over_saturated, "{found:?}");
    // As flat, but waits are as they were: a cold start of the load, nothing more.
    assert!(!judge_saturation(&series(120, full, |_| 500.0)).unwrap().queue_limited);
    let mut refusing = series(120, |_| 110.0, |_| 500.0);
    assert!(!judge_saturation(&refusing).unwrap().queue_limited);
    refusing.refused = vec![2; 120];
    let found = judge_saturation(&refusing).unwrap();
    assert_eq!((found.queue_limited, found.refused_share), (true, 0.02));
}

#[test]
fn simulated_overload_is_found_and_steady_load_is_not() {
    for seed in 0..4 {
        let over = Scene { warm_s: 0.0, ..Scene::new(seed, 1.3, 120.0) }.series();
        let found = judge_saturation(&over).unwrap();
        assert!(found.over_saturated, "{seed}: {found:?}");
        // Of 10.4 a second, 8 are served.
        assert!((1.0..4.0).contains(&found.backlog_growth_per_s));
        let steady = judge_saturation(&Scene::new(seed, 0.6, 120.0).series()).unwrap();
        assert!(!steady.over_saturated && !steady.queue_limited);
        let bounded = Scene { warm_s: 0.0, max_queue: Some(40), ..Scene::new(seed, 1.5, 120.0) };
        let found = judge_saturation(&bounded.series()).unwrap();
        assert!(found.queue_limited && !found.over_saturated, "{found:?}");
    }
}
