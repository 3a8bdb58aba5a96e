//! How often a point ends early, and how often that is wrong: the queue of docs/design/012 in
//! simulated time, where the truth is known.

use goodput_model::{EndedBy, LoadExtent, Phase, RequestRecord};

use super::decide::TestVerdict;
use super::tests::{Played, play, point};
use crate::watch::tests::queue_from;

/// Mean time of an answer, and how many come in a second at full load.
const ANSWER_S: f64 = 8.0 + 0.2266;

/// Targets and lengths of points that are looked at.
const STUDIED: [(f64, u64); 5] = [(0.99, 60), (0.99, 600), (0.95, 60), (0.95, 300), (0.9, 300)];

struct Outcomes {
    runs: u32,
    hopeless: u32,
    kept: u32,
    missed: u32,
    seconds: f64,
    /// Points whose share of good ones is below the target at their planned end.
    below: u32,
    /// Points that said otherwise: kept, missed and hopeless.
    against: [u32; 3],
}

fn is_good(record: &RequestRecord) -> bool {
    let first = record.exchange.stamps.first_token;
    first.is_some_and(|first| (first - record.scheduled).as_ms() < 1000.0)
}

fn share(records: &[RequestRecord]) -> f64 {
    let measured = || records.iter().filter(|record| record.phase == Phase::Measured);
    measured().filter(|record| is_good(record)).count() as f64 / measured().count().max(1) as f64
}

fn outcomes(runs: u64, utilisation: f64, target: f64, seconds: u64) -> Outcomes {
    let burn_in = (5.0 * ANSWER_S).ceil();
    let rate = utilisation * 64.0 / ANSWER_S;
    let n = (rate * (burn_in + seconds as f64) * 1.3) as u64 + 50;
    let mut found = Outcomes {
        runs: runs as u32,
        hopeless: 0,
        kept: 0,
        missed: 0,
        seconds: 0.0,
        below: 0,
        against: [0; 3],
    };
    for seed in 0..runs {
        let mut records = queue_from(seed + 1, utilisation, n, 0);
        records.retain(|record| record.scheduled.as_secs() < burn_in + seconds as f64);
        for record in &mut records {
            if record.scheduled.as_secs() < burn_in {
                record.phase = Phase::Warmup;
            }
        }
        let is_below = share(&records) < target;
        found.below += u32::from(is_below);
        let mut plan = point("ttft < 1s", Some(target), seconds, rate);
        plan.load.warmup = LoadExtent::Time(std::time::Duration::from_secs_f64(burn_in));
        let Played { ended, at_s, verdict } = play(&plan, records);
        found.seconds += at_s - burn_in;
        let mut note = |count: &mut u32, place: usize, is_against: bool| {
            *count += 1;
            found.against[place] += u32::from(is_against);
        };
        match (ended, verdict) {
            (Some(EndedBy::Hopeless), _) => note(&mut found.hopeless, 2, !is_below),
            (Some(_), Some(TestVerdict::Kept)) => note(&mut found.kept, 0, is_below),
            (Some(_), Some(TestVerdict::Missed)) => note(&mut found.missed, 1, !is_below),
            _ => {}
        }
    }
    found.seconds /= runs as f64;
    found
}

/// `cargo test --release -p goodput-stats --lib probe_study -- --ignored --nocapture`
#[test]
#[ignore = "a study, not a test: minutes"]
fn probe_study() {
    for (target, seconds) in STUDIED {
        println!("{target} of TTFT < 1 s, points of {seconds} s; per cent of 400 points");
        for utilisation in [0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.05, 1.3] {
            let is_stable = utilisation < 1.0;
            let truth = is_stable.then(|| share(&queue_from(999_999, utilisation, 400_000, 3000)));
            let found = outcomes(400, utilisation, target, seconds);
            let percent = |n: u32| f64::from(n) * 100.0 / f64::from(found.runs);
            let Outcomes { kept, missed, hopeless, below, against, seconds, .. } = found;
            println!(
                "{utilisation:.2}: truth {:.4}, below at the end {:.1}; kept {:.1} (against it {:.1}), missed {:.1} \
                 ({:.1}), hopeless {:.1} ({:.1}); {seconds:.0} s",
                truth.unwrap_or(0.0),
                percent(below),
                percent(kept),
                percent(against[0]),
                percent(missed),
                percent(against[1]),
                percent(hopeless),
                percent(against[2]),
            );
        }
    }
}

/// Cases that are clear, with room for chance: 20 points each.
pub(super) fn check() {
    let idle = outcomes(20, 0.6, 0.9, 150);
    assert!(idle.kept >= 18 && idle.hopeless + idle.missed == 0, "kept {}", idle.kept);
    let swamped = outcomes(20, 1.3, 0.9, 150);
    assert_eq!((swamped.hopeless + swamped.missed, swamped.below), (20, 20));
    assert!(swamped.seconds < 60.0, "{}", swamped.seconds);
}
