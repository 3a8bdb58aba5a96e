//! The client's own signals: what they cut, what they say, and the verdict that follows.

use goodput_model::{
    CanaryReading, Ceiling, HealthSample, HostSample, LoopLag, Scrape, ThreadSample, Throttled,
};
use proptest::prelude::*;

use super::*;

/// A minute at ten requests a second.
fn minute() -> (Plan, Vec<RequestRecord>) {
    let records = (0..600).map(|i| record(i, i as f64 * 100.0, &[10.0; 20])).collect();
    (plan(Some(60), None, LoadExtent::Time(Duration::from_secs(1))), records)
}

fn with_lag(mut records: Vec<RequestRecord>, lag_us: u32) -> Vec<RequestRecord> {
    for record in &mut records {
        record.exchange.head_lag_us = Some(lag_us);
        record.exchange.chunks.iter_mut().for_each(|chunk| chunk.lag_us = Some(lag_us));
    }
    records
}

/// Two looks at the host, at the beginning and a minute later, and what was seen in between.
fn samples(end: HostSample, beats: Vec<LoopLag>, canary: Vec<CanaryReading>) -> Vec<HealthSample> {
    let begin = HostSample {
        cpus: end.cpus,
        throttled: Some(Throttled::default()),
        ..HostSample::default()
    };
    vec![
        HealthSample { at: Nanos::ZERO, host: begin, ..HealthSample::default() },
        HealthSample { at: ms(61_000.0), host: end, beats, canary, ..HealthSample::default() },
    ]
}

/// A quiet host: a worker at a tenth of a core, one processor idle.
fn quiet() -> HostSample {
    let worker = ThreadSample {
        name: "worker-0".to_owned(),
        cpu: ms(6_100.0),
        waited: ms(100.0),
        preempted: 5,
    };
    HostSample {
        threads: vec![worker],
        throttled: Some(Throttled::default()),
        steal: Nanos::ZERO,
        cpus: 1,
        idle: ms(54_000.0),
        open_files: 20,
        ..HostSample::default()
    }
}

/// A client that looked at itself and found nothing.
pub(super) fn observed() -> Vec<HealthSample> {
    let canary = CanaryReading { due: ms(1_500.0), slip: Nanos(0), errors_ns: vec![0] };
    let canary =
        (0..600).map(|i| CanaryReading { due: ms(f64::from(i) * 100.0), ..canary.clone() });
    samples(quiet(), vec![beat(1_500.0, 0.0)], canary.collect())
}

fn beat(at_ms: f64, lag_ms: f64) -> LoopLag {
    LoopLag { worker: 0, due: ms(at_ms), lag: ms(lag_ms) }
}

fn analyzed(samples: &[HealthSample], ceiling: Option<Ceiling>) -> Summary {
    let (plan, records) = minute();
    let records = with_lag(records, 30);
    let facts = RunFacts { ceiling, ..facts(RunState::Complete) };
    analyze_run(&plan, facts, || records.iter().cloned(), samples, [])
}

#[test]
fn a_quiet_host_raises_nothing() {
    let beats = (0..600).map(|i| beat(f64::from(i) * 100.0, 0.05)).collect();
    let canary = vec![CanaryReading {
        due: ms(2_000.0),
        slip: Nanos(3_000),
        errors_ns: vec![20_000, 21_000],
    }];
    let summary = analyzed(&samples(quiet(), beats, canary), None);
    let raised: Vec<_> = summary.caveats.iter().filter(|c| c.severity > Severity::Info).collect();
    assert!(raised.is_empty(), "{raised:?}");
    let client = &summary.client;
    assert_eq!((client.stamps.as_str(), client.lag_ms.p50), ("kernel", Some(0.03)));
    let worker = client.threads["worker-0"];
    assert!((worker.cpu_share - 0.1).abs() < 1e-9, "{worker:?}");
    let canary = client.canary.unwrap();
    // Lateness and stamp error add up; the gap's error is their difference.
    assert!((canary.ttft_error_ms.p50.unwrap() - 0.023).abs() < 1e-9);
    assert!((canary.itl_error_ms.p50.unwrap() - 0.001).abs() < 1e-9);
}

#[test]
fn the_last_look_at_the_server_says_nothing_of_the_client() {
    let mut seen = samples(quiet(), vec![beat(1_500.0, 0.0)], Vec::new());
    // The last answer came before the window ended.
    seen[1].at = ms(60_500.0);
    let before = analyzed(&seen, None).client;
    let silent = Err("late".to_owned());
    let scrapes = vec![Scrape { at: ms(70_000.0), took: ms(1.0), endpoint: 0, outcome: silent }];
    seen.push(HealthSample { at: ms(70_000.0), scrapes, ..HealthSample::default() });
    assert_eq!(analyzed(&seen, None).client, before);
}

#[test]
fn each_signal_names_its_cause() {
    use Severity::{Void, Warn};
    let thread = |cpu: f64, waited: f64| {
        let worker = ThreadSample {
            name: "worker-0".to_owned(),
            cpu: ms(cpu * 61_000.0),
            waited: ms(waited * 61_000.0),
            preempted: 0,
        };
        HostSample { threads: vec![worker], ..quiet() }
    };
    let throttled = |time: f64| HostSample {
        throttled: Some(Throttled { periods: 1, time: ms(time) }),
        ..quiet()
    };
    let hosts = [
        ("cpu_contended", Warn, thread(0.1, 0.04)),
        ("client_busy", Warn, thread(0.71, 0.0)),
        ("cpu_crowded", Warn, HostSample { idle: ms(5_000.0), ..quiet() }),
        ("cpu_throttled", Warn, throttled(10.0)),
        ("cpu_throttled", Void, throttled(4_000.0)),
        ("cpu_stolen", Warn, HostSample { steal: ms(3_500.0), ..quiet() }),
        ("not_observed", Warn, quiet()),
    ];
    for (code, severity, host) in hosts {
        let summary = analyzed(&samples(host, Vec::new(), Vec::new()), None);
        assert_eq!(severity_of(&summary, code), Some(severity), "{code}");
    }
    // Other threads of this process explain the worker's waiting.
    let mut own = thread(0.1, 0.04);
    own.threads.push(ThreadSample {
        name: "feeder".to_owned(),
        cpu: ms(2_440.0),
        ..own.threads[0].clone()
    });
    let summary = analyzed(&samples(own, Vec::new(), Vec::new()), None);
    assert_eq!(severity_of(&summary, "cpu_contended"), None);
    // 5 % and 10 % of a TTFT of 100 ms.
    for (slip_ms, readings, expected) in
        [(60.0, 2, None), (4.9, 3, None), (5.1, 3, Some(Warn)), (10.1, 3, Some(Void))]
    {
        let late = CanaryReading { due: ms(2_000.0), slip: ms(slip_ms), errors_ns: vec![0] };
        let summary = analyzed(&samples(quiet(), Vec::new(), vec![late; readings]), None);
        assert_eq!(severity_of(&summary, "canary"), expected, "{readings} of {slip_ms} ms");
    }
    for (events_per_s, expected) in [(300.0, Some(Warn)), (500.0, None)] {
        // 21 events in each of ten requests a second.
        let ceiling = Ceiling { events_per_s: Some(events_per_s), requests_per_s: None };
        let summary = analyzed(&samples(quiet(), Vec::new(), Vec::new()), Some(ceiling));
        assert_eq!(severity_of(&summary, "near_ceiling"), expected, "{events_per_s}");
    }
}

/// What a late send adds is judged by the TTFT that it is added to.
#[test]
fn slip_is_judged_by_the_ttft() {
    use Severity::{Void, Warn};
    let cases = [
        (800.0, 15.0, None),
        (800.0, 17.0, Some(Warn)),
        (800.0, 81.0, Some(Void)),
        (50.0, 1.1, Some(Warn)),
        (50.0, 5.1, Some(Void)),
        (5.0, 0.4, None),
        (5.0, 0.6, Some(Warn)),
        (5.0, 1.4, Some(Void)),
    ];
    for (ttft_ms, slip_ms, expected) in cases {
        let (plan, mut records) = minute();
        for record in &mut records {
            let stamps = &mut record.exchange.stamps;
            stamps.sent_first = Some(record.scheduled + ms(slip_ms));
            stamps.first_token = Some(record.scheduled + ms(ttft_ms));
        }
        let summary = summary(&plan, &records);
        let found = severity_of(&summary, "schedule_slip");
        assert_eq!(found, expected, "{slip_ms} ms on a TTFT of {ttft_ms} ms");
    }
}

/// Tokens come every 10 ms: a loop that is called later than that cannot tell them apart.
#[test]
fn a_loop_slower_than_the_tokens_is_not_valid() {
    for (lag_ms, expected) in [(9.0, None), (26.0, Some(Severity::Warn))] {
        let beats = (0..600).map(|i| beat(f64::from(i) * 100.0, lag_ms)).collect();
        let summary = analyzed(&samples(quiet(), beats, Vec::new()), None);
        assert_eq!(severity_of(&summary, "tokens_merged"), expected, "{lag_ms}");
    }
}

#[test]
fn a_record_of_health_that_ends_early_says_so() {
    let mut seen = observed();
    assert_eq!(severity_of(&analyzed(&seen, None), "not_observed"), None);
    seen[1].at = ms(30_000.0);
    assert_eq!(severity_of(&analyzed(&seen, None), "not_observed"), Some(Severity::Warn));
}

#[test]
fn a_stall_is_cut_and_counted() {
    // Two seconds in which the client stood still, and in which the server went on.
    let stall = vec![beat(20_000.0, 2_000.0)];
    let (plan, mut records) = minute();
    for record in &mut records {
        let at = record.scheduled.as_ms();
        // Due in the stall and sent at its end; or open in the stall, with one late gap.
        if (20_000.0..22_000.0).contains(&at) {
            record.exchange.stamps.first_token = Some(ms(22_010.0));
        }
    }
    let clean = analyze_run(&plan, facts(RunState::Complete), || records.iter().cloned(), &[], []);
    assert!(
        clean.metrics["ttft"].max.unwrap() > 2_000.0,
        "without the signal it is in the numbers"
    );
    let seen = samples(quiet(), stall, Vec::new());
    let summary =
        analyze_run(&plan, facts(RunState::Complete), || records.iter().cloned(), &seen, []);
    assert_eq!(summary.metrics["ttft"].max, Some(100.0));
    assert_eq!(summary.requests.scheduled, clean.requests.scheduled, "no request is left out");
    let stalls = &summary.client.stalls;
    assert_eq!(
        (stalls.count, stalls.longest_ms, stalls.longest_at_s),
        (1, Some(2_000.0), Some(20.0))
    );
    // Due within 20 ms of the stall, or with tokens (100 to 300 ms later) in it.
    assert_eq!(stalls.requests, 24);
    assert_eq!(severity_of(&summary, "client_stalled"), Some(Severity::Warn));
    assert_eq!(severity_of(&summary, "schedule_slip"), None, "the lateness is the stall's");
    let long = samples(quiet(), vec![beat(20_000.0, 4_000.0)], Vec::new());
    let summary =
        analyze_run(&plan, facts(RunState::Complete), || records.iter().cloned(), &long, []);
    assert_eq!(severity_of(&summary, "client_stalled"), Some(Severity::Void));
}

proptest! {
    /// Whatever the stamps, the parts add up to TTFT to the nanosecond.
    #[test]
    fn the_waterfall_adds_up(
        offsets in prop::collection::vec(0u64..2_000_000, 5),
        (cap, blocked, connect) in (0u64..500_000, 0u64..500_000, 0u64..500_000),
    ) {
        let mut one = record(0, 1_000.0, &[10.0; 3]);
        let at = |offset: u64| Some(one.scheduled + Nanos(offset));
        let stamps = &mut one.exchange.stamps;
        stamps.sent_first = at(offsets[0]);
        stamps.sent_last = at(offsets[1]);
        stamps.headers = at(offsets[2]);
        stamps.first_byte = at(offsets[3]);
        stamps.first_token = at(offsets[4]);
        let span = |length: u64| goodput_model::TimeSpan { start: Nanos::ZERO, end: Nanos(length) };
        stamps.connect = Some(goodput_model::Connect { tcp: span(connect), tls: Some(span(connect / 3)) });
        one.cap_wait = Nanos(cap);
        one.exchange.blocked = Nanos(blocked);
        let mut plan = plan(Some(60), None, LoadExtent::Requests(0));
        plan.load.num_requests = Some(1);
        let summary = analyze_run(&plan, facts(RunState::Complete), || std::iter::once(one.clone()), &[], []);
        let band = summary.waterfall.unwrap().median;
        let sum: f64 = band.parts.iter().map(|part| part.ms).sum();
        let ttft = Nanos(offsets[4]).as_ms();
        prop_assert!((sum - ttft).abs() < 1e-9 && (band.ttft_ms - ttft).abs() < 1e-9, "{sum} {ttft}");
        prop_assert!(band.parts.iter().all(|part| part.ms >= 0.0));
    }
}
