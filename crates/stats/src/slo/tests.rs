//! Intervals, fluidity and the fit against values known by construction and against brute force.

use goodput_model::random::{Domain, RandomStream};
use proptest::prelude::*;

use super::fit::FitTally;
use super::fluidity::{FLUID, Pacing};
use super::interval::{IntervalEstimate, ShareTally, share_interval};
use crate::estimate::{Inflation, Memory};
use crate::summary::TtftFit;

const BATCHES: usize = crate::estimate::BATCHES as usize;

/// Of requests that are taken for independent, in as many slices as batches.
fn attainment_interval(batches: &[(u64, u64)]) -> IntervalEstimate {
    share_interval(batches, Memory::none(0), None, false)
}

fn close(actual: Option<f64>, expected: f64) {
    let actual = actual.unwrap();
    assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
}

#[test]
fn attainment_by_hand() {
    // Ten batches of 50 with 40 good, ten with 50: p = 0.9, and each batch 0.1 away from it.
    let batches: Vec<(u64, u64)> =
        (0..20).map(|b| (if b % 2 == 0 { 40 } else { 50 }, 50)).collect();
    let found = attainment_interval(&batches);
    close(found.value, 0.9);
    // v = 20/19 · 20 · (50/1000)² · 0.01 = 0.01/19, and p(1-p)/v = 0.09 · 1900 = 171 of 1000.
    close(found.n_eff, 171.0);
    // Wilson's ends are where |p - x| = t·sqrt(x(1-x)/n).
    for end in [found.low.unwrap(), found.high.unwrap()] {
        let t = (0.9 - end).abs() / (end * (1.0 - end) / 171.0f64).sqrt();
        assert!((t - 2.093_024_054).abs() < 1e-8, "{t}");
    }
    // Batches that differ no more than chance makes them say as much as they hold.
    let batches: Vec<(u64, u64)> = (0..20).map(|b| (if b % 2 == 0 { 8 } else { 10 }, 10)).collect();
    close(attainment_interval(&batches).n_eff, 200.0);
    // Batches more alike than chance makes them say no more than they hold.
    close(attainment_interval(&[(9, 10); 20]).n_eff, 200.0);
}

#[test]
fn attainment_at_its_ends() {
    let all = attainment_interval(&[(50, 50); 20]);
    assert_eq!((all.value, all.high), (Some(1.0), Some(1.0)));
    // n/(n + t²) with t of 19 degrees.
    close(all.low, 1000.0 / (1000.0 + 2.093_024_054_408_309f64.powi(2)));
    let none = attainment_interval(&[(0, 50); 20]);
    assert_eq!((none.value, none.low), (Some(0.0), Some(0.0)));
    close(none.high, 1.0 - all.low.unwrap());
    assert_eq!(attainment_interval(&[(0, 0); 20]), IntervalEstimate::default());
    assert_eq!(attainment_interval(&[]), IntervalEstimate::default());
    // All scheduled at once: a share without an interval.
    let burst = attainment_interval(&[(9, 10)]);
    assert_eq!((burst.value, burst.low, burst.n_eff), (Some(0.9), None, None));
    // Ten filled batches are enough, with the t of their number.
    let ten = attainment_interval(&[(50, 50); 10]);
    close(ten.low, 500.0 / (500.0 + 2.262_157_162_798_205f64.powi(2)));
    assert_eq!(attainment_interval(&[(50, 50); 9]).low, None);
}

/// Of values whose sums vary by these factors more than those of independent ones.
fn memory(n: u64, values: f64, median: f64, tail: f64) -> Memory {
    // A single slice that deviates by the root of the factor is alike over no others.
    let of = |factor: f64| {
        let mut deviations = vec![0.0; 640];
        deviations[0] = factor.sqrt();
        Inflation::from_deviations(&deviations, 1.0)
    };
    Memory::new(n, 1.0, [of(values), of(median), of(tail)])
}

#[test]
fn no_miss_among_requests_that_are_alike_shows_nothing() {
    let good = [(50, 50); 20];
    let of = |memory: Memory| share_interval(&good, memory, None, false);
    assert!(of(memory(1000, 1.2, 1.0, 1.2)).low.is_some_and(|low| low > 0.99), "by chance");
    // 50 waits that know nothing of each other: far too few.
    let alike = of(memory(1000, 20.0, 4.0, 15.0));
    assert_eq!((alike.value, alike.low, alike.high), (Some(1.0), None, Some(1.0)));
    // Where none came near its limit, no queue was missed that would have made one late.
    let far = share_interval(&good, memory(1000, 20.0, 4.0, 15.0), None, true);
    assert!(far.low.is_some_and(|low| low > 0.99), "{far:?}");
    // 500 such waits are enough, and each 20 requests count for less than one.
    let long = share_interval(&[(500, 500); 20], memory(10_000, 20.0, 4.0, 15.0), None, false);
    // Worth 10,000/(20 · (1 + 450/500)) independent ones: n/(n + t²).
    let worth = 10_000.0 / 38.0;
    close(long.low, worth / (worth + 2.093_024_054_408_309f64.powi(2)));
    // Nine in ten are known by the worst tenth: 10,000/(15 · (1 + 1,500/667)).
    let nine = share_interval(&[(500, 500); 20], memory(10_000, 20.0, 4.0, 15.0), Some(0.9), false);
    let worth = 10_000.0 / (15.0 * (1.0 + 1_500.0 * 15.0 / 10_000.0));
    close(nine.low, worth / (worth + 2.093_024_054_408_309f64.powi(2)));
    // The median of such requests is as alike as their tail: no queue, unless the run is short for it.
    assert!(of(memory(1000, 3.0, 3.0, 3.0)).low.is_some());
    assert!(of(memory(1000, 30.0, 30.0, 30.0)).low.is_none());
}

#[test]
fn failures_leave_as_often_as_spoiled_answers() {
    let mut tally = ShareTally::default();
    for request in 0..1000u16 {
        let slice = request * 16 / 25;
        match request % 10 {
            0 | 1 => tally.add(slice, false, true),
            2 => tally.add_spoiled(),
            _ => tally.add(slice, true, false),
        }
    }
    // One answer in eight was spoiled, so 25 of 200 failures leave too: 700 of 875.
    assert_eq!((tally.left_out(), tally.kept_count(), tally.total_count()), (25, 700, 875));
    close(tally.estimate(Memory::none(0), None).value, 0.8);
    let none = ShareTally::default();
    assert_eq!((none.left_out(), none.total_count()), (0, 0));
}

/// How often the interval holds the truth, and the interval of independent requests would.
fn coverage(runs: u64, good: impl Fn(&mut RandomStream) -> Vec<bool>, truth: f64) -> (f64, f64) {
    let (mut held, mut naive) = (0.0, 0.0);
    for run in 0..runs {
        let requests = good(&mut RandomStream::new(7, Domain::Sampling, run));
        let per_batch = requests.len() / BATCHES;
        let batches: Vec<(u64, u64)> = requests
            .chunks(per_batch)
            .map(|batch| (batch.iter().filter(|good| **good).count() as u64, batch.len() as u64))
            .collect();
        let found = attainment_interval(&batches);
        let (low, high) = (found.low.unwrap(), found.high.unwrap());
        held += f64::from(u8::from(low <= truth && truth <= high));
        let (p, n) = (found.value.unwrap(), requests.len() as f64);
        let half = 1.96 * (p * (1.0 - p) / n).sqrt();
        naive += f64::from(u8::from((p - truth).abs() <= half));
    }
    (held / runs as f64, naive / runs as f64)
}

#[test]
fn the_interval_holds_the_truth_as_often_as_it_says() {
    coverage_is_as_said(300);
}

/// The figures of docs/slo.md: `cargo test --release -p goodput-stats --lib slo::tests -- --ignored
/// --nocapture`
#[test]
#[ignore = "seconds: the same over 2,000 runs, with a standard error of 0.4 points"]
fn the_interval_holds_the_truth_as_often_over_many_runs() {
    coverage_is_as_said(2_000);
}

/// Within three standard errors of what many runs have shown.
fn coverage_is_as_said(runs: u64) {
    let agrees = |found: f64, known: f64| {
        println!("{found} where {known} is known");
        let error = (known * (1.0 - known) / runs as f64).sqrt();
        assert!((found - known).abs() <= 3.0 * error, "{found} is not {known} ± {error}");
    };
    let independent = |share: f64| {
        move |stream: &mut RandomStream| {
            (0..2_000).map(|_| stream.next_unit() < share).collect::<Vec<_>>()
        }
    };
    for (share, known) in [(0.5, 0.965), (0.9, 0.971), (0.99, 0.973)] {
        agrees(coverage(runs, independent(share), share).0, known);
    }
    // Fifty in a row share their fate: 200 fates, as a queue that fills now and then makes them.
    let clustered = |stream: &mut RandomStream| {
        let fates: Vec<bool> = (0..200).map(|_| stream.next_unit() < 0.9).collect();
        fates.iter().flat_map(|fate| [*fate; 50]).collect::<Vec<_>>()
    };
    let (held, naive) = coverage(runs, clustered, 0.9);
    agrees(held, 0.956);
    agrees(naive, 0.268);
}

/// A wait for the first token, and its deadline.
type Deadline = (f64, f64);

fn pacing(first: Option<Deadline>, waits: &[f64]) -> Pacing {
    Pacing { first, extra_first: 0.0, chunks: waits.iter().map(|wait| (*wait, 0.0)).collect() }
}

#[test]
fn fluidity_by_hand() {
    let cases: [(Option<Deadline>, &[f64], f64); 9] = [
        // All in time.
        (None, &[50.0, 50.0, 50.0, 50.0], 1.0),
        // One token 40 ms late without slack: one miss of 4 + 1 - 1.
        (None, &[90.0, 50.0, 50.0, 50.0], 0.75),
        // The slack of an early token carries a late one: 20 + 80 = 2 · 50.
        (None, &[20.0, 80.0, 50.0, 50.0], 1.0),
        // One more and it does not: a miss, and no slack afterwards.
        (None, &[20.0, 81.0, 50.0, 51.0], 0.5),
        // A stall of 220: (220 - 50)/50 = 3.4, so four deadlines; 4 of 7.
        (None, &[220.0, 50.0, 50.0, 50.0], 1.0 - 4.0 / 7.0),
        // A deadline later than a whole one more: (100 - 50)/50 + 1 = 2 of 3.
        (None, &[100.0, 50.0], 1.0 - 2.0 / 3.0),
        // A first token 100 ms early lends that to the rest.
        (Some((400.0, 500.0)), &[100.0, 100.0], 1.0),
        // A first token 75 ms late misses two deadlines.
        (Some((575.0, 500.0)), &[50.0, 50.0], 0.5),
        (Some((500.0, 500.0)), &[], 1.0),
    ];
    for (first, waits, expected) in cases {
        let index = pacing(first, waits).fluidity_index(50.0);
        close(index, expected);
    }
    assert_eq!(pacing(None, &[]).fluidity_index(50.0), None);
    // Four tokens at once are one wait and three without: 200 - 50 = 3 · 50.
    let many = |first: f64| Pacing {
        first: None,
        extra_first: 0.0,
        chunks: vec![(first, 3.0), (200.0, 0.0)],
    };
    close(many(50.0).fluidity_index(50.0), 1.0);
    // A late one starts again: what comes along with it is slack again.
    close(many(51.0).fluidity_index(50.0), 0.8);
}

#[test]
fn the_smallest_deadline_by_hand() {
    // Twenty equal gaps, two of which may be missed: with a smaller deadline all are.
    close_to(pacing(None, &[30.0; 20]).smallest_deadline(), 30.0);
    // One long gap of 20 costs as many misses as deadlines pass in it: one, two or no more, since
    // three of 19 + 3 are more than a tenth. (300 - d)/d < 2 where d > 100.
    let mut waits = [10.0; 20];
    waits[0] = 300.0;
    close_to(pacing(None, &waits).smallest_deadline(), 100.0);
    // A first token, late or a second early, is not part of the pace.
    close_to(pacing(Some((2.0, 1.0)), &[1.0; 7]).smallest_deadline(), 1.0);
    close_to(pacing(Some((1.0, 1000.0)), &[1.0; 7]).smallest_deadline(), 1.0);
    // A single token, or all at once.
    assert_eq!(pacing(Some((2.0, 1.0)), &[]).smallest_deadline(), None);
    assert_eq!(pacing(None, &[0.0; 5]).smallest_deadline(), None);
}

fn close_to(actual: Option<f64>, expected: f64) {
    let actual = actual.unwrap();
    // Halvings of the longest wait, 300 ms at most here, leave less than this.
    assert!((actual - expected).abs() <= expected * 2e-5, "{actual} is not {expected}");
}

/// The index as it is printed, over each token by itself, with deadlines counted one at a time.
fn brute_index(first: Option<(u64, u64)>, chunks: &[(u64, u64)], each: u64) -> Option<(u64, u64)> {
    let mut waits: Vec<(u64, u64)> = first.into_iter().collect();
    for (wait, extra) in chunks {
        waits.push((*wait, each));
        waits.extend((0..*extra).map(|_| (0, each)));
    }
    let (mut slack, mut missed, mut total) = (0, 0, 0);
    for (wait, deadline) in waits {
        if wait <= deadline + slack {
            slack = deadline + slack - wait;
            total += 1;
        } else {
            // A wait that ends together with a later deadline has missed that one too, as printed.
            let mut passed = deadline + slack;
            while passed <= wait {
                passed += each;
                missed += 1;
                total += 1;
            }
            slack = 0;
        }
    }
    (total > 0).then_some((missed, total))
}

proptest! {
    #[test]
    fn fluidity_is_its_definition(
        first in prop::option::of((0u64..400, 1u64..300)),
        chunks in prop::collection::vec((0u64..200, 0u64..4), 0..30),
        each in 1u64..100,
    ) {
        let pacing = Pacing {
            first: first.map(|(wait, deadline)| (wait as f64, deadline as f64)),
            extra_first: 0.0,
            chunks: chunks.iter().map(|(wait, extra)| (*wait as f64, *extra as f64)).collect(),
        };
        let expected = brute_index(first, &chunks, each)
            .map(|(missed, total)| 1.0 - missed as f64 / total as f64);
        let found = pacing.fluidity_index(each as f64);
        prop_assert_eq!(found.is_some(), expected.is_some());
        if let Some((found, expected)) = found.zip(expected) {
            prop_assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
        }
        // A later deadline never makes it worse.
        prop_assert!(pacing.fluidity_index(each as f64 + 1.0) >= found);
    }

    #[test]
    fn the_smallest_deadline_is_the_smallest(
        chunks in prop::collection::vec((1u64..200, 0u64..3), 1..30),
    ) {
        let pacing = Pacing {
            first: None,
            extra_first: 0.0,
            chunks: chunks.iter().map(|(wait, extra)| (*wait as f64, *extra as f64)).collect(),
        };
        let found = pacing.smallest_deadline().unwrap();
        prop_assert!(pacing.fluidity_index(found).unwrap() >= FLUID);
        // On a fine grid nothing below it will do.
        let below = (1..4_000u32).map(|n| f64::from(n) * 0.05).filter(|d| *d < found - 1e-3);
        for deadline in below {
            prop_assert!(pacing.fluidity_index(deadline).unwrap() < FLUID, "{deadline} < {found}");
        }
    }
}

fn fit(points: impl Iterator<Item = (u32, f64)>) -> Option<TtftFit> {
    let mut tally = FitTally::default();
    points.for_each(|(tokens, ms)| tally.add(tokens, ms));
    tally.finish()
}

#[test]
fn a_line_through_ttft() {
    let line = |n: u32| (100 + n % 900, 50.0 + 0.25 * f64::from(100 + n % 900));
    let found = fit((0..100_000).map(line)).unwrap();
    close(Some(found.a_ms), 50.0);
    close(Some(found.b_ms_per_token), 0.25);
    assert!((1_000..=2_000).contains(&found.n), "{}", found.n);
    // A tenth of them stuck in a queue does not move it.
    let queued = |n: u32| {
        let (tokens, ms) = line(n.wrapping_mul(2_654_435_761) >> 8);
        (tokens, if n.is_multiple_of(10) { ms + 5_000.0 } else { ms })
    };
    let found = fit((0..1_500).map(queued)).unwrap();
    assert!((found.b_ms_per_token - 0.25).abs() < 0.05, "{found:?}");
    // Lengths that hardly differ, or few requests, say nothing.
    assert_eq!(fit((0..100).map(|n| (100 + n % 99, 1.0))), None);
    assert_eq!(fit((0..19).map(line)), None);
    assert_eq!(fit((0..100).map(|_| (0, 1.0))), None);
}
