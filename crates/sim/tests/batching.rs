//! The scheduler against instants worked out by hand.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{changed, drain, engine, instants, job, mean, small, standard_error, unique};
use goodput_model::Nanos;
use goodput_sim::{EngineProfile, JobArrival, Output, Profile, SimEngine, Time, simulate};
use std::time::Duration;

fn ms(at: u64) -> Nanos {
    Nanos::from_millis(at)
}

fn submit(engine: &mut SimEngine, at: u64, id: u64, prompt: u32, output: u32) {
    engine.submit(ms(at), unique(id, prompt, output)).unwrap();
}

fn advance(engine: &mut SimEngine, to: u64) -> Vec<Output> {
    let mut out = Vec::new();
    engine.advance(ms(to), &mut out);
    out
}

#[test]
fn a_request_alone() {
    let mut engine = engine(&small(&[("frontend", "3ms")]));
    assert_eq!(engine.next(), None);
    submit(&mut engine, 100, 1, 40, 3);
    let out = drain(&mut engine);
    // Frontend 3, prefill 10 + 4, then two decode steps of 10.
    assert_eq!(instants(&out, 1), [117.0, 127.0, 137.0]);
    assert_eq!(out.iter().map(|o| o.total_tokens).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(out.iter().map(|o| o.finished).collect::<Vec<_>>(), [false, false, true]);
    assert!(out.iter().all(|o| o.admitted == ms(103) && o.new_tokens == 1));
    assert_eq!((engine.next(), engine.gauges().steps), (None, 3));
}

#[test]
fn prefill_only_finishes_at_the_end_of_its_prefill() {
    let mut engine = engine(&small(&[]));
    submit(&mut engine, 0, 1, 40, 0);
    engine.submit(ms(0), job(2, Vec::new(), 1)).unwrap();
    let out = drain(&mut engine);
    // 40 tokens and the one token of an empty prompt in one step.
    assert_eq!(instants(&out, 1), [14.1]);
    assert_eq!((out[0].new_tokens, out[0].total_tokens, out[0].finished), (0, 0, true));
    assert_eq!((out[1].new_tokens, out[1].finished), (1, true));
}

#[test]
fn a_prompt_is_admitted_when_all_of_it_fits() {
    let mut engine = engine(&small(&[("kv_blocks", "50")]));
    submit(&mut engine, 0, 1, 96, 3);
    submit(&mut engine, 0, 2, 120, 1);
    let out = drain(&mut engine);
    assert_eq!(instants(&out, 1), [19.6, 29.6, 39.6]);
    // There was budget for four of its tokens at 0, but 26 free blocks are not the 30 it needs.
    // From 39.6 on: 100 tokens in 20 ms, 20 tokens in 12.
    assert_eq!(instants(&out, 2), [71.6]);
    assert_eq!(out.last().map(|output| output.admitted.as_ms()), Some(39.6));
}

#[test]
fn arrivals_during_a_step_wait_for_the_next() {
    let mut engine = engine(&small(&[]));
    submit(&mut engine, 0, 1, 10, 4);
    assert_eq!(advance(&mut engine, 5), []);
    submit(&mut engine, 5, 2, 10, 2);
    let out = drain(&mut engine);
    // First step 11; the second has one decode and ten prefill tokens: 11; then 10.
    assert_eq!(instants(&out, 1), [11.0, 22.0, 32.0, 42.0]);
    assert_eq!(instants(&out, 2), [22.0, 32.0]);
    assert_eq!(out.iter().find(|o| o.id == 2).unwrap().admitted, ms(11));
    // Outputs of one step come in the order of the running list.
    assert_eq!(out.iter().map(|o| o.id).collect::<Vec<_>>(), [1, 1, 2, 1, 2, 1]);
}

#[test]
fn a_long_prompt_goes_in_chunks_while_others_decode() {
    let mut engine = engine(&small(&[]));
    submit(&mut engine, 0, 1, 10, 6);
    advance(&mut engine, 1);
    submit(&mut engine, 1, 2, 250, 2);
    let out = drain(&mut engine);
    // 11; then steps of 100 tokens, of which one decodes: 99, 99, 52 of prefill.
    let steps = [11.0, 11.0 + 19.9, 30.9 + 19.9, 50.8 + 15.2, 66.0 + 10.0, 76.0 + 10.0];
    let close = |a: &[f64], b: &[f64]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6)
    };
    assert!(close(&instants(&out, 1), &steps), "{:?}", instants(&out, 1));
    assert!(close(&instants(&out, 2), &steps[3..5]), "{:?}", instants(&out, 2));
}

#[test]
fn whole_prompts_go_first_where_there_are_no_chunks() {
    let mut engine = engine(&small(&[("chunked_prefill", "off")]));
    submit(&mut engine, 0, 1, 10, 6);
    advance(&mut engine, 1);
    submit(&mut engine, 1, 2, 250, 2);
    let out = drain(&mut engine);
    // 11; then 250 tokens in one step, beyond the budget of 100, for which the first waits 35 ms.
    assert_eq!(instants(&out, 2), [46.0, 56.0]);
    assert_eq!(instants(&out, 1), [11.0, 56.0, 66.0, 76.0, 86.0, 96.0]);
}

#[test]
fn whole_prompts_share_a_step_as_far_as_they_fit() {
    let mut engine = engine(&small(&[("chunked_prefill", "off")]));
    for (id, prompt) in [(1, 60), (2, 40), (3, 1), (4, 99)] {
        submit(&mut engine, 0, id, prompt, 2);
    }
    let out = drain(&mut engine);
    // 100 tokens, 100 tokens, and then all decode.
    let first = |id| instants(&out, id)[0];
    assert_eq!([first(1), first(2), first(3), first(4)], [20.0, 20.0, 40.0, 40.0]);
    assert!((1..=4).all(|id| instants(&out, id)[1] == 50.0), "{out:?}");
    // With prefill workers of its own, the decode worker never waits for a prompt.
    let apart = [("chunked_prefill", "off"), ("disaggregated", "1")];
    let mut engine = common::engine(&small(&apart));
    submit(&mut engine, 0, 1, 10, 4);
    submit(&mut engine, 0, 2, 150, 1);
    let out = drain(&mut engine);
    assert_eq!(instants(&out, 1), [11.0, 21.0, 31.0, 41.0]);
    assert_eq!(instants(&out, 2), [36.0]);
}

#[test]
fn the_budget_holds_in_every_step() {
    // Alone, n tokens take ceil(n / 100) steps of 10 ms and n tenths of a millisecond.
    for (prompt, steps) in [(99, 1), (100, 1), (101, 2), (200, 2), (950, 10)] {
        let mut engine = engine(&small(&[]));
        submit(&mut engine, 0, 1, prompt, 1);
        let out = drain(&mut engine);
        assert_eq!(engine.gauges().steps, steps);
        assert_eq!(out[0].at, Nanos(steps * 10_000_000 + u64::from(prompt) * 100_000), "{prompt}");
    }
    // A step's length shows its prefill tokens; with those decoded they are never more than 100.
    let mut engine = engine(&small(&[]));
    for id in 0..30 {
        submit(&mut engine, 0, id, 70 + id as u32 * 7, 9);
    }
    let (mut last, mut out, mut fullest) = (Nanos::ZERO, Vec::new(), 0);
    while let Some(at) = engine.next() {
        out.clear();
        engine.advance(at, &mut out);
        let decoded = out.iter().filter(|output| output.total_tokens > 1).count() as u64;
        let prefilled = (at - last).0.saturating_sub(10_000_000) / 100_000;
        fullest = fullest.max(decoded + prefilled);
        assert!(engine.gauges().running <= 8);
        last = at;
    }
    assert_eq!(fullest, 100);
}

#[test]
fn who_leaves_frees_place_and_blocks_at_once() {
    let mut engine = engine(&small(&[("max_num_seqs", "1")]));
    submit(&mut engine, 0, 1, 10, 50);
    submit(&mut engine, 0, 2, 10, 1);
    submit(&mut engine, 0, 3, 10, 1);
    advance(&mut engine, 15);
    assert_eq!(engine.gauges().kv_blocks_used, 3);
    engine.cancel(1);
    engine.cancel(2);
    engine.cancel(99);
    let gauges = engine.gauges();
    assert_eq!((gauges.running, gauges.waiting, gauges.kv_blocks_used), (0, 1, 0));
    let out = drain(&mut engine);
    // The current step ends at 21, then the third has the engine to itself.
    assert_eq!(out.iter().map(|o| (o.id, o.at)).collect::<Vec<_>>(), [(3, ms(32))]);
    // In the frontend, and alone in a step.
    let mut engine = common::engine(&small(&[("frontend", "5ms")]));
    submit(&mut engine, 0, 1, 10, 9);
    engine.cancel(1);
    assert_eq!((drain(&mut engine), engine.gauges().waiting), (vec![], 0));
    submit(&mut engine, 50, 2, 10, 9);
    advance(&mut engine, 60);
    engine.cancel(2);
    assert_eq!((drain(&mut engine), engine.gauges().kv_blocks_used), (vec![], 0));
    // The same for slots: the next one starts when the first leaves.
    let slots = changed(Profile::builtin("default").unwrap(), &[("slots", "1")]);
    let mut engine = common::engine(&slots);
    for id in 1..=3 {
        submit(&mut engine, 0, id, 1, 2);
    }
    advance(&mut engine, 20);
    engine.cancel(1);
    engine.cancel(2);
    assert_eq!(instants(&drain(&mut engine), 3), [70.0, 80.0]);
}

#[test]
fn held_everything_is_later() {
    for (profile, length) in [(small(&[("frontend", "2ms")]), 100), (small(&[]), 1)] {
        let run = |hold: bool| {
            let mut engine = engine(&profile);
            submit(&mut engine, 0, 1, 10, 5);
            advance(&mut engine, 16);
            submit(&mut engine, 16, 2, 10, 5);
            if hold {
                engine.hold(ms(16), ms(length));
            }
            drain(&mut engine)
        };
        let later: Vec<Output> = run(false)
            .into_iter()
            .map(|o| if o.at > ms(16) { Output { at: o.at + ms(length), ..o } } else { o })
            .collect();
        let at = |outputs: &[Output]| outputs.iter().map(|o| (o.id, o.at)).collect::<Vec<_>>();
        assert_eq!(at(&run(true)), at(&later));
    }
    // Idle: who comes during the hold starts after it.
    let mut idle = engine(&small(&[]));
    idle.hold(ms(10), ms(30));
    submit(&mut idle, 20, 1, 10, 1);
    assert_eq!(instants(&drain(&mut idle), 1), [51.0]);
    // The frontend and transfers stand still as well.
    let mut frontend = engine(&small(&[("frontend", "5ms")]));
    submit(&mut frontend, 0, 1, 10, 1);
    advance(&mut frontend, 2);
    frontend.hold(ms(2), ms(30));
    advance(&mut frontend, 10);
    submit(&mut frontend, 10, 2, 10, 1);
    let out = drain(&mut frontend);
    assert_eq!((instants(&out, 1), instants(&out, 2)), (vec![46.0], vec![57.0]));
    let mut transfer = engine(&split());
    submit(&mut transfer, 0, 1, 10, 2);
    advance(&mut transfer, 12);
    transfer.hold(ms(12), ms(30));
    assert_eq!(instants(&drain(&mut transfer), 1), [47.0, 57.0]);
    let mut slots = engine(&Profile::builtin("default").unwrap());
    submit(&mut slots, 0, 1, 1, 2);
    advance(&mut slots, 10);
    slots.hold(ms(10), ms(30));
    submit(&mut slots, 20, 2, 1, 1);
    let out = drain(&mut slots);
    assert_eq!((instants(&out, 1), instants(&out, 2)), (vec![80.0, 90.0], vec![90.0]));
}

#[test]
fn a_cold_engine_starts_first() {
    let profile = small(&[("cold_start", "1s"), ("idle_timeout", "5s")]);
    let mut engine = engine(&profile);
    submit(&mut engine, 500, 1, 10, 1);
    advance(&mut engine, 600);
    submit(&mut engine, 600, 2, 10, 1);
    let out = drain(&mut engine);
    // Both in the first step after the start.
    assert_eq!((instants(&out, 1), instants(&out, 2)), (vec![1512.0], vec![1512.0]));
    // Still warm after 5 s; cold after more.
    advance(&mut engine, 6512);
    submit(&mut engine, 6512, 3, 10, 1);
    assert_eq!(instants(&drain(&mut engine), 3), [6523.0]);
    advance(&mut engine, 11_524);
    submit(&mut engine, 11_524, 4, 10, 1);
    assert_eq!(instants(&drain(&mut engine), 4), [12_535.0]);
    // At work for longer than that is not idle.
    submit(&mut engine, 12_535, 5, 10, 900);
    advance(&mut engine, 20_005);
    submit(&mut engine, 20_005, 6, 10, 1);
    assert_eq!(instants(&drain(&mut engine), 6), [20_017.0]);
    // Held while it starts, it starts later.
    let mut engine = common::engine(&profile);
    submit(&mut engine, 0, 1, 10, 1);
    advance(&mut engine, 500);
    engine.hold(ms(500), ms(200));
    assert_eq!(instants(&drain(&mut engine), 1), [1211.0]);
}

#[test]
fn the_first_step_of_each_shape_costs_more() {
    let mut engine = engine(&small(&[("first_use", "100ms")]));
    submit(&mut engine, 0, 1, 10, 3);
    // Prefill of 16 tokens, then decode of one, are new; the second decode step is not.
    assert_eq!(instants(&drain(&mut engine), 1), [111.0, 221.0, 231.0]);
    // 12 tokens are in the same bucket as 10, 17 are not.
    submit(&mut engine, 1000, 2, 12, 1);
    assert_eq!(instants(&drain(&mut engine), 2), [1011.2]);
    submit(&mut engine, 2000, 3, 17, 1);
    assert_eq!(instants(&drain(&mut engine), 3), [2111.7]);
    // Three sequences are decoded as four; four are then nothing new.
    for id in 4..8 {
        submit(&mut engine, 3000, id, 4, if id == 7 { 2 } else { 3 });
    }
    assert_eq!(instants(&drain(&mut engine), 4), [3011.6, 3121.6, 3131.6]);
}

#[test]
fn what_can_never_fit_finishes_at_once() {
    let mut engine = engine(&small(&[("kv_blocks", "10")]));
    // 40 tokens of KV: 30 and 11 fit, because the last token's KV is never needed.
    submit(&mut engine, 0, 1, 30, 12);
    submit(&mut engine, 0, 2, 41, 0);
    submit(&mut engine, 0, 3, 30, 11);
    let out = drain(&mut engine);
    for id in [1, 2] {
        let output = out.iter().find(|o| o.id == id).unwrap();
        assert!(output.finished && output.at == ms(0) && output.total_tokens == 0, "{output:?}");
    }
    assert_eq!(out.last().map(|o| (o.id, o.total_tokens, o.finished)), Some((3, 11, true)));
    assert_eq!(engine.gauges().preemptions, 0);
}

#[test]
fn without_memory_the_latest_is_preempted_and_computed_again() {
    // Ten blocks of 4. Two requests of 16 + 9 tokens need 6 blocks each: they do not fit together.
    let mut engine = engine(&small(&[("kv_blocks", "10"), ("prefix_caching", "off")]));
    submit(&mut engine, 0, 1, 16, 9);
    submit(&mut engine, 0, 2, 16, 9);
    let out = drain(&mut engine);
    // Together: 13.2, and four decode steps fill five blocks each (20 tokens of KV). In the next
    // step the first needs its sixth, so the second goes; the first ends alone at 93.2.
    let first: Vec<f64> = (0..9).map(|i| 13.2 + 10.0 * f64::from(i)).collect();
    assert_eq!(instants(&out, 1), first);
    // Then the second computes 16 + 5 tokens again: 12.1, which gives its sixth token.
    let second = [13.2, 23.2, 33.2, 43.2, 53.2, 105.3, 115.3, 125.3, 135.3];
    let actual = instants(&out, 2);
    assert!(actual.iter().zip(second).all(|(a, b)| (a - b).abs() < 1e-6), "{actual:?}");
    let last = out.last().unwrap();
    assert_eq!((last.id, last.total_tokens, last.preemptions, last.admitted), (2, 9, 1, ms(0)));
    assert_eq!((engine.gauges().preemptions, engine.gauges().kv_blocks_used), (1, 0));
}

#[test]
fn no_request_overtakes_a_preempted_one() {
    // As above, with a third that would find room as soon as the second has gone.
    let mut engine = engine(&small(&[("kv_blocks", "10"), ("prefix_caching", "off")]));
    submit(&mut engine, 0, 1, 16, 9);
    submit(&mut engine, 0, 2, 16, 9);
    advance(&mut engine, 20);
    submit(&mut engine, 20, 3, 2, 1);
    let out = drain(&mut engine);
    let third = out.iter().find(|output| output.id == 3).unwrap();
    assert_eq!((third.admitted, third.at), (Nanos(93_200_000), Nanos(105_500_000)));
}

#[test]
fn unused_cached_blocks_count_as_free_only_once() {
    let mut engine = engine(&small(&[("kv_blocks", "10")]));
    engine.submit(ms(0), job(1, vec![7; 17], 1)).unwrap();
    let mut out = advance(&mut engine, 100);
    // It holds six blocks from its second token on and leaves the four that the first one filled.
    submit(&mut engine, 100, 2, 20, 5);
    out.extend(advance(&mut engine, 115));
    // Finds those four, and needs two more, which are not there until the second ends.
    engine.submit(ms(115), job(3, vec![7; 24], 1)).unwrap();
    out.extend(drain(&mut engine));
    assert_eq!(instants(&out, 2).last(), Some(&152.0));
    let third = out.last().unwrap();
    assert_eq!((third.id, third.admitted, third.cached_tokens), (3, ms(152), 16));
}

#[test]
fn context_costs_time() {
    let mut profile = small(&[]);
    if let EngineProfile::Batching(batching) = &mut profile.engine {
        (batching.step.attention_ns, batching.step.kv_ns) = (1000.0, 1000.0);
    }
    let mut engine = engine(&profile);
    submit(&mut engine, 0, 1, 250, 3);
    // Chunks of 100, 100 and 50 attend to 250² / 2 pairs in all, whatever the chunks: 31.25 ms
    // in addition to three steps and 25 ms; then 251 and 252 KV tokens are read.
    let out = drain(&mut engine);
    assert_eq!(instants(&out, 1), [86.25, 96.501, 106.753]);
}

#[test]
fn drafts_come_in_together() {
    let (k, a) = (4, 0.7);
    let mut profile = small(&[("speculative", "4:0.7"), ("max_num_batched_tokens", "1000")]);
    if let EngineProfile::Batching(batching) = &mut profile.engine {
        let speculative = batching.speculative.as_mut().unwrap();
        speculative.draft = Time(Duration::from_millis(2));
    }
    let run = |seed| {
        let mut engine = SimEngine::new(&profile, seed, common::token_of);
        for id in 0..8 {
            submit(&mut engine, 0, id, 10, 900);
        }
        (drain(&mut engine), engine.gauges())
    };
    let (out, gauges) = run(1);
    // Steps that had all their drafts: not the first, nor the last few.
    let full = |o: &&Output| o.total_tokens > 1 && o.total_tokens - o.new_tokens < 895;
    let tokens: Vec<f64> = out.iter().filter(full).map(|o| f64::from(o.new_tokens)).collect();
    let expected = (1.0 - f64::powi(a, k + 1)) / (1.0 - a);
    let error = standard_error(&tokens);
    assert!(error < 0.05 && (mean(&tokens) - expected).abs() < 4.0 * error);
    assert!(out.iter().filter(|o| o.finished).all(|o| o.total_tokens == 900));
    let accepted: u32 = out.iter().map(|o| o.new_tokens - 1).sum();
    assert_eq!(gauges.spec_accepted, u64::from(accepted));
    // Each decode step drafts: 10 + 2.
    let first = instants(&out, 0);
    assert!((first[1] - first[0] - 12.0).abs() < 1e-9, "{first:?}");
    assert_ne!(run(2).0, out);
    // Draws belong to the request: alone it gets the same tokens in each of its steps.
    let mut alone = SimEngine::new(&profile, 1, common::token_of);
    submit(&mut alone, 0, 3, 10, 900);
    let of =
        |out: &[Output]| out.iter().filter(|o| o.id == 3).map(|o| o.new_tokens).collect::<Vec<_>>();
    assert_eq!(of(&drain(&mut alone)), of(&out));
}

/// Two prefill workers, a transfer of 5 ms and 100 µs a token.
fn split() -> Profile {
    let mut profile = small(&[("disaggregated", "2")]);
    if let EngineProfile::Batching(batching) = &mut profile.engine {
        let split = batching.disaggregated.as_mut().unwrap();
        (split.latency, split.ns_per_token) = (Time(Duration::from_millis(5)), 100_000.0);
    }
    profile
}

#[test]
fn prefill_elsewhere_leaves_decoding_alone() {
    let mut engine = engine(&split());
    submit(&mut engine, 0, 1, 10, 20);
    let mut out = advance(&mut engine, 40);
    for id in 2..6 {
        submit(&mut engine, 40, id, 90, 3);
    }
    out.extend(drain(&mut engine));
    // Prefill 11, transfer 5 + 1, then a token each 10 ms, whatever is prefilled.
    let expected: Vec<f64> = (0..20).map(|i| 17.0 + 10.0 * f64::from(i)).collect();
    assert_eq!(instants(&out, 1), expected);
    // Each worker fills its step of 100 tokens with 90 of one and 10 of another: 20 ms; then a
    // transfer of 5 + 9.
    assert_eq!(instants(&out, 2)[0], 74.0);
    assert_eq!(instants(&out, 3)[0], 74.0);
    // It joins the decode step that begins next, at 77.
    assert_eq!(instants(&out, 2)[1..], [87.0, 97.0]);
    // The other 80 tokens of the fourth come in the next step: 18 ms more.
    let fourth = 40.0 + 20.0 + 18.0 + 14.0;
    assert_eq!(instants(&out, 4)[0], fourth);
    assert_eq!(engine.gauges().kv_blocks_used, 0);
}

#[test]
fn a_preempted_sequence_is_prefilled_elsewhere_again() {
    let mut profile = split();
    profile.set("kv_blocks", "10").unwrap();
    let arrivals = (0..6).map(|id| JobArrival { at: ms(0), job: unique(id, 16, 12) });
    let mut engine = engine(&profile);
    let outcomes = simulate(&mut engine, arrivals);
    assert!(engine.gauges().preemptions > 0);
    assert!(outcomes.iter().all(|o| o.output_tokens == 12 && o.finished.is_some()));
    assert_eq!(engine.gauges().kv_blocks_used, 0);
}
