//! Whole summaries of runs whose every instant is written down here.

mod caveats;
mod clean;
mod fleet;
mod gpu;
mod health;
mod slo;
mod speed;
mod stopped;
mod time;
mod workload;

use std::time::Duration;

use goodput_model::{
    AnswerJudgement, ArrivalProcess, Chunk, ConnectionPolicy, ErrorClass, Failure, FailureStage,
    LengthDistribution, LoadExtent, Measure, Mode, Nanos, Phase, Plan, Planned, Rate,
    RequestRecord, Severity, Stamps, TokenCount, TokenSource, Verdict,
};

use goodput_testkit::RecordBuilder;

use crate::{Quality, RunFacts, RunState, Summary, analyze_run};

pub(crate) fn ms(ms: f64) -> Nanos {
    Nanos::from_secs_f64(ms / 1e3)
}

pub(crate) fn plan(duration: Option<u64>, num_requests: Option<u64>, warmup: LoadExtent) -> Plan {
    let mut plan = goodput_testkit::test_plan();
    plan.load.mode = Mode::Open {
        rate: Rate::PerSecond(10.0),
        arrivals: ArrivalProcess::Constant,
        max_concurrency: None,
    };
    plan.load.duration = duration.map(Duration::from_secs);
    (plan.load.num_requests, plan.load.warmup) = (num_requests, warmup);
    plan
}

pub(crate) fn facts(state: RunState) -> RunFacts {
    RunFacts {
        version: "0".to_owned(),
        state,
        api: "chat".to_owned(),
        stream: true,
        seed: 1,
        warmup: "0s".to_owned(),
        ..RunFacts::default()
    }
}

/// A good request: sent 1 ms late, first token 100 ms after it was due, one chunk each `gaps` ms.
pub(crate) fn record(index: u64, scheduled_ms: f64, gaps_ms: &[f64]) -> RequestRecord {
    let scheduled = ms(scheduled_ms);
    let first = scheduled + ms(100.0);
    let later = gaps_ms.iter().scan(first, |at, gap| {
        *at += ms(*gap);
        Some(*at)
    });
    RecordBuilder::new(scheduled)
        .index(index)
        .planned(Planned::new("chat", 50, None))
        .sent(scheduled + ms(1.0))
        .answered(scheduled + ms(2.0), first)
        .tokens([first].into_iter().chain(later))
        .input_tokens(40)
        .finish("stop")
        .build()
}

pub(crate) fn fail(mut record: RequestRecord, class: ErrorClass) -> RequestRecord {
    record.exchange.failure =
        Some(Failure { class, stage: FailureStage::Headers, message: "m".into() });
    record.exchange.chunks.clear();
    record.exchange.output_tokens = None;
    let stamps = &mut record.exchange.stamps;
    (stamps.first_token, stamps.first_answer, stamps.last_token) = (None, None, None);
    stamps.done = None;
    record
}

pub(crate) fn summary(plan: &Plan, records: &[RequestRecord]) -> Summary {
    judged(plan, records, &[])
}

fn judged(plan: &Plan, records: &[RequestRecord], judgements: &[AnswerJudgement]) -> Summary {
    let facts = facts(RunState::Complete);
    let judgements = judgements.iter().copied();
    analyze_run(plan, facts, || records.iter().cloned(), &health::observed(), judgements)
}

fn severity_of(summary: &Summary, code: &str) -> Option<Severity> {
    summary.caveats.iter().find(|caveat| caveat.code.name() == code).map(|caveat| caveat.severity)
}

/// Two seconds.
fn short() -> Plan {
    plan(Some(2), None, NO_WARMUP)
}

fn p50(summary: &Summary, metric: &str) -> f64 {
    summary.metrics[metric].percentiles["50"].value.unwrap()
}

fn close(actual: Option<f64>, expected: f64) {
    let actual = actual.unwrap();
    assert!((actual - expected).abs() < 1e-6, "{actual} is not {expected}");
}

/// A request of a session.
fn turn(index: u64, session: u64, turn: u32, due: f64) -> RequestRecord {
    let mut record = record(index, due, &[]);
    (record.planned.session, record.planned.turn) = (Some(session), turn);
    record
}

pub(crate) const NO_WARMUP: LoadExtent = LoadExtent::Requests(0);

#[test]
fn metrics_follow_their_definitions() {
    let records = [record(0, 0.0, &[10.0, 30.0]), record(1, 1000.0, &[20.0])];
    let s = summary(&plan(Some(2), None, NO_WARMUP), &records);
    assert_eq!(s.metrics["ttft"].n, 2);
    close(Some(p50(&s, "ttft")), 100.0);
    close(Some(p50(&s, "ttft_sent")), 99.0);
    // (140 - 100) / (3 - 1) and (120 - 100) / (2 - 1).
    close(s.metrics["tpot"].mean, 20.0);
    assert_eq!(s.metrics["itl"].n, 3);
    close(s.metrics["itl"].max, 30.0);
    close(s.metrics["max_gap"].min, 20.0);
    close(s.metrics["e2e"].max, 140.0);
    close(s.metrics["e2e_sent"].max, 139.0);
    close(s.metrics["normalized_latency"].max, 60.0);
    close(s.metrics["request_tokens_per_s"].min, 2.0 / 0.12);
    close(s.load.slip_ms.max, 1.0);
}

#[test]
fn intervals_know_when_requests_were_due() {
    // Each second request waits twice as long; in the second half tokens come half as fast.
    let request = |index: u64| {
        let gap = if index < 100 { 10.0 } else { 20.0 };
        let mut record = record(index, index as f64 * 10.0, &[gap, gap]);
        let first = record.scheduled + ms(if index.is_multiple_of(2) { 25.0 } else { 50.0 });
        record.exchange.stamps.first_token = Some(first);
        record
    };
    // They come back in another order.
    let records: Vec<_> =
        (0..100).map(|k| 2 * k).chain((0..100).map(|k| 2 * k + 1)).map(request).collect();
    let s = summary(&short(), &records);
    let p50 = |metric: &str| s.metrics[metric].percentiles["50"];
    // All alternate: each is as far from the mean as the one before, on the other side.
    close(s.metrics["ttft"].lag1, -199.0 / 200.0);
    assert_eq!(p50("ttft").n_eff, Some(200.0));
    assert_eq!(p50("ttft").quality, Quality::Ok);
    // Slow gaps fill ten of twenty batches: worth as many as there are batches, less one.
    close(p50("itl").n_eff, 19.0);
    close(p50("itl_token").n_eff, 19.0);
    // One value a request: a change in the middle is the longest memory that a run can show.
    let max_gap = p50("max_gap");
    assert!(max_gap.n_eff.is_some_and(|n_eff| n_eff < 19.0), "{max_gap:?}");
    assert_eq!((max_gap.low, max_gap.high, max_gap.quality), (None, None, Quality::Rough));
    close(s.metrics["itl"].mean, 15.0);
    // 5 · 2.093 · sqrt(20/19 / 20).
    close(s.metrics["itl"].mean_low, 15.0 - 5.0 * 2.093_024_054_408_263 / 19.0f64.sqrt());
    close(s.metrics["ttft"].tail_ratio, 2.0);
    let json = serde_json::to_value(&s).unwrap();
    assert_eq!(json["metrics"]["ttft"]["percentiles"]["99"]["quality"], "rough");
    assert_eq!(json["metrics"]["ttft"]["percentiles"]["50"]["quality"], "ok");
}

#[test]
fn a_single_token_has_no_time_per_token() {
    let s = summary(&plan(Some(2), None, NO_WARMUP), &[record(0, 0.0, &[])]);
    assert_eq!((s.metrics["tpot"].n, s.metrics["itl"].n, s.metrics["max_gap"].n), (0, 0, 0));
    assert_eq!(s.metrics["ttft"].n, 1);
}

#[test]
fn an_end_token_that_is_counted_but_not_shown_takes_no_time() {
    let mut one = record(0, 0.0, &[]);
    one.exchange.output_tokens = Some(TokenCount { n: 2, source: TokenSource::Usage });
    let mut three = record(1, 100.0, &[10.0, 10.0]);
    three.exchange.output_tokens = Some(TokenCount { n: 4, source: TokenSource::Usage });
    let s = summary(&plan(Some(2), None, NO_WARMUP), &[one, three]);
    assert_eq!(s.metrics["tpot"].n, 1);
    close(s.metrics["tpot"].mean, 10.0);
}

#[test]
fn tokens_that_all_came_at_once_have_no_pace() {
    let s = summary(&plan(Some(2), None, NO_WARMUP), &[record(0, 0.0, &[0.0, 0.0])]);
    assert_eq!((s.metrics["tpot"].n, s.metrics["itl"].n), (0, 2));
}

#[test]
fn chunks_of_several_tokens_are_told_apart() {
    let mut several = record(0, 0.0, &[10.0, 40.0]);
    for (chunk, tokens) in several.exchange.chunks.iter_mut().zip([1, 1, 4]) {
        chunk.tokens = Some(tokens);
    }
    several.exchange.output_tokens = Some(TokenCount { n: 6, source: TokenSource::Usage });
    let s = summary(&plan(Some(2), None, NO_WARMUP), &[several]);
    assert_eq!((s.metrics["itl"].n, s.metrics["itl_token"].n), (2, 5));
    close(s.metrics["itl"].mean, 25.0);
    close(s.metrics["itl_token"].mean, 10.0);
    close(s.metrics["tpot"].mean, 10.0);
}

#[test]
fn answers_without_a_count_are_named() {
    let mut silent = record(1, 5.0, &[]);
    silent.exchange.output_tokens = None;
    let s = summary(&plan(Some(2), None, NO_WARMUP), &[record(0, 0.0, &[10.0]), silent]);
    assert_eq!((s.tokens.output, s.tokens.uncounted), (2, 1));
    assert!(s.caveats.iter().any(|caveat| caveat.code.name() == "tokens_uncounted"));
}

#[test]
fn gaps_belong_to_their_answer() {
    let mut two = record(0, 0.0, &[1.0, 10.0, 1.0]);
    for (chunk, choice) in two.exchange.chunks.iter_mut().zip([0, 1, 0, 1]) {
        chunk.choice = choice;
    }
    let s = summary(&plan(Some(2), None, NO_WARMUP), &[two]);
    // Answer 0 at 100 and 111 ms, answer 1 at 101 and 112.
    assert_eq!(s.metrics["itl"].n, 2);
    close(s.metrics["itl"].min, 11.0);
    // Four tokens in two answers: two each, over 12 ms.
    close(s.metrics["tpot"].mean, 12.0);
}

#[test]
fn throughput_counts_what_arrives_inside_the_window() {
    // Window of 1 s. The second request's tokens arrive at 950, 1000 (outside) and 1050 (outside).
    let records = [record(0, 0.0, &[10.0]), record(1, 850.0, &[50.0, 50.0])];
    let s = summary(&plan(Some(1), None, NO_WARMUP), &records);
    assert_eq!((s.window.start_s, s.window.end_s, s.window.kind.as_str()), (0.0, 1.0, "steady"));
    close(s.throughput.output_tokens_per_s, 3.0);
    close(s.throughput.requests_per_s, 1.0);
    // Both first tokens fall inside: 80 prompt tokens.
    close(s.throughput.total_tokens_per_s, 83.0);
    // Both requests belong to the latency sample: they were due inside.
    assert_eq!(s.metrics["e2e"].n, 2);
    // The whole run lasts to the last answer, 1.05 s.
    close(s.whole_run.requests_per_s, 2.0 / 1.05);
    // In flight: 110 ms and 150 of the last 150 ms before the end.
    close(s.load.in_flight_mean, 0.26);
    assert_eq!(s.load.in_flight_end, 1);
}

#[test]
fn warmup_and_cooldown_stay_out_of_the_sample_but_their_tokens_count_when_they_arrive() {
    let mut warm = record(0, 0.0, &[950.0]);
    warm.phase = Phase::Warmup;
    let mut cool = record(2, 2000.0, &[]);
    cool.phase = Phase::Cooldown;
    let records = [warm, record(1, 1500.0, &[]), cool];
    let s = summary(&plan(Some(1), None, LoadExtent::Time(Duration::from_secs(1))), &records);
    assert_eq!((s.window.start_s, s.window.end_s), (1.0, 2.0));
    assert_eq!((s.requests.scheduled, s.requests.warmup, s.requests.cooldown), (1, 1, 1));
    assert_eq!(s.metrics["ttft"].n, 1);
    // The warm-up's second token arrives at 1.05 s, the measured one's first at 1.6 s.
    close(s.throughput.output_tokens_per_s, 2.0);
    close(s.throughput.requests_per_s, 2.0);
}

#[test]
fn a_run_by_count_ends_at_its_last_due_instant() {
    let records: Vec<_> = (0..5).map(|i| record(i, i as f64 * 500.0, &[])).collect();
    let s = summary(&plan(None, Some(5), NO_WARMUP), &records);
    assert_eq!((s.window.end_s, s.window.kind.as_str()), (2.0, "steady"));
    close(s.load.scheduled_rps, 2.0);
    close(s.load.delivered_rps, 2.0);
    close(s.load.gap_cv, 0.0);
    // Too few to have anything steady: from first to last.
    let s = summary(&plan(None, Some(1), NO_WARMUP), &[record(0, 0.0, &[10.0])]);
    assert_eq!((s.window.end_s, s.window.kind.as_str()), (0.11, "makespan"));
    close(s.throughput.requests_per_s, 1.0 / 0.11);
}

#[test]
fn failures_stay_in_the_denominator_and_timeouts_in_the_tail() {
    let records = [
        record(0, 0.0, &[]),
        fail(record(1, 100.0, &[]), ErrorClass::Http(500)),
        fail(record(2, 200.0, &[]), ErrorClass::Timeout),
        record(3, 300.0, &[]),
        record(4, 400.0, &[]),
    ];
    let s = summary(&plan(Some(1), None, NO_WARMUP), &records);
    assert_eq!((s.requests.scheduled, s.requests.ok, s.requests.failed), (5, 3, 2));
    assert_eq!(s.requests.errors["http_500"], 1);
    assert_eq!(s.requests.errors["timeout"], 1);
    let ttft = &s.metrics["ttft"];
    assert_eq!((ttft.n, ttft.censored), (4, 1));
    close(ttft.percentiles["50"].value, 100.0);
    assert!(ttft.percentiles["99"].is_censored && ttft.max.is_none());
    assert_eq!(s.verdict, Verdict::Suspect);
}

#[test]
fn a_stall_that_was_given_up_on_is_the_largest_gap() {
    let mut stalled = record(0, 0.0, &[10.0]);
    stalled.exchange.failure = Some(Failure {
        class: ErrorClass::Timeout,
        stage: FailureStage::Stream,
        message: String::new(),
    });
    stalled.exchange.stamps.done = None;
    stalled.exchange.stamps.ended = ms(900.0);
    let s = summary(&plan(Some(1), None, NO_WARMUP), &[stalled, record(1, 100.0, &[20.0])]);
    let gap = &s.metrics["max_gap"];
    assert_eq!((gap.n, gap.censored), (2, 1));
    // Of a speed it is the slowest.
    let speed = &s.metrics["request_tokens_per_s"];
    assert_eq!((speed.n, speed.censored, speed.min), (2, 0, Some(0.0)));
    // It was in flight until it was given up: 900 ms and 120 ms of the second.
    close(s.load.in_flight_mean, 1.02);
    assert_eq!(s.requests.error_details[0].stage, "stream");
}

#[test]
fn a_late_client_makes_the_result_suspect_then_void() {
    let late = |slip_ms: f64| {
        let mut late = record(0, 0.0, &[]);
        late.exchange.stamps.sent_first = Some(ms(slip_ms));
        summary(&plan(Some(1), None, NO_WARMUP), &[late]).verdict
    };
    // The limits are 2 % and 10 % of a TTFT median of 100 ms.
    assert_eq!(late(1.9), Verdict::Valid);
    assert_eq!(late(2.1), Verdict::Suspect);
    assert_eq!(late(10.1), Verdict::Void);
}

#[test]
fn a_closed_loop_that_misses_users_says_so() {
    // Ten requests back to back, 100 ms each, for one second.
    let records: Vec<_> = (0u32..10).map(|i| record(i.into(), f64::from(i) * 100.0, &[])).collect();
    let verdict = |concurrency, think_ms| {
        let mut plan = plan(Some(1), None, NO_WARMUP);
        let think_time = Duration::from_millis(think_ms);
        plan.load.mode = Mode::Closed { concurrency, think_time, pause_first: false };
        // Ten requests are too few for any percentile, and that is not what this is about.
        Verdict::from_caveats_of_part(&summary(&plan, &records).caveats)
    };
    assert_eq!(verdict(1, 0), Verdict::Valid);
    assert_eq!(verdict(2, 0), Verdict::Void);
    // Nine or ten completions a second with 100 ms of thought each: the second user.
    assert_eq!(verdict(2, 100), Verdict::Valid);
}

#[test]
fn opening_a_connection_and_waiting_for_a_cap_are_not_lateness() {
    let mut slow = record(0, 0.0, &[]);
    let tcp = goodput_model::TimeSpan { start: ms(10.0), end: ms(50.0) };
    slow.exchange.stamps.connect = Some(goodput_model::Connect { tcp, tls: None });
    slow.exchange.stamps.sent_first = Some(ms(57.5));
    slow.exchange.blocked = ms(7.0);
    slow.cap_wait = ms(10.0);
    let s = summary(&plan(Some(1), None, NO_WARMUP), &[slow]);
    close(s.load.slip_ms.max, 0.5);
    assert_eq!((s.load.delayed, s.requests.connects), (1, 1));
}

#[test]
fn an_overloaded_server_is_noticed_and_a_busy_one_is_not() {
    // Due every 10 ms for 10 s, with the first token 100 ms before the end. Overloaded: answered
    // every 15 ms. Busy: each takes 500 ms. Filling up: ever longer answers, begun at once.
    let run = |end_ms: &dyn Fn(f64) -> f64, first_ms: &dyn Fn(f64) -> f64| {
        let records: Vec<_> = (0u32..1000)
            .map(|i| {
                let due = f64::from(i) * 10.0;
                let mut record = record(i.into(), due, &[]);
                let end = ms(end_ms(due));
                record.exchange.stamps.done = Some(end);
                record.exchange.stamps.ended = end;
                record.exchange.stamps.last_token = Some(end);
                record.exchange.stamps.first_token = Some(ms(first_ms(due)));
                record
            })
            .collect();
        let s = summary(&plan(Some(10), None, NO_WARMUP), &records);
        s.caveats.iter().any(|caveat| caveat.code.name() == "overloaded")
    };
    assert!(run(&|due| due * 1.5 + 100.0, &|due| due * 1.5));
    assert!(!run(&|due| due + 500.0, &|due| due + 400.0));
    assert!(!run(&|due| due * 1.5 + 100.0, &|due| due + 50.0));
}

#[test]
fn an_empty_run_is_void_and_does_not_divide_by_zero() {
    let s = summary(&plan(Some(1), None, NO_WARMUP), &[]);
    assert_eq!((s.requests.scheduled, s.verdict), (0, Verdict::Void));
    assert_eq!(s.metrics["ttft"].percentiles["50"].value, None);
    assert!(s.load.delivered_rps.is_none());
    let json = serde_json::to_string(&s).unwrap();
    assert!(!json.contains("NaN"), "{json}");
}
