//! Arrivals under shapes, against what is expected of them by integration.

use proptest::prelude::*;

use crate::schedule::ArrivalSequence;
use crate::{ArrivalProcess as Process, LoadShape, Nanos};

const S: u64 = 1_000_000_000;

fn shape(text: &str) -> LoadShape {
    text.parse().unwrap()
}

fn arrivals(text: &str, process: Process, seed: u64) -> ArrivalSequence {
    ArrivalSequence::shaped(&shape(text), process, seed)
}

/// How many arrivals in each of these parts, borders in seconds.
fn counts(instants: &[Nanos], borders: &[f64]) -> Vec<usize> {
    let within = |pair: &[f64]| {
        let [from, to] = [pair[0], pair[1]].map(Nanos::from_secs_f64);
        instants.iter().filter(|at| (from..to).contains(at)).count()
    };
    borders.windows(2).map(within).collect()
}

/// Within four standard errors of a Poisson count.
fn near(count: usize, expected: f64) {
    let distance = (count as f64 - expected).abs();
    assert!(distance < 4.0 * expected.sqrt(), "{count} is not about {expected}");
}

#[test]
fn constant_stages_hold_exactly_rate_times_length() {
    // 0.14 · 50 and 4.35 · 100 are not 7 and 435 in binary.
    let text = "60s@5,30s@0,50s@0.14,20s@0,100s@4.35,30s@0,10s@3";
    let all: Vec<_> = arrivals(text, Process::Constant, 1).collect();
    let borders = [0.0, 60.0, 90.0, 140.0, 160.0, 260.0, 290.0, 300.0];
    assert_eq!(counts(&all, &borders), [300, 0, 7, 0, 435, 0, 30]);
    assert_eq!(all.len(), 772);
    // At regular instants, the first of each on its border.
    assert_eq!(all[..3], [0, S / 5, 2 * S / 5].map(Nanos));
    assert_eq!(all[300], Nanos(90 * S));
    assert_eq!(all[301], Nanos::from_secs_f64(90.0 + 1.0 / 0.14));
    assert_eq!(all[307], Nanos(160 * S));
    assert_eq!(
        all[742..745],
        [290.0, 290.0 + 1.0 / 3.0, 290.0 + 2.0 / 3.0].map(Nanos::from_secs_f64)
    );
}

#[test]
fn constant_arrivals_on_a_ramp_follow_the_square() {
    // From 0 to 20 a second in 10 s: 1·t² arrivals, so number n at its root.
    let up: Vec<_> = arrivals("10s@0..20", Process::Constant, 1).collect();
    assert_eq!(up.len(), 100);
    for (n, at) in up.iter().enumerate() {
        assert_eq!(*at, Nanos::from_secs_f64((n as f64).sqrt()), "{n}");
    }
    // Down again it is the same backwards: 100 − (10 − t)².
    let down: Vec<_> = arrivals("10s@20..0", Process::Constant, 1).collect();
    assert_eq!(down.len(), 100);
    for (n, at) in down.iter().enumerate() {
        let expected = Nanos::from_secs_f64(10.0 - (100.0 - n as f64).sqrt());
        assert!(at.0.abs_diff(expected.0) <= 1, "{n}: {at:?} {expected:?}");
    }
    // A ramp whose sum is above its number in binary has no arrival too many.
    let all: Vec<_> = arrivals("50s@4.9,20s@1.1..0", Process::Constant, 1).collect();
    assert_eq!(counts(&all, &[0.0, 50.0, 70.0]), [245, 11]);
}

#[test]
fn an_arrival_that_is_rounded_to_the_end_of_a_stage_is_not_in_it() {
    for seed in 0..20 {
        let all: Vec<_> = arrivals("1us@1e9,1us@0,1us@1e9", Process::Poisson, seed).collect();
        let is_sent = |at: &Nanos| (0..1000).contains(&at.0) || (2000..3000).contains(&at.0);
        assert!(all.iter().all(is_sent), "{seed}");
    }
}

#[test]
fn poisson_stages_hold_what_is_expected() {
    for seed in 1..=5 {
        let all: Vec<_> = arrivals("60s@50,30s@0,60s@200,60s@5", Process::Poisson, seed).collect();
        let counts = counts(&all, &[0.0, 60.0, 90.0, 150.0, 210.0]);
        assert_eq!(counts[1], 0, "a rest");
        for (count, expected) in [(0, 3000.0), (2, 12_000.0), (3, 300.0)] {
            near(counts[count], expected);
        }
        assert_eq!(counts.iter().sum::<usize>(), all.len());
    }
}

#[test]
fn a_ramp_is_denser_by_thirds() {
    // 0 to 60 a second in 90 s: ninths of 2,700 as 1, 3 and 5.
    for process in [Process::Poisson, Process::Constant] {
        let all: Vec<_> = arrivals("90s@0..60", process, 3).collect();
        let thirds = counts(&all, &[0.0, 30.0, 60.0, 90.0]);
        for (count, expected) in thirds.iter().zip([300.0, 900.0, 1500.0]) {
            near(*count, expected);
        }
        if process == Process::Constant {
            assert_eq!(thirds, [300, 900, 1500]);
        }
    }
}

/// The integral of a rate of `mean + amplitude · sin(2πt/period)`.
fn wave(mean: f64, amplitude: f64, period: f64, t: f64) -> f64 {
    let turn = std::f64::consts::TAU / period;
    mean * t + amplitude / turn * (1.0 - (turn * t).cos())
}

#[test]
fn a_sine_has_its_halves() {
    let (mean, amplitude, period) = (50.0, 40.0, 60.0);
    let halves: Vec<f64> = (0..=20).map(|half| f64::from(half) * 30.0).collect();
    for process in [Process::Poisson, Process::Constant] {
        let take = arrivals("sine:50:40:1m", process, 9).take_while(|at| *at < Nanos(600 * S));
        let counts = counts(&take.collect::<Vec<_>>(), &halves);
        for (half, count) in counts.iter().enumerate() {
            let expected = wave(mean, amplitude, period, halves[half + 1])
                - wave(mean, amplitude, period, halves[half]);
            if process == Process::Constant {
                assert!((*count as f64 - expected).abs() <= 1.0, "{count} {expected}");
            } else {
                near(*count, expected);
            }
        }
        // 1500 ± 40·60/π of them, above and below in turn.
        near(counts[0], 1500.0 + 763.94);
        near(counts[1], 1500.0 - 763.94);
    }
}

#[test]
fn constant_arrivals_on_a_sine_are_on_the_nanosecond() {
    for (text, mean, amplitude, period) in
        [("sine:5:4:10m", 5.0, 4.0, 600.0), ("sine:200:200:1s", 200.0, 200.0, 1.0)]
    {
        for (n, at) in arrivals(text, Process::Constant, 1).take(20_000).enumerate() {
            // Half a nanosecond of rounding and the errors of this very sum, by the rate there.
            let turn = std::f64::consts::TAU / period;
            let rate = mean + amplitude * (turn * at.as_secs()).sin();
            let off = (wave(mean, amplitude, period, at.as_secs()) - n as f64).abs();
            assert!(off < 0.6e-9 * rate + 1e-15 * n as f64 + 1e-11, "{text} {n}: {at:?} {off}");
        }
    }
}

#[test]
fn bursts_are_on_time() {
    for process in [Process::Constant, Process::Poisson] {
        let all: Vec<_> = arrivals("bursts:3/30s", process, 1).take(7).collect();
        assert_eq!(all, [0, 0, 0, 30, 30, 30, 60].map(|at| Nanos(at * S)));
    }
    let mut far = arrivals("bursts:1/30s", Process::Constant, 1);
    assert_eq!(far.nth(1_000_000), Some(Nanos(30_000_000 * S)));
}

/// The distance between gaps and the exponential distribution with mean 1.
fn distance(mut gaps: Vec<f64>) -> f64 {
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    gaps.iter().enumerate().fold(0.0, |worst: f64, (i, gap)| {
        let cdf = 1.0 - (-gap).exp();
        worst.max((cdf - i as f64 / n).abs()).max((cdf - (i + 1) as f64 / n).abs())
    })
}

#[test]
fn gaps_in_the_time_of_the_shape_are_those_of_the_process() {
    // Kolmogorov–Smirnov; 1.63/sqrt(n) is the 1 % point.
    let operational = |instants: Vec<Nanos>, expected: &dyn Fn(f64) -> f64| {
        let sums: Vec<f64> = instants.iter().map(|at| expected(at.as_secs())).collect();
        sums.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>()
    };
    let ramp: Vec<_> = arrivals("1000s@0..20", Process::Poisson, 4).collect();
    let gaps = operational(ramp, &|t| 0.01 * t * t);
    let n = gaps.len() as f64;
    assert!(distance(gaps) < 1.63 / n.sqrt());
    let sine: Vec<_> = arrivals("sine:50:50:1m", Process::Poisson, 5).take(20_000).collect();
    let gaps = operational(sine, &|t| wave(50.0, 50.0, 60.0, t));
    assert!(distance(gaps) < 1.63 / 20_000f64.sqrt());
    // In ordinary time they are not.
    let sine: Vec<_> = arrivals("sine:50:50:1m", Process::Poisson, 5).take(20_000).collect();
    assert!(distance(operational(sine, &|t| 50.0 * t)) > 1.63 / 20_000f64.sqrt());
}

#[test]
fn nothing_drifts() {
    // A stage of one rate is the plain process, whose instants are sums of rounded gaps.
    let rate = 1000.0;
    let stage = "2000s@1000";
    let last = arrivals(stage, Process::Constant, 1).nth(1_000_000);
    assert_eq!(last, Some(Nanos(1000 * S)));
    let sine = arrivals("sine:1000:900:10s", Process::Constant, 1).nth(1_000_000);
    assert_eq!(sine, Some(Nanos(1000 * S)), "a hundred periods");
    let plain = ArrivalSequence::new(crate::Rate::PerSecond(rate), Process::Poisson, 6);
    for (n, (one, other)) in
        arrivals(stage, Process::Poisson, 6).zip(plain).take(1_000_001).enumerate()
    {
        // Each rounded gap is off by 0.29 ns (one standard deviation); five of their sum.
        let most = 1.0 + 5.0 * 0.29 * (n as f64).sqrt();
        assert!((one.0.abs_diff(other.0) as f64) < most, "{n}: {one:?} {other:?}");
    }
}

#[test]
fn golden_instants() {
    let take = |text, process| {
        arrivals(text, process, 42).skip(99).step_by(100).take(3).map(|at| at.0).collect::<Vec<_>>()
    };
    let stages = "10s@5,20s@5..50,60s@50";
    assert_eq!(take(stages, Process::Poisson), [14_763_382_513, 20_504_760_248, 23_831_804_719]);
    assert_eq!(take(stages, Process::Gamma(2.0)), [14_574_232_536, 18_792_273_001, 22_273_404_756]);
    let sine = take("sine:5:4:10m", Process::Poisson);
    assert_eq!(sine, [18_447_525_853, 39_038_261_678, 54_689_031_414]);
    let sine = take("sine:5:5:7s", Process::Gamma(0.5));
    assert_eq!(sine, [17_384_814_614, 36_902_367_890, 56_961_730_943]);
}

fn rates() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..50.0, Just(1e-6)]
}

proptest! {
    #[test]
    fn any_stages_end_in_order(
        stages in prop::collection::vec((1u64..20_000, rates(), rates()), 1..8),
        cv in 0.2f64..3.0,
        seed in any::<u64>(),
    ) {
        let stages: Vec<_> = stages
            .into_iter()
            .map(|(ms, from, to)| crate::LoadStage {
                length: std::time::Duration::from_millis(ms),
                from,
                to,
            })
            .collect();
        let expected: f64 =
            stages.iter().map(|s| f64::midpoint(s.from, s.to) * s.length.as_secs_f64()).sum();
        let shape = LoadShape::Stages(stages);
        let end = Nanos::from(shape.length().unwrap());
        let constant: Vec<_> = ArrivalSequence::shaped(&shape, Process::Constant, seed).collect();
        prop_assert!((constant.len() as f64 - expected).abs() <= 1.0 + 1e-9);
        for process in [Process::Constant, Process::Poisson, Process::Gamma(cv)] {
            let all: Vec<_> = ArrivalSequence::shaped(&shape, process, seed).collect();
            prop_assert!(all.is_sorted());
            prop_assert!(all.last().is_none_or(|at| *at < end));
            let again: Vec<_> = ArrivalSequence::shaped(&shape, process, seed).collect();
            prop_assert_eq!(all, again);
        }
    }
}
