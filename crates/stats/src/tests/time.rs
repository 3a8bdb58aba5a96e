//! Loads that change over time, traces, and sessions.

use goodput_model::Keep;

use super::*;

fn shaped(shape: &str) -> Plan {
    let mut plan = plan(None, None, NO_WARMUP);
    let shape = shape.parse().unwrap();
    plan.load.mode =
        Mode::Shaped { shape, arrivals: ArrivalProcess::Poisson, max_concurrency: None };
    plan
}

#[test]
fn stages_have_rates_of_their_own() {
    let mut records: Vec<_> = (0..3).map(|i| record(i, i as f64 * 400.0, &[])).collect();
    // Due in the first second, answered in the second.
    records.push(record(3, 950.0, &[]));
    records.extend((4..8).map(|i| record(i, 1000.0 + (i - 4) as f64 * 900.0, &[10.0])));
    let s = summary(&shaped("1s@4,4s@1"), &records);
    assert_eq!((s.window.start_s, s.window.end_s, s.window.kind.as_str()), (0.0, 5.0, "steady"));
    let stages = &s.breakdown["stage"];
    let [first, second] = ["1: 1s@4", "2: 4s@1"].map(|label| &stages[label]);
    assert_eq!((first.scheduled, second.scheduled), (4, 4));
    close(first.rps, 3.0);
    close(second.rps, 5.0 / 4.0);
    close(first.output_tps, 3.0);
    close(second.output_tps, 9.0 / 4.0);
    // Four in the first second, four in the next four.
    close(s.load.offered_rps, 8.0 / 5.0);
    assert_eq!((s.load.mode.as_str(), s.load.shape.as_deref()), ("shaped", Some("1s@4,4s@1")));
    assert_eq!((s.load.due_gaps, s.load.sent_gaps), (None, None));
}

/// What would be an overload at a constant rate is a ramp at a changing one.
#[test]
fn a_rising_rate_is_no_overload() {
    let records: Vec<_> = (0u32..1000)
        .map(|i| {
            let due = f64::from(i) * 10.0;
            let mut record = record(i.into(), due, &[]);
            let stamps = &mut record.exchange.stamps;
            stamps.first_token = Some(ms(due * 1.5));
            let end = ms(due * 1.5 + 100.0);
            (stamps.done, stamps.ended, stamps.last_token) = (Some(end), end, Some(end));
            record
        })
        .collect();
    let mut plan = plan(Some(10), None, NO_WARMUP);
    assert_eq!(severity_of(&summary(&plan, &records), "overloaded"), Some(Severity::Warn));
    plan.load.mode = shaped("10s@10..190").load.mode;
    let s = summary(&plan, &records);
    assert_eq!(severity_of(&s, "overloaded"), None);
    assert_eq!(severity_of(&s, "littles_law"), None);
    close(s.load.offered_rps, 100.0);
}

#[test]
fn a_train_of_bursts_has_no_schedule_to_keep() {
    let records: Vec<_> = (0..20)
        .map(|i| {
            let mut record = record(i, 0.0, &[]);
            record.exchange.stamps.sent_first = Some(ms(i as f64));
            record
        })
        .collect();
    assert_eq!(
        severity_of(&summary(&shaped("2s@10"), &records), "schedule_slip"),
        Some(Severity::Void)
    );
    let mut bursts = short();
    bursts.load.mode = shaped("bursts:20/1s").load.mode;
    let s = summary(&bursts, &records);
    assert_eq!(severity_of(&s, "schedule_slip"), None);
    // At 0 and 1 s of two seconds.
    close(s.load.offered_rps, 20.0);
}

#[test]
fn a_replay_says_how_far_it_drifted() {
    let at = |index: u64, due: f64, trace: f64| {
        let mut record = record(index, due, &[]);
        record.planned.trace_at = Some(ms(trace));
        record
    };
    let mut plan = plan(None, None, NO_WARMUP);
    plan.load.mode =
        Mode::Replay { time_scale: 0.5, keep: Keep::ThinkTimes, max_concurrency: None };
    let records = [at(0, 0.0, 0.0), at(1, 500.0, 490.0), at(2, 1000.0, 1003.0)];
    let s = summary(&plan, &records);
    let replay = s.replay.unwrap();
    assert_eq!((replay.keep.as_str(), replay.time_scale, replay.n), ("think-times", 0.5, 3));
    // 0, 10 and 3 ms off; sent 1 ms later: 1, 11 and 2.
    close(replay.drift_ms.p50, 3.0);
    close(replay.drift_ms.max, 10.0);
    close(replay.sent_drift_ms.p50, 2.0);
    close(replay.sent_drift_ms.max, 11.0);
    // Two more after the first within a second.
    close(s.load.offered_rps, 2.0);
    assert!(summary(&short(), &records).replay.is_none());
}

#[test]
fn sessions_are_counted_and_their_pauses_are_no_idle_users() {
    // One user for one second: asked for 100 ms, paused for 400 ms, twice; the second session
    // fans out in its first step.
    let records = [
        turn(0, 0, 0, 0.0),
        turn(1, 0, 1, 500.0),
        turn(2, 1, 0, 600.0),
        turn(3, 1, 0, 600.0),
        turn(4, 1, 1, 900.0),
    ];
    let mut plan = plan(Some(1), None, NO_WARMUP);
    plan.load.mode =
        Mode::Closed { concurrency: 1, think_time: Duration::ZERO, pause_first: false };
    let s = summary(&plan, &records);
    let sessions = s.sessions.unwrap();
    assert_eq!((sessions.n, sessions.turns_max, sessions.cut_requests), (2, 2, 0));
    close(Some(sessions.requests_mean), 2.5);
    close(sessions.arrivals_per_s, 2.0);
    // 400 ms and 200 ms of one second.
    close(sessions.thinking_mean, 0.6);
    assert_eq!(severity_of(&s, "client_starved"), None);
    let mut single = records.clone();
    for record in &mut single {
        record.planned.session = None;
    }
    let s = summary(&plan, &single);
    assert!(s.sessions.is_none());
    assert_eq!(severity_of(&s, "client_starved"), Some(Severity::Void), "without sessions it is");
}

#[test]
fn sessions_arrive_by_schedule_and_their_later_requests_do_not() {
    // Exponential gaps of 10 sessions a second, by quantiles; each has a second request 5 ms after
    // its answer.
    let mut at = 0.0;
    let mut records = Vec::new();
    for k in 0..200u64 {
        at -= (1.0 - (((k * 77) % 200) as f64 + 0.5) / 200.0).ln() * 100.0;
        records.push(turn(2 * k, k, 0, at));
        records.push(turn(2 * k + 1, k, 1, at + 105.0));
    }
    let mut plan = plan(Some(25), None, NO_WARMUP);
    plan.load.mode = Mode::Open {
        rate: Rate::PerSecond(10.0),
        arrivals: ArrivalProcess::Poisson,
        max_concurrency: None,
    };
    let s = summary(&plan, &records);
    assert!(s.load.due_gaps.unwrap().p > 0.99, "{:?}", s.load.due_gaps);
    assert_eq!(s.load.sent_gaps.unwrap().n, 199);
    assert_eq!(severity_of(&s, "not_poisson"), None);
    for record in &mut records {
        record.planned.session = None;
    }
    assert_eq!(severity_of(&summary(&plan, &records), "not_poisson"), Some(Severity::Warn));
}

#[test]
fn sessions_that_were_cut_are_told() {
    let of = |cut_requests| {
        let facts = RunFacts { cut_requests, ..facts(RunState::Complete) };
        let records = [turn(0, 0, 0, 0.0)];
        analyze_run(&short(), facts, || records.iter().cloned(), &health::observed(), [])
    };
    let s = of(3);
    assert_eq!(severity_of(&s, "sessions_cut"), Some(Severity::Info));
    assert_eq!(s.sessions.unwrap().cut_requests, 3);
    assert_eq!(severity_of(&of(0), "sessions_cut"), None);
}

/// Four users in a loop that ends by count, all alike: an automatic warm-up has nothing to cut.
#[test]
fn an_automatic_warm_up_that_cuts_nothing_moves_no_request() {
    let mut plan = plan(None, Some(400), LoadExtent::Auto);
    let (think_time, pause_first) = (Duration::ZERO, false);
    plan.load.mode = Mode::Closed { concurrency: 4, think_time, pause_first };
    let records: Vec<_> = (0..400).map(|i| record(i, (i / 4) as f64 * 1000.0, &[900.0])).collect();
    let s = summary(&plan, &records);
    assert_eq!(s.window.cut.as_ref().unwrap().cut_s, 0.0);
    assert!(s.window.start_s > 0.0, "it begins with the end of the first four");
    assert_eq!((s.requests.warmup, s.requests.scheduled), (0, 400));
}
