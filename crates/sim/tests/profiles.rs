//! The built-in profiles against what they stand for.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{drain, engine, poisson, quantile, unique};
use goodput_model::Nanos;
use goodput_model::random::{Domain, RandomStream};
use goodput_sim::{EngineProfile, JobArrival, JobOutcome, Profile, StepCost, StepShape, simulate};

fn step(name: &str) -> StepCost {
    match Profile::builtin(name).unwrap().engine {
        EngineProfile::Batching(batching) => batching.step,
        EngineProfile::Delays(_) => panic!("{name} has no steps"),
    }
}

#[test]
fn every_measured_step_of_the_h200_is_met() {
    let step = step("llama-8b-1xh200");
    let table = include_str!("../../../docs/profiles/llama-8b-1xh200.csv");
    let mut rows = 0;
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let (batch, tokens): (u32, u32) = (fields[1].parse().unwrap(), fields[2].parse().unwrap());
        let mut shape = StepShape::default();
        for _ in 0..batch {
            if fields[0] == "decode" { shape.decode(1, tokens) } else { shape.prefill(tokens, 0) }
        }
        let measured: f64 = fields[3].parse().unwrap();
        let error = step.ms(&shape) / measured - 1.0;
        assert!(error.abs() < 0.04, "{line}: {error:+.3}");
        rows += 1;
    }
    assert_eq!(rows, 78);
}

#[test]
fn a_mixed_step_of_the_h200_costs_what_its_tokens_cost() {
    // 256 tokens of each kind against 512 decode tokens of half the context: the same KV reads.
    let step = step("llama-8b-1xh200");
    let mut mixed = StepShape::default();
    let mut all = StepShape::default();
    for i in 0..512 {
        if i < 256 {
            mixed.decode(1, 128);
        }
        all.decode(1, 64);
    }
    mixed.prefill(256, 0);
    let ratio = step.ms(&mixed) / step.ms(&all);
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}

/// Tokens a second of `batch` sequences that decode together.
fn decode_rate(profile: &Profile, batch: u64) -> f64 {
    let mut engine = engine(profile);
    for id in 0..batch {
        engine.submit(Nanos::ZERO, unique(id, 16, 200)).unwrap();
    }
    let outputs = drain(&mut engine);
    // All of them are past their prefill in the hundredth token, and none has finished.
    let at = |total: u32| outputs.iter().find(|o| o.total_tokens == total).unwrap().at;
    (batch * 50) as f64 / (at(150) - at(100)).as_secs()
}

#[test]
fn the_70b_decodes_as_fast_as_its_table_says() {
    let profile = Profile::builtin("llama-70b-8xh100").unwrap();
    for (batch, expected) in [
        (1, 24.0),
        (4, 95.0),
        (16, 380.0),
        (32, 750.0),
        (64, 1480.0),
        (128, 2900.0),
        (256, 4800.0),
        (512, 6200.0),
    ] {
        let rate = decode_rate(&profile, batch);
        println!("| {batch} | {expected} | {rate:.0} |");
        assert!((rate / expected - 1.0).abs() < 0.05, "batch {batch}: {rate} is not {expected}");
    }
}

/// Chat traffic: log-normal lengths, clipped; `centre` makes the median, or the mean, 500 and 200.
fn chat(rate: f64, seconds: f64, centre: f64) -> Vec<JobArrival> {
    poisson(7, rate, (rate * seconds) as u64, |id| {
        let mut lengths = RandomStream::new(7, Domain::Lengths, id);
        let prompt = lengths.log_normal(500.0 * centre, 0.8).clamp(50.0, 4000.0) as u32;
        let output = lengths.log_normal(200.0 * centre, 0.8).clamp(10.0, 2000.0) as u32;
        unique(id, prompt, output)
    })
}

/// Median and 99th percentile of TTFT in milliseconds, from the second minute on.
fn ttft(profile: &Profile, rate: f64, seconds: f64, centre: f64) -> (f64, f64) {
    ttft_of(profile, chat(rate, seconds, centre))
}

fn ttft_of(profile: &Profile, arrivals: Vec<JobArrival>) -> (f64, f64) {
    let outcomes = simulate(&mut engine(profile), arrivals);
    let mut values: Vec<f64> = outcomes
        .iter()
        .filter(|outcome| outcome.arrived >= Nanos::from_millis(60_000))
        .map(|outcome| (outcome.first_token.unwrap() - outcome.arrived).as_ms())
        .collect();
    (quantile(&mut values, 0.5), quantile(&mut values, 0.99))
}

/// `exp(-sigma² / 2)`: what the median is of the mean.
const MEAN: f64 = 0.726_149;

#[test]
fn the_70b_under_chat_traffic() {
    let profile = Profile::builtin("llama-70b-8xh100").unwrap();
    for (centre, kept, saturates) in [(1.0, 21.0, 25.0), (MEAN, 30.0, 35.0)] {
        let (p50, _) = ttft(&profile, 1.0, 1200.0, centre);
        assert!((p50 / 82.0 - 1.0).abs() < 0.1, "{p50}");
        let (_, p99) = ttft(&profile, kept, 600.0, centre);
        assert!(p99 < 500.0, "{p99}");
        // Saturated: the backlog, and so the wait, grows with the length of the run.
        let (short, _) = ttft(&profile, saturates, 180.0, centre);
        let (long, _) = ttft(&profile, saturates, 600.0, centre);
        assert!(short > 1000.0 && long > 2.5 * short, "{short} {long}");
    }
    // The given curve passes 500 ms at about 22 requests/s: this one between 21 and 23.
    let (_, p99) = ttft(&profile, 23.0, 600.0, 1.0);
    assert!(p99 > 500.0, "{p99}");
}

#[test]
fn the_light_profile_crosses_half_a_second_between_90_and_105() {
    let profile = Profile::builtin("light").unwrap();
    // Lengths of the workload short_chat.
    let short_chat = |rate: f64| {
        poisson(7, rate, (rate * 600.0) as u64, |id| {
            let mut lengths = RandomStream::new(7, Domain::Lengths, id);
            let prompt = lengths.log_normal(200.0, 0.8).clamp(20.0, 2000.0) as u32;
            unique(id, prompt, lengths.log_normal(30.0, 0.8).clamp(5.0, 300.0) as u32)
        })
    };
    let p99 = |rate| ttft_of(&profile, short_chat(rate)).1;
    assert!(p99(90.0) < 250.0 && p99(105.0) > 1000.0, "{} {}", p99(90.0), p99(105.0));
}

#[test]
fn the_demo_is_quick_and_bends_between_40_and_60() {
    let profile = Profile::builtin("demo").unwrap();
    let run = |rate: f64| {
        let outcomes = simulate(&mut engine(&profile), chat(rate, 240.0, 1.0));
        let measured = outcomes.iter().filter(|o| o.arrived >= Nanos::from_millis(60_000));
        let of =
            |value: &dyn Fn(&JobOutcome) -> f64| measured.clone().map(value).collect::<Vec<f64>>();
        let mut ttft = of(&|o| (o.first_token.unwrap() - o.arrived).as_ms());
        let mut tpot = of(&|o| {
            (o.finished.unwrap() - o.first_token.unwrap()).as_ms() / f64::from(o.output_tokens - 1)
        });
        let e2e = of(&|o| (o.finished.unwrap() - o.arrived).as_ms());
        let mean = e2e.iter().sum::<f64>() / e2e.len() as f64;
        let most = e2e.iter().copied().fold(0.0, f64::max);
        let p50 = quantile(&mut ttft, 0.5);
        ([p50, quantile(&mut ttft, 0.99), quantile(&mut tpot, 0.5)], mean, most)
    };
    let ([unloaded, _, alone], ..) = run(1.0);
    assert!((13.0..18.0).contains(&unloaded), "{unloaded}");
    let (_, mean, most) = run(20.0);
    assert!((400.0..600.0).contains(&mean) && most < 5000.0, "{mean} {most}");
    let ([_, calm, batched], ..) = run(40.0);
    let ([_, late, _], ..) = run(60.0);
    assert!(calm < 100.0 && late > 1000.0, "{calm} {late}");
    assert!(batched > 1.3 * alone, "{batched} {alone}");
}

/// The table of docs/profiles.md: `cargo test -p goodput-sim --test profiles -- --ignored --nocapture`.
#[test]
#[ignore = "prints a table"]
fn print_the_70b_curve() {
    let profile = Profile::builtin("llama-70b-8xh100").unwrap();
    for rate in [1.0, 5.0, 10.0, 15.0, 20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 30.0, 35.0, 40.0] {
        let (a, b) = ttft(&profile, rate, 600.0, 1.0);
        let (c, d) = ttft(&profile, rate, 600.0, MEAN);
        println!("| {rate} | {a:.0} / {b:.0} | {c:.0} / {d:.0} |");
    }
}
