//! Each caveat fires on its cause with its advice, and is silent without it.

use goodput_model::{Caveat, Connect, LoadShape, TimeSpan};

use super::*;
use crate::SloState;
use crate::steady::SteadyAnswer;

fn caveat<'a>(summary: &'a Summary, code: &str) -> Option<&'a Caveat> {
    summary.caveats.iter().find(|caveat| caveat.code.name() == code)
}

fn advice(summary: &Summary, code: &str) -> String {
    caveat(summary, code).unwrap().advice.clone().unwrap()
}

fn message(summary: &Summary, code: &str) -> String {
    caveat(summary, code).unwrap().message.clone()
}

/// Requests every 100 ms.
fn steady(n: u32) -> Vec<RequestRecord> {
    (0..n).map(|i| record(i.into(), f64::from(i) * 100.0, &[10.0; 3])).collect()
}

fn closed(concurrency: u32) -> Mode {
    Mode::Closed { concurrency, think_time: Duration::ZERO, pause_first: false }
}

fn with_facts(plan: &Plan, records: &[RequestRecord], facts: RunFacts) -> Summary {
    analyze_run(plan, facts, || records.iter().cloned(), &health::observed(), [])
}

#[test]
fn every_caveat_has_advice() {
    let mut plan = plan(Some(2), None, NO_WARMUP);
    plan.workload.classes[0].prefix =
        Some(goodput_model::PrefixPlan { system_tokens: 9, shared: None });
    let mut records = steady(20);
    records[3] = fail(records[3].clone(), ErrorClass::LocalLimit);
    records[5].exchange.stamps.sent_first = Some(records[5].scheduled + ms(50.0));
    records[6].exchange.output_tokens = None;
    let facts = RunFacts {
        lost_records: 1,
        cut_requests: 2,
        clock_step_ms: Some(1e4),
        ..facts(RunState::Unfinished)
    };
    let summary = with_facts(&plan, &records, facts);
    assert!(summary.caveats.len() >= 10, "{:?}", summary.caveats);
    for caveat in &summary.caveats {
        assert!(caveat.advice.as_ref().is_some_and(|advice| !advice.is_empty()), "{caveat:?}");
        assert!(!caveat.message.contains("--"), "flags belong to the advice: {caveat:?}");
    }
}

#[test]
fn advice_on_a_warm_up_fits_the_load() {
    let of = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan(Some(2), None, NO_WARMUP);
        change(&mut plan);
        advice(&summary(&plan, &steady(20)), "no_warmup")
    };
    assert_eq!(of(&|_| {}), "add --warmup auto, or --warmup 10s");
    assert_eq!(of(&|plan| plan.load.mode = closed(40)), "add --warmup auto, or --warmup 80");
    assert_eq!(
        of(&|plan| (plan.load.duration, plan.load.num_requests) = (None, Some(20))),
        "add --warmup auto, or --warmup 50"
    );
    // Two requests in two seconds: fifty take fifty.
    let slow: Vec<_> = steady(20).into_iter().step_by(10).collect();
    let s = summary(&short(), &slow);
    assert_eq!(advice(&s, "no_warmup"), "add --warmup auto, or --warmup 50s");
    let warm = plan(Some(2), None, LoadExtent::Auto);
    // Two seconds are too short to find a beginning in them.
    assert_eq!(advice(&summary(&warm, &slow), "no_warmup"), "add --warmup 50s");
}

#[test]
fn a_window_is_long_by_the_clock_and_by_its_answers() {
    let of = |seconds: u64, e2e_ms: f64| {
        let mut records = steady(u32::try_from(seconds).unwrap() * 10);
        for record in &mut records {
            let end = record.scheduled + ms(e2e_ms);
            let stamps = &mut record.exchange.stamps;
            (stamps.last_token, stamps.done, stamps.ended) = (Some(end), Some(end), end);
        }
        summary(&plan(Some(seconds), None, NO_WARMUP), &records)
    };
    assert_eq!(advice(&of(59, 130.0), "short_window"), "--duration 60s");
    assert_eq!(severity_of(&of(60, 130.0), "short_window"), None);
    assert_eq!(severity_of(&of(60, 12_000.0), "short_window"), None);
    // The clock alone is a note; a window of fewer than five answers makes the run suspect.
    assert_eq!(severity_of(&of(59, 130.0), "short_window"), Some(Severity::Info));
    let s = of(60, 20_000.0);
    assert_eq!(severity_of(&s, "short_window"), Some(Severity::Warn));
    assert_eq!(advice(&s, "short_window"), "--duration 100s");
    assert_eq!(
        message(&s, "short_window"),
        "the window is 60.0 s, 3.0 times the p99 of E2E (20.0 s): most of it is startup and \
         drain"
    );
    assert_eq!(
        message(&of(15, 10_000.0), "short_window"),
        "the window is 15.0 s, 1.5 times the p99 of E2E (10.0 s): most of it is startup and \
         drain, and its rates mean little"
    );
    let mut by_count = plan(None, Some(20), NO_WARMUP);
    let s = summary(&by_count, &steady(20));
    // 19 of the 20 fall into (0, 1.9 s]: ten a second.
    assert_eq!(advice(&s, "short_window"), "--num-requests 600 lasts 60s");
    by_count.load.num_requests = None;
    by_count.load.mode = Mode::Shaped {
        shape: "2s@10".parse::<LoadShape>().unwrap(),
        arrivals: ArrivalProcess::Poisson,
        max_concurrency: None,
    };
    assert_eq!(advice(&summary(&by_count, &steady(20)), "short_window"), "make the shape last 60s");
}

#[test]
fn fewer_requests_than_the_headline_percentile_needs_make_a_run_suspect() {
    let of = |n: u32, slo: Option<&str>| {
        let mut plan = plan(Some(u64::from(n) / 10), None, NO_WARMUP);
        plan.measure.slo = slo.map(|slo| slo.parse().unwrap());
        let s = summary(&plan, &steady(n));
        (severity_of(&s, "few_samples"), Verdict::from_caveats_of_part(&s.caveats))
    };
    // p95 needs 200 requests, p99 1,000, p90 100; one that starts at the window's end is not in it.
    assert_eq!(of(150, None), (Some(Severity::Warn), Verdict::Valid));
    assert_eq!(of(300, None).0, Some(Severity::Info));
    assert_eq!(of(300, Some("p99 ttft < 500ms")).0, Some(Severity::Warn));
    assert_eq!(of(150, Some("p90 ttft < 500ms")).0, Some(Severity::Info));
    assert_eq!(of(50, Some("p90 ttft < 500ms, mean tpot < 1s")).0, Some(Severity::Warn));
}

/// The same request, answered by one object at its end.
fn whole(mut record: RequestRecord) -> RequestRecord {
    record.exchange.chunks.clear();
    let stamps = &mut record.exchange.stamps;
    (stamps.first_token, stamps.first_answer) = (None, None);
    record
}

/// The same, as events that came at its end, with this many tokens a tenth of a millisecond and a bit
/// apart.
fn held_back(mut record: RequestRecord, tokens: u32, apart_ms: f64) -> RequestRecord {
    record.exchange.output_tokens = Some(TokenCount { n: tokens, source: TokenSource::Usage });
    let stamps = &mut record.exchange.stamps;
    let first = stamps.first_token.unwrap();
    stamps.last_token = Some(first + ms(f64::from(tokens) * apart_ms));
    record
}

#[test]
fn answers_that_came_whole_are_named() {
    let of = |n: usize, change: &dyn Fn(RequestRecord) -> RequestRecord| {
        let mut records = steady(20);
        for record in records.iter_mut().take(n) {
            *record = change(record.clone());
        }
        let mut plan = short();
        plan.measure.slo = Some("ttft < 500ms, e2e < 9s".parse().unwrap());
        plan.measure.attainment = Some(0.5);
        summary(&plan, &records)
    };
    // Two of twenty may be chance; three are not.
    assert_eq!(severity_of(&of(2, &whole), "not_streamed"), None);
    let s = of(3, &whole);
    assert_eq!(severity_of(&s, "not_streamed"), Some(Severity::Warn));
    let s = of(20, &whole);
    assert_eq!(s.requests.whole, 20);
    // The SLO is about TTFT, and no answer has one.
    assert_eq!(severity_of(&s, "not_streamed"), Some(Severity::Void));
    assert_eq!(severity_of(&of(10, &whole), "not_streamed"), Some(Severity::Warn), "half have one");
    assert!(message(&s, "not_streamed").contains("20 of 20 answers came in one piece"), "{s:?}");
    // Nothing speaks against its SLO, and nothing for it.
    let slo = s.slo.unwrap();
    assert_eq!((slo.state, slo.attainment_state), (SloState::Undecided, SloState::Undecided));
    assert_eq!((slo.attainment, slo.goodput_rps, slo.terms[0].attainment), (None, None, None));
    assert_eq!(slo.terms[1].attainment, Some(1.0), "how long they took is known");
    // Events that were held back: sixteen tokens or more, less than a tenth of a millisecond apart.
    let late = |n, apart| move |record: RequestRecord| held_back(record, n, apart);
    assert_eq!(of(20, &late(16, 0.09)).requests.whole, 20);
    assert_eq!(of(20, &late(15, 0.09)).requests.whole, 0);
    assert_eq!(of(20, &late(16, 0.11)).requests.whole, 0);
    // Who did not ask for streams has none.
    let mut plan = short();
    plan.target.stream = false;
    let records: Vec<_> = steady(20).into_iter().map(whole).collect();
    let s = summary(&plan, &records);
    assert_eq!((s.requests.whole, severity_of(&s, "not_streamed")), (0, None));
}

#[test]
fn an_slo_without_streams_is_judged_by_answers_that_came_whole() {
    let mut plan = short();
    plan.measure.slo = Some("e2e < 9s".parse().unwrap());
    plan.measure.attainment = Some(0.5);
    let records: Vec<_> = steady(20).into_iter().map(whole).collect();
    let slo = summary(&plan, &records).slo.unwrap();
    assert_eq!((slo.state, slo.attainment), (SloState::Met, Some(1.0)));
}

/// Without anybody's count a plan is an estimate, and one that is far off is another workload.
#[test]
fn prompts_far_from_their_estimate_are_named() {
    let of = |actual: u32| {
        let mut records = steady(20);
        for record in &mut records {
            let count = TokenCount { n: actual, source: TokenSource::Usage };
            record.exchange.input_tokens = Some(count);
        }
        summary(&short(), &records)
    };
    // Fifty are planned.
    assert_eq!(severity_of(&of(25), "input_length"), None);
    assert_eq!(severity_of(&of(100), "input_length"), None);
    assert_eq!(severity_of(&of(101), "input_length"), Some(Severity::Warn));
    assert_eq!(
        message(&of(3), "input_length"),
        "prompts do not have the planned length: 3.0 tokens on average instead of 50.0, estimated \
         without the model's tokenizer"
    );
}

/// Whether a run is steady takes time and requests to tell; until then nothing seen says nothing.
#[test]
fn steadiness_takes_as_long_as_five_answers_and_as_many_requests() {
    let state = |summary: &Summary| summary.steadiness.as_ref().unwrap().state;
    // One in fifty takes so long: the mean is short, and the p99 is not.
    let of = |slow_ms: f64| {
        let mut records = steady(600);
        for record in records.iter_mut().step_by(50) {
            let end = record.scheduled + ms(slow_ms);
            let stamps = &mut record.exchange.stamps;
            (stamps.last_token, stamps.done, stamps.ended) = (Some(end), Some(end), end);
        }
        summary(&plan(Some(60), None, NO_WARMUP), &records)
    };
    assert_eq!(state(&of(11_900.0)), SteadyAnswer::Steady);
    assert_eq!(state(&of(12_100.0)), SteadyAnswer::TooShort);
    // A request every two seconds: none of the tests has enough of them in half a minute.
    let few: Vec<_> = (0..15).map(|i| record(i, i as f64 * 2000.0, &[900.0])).collect();
    assert_eq!(state(&summary(&plan(Some(30), None, NO_WARMUP), &few)), SteadyAnswer::TooShort);
}

#[test]
fn percentiles_take_their_number_of_requests() {
    let of = |n: u32, percentiles: &[f64]| {
        let mut plan = plan(Some(u64::from(n / 10)), None, NO_WARMUP);
        plan.measure = Measure::new(percentiles.to_vec());
        summary(&plan, &steady(n))
    };
    for (n, percent, needed) in [(20, 50.0, 20), (100, 90.0, 100), (1000, 99.0, 1000)] {
        assert_eq!(severity_of(&of(n, &[percent]), "few_samples"), None, "p{percent}");
        let fewer = of(n - 10, &[percent]);
        let message = &caveat(&fewer, "few_samples").unwrap().message;
        assert!(message.ends_with(&format!("p{percent} needs {needed}")), "{message}");
    }
    let s = of(1000, &[99.0, 50.0, 99.9]);
    assert_eq!(
        advice(&s, "few_samples"),
        "--duration 3h gives 100000 requests at 10 req/s, enough for p99.9; until then, use p99 \
         at most"
    );
    let s = of(110, &[50.0, 90.0, 95.0, 99.0, 99.9]);
    assert_eq!(
        advice(&s, "few_samples"),
        "--duration 100s gives 1000 requests at 10 req/s, enough for p99; until then, use p90 at \
         most"
    );
}

#[test]
fn a_closed_loop_says_that_it_is_one() {
    let mut plan = short();
    assert_eq!(severity_of(&summary(&plan, &steady(20)), "closed_loop"), None);
    plan.load.mode = closed(1);
    let s = summary(&plan, &steady(20));
    assert_eq!(severity_of(&s, "closed_loop"), Some(Severity::Info));
    // 19 of 20 answers ended within two seconds.
    assert_eq!(
        advice(&s, "closed_loop"),
        "for latencies under real traffic, measure with --rate 9.5"
    );
    let message = |s: &Summary| {
        let found = s.caveats.iter().find(|caveat| caveat.code.name() == "closed_loop");
        found.map(|caveat| caveat.message.clone()).unwrap_or_default()
    };
    assert!(message(&s).contains("one user") && message(&s).contains("a batch of 1"), "{s:?}");
    plan.load.mode = closed(2);
    assert!(message(&summary(&plan, &steady(20))).contains("each of 2 users"));
    // A cold start test has no load, and its idle time is stated.
    let think_time = Duration::from_secs(30);
    plan.load.mode = Mode::Closed { concurrency: 1, think_time, pause_first: true };
    let idle = summary(&plan, &steady(20));
    assert_eq!((message(&idle), idle.load.idle_s), (String::new(), Some(30.0)));
}

#[test]
fn connections_opened_inside_requests_are_told() {
    // Of 200 requests with a TTFT of 100 ms, `n` opened a connection for so long.
    let of = |n: usize, connect_ms: f64, policy: ConnectionPolicy| {
        let mut records = steady(200);
        for record in records.iter_mut().take(n) {
            let tcp = TimeSpan { start: record.scheduled, end: record.scheduled + ms(connect_ms) };
            record.exchange.stamps.connect = Some(Connect { tcp, tls: None });
        }
        let mut plan = plan(Some(20), None, NO_WARMUP);
        plan.target.connections = policy;
        summary(&plan, &records)
    };
    let severity =
        |n, connect_ms, policy| severity_of(&of(n, connect_ms, policy), "connect_in_ttft");
    let reuse = ConnectionPolicy::Reuse;
    assert_eq!(severity(2, 50.0, reuse), None, "1 % is not more than 1 %");
    assert_eq!(severity(3, 50.0, reuse), Some(Severity::Info));
    assert_eq!(severity(200, 1.0, reuse), None, "within 1 % of TTFT");
    assert_eq!(severity(200, 9.9, reuse), Some(Severity::Info));
    assert_eq!(severity(19, 10.0, reuse), Some(Severity::Info));
    assert_eq!(severity(20, 10.0, reuse), Some(Severity::Warn));
    assert_eq!(
        severity(200, 50.0, ConnectionPolicy::PerRequest),
        Some(Severity::Info),
        "asked for"
    );
    assert!(advice(&of(3, 50.0, reuse), "connect_in_ttft").contains("--warmup"));
    let asked = of(200, 50.0, ConnectionPolicy::PerRequest);
    assert!(advice(&asked, "connect_in_ttft").contains("--connections reuse"));
}

#[test]
fn chunks_that_shared_a_read_are_told() {
    // Ten requests of four chunks.
    let of = |coalesced: usize, stream: bool| {
        let mut records = steady(10);
        let chunks = records.iter_mut().flat_map(|record| &mut record.exchange.chunks);
        chunks.take(coalesced).for_each(|chunk| chunk.coalesced = true);
        let mut plan = plan(Some(1), None, NO_WARMUP);
        plan.target.stream = stream;
        severity_of(&summary(&plan, &records), "chunks_coalesced")
    };
    assert_eq!([of(4, true), of(5, true)], [None, Some(Severity::Info)]);
    assert_eq!(of(20, true), Some(Severity::Info));
    assert_eq!(of(21, true), Some(Severity::Warn));
    assert_eq!(of(40, false), None);
}

#[test]
fn counts_of_server_and_tokenizer_are_compared() {
    // Ten answers of four tokens by the server.
    let of = |ours: u32, foreign: bool| {
        let records: Vec<_> = steady(10)
            .into_iter()
            .map(|mut record| {
                record.exchange.output_tokens =
                    Some(TokenCount { n: 100, source: TokenSource::Usage });
                record
            })
            .collect();
        let judgements: Vec<_> = (0..10)
            .map(|index| AnswerJudgement {
                index,
                output_tokens: Some(ours),
                ..AnswerJudgement::default()
            })
            .collect();
        let mut plan = plan(Some(1), None, NO_WARMUP);
        plan.workload.tokenizer = Some("own".to_owned());
        plan.workload.count_with = foreign.then(|| "other".to_owned());
        severity_of(&judged(&plan, &records, &judgements), "token_counts_disagree")
    };
    assert_eq!([of(100, false), of(102, false)], [None, None]);
    assert_eq!(of(103, false), Some(Severity::Warn));
    assert_eq!(of(103, true), Some(Severity::Info), "another unit on purpose");
    // The server counts the token that ends an answer.
    assert_eq!([of(97, false), of(96, false)], [None, Some(Severity::Warn)]);
}

#[test]
fn more_tokens_than_an_answer_can_hold_void_the_run() {
    // Four chunks; one of ten answers has another count than the others.
    let of = |stated: u32, asked: u32, bytes: u32, extra: Option<&str>| {
        let mut records = steady(10);
        let odd = &mut records[3];
        odd.planned.output_tokens = Some(asked);
        odd.exchange.output_tokens = Some(TokenCount { n: stated, source: TokenSource::Usage });
        odd.exchange.chunks.iter_mut().for_each(|chunk| chunk.bytes = bytes);
        let mut plan = plan(Some(1), None, NO_WARMUP);
        plan.target.extra_body = extra.map(str::to_owned);
        summary(&plan, &records)
    };
    let code = "token_counts_impossible";
    let severity = |summary: &Summary| severity_of(summary, code);
    let wrong = of(u32::MAX, 8, 1, None);
    assert_eq!((severity(&wrong), wrong.verdict), (Some(Severity::Void), Verdict::Void));
    let words = "for 1 of 10 answers the server reports more tokens than were requested and than \
                 the answer can hold (4294967295 instead of 8): no figure that counts tokens is \
                 right";
    assert_eq!(message(&wrong, code), words);
    // 16 tokens may be hidden ones, and 17 may be in 16 bytes and four events.
    assert_eq!([severity(&of(16, 8, 1, None)), severity(&of(17, 8, 4, None))], [None; 2]);
    assert_eq!(severity(&of(17, 8, 1, None)), Some(Severity::Void));
    // The text of an answer in one piece is unknown.
    let whole = |stated: u32| {
        let mut records = steady(10);
        let odd = &mut records[3];
        odd.planned.output_tokens = Some(8);
        odd.exchange.output_tokens = Some(TokenCount { n: stated, source: TokenSource::Usage });
        odd.exchange.chunks.clear();
        severity(&summary(&plan(Some(1), None, NO_WARMUP), &records))
    };
    assert_eq!([whole(128), whole(129)], [None, Some(Severity::Void)]);
    // The user's own limit is not the plan's.
    assert_eq!(severity(&of(99, 8, 1, Some(r#"{"max_tokens": 50}"#))), None);
}

/// What makes a record impossible.
type Spoil<'a> = &'a dyn Fn(&mut RequestRecord);

#[test]
fn impossible_stamps_are_counted() {
    let of = |bad: u32, spoil: &dyn Fn(&mut RequestRecord)| {
        let mut records = steady(200);
        records.iter_mut().take(bad as usize).for_each(spoil);
        summary(&plan(Some(20), None, NO_WARMUP), &records)
    };
    let early = |record: &mut RequestRecord| {
        record.exchange.stamps.sent_first =
            record.exchange.stamps.first_token.map(|at| at + ms(1.1));
    };
    let back = |record: &mut RequestRecord| record.exchange.chunks[3].at = record.scheduled;
    let ended =
        |record: &mut RequestRecord| record.exchange.stamps.ended = record.scheduled + ms(1.0);
    let spoils: [(Spoil<'_>, &str); 3] =
        [(&early, "sent: 1,"), (&back, "back in time: 1,"), (&ended, "end before the start: 1)")];
    for (spoil, text) in spoils {
        let s = of(1, spoil);
        let caveat = caveat(&s, "clock_suspicious").unwrap();
        assert_eq!(caveat.severity, Severity::Warn);
        assert!(caveat.message.contains(text), "{}", caveat.message);
        assert_eq!(severity_of(&of(3, spoil), "clock_suspicious"), Some(Severity::Void));
    }
    let jitter = |record: &mut RequestRecord| {
        record.exchange.chunks[3].at = record.exchange.chunks[2].at - ms(0.9);
    };
    assert_eq!(severity_of(&of(200, &jitter), "clock_suspicious"), None, "two clocks");
    // A request that was cut off before it was sent.
    let unsent = |record: &mut RequestRecord| {
        *record = fail(record.clone(), ErrorClass::CutOff);
        record.exchange.stamps = Stamps::default();
    };
    assert_eq!(severity_of(&of(1, &unsent), "clock_suspicious"), None);
}

#[test]
fn a_clock_that_was_set_is_told() {
    let of = |step: Option<f64>, seconds: u32| {
        let facts = RunFacts { clock_step_ms: step, ..facts(RunState::Complete) };
        let plan = plan(Some(seconds.into()), None, NO_WARMUP);
        severity_of(&with_facts(&plan, &steady(seconds * 10), facts), "clock_suspicious")
    };
    assert_eq!([of(None, 10), of(Some(50.0), 10), of(Some(-50.0), 10)], [None; 3]);
    assert_eq!([of(Some(50.1), 10), of(Some(-50.1), 10)], [Some(Severity::Warn); 2]);
    // A tenth of a percent of a hundred seconds.
    assert_eq!([of(Some(99.0), 100), of(Some(101.0), 100)], [None, Some(Severity::Warn)]);
}

#[test]
fn failures_weigh_by_their_share() {
    let of = |failed: u32| {
        let records: Vec<_> = steady(200)
            .into_iter()
            .map(|record| {
                // Spread evenly, so that none is at the end only.
                let is_failed = (record.index * u64::from(failed)) % 200 < u64::from(failed);
                if is_failed { fail(record, ErrorClass::Timeout) } else { record }
            })
            .collect();
        summary(&plan(Some(20), None, NO_WARMUP), &records)
    };
    assert_eq!(severity_of(&of(2), "errors"), None);
    assert_eq!(severity_of(&of(3), "errors"), Some(Severity::Warn));
    assert!(advice(&of(3), "errors").starts_with("raise --timeout above 10s"));
    assert_eq!(severity_of(&of(21), "errors"), Some(Severity::Warn));
    assert!(advice(&of(21), "errors").starts_with("do not compare these latencies"));
    assert_eq!(severity_of(&of(100), "errors"), Some(Severity::Warn));
    assert_eq!(severity_of(&of(101), "errors"), Some(Severity::Void));
}

#[test]
fn a_server_that_dies_makes_the_run_void() {
    // 200 requests in 20 s; from `death` on all fail.
    let of = |death: u64, state: RunState| {
        let records: Vec<_> = steady(200)
            .into_iter()
            .map(
                |record| {
                    if record.index >= death { fail(record, ErrorClass::Connect) } else { record }
                },
            )
            .collect();
        with_facts(&plan(Some(20), None, NO_WARMUP), &records, facts(state))
    };
    let s = of(150, RunState::Complete);
    assert_eq!(severity_of(&s, "errors"), Some(Severity::Void));
    let message = &caveat(&s, "errors").unwrap().message;
    // Number 149 was due at 14.9 s and took 130 ms; number 150 was due at 15.0 s.
    assert!(message.contains("the last completed request ended at 15.0 s"), "{message}");
    assert!(message.contains("all 49 requests"), "{message}");
    assert_eq!(severity_of(&of(170, RunState::Complete), "errors"), Some(Severity::Warn), "15 %");
    assert_eq!(severity_of(&of(150, RunState::Interrupted), "errors"), Some(Severity::Warn));
}

#[test]
fn a_run_that_hardly_began_is_not_valid() {
    let of = |n: u32, planned: u64| {
        let plan = plan(Some(planned), None, NO_WARMUP);
        with_facts(&plan, &steady(n), facts(RunState::Interrupted))
    };
    assert_eq!(severity_of(&of(9, 5), "not_complete"), Some(Severity::Warn), "nine requests");
    assert_eq!(severity_of(&of(11, 5), "not_complete"), Some(Severity::Info));
    let s = of(11, 5);
    let graver: Vec<_> = s.caveats.iter().filter(|one| one.severity > Severity::Info).collect();
    assert!(graver.iter().all(|one| one.code.is_about_length()), "{graver:?}");
    // The last request was due at 1.9 s.
    assert_eq!(severity_of(&of(20, 18), "not_complete"), Some(Severity::Info));
    assert_eq!(severity_of(&of(20, 20), "not_complete"), Some(Severity::Warn), "9.5 % of its time");
    let by_count = plan(None, Some(200), NO_WARMUP);
    let s = with_facts(&by_count, &steady(20), facts(RunState::Interrupted));
    assert_eq!(severity_of(&s, "not_complete"), Some(Severity::Info));
    assert_eq!(severity_of(&summary(&by_count, &steady(20)), "not_complete"), None);
}

/// Three minutes at ten requests a second; the TTFT of each by its minute, with some noise.
fn minutes(ttft_ms: [f64; 3]) -> Summary {
    let records: Vec<_> = (0..1800u32)
        .map(|i| {
            let mut record = record(i.into(), f64::from(i) * 100.0, &[10.0; 3]);
            let noise = 1.0 + 0.1 * (f64::from((i * 7919) % 97) / 48.0 - 1.0);
            let shift = ms(ttft_ms[i as usize / 600] * noise);
            let first = record.scheduled + shift;
            let stamps = &mut record.exchange.stamps;
            (stamps.first_token, stamps.first_answer) = (Some(first), Some(first));
            for (place, chunk) in record.exchange.chunks.iter_mut().enumerate() {
                chunk.at = first + ms(10.0 * place as f64);
            }
            let end = first + ms(30.0);
            (stamps.last_token, stamps.done, stamps.ended) = (Some(end), Some(end), end);
            record
        })
        .collect();
    summary(&plan(Some(180), None, NO_WARMUP), &records)
}

#[test]
fn minutes_that_differ_are_named() {
    assert_eq!(severity_of(&minutes([100.0; 3]), "minutes_differ"), None);
    assert_eq!(severity_of(&minutes([100.0, 100.0, 108.0]), "minutes_differ"), None, "not notable");
    let s = minutes([100.0, 115.0, 100.0]);
    assert_eq!(severity_of(&s, "minutes_differ"), Some(Severity::Info));
    let s = minutes([100.0, 140.0, 110.0]);
    let found = caveat(&s, "minutes_differ").unwrap();
    assert_eq!(found.severity, Severity::Warn);
    assert!(found.message.contains("the median TTFT"), "{}", found.message);
    assert!(found.message.contains("in minute 2, the slowest"), "{}", found.message);
    assert!(found.message.contains("in minute 1, the fastest"), "{}", found.message);
}

#[test]
fn minutes_are_slices_of_the_window() {
    let s = summary(&plan(Some(150), None, NO_WARMUP), &steady(1500));
    let minutes: Vec<_> = s.breakdown["minute"]
        .iter()
        .map(|(label, slice)| (label.as_str(), slice.scheduled, slice.output_tps, slice.rps))
        .collect();
    // Four tokens, ten times a second; the first of them 100 ms later, so that those of the last
    // request of a minute come in the next one.
    let (first, whole) = (599.0 / 60.0, 10.0);
    assert_eq!(
        minutes,
        [
            ("1", 600, Some(4.0 * first), Some(first)),
            ("2", 600, Some(4.0 * whole), Some(whole)),
            ("3", 300, Some(4.0 * whole), Some(whole)),
        ]
    );
    assert_eq!(s.breakdown["minute"]["2"].itl_ms.n, 0, "gaps are not kept again");
    assert_eq!(s.breakdown["minute"]["2"].e2e_ms.n, 600);
    // 119 s are not two minutes; ten hours are parts of five minutes.
    let plan = |seconds| plan(Some(seconds), None, NO_WARMUP);
    assert!(summary(&plan(119), &steady(20)).breakdown.is_empty());
    let s = summary(&plan(36_000), &[record(0, 0.0, &[]), record(1, 35_999_000.0, &[])]);
    let labels: Vec<_> = s.breakdown["minute"].iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(labels, ["1–5", "596–600"]);
}

#[test]
fn lengths_and_workers_are_slices() {
    let with = |index: u64, input: u32, output: u32| {
        let mut record = record(index, index as f64 * 10.0, &[]);
        record.worker = (index % 2) as u32;
        record.exchange.input_tokens = Some(TokenCount { n: input, source: TokenSource::Usage });
        record.exchange.output_tokens = Some(TokenCount { n: output, source: TokenSource::Usage });
        record
    };
    let keys = |s: &Summary, dimension: &str| -> Vec<(String, u64)> {
        let slices = s.breakdown.get(dimension);
        slices
            .into_iter()
            .flat_map(crate::Slices::iter)
            .map(|(v, s)| (v.clone(), s.scheduled))
            .collect()
    };
    let owned = |pairs: &[(&str, u64)]| -> Vec<(String, u64)> {
        pairs.iter().map(|(value, n)| ((*value).to_owned(), *n)).collect()
    };
    let lengths = [(127, 0), (128, 1), (255, 2), (256, 3), (1000, 1024)];
    let mut records: Vec<_> =
        (0u64..).zip(lengths).map(|(i, (input, output))| with(i, input, output)).collect();
    let mut failed = fail(with(5, 300, 0), ErrorClass::Timeout);
    failed.planned.output_tokens = Some(2);
    records.push(failed);
    let s = summary(&short(), &records);
    assert_eq!(
        keys(&s, "input_tokens"),
        owned(&[("64–127", 1), ("128–255", 2), ("256–511", 2), ("512–1023", 1)])
    );
    assert_eq!(
        keys(&s, "output_tokens"),
        owned(&[("0", 1), ("1", 1), ("2–3", 3), ("1024–2047", 1)])
    );
    assert_eq!(keys(&s, "worker"), owned(&[("0", 3), ("1", 3)]));
    // In order in the file, too.
    let json = serde_json::to_string(&s).unwrap();
    assert!(json.find("\"64–127\"").unwrap() < json.find("\"128–255\"").unwrap());
    let read: Summary = serde_json::from_str(&json).unwrap();
    assert_eq!(keys(&read, "input_tokens"), keys(&s, "input_tokens"));
    // 100 to 199 are one length with noise, though two powers of two.
    let s = summary(&short(), &[with(0, 100, 5), with(2, 199, 5)]);
    assert!(s.breakdown.is_empty(), "{:?}", s.breakdown);
    // Very short and very long ones: the short are one slice.
    let s = summary(&short(), &[with(0, 1, 5), with(2, 3, 5), with(4, 1 << 20, 5)]);
    assert_eq!(keys(&s, "input_tokens"), owned(&[("0–1023", 2), ("1048576–2097151", 1)]));
}

/// Tokens without a count in the first pass may be counted by a tokenizer in the second.
#[test]
fn lengths_by_a_tokenizer_are_slices() {
    let records: Vec<_> = (0..3)
        .map(|index| {
            let mut record = record(index, 0.0, &[10.0]);
            record.exchange.output_tokens = Some(TokenCount { n: 2, source: TokenSource::Events });
            record
        })
        .collect();
    let of = |counts: &[u32]| {
        let judgements: Vec<_> = (0..)
            .zip(counts)
            .map(|(index, n)| AnswerJudgement {
                index,
                output_tokens: Some(*n),
                ..AnswerJudgement::default()
            })
            .collect();
        judged(&short(), &records, &judgements)
    };
    let s = of(&[2, 3, 9]);
    let labels: Vec<_> =
        s.breakdown["output_tokens"].iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(labels, ["2–3", "8–15"]);
    assert!(of(&[2, 2, 3]).breakdown.is_empty());
}
