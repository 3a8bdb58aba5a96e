//! Both models against the laws of queueing.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{engine, mean, poisson, small, standard_error, unique};
use goodput_model::random::{Domain, RandomStream};
use goodput_model::{Delay, Nanos};
use goodput_sim::{JobArrival, JobOutcome, Profile, SimEngine, simulate};

/// Drives the engine from event to event, integrates the number of requests in it, and compares
/// that with the sum of their times: the finite form of Little's law, exact to the nanosecond.
fn little(profile: &Profile, arrivals: &[JobArrival]) {
    let mut engine = engine(profile);
    let (mut out, mut area, mut last) = (Vec::new(), 0u128, Nanos::ZERO);
    let mut to = |engine: &mut SimEngine, at: Nanos, out: &mut Vec<_>| {
        let gauges = engine.gauges();
        area += u128::from(gauges.running + gauges.waiting) * u128::from((at - last).0);
        last = at;
        engine.advance(at, out);
    };
    for arrival in arrivals {
        while let Some(at) = engine.next().filter(|at| *at <= arrival.at) {
            to(&mut engine, at, &mut out);
        }
        to(&mut engine, arrival.at, &mut out);
        engine.submit(arrival.at, arrival.job.clone()).unwrap();
    }
    while let Some(at) = engine.next() {
        to(&mut engine, at, &mut out);
    }
    let times: u128 = out
        .iter()
        .filter(|output| output.finished)
        .map(|output| u128::from((output.at - arrivals[output.id as usize].at).0))
        .sum();
    assert_eq!(area, times);
    assert_eq!(out.iter().filter(|output| output.finished).count(), arrivals.len());
}

#[test]
fn littles_law_holds_exactly() {
    let mut delays = Profile::builtin("default").unwrap();
    for (key, value) in [("slots", "5"), ("ttft", "exp:40ms"), ("itl", "lognormal:9ms:0.7")] {
        delays.set(key, value).unwrap();
    }
    let arrivals = poisson(3, 20.0, 2000, |id| unique(id, 10, 1 + id as u32 % 30));
    little(&delays, &arrivals);
    // Preemptions, a frontend and chunks included.
    little(&small(&[("kv_blocks", "40"), ("frontend", "3ms")]), &arrivals);
    let split = [("kv_blocks", "40"), ("disaggregated", "2"), ("cold_start", "1s")];
    little(&small(&split), &arrivals);
}

/// Waits for a slot in seconds, without the first tenth.
fn waits(changes: &[(&str, &str)], rate: f64, count: u64) -> Vec<f64> {
    let mut profile = Profile::builtin("default").unwrap();
    for (key, value) in changes {
        profile.set(key, value).unwrap();
    }
    let wait = |outcome: &JobOutcome| (outcome.admitted.unwrap() - outcome.arrived).as_secs();
    let arrivals = poisson(11, rate, count, |id| unique(id, 1, 1));
    let outcomes = simulate(&mut engine(&profile), arrivals);
    outcomes.iter().skip(count as usize / 10).map(wait).collect()
}

/// The mean within four standard errors (from batch means) of what theory says, where the
/// standard error itself is small enough for the comparison to mean something.
fn agrees(what: &str, values: &[f64], expected: f64) {
    let (actual, error) = (mean(values), standard_error(values));
    assert!(error < 0.04 * expected, "{what}: too few: {error} of {expected}");
    assert!((actual - expected).abs() < 4.0 * error, "{what}: {actual} ± {error}, not {expected}");
}

/// Mean wait with `n` servers of mean service time 1 and this arrival rate.
fn erlang_c(n: u32, rate: f64) -> f64 {
    // The recursion of Erlang's B, then C from B.
    let b = (1..=n).fold(1.0, |b, k| rate * b / (f64::from(k) + rate * b));
    let use_ = rate / f64::from(n);
    let c = b / (1.0 - use_ * (1.0 - b));
    c / (f64::from(n) - rate)
}

#[test]
fn many_slots_wait_as_erlang_says() {
    assert!((erlang_c(1, 0.5) - 1.0).abs() < 1e-12);
    for (slots, rate) in [("1", 0.7), ("4", 3.2), ("16", 13.0)] {
        let values = waits(&[("slots", slots), ("ttft", "exp:1s")], rate, 400_000);
        agrees(&format!("M/M/{slots}"), &values, erlang_c(slots.parse().unwrap(), rate));
    }
}

#[test]
fn one_slot_waits_as_pollaczek_and_khinchine_say() {
    // Mean wait: λ E[S²] / (2 (1 - λ E[S])).
    let rate = 0.7;
    let wait = |first: f64, second: f64| rate * second / (2.0 * (1.0 - rate * first));
    let fixed = waits(&[("slots", "1"), ("ttft", "1s")], rate, 200_000);
    agrees("M/D/1", &fixed, wait(1.0, 1.0));
    let even = waits(&[("slots", "1"), ("ttft", "uniform:500ms:1500ms")], rate, 200_000);
    agrees("M/U/1", &even, wait(1.0, 1.0 + 1.0 / 12.0));
    // Log-normal with median 0.8 and sigma 0.6: moments exp(k²σ²/2) times the median's power.
    let skewed = waits(&[("slots", "1"), ("ttft", "lognormal:800ms:0.6")], rate, 400_000);
    let moment = |k: f64| 0.8f64.powf(k) * (k * k * 0.36 / 2.0).exp();
    agrees("M/G/1", &skewed, wait(moment(1.0), moment(2.0)));
}

#[test]
fn delays_are_drawn_by_seed_and_number() {
    let (ttft, itl) = ("exp:40ms", "lognormal:9ms:0.7");
    let mut profile = Profile::builtin("default").unwrap();
    for (key, value) in [("ttft", ttft), ("itl", itl), ("slots", "1")] {
        profile.set(key, value).unwrap();
    }
    let mut engine = SimEngine::new(&profile, 5, common::token_of);
    engine.submit(Nanos(100), unique(8, 1, 4)).unwrap();
    engine.submit(Nanos(100), unique(3, 1, 2)).unwrap();
    let out = common::drain(&mut engine);
    // The second starts at the very instant at which the first ends.
    let (mut at, mut expected) = (Nanos(100), Vec::new());
    for (id, tokens) in [(8, 4), (3, 2)] {
        let mut stream = RandomStream::new(5, Domain::Service, id);
        for token in 0..tokens {
            let delay: Delay = if token == 0 { ttft } else { itl }.parse().unwrap();
            at += delay.draw(&mut stream);
            expected.push((id, at));
        }
    }
    assert_eq!(out.iter().map(|output| (output.id, output.at)).collect::<Vec<_>>(), expected);
}

#[test]
fn a_short_queue_refuses_the_rest() {
    let jobs = |n: u64| (0..n).map(|id| JobArrival { at: Nanos::ZERO, job: unique(id, 4, 2) });
    let refused =
        |outcomes: &[JobOutcome]| outcomes.iter().filter(|outcome| outcome.refused).count();
    let mut profile = Profile::builtin("default").unwrap();
    profile.set("slots", "2").unwrap();
    profile.set("max_queue", "3").unwrap();
    let outcomes = simulate(&mut engine(&profile), jobs(10));
    assert_eq!(refused(&outcomes), 5);
    assert!(outcomes[..5].iter().all(|outcome| outcome.finished.is_some()));
    assert!(
        outcomes[5..].iter().all(|o| o.refused && o.finished.is_none() && o.output_tokens == 0)
    );
    let outcomes = simulate(&mut engine(&small(&[("max_queue", "3")])), jobs(10));
    assert_eq!(refused(&outcomes), 7);
    // Room again once they are scheduled.
    let later =
        (0..2).map(|id| JobArrival { at: Nanos::from_millis(id * 11), job: unique(id, 4, 2) });
    assert_eq!(refused(&simulate(&mut engine(&small(&[("max_queue", "1")])), later)), 0);
}
