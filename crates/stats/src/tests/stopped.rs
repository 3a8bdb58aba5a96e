//! Runs that were stopped before their planned end, by the user or because enough was known.

use goodput_model::{EndedBy, Until};

use super::*;
use crate::SloState;

fn stopped(plan: &Plan, records: &[RequestRecord], at_s: f64, by: EndedBy) -> Summary {
    let state = if by == EndedBy::User { RunState::Interrupted } else { RunState::Complete };
    let facts = RunFacts { stopped_s: Some(at_s), ended_by: Some(by), ..facts(state) };
    analyze_run(plan, facts, || records.iter().cloned(), &health::observed(), [])
}

#[test]
fn an_open_loop_is_measured_to_the_instant_it_was_stopped() {
    // Ten a second for four of ten seconds; answers take 100 ms.
    let records: Vec<_> = (0..40).map(|i| record(i, i as f64 * 100.0, &[])).collect();
    for by in [EndedBy::Until, EndedBy::User] {
        let s = stopped(&plan(Some(10), None, NO_WARMUP), &records, 4.05, by);
        assert_eq!(
            (s.window.start_s, s.window.end_s, s.window.kind.as_str()),
            (0.0, 4.05, "steady")
        );
        // Due at 0 to 3.9 s, answered at 0.1 to 4.0 s.
        close(s.throughput.requests_per_s, 40.0 / 4.05);
        close(s.load.scheduled_rps, 40.0 / 4.05);
    }
}

#[test]
fn a_closed_loop_is_measured_to_the_instant_it_was_stopped() {
    // Two users, each asking again when its answer has come after 250 ms, for 3 s of 60.
    let ask = |i: u64| record(i, (i / 2) as f64 * 250.0, &[150.0]);
    let records: Vec<_> = (0..24).map(ask).collect();
    for (duration, count) in [(Some(60), None), (None, Some(500)), (Some(60), Some(500))] {
        let mut plan = plan(duration, count, LoadExtent::Time(Duration::from_secs(1)));
        let think_time = Duration::ZERO;
        plan.load.mode = Mode::Closed { concurrency: 2, think_time, pause_first: false };
        let mut records = records.clone();
        records[..8].iter_mut().for_each(|record| record.phase = Phase::Warmup);
        let s = stopped(&plan, &records, 2.9, EndedBy::Until);
        assert_eq!(
            (s.window.start_s, s.window.end_s, s.window.kind.as_str()),
            (1.0, 2.9, "steady")
        );
        // Ends at 1.0, 1.25, … 2.75 s, two each; those of 3.0 s come after the stop.
        close(s.throughput.requests_per_s, 16.0 / 1.9);
        close(s.load.in_flight_mean, 2.0);
    }
}

#[test]
fn what_had_been_sent_by_then_decides() {
    let records: Vec<_> = (0..20).map(|i| record(i, i as f64 * 100.0, &[])).collect();
    // Stopped in the cooldown: the measured part was over.
    let s = stopped(&plan(Some(1), None, NO_WARMUP), &records[..10], 1.7, EndedBy::User);
    assert_eq!(s.window.end_s, 1.0);
    // All requests had been sent.
    let s = stopped(&plan(None, Some(20), NO_WARMUP), &records, 9.0, EndedBy::User);
    assert_eq!(s.window.end_s, 1.9);
    // Stopped before the warm-up was over.
    let warmup = LoadExtent::Time(Duration::from_secs(5));
    let s = stopped(&plan(Some(10), None, warmup), &[], 2.0, EndedBy::User);
    assert_eq!(s.requests.scheduled, 0);
}

fn asked(rule: &str) -> Plan {
    let mut plan = plan(Some(60), None, NO_WARMUP);
    plan.measure.until = Some(rule.parse::<Until>().unwrap());
    plan
}

/// Ten a second for a minute, with a first token after 100 ms and more for every tenth.
fn spread(more: f64) -> Vec<RequestRecord> {
    let slow = |mut record: RequestRecord| {
        let late = ms(more * (record.index % 10) as f64);
        let stamps = &mut record.exchange.stamps;
        stamps.first_token = stamps.first_token.map(|at| at + late);
        record
    };
    (0..600).map(|i| slow(record(i, i as f64 * 100.0, &[500.0]))).collect()
}

#[test]
fn what_until_asked_for_is_in_the_summary() {
    let s = summary(&asked("p95 ttft ±10%, mean ttft ±5%"), &spread(1.0));
    let until = s.until.as_ref().unwrap();
    assert!(until.met && until.rule == "p95 ttft ±10%, mean ttft ±5%", "{until:?}");
    let p95 = &until.goals[0];
    assert_eq!((p95.value, p95.n, p95.more_s), (Some(109.0), 600, None));
    assert_eq!(until.goals[1].value, Some(104.5));
    assert!(severity_of(&s, "few_samples") != Some(Severity::Warn));
    assert_eq!(summary(&short(), &spread(1.0)).until, None);
}

#[test]
fn a_run_that_ended_before_it_knew_says_so() {
    let mut plan = asked("p95 ttft ±1%");
    plan.measure.percentiles = vec![95.0];
    // Up to 96 ms more, neighbors far apart.
    let wide: Vec<_> = spread(0.0)
        .into_iter()
        .map(|mut record| {
            let stamps = &mut record.exchange.stamps;
            let late = ms((record.index * 41 % 97) as f64);
            stamps.first_token = stamps.first_token.map(|at| at + late);
            record
        })
        .collect();
    let s = summary(&plan, &wide);
    let goal = &s.until.as_ref().unwrap().goals[0];
    assert!(!goal.met && goal.within.unwrap() > 0.01, "{goal:?}");
    // The interval is that of the table; its width shrinks with the root of the time, and what its
    // farther end is farther away with the time.
    let p95 = &s.metrics["ttft"].percentiles["95"];
    let (low, value, high) = (p95.low.unwrap(), p95.value.unwrap(), p95.high.unwrap());
    close(goal.within, (high - value).max(value - low) / value);
    let (half, times) = ((high - low) / 2.0 / value, goal.more_s.unwrap() / 60.0 + 1.0);
    close(Some(half / times.sqrt() + (goal.within.unwrap() - half) / times), 0.01);
    let caveat = s.caveats.iter().find(|c| c.message.contains("--until")).unwrap();
    assert_eq!(caveat.severity, Severity::Warn);
    assert!(caveat.message.contains("p95 TTFT is known to ±") && caveat.advice.is_some());
    // The same at a stop by the rule is but a note: the slow ones came in after it.
    let s = stopped(&plan, &wide, 60.0, EndedBy::Until);
    assert_eq!(s.caveats.iter().filter(|c| c.severity == Severity::Warn).count(), 0);
    assert!(s.caveats.iter().any(|c| c.message.contains("still in flight at the stop")));
}

/// Ten a second for ten of 60 seconds, each with 100 ms to its first token; those of the last second
/// were in flight when the point ended.
fn point_given_up() -> (Plan, Vec<RequestRecord>) {
    let mut plan = plan(Some(60), None, NO_WARMUP);
    plan.measure.slo = Some("ttft < 50ms, errors < 1%".parse().unwrap());
    plan.measure.attainment = Some(0.99);
    let mut records: Vec<_> = (0..100).map(|i| record(i, i as f64 * 100.0, &[500.0])).collect();
    for record in &mut records[90..] {
        *record = fail(record.clone(), ErrorClass::CutOff);
    }
    (plan, records)
}

#[test]
fn a_point_that_was_given_up_is_complete_and_missed() {
    let (plan, records) = point_given_up();
    let s = stopped(&plan, &records, 10.0, EndedBy::Hopeless);
    assert_eq!((s.window.start_s, s.window.end_s), (0.0, 10.0));
    assert_eq!((s.requests.scheduled, s.requests.failed), (100, 10));
    let slo = s.slo.as_ref().unwrap();
    assert_eq!((slo.misses.timed_out, slo.misses.limits, slo.attainment), (0, 100, Some(0.0)));
    // Requests that the client gave up are not errors of the server.
    assert_eq!((slo.failed_share, slo.terms[1].kept), (Some(0.0), Some(true)));
    // None of a hundred failed: that allows more than 1 %.
    assert_eq!(slo.terms[1].state, SloState::Undecided);
    let note = s.caveats.iter().find(|c| c.message.starts_with("ended early: hopeless")).unwrap();
    assert_eq!(note.severity, Severity::Info);
    assert!(note.message.contains("the 10 requests in flight were canceled"), "{}", note.message);
    let said: Vec<&str> = s.caveats.iter().map(|caveat| caveat.message.as_str()).collect();
    assert!(
        said.iter().all(|m| !m.contains("stopped before") && !m.contains("failed")),
        "{said:?}"
    );
    assert!(s.caveats.iter().all(|c| c.severity < Severity::Void), "{:?}", s.caveats);
    // The same at the end of a drain is.
    let s = stopped(&plan, &records, 10.0, EndedBy::Until);
    assert_eq!(s.slo.as_ref().unwrap().failed_share, Some(0.1));
    assert_eq!(severity_of(&s, "errors"), Some(Severity::Warn));
}

/// A request that was given up so long after it was due, and whether its first token had come.
fn given_up(index: u64, after_ms: f64, has_token: bool) -> RequestRecord {
    let mut record = fail(record(index, 9_000.0, &[500.0]), ErrorClass::CutOff);
    let stamps = &mut record.exchange.stamps;
    stamps.first_token = has_token.then(|| record.scheduled + ms(100.0));
    stamps.ended = record.scheduled + ms(after_ms);
    record
}

#[test]
fn what_was_given_up_counts_as_far_as_it_is_known() {
    let (mut plan, mut records) = point_given_up();
    plan.measure.slo = Some("p90 ttft < 200ms".parse().unwrap());
    records.truncate(90);
    // Known to be good, known to be late, and not known.
    records.extend([given_up(90, 150.0, true), given_up(91, 300.0, false)]);
    records.push(given_up(92, 150.0, false));
    let s = stopped(&plan, &records, 10.0, EndedBy::Hopeless);
    let slo = s.slo.as_ref().unwrap();
    assert_eq!((slo.good, slo.misses.limits, slo.undetermined), (91, 1, 1));
    assert_eq!(slo.terms[0].attainment, Some(91.0 / 92.0));
    // At the end of a drain the server had its chance.
    let s = stopped(&plan, &records, 10.0, EndedBy::Until);
    let slo = s.slo.as_ref().unwrap();
    assert_eq!((slo.good, slo.misses.timed_out, slo.undetermined), (90, 3, 0));
}

#[test]
fn errors_of_a_point_that_was_given_up_are_still_errors() {
    let (plan, mut records) = point_given_up();
    for record in &mut records[..20] {
        *record = fail(record.clone(), ErrorClass::Connect);
    }
    let s = stopped(&plan, &records, 10.0, EndedBy::Hopeless);
    assert_eq!(s.slo.as_ref().unwrap().failed_share, Some(0.2));
    let errors = s.caveats.iter().find(|c| c.code.name() == "errors").unwrap();
    assert!(errors.message.starts_with("20 of 100 requests failed"), "{}", errors.message);
    assert!(errors.advice.as_ref().unwrap().contains("most are `connect`"));
}

#[test]
fn a_point_without_an_answer_is_no_void() {
    let (plan, mut records) = point_given_up();
    for record in &mut records {
        *record = fail(record.clone(), ErrorClass::CutOff);
    }
    let s = stopped(&plan, &records, 10.0, EndedBy::Hopeless);
    assert_eq!(severity_of(&s, "nothing_measured"), Some(Severity::Warn));
    assert_eq!(s.slo.as_ref().unwrap().attainment, Some(0.0));
    let s = stopped(&plan, &records, 10.0, EndedBy::Until);
    assert_eq!(severity_of(&s, "nothing_measured"), Some(Severity::Void));
}

#[test]
fn a_point_that_was_clear_says_so() {
    let (plan, records) = point_given_up();
    let s = stopped(&plan, &records[..90], 9.0, EndedBy::Decided);
    let note = s.caveats.iter().find(|c| c.message.starts_with("ended early: decided")).unwrap();
    assert!(note.severity == Severity::Info && note.message.contains("90 measured requests"));
}
