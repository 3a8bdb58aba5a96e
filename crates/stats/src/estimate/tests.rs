//! Tables of intervals, degenerate cases, and how often intervals hold the truth.

mod coverage;
mod decisions;
mod oracle;

use goodput_model::random::{Domain, RandomStream};

use super::binomial::{binomial_cdf, enclosing_ranks};
use super::*;
use crate::Sample;
use crate::request::LatencyValue;
use crate::sample::Wanted;
use crate::summary::{Percentile, Quality};
use decisions::{Queue, Service};

const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

#[test]
fn the_fewest_samples_of_the_method() {
    let fewest = |of: fn(f64) -> Option<u64>| QUANTILES.map(|q| of(q).unwrap());
    assert_eq!(fewest(minimum_for_interval), [6, 36, 72, 368, 3688]);
    assert_eq!(fewest(minimum_for_bound), [5, 29, 59, 299, 2995]);
    assert_eq!(fewest(minimum_for_figure), [20, 100, 200, 1000, 100_000]);
    for q in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!((minimum_for_interval(q), minimum_for_figure(q)), (None, None), "{q}");
    }
    // And they are what the ranks themselves say.
    for q in QUANTILES {
        let fewest = minimum_for_interval(q).unwrap();
        assert_eq!(enclosing_ranks(fewest - 1, q), None);
        assert_eq!(enclosing_ranks(fewest, q).unwrap().1, fewest);
    }
    assert_eq!(minimum_for_interval(0.05), minimum_for_interval(0.95));
}

#[test]
fn the_spans_of_the_method() {
    assert_eq!(enclosing_ranks(1000, 0.99), Some((983, 997)));
    let (low, high) = enclosing_ranks(10_000, 0.99).unwrap();
    assert_eq!(((low as f64 / 10.0).round(), (high as f64 / 10.0).round()), (988.0, 992.0));
    // By hand: of six, all lie on one side of the median once in 64.
    assert_eq!(enclosing_ranks(6, 0.5), Some((1, 6)));
}

#[test]
fn the_binomial_distribution_by_its_definition() {
    // Terms of Pascal's triangle.
    for (n, q) in [(1u64, 0.3f64), (12, 0.5), (30, 0.95), (60, 0.01)] {
        let (mut term, mut sum) = ((1.0 - q).powi(n as i32), 0.0);
        for k in 0..=n {
            sum += term;
            assert!((binomial_cdf(k, n, q) - sum).abs() < 1e-13, "{k} of {n} at {q}");
            term *= (n - k) as f64 / (k + 1) as f64 * q / (1.0 - q);
        }
    }
}

#[test]
fn early_stopping_as_in_the_method() {
    for (q, floor) in QUANTILES.into_iter().zip([11, 64, 130, 662, 6636]) {
        assert_eq!(early_stopping_rank(floor - 1, q), None, "{q}");
        // With the fewest it is the largest.
        assert_eq!(early_stopping_rank(floor, q), Some(floor), "{q}");
    }
    assert_eq!(early_stopping_rank(1000, 1.0), None);
    // Always beyond the quantile itself, and nearer with more.
    assert!((9900..9940).contains(&early_stopping_rank(10_000, 0.99).unwrap()));
}

/// What this many equal batches with these numbers beyond the quantile are worth.
fn worth(size: u64, beyond: &[u64]) -> Option<f64> {
    Effective::from_batches(beyond.iter().map(|beyond| (size, *beyond)))
        .map(|effective| effective.n)
}

#[test]
fn dependent_values_are_worth_less() {
    // All slow requests in one batch of twenty: v = 20/19 · (0.05² · 0.95² + 19 · 0.05² · 0.05²)
    // = 0.0025, so that 0.05 · 0.95 / v = 19: as many as there are batches, less one.
    let mut one = [0; 20];
    one[7] = 100;
    assert!((worth(100, &one).unwrap() - 19.0).abs() < 1e-9);
    // Shares that differ less than chance has it: not worth more than there are.
    assert_eq!(worth(100, &[50; 20]), Some(2000.0));
    // Nothing beyond, or everything: nothing speaks for dependence.
    assert_eq!(worth(100, &[0; 20]), Some(2000.0));
    assert_eq!(worth(100, &[100; 20]), Some(2000.0));
    // Too few batches say nothing.
    assert_eq!(worth(100, &[10; 9]), None);
    assert!(worth(100, &[10; 10]).is_some());
    // Empty ones do not count.
    let gaps = (0..20).map(|batch| (100 * (batch % 2), 10 * (batch % 2)));
    assert_eq!(Effective::from_batches(gaps.clone()).unwrap().degrees, Some(9));
    assert_eq!(Effective::from_batches(gaps.take(18)), None);
}

#[test]
fn ranks_widen_as_values_are_worth_less() {
    let with = |n: f64| interval_ranks(10_000, Effective { n, degrees: Some(19) }, 0.99);
    let plain = interval_ranks(10_000, Effective::independent(10_000), 0.99);
    assert_eq!(plain, enclosing_ranks(10_000, 0.99));
    let (low, high) = with(10_000.0).unwrap();
    assert!(low < plain.unwrap().0 && plain.unwrap().1 < high);
    // A thousand independent ones times (1.960 / 2.093)² are 876: ranks 860 and 874 of those.
    assert_eq!(enclosing_ranks(876, 0.99), Some((861, 873)));
    assert_eq!(with(1000.0), Some((9828, 9966)));
    assert_eq!(with(367.9), None);
    // From the method's minimum on there is an interval: to the largest.
    assert_eq!(with(368.0).unwrap().1, 10_000);
    // Never more than there are.
    let many = interval_ranks(500, Effective { n: f64::INFINITY, degrees: None }, 0.99);
    assert_eq!(many, enclosing_ranks(500, 0.99));
}

#[test]
fn neighbors() {
    assert_eq!(lag1_correlation([1.0, -1.0, 1.0, -1.0].into_iter()), Some(-0.75));
    assert_eq!(lag1_correlation([5.0; 9].into_iter()), None);
    assert_eq!(lag1_correlation([1.0, 2.0].into_iter()), None);
}

#[test]
fn time_to_confidence_before_a_run() {
    // z = 1.95996, q(1-q) = 0.0475, φ(z_q) = 0.103136, sigma 0.5:
    // Checked against samples in `what_is_forecast_is_reached_in_half_of_the_runs`.
    let known = requests_before(95.0, 0.1, DEFAULT_SIGMA).unwrap();
    assert!((700..900).contains(&known), "{known}");
    // Half the width needs about four times as many.
    let half = requests_before(95.0, 0.05, DEFAULT_SIGMA).unwrap();
    assert!((2_300..3_000).contains(&half), "{half}");
    // The figure itself needs more than this width does.
    assert_eq!(requests_before(99.0, 0.5, DEFAULT_SIGMA), Some(1000));
    assert_eq!(requests_before(99.9, 0.5, DEFAULT_SIGMA), Some(100_000));
    for (percent, relative) in
        [(0.0, 0.1), (100.0, 0.1), (50.0, 0.0), (50.0, -1.0), (50.0, f64::NAN)]
    {
        assert_eq!(requests_before(percent, relative, 0.5), None, "{percent} {relative}");
    }
    // (2.09302/0.05)² · (e^0.25 - 1) = 497.7, and at least five in each batch.
    assert_eq!(requests_before_mean(0.05, DEFAULT_SIGMA), Some(498));
    assert_eq!(requests_before_mean(0.5, DEFAULT_SIGMA), Some(100));
    assert_eq!(requests_before_mean(0.0, DEFAULT_SIGMA), None);
    assert_eq!(requests_before(50.0, 0.1, f64::NAN), None);
    assert_eq!(requests_before(50.0, 1e-300, 0.5), Some(1_000_000_000_000_000));
}

/// This many are said to be needed, and half of all runs of this many know it: within ten points.
#[test]
fn what_is_forecast_is_reached_in_half_of_the_runs() {
    for (percent, relative) in [(95.0, 0.1), (50.0, 0.05), (90.0, 0.1)] {
        let n = requests_before(percent, relative, DEFAULT_SIGMA).unwrap();
        let reached = (0..400).filter(|seed| {
            let mut stream = RandomStream::new(*seed, Domain::Sampling, 0);
            let values: Vec<f64> =
                (0..n).map(|_| (DEFAULT_SIGMA * stream.draw_normal()).exp()).collect();
            let found = Sample::from_series(&values).estimate(percent);
            let value = found.value.unwrap();
            let farther =
                found.low.zip(found.high).map(|(low, high)| (high - value).max(value - low));
            farther.is_some_and(|farther| farther <= relative * value)
        });
        let share = reached.count() as f64 / 400.0;
        assert!((share - 0.5).abs() <= 0.1, "p{percent} ±{relative}: {share} of runs of {n}");
    }
}

#[test]
fn time_to_confidence_from_a_sample() {
    let of = |low, high, n_eff| Percentile {
        value: Some(100.0),
        low,
        high,
        is_censored: false,
        high_is_censored: false,
        n_eff,
        quality: Quality::Ok,
        early_stopping: None,
        completed: None,
    };
    // ±20 % from 1000; ±10 % takes four times as many.
    let even = of(Some(80.0), Some(120.0), Some(900.0));
    assert_eq!(requests_needed(95.0, 0.1, 1000, &even), Some(4000));
    // The farther end is 25 % away: 20 %/√m + 5 %/m are 10 % where m is 4.9495.
    let known = of(Some(85.0), Some(125.0), Some(900.0));
    assert_eq!(requests_needed(95.0, 0.1, 1000, &known), Some(4950));
    // Reached already: the floor stays.
    assert_eq!(requests_needed(95.0, 5.0, 1000, &known), Some(72));
    // No interval yet: each request is worth a tenth, so ten times 72.
    assert_eq!(requests_needed(95.0, 0.1, 500, &of(None, None, Some(50.0))), Some(720));
    assert_eq!(requests_needed(95.0, 0.1, 10, &of(None, None, None)), Some(72));
    let beyond = Percentile { high_is_censored: true, ..of(Some(90.0), None, Some(900.0)) };
    assert_eq!(requests_needed(95.0, 0.1, 1000, &beyond), None);
    assert_eq!(requests_needed(95.0, 0.0, 1000, &known), None);
    assert_eq!(requests_needed(100.0, 0.1, 1000, &known), None);
}

/// `n` values 1, 2, … in time order, each `each` times in a row.
fn series(n: u32, each: usize) -> Vec<f64> {
    (1..=n).flat_map(|value| std::iter::repeat_n(f64::from(value), each)).collect()
}

#[test]
fn what_a_figure_is_worth() {
    let quality = |n: u32, percent: f64| {
        let mut sample: Sample = series(n, 1).into_iter().collect();
        sample.estimate(percent).quality
    };
    let few = [
        (1, Quality::NotEstimable),
        (2, Quality::Rough),
        (5, Quality::Rough),
        (6, Quality::Few),
        (19, Quality::Few),
        (20, Quality::Ok),
    ];
    for (n, expected) in few {
        assert_eq!(quality(n, 50.0), expected, "{n}");
    }
    for (n, expected) in [
        (99, Quality::NotEstimable),
        (367, Quality::Rough),
        (368, Quality::Few),
        (1000, Quality::Ok),
    ] {
        assert_eq!(quality(n, 99.0), expected, "{n}");
    }
    assert_eq!(quality(99_999, 99.9), Quality::Few);
    assert_eq!(quality(100_000, 99.9), Quality::Ok);
    assert_eq!(quality(10, 100.0), Quality::NotEstimable);
    assert_eq!(Sample::default().estimate(50.0).quality, Quality::NotEstimable);
}

#[test]
fn samples_with_batches() {
    // All values beyond the median lie in ten of twenty batches, one in each 32 slices:
    // v = 20/19 · 20 · 0.05² · 0.5², and 0.25 / v = 19.
    let mut halves = Sample::default();
    (0..1000u32).for_each(|value| halves.push_in(f64::from(value + 1), (value / 50) as u8));
    let median = halves.estimate(50.0);
    assert_eq!((median.value, median.quality), (Some(500.0), Quality::Ok));
    assert!((median.n_eff.unwrap() - 19.0).abs() < 1e-9);
    // 19 · 0.877 are 16 independent ones; of those ranks 4 and 13 enclose the median.
    assert_eq!(enclosing_ranks(16, 0.5), Some((4, 13)));
    assert_eq!((median.low, median.high), (Some(250.0), Some(813.0)));
    // p99 is beyond what 19 can say, but for the end on the good side: of 16 independent ones the
    // 14th lies above it in 2.5 % at most, and 62.5 values stand for each.
    let tail = halves.estimate(99.0);
    assert_eq!((tail.value, tail.quality, tail.high), (Some(990.0), Quality::Rough, None));
    assert!(tail.low.is_some_and(|low| low > 500.0 && low < 990.0), "{tail:?}");
    // A constant is what it is.
    let constant = Sample::from_series(&[7.0; 1000]).estimate(99.0);
    assert_eq!((constant.low, constant.value, constant.high), (Some(7.0), Some(7.0), Some(7.0)));
    assert_eq!(constant.n_eff, Some(1000.0));
    // All at one instant: there is a figure, and no telling how sure it is.
    let mut burst = Sample::default();
    (0..1000).for_each(|value| burst.push_in(f64::from(value), 0));
    let burst = burst.estimate(50.0);
    assert_eq!((burst.n_eff, burst.low, burst.quality), (None, None, Quality::Rough));
    assert_eq!(burst.value, Some(499.0));
}

/// A queue that comes eight times in a run: values are alike there, and nowhere else.
fn queue(length: usize) -> Vec<f64> {
    let noise = |i: usize| 100.0 + (i * 7919 % 101) as f64;
    let wave = |i: usize| if i / length % 12 == 3 { (i % length) as f64 * 30.0 } else { 0.0 };
    (0..length * 96).map(|i| noise(i) + wave(i)).collect()
}

#[test]
fn a_run_that_is_short_for_its_queue_has_one_end() {
    let mut sample = Sample::from_series(&queue(60));
    let p90 = sample.estimate(90.0);
    assert_eq!((p90.quality, p90.high), (Quality::Rough, None));
    assert!(p90.low.unwrap() < p90.value.unwrap());
    // In another order the same values are independent, and have both ends.
    let mut shuffled = queue(60);
    let mut stream = RandomStream::new(1, Domain::Sampling, 0);
    shuffled.sort_by_cached_key(|_| (stream.next_unit() * 1e9) as u64);
    let p90 = Sample::from_series(&shuffled).estimate(90.0);
    assert!(p90.quality == Quality::Ok && p90.high.is_some(), "{p90:?}");
    // Of a speed the small values are the bad ones, and its upper end is the one to trust.
    let slow: Vec<f64> = queue(60).into_iter().map(|ms| 1e5 / ms).collect();
    let p10 = Sample::from_series(&slow).into_speed().estimate(10.0);
    assert!(p10.low.is_none() && p10.high.is_some_and(|high| high > p10.value.unwrap()), "{p10:?}");
}

#[test]
fn a_failure_counts_for_what_it_outlasted() {
    // 990 answers of 1 to 990 ms; ten failures, five of them at once and five after a minute.
    let mut sample = Sample::default();
    for i in 0..990u16 {
        sample.push_value(Some(i % 640), LatencyValue::Value(f64::from(i + 1)));
    }
    for i in 0..10u16 {
        let took = if i % 2 == 0 { 0.5 } else { 60_000.0 };
        sample.push_value(Some(i * 60), LatencyValue::FailedAfter(took));
    }
    let metric = sample.into_metric("ms", Wanted::new(&[50.0, 99.0, 99.9]));
    // Of 995, p99 is the 986th; of those that completed alone, the 981st.
    let p99 = metric.percentiles["99"];
    assert_eq!((p99.value, p99.completed), (Some(986.0), Some(981.0)));
    // Half of 995 is 498, and of 990 495.
    let p50 = metric.percentiles["50"];
    assert_eq!((p50.value, p50.completed), (Some(498.0), Some(495.0)));
    // The last five of 995 never came.
    let p999 = metric.percentiles["99.9"];
    assert!(p999.is_censored && p999.value.is_none());
    // (990 · 495.5 + 5 · 60,000) / 995 at least.
    assert!((metric.mean.unwrap() - (990.0 * 495.5 + 300_000.0) / 995.0).abs() < 1e-9);
    assert!(metric.mean_low.is_some() && metric.mean_high.is_none());
}

#[test]
fn equal_values_do_not_hide_dependence() {
    // Four fifths of the time 10 ms, in one batch of five 20 ms: p95 is the largest, and none are
    // beyond it, but those that reach it come together.
    let slow = |index: usize| if index / 100 % 5 == 4 { 20.0 } else { 10.0 };
    let values: Vec<f64> = (0..2000).map(slow).collect();
    let p95 = Sample::from_series(&values).estimate(95.0);
    assert_eq!(p95.value, Some(20.0));
    assert!(p95.n_eff.unwrap() < 20.0, "{p95:?}");
}

#[test]
fn a_bound_may_lie_beyond_the_limit() {
    let mut sample = Sample::default();
    (0..950u32).for_each(|value| sample.push_in(f64::from(value), (value % 20) as u8));
    (0..50u32).for_each(|value| sample.push_censored_in((value % 20) as u8));
    let p95 = sample.estimate(95.0);
    assert_eq!((p95.value, p95.is_censored), (Some(949.0), false));
    assert!(p95.low.is_some() && p95.high.is_none() && p95.high_is_censored);
    assert_eq!(p95.quality, Quality::Ok);
    let p99 = sample.estimate(99.0);
    assert!(p99.value.is_none() && p99.is_censored && p99.high_is_censored);
    let p50 = sample.estimate(50.0);
    assert!(p50.high.is_some() && !p50.high_is_censored);
    // Limits that were all reached in one batch are one event.
    let mut stalled = Sample::default();
    (0..950u32).for_each(|value| stalled.push_in(f64::from(value), (value % 19) as u8));
    (0..50).for_each(|_| stalled.push_censored_in(19));
    assert!(stalled.estimate(97.0).n_eff.unwrap() < 25.0);
    // And they lie beyond every percentile that was reached.
    assert!(stalled.estimate(94.0).n_eff.unwrap() < 50.0);
}

#[test]
fn the_interval_of_a_mean() {
    // Batches of 100 with means 1, 2, …, 20: 10.5 ± 2.093 · sqrt(35) / sqrt(20).
    let mut sample = Sample::default();
    (0..2000u32).for_each(|i| sample.push_in(f64::from(i / 100 + 1), (i / 100) as u8));
    let metric = sample.clone().into_metric("ms", Wanted::new(&[]));
    let half = 2.093_024_054_408_263 * (35.0f64 / 20.0).sqrt();
    assert_eq!(metric.mean, Some(10.5));
    assert!((metric.mean_low.unwrap() - (10.5 - half)).abs() < 1e-9);
    assert!((metric.mean_high.unwrap() - (10.5 + half)).abs() < 1e-9);
    sample.push_censored_in(3);
    let metric = sample.into_metric("ms", Wanted::new(&[]));
    assert_eq!((metric.mean, metric.mean_low, metric.mean_high), (None, None, None));
}

#[test]
fn a_mean_that_rests_on_few_has_one_end() {
    let high =
        |values: &[f64]| Sample::from_series(values).into_metric("", Wanted::new(&[])).mean_high;
    let even: Vec<f64> = (0..2000).map(|i| f64::from(100 + i * 7919 % 101)).collect();
    assert!(high(&even).is_some());
    // Alike in order of time.
    assert_eq!(high(&queue(60)), None);
    // Values whose largest twentieth falls off like 1/x: their variance is that of the largest.
    let heavy: Vec<f64> = (0..2000).map(|i| 2000.0 / f64::from(i * 7919 % 2000 + 1)).collect();
    assert_eq!(high(&heavy), None);
    // All that varies lies in one batch.
    let mut one = even;
    one[100..110].fill(5_000.0);
    assert_eq!(high(&one), None);
}

#[test]
fn strange_numbers_do_no_harm() {
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, f64::MIN, f64::MAX, 1.0];
    let many: Vec<f64> = values.iter().copied().cycle().take(400).collect();
    let mut sample = Sample::from_series(&many);
    for percent in [-1.0, 0.0, 1e-300, 50.0, 99.9, 100.0, 1e300, f64::NAN] {
        sample.estimate(percent);
    }
    assert_eq!(sample.estimate(50.0).value.map(f64::to_bits), Some(0.0f64.to_bits()));
    assert_eq!(sample.into_metric("ms", Wanted::new(&[50.0])).n, 400);
    for batch in [0, 19, 20, 255] {
        let mut one = Sample::default();
        one.push_in(1.0, batch);
        assert_eq!(one.estimate(50.0).value, Some(1.0));
    }
}

/// Log-normal values of which each knows the one before.
fn alike(seed: u64, n: u64, rho: f64) -> Vec<f64> {
    let mut stream = RandomStream::new(seed, Domain::Sampling, 1);
    let mut state = stream.draw_normal();
    let next = |_| {
        state = rho * state + (1.0 - rho * rho).sqrt() * stream.draw_normal();
        (DEFAULT_SIGMA * state).exp()
    };
    (0..n).map(next).collect()
}

/// TTFT of a server with 32 slots at 60 % load, 4.8 requests a second.
fn queued(seed: u64, n: u64) -> Vec<f64> {
    let queue = Queue { slots: 32, service: Service::Exponential, load: 0.6 };
    queue.run(seed, n as f64 / 4.8).into_iter().map(|request| request.1).collect()
}

/// What a first run says is needed brings half of the runs of that length there: within ten points.
#[test]
#[ignore = "half a minute: a forecast from dependent values"]
fn what_a_run_says_it_needs_is_reached_in_half_of_the_runs() {
    type Series = fn(u64, u64) -> Vec<f64>;
    let cases: [(&str, Series, u64, f64, f64); 4] = [
        ("independent", |seed, n| alike(seed, n, 0.0), 400, 95.0, 0.1),
        ("AR(1), 0.5", |seed, n| alike(seed, n, 0.5), 1_000, 90.0, 0.1),
        ("AR(1), 0.9", |seed, n| alike(seed, n, 0.9), 2_000, 50.0, 0.1),
        ("queue at 60 %", queued, 800, 95.0, 0.1),
    ];
    for (name, series, first, percent, relative) in cases {
        let need = |seed: u64| {
            let values = series(seed, first);
            let found = Sample::from_series(&values).estimate(percent);
            requests_needed(percent, relative, values.len() as u64, &found)
        };
        let mut needed: Vec<u64> = (0..60).filter_map(need).collect();
        needed.sort_unstable();
        let n = needed[needed.len() / 2];
        let reached = (1_000..1_200).filter(|seed| {
            let found = Sample::from_series(&series(*seed, n)).estimate(percent);
            let value = found.value.unwrap();
            let ends = found.low.zip(found.high);
            ends.is_some_and(|(low, high)| (high - value).max(value - low) <= relative * value)
        });
        let share = reached.count() as f64 / 200.0;
        println!("{name}, p{percent} ±{relative}: {n} are needed, reached in {share} of runs");
        assert!((share - 0.5).abs() <= 0.1, "{name}: {share}");
    }
}
