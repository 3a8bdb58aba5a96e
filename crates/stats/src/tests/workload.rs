//! The workload as it was asked for, and as the server saw it.

use std::sync::Arc;

use goodput_model::{
    CalibrationSource, ConstraintKind, DatasetPlan, History, OutputLength, PrefixPlan, SessionPlan,
    SharedPlan, SourcePlan, TokenCalibration,
};

use super::*;
use crate::{Slice, Spread, StructuredSummary};

fn message_of(summary: &Summary, code: &str) -> String {
    summary.caveats.iter().find(|caveat| caveat.code.name() == code).unwrap().message.clone()
}

fn usage(n: u32) -> TokenCount {
    TokenCount { n, source: TokenSource::Usage }
}

/// A good request whose answer was to have `planned` tokens and had `actual`.
fn sized(index: u64, planned: u32, actual: u32) -> RequestRecord {
    let mut record = record(index, index as f64 * 10.0, &[10.0]);
    record.planned.output_tokens = Some(planned);
    record.exchange.output_tokens = Some(usage(actual));
    record
}

#[test]
fn lengths_are_compared_request_by_request() {
    let mut by_chunks = sized(2, 10, 99);
    by_chunks.exchange.output_tokens = Some(TokenCount { n: 99, source: TokenSource::Events });
    by_chunks.exchange.input_tokens = None;
    let mut unasked = sized(3, 0, 50);
    unasked.planned.output_tokens = None;
    unasked.exchange.input_tokens = Some(usage(50));
    let failed = fail(sized(4, 10, 1), ErrorClass::Cut);
    let long = sized(5, 10, 12);
    let records = [sized(0, 10, 10), sized(1, 10, 7), by_chunks, unasked, failed, long];
    let s = summary(&short(), &records);
    let output = s.lengths.output.unwrap();
    assert_eq!((output.n, output.max_error), (3, 3));
    close(Some(output.planned_mean), 10.0);
    close(Some(output.actual_mean), 29.0 / 3.0);
    close(output.ratio, 29.0 / 30.0);
    close(Some(output.exact_share), 1.0 / 3.0);
    // Prompts were planned with 50 tokens: 40, 40, 50 and 40 by usage.
    let input = s.lengths.input.unwrap();
    assert_eq!((input.n, input.max_error), (4, 10));
    close(input.ratio, 170.0 / 200.0);
    close(Some(input.exact_share), 0.25);
}

#[test]
fn two_answers_may_be_twice_as_long() {
    let mut two = sized(0, 10, 20);
    two.exchange.chunks[1].choice = 1;
    close(summary(&short(), &[two]).lengths.output.unwrap().ratio, 1.0);
}

#[test]
fn a_server_that_does_not_obey_lengths_is_named() {
    let mut exact = short();
    exact.workload.output = OutputLength::Exact;
    for (actual, expected) in
        [(97, Some(Severity::Warn)), (98, None), (102, None), (103, Some(Severity::Warn))]
    {
        let records = [sized(0, 100, actual)];
        assert_eq!(severity_of(&summary(&exact, &records), "output_length"), expected, "{actual}");
        assert_eq!(severity_of(&summary(&short(), &records), "output_length"), None, "a limit");
    }
    let calibrated = |source| {
        let mut plan = short();
        plan.workload.calibration = Some(TokenCalibration {
            source,
            template_tokens: 0,
            message_tokens: 0,
            costs: String::new(),
        });
        // 50 planned, 40 by the server.
        severity_of(&summary(&plan, &[record(0, 0.0, &[])]), "input_length")
    };
    assert_eq!(calibrated(CalibrationSource::Tokenizer), Some(Severity::Warn));
    assert_eq!(calibrated(CalibrationSource::Estimate), None);
    assert_eq!(severity_of(&summary(&short(), &[record(0, 0.0, &[])]), "input_length"), None);
}

fn spread(n: u64, mean: f64, p50: f64, p90: f64, p99: f64) -> Spread {
    Spread { n, mean: Some(mean), p50: Some(p50), p90: Some(p90), p99: Some(p99) }
}

#[test]
fn classes_are_told_apart() {
    let of = |mut record: RequestRecord, class: &str| {
        record.planned.class = Arc::from(class);
        record
    };
    // Ten of `a` with an answer of two tokens, 10, 20, … 100 ms apart; one of `b`; one failed.
    let mut records: Vec<_> =
        (0..10u32).map(|i| of(record(i.into(), 0.0, &[f64::from(i + 1) * 10.0]), "a")).collect();
    records.push(of(record(10, 500.0, &[20.0, 20.0]), "b"));
    records.push(of(fail(record(11, 500.0, &[]), ErrorClass::Cut), "b"));
    let s = summary(&short(), &records);
    assert_eq!(s.breakdown.keys().collect::<Vec<_>>(), ["class"]);
    let classes = &s.breakdown["class"];
    let a = Slice {
        scheduled: 10,
        ok: 10,
        failed: 0,
        input_tokens_mean: Some(40.0),
        output_tokens_mean: Some(2.0),
        ttft_ms: spread(10, 100.0, 100.0, 100.0, 100.0),
        tpot_ms: spread(10, 55.0, 50.0, 90.0, 100.0),
        itl_ms: spread(10, 55.0, 50.0, 90.0, 100.0),
        e2e_ms: spread(10, 155.0, 150.0, 190.0, 200.0),
        // Twenty tokens and ten requests in two seconds.
        output_tps: Some(10.0),
        rps: Some(5.0),
        attainment: None,
    };
    assert_eq!(classes["a"], a);
    let b = &classes["b"];
    assert_eq!((b.scheduled, b.ok, b.failed, b.e2e_ms.n, b.itl_ms.n), (2, 1, 1, 1, 2));
    close(b.output_tps, 1.5);
    // The slices add up to the whole.
    close(s.throughput.output_tokens_per_s, 11.5);
    close(s.throughput.requests_per_s, 5.5);
    assert!(
        summary(&short(), &records[..10]).breakdown.is_empty(),
        "one class does not make a \
                                                                     breakdown"
    );
    // With limits for each request: the shares of good ones, and over all slices the attainment.
    let promised = |slo: &str| {
        let mut plan = short();
        plan.measure.slo = Some(slo.parse().unwrap());
        summary(&plan, &records)
    };
    let s = promised("tpot < 75ms, p50 ttft < 1ms");
    let attainment = |class: &str| s.breakdown["class"][class].attainment;
    assert_eq!((attainment("a"), attainment("b")), (Some(0.7), Some(0.5)));
    close(s.slo.as_ref().unwrap().attainment, 8.0 / 12.0);
    assert_eq!(promised("p50 ttft < 1s").breakdown["class"]["a"].attainment, None);
}

#[test]
fn turns_constraints_and_images_are_told_apart() {
    let with = |index: u64, change: &dyn Fn(&mut Planned)| {
        let mut record = record(index, 0.0, &[]);
        change(&mut record.planned);
        record
    };
    let records = [
        with(0, &|p| p.session = Some(0)),
        with(1, &|p| (p.session, p.turn) = (Some(0), 1)),
        with(2, &|p| (p.session, p.turn) = (Some(0), 20)),
        with(3, &|p| (p.session, p.turn, p.images) = (Some(0), 25, 2)),
        with(4, &|p| p.constraint = Some(ConstraintKind::Regex)),
    ];
    let s = summary(&short(), &records);
    let keys = |dimension: &str| -> Vec<(&str, u64)> {
        let slices = s.breakdown[dimension].iter();
        slices.map(|(value, slice)| (value.as_str(), slice.scheduled)).collect()
    };
    assert_eq!(keys("turn"), [("1", 2), ("2", 1), ("21+", 2)]);
    assert_eq!(keys("constraint"), [("none", 4), ("regex", 1)]);
    assert_eq!(keys("images"), [("0", 4), ("2", 1)]);
    assert_eq!(s.breakdown.len(), 3);
}

/// Of 40 prompt tokens, this many planned to be cached, and this many by the server's word.
fn cached(index: u64, planned: Option<u32>, seen: Option<u32>) -> RequestRecord {
    let mut record = record(index, 0.0, &[]);
    record.planned.cached_tokens = planned;
    record.exchange.cached_tokens = seen;
    record
}

/// A rotation is there to evict: fewer hits than it could have are as planned, more are not.
#[test]
fn a_rotation_wants_its_evictions() {
    let mut plan = short();
    let shared = Some(SharedPlan::Tiling { contexts: 2, tokens: 32 });
    plan.workload.classes[0].prefix = Some(PrefixPlan { system_tokens: 0, shared });
    let of = |seen| {
        let summary = summary(&plan, &[cached(0, Some(8), Some(seen)), record(1, 0.0, &[])]);
        let rotation = summary.cache.as_ref().unwrap().rotation.unwrap();
        assert_eq!((rotation.contexts, rotation.measured), (2, 1.0));
        severity_of(&summary, "cache_differs")
    };
    assert_eq!(of(0), None);
    assert_eq!(of(40), Some(Severity::Warn));
    // Of two classes, one of them conversations, the other's misses are not planned.
    let mut talks = plan.workload.classes[0].clone();
    talks.prefix = Some(PrefixPlan { system_tokens: 9, shared: None });
    plan.workload.classes.push(talks);
    let both = summary(&plan, &[cached(0, Some(32), Some(0))]);
    assert_eq!(severity_of(&both, "cache_differs"), Some(Severity::Warn));
    assert!(both.cache.unwrap().rotation.is_none());
}

#[test]
fn the_cache_is_compared_with_what_was_asked() {
    let records =
        [cached(0, Some(32), Some(16)), cached(1, Some(0), None), cached(2, None, Some(20))];
    let s = summary(&short(), &records);
    let cache = s.cache.clone().unwrap();
    close(cache.requested, 32.0 / 80.0);
    // The second says nothing, but its prompt was counted: nothing of it was cached.
    close(cache.observed, 36.0 / 120.0);
    close(Some(cache.reported_by), 2.0 / 3.0);
    assert_eq!(cache.source, "usage");
    assert_eq!(severity_of(&s, "cache_differs"), Some(Severity::Info), "it was not requested");
    let mut shaped = short();
    shaped.workload.classes[0].prefix = Some(PrefixPlan { system_tokens: 9, shared: None });
    let asked = summary(&shaped, &records);
    assert_eq!(severity_of(&asked, "cache_differs"), Some(Severity::Warn));
    let message = message_of(&s, "cache_differs");
    assert!(message.contains("40.0 %") && message.contains("30.0 %"), "{message}");
    let s = summary(&short(), &[cached(0, Some(32), Some(30))]);
    assert_eq!(severity_of(&s, "cache_differs"), None, "5 points do not differ");
    assert!(summary(&short(), &[record(0, 0.0, &[])]).cache.is_none());
}

#[test]
fn unplanned_cache_hits_are_named() {
    let some = |n: u32| [cached(0, None, Some(n)), cached(1, None, Some(0))];
    let of = |plan: &Plan, n: u32| severity_of(&summary(plan, &some(n)), "cache_unplanned");
    assert_eq!(of(&short(), 1), Some(Severity::Warn));
    assert_eq!(of(&short(), 0), None);
    // What the chat template begins with is the model's own.
    let mut plan = short();
    plan.workload.calibration = Some(TokenCalibration {
        source: CalibrationSource::Estimate,
        template_tokens: 10,
        message_tokens: 0,
        costs: String::new(),
    });
    assert_eq!(of(&plan, 20), None);
    assert_eq!(of(&plan, 21), Some(Severity::Warn));
    let mut plan = short();
    plan.workload.classes[0].session = Some(SessionPlan {
        turns: LengthDistribution::Fixed(2),
        think: "1s".parse().unwrap(),
        turn_input: None,
        history: History::Server,
        tools: None,
    });
    assert_eq!(of(&plan, 20), None);
    let mut plan = short();
    plan.workload.classes[0].source = SourcePlan::Dataset(DatasetPlan::default());
    assert_eq!(of(&plan, 20), Some(Severity::Info), "the data may begin alike");
}

#[test]
fn an_unreported_cache_is_named() {
    let mut plan = short();
    plan.workload.classes[0].prefix = Some(PrefixPlan { system_tokens: 32, shared: None });
    let of = |plan: &Plan, planned, seen| {
        severity_of(&summary(plan, &[cached(0, planned, seen)]), "cache_unseen")
    };
    assert_eq!(of(&plan, None, None), Some(Severity::Info));
    assert_eq!(of(&short(), Some(32), None), Some(Severity::Info));
    assert_eq!(of(&short(), Some(0), None), None);
    assert_eq!(of(&plan, Some(32), Some(0)), None);
    assert_eq!(of(&short(), None, None), None);
}

#[test]
fn constraints_are_counted_by_kind() {
    let of = |index: u64, kind| {
        let mut record = record(index, 0.0, &[]);
        record.planned.constraint = kind;
        record
    };
    let (json, choice) = (Some(ConstraintKind::Json), Some(ConstraintKind::Choice));
    let records = [
        of(0, json),
        of(1, json),
        of(2, json),
        fail(of(3, json), ErrorClass::Cut),
        of(4, choice),
        of(5, None),
    ];
    let verdict = |index, valid| AnswerJudgement { index, valid, ..AnswerJudgement::default() };
    let judgements =
        [verdict(0, Some(true)), verdict(1, Some(false)), verdict(2, None), verdict(3, Some(true))];
    let s = judged(&short(), &records, &judgements);
    let expected =
        StructuredSummary { asked: 4, answered: 3, checked: 2, valid: 1, valid_share: Some(0.5) };
    assert_eq!(s.structured["json"], expected);
    let expected = StructuredSummary { asked: 1, answered: 1, ..StructuredSummary::default() };
    assert_eq!(s.structured["choice"], expected);
    assert_eq!(s.structured.len(), 2);
    assert_eq!(severity_of(&s, "structured_invalid"), Some(Severity::Warn));
    assert!(s.recount.is_none(), "no count");
    let share = |valid: u64| {
        let records: Vec<_> = (0..100).map(|index| of(index, json)).collect();
        let judgements: Vec<_> =
            (0..100).map(|index| verdict(index, Some(index < valid))).collect();
        severity_of(&judged(&short(), &records, &judgements), "structured_invalid")
    };
    assert_eq!(
        [share(89), share(98), share(99)],
        [Some(Severity::Warn), Some(Severity::Info), None]
    );
}

fn counted(index: u64, tokens: u32) -> AnswerJudgement {
    AnswerJudgement { index, output_tokens: Some(tokens), characters: 5 * tokens, valid: None }
}

#[test]
fn answers_are_counted_in_one_unit() {
    let mut plan = plan(Some(1), None, NO_WARMUP);
    plan.workload.count_with = Some("o200k_base".to_owned());
    // 2 and 3 tokens by usage; the second's third token arrives after the window.
    let records = [record(0, 0.0, &[10.0]), record(1, 850.0, &[40.0, 60.0]), record(2, 5.0, &[])];
    let s = judged(&plan, &records, &[counted(1, 6), counted(0, 4)]);
    let recount = s.recount.unwrap();
    assert_eq!(recount.tokenizer, "o200k_base");
    assert_eq!((recount.n, recount.output_tokens, recount.characters), (2, 10, 50));
    close(recount.ratio_to_server, 2.0);
    // All four of the first, and two thirds of six of the second.
    close(recount.output_tps, 8.0);
    // The server's own count stays what it was.
    assert_eq!((s.tokens.output, s.tokens.output_source.as_str()), (6, "usage"));
    close(s.throughput.output_tokens_per_s, 5.0);
}

#[test]
fn our_own_count_stands_in_where_the_server_gives_none() {
    let mut by_chunks = record(0, 0.0, &[10.0, 10.0]);
    by_chunks.exchange.output_tokens = Some(TokenCount { n: 3, source: TokenSource::Events });
    by_chunks.planned.output_tokens = Some(5);
    let mut silent = by_chunks.clone();
    (silent.index, silent.exchange.output_tokens) = (1, None);
    let mut by_ids = by_chunks.clone();
    by_ids.index = 2;
    by_ids.exchange.output_tokens = Some(TokenCount { n: 3, source: TokenSource::Chunks });
    let judgements = [counted(0, 5), counted(1, 5), counted(2, 5)];
    let s = judged(&short(), &[by_chunks.clone(), silent], &judgements);
    assert_eq!((s.tokens.output, s.tokens.output_source.as_str()), (10, "tokenizer"));
    assert_eq!((s.tokens.uncounted, severity_of(&s, "tokens_by_chunks")), (0, None));
    // 20 ms for four tokens after the first.
    close(s.metrics["tpot"].mean, 5.0);
    close(s.lengths.output.unwrap().ratio, 1.0);
    close(s.throughput.output_tokens_per_s, 5.0);
    assert_eq!(s.recount.unwrap().ratio_to_server, None);
    let mixed = judged(&short(), &[by_chunks.clone(), by_ids.clone()], &judgements);
    assert_eq!(mixed.tokens.output_source, "mixed");
    assert_eq!(severity_of(&mixed, "tokens_by_chunks"), None, "no chunk was taken for a token");
    let uncounted = judged(&short(), &[by_chunks.clone(), by_ids.clone()], &judgements[1..]);
    assert_eq!(severity_of(&uncounted, "tokens_by_chunks"), Some(Severity::Info));
    let s = judged(&short(), &[by_ids], &judgements);
    assert_eq!((s.tokens.output, s.tokens.output_source.as_str()), (3, "token_ids"));
    // One token more than chunks is not a hidden end of text where we counted the text ourselves.
    let s = judged(&short(), &[by_chunks], &[counted(0, 4)]);
    close(s.metrics["tpot"].mean, 20.0 / 3.0);
}

#[test]
fn a_mix_of_two_distributions_is_told() {
    // E2E is 100 ms plus one gap.
    let mix = |slow: u32, gap_ms: f64| {
        let records: Vec<_> = (0..100)
            .map(|i| {
                let is_slow = i < slow;
                let mut record =
                    record(i.into(), f64::from(i), &[if is_slow { gap_ms } else { 0.0 }]);
                record.planned.class = Arc::from(if is_slow { "slow" } else { "fast" });
                record
            })
            .collect();
        summary(&short(), &records)
    };
    let s = mix(5, 201.0);
    assert_eq!(severity_of(&s, "bimodal_mix"), Some(Severity::Info));
    let message = message_of(&s, "bimodal_mix");
    assert!(message.contains("E2E of class `slow` is 301.0 ms"), "{message}");
    assert_eq!(severity_of(&mix(4, 201.0), "bimodal_mix"), None, "too few to matter");
    assert_eq!(severity_of(&mix(50, 199.0), "bimodal_mix"), None, "not three times");
    assert_eq!(severity_of(&mix(0, 0.0), "bimodal_mix"), None, "one class");
}

#[test]
fn an_older_summary_still_reads() {
    let mut plan = short();
    plan.workload.output = OutputLength::Exact;
    let now = judged(&plan, &[sized(0, 10, 10), turn(1, 0, 1, 5.0)], &[counted(0, 3)]);
    let mut value = serde_json::to_value(&now).unwrap();
    assert_eq!(serde_json::from_value::<Summary>(value.clone()).unwrap(), now);
    let added = ["lengths", "breakdown", "cache", "replay", "structured", "recount", "sessions"];
    for key in added {
        assert!(value.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    for key in ["workload_hash", "notes", "calibration", "cut_requests"] {
        assert!(value["run"].as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    assert!(value["load"].as_object_mut().unwrap().remove("shape").is_some());
    let old: Summary = serde_json::from_value(value).unwrap();
    assert_eq!(old.metrics, now.metrics);
    assert!(old.breakdown.is_empty() && old.lengths.output.is_none() && old.sessions.is_none());
}
