use std::time::Duration;

use goodput_model::{ArrivalProcess, LoadExtent, Mode, Rate};

use super::*;
use crate::tests::{NO_WARMUP, plan};
use crate::watch::tests::request;

/// What came of a point that was played.
pub(super) struct Played {
    pub(super) ended: Option<EndedBy>,
    pub(super) at_s: f64,
    pub(super) verdict: Option<TestVerdict>,
}

/// A plan for a point of this many seconds.
pub(super) fn point(slo: &str, target: Option<f64>, seconds: u64, rate: f64) -> Plan {
    let mut plan = plan(Some(seconds), None, NO_WARMUP);
    let (rate, arrivals) = (Rate::PerSecond(rate), ArrivalProcess::Poisson);
    plan.load.mode = Mode::Open { rate, arrivals, max_concurrency: None };
    plan.measure.slo = Some(slo.parse().unwrap());
    plan.measure.attainment = target;
    plan.measure.stop_early = Some(StopEarly::Decided);
    plan
}

/// Lets a point go by, second by second, to its end or to where it may end.
pub(super) fn play(plan: &Plan, mut records: Vec<RequestRecord>) -> Played {
    let mut probe = Probe::new(plan).unwrap();
    let mut dues: Vec<Nanos> = records.iter().map(|record| record.scheduled).collect();
    dues.sort();
    records.sort_by_key(RequestRecord::end);
    let warm = match plan.load.warmup {
        LoadExtent::Time(time) => time,
        _ => Duration::ZERO,
    };
    let last = (plan.load.duration.unwrap() + warm).as_secs();
    let (mut done, mut waits) = (0, (0.0, 0));
    for second in 1..=last {
        let at = Nanos::from_millis(second * 1000);
        while let Some(record) = records.get(done).filter(|record| record.end() <= at) {
            probe.add(record);
            if let Some(first) = record.exchange.stamps.first_token {
                waits = (waits.0 + (first - record.scheduled).as_ms(), waits.1 + 1);
            }
            done += 1;
        }
        let started = dues.partition_point(|due| *due <= at);
        let ttft_ms = (waits.1 > 0).then(|| waits.0 / f64::from(waits.1));
        waits = (0.0, 0);
        let (in_flight, started) = ((started - done) as f64, started as f64);
        probe.tick(at, Tick { at_s: second as f64, in_flight, started, ttft_ms });
        if let Some(ended) = probe.end_reason(at) {
            let verdict = probe.verdict(at);
            return Played { ended: Some(ended), at_s: second as f64, verdict };
        }
    }
    Played { ended: None, at_s: last as f64, verdict: None }
}

/// Ten a second, with so long to the first token and to the end of each.
fn steady(seconds: u64, times: impl Fn(u64) -> (f64, f64)) -> Vec<RequestRecord> {
    let of = |i: u64| {
        let (ttft_s, e2e_s) = times(i);
        request(i, i as f64 / 10.0, ttft_s, e2e_s)
    };
    (0..10 * seconds).map(of).collect()
}

fn ended(plan: &Plan, records: Vec<RequestRecord>) -> (Option<EndedBy>, f64) {
    let Played { ended, at_s, .. } = play(plan, records);
    (ended, at_s)
}

const HOPELESS: Option<EndedBy> = Some(EndedBy::Hopeless);
const DECIDED: Option<EndedBy> = Some(EndedBy::Decided);

#[test]
fn figures_without_a_rule_are_not_watched() {
    let mut plan = point("ttft < 1s", Some(0.9), 60, 10.0);
    assert!(Probe::new(&plan).is_some());
    plan.measure.stop_early = None;
    assert!(Probe::new(&plan).is_none());
    plan.measure.stop_early = Some(StopEarly::Hopeless);
    plan.measure.slo = None;
    assert!(Probe::new(&plan).is_none());
}

/// Of 600 requests at most 6 may miss p99. The first seventh miss ends it: of those in the first
/// seconds each tenth is one.
#[test]
fn out_of_reach_is_hopeless() {
    let plan = point("p99 ttft < 1s", None, 60, 10.0);
    let each_tenth = |i: u64| if i % 10 == 5 { (2.0, 2.4) } else { (0.1, 0.5) };
    let (why, at_s) = ended(&plan, steady(60, each_tenth));
    // Due at 0.5, 1.5 … and ended 2.4 s later. Up to 676 requests might be due by then: expected are
    // 600, and three standard deviations more; so the seventh is the first too many.
    let most = |at: f64| {
        let left = (60.0 - at) * 10.0;
        10.0 * at + 1.0 + left + 3.0 * left.sqrt()
    };
    assert!((6.0..7.0).contains(&(most(9.0) * 0.01)), "{}", most(9.0));
    assert_eq!((why, at_s), (HOPELESS, 9.0));
    // By count there is nothing to expect.
    let mut by_count = plan.clone();
    by_count.load.num_requests = Some(300);
    assert_eq!(ended(&by_count, steady(60, each_tenth)), (HOPELESS, 6.0));
    // The same share of good ones, asked otherwise.
    let plan = point("ttft < 1s", Some(0.99), 60, 10.0);
    assert_eq!(ended(&plan, steady(60, each_tenth)), (HOPELESS, 9.0));
    // A tenth may: it never is.
    let plan = point("p90 ttft < 1s", None, 60, 10.0);
    assert_ne!(ended(&plan, steady(60, each_tenth)).0, HOPELESS);
    // Of a floor the other side counts: below p1 of the speed may lie one in a hundred.
    let plan = point("p1 request_tokens_per_s > 1", None, 60, 10.0);
    assert_eq!(ended(&plan, steady(60, each_tenth)).0, HOPELESS);
}

#[test]
fn the_burn_in_never_counts() {
    let mut plan = point("p99 ttft < 1s", None, 60, 10.0);
    plan.load.warmup = LoadExtent::Time(Duration::from_secs(20));
    let mut records = steady(80, |i| if i < 200 { (5.0, 6.0) } else { (0.1, 0.5) });
    records[..200].iter_mut().for_each(|record| record.phase = Phase::Warmup);
    assert_ne!(ended(&plan, records.clone()).0, HOPELESS);
    records[200..].iter_mut().for_each(|record| {
        *record = request(record.index, record.scheduled.as_secs(), 5.0, 6.0);
    });
    // The first measured one ends at 26 s; seven have at 26.6 s.
    assert_eq!(ended(&plan, records), (HOPELESS, 27.0));
}

/// What is in flight for longer than E2E may take has missed it, though it has not ended.
#[test]
fn late_ones_count_before_they_end() {
    let plan = point("e2e < 3s", Some(0.95), 60, 10.0);
    let (why, at_s) = ended(&plan, steady(60, |_| (0.1, 50.0)));
    // At 7 s what was let go between 1 s and 3 s, twenty, is late; at 8 s thirty, at 9 s forty.
    assert_eq!((why, at_s), (HOPELESS, 9.0));
    // TTFT may have been kept by what has not ended.
    let plan = point("ttft < 3s", Some(0.95), 40, 10.0);
    assert_eq!(ended(&plan, steady(40, |_| (0.1, 50.0))).0, None);
}

fn failing(seconds: u64, is_bad: impl Fn(u64) -> bool) -> Vec<RequestRecord> {
    failing_after(5.0, seconds, is_bad)
}

fn failing_after(e2e_s: f64, seconds: u64, is_bad: impl Fn(u64) -> bool) -> Vec<RequestRecord> {
    let mut records = steady(seconds, |_| (0.1, e2e_s));
    for record in records.iter_mut().filter(|record| is_bad(record.index)) {
        // Refused at once, while the others take their time.
        *record = request(record.index, record.scheduled.as_secs(), 0.0, 0.001);
        record.exchange.failure = Some(goodput_model::Failure {
            class: goodput_model::ErrorClass::Connect,
            stage: goodput_model::FailureStage::Connect,
            message: String::new(),
        });
    }
    records
}

#[test]
fn errors_beyond_chance_are_hopeless() {
    let plan = point("mean ttft < 9s", None, 60, 10.0);
    // All refused: known from twenty on.
    assert_eq!(ended(&plan, failing(60, |_| true)), (HOPELESS, 2.0));
    // One in a hundred is what may be; it is never called more, and refusals that end first are
    // compared with all that were due.
    assert_eq!(ended(&plan, failing(60, |i| i % 100 == 0)).0, None);
    assert_eq!(ended(&plan, failing(60, |i| i % 10 == 0)).0, HOPELESS);
    let lenient = point("errors < 20%", None, 60, 10.0);
    assert_ne!(ended(&lenient, failing(60, |i| i % 10 == 0)).0, HOPELESS);
    // Refusals are all that has ended, and a tenth of what was due.
    let lenient = point("errors < 20%", None, 40, 10.0);
    assert_eq!(ended(&lenient, failing_after(50.0, 40, |i| i % 10 == 0)).0, None);
    let strict = point("mean ttft < 9s, errors <= 0%", None, 60, 10.0);
    // All of them must end well: one is too many from the start.
    assert_eq!(ended(&strict, failing(60, |i| i == 3)), (HOPELESS, 1.0));
}

#[test]
fn a_server_that_hangs_is_hopeless() {
    let mut plan = point("ttft < 1s", Some(0.9), 120, 10.0);
    plan.measure.stop_early = Some(StopEarly::Hopeless);
    let hung = |i: u64| if i < 300 { (0.1, 2.0) } else { (500.0, 600.0) };
    // From 30 s on nothing ends: ten seconds later, and two for twenty requests.
    let (why, at_s) = ended(&plan, steady(120, hung));
    assert_eq!((why, at_s), (HOPELESS, 42.0));
}

/// A queue that grows by a request a second, and an SLO that never notices.
#[test]
fn a_queue_that_grows_is_hopeless() {
    let grows = |i: u64| (0.1 + i as f64 * 0.015, 1.0 + i as f64 * 0.015);
    let plan = point("ttft < 60s", Some(0.5), 120, 10.0);
    let mut only_hopeless = plan.clone();
    only_hopeless.measure.stop_early = Some(StopEarly::Hopeless);
    let (why, at_s) = ended(&only_hopeless, steady(120, grows));
    assert!(why == HOPELESS && (40.0..50.0).contains(&at_s), "{why:?} {at_s}");
    // Users who wait for their answers cannot make one.
    only_hopeless.load.mode =
        Mode::Closed { concurrency: 8, think_time: Duration::ZERO, pause_first: false };
    assert_eq!(ended(&only_hopeless, steady(120, grows)).0, None);
}

#[test]
fn clear_cases_are_decided() {
    // No queue, nothing missed, answers of half a second: 4 or 5 are in flight.
    let plan = point("ttft < 1s", Some(0.95), 120, 10.0);
    let found = play(&plan, steady(120, |i| (0.1 + 0.01 * (i * 7 % 10) as f64, 0.5)));
    assert_eq!((found.ended, found.verdict), (DECIDED, Some(TestVerdict::Kept)));
    // 100 requests; 55 good ones for the test, 13 more for each that is in flight, over 0.877.
    assert!((10.0..16.0).contains(&found.at_s), "{}", found.at_s);
    // Every third is missed, where half may be before it is out of reach.
    let plan = point("ttft < 1s", Some(0.8), 120, 10.0);
    let found = play(&plan, steady(120, |i| if i % 3 == 0 { (1.5, 2.0) } else { (0.1, 0.5) }));
    assert_eq!((found.ended, found.verdict), (DECIDED, Some(TestVerdict::Missed)));
    assert!((11.0..40.0).contains(&found.at_s), "{}", found.at_s);
    // Only where it may.
    let mut plan = plan;
    plan.measure.stop_early = Some(StopEarly::Hopeless);
    let late = play(&plan, steady(120, |i| if i % 3 == 0 { (1.5, 2.0) } else { (0.1, 0.5) }));
    assert!(late.ended == HOPELESS && late.at_s > found.at_s, "{}", late.at_s);
}

#[test]
fn means_and_figures_of_the_run_are_never_decided_early() {
    let good = || steady(120, |i| (0.1 + 0.01 * (i * 7 % 10) as f64, 0.5));
    for (slo, is_decided) in [
        ("p95 ttft < 1s", true),
        ("p95 ttft < 1s, errors < 5%", true),
        ("p95 ttft < 1s, mean tpot < 1s", false),
        ("p95 ttft < 1s, rps > 1", false),
        ("p95 ttft < 1s, output_tps > 1", false),
    ] {
        let found = ended(&point(slo, None, 120, 10.0), good()).0;
        assert_eq!(found == DECIDED, is_decided, "{slo} {found:?}");
    }
    // All must be: p99 takes longer than half a minute.
    assert_eq!(ended(&point("p95 ttft < 1s", None, 30, 10.0), good()).0, DECIDED);
    let both = point("p95 ttft < 1s, p99 ttft < 1s", None, 30, 10.0);
    assert_eq!(ended(&both, good()).0, None);
}

/// A tenth is late; where they come in a row, 600 say as much about that as a few.
#[test]
fn misses_in_a_row_are_worth_less() {
    let apart = |i: u64| if i % 10 == 3 { (1.5, 1.6) } else { (0.1, 0.5) };
    let in_a_row = |i: u64| if i % 200 < 20 { (1.5, 1.6) } else { (0.1, 0.5) };
    let plan = point("ttft < 1s", Some(0.8), 60, 10.0);
    assert_eq!(play(&plan, steady(60, apart)).verdict, Some(TestVerdict::Kept));
    assert_eq!(play(&plan, steady(60, in_a_row)).verdict, None);
}

/// A sign of life from the study below: where the load is far too much or hardly any, it says so.
#[test]
fn the_queue_of_the_study() {
    study::check();
}
