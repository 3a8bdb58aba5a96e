//! Recorded traces.

use goodput_dataset::Loaded;
use goodput_dataset::{DatasetEntry, DatasetTurn};
use goodput_model::Keep;
use goodput_model::{LogPlan, Nanos, SourcePlan, TracePlan};

use super::*;

fn plan() -> WorkloadPlan {
    let source = SourcePlan::Trace(TracePlan {
        file: "t.jsonl".to_owned(),
        format: None,
        start_s: 0.0,
        length_s: None,
        block_tokens: None,
        sha256: None,
        log: LogPlan::default(),
    });
    WorkloadPlan::new(ClassPlan { name: "trace".to_owned(), source, ..fixed(1, 1) })
}

fn row(at_ms: u64, input: u32, blocks: &[u64]) -> DatasetEntry {
    let turn = DatasetTurn {
        input_tokens: Some(input),
        output_tokens: Some(10),
        blocks: blocks.to_vec(),
        ..DatasetTurn::default()
    };
    DatasetEntry {
        at: Some(Nanos::from_millis(at_ms)),
        turns: vec![turn],
        ..DatasetEntry::default()
    }
}

fn load(entries: Vec<DatasetEntry>, setting: Setting, template: u32) -> Workload {
    let mut plan = plan();
    plan.calibration = Some(TokenCalibration {
        source: CalibrationSource::Tokenizer,
        template_tokens: template,
        message_tokens: 0,
        costs: Lexicon::estimated_costs(),
    });
    let loaded = Loaded { entries, block_tokens: Some(512), ..Loaded::default() };
    Workload::build(&plan, &setting, vec![Material::Entries(loaded)]).unwrap()
}

#[test]
fn equal_blocks_are_equal_text_and_the_hit_rate_is_the_one_by_hand() {
    // As Mooncake has it: one block for each 512 tokens begun.
    let entries = vec![
        row(0, 1_200, &[1, 2, 3]),
        row(10, 1_300, &[1, 2, 4]),
        row(20, 600, &[1, 9]),
        // A block that was sent before does not help behind one that was not.
        row(30, 600, &[7, 2]),
    ];
    for template in [0, 12] {
        let workload = load(entries.clone(), Setting::new(1), template);
        let requests: Vec<Request> = (0..4).map(|n| first(&workload, n)).collect();
        for (request, entry) in requests.iter().zip(&entries) {
            assert_eq!(Some(request.planned.input_tokens), entry.turns[0].input_tokens);
            assert_eq!(count(&whole(request)) + template, request.planned.input_tokens);
        }
        let same = |a: usize, b: usize| common(&whole(&requests[a]), &whole(&requests[b]));
        assert!((1_024..1_030).contains(&same(0, 1)), "{}", same(0, 1));
        assert!((512..518).contains(&same(0, 2)), "{}", same(0, 2));
        assert!(same(0, 3) < 6);
        let cached: Vec<Option<u32>> =
            requests.iter().map(|request| request.planned.cached_tokens).collect();
        assert_eq!(cached, [Some(0), Some(1_024), Some(512), Some(0)]);
        let by_hand = f64::from(1_024 + 512) / f64::from(1_200 + 1_300 + 600 + 600);
        assert_eq!(workload.cache_estimate(100), by_hand);
        assert!(share_allocation(&requests[0].messages[0], &requests[1].messages[0]));
    }
}

#[test]
fn a_prompt_asked_twice_is_the_same_text_but_its_last_token_is_computed() {
    let entries = vec![row(0, 1_024, &[1, 2]), row(5, 1_024, &[1, 2]), row(9, 700, &[1, 5])];
    let workload = load(entries, Setting::new(1), 0);
    let [a, b] = [first(&workload, 0), first(&workload, 1)];
    assert_eq!(whole(&a), whole(&b));
    assert_eq!(b.planned.cached_tokens, Some(1_008));
    // The second block is cut to what the prompt has left.
    let third = first(&workload, 2);
    let Message::Plain { parts, .. } = &third.messages[0] else { panic!() };
    let sizes: Vec<u32> = parts
        .iter()
        .map(|part| if let MessagePart::Text(text) = part { count(text) } else { 0 })
        .collect();
    assert_eq!(sizes, [512, 188]);
}

#[test]
fn prompts_without_blocks_are_their_own() {
    let workload =
        load(vec![row(0, 64, &[]), row(1, 64, &[]), row(2, 600, &[4])], Setting::new(1), 0);
    let [a, b] = [first(&workload, 0), first(&workload, 1)];
    assert!(common(&whole(&a), &whole(&b)) < 5);
    assert_eq!(a.planned.cached_tokens, None);
    // One block of two: the rest is unique.
    let Message::Plain { parts, .. } = &first(&workload, 2).messages[0] else { panic!() };
    assert_eq!(parts.len(), 2);
}

fn linked(at_ms: u64, input: u32, session: &str) -> DatasetEntry {
    DatasetEntry { session: Some(session.to_owned()), ..row(at_ms, input, &[]) }
}

#[test]
fn timestamps_keep_every_row_at_its_instant() {
    let entries = vec![linked(0, 50, "a"), linked(100, 40, "b"), linked(900, 120, "a")];
    let setting = Setting { time_scale: 0.5, ..Setting::new(1) };
    let workload = load(entries, setting, 0);
    assert_eq!(workload.session_count(), Some(3));
    let arrivals: Vec<_> = (0..4).map(|n| workload.arrival(n)).collect();
    let ms = |ms| Some(Nanos::from_millis(ms));
    assert_eq!(arrivals, [ms(0), ms(50), ms(450), None]);
    let last = first(&workload, 2).planned;
    assert_eq!((last.input_tokens, last.trace_at), (120, ms(450)));
    assert_eq!((last.session, last.turn), (Some(0), 1));
    // Rows of one session are sent by one client.
    let turns = [0, 1, 2].map(|number| workload.deal_turn(number));
    assert_eq!((turns, workload.request_count(2)), ([0, 1, 0], Some(1)));
    assert_eq!((workload.session(3), workload.request_count(3)), (None, None));
}

/// Whatever the number of rows in a session: every third row begins one here.
#[test]
fn sessions_of_a_trace_are_dealt_out_evenly() {
    let name = |row: u64| format!("{}", row / 3);
    let mut entries: Vec<_> = (0..9).map(|at| linked(at * 10, 50, &name(at))).collect();
    entries.push(row(90, 50, &[]));
    let workload = load(entries, Setting::new(1), 0);
    let turns: Vec<u64> = (0..10).map(|number| workload.deal_turn(number)).collect();
    assert_eq!(turns, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]);
}

#[test]
fn think_times_follow_the_answer_before() {
    let mut second = linked(900, 120, "a");
    second.turns[0].took = Some(Nanos::from_millis(300));
    let mut fourth = linked(3_000, 300, "a");
    fourth.turns[0].after = Some(Nanos::from_millis(40));
    let entries =
        vec![linked(0, 50, "a"), linked(100, 40, "b"), second, linked(2_000, 200, "a"), fourth];
    let setting = Setting { keep: Keep::ThinkTimes, time_scale: 2.0, ..Setting::new(1) };
    let workload = load(entries, setting, 0);
    assert_eq!(workload.session_count(), Some(2));
    assert_eq!(workload.arrival(1), Some(Nanos::from_millis(200)));
    let session = workload.session(0).unwrap();
    // The gap of 900; the gap of 1,100 without the 300 that the answer took; what the row says.
    let pauses: Vec<u64> = session.steps.iter().map(|s| s.after.0 / 1_000_000).collect();
    assert_eq!(pauses, [0, 1_800, 1_600, 80]);
    // Each step adds what its prompt has beyond what was said: 120 - 60, 200 - 130, 300 - 210.
    let added: Vec<u32> = session.steps.iter().map(|s| count(&whole(&s.requests[0]))).collect();
    assert_eq!(added, [50, 60, 70, 90]);
    let inputs: Vec<u32> = plans(&session).iter().map(|(input, ..)| *input).collect();
    assert_eq!(inputs, [50, 120, 200, 300]);
    let turns: Vec<u32> = session.steps.iter().map(|s| s.requests[0].planned.turn).collect();
    assert_eq!(turns, [0, 1, 2, 3]);
    assert_eq!([0, 1].map(|number| workload.request_count(number)), [Some(4), Some(1)]);
    assert_eq!([0, 1].map(|number| workload.deal_turn(number)), [0, 1]);
}

#[test]
fn rows_out_of_order_are_played_in_the_order_of_their_instants() {
    let workload = load(vec![row(50, 20, &[]), row(10, 30, &[])], Setting::new(1), 0);
    assert_eq!(first(&workload, 0).planned.input_tokens, 30);
    assert_eq!(workload.arrival(0), Some(Nanos::from_millis(10)));
}

#[test]
fn a_trace_that_cannot_be_played_says_why() {
    let fails = |entries: Vec<DatasetEntry>, setting: Setting| {
        let loaded = Loaded { entries, ..Loaded::default() };
        Workload::build(&plan(), &setting, vec![Material::Entries(loaded)]).unwrap_err().to_string()
    };
    let timeless = DatasetEntry { at: None, line: 17, ..row(0, 9, &[]) };
    assert_eq!(
        fails(vec![timeless], Setting::new(1)),
        "t.jsonl line 17: the entry has no timestamp"
    );
    let endless = DatasetEntry { line: 3, ..row(0, u32::MAX, &[]) };
    assert!(
        fails(vec![endless], Setting::new(1)).contains("t.jsonl line 3: a prompt of 4294967295")
    );
    let error = fails(vec![row(0, 9, &[])], Setting { time_scale: f64::NAN, ..Setting::new(1) });
    assert!(error.contains("the time scale is NaN"), "{error}");
    assert!(fails(vec![], Setting::new(1)).contains("t.jsonl has no entry that can be used"));
}
