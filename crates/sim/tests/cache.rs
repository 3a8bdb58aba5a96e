//! The prefix cache against hit counts worked out by hand.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{changed, engine, job, small, token_of, unique};
use goodput_model::Nanos;
use goodput_sim::{JobArrival, JobOutcome, SimEngine, SimJob, simulate};

/// One after the other, each long after the one before has finished.
fn in_turn(engine: &mut SimEngine, jobs: impl IntoIterator<Item = SimJob>) -> Vec<JobOutcome> {
    let spaced = jobs.into_iter().enumerate();
    let at = |i: usize| Nanos::from_millis(100_000 * i as u64);
    simulate(engine, spaced.map(|(i, job)| JobArrival { at: at(i), job }))
}

fn cached(outcomes: &[JobOutcome]) -> Vec<u32> {
    outcomes.iter().map(|outcome| outcome.cached_tokens).collect()
}

fn rate(engine: &SimEngine) -> (u64, u64) {
    let gauges = engine.gauges();
    (gauges.prefix_hits, gauges.prefix_queries)
}

/// `length` tokens that begin with `shared` common ones.
fn with_prefix(id: u64, shared: u32, length: u32) -> SimJob {
    let own = 0x4000_0000 + id as u32;
    job(id, (0..length).map(|i| if i < shared { i } else { own }).collect(), 3)
}

#[test]
fn a_shared_system_prompt() {
    // Blocks of 4: of 22 shared tokens 20 are in whole blocks.
    let mut engine = engine(&small(&[]));
    let outcomes = in_turn(&mut engine, (0..5).map(|id| with_prefix(id, 22, 30)));
    assert_eq!(cached(&outcomes), [0, 20, 20, 20, 20]);
    assert_eq!(rate(&engine), (80, 150));
    // What was found was not computed: 10 tokens, 1 ms, instead of 3 ms.
    let ttft = |i: usize| (outcomes[i].first_token.unwrap() - outcomes[i].arrived).as_ms();
    assert_eq!((ttft(0), ttft(1)), (13.0, 11.0));
}

#[test]
fn arrivals_of_one_step_share_what_the_first_computes() {
    let mut engine = engine(&small(&[]));
    let together = (0..3).map(|id| JobArrival { at: Nanos::ZERO, job: with_prefix(id, 22, 30) });
    assert_eq!(cached(&simulate(&mut engine, together)), [0, 20, 20]);
    assert_eq!(engine.gauges().kv_blocks_used, 0);
}

#[test]
fn turns_find_the_answers_before_them() {
    let mut engine = engine(&small(&[]));
    let mut history: Vec<u32> = Vec::new();
    let mut turns = Vec::new();
    for turn in 0..4u64 {
        history.extend((0..10).map(|i| 1000 * (turn as u32 + 1) + i));
        turns.push(job(turn, history.clone(), 7));
        history.extend((0..7).map(|i| token_of(turn, i)));
    }
    let outcomes = in_turn(&mut engine, turns);
    // A turn leaves 17 n tokens, of which the last one's KV is not computed: 16, 33, 50 tokens in 4,
    // 8 and 12 whole blocks.
    assert_eq!(cached(&outcomes), [0, 16, 32, 48]);
    assert_eq!(rate(&engine), (96, 10 + 27 + 44 + 61));
}

#[test]
fn unique_prompts_find_nothing_and_neither_does_a_cache_that_is_off() {
    let mut found = engine(&small(&[]));
    in_turn(&mut found, (0..6).map(|id| unique(id, 40, 5)));
    assert_eq!(rate(&found), (0, 240));
    let mut off = engine(&small(&[("prefix_caching", "off")]));
    let outcomes = in_turn(&mut off, (0..5).map(|id| with_prefix(id, 22, 30)));
    assert_eq!((cached(&outcomes), rate(&off)), (vec![0; 5], (0, 0)));
}

#[test]
fn the_last_token_is_always_computed() {
    // A prompt of exactly 5 blocks can find only 4 of them; one token more finds all 5.
    for (length, hit) in [(20, 16), (21, 20), (19, 16), (4, 0), (5, 4), (1, 0)] {
        let mut engine = engine(&small(&[]));
        let outcomes = in_turn(&mut engine, (0..2).map(|id| with_prefix(id, length, length)));
        assert_eq!(cached(&outcomes), [0, hit], "{length}");
    }
}

#[test]
fn a_small_cache_forgets_the_longest_unused() {
    // Ten blocks; each job takes 4 of prompt and, of its 3 answer tokens, two more in a fifth.
    let jobs = |order: &[u32]| {
        let of = |(id, kind): (usize, &u32)| job(id as u64, vec![*kind; 16], 3);
        order.iter().enumerate().map(of).collect::<Vec<_>>()
    };
    let hits = |order: &[u32]| {
        let mut engine = engine(&small(&[("kv_blocks", "10")]));
        cached(&in_turn(&mut engine, jobs(order)))
    };
    // Two fit next to each other; a prompt of 4 whole blocks finds 3.
    assert_eq!(hits(&[1, 2, 1, 2]), [0, 0, 12, 12]);
    // The third pushes out the first: the free list is 1's five blocks, then 2's.
    assert_eq!(hits(&[1, 2, 3, 1]), [0, 0, 0, 0]);
    assert_eq!(hits(&[1, 2, 3, 2]), [0, 0, 0, 12]);
    // A hit makes the first one young again, so the third pushes out the second.
    assert_eq!(hits(&[1, 2, 1, 3, 1]), [0, 0, 12, 0, 12]);
    // Of a half-evicted prefix the beginning is left: 12 blocks hold 2 of the first one's 4.
    let mut engine = engine(&changed(small(&[]), &[("kv_blocks", "12")]));
    let mut order = jobs(&[1, 2, 3, 1]);
    order[2] = job(2, vec![3; 20], 1);
    assert_eq!(cached(&in_turn(&mut engine, order)), [0, 0, 0, 8]);
}

#[test]
fn a_reset_forgets() {
    let mut engine = engine(&small(&[]));
    let first = in_turn(&mut engine, [with_prefix(0, 22, 30)]);
    engine.reset_prefix_cache();
    let again = |id, at| JobArrival { at: Nanos::from_millis(at), job: with_prefix(id, 22, 30) };
    let later = simulate(&mut engine, [again(1, 500_000), again(2, 600_000)]);
    assert_eq!((cached(&first), cached(&later)), (vec![0], vec![0, 20]));
}
