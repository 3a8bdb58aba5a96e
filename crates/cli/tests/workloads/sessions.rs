//! Conversations, shared prefixes and loads that change over time: each request's scheduled
//! instant, its history, and what a cache of known size and block must hold of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::mock::{MockProcess, records};
use crate::support::{Session, at, number};
use goodput_model::{Nanos, RequestRecord};
use goodput_testkit::{
    ArrivedRequest, LAST_CHUNK, STREAM_HEAD, Server, Step, answer, chunk, end_events, token_event,
};
use serde_json::{Value, json};

/// Summary and records of a run, in order of their number.
fn played(target: &str, args: &[&str]) -> (Value, Vec<RequestRecord>) {
    let session = Session::new();
    let (outcome, summary) = session.measure(target, &[args, &["--canary", "off"]].concat());
    outcome.assert_finished(&format!("{args:?}"));
    let mut records = records(&session.path("out/requests.log"));
    records.sort_by_key(|record| record.index);
    (summary, records)
}

fn has_caveat(summary: &Value, code: &str) -> bool {
    summary["caveats"].as_array().unwrap().iter().any(|caveat| caveat["code"] == code)
}

/// Requests by session and turn.
fn by_step(records: &[RequestRecord]) -> BTreeMap<(u64, u32), Vec<&RequestRecord>> {
    let mut steps = BTreeMap::<_, Vec<_>>::new();
    for record in records {
        let step = (record.planned.session.unwrap(), record.planned.turn);
        steps.entry(step).or_default().push(record);
    }
    steps
}

/// Every step is due exactly so long after the last answer of the step before it. Returns how many
/// there are.
fn assert_paused(records: &[RequestRecord], pause: Nanos) -> usize {
    let steps = by_step(records);
    let later = steps.iter().filter(|((_, turn), _)| *turn > 0);
    for ((session, turn), step) in later.clone() {
        let before = &steps[&(*session, turn - 1)];
        let ended = before.iter().map(|record| record.exchange.stamps.ended).max().unwrap();
        for record in step {
            assert_eq!(record.scheduled, ended + pause, "session {session}, turn {turn}");
        }
    }
    later.count()
}

/// Sessions and their requests by turn: `[(session, [requests of turn 0, of turn 1 …])]`.
fn shape(records: &[RequestRecord]) -> Vec<(u64, Vec<usize>)> {
    let mut shape = BTreeMap::<u64, Vec<usize>>::new();
    for ((session, _), step) in by_step(records) {
        shape.entry(session).or_default().push(step.len());
    }
    shape.into_iter().collect()
}

const PAUSE: Nanos = Nanos::from_millis(50);

#[test]
fn a_turn_is_due_its_pause_after_the_answer_before() {
    let flags = ["--num-requests", "12", "--turns", "3", "--turn-pause", "50ms", "--osl", "3"];
    for load in [["--rate", "40"], ["--concurrency", "1"]] {
        let (summary, records) = played("mock:fast", &[&flags[..], &load].concat());
        let expected: Vec<_> = (0..4).map(|session| (session, vec![1, 1, 1])).collect();
        assert_eq!(shape(&records), expected, "{load:?}");
        assert_eq!(assert_paused(&records, PAUSE), 8, "{load:?}");
        let turns = at(&summary, "breakdown.turn").as_object().unwrap();
        assert_eq!(turns.keys().collect::<Vec<_>>(), ["1", "2", "3"], "{load:?}");
        assert!(turns.values().all(|turn| number(turn, "ok") == 4.0), "{turns:?}");
        // A prompt has everything that was said: its length tells.
        for turn in 1..3 {
            let tokens = |turn: u32| {
                let record = by_step(&records)[&(0, turn)][0];
                record.exchange.input_tokens.unwrap().n
            };
            assert!(tokens(turn) > tokens(turn - 1), "{load:?}");
        }
        assert_eq!(number(&summary, "lengths.input.exact_share"), 1.0, "{}", summary["lengths"]);
        assert_eq!(number(&summary, "sessions.n"), 4.0);
        assert_eq!(number(&summary, "sessions.requests_mean"), 3.0);
        assert_eq!(number(&summary, "sessions.turns_max"), 3.0);
        assert_eq!(number(&summary, "sessions.cut_requests"), 0.0);
        assert!(!has_caveat(&summary, "sessions_cut"));
    }
}

#[test]
fn numbers_of_requests_run_through_sessions_in_order() {
    let flags = ["--rate", "40", "--num-requests", "12", "--turns", "3", "--osl", "3"];
    let (_, records) = played("mock:fast", &flags);
    for (place, record) in records.iter().enumerate() {
        let planned = &record.planned;
        assert_eq!(record.index, place as u64);
        assert_eq!((planned.session, planned.turn), (Some(place as u64 / 3), place as u32 % 3));
    }
    assert_eq!(assert_paused(&records, Nanos::ZERO), 8);
}

#[test]
fn users_of_a_closed_loop_play_one_session_after_another() {
    let flags = ["--concurrency", "2", "--num-requests", "16", "--turns", "2", "--osl", "3"];
    let pauses = ["--turn-pause", "20ms", "--think-time", "30ms"];
    let (_, records) = played("mock:fast", &[&flags[..], &pauses].concat());
    // The count may end inside the last two sessions.
    assert!(assert_paused(&records, Nanos::from_millis(20)) >= 7);
    let mut spans = Vec::<(Nanos, Nanos)>::new();
    for ((session, turn), step) in by_step(&records) {
        let ended = step[0].exchange.stamps.ended;
        match turn {
            0 => spans.push((step[0].scheduled, ended)),
            _ => spans[session as usize].1 = ended,
        }
    }
    assert!(spans.len() >= 8, "{spans:?}");
    for (place, (start, _)) in spans.iter().enumerate() {
        // A user who has thought for long enough is free; of two users, at most one is still busy.
        let thought = |end: Nanos| end + Nanos::from_millis(30);
        let busy = spans[..place].iter().filter(|(_, end)| thought(*end) > *start).count();
        assert!(busy < 2, "session {place} begins while {busy} others are busy");
        assert!(place == 0 || spans[place - 1].0 <= *start, "sessions begin in order");
    }
}

/// Answers with a text that says which answer it is.
fn engine(request: &ArrivedRequest) -> Vec<Step> {
    let said = token_event(&format!("reply {}", request.number));
    let events = chunk(&(said + &end_events(1)));
    vec![Step::write(format!("{STREAM_HEAD}{events}{LAST_CHUNK}"))]
}

/// Role and text of each message.
fn messages(request: &ArrivedRequest) -> Vec<(String, String)> {
    let body: Value = serde_json::from_str(&request.body).unwrap();
    let message = |message: &Value| {
        let text = |field: &str| message[field].as_str().unwrap().to_owned();
        (text("role"), text("content"))
    };
    body["messages"].as_array().unwrap().iter().map(message).collect()
}

/// Runs against the scripted engine and returns what came in, in order.
fn asked(args: &[&str]) -> Vec<ArrivedRequest> {
    let server = Server::start(engine);
    let flags = ["--model", "m", "--no-probe", "--isl", "30", "--osl", "4"];
    let (summary, _) = played(&server.url(), &[&flags[..], args].concat());
    let requests = server.requests();
    assert_eq!(number(&summary, "requests.ok"), requests.len() as f64);
    requests
}

#[test]
fn later_turns_carry_what_the_server_answered() {
    let flags = ["--concurrency", "1", "--num-requests", "6", "--turns", "3"];
    let requests = asked(&[&flags[..], &["--system-tokens", "20"]].concat());
    for session in requests.chunks(3) {
        let mut said = messages(&session[0]);
        assert_eq!(
            said.iter().map(|(role, _)| role.as_str()).collect::<Vec<_>>(),
            ["system", "user"]
        );
        for turn in 1..3 {
            let now = messages(&session[turn]);
            let before = session[turn - 1].number;
            said.push(("assistant".to_owned(), format!("reply {before}")));
            assert_eq!(now[..said.len()], said);
            let [(role, text)] = &now[said.len()..] else { panic!("{now:?}") };
            assert_eq!(role, "user");
            assert!(!text.is_empty() && !said.iter().any(|(_, earlier)| earlier == text));
            said = now;
        }
    }
    assert_eq!(messages(&requests[0])[0], messages(&requests[3])[0], "one system prompt for all");
    assert_ne!(messages(&requests[0])[1], messages(&requests[3])[1]);
}

#[test]
fn a_planned_history_is_the_same_whatever_the_server_says() {
    let flags = ["--concurrency", "1", "--num-requests", "4", "--turns", "2"];
    let planned = [&flags[..], &["--history", "dataset"]].concat();
    let requests = asked(&planned);
    for session in requests.chunks(2) {
        let now = messages(&session[1]);
        assert_eq!(now[0], messages(&session[0])[0]);
        let (role, text) = &now[1];
        assert_eq!(role, "assistant");
        assert!(!text.contains("reply"), "{text}");
        let marks = text.chars().filter(char::is_ascii_punctuation).count();
        assert_eq!(text.split_whitespace().count() + marks, 4, "of the planned length: {text}");
        assert_eq!(now.len(), 3);
    }
    let bodies =
        |requests: Vec<ArrivedRequest>| requests.into_iter().map(|r| r.body).collect::<Vec<_>>();
    assert_eq!(bodies(requests), bodies(asked(&planned)));
}

#[test]
fn a_session_has_one_name_in_the_header_asked_for() {
    let load = ["--rate", "100", "--num-requests", "12", "--turns", "3", "--turn-pause", "20ms"];
    let requests = asked(&[&load[..], &["--session-header", "X-Session-Id"]].concat());
    let mut names = BTreeMap::<String, BTreeSet<String>>::new();
    for request in &requests {
        // What a session begins with tells it from the others.
        let opening = messages(request)[0].1.clone();
        let name = request.header("x-session-id").expect("every request has it").to_owned();
        names.entry(opening).or_default().insert(name);
    }
    assert_eq!(names.len(), 4);
    assert!(names.values().all(|names| names.len() == 1), "{names:?}");
    let different: BTreeSet<_> = names.values().flatten().collect();
    assert_eq!(different.len(), 4, "{different:?}");
    let plain = asked(&load);
    assert!(plain.iter().all(|request| request.header("x-session-id").is_none()));
}

#[test]
fn tools_answer_after_their_delay_with_others_in_parallel() {
    let shape_flags = ["--turns", "1", "--tool-calls", "2", "--fan-out", "1"];
    let flags = ["--tool-delay", "50ms", "--tool-result", "25", "--num-requests", "15"];
    for load in [["--rate", "40"], ["--concurrency", "1"]] {
        let all = [&shape_flags[..], &flags, &load, &["--osl", "3"]].concat();
        let (summary, records) = played("mock:fast", &all);
        // The question, then two results, each with one request in parallel.
        let expected: Vec<_> = (0..3).map(|session| (session, vec![1, 2, 2])).collect();
        assert_eq!(shape(&records), expected, "{load:?}");
        assert_eq!(assert_paused(&records, PAUSE), 6, "{load:?}");
        assert_eq!(number(&summary, "sessions.requests_mean"), 5.0);
    }
    let load = ["--concurrency", "1", "--tool-role"];
    let requests =
        asked(&[&shape_flags[..], &flags[2..], &["--tool-delay", "1ms"], &load].concat());
    for session in requests.chunks(5) {
        let said: Vec<_> = session.iter().map(messages).collect();
        let role = |request: usize| said[request].last().unwrap().0.as_str();
        // The main line of the step is the one that the next step goes on from.
        let main = if role(1) == "tool" { 1 } else { 2 };
        let parallel = 3 - main;
        assert_eq!((role(0), role(main), role(parallel)), ("user", "tool", "user"));
        // Both go on from the same history, with a text of their own.
        let history = said[main].len() - 1;
        assert_eq!(said[main][..history], said[parallel][..history]);
        assert_ne!(said[main].last().unwrap().1, said[parallel].last().unwrap().1);
        for later in [3, 4] {
            assert_eq!(said[later][..said[main].len()], said[main]);
            let answer = format!("reply {}", session[main].number);
            assert_eq!(said[later][said[main].len()], ("assistant".to_owned(), answer));
        }
    }
}

#[test]
fn a_session_whose_request_fails_ends_there() {
    // The fifth and the tenth fail: each is the second of three in its session.
    let target = "mock:fast,fault=500:1/5";
    let flags = ["--turns", "3", "--num-requests", "14", "--no-probe", "--osl", "3"];
    let (summary, records) = played(target, &[&flags[..], &["--concurrency", "1"]].concat());
    let failed: Vec<_> = records.iter().filter(|record| !record.is_ok()).collect();
    let mut cut = 0;
    for record in &failed {
        let (session, turn) = (record.planned.session, record.planned.turn);
        let later = |other: &&RequestRecord| other.planned.session == session;
        assert_eq!(records.iter().filter(later).map(|other| other.planned.turn).max(), Some(turn));
        cut += 2 - turn;
    }
    assert_eq!((failed.len(), cut), (2, 2), "{failed:?}");
    assert_eq!(number(&summary, "requests.failed"), failed.len() as f64);
    assert_eq!(number(&summary, "requests.scheduled"), 14.0);
    assert_eq!(number(&summary, "sessions.cut_requests"), f64::from(cut));
    // Sessions of an open loop were counted as they began: what fails is missing at the end.
    let (summary, records) = played(target, &[&flags[..], &["--rate", "100"]].concat());
    let cut = number(&summary, "sessions.cut_requests");
    assert!(cut > 0.0);
    assert_eq!(records.len() as f64 + cut, 14.0);
}

#[test]
fn a_number_of_requests_cuts_inside_a_session() {
    let flags = ["--turns", "3", "--num-requests", "7", "--osl", "3"];
    for load in [["--rate", "40"], ["--concurrency", "1"]] {
        let (summary, records) = played("mock:fast", &[&flags[..], &load].concat());
        let expected = [(0, vec![1, 1, 1]), (1, vec![1, 1, 1]), (2, vec![1])];
        assert_eq!(shape(&records), expected, "{load:?}");
        assert_eq!(number(&summary, "requests.scheduled"), 7.0);
        // What goes beyond the number was never planned.
        assert_eq!(number(&summary, "sessions.cut_requests"), 0.0, "{load:?}");
    }
    // Requests in parallel to the main one count, too: 1 + 2 + 1.
    let agent = ["--turns", "1", "--tool-calls", "2", "--fan-out", "1", "--tool-delay", "1ms"];
    let count = ["--num-requests", "4", "--rate", "40", "--osl", "3"];
    let (_, records) = played("mock:fast", &[&agent[..], &count].concat());
    assert_eq!(shape(&records), [(0, vec![1, 2, 1])]);
}

#[test]
fn turns_that_are_due_after_the_end_are_not_waited_for() {
    let flags = ["--rate", "40", "--arrivals", "constant", "--duration", "500ms", "--osl", "3"];
    let talk = ["--turns", "2", "--turn-pause", "1h"];
    let (summary, records) = played("mock:fast", &[&flags[..], &talk].concat());
    assert_eq!(records.len(), 20);
    assert_eq!(number(&summary, "requests.scheduled"), 20.0);
    assert_eq!(number(&summary, "sessions.cut_requests"), 20.0);
    assert!(has_caveat(&summary, "sessions_cut"));
}

/// Scheduled instants of a load without answers to speak of, in milliseconds.
fn due(args: &[&str]) -> (Value, Vec<f64>) {
    let (summary, records) = played("mock:fast", &[&["--osl", "1", "--isl", "20"], args].concat());
    (summary, records.iter().map(|record| record.scheduled.as_ms()).collect())
}

fn assert_close(found: &[f64], expected: &[f64]) {
    let is_close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-3;
    let same = found.len() == expected.len() && found.iter().zip(expected).all(is_close);
    assert!(same, "{found:?}\n{expected:?}");
}

#[test]
fn stages_ramps_waves_and_bursts_send_when_they_say() {
    let constant = ["--arrivals", "constant"];
    let (summary, at_ms) = due(&[&["--stages", "500ms@20,500ms@80"], &constant[..]].concat());
    let stages = at(&summary, "breakdown.stage").as_object().unwrap();
    let counts: Vec<_> =
        stages.iter().map(|(name, stage)| (name.as_str(), number(stage, "ok"))).collect();
    assert_eq!(counts, [("1: 500ms@20", 10.0), ("2: 500ms@80", 40.0)]);
    let first = (0..10).map(|n| f64::from(n) * 50.0);
    let second = (0..40).map(|n| 500.0 + f64::from(n) * 12.5);
    assert_close(&at_ms, &first.chain(second).collect::<Vec<_>>());
    assert_eq!(number(&summary, "load.offered_rps"), 50.0);
    // From 0 to 80 a second: 40·t² are due by t.
    let (_, at_ms) = due(&[&["--schedule", "1s@0..80"], &constant[..]].concat());
    let expected: Vec<_> = (0..40).map(|n| (f64::from(n) / 40.0).sqrt() * 1e3).collect();
    assert_close(&at_ms, &expected);
    let (summary, at_ms) = due(&["--schedule", "bursts:5/100ms", "--num-requests", "15"]);
    let expected: Vec<_> = (0..15).map(|n| f64::from(n / 5) * 100.0).collect();
    assert_close(&at_ms, &expected);
    assert_eq!(at(&summary, "load.mode"), "shaped");
    // Of 20 in a period, 10 + 30·0.5/π = 14.8 come in its first half.
    let wave = ["--schedule", "sine:40:30:500ms", "--duration", "1s"];
    let (_, at_ms) = due(&[&wave[..], &constant].concat());
    let quarters = [0.0, 250.0, 500.0, 750.0]
        .map(|start| at_ms.iter().filter(|at| (start..start + 250.0).contains(*at)).count());
    assert_eq!(quarters, [15, 5, 15, 5], "{at_ms:?}");
    // A rest has none, and Poisson arrivals keep to their stages.
    let (summary, at_ms) = due(&["--stages", "300ms@100,300ms@0,300ms@100"]);
    assert!(at_ms.iter().all(|at| !(300.0..600.0).contains(at)), "{at_ms:?}");
    assert_eq!(at(&summary, "breakdown.stage").as_object().unwrap().len(), 2);
}

#[test]
fn an_idle_test_waits_before_every_request() {
    let (summary, records) = played("mock:fast", &["--idle", "300ms", "--num-requests", "2"]);
    let idle = Nanos::from_millis(300);
    assert_eq!(number(&summary, "requests.ok"), 2.0);
    assert!(records[0].scheduled >= idle, "{:?}", records[0].scheduled);
    assert!(records[1].scheduled >= records[0].exchange.stamps.ended + idle);
    assert_eq!(played("mock:fast", &["--idle", "10ms", "--osl", "1"]).1.len(), 1);
}

/// Continuous batching with blocks of 16 tokens. The template is two tokens before the text and
/// two behind it; a system prompt before it has two more.
const CACHING: &str = "mock:llama-8b-1xh200";

/// Shares of cached tokens, asked for and seen, and the records.
fn cached(target: &str, args: &[&str]) -> (Value, Vec<RequestRecord>) {
    played(target, &[&["--concurrency", "1", "--osl", "2"], args].concat())
}

fn measured_hits(records: &[RequestRecord]) -> Vec<u32> {
    let is_measured = |record: &&RequestRecord| record.phase == goodput_model::Phase::Measured;
    records.iter().filter(is_measured).map(|r| r.exchange.cached_tokens.unwrap()).collect()
}

#[test]
fn shared_beginnings_are_cached_in_whole_blocks() {
    // Nothing is shared.
    let (summary, records) =
        cached(CACHING, &["--cache", "cold", "--isl", "300", "--num-requests", "6"]);
    assert_eq!(number(&summary, "cache.observed"), 0.0);
    assert!(measured_hits(&records).iter().all(|hit| *hit == 0));
    // 2 + 100 + 2 tokens are the same: six blocks of the 200 tokens. The first request misses.
    let system = ["--system-tokens", "100", "--isl", "200", "--num-requests", "5"];
    let (summary, records) = cached(CACHING, &system);
    assert_eq!(measured_hits(&records), [0, 96, 96, 96, 96]);
    assert_eq!(number(&summary, "cache.requested"), 96.0 / 200.0);
    assert_eq!(number(&summary, "cache.observed"), 4.0 * 96.0 / (5.0 * 200.0));
    let (summary, _) = cached(CACHING, &[&system[..], &["--warmup", "1"]].concat());
    assert_eq!(number(&summary, "cache.observed"), 96.0 / 200.0);
    // 2 + 200 tokens: twelve blocks. Each of the four groups misses once.
    let groups = ["--prefix-groups", "4", "--prefix-tokens", "200", "--isl", "300"];
    let (summary, records) = cached(CACHING, &[&groups[..], &["--num-requests", "40"]].concat());
    let hits = measured_hits(&records);
    assert_eq!(hits.iter().filter(|hit| **hit == 0).count(), 4, "{hits:?}");
    assert_eq!(hits.iter().filter(|hit| **hit == 192).count(), 36, "{hits:?}");
    assert_eq!(number(&summary, "cache.requested"), 192.0 / 300.0);
    // The longest path: 0.704 is the nearest to 70 % of 1,000 tokens in blocks of 16.
    let hit = ["--cache", "hit=70%:2", "--isl", "1000", "--num-requests", "6", "--warmup", "12"];
    let (summary, records) = cached(CACHING, &hit);
    assert_eq!(measured_hits(&records), [704; 6]);
    assert_eq!(number(&summary, "cache.requested"), 0.704);
    assert_eq!(number(&summary, "cache.observed"), 0.704);
}

#[test]
fn a_hit_rate_holds_for_prompts_of_every_length() {
    let flags = ["--cache", "hit=70%:1", "--isl", "uniform:100:900", "--num-requests", "30"];
    let (_, records) = cached(CACHING, &flags);
    let mut held = 0;
    for record in &records {
        let input = f64::from(record.planned.input_tokens);
        let wanted = (0.7 * input / 16.0).round() as u32 * 16;
        assert_eq!(record.planned.cached_tokens, Some(wanted), "of {input}");
        // All begin like the longest so far.
        assert_eq!(record.exchange.cached_tokens, Some(wanted.min(held)), "of {input}");
        held = held.max(wanted);
    }
    assert!(held > 500);
}

#[test]
fn a_warm_cache_answers_all_but_the_last_block() {
    let flags = ["--cache", "warm=4", "--isl", "uniform:100:400", "--num-requests", "12"];
    let (summary, records) = cached(CACHING, &flags);
    // Each prompt once before the measured part.
    assert_eq!(number(&summary, "requests.warmup"), 4.0);
    assert_eq!(records.len(), 16);
    for (place, record) in records.iter().enumerate() {
        let input = record.planned.input_tokens;
        assert_eq!(input, records[place % 4].planned.input_tokens);
        let expected = if place < 4 { 0 } else { (input - 1) / 16 * 16 };
        assert_eq!(record.exchange.cached_tokens, Some(expected), "of {input}");
    }
    assert_eq!(number(&summary, "cache.requested"), number(&summary, "cache.observed"));
}

#[test]
fn a_circle_of_contexts_hits_while_it_fits_and_never_when_it_does_not() {
    // The first rotation is the warm-up, though none was asked for.
    let flags = ["--cache", "tiling=4:640", "--isl", "700", "--num-requests", "8"];
    // A prompt and its answer take 44 blocks; all contexts together 160.
    let (summary, records) = cached(CACHING, &flags);
    assert_eq!(number(&summary, "requests.warmup"), 4.0);
    assert_eq!(measured_hits(&records), [640; 8]);
    assert_eq!(number(&summary, "cache.observed"), 640.0 / 700.0);
    assert_eq!(summary["cache"]["rotation"], json!({"contexts": 4, "measured": 2.0}));
    assert!(!has_caveat(&summary, "cache_differs"));
    // 100 blocks hold two of them, and the third in the circle is never there any more: as planned.
    let (summary, records) = cached(&format!("{CACHING},kv_blocks=100"), &flags);
    assert_eq!(measured_hits(&records), [0; 8]);
    assert_eq!(number(&summary, "cache.requested"), 640.0 / 700.0);
    assert!(!has_caveat(&summary, "cache_differs"), "{}", summary["caveats"]);
}

/// An open loop of a duration ends with a rotation: 40 requests/s for a second are 40, of which 39
/// make whole rotations of 3.
#[test]
fn an_open_loop_measures_whole_rotations() {
    let flags = ["--cache", "tiling=3:64", "--isl", "100", "--rate", "40", "--duration", "1s"];
    let (_, summary) = Session::new().measure(CACHING, &flags);
    let found = [number(&summary, "requests.warmup"), number(&summary, "requests.scheduled")];
    assert_eq!(found, [3.0, 39.0]);
    assert_eq!(summary["cache"]["rotation"], json!({"contexts": 3, "measured": 13.0}));
}

#[test]
fn turns_find_their_history_in_the_cache() {
    let flags = ["--turns", "3", "--isl", "100", "--num-requests", "6"];
    let five = [&flags[..], &["--concurrency", "1", "--osl", "5"]].concat();
    let (summary, records) = played(CACHING, &five);
    // 105 tokens were said, then 105 + 104 + 5 of the second turn.
    assert_eq!(measured_hits(&records), [0, 96, 208, 0, 96, 208]);
    assert_eq!(number(&summary, "cache.requested"), number(&summary, "cache.observed"));
    // 208 were said before the third turn, and the last token of an answer is never computed.
    let two = [&flags[..], &["--concurrency", "1", "--osl", "2"]].concat();
    let (summary, records) = played(CACHING, &two);
    assert_eq!(measured_hits(&records)[2], 192);
    assert_eq!(number(&summary, "cache.requested"), number(&summary, "cache.observed"));
}

#[test]
fn prompts_of_an_earlier_run_are_found_out_and_a_reset_forgets_them() {
    let folder = Session::new();
    let mock = MockProcess::start(&folder, &["--profile", "llama-8b-1xh200"]);
    let flags = ["--isl", "300", "--num-requests", "5"];
    let run = |args: &[&str]| cached(&mock.url(), &[&flags[..], args].concat());
    let (first, records) = run(&[]);
    assert_eq!(measured_hits(&records), [0; 5]);
    assert!(!has_caveat(&first, "cache_unplanned"));
    // The same seed again: all but the last block of 300 tokens.
    let (second, records) = run(&[]);
    assert_eq!(measured_hits(&records), [288; 5]);
    assert_eq!(number(&second, "cache.observed"), 0.96);
    assert!(has_caveat(&second, "cache_unplanned"));
    let (third, records) = run(&["--cache", "reset"]);
    assert_eq!(measured_hits(&records), [0; 5]);
    assert!(!has_caveat(&third, "cache_unplanned"));
    let (_, records) = run(&["--seed", "43"]);
    assert_eq!(measured_hits(&records), [0; 5]);
    // Who cannot forget is not measured as if it had.
    let server = Server::start(|request| {
        let unknown = || vec![answer("404 Not Found", "application/json", "{}")];
        if request.line.contains("/v1/chat/") { engine(request) } else { unknown() }
    });
    let stuck = ["--concurrency", "1", "--num-requests", "2", "--model", "m", "--cache", "reset"];
    let outcome = folder.run(&[&["run", &server.url()], &stuck[..]].concat());
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("hint:"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("/reset_prefix_cache"), "{}", outcome.stderr);
}
