//! Values known by construction.

mod errors;

use std::collections::BTreeMap;

use goodput_model::{
    CaveatCode, ErrorClass, FailureStage, Likeness, Nanos, Planned, RequestRecord, Severity,
    TokenCount, TokenSource, Verdict,
};

use goodput_model::random::{Domain, RandomStream};
use goodput_testkit::{RecordBuilder, failure};

use super::times::Times;
use super::*;
use crate::compare::{CompareFacts, CompareState, Comparison, FigureOutcome, Finding, Gate, Side};

/// An answer of `tokens` tokens: the first after `ttft` ms, the others `gap` ms apart.
pub(super) fn answer(at: Nanos, ttft: f64, gap: f64, tokens: u32) -> RequestRecord {
    let ms = |ms: f64| at + Nanos::from_secs_f64(ms / 1e3);
    RecordBuilder::new(at)
        .planned(Planned::new("live", 0, None))
        .tokens((0..tokens).map(|k| ms(ttft + gap * f64::from(k))))
        .status(200)
        .finish("length")
        .build()
}

pub(super) fn failed(at: Nanos, class: ErrorClass) -> RequestRecord {
    let mut record = answer(at, 1.0, 1.0, 0);
    record.exchange.status = if let ErrorClass::Http(status) = class { Some(status) } else { None };
    record.exchange.finish = None;
    record.exchange.output_tokens = None;
    record.exchange.failure = Some(failure(class, FailureStage::Headers));
    record
}

pub(super) fn pair(at_s: f64, primary: RequestRecord, candidate: RequestRecord) -> Pair {
    Pair { at: Nanos::from_secs_f64(at_s), primary, candidate, likeness: None }
}

/// A request that takes `ttft` ms to its first token on the primary, and `factor` times that on the
/// candidate; ten tokens, 20 ms apart.
fn twice(at_s: f64, ttft: f64, factor: f64) -> Pair {
    let at = Nanos::from_secs_f64(at_s);
    pair(at_s, answer(at, ttft, 20.0, 10), answer(at, ttft * factor, 20.0, 10))
}

fn sides() -> [Side; 2] {
    ["primary", "candidate"].map(|name| Side { name: name.to_owned(), ..Side::default() })
}

fn facts() -> ShadowFacts {
    ShadowFacts {
        share: 0.05,
        passed: 20_000,
        chosen: 1_000,
        mirrored: 1_000,
        ..Default::default()
    }
}

fn compared(settings: PairSettings, pairs: &[Pair]) -> Comparison {
    let mut ledger = Ledger::new(settings);
    for pair in pairs {
        ledger.add(pair);
    }
    ledger.compare(CompareFacts::default(), &facts(), sides())
}

fn finding<'a>(found: &'a Comparison, name: &str) -> &'a Finding {
    found.findings.iter().find(|one| one.metric == name).unwrap()
}

fn caveat(found: &Comparison, code: CaveatCode) -> Option<(Severity, &str)> {
    let own = found.caveats.iter().find(|caveat| caveat.code == code)?;
    Some((own.severity, own.message.as_str()))
}

/// Eight minutes, a request a second, TTFT 100 to 159 ms, each minute a little different.
fn minutes(factor: impl Fn(u32) -> f64) -> Vec<Pair> {
    let one = |k: u32| {
        let minute = k / 60;
        twice(f64::from(k), 100.0 + f64::from(k % 60) + f64::from(minute), factor(minute))
    };
    (0..480).map(one).collect()
}

fn near(found: f64, expected: f64, apart: f64) {
    assert!((found - expected).abs() <= apart, "{found} is not {expected}");
}

#[test]
fn times_are_known_to_one_part_in_a_thousand() {
    let mut times = Times::default();
    // 1.00, 1.01, …, 10.99 ms
    (100..1100).for_each(|k| times.add(f64::from(k) / 100.0));
    assert_eq!(times.count(), 1000);
    for (percent, rank) in
        [(0.1, 1.0), (50.0, 500.0), (90.0, 900.0), (99.0, 990.0), (100.0, 1000.0)]
    {
        let exact = (99.0 + rank) / 100.0;
        near(times.percentile(percent).unwrap() / exact, 1.0, 0.001);
    }
    let mut both = times.clone();
    both.merge(&times);
    assert_eq!(both.count(), 2000);
    near(both.median().unwrap(), 5.99, 0.006);
    assert_eq!(Times::default().median(), None);
    let mut odd = Times::default();
    for value in [0.0, -1.0, f64::NAN] {
        odd.add(value);
    }
    assert_eq!((odd.count(), odd.percentile(99.0)), (3, Some(0.0)));
}

#[test]
fn blocks_are_minutes_with_pairs_enough() {
    let blocks = |settings: PairSettings, pairs: &[Pair]| {
        let found = compared(settings, pairs);
        let of = |cell: &crate::compare::ComparedRun| cell.facts.requests;
        let all = found.runs.iter().filter(|cell| cell.ask.side == 0).map(of);
        (all.collect::<Vec<u64>>(), found.design.looks)
    };
    let all = minutes(|_| 1.0);
    assert_eq!(blocks(PairSettings::default(), &all), (vec![60; 8], vec![8]));
    // Two minutes are needed for 61 pairs, and the last, short one joins the one before.
    let some = PairSettings { block_pairs: 61, ..PairSettings::default() };
    assert_eq!(blocks(some.clone(), &all).0, [120; 4]);
    assert_eq!(blocks(some, &all[..420]).0, [120, 120, 180]);
    let long = PairSettings { block_s: 240.0, ..PairSettings::default() };
    assert_eq!(blocks(long, &all).0, [240; 2]);
    // Thirty seconds of a last minute are not a block.
    assert_eq!(blocks(PairSettings::default(), &all[..450]).0, [60, 60, 60, 60, 60, 60, 90]);
    assert_eq!(blocks(PairSettings::default(), &all[..20]), (vec![20], vec![1]));
    assert_eq!(blocks(PairSettings::default(), &[]), (vec![], vec![0]));
    // The order in which answers end does not matter.
    let mut mixed = all.clone();
    mixed.sort_by_key(|pair| pair.at.0 % 7_000_000_007);
    assert!(compared(PairSettings::default(), &mixed) == compared(PairSettings::default(), &all));
}

#[test]
fn days_take_no_more_room_than_hours() {
    let mut ledger = Ledger::new(PairSettings { block_pairs: 1, ..PairSettings::default() });
    // 128 minutes fit; three days of minutes do not.
    (0..128).for_each(|minute| ledger.add(&twice(60.0 * f64::from(minute), 100.0, 1.0)));
    let count = |ledger: &Ledger| {
        let found = ledger.compare(CompareFacts::default(), &facts(), sides());
        (found.comparison.blocks, found.design.run_s)
    };
    // The last began at its minute's beginning and joins the one before.
    assert_eq!(count(&ledger), (127, 60.0));
    (128..4320).for_each(|minute| ledger.add(&twice(60.0 * f64::from(minute), 100.0, 1.0)));
    // 4,320 minutes in stretches of 64; the last lasted half of one and joins the one before.
    assert_eq!(count(&ledger), (67, 64.0 * 60.0));
    assert_eq!(ledger.totals.pairs, 4320);
    let end = Pair { at: Nanos(u64::MAX), ..twice(0.0, 100.0, 1.0) };
    ledger.add(&end);
    assert_eq!(ledger.totals.pairs, 4321);
}

#[test]
fn memory_has_a_bound_that_more_pairs_do_not_move() {
    let mut ledger = Ledger::new(PairSettings { block_s: 1.0, ..PairSettings::default() });
    let mut stream = RandomStream::new(7, Domain::Lengths, 0);
    let mut entries = |ledger: &mut Ledger, seconds: std::ops::Range<u32>| {
        for second in seconds {
            for quarter in 0..4 {
                let at_s = f64::from(second) + 0.25 * f64::from(quarter);
                let at = Nanos::from_secs_f64(at_s);
                let mut side = || answer(at, 100.0 + 10.0 * stream.next_unit(), 20.0, 3);
                ledger.add(&pair(at_s, side(), side()));
            }
        }
        ledger.distinct_values()
    };
    // 128 slots of 32 s at the end of the first stretch, 128 of 128 s at the end of the second.
    let early = entries(&mut ledger, 0..4_096);
    let late = entries(&mut ledger, 4_096..16_384);
    // Between 64 and 128 values an eighth apart are told apart, above 128 a quarter: 81 of TTFT, 41
    // of E2E (140 to 150), 1 of TPOT and of ITL. Ratios lie between 1/1.1 and 1.1 (TTFT: 93 and 51)
    // and between 14/15 and 15/14 (E2E: 68 and 36), 1/1024 and 1/512 apart; the one of TPOT is 1.
    let most = 2 * (81 + 41 + 1 + 1) + (93 + 51 + 1) + (68 + 36 + 1) + 1;
    assert!(late <= 128 * most, "{late}");
    // Nearly all of them are there in the end: four times the pairs, less than twice the room.
    assert!(late > 128 * most * 9 / 10 && late < 2 * early, "{early} {late}");
}

#[test]
fn a_slower_candidate_is_worse_by_as_much() {
    // 10 % slower to the first token, by 8 to 12 % in each minute.
    let found = compared(PairSettings::default(), &minutes(|m| 1.08 + 0.02 * f64::from(m % 3)));
    let ttft = finding(&found, "ttft_p50");
    assert_eq!((ttft.n, ttft.is_tested, ttft.outcome), (8, true, FigureOutcome::Worse));
    near(ttft.change, 0.0975, 0.001);
    assert!(ttft.low.unwrap() > 0.07 && ttft.high.unwrap() < 0.13);
    // The other figures are the same on both sides, to the bit.
    let tpot = finding(&found, "tpot_p50");
    assert_eq!((tpot.change, tpot.outcome), (0.0, FigureOutcome::Equivalent));
    near(tpot.reference, 20.0, 0.02);
    near(finding(&found, "e2e_p50").reference, 100.0 + 29.5 + 3.5 + 180.0, 1.0);
    near(finding(&found, "itl_p50").reference, 20.0, 0.02);
    let errors = finding(&found, "error_share");
    // One of five figures: 480 pairs without a failure allow 1.1 points, and the margin is one.
    near(errors.high.unwrap(), 1.0 - 0.005_f64.powf(1.0 / 480.0), 1e-6);
    assert_eq!((errors.is_tested, errors.outcome), (true, FigureOutcome::Inconclusive));
    // Sixty pairs carry no p95 and no p99; a p90 they do.
    let tested: Vec<&str> =
        found.findings.iter().filter(|f| f.is_tested).map(|f| f.metric.as_str()).collect();
    assert_eq!(tested, ["ttft_p50", "ttft_p90", "tpot_p50", "tpot_p90", "error_share"]);
    assert!(found.findings.iter().all(|f| f.metric != "ttft_p99"));
    assert_eq!((found.outcome, found.verdict), (FigureOutcome::Worse, Verdict::Valid));
    let report = found.shadow.unwrap();
    assert_eq!((report.pairs, report.good, report.block_pairs), (480, 480, [60, 60]));
    assert_eq!(report.slower["ttft"].value, 1.0);
    assert_eq!(report.slower["tpot"].value, 0.0);
    near(report.ratios["ttft"].value, 1.0975, 0.002);
    near(report.ratios["tpot"].value, 1.0, 0.001);
    assert_eq!(report.output_tokens, Some([10.0, 10.0]));
    assert_eq!(report.output_ratio.map(|ratio| ratio.value), Some(1.0));
}

#[test]
fn the_same_server_twice_is_equivalent() {
    let factor = |minute: u32| if minute.is_multiple_of(2) { 1.004 } else { 0.996 };
    let one = |k: u32| twice(f64::from(k), 100.0 + f64::from(k % 60), factor(k / 60));
    let found = compared(PairSettings::default(), &(0..600).map(one).collect::<Vec<_>>());
    assert_eq!(found.outcome, FigureOutcome::Equivalent);
    assert!((found.shadow.unwrap().slower["ttft"].value - 0.5).abs() < 1e-9);
}

#[test]
fn latencies_are_of_pairs_that_both_answered() {
    // Each third request fails on the candidate, and those are the quick ones of the primary.
    let mut pairs = minutes(|_| 1.0);
    for (k, one) in pairs.iter_mut().enumerate().filter(|(k, _)| k % 3 == 0) {
        let at = one.at;
        *one = pair(k as f64, answer(at, 1.0, 20.0, 10), failed(at, ErrorClass::Http(503)));
    }
    let found = compared(PairSettings::default(), &pairs);
    let ttft = finding(&found, "ttft_p50");
    assert_eq!((ttft.change, ttft.outcome), (0.0, FigureOutcome::Equivalent));
    let errors = finding(&found, "error_share");
    near(errors.change, 1.0 / 3.0, 1e-9);
    assert_eq!((errors.outcome, found.outcome), (FigureOutcome::Worse, FigureOutcome::Worse));
    // Worse is a result, and no reason to take it back.
    assert_eq!(found.verdict, Verdict::Suspect);
    let report = found.shadow.unwrap();
    assert_eq!((report.pairs, report.good), (480, 320));
    let count = |name: &str, counts| Count { name: name.to_owned(), counts };
    assert_eq!(report.failures, [count("http_503", [0, 160])]);
    assert_eq!(report.statuses, [count("200", [480, 320]), count("503", [0, 160])]);
    assert_eq!(report.finishes, [count("length", [480, 320])]);
    assert_eq!(report.same_finish, 320);
}

#[test]
fn a_time_is_of_pairs_in_which_both_have_it() {
    // Of each other request, the slow ones, the candidate's answer came whole; some fail on both sides.
    let mut pairs = minutes(|_| 1.0);
    for (k, one) in pairs.iter_mut().enumerate() {
        if k % 2 == 0 {
            one.primary = answer(one.at, 900.0, 20.0, 10);
            one.candidate = answer(one.at, 900.0, 20.0, 10);
            one.candidate.exchange.stamps.first_token = None;
        } else if k % 15 == 0 {
            let class = ErrorClass::Timeout;
            *one = pair(k as f64, failed(one.at, class), failed(one.at, class));
        }
    }
    let found = compared(PairSettings { block_pairs: 10, ..PairSettings::default() }, &pairs);
    let ttft = finding(&found, "ttft_p50");
    assert!(ttft.change == 0.0 && ttft.reference < 200.0, "{ttft:?}");
    let report = found.shadow.unwrap();
    assert_eq!((report.pairs, report.good, report.same_finish), (480, 464, 464));
}

#[test]
fn a_candidate_that_never_answers_is_worse() {
    let one = |k: u32| {
        let at = Nanos::from_secs_f64(f64::from(k));
        pair(f64::from(k), answer(at, 100.0, 20.0, 10), failed(at, ErrorClass::Connect))
    };
    let found = compared(PairSettings::default(), &(0..480).map(one).collect::<Vec<_>>());
    let tested: Vec<_> = found.findings.iter().map(|f| (f.metric.as_str(), f.outcome)).collect();
    assert_eq!(tested, [("error_share", FigureOutcome::Worse)]);
    assert_eq!(found.outcome, FigureOutcome::Worse);
    // One bad minute joins the next, and costs no figure.
    let mut pairs = minutes(|_| 1.0);
    for (k, one) in pairs.iter_mut().enumerate().take(180).skip(120) {
        *one = pair(k as f64, one.primary.clone(), failed(one.at, ErrorClass::Connect));
    }
    let found = compared(PairSettings::default(), &pairs);
    assert_eq!((finding(&found, "ttft_p50").n, finding(&found, "ttft_p50").change), (7, 0.0));
    near(finding(&found, "error_share").candidate, 0.5 / 7.0, 1e-9);
}

#[test]
fn a_gate_makes_blocks_that_can_tell_it() {
    let gates = Gate::parse_all("p95 ttft < +5%").unwrap();
    let settings = PairSettings { gates, ..PairSettings::default() };
    let found = compared(settings.clone(), &minutes(|_| 1.2));
    // A p95 takes 72 values, so two minutes.
    assert_eq!((found.comparison.blocks, found.gates[0].outcome), (4, FigureOutcome::Worse));
    let found = compared(settings, &minutes(|_| 1.2)[..100]);
    assert_eq!((found.comparison.blocks, found.gates[0].outcome), (1, FigureOutcome::NoVerdict));
    // Half of the answers have a first token: 36 of them for a p90 take two minutes.
    let mut halves = minutes(|_| 1.2);
    for pair in halves.iter_mut().step_by(2) {
        pair.candidate.exchange.stamps.first_token = None;
    }
    let gates = Gate::parse_all("p90 ttft < +5%").unwrap();
    let found = compared(PairSettings { gates, ..PairSettings::default() }, &halves);
    assert_eq!((found.comparison.blocks, found.gates[0].outcome), (4, FigureOutcome::Worse));
    // What live traffic has no figure for is said.
    let gates = Gate::parse_all("goodput > -3%").unwrap();
    let found = compared(PairSettings { gates, ..PairSettings::default() }, &minutes(|_| 1.0));
    assert_eq!(found.gates[0].outcome, FigureOutcome::NoVerdict);
    let said = caveat(&found, CaveatCode::FigureMissing).unwrap();
    assert_eq!(said, (Severity::Warn, "no verdict on goodput: live traffic cannot show it"));
}

#[test]
fn whole_answers_are_told_by_their_end() {
    let one = |k: u32| {
        let at = Nanos::from_secs_f64(f64::from(k));
        let whole = |end: f64| {
            let mut record = answer(at, end, 0.0, 1);
            record.exchange.stamps.first_token = None;
            record.exchange.chunks.clear();
            record
        };
        let end = 500.0 + f64::from(k % 60);
        pair(f64::from(k), whole(end), whole(end * 1.1))
    };
    let found = compared(PairSettings::default(), &(0..480).map(one).collect::<Vec<_>>());
    let tested: Vec<&str> =
        found.findings.iter().filter(|f| f.is_tested).map(|f| f.metric.as_str()).collect();
    assert_eq!(tested, ["e2e_p50", "e2e_p90", "error_share"]);
    near(finding(&found, "e2e_p50").change, 0.1, 0.001);
    assert_eq!(found.outcome, FigureOutcome::Worse);
}

#[test]
fn longer_answers_leave_no_verdict_on_their_whole_time() {
    let one = |k: u32| {
        let (at, ttft) = (Nanos::from_secs_f64(f64::from(k)), 100.0 + f64::from(k % 60));
        pair(f64::from(k), answer(at, ttft, 20.0, 10), answer(at, ttft, 20.0, 15))
    };
    let found = compared(PairSettings::default(), &(0..480).map(one).collect::<Vec<_>>());
    assert_eq!(finding(&found, "e2e_p50").outcome, FigureOutcome::NoVerdict);
    assert_eq!(finding(&found, "ttft_p50").outcome, FigureOutcome::Equivalent);
    let codes: Vec<&str> = found.differences.iter().map(|one| one.code.as_str()).collect();
    assert_eq!((codes, found.verdict), (vec!["output_length"], Verdict::Suspect));
    near(found.shadow.unwrap().output_ratio.unwrap().value, 1.5, 1e-9);
}

#[test]
fn other_models_and_tokenizers_are_said() {
    let one = |k: u32| {
        let mut one = twice(f64::from(k), 100.0 + f64::from(k % 60), 1.0);
        let input = |n| Some(TokenCount { n, source: TokenSource::Usage });
        one.primary.exchange.input_tokens = input(1000);
        one.candidate.exchange.input_tokens = input(1200);
        one
    };
    let mut ledger = Ledger::new(PairSettings::default());
    (0..480).for_each(|k| ledger.add(&one(k)));
    let mut sides = sides();
    sides[0].model = "small".to_owned();
    sides[1].model = "large".to_owned();
    let found = ledger.compare(CompareFacts::default(), &facts(), sides);
    let codes: Vec<&str> = found.differences.iter().map(|one| one.code.as_str()).collect();
    assert_eq!(codes, ["tokenizer", "model"]);
    // A token of one is not a token of the other: TPOT leaves the test, TTFT does not.
    let ttft = finding(&found, "ttft_p50");
    assert_eq!((ttft.is_tested, ttft.outcome), (true, FigureOutcome::Equivalent));
    let tpot = finding(&found, "tpot_p50");
    assert_eq!((tpot.is_tested, tpot.outcome), (false, FigureOutcome::NoVerdict));
    assert_eq!(found.verdict, Verdict::Suspect);
}

#[test]
fn what_to_know_is_said() {
    let mut ledger = Ledger::new(PairSettings::default());
    minutes(|_| 1.0)[..240].iter().for_each(|pair| ledger.add(pair));
    let count = |name: &str, n: u64| (name.to_owned(), n);
    let shadow = ShadowFacts {
        dropped: BTreeMap::from([count("queue_full", 150), count("rate_cap", 50)]),
        ended: Some("40 % of the last 100 requests failed".to_owned()),
        ..facts()
    };
    let state = CompareFacts { state: CompareState::Unfinished, ..CompareFacts::default() };
    let found = ledger.compare(state, &shadow, sides());
    let (severity, share) = caveat(&found, CaveatCode::ShadowShare).unwrap();
    assert_eq!(severity, Severity::Info);
    assert!(share.starts_with("the candidate carried 5.0 % of the requests"), "{share}");
    let (severity, drops) = caveat(&found, CaveatCode::ShadowDrops).unwrap();
    assert_eq!(severity, Severity::Warn);
    assert!(
        drops.starts_with(
            "20.0 % of the chosen requests have no pair (queue_full 150, rate_cap 50)"
        )
    );
    let advice = |found: &Comparison| {
        let own = found.caveats.iter().find(|one| one.code == CaveatCode::ShadowDrops);
        own.unwrap().advice.clone().unwrap()
    };
    assert!(advice(&found).contains("--share"));
    let packed = ShadowFacts { dropped: BTreeMap::from([count("unjudged", 900)]), ..facts() };
    let packed = ledger.compare(CompareFacts::default(), &packed, sides());
    assert!(advice(&packed).contains("compression"));
    assert_eq!(caveat(&found, CaveatCode::ShadowEnded).unwrap().0, Severity::Warn);
    assert_eq!(caveat(&found, CaveatCode::NotComplete).unwrap().0, Severity::Info);
    let (_, few) = caveat(&found, CaveatCode::FewSamples).unwrap();
    assert!(few.starts_with("4 blocks of at least 60 s"), "{few}");
    // Without trouble only the share is said.
    let calm = compared(PairSettings::default(), &minutes(|_| 1.0));
    let codes: Vec<CaveatCode> = calm.caveats.iter().map(|caveat| caveat.code).collect();
    assert_eq!((codes, calm.verdict), (vec![CaveatCode::ShadowShare], Verdict::Valid));
    let none = compared(PairSettings::default(), &[]);
    assert_eq!((none.outcome, none.verdict), (FigureOutcome::NoVerdict, Verdict::Void));
}

#[test]
fn blocks_that_hang_together_are_said() {
    let of = |factor: fn(u32) -> f64| {
        let one = |k: u32| twice(f64::from(k), 100.0 + f64::from(k % 60), factor(k / 60));
        let found = compared(PairSettings::default(), &(0..1200).map(one).collect::<Vec<_>>());
        caveat(&found, CaveatCode::BlocksDepend).map(|(severity, text)| (severity, text.to_owned()))
    };
    // Ten minutes slower, ten minutes quicker; and every other minute.
    let (severity, text) = of(|m| if m < 10 { 1.05 } else { 0.95 }).unwrap();
    assert_eq!(severity, Severity::Warn);
    assert!(text.starts_with("changes of p50 TTFT, p90 TTFT are correlated"), "{text}");
    assert_eq!(of(|m| if m % 2 == 0 { 1.05 } else { 0.95 }), None);
    // A correlation of 0.55 over twenty blocks may be chance: there are four figures.
    assert_eq!(of(|m| if m / 4 % 2 == 0 { 1.05 } else { 0.95 }), None);
    assert_eq!(of(|_| 1.05), None);
    // Errors are too few in a block to tell: two and one a minute, then one and two.
    let mut pairs: Vec<Pair> =
        (0..1200).map(|k| twice(f64::from(k), 100.0 + f64::from(k % 60), 1.0)).collect();
    for (k, one) in pairs.iter_mut().enumerate().filter(|(k, _)| k % 20 == 0) {
        let is_own = (k % 60 == 0) == (k < 600);
        let record = if is_own { &mut one.primary } else { &mut one.candidate };
        *record = failed(one.at, ErrorClass::Http(503));
    }
    let found = compared(PairSettings::default(), &pairs);
    near(finding(&found, "error_share").candidate, 1.5 / 60.0, 1e-9);
    assert_eq!(caveat(&found, CaveatCode::BlocksDepend), None);
}

#[test]
fn likeness_is_summed_up() {
    let like = |k: u32| match k % 4 {
        0 => Likeness { exact: true, prefix: 80, lengths: [80, 80] },
        1 => Likeness { exact: false, prefix: 40, lengths: [80, 80] },
        2 => Likeness { exact: false, prefix: 0, lengths: [80, 160] },
        _ => Likeness { exact: false, prefix: 40, lengths: [80, 64] },
    };
    let mut pairs = minutes(|_| 1.0);
    for (k, pair) in (0..).zip(&mut pairs) {
        pair.likeness = Some(like(k));
    }
    let found = compared(PairSettings::default(), &pairs).shadow.unwrap().likeness.unwrap();
    assert_eq!((found.pairs, found.exact), (480, 120));
    near(found.prefix_share.unwrap(), 0.5, 0.001);
    near(found.length_ratio.unwrap(), 1.0, 0.001);
    assert_eq!(found.characters, [80.0, 96.0]);
    assert_eq!(compared(PairSettings::default(), &minutes(|_| 1.0)).shadow.unwrap().likeness, None);
}

#[test]
fn names_of_a_server_are_few_and_short() {
    let mut pairs = minutes(|_| 1.0);
    for (k, pair) in pairs.iter_mut().enumerate() {
        pair.candidate.exchange.finish = Some(format!("{k:03}{}", "x".repeat(1000)));
    }
    let found = compared(PairSettings::default(), &pairs).shadow.unwrap();
    assert!(found.finishes.len() <= 25);
    assert!(found.finishes.iter().all(|count| count.name.len() <= 32));
    assert_eq!(found.finishes.iter().map(|count| count.counts[1]).sum::<u64>(), 480);
}

#[test]
fn a_shadow_survives_its_file() {
    let found = compared(PairSettings::default(), &minutes(|_| 1.1));
    let text = serde_json::to_string(&found).unwrap();
    let read: Comparison = serde_json::from_str(&text).unwrap();
    let (mut read, mut found) = (read.shadow.unwrap(), found.shadow.unwrap());
    // Numbers of a file may differ in their last bit.
    near(read.ratios["ttft"].value, found.ratios["ttft"].value, 1e-12);
    (read.ratios, read.slower) = (BTreeMap::new(), BTreeMap::new());
    (found.ratios, found.slower) = (BTreeMap::new(), BTreeMap::new());
    assert!(read == found);
    // Other comparisons do not name it.
    assert!(!serde_json::to_string(&Comparison::default()).unwrap().contains("shadow"));
}
