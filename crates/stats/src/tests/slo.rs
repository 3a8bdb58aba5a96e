//! SLOs of runs whose every instant is written down.

use goodput_model::{ErrorClass, LoopLag, Plan, RequestRecord, TokenCount, TokenSource};

use super::{NO_WARMUP, close, facts, fail, health, ms, plan, record, summary};
use crate::{RunState, SloMisses, SloState, SloSummary, SloTermSummary, analyze_run};

/// Twenty seconds at ten requests per second, with this SLO.
fn promised(slo: &str, target: Option<f64>) -> Plan {
    let mut plan = plan(Some(20), None, NO_WARMUP);
    plan.measure.slo = Some(slo.parse().unwrap());
    plan.measure.attainment = target;
    plan
}

/// Good ones: TTFT 100 ms, TPOT 20 ms, the largest gap 30 ms, three tokens.
fn requests() -> Vec<RequestRecord> {
    (0..200u32).map(|i| record(u64::from(i), f64::from(i) * 100.0, &[10.0, 30.0])).collect()
}

fn judged(slo: &str, target: Option<f64>, records: &[RequestRecord]) -> SloSummary {
    summary(&promised(slo, target), records).slo.unwrap()
}

fn state_of(slo: &str, records: &[RequestRecord]) -> SloState {
    judged(slo, None, records).state
}

fn term<'a>(summary: &'a SloSummary, begin: &str) -> &'a SloTermSummary {
    summary.terms.iter().find(|term| term.term.starts_with(begin)).unwrap()
}

/// Its first token, and all that follows, so much later.
fn later(mut record: RequestRecord, by_ms: f64) -> RequestRecord {
    let stamps = &mut record.exchange.stamps;
    for stamp in [&mut stamps.first_token, &mut stamps.first_answer, &mut stamps.last_token] {
        *stamp = stamp.map(|at| at + ms(by_ms));
    }
    stamps.done = stamps.done.map(|at| at + ms(by_ms));
    stamps.ended += ms(by_ms);
    record.exchange.chunks.iter_mut().for_each(|chunk| chunk.at += ms(by_ms));
    record
}

#[test]
fn without_an_slo_nothing_is_said() {
    assert_eq!(summary(&plan(Some(20), None, NO_WARMUP), &requests()).slo, None);
}

#[test]
fn a_term_about_single_requests_is_also_held_against_the_required_share_by_itself() {
    let mut records = requests();
    for index in [10, 60, 110, 160] {
        records[index] = later(records[index].clone(), 401.0);
    }
    let found = judged("ttft <= 500ms, tpot < 50ms, p99 e2e < 10s", Some(0.97), &records);
    let alone = |name: &str| term(&found, name).target_kept;
    assert_eq!((alone("ttft"), alone("tpot"), alone("p99 e2e")), (Some(true), Some(true), None));
    let found = judged("ttft <= 500ms, tpot < 50ms", Some(0.99), &records);
    let alone = |name: &str| (term(&found, name).target_kept, term(&found, name).target_state);
    // 98 % of them: too few as measured, and 200 requests prove nothing.
    assert_eq!(alone("ttft"), (Some(false), Some(SloState::Undecided)));
    assert_eq!(alone("tpot").0, Some(true));
    let found = judged("ttft <= 500ms", None, &records);
    assert_eq!((found.terms[0].target_kept, found.terms[0].target_state), (None, None));
}

#[test]
fn every_kind_of_miss_counts() {
    let mut records = requests();
    let reached = |n: u32| Some(TokenCount { n, source: TokenSource::Usage });
    records[0] = fail(records[0].clone(), ErrorClass::Http(500));
    records[1] = fail(records[1].clone(), ErrorClass::Timeout);
    records[2] = fail(records[2].clone(), ErrorClass::CutOff);
    records[3] = fail(records[3].clone(), ErrorClass::Empty);
    // The context ended the answer before the length that was asked for; or none was requested.
    for (index, asked) in [(4, Some(10)), (5, None), (6, Some(3))] {
        records[index].exchange.finish = Some("length".to_owned());
        records[index].planned.output_tokens = asked;
    }
    records[7] = later(records[7].clone(), 401.0);
    records[8] = record(8, 800.0, &[60.0, 60.0]);
    // Asked for three and got three: `length` is what it should be. Another tokenizer's count is not
    // proof against the server.
    records[9] = records[6].clone();
    (records[9].index, records[9].planned.output_tokens) = (9, Some(10));
    records[9].exchange.output_tokens = Some(TokenCount { n: 3, source: TokenSource::Tokenizer });
    assert_eq!(records[6].exchange.output_tokens, reached(3));
    let found = judged("ttft <= 500ms, tpot < 50ms", Some(0.99), &records);
    let misses = SloMisses { failed: 1, timed_out: 2, empty: 1, truncated: 2, limits: 2 };
    assert_eq!((found.misses, found.good, found.scheduled), (misses, 192, 200));
    close(found.attainment, 0.96);
    close(found.goodput_rps, 0.96 * 10.0);
    close(found.goodput_rps_low, found.attainment_low.unwrap() * 10.0);
    close(found.goodput_output_tps, 192.0 * 3.0 / 20.0);
    close(found.failed_share, 0.02);
    // All misses in the first second: the batches say how little 200 requests are.
    assert!(found.n_eff.unwrap() < 100.0, "{found:?}");
    // Each term by itself: six that did not end well and whole, and the late one.
    close(term(&found, "ttft").attainment, 193.0 / 200.0);
    close(term(&found, "tpot").attainment, 193.0 / 200.0);
    assert_eq!(found.judged_by, "request_terms");
    assert_eq!((found.state, found.attainment_state), (SloState::Undecided, SloState::Undecided));
    assert_eq!(term(&found, "ttft").state, SloState::Reported);
    // Without a target there is nothing to judge.
    assert_eq!(state_of("ttft <= 500ms, tpot < 50ms", &records), SloState::Reported);
}

#[test]
fn an_attainment_is_judged_by_its_interval() {
    let records = requests();
    let state = |records: &[RequestRecord], target: f64| {
        judged("ttft < 500ms", Some(target), records).attainment_state
    };
    // 200 of 200: at least 200/(200 + t²) = 97.9 %.
    assert_eq!(state(&records, 0.97), SloState::Met);
    assert_eq!(state(&records, 0.98), SloState::Undecided);
    assert_eq!(state(&records, 1.0), SloState::Met);
    let late = |every: usize| -> Vec<RequestRecord> {
        let each = records.iter().cloned().enumerate();
        each.map(|(i, r)| if i % every == 0 { later(r, 1000.0) } else { r }).collect()
    };
    assert_eq!(state(&late(4), 0.9), SloState::Missed);
    assert_eq!(state(&late(4), 0.75), SloState::Undecided);
    assert_eq!(state(&late(150), 1.0), SloState::Missed);
    // All due at once: the share is known, and nothing about how sure it is.
    let burst: Vec<RequestRecord> = (0..50).map(|i| record(i, 0.0, &[10.0])).collect();
    assert_eq!(state(&burst, 0.5), SloState::Undecided);
}

#[test]
fn a_term_that_says_nothing_is_vacuous_and_counted() {
    let mut records = requests();
    for (index, record) in records.iter_mut().enumerate().take(30) {
        *record = super::record(index as u64, index as f64 * 100.0, &[]);
    }
    let found = judged("tpot < 5ms, max_gap < 1s", None, &records);
    // One token has no TPOT: neither a miss nor 0 ms.
    assert_eq!((term(&found, "tpot").vacuous, found.good), (30, 30));
    assert_eq!(term(&found, "max_gap").vacuous, 30);
    close(term(&found, "tpot").attainment, 0.15);
    close(term(&found, "max_gap").attainment, 1.0);
    // Kept by all and saying something about none is not kept.
    assert_eq!(state_of("tpot < 5ms", &records[..30]), SloState::Undecided);
    assert_eq!(state_of("ttft < 5s", &records[..30]), SloState::Reported);
}

#[test]
fn what_the_client_spoiled_counts_neither_way() {
    let mut records = requests();
    let mut samples = health::observed();
    samples[1].beats.push(LoopLag { worker: 0, due: ms(5_000.0), lag: ms(1_000.0) });
    // Due 4.9 s to 6 s with the margin, or with tokens in it. One of them had failed by itself.
    let touched = |record: &RequestRecord| {
        let (due, end) = (record.scheduled, record.scheduled + ms(140.0));
        ms(4_980.0) <= end && due <= ms(6_020.0)
    };
    let spoiled = records.iter().filter(|record| touched(record)).count() as u64;
    let failing = records.iter().position(|record| record.scheduled >= ms(5_100.0)).unwrap();
    records[failing] = fail(records[failing].clone(), ErrorClass::Closed);
    let plan = promised("ttft < 50ms", None);
    let found =
        analyze_run(&plan, facts(RunState::Complete), || records.iter().cloned(), &samples, []);
    let found = found.slo.unwrap();
    assert_eq!((found.undetermined, found.scheduled), (spoiled - 1, 200));
    assert_eq!((found.misses.limits, found.misses.failed), (200 - spoiled, 1));
    assert_eq!(found.attainment, Some(0.0));
}

#[test]
fn figures_of_the_run_are_judged_by_their_interval() {
    let mut records = requests();
    records[0] = fail(records[0].clone(), ErrorClass::Http(500));
    let cases = [
        // One of 200: 0.5 %, and up to 3.1 % (Wilson, with t of 19 degrees).
        ("errors < 1%", SloState::Undecided),
        ("errors < 0.05%", SloState::Missed),
        ("errors < 3.2%", SloState::Met),
        // The last two end after the window; three tokens each.
        ("rps > 9", SloState::Met),
        ("rps > 10.5", SloState::Missed),
        ("output_tps > 28", SloState::Met),
        ("output_tps > 31", SloState::Missed),
        ("errors < 1%, rps > 10.5", SloState::Missed),
    ];
    for (slo, expected) in cases {
        assert_eq!(state_of(slo, &records), expected, "{slo}");
    }
    let found = judged("errors < 1%", None, &records);
    assert_eq!(
        (term(&found, "errors").value, term(&found, "errors").kind.as_str()),
        (Some(0.5), "run")
    );
    // Nothing but success is asked of a request.
    assert_eq!((found.judged_by.as_str(), found.good), ("success", 199));
}

#[test]
fn statistics_are_judged_by_their_interval() {
    // A limit that grows with prompts of 40 tokens, so that the values are kept for the term.
    let mut records = requests();
    for (index, record) in records.iter_mut().enumerate().filter(|(index, _)| index % 2 == 1) {
        *record = later(super::record(index as u64, index as f64 * 100.0, &[10.0, 30.0]), 100.0);
    }
    // Of 100 and 200 ms in turn, less 1 ms for each token.
    let cases = [
        ("p50 ttft < 161ms + 1ms/token", SloState::Met),
        ("p50 ttft < 100ms + 1ms/token", SloState::Undecided),
        ("p50 ttft < 60ms + 1ms/token", SloState::Missed),
        ("p50 ttft <= 59ms + 1ms/token", SloState::Missed),
        // The 90th percentile is 160 for certain; of the 99th, 200 requests say nothing.
        ("p90 ttft < 160.5ms + 1ms/token", SloState::Met),
        ("p99 ttft < 10s + 1ms/token", SloState::Undecided),
        // The mean is 150 in every batch, and 150 ± 7.4 if they were independent.
        ("mean ttft <= 158ms", SloState::Met),
        ("mean ttft <= 150ms", SloState::Undecided),
        ("mean ttft < 142ms", SloState::Missed),
        ("mean itl < 22ms", SloState::Met),
        ("mean request_tokens_per_s > 10", SloState::Met),
    ];
    for (slo, expected) in cases {
        let found = judged(slo, None, &records);
        assert_eq!(found.state, expected, "{slo}: {found:?}");
    }
    let found = judged("p90 ttft < 160.5ms + 1ms/token", None, &records);
    let p90 = term(&found, "p90");
    assert_eq!((p90.value, p90.limit, p90.kind.as_str()), (Some(160.0), 160.5, "percentile"));
    // Without others, the limits of percentiles are those of a good request.
    assert_eq!((found.judged_by.as_str(), found.good), ("percentile_limits", 200));
    let halves = judged("p90 ttft < 150ms", None, &records);
    assert_eq!((halves.good, halves.terms[0].value), (100, Some(200.0)));
    // A timeout is longer than any other, so the mean is unknown.
    for record in records.iter_mut().skip(1).step_by(2) {
        *record = fail(record.clone(), ErrorClass::Timeout);
    }
    let terms = "p90 ttft < 10s + 1ms/token, mean ttft < 10s, p90 e2e < 10s";
    let found = judged(terms, None, &records);
    assert_eq!(
        found.terms.iter().map(|term| term.state).collect::<Vec<_>>(),
        [SloState::Missed, SloState::Undecided, SloState::Missed]
    );
    assert!(found.terms.iter().all(|term| term.value.is_none()));
}

#[test]
fn a_floor_is_judged_by_the_lower_end() {
    // 3 tokens in 140 ms and in 240 ms in turn: 21.4 and 12.5 tokens/s.
    let mut records = requests();
    for record in records.iter_mut().skip(1).step_by(2) {
        *record = later(record.clone(), 100.0);
    }
    // 17.0 ± 0.66: t standard errors of 200 independent ones, for all batches are the same.
    let deviation = (1.5 / 0.14 - 1.5 / 0.24) * (200.0f64 / 199.0).sqrt();
    let half = 2.093_024_054_408_309 * deviation / 200f64.sqrt();
    for (floor, expected) in [
        (16, SloState::Met),
        (17, SloState::Undecided),
        (18, SloState::Missed),
        (20, SloState::Missed),
    ] {
        let found = judged(&format!("mean request_tokens_per_s > {floor}"), None, &records);
        assert_eq!(found.state, expected, "{floor}: {found:?}");
        close(found.terms[0].low, 1.5 / 0.14 + 1.5 / 0.24 - half);
    }
}

#[test]
fn percentiles_named_by_the_slo_are_computed() {
    let plan = promised("p42 ttft < 1s", None);
    let summary = summary(&plan, &requests());
    close(summary.metrics["ttft"].percentiles["42"].value, 100.0);
    close(summary.slo.unwrap().terms[0].value, 100.0);
}

#[test]
fn fluidity_of_a_run() {
    // Gaps of 10 and 30 ms: with 20 ms each the slack of the first carries the second.
    let mut records = requests();
    let found = judged("tpot <= 20ms", None, &records).fluidity.unwrap();
    assert_eq!((found.n, found.fluid_share, found.p1), (200, 1.0, 1.0));
    // One miss of two is too much: the smallest deadline is (10 + 30)/2.
    assert!((found.fluid_token_rate.unwrap() - 50.0).abs() < 1e-3, "{found:?}");
    // With 15 ms the second comes 10 ms late: one of two. A failure is not fluent at all.
    records[0] = fail(records[0].clone(), ErrorClass::Http(500));
    let summary = judged("fluidity > 0.4, tpot <= 15ms", None, &records);
    let found = summary.fluidity.unwrap();
    assert_eq!((found.fluid_share, found.p1, found.p10), (0.0, 0.5, 0.5));
    assert!((found.fluid_token_rate.unwrap() - 50.0).abs() < 1e-3, "{found:?}");
    close(term(&summary, "fluidity").attainment, 0.995);
    // In a percentile too: of 200, twenty are the tenth that the 10th percentile ends with.
    for (failures, expected) in [(19, Some(0.5)), (20, Some(0.0))] {
        let mut records = requests();
        for record in records.iter_mut().take(failures) {
            *record = fail(record.clone(), ErrorClass::Http(500));
        }
        let found = judged("p10 fluidity > 0.4, tpot <= 15ms", None, &records);
        assert_eq!(term(&found, "p10").value, expected, "{failures}");
    }
    // Three failures are more than the allowed hundredth, so the rate is missing.
    for record in records.iter_mut().take(3) {
        *record = fail(record.clone(), ErrorClass::Http(500));
    }
    assert_eq!(
        judged("tpot <= 15ms", None, &records).fluidity.unwrap().fluid_token_rate,
        Some(0.0)
    );
    // The first token has a deadline where there is one for it: 100 ms are 20 too late.
    let found = judged("tpot <= 20ms, ttft < 80ms", None, &requests()).fluidity.unwrap();
    close(Some(found.p50), 1.0 - 2.0 / 4.0);
    assert_eq!(judged("ttft < 80ms", None, &requests()).fluidity, None);
}

/// Of those that ended all are fast; of those that were due, three in ten failed.
#[test]
fn failures_do_not_hide_behind_a_percentile() {
    let due = |i: u64| record(i, i as f64 * 100.0, &[10.0; 9]);
    let some = |i: u64| if i % 10 < 3 { fail(due(i), ErrorClass::Http(500)) } else { due(i) };
    let all: Vec<_> = (0..1000).map(due).collect();
    let broken: Vec<_> = (0..1000).map(some).collect();
    let of = |slo: &str, records: &[RequestRecord]| {
        let mut plan = plan(Some(100), None, NO_WARMUP);
        plan.measure.slo = Some(slo.parse().unwrap());
        summary(&plan, records).slo.unwrap().state
    };
    assert_eq!(of("p90 ttft < 1s", &all), SloState::Met);
    assert_eq!(of("p90 ttft < 1s", &broken), SloState::Missed);
    assert_eq!(of("p50 ttft < 1s", &broken), SloState::Met);
    // Slow and fast in two parts: no interval of p99, but all are far inside the limit, or not.
    let halves: Vec<_> =
        (0..1000).map(|i| if i < 50 { later(due(i), 500.0) } else { due(i) }).collect();
    let mut plan = plan(Some(100), None, NO_WARMUP);
    plan.measure.slo = Some("p99 ttft < 3s".parse().unwrap());
    let found = summary(&plan, &halves);
    assert_eq!(found.metrics["ttft"].percentiles["99"].quality, crate::Quality::Rough);
    assert_eq!(found.slo.unwrap().state, SloState::Met);
    assert_eq!(of("p99 ttft < 1s", &halves), SloState::Undecided);
    assert_eq!(of("p99.9 ttft < 1s", &all), SloState::Undecided);
    assert_eq!(of("p5 request_tokens_per_s > 1", &broken), SloState::Missed);
}

/// Quick failures are part of the share that decides.
#[test]
fn a_percentile_is_met_by_the_lower_end_of_its_share() {
    let due = |i: u64| record(i, i as f64 * 10.0, &[10.0; 2]);
    let of = |every: u64| {
        let some = |i: u64| {
            if i % every == every / 2 { fail(due(i), ErrorClass::Http(500)) } else { due(i) }
        };
        let records: Vec<_> = (0..3600).map(some).collect();
        let mut plan = plan(Some(36), None, NO_WARMUP);
        plan.measure.slo = Some("p99 ttft < 500ms, errors < 5%".parse().unwrap());
        let found = summary(&plan, &records).slo.unwrap();
        (found.terms[0].state, found.terms[0].kept, found.kept)
    };
    // 36 of 3,600 are 1 %: as many as may be, and no proof that no more would come.
    assert_eq!(of(100), (SloState::Undecided, Some(true), Some(true)));
    assert_eq!(of(95), (SloState::Undecided, Some(false), Some(false)));
    assert_eq!(of(400), (SloState::Met, Some(true), Some(true)));
    assert_eq!(of(40), (SloState::Missed, Some(false), Some(false)));
}
