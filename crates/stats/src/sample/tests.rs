//! Percentiles by their definition, and values by hand.

use proptest::prelude::*;

use super::*;

fn sample(values: &[f64], censored: u64) -> Sample {
    let mut sample: Sample = values.iter().copied().collect();
    (0..censored).for_each(|_| sample.push_censored());
    sample.sort();
    sample
}

#[test]
fn nearest_rank_by_hand() {
    let ten: Vec<f64> = (1..=10).map(f64::from).collect();
    let cases = [(50.0, 5.0), (51.0, 6.0), (90.0, 9.0), (90.1, 10.0), (0.1, 1.0), (99.9, 10.0)];
    for (percent, expected) in cases {
        assert_eq!(sample(&ten, 0).percentile(percent), Some(expected), "p{percent}");
    }
    let thousand: Vec<f64> = (1..=1000).map(f64::from).collect();
    assert_eq!(sample(&thousand, 0).percentile(99.9), Some(999.0));
    assert_eq!(sample(&thousand, 0).percentile(99.0), Some(990.0));
    assert_eq!(sample(&[7.0], 0).percentile(50.0), Some(7.0));
    assert_eq!(sample(&[], 0).percentile(50.0), None);
}

#[test]
fn censored_values_are_the_largest() {
    let mixed = sample(&[1.0, 2.0, 3.0], 1);
    assert_eq!(mixed.percentile(75.0), Some(3.0));
    assert_eq!(mixed.percentile(76.0), None);
    let metric = mixed.into_metric("ms", Wanted::new(&[50.0, 99.0]));
    assert_eq!((metric.n, metric.censored, metric.max), (4, 1, None));
    assert!(metric.percentiles["99"].is_censored && !metric.percentiles["50"].is_censored);
}

#[test]
fn moments() {
    let metric =
        sample(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], 0).into_metric("ms", Wanted::new(&[]));
    assert_eq!(metric.mean, Some(5.0));
    assert!((metric.std.unwrap() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    assert_eq!(sample(&[1.0], 0).into_metric("ms", Wanted::new(&[])).std, None);
}

proptest! {
    /// Counted or each by itself, values say the same.
    #[test]
    fn what_is_counted_is_what_it_stands_for(
        batches in prop::collection::vec(prop::collection::vec(0u32..9, 0..30), 1..20),
    ) {
        let (mut each, mut counted) = (Sample::default(), Sample::default());
        for (batch, values) in (0..).zip(&batches) {
            for value in values {
                each.push_in(f64::from(*value), batch);
            }
            let once = |value: &u32| (f64::from(*value), 1);
            counted.push_counted(Some(batch), values.iter().map(once).collect());
        }
        let wanted = Wanted { percentiles: &[10.0, 50.0, 90.0, 99.0], early_stopping: true };
        prop_assert_eq!(each.len(), counted.len());
        each.sort();
        counted.sort();
        prop_assert_eq!(each.some_sorted(1_000), counted.some_sorted(1_000));
        let (each, counted) = (each.into_metric("ms", wanted), counted.into_metric("ms", wanted));
        prop_assert_eq!(&each.percentiles, &counted.percentiles);
        prop_assert_eq!((each.min, each.max, each.n), (counted.min, counted.max, counted.n));
        let near = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => (one - other).abs() <= 1e-9 * one.abs().max(1.0),
            (one, other) => one == other,
        };
        prop_assert!(near(each.mean, counted.mean) && near(each.std, counted.std));
        prop_assert!(near(each.mean_low, counted.mean_low));
    }

    /// The definition itself: the smallest value with at least q percent at or below it.
    #[test]
    fn percentile_is_its_definition(
        values in prop::collection::vec(0u32..50, 1..60),
        tenths in 1u32..1000,
    ) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let percent = f64::from(tenths) / 10.0;
        let reached = |x: f64| values.iter().filter(|v| **v <= x).count() as u64 * 1000;
        let brute = values.iter().copied().filter(|x| reached(*x) >= u64::from(tenths) * values.len() as u64);
        let expected = brute.min_by(f64::total_cmp);
        prop_assert_eq!(sample(&values, 0).percentile(percent), expected);
    }
}
