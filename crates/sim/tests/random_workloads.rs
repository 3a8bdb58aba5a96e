//! What must hold whatever arrives.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{changed, engine, job, small};
use goodput_model::Nanos;
use goodput_sim::{JobArrival, Output, Profile, SimEngine, SimJob, simulate};
use proptest::prelude::*;

/// An engine with little memory, in one of its variants; the last one has slots.
fn variant(number: usize, blocks: u32) -> Profile {
    let blocks = blocks.to_string();
    let base = small(&[("kv_blocks", blocks.as_str()), ("max_num_batched_tokens", "30")]);
    match number {
        0 => base,
        1 => changed(base, &[("prefix_caching", "off"), ("frontend", "2ms")]),
        2 => changed(base, &[("speculative", "3:0.6"), ("first_use", "5ms")]),
        3 => changed(base, &[("disaggregated", "2"), ("cold_start", "70ms")]),
        4 => changed(base, &[("speculative", "2:0.9"), ("disaggregated", "1")]),
        5 => changed(base, &[("chunked_prefill", "off"), ("precision", "fp8")]),
        6 => changed(base, &[("chunked_prefill", "off"), ("disaggregated", "1"), ("tp", "2")]),
        _ => {
            let default = Profile::builtin("default").unwrap();
            changed(default, &[("slots", "3"), ("ttft", "exp:20ms"), ("itl", "uniform:1ms:9ms")])
        }
    }
}
const VARIANTS: usize = 8;

/// Blocks that every generated request fits in: 47 + 20 tokens.
const LEAST: u32 = 17;

/// Requests with prompts that often share a beginning, in order of arrival.
fn workload() -> impl Strategy<Value = Vec<JobArrival>> {
    let request = (0u64..40, 0u32..3, 0u32..48, 0u32..=20);
    prop::collection::vec(request, 1..40).prop_map(|requests| {
        let mut at = 0;
        let make = |(id, (gap, family, length, output)): (usize, (u64, u32, u32, u32))| {
            at += gap;
            let own = 100 + id as u32;
            let shared = if family == 0 { 0 } else { 30 };
            let tokens = (0..length).map(|i| if i < shared { family } else { own }).collect();
            JobArrival { at: Nanos::from_millis(at), job: job(id as u64, tokens, output) }
        };
        requests.into_iter().enumerate().map(make).collect()
    })
}

/// Everything that comes of a workload, with the clock moved on in strides of `stride`, if any,
/// and `see` called after each move.
fn run(
    engine: &mut SimEngine,
    arrivals: &[JobArrival],
    stride: Option<u64>,
    mut see: impl FnMut(&SimEngine),
) -> Vec<Output> {
    let mut out = Vec::new();
    let mut now = Nanos::ZERO;
    let mut to = |engine: &mut SimEngine, until: Nanos, out: &mut Vec<Output>| {
        while let Some(stride) = stride
            && now + Nanos(stride) < until
        {
            now += Nanos(stride);
            engine.advance(now, out);
            see(engine);
        }
        now = now.max(until);
        engine.advance(now, out);
        see(engine);
    };
    for (i, JobArrival { at, job }) in arrivals.iter().enumerate() {
        if i == 0 || arrivals[i - 1].at < *at {
            to(engine, *at, &mut out);
        }
        engine.submit(*at, job.clone()).unwrap();
    }
    to(engine, Nanos::from_millis(60_000), &mut out);
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn every_job_finishes_whole_and_the_cache_holds(
        arrivals in workload(),
        number in 0..VARIANTS,
        blocks in LEAST..40,
    ) {
        let mut engine = engine(&variant(number, blocks));
        let out = run(&mut engine, &arrivals, Some(3_000_000), |engine| {
            let gauges = engine.gauges();
            assert!(gauges.kv_blocks_used <= gauges.kv_blocks_total);
        });
        prop_assert_eq!(engine.next(), None);
        let gauges = engine.gauges();
        prop_assert_eq!((gauges.running, gauges.waiting, gauges.kv_blocks_used), (0, 0, 0));
        prop_assert!(out.windows(2).all(|pair| pair[0].at <= pair[1].at));
        for JobArrival { at, job } in &arrivals {
            let own: Vec<&Output> = out.iter().filter(|output| output.id == job.id).collect();
            let mut total = 0;
            for (i, output) in own.iter().enumerate() {
                total += output.new_tokens;
                prop_assert_eq!(output.total_tokens, total);
                prop_assert_eq!(output.finished, i + 1 == own.len());
                prop_assert!(*at <= output.admitted && output.admitted <= output.at);
                prop_assert!(output.new_tokens > 0 || job.output_tokens == 0);
                prop_assert!(output.cached_tokens as usize <= job.prompt.len());
            }
            prop_assert_eq!(total, job.output_tokens);
            prop_assert!(!own.is_empty());
        }
    }

    #[test]
    fn small_moves_of_the_clock_change_nothing(
        arrivals in workload(),
        number in 0..VARIANTS,
        stride in 100_000u64..30_000_000,
    ) {
        let profile = variant(number, 24);
        let whole = run(&mut engine(&profile), &arrivals, None, |_| {});
        let parts = run(&mut engine(&profile), &arrivals, Some(stride), |_| {});
        prop_assert_eq!(&whole, &parts);
        let again = run(&mut engine(&profile), &arrivals, None, |_| {});
        prop_assert_eq!(&whole, &again);
    }

    #[test]
    fn clients_that_leave_leave_nothing_behind(
        arrivals in workload(),
        number in 0..VARIANTS,
        leave in prop::collection::vec((0usize..40, 0u64..40), 1..30),
    ) {
        let mut engine = engine(&variant(number, LEAST));
        let mut out = Vec::new();
        let mut left = Vec::new();
        let mut leaving = leave.into_iter();
        let mut came = Vec::new();
        for JobArrival { at, job } in &arrivals {
            engine.advance(*at, &mut out);
            engine.submit(*at, job.clone()).unwrap();
            came.push(job.id);
            if let Some((who, when)) = leaving.next() {
                engine.advance(*at + Nanos::from_millis(when), &mut out);
                engine.cancel(who as u64);
                // Only who has come can leave.
                left.extend(came.contains(&(who as u64)).then_some((who as u64, out.len())));
            }
        }
        engine.advance(Nanos::from_millis(600_000), &mut out);
        let gauges = engine.gauges();
        prop_assert_eq!((gauges.running, gauges.waiting, gauges.kv_blocks_used), (0, 0, 0));
        prop_assert_eq!(engine.next(), None);
        for (id, from) in left {
            prop_assert!(out[from..].iter().all(|output| output.id != id), "{}", id);
        }
    }

    #[test]
    fn nothing_that_can_be_said_to_it_breaks_it(
        words in prop::collection::vec((0u8..6, any::<u64>(), 0u32..70, 0u32..70), 1..80),
        number in 0..VARIANTS,
    ) {
        let mut engine = engine(&variant(number, 8));
        let mut out = Vec::new();
        for (word, at, length, output) in words {
            // Instants anywhere, in any order; ids that come twice; jobs that cannot fit.
            let at = if at % 3 == 0 { Nanos(at) } else { Nanos(at % 1_000_000_000) };
            match word {
                0..=2 => {
                    let prompt = vec![length; length as usize];
                    let _ = engine.submit(at, job(u64::from(output % 9), prompt, output));
                }
                3 => engine.advance(at, &mut out),
                4 => engine.cancel(u64::from(output % 9)),
                _ => engine.hold(at, Nanos(at.0 / 2)),
            }
            let _ = (engine.next(), engine.gauges());
        }
        engine.reset_prefix_cache();
        engine.advance(Nanos(u64::MAX), &mut out);
        prop_assert_eq!(engine.gauges().running + engine.gauges().waiting, 0);
    }
}

#[test]
fn little_memory_means_preemptions_and_all_finish_all_the_same() {
    let jobs = |n: u64| {
        (0..n).map(|id| JobArrival { at: Nanos::from_millis(id), job: common::unique(id, 30, 30) })
    };
    let mut engine = engine(&small(&[("kv_blocks", "40")]));
    let outcomes = simulate(&mut engine, jobs(50));
    let gauges = engine.gauges();
    assert!(gauges.preemptions > 10, "{}", gauges.preemptions);
    assert_eq!(outcomes.iter().map(|o| u64::from(o.preemptions)).sum::<u64>(), gauges.preemptions);
    assert!(outcomes.iter().all(|o| o.output_tokens == 30 && o.finished.is_some()));
    // In order of arrival: no request overtakes another.
    assert!(outcomes.windows(2).all(|pair| pair[0].admitted <= pair[1].admitted));
}

#[test]
fn ten_thousand_sequences_take_as_many_steps_as_tokens() {
    // Work is counted, not timed: one output a token and one step a round, however many run.
    let mut profile = small(&[("kv_blocks", "200000"), ("max_num_batched_tokens", "200000")]);
    profile.set("max_num_seqs", "10000").unwrap();
    let mut engine = engine(&profile);
    for id in 0..10_000 {
        let SimJob { prompt, .. } = common::unique(id, 8, 1);
        engine
            .submit(Nanos::ZERO, SimJob { id, prompt, output_tokens: 50, answer_seed: id })
            .unwrap();
    }
    let out = common::drain(&mut engine);
    assert_eq!((out.len(), engine.gauges().steps), (500_000, 50));
    assert_eq!(engine.gauges().preemptions, 0);
}
