//! Sessions of an open loop: scheduled instants, histories, fan-out, failures, the end.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod common;

use std::sync::{Arc, Barrier};
use std::time::Duration;

use common::{
    assistant, dialect, indices, open, plan, play, play_under, replay, request, say, session, user,
};
use goodput_engine::RunControl;
use goodput_model::{
    Api, ArrivalProcess, ErrorClass, History, Load, LoadShape, Message, MessagePart, Mode, Nanos,
    Rate, Role, SessionStep,
};
use goodput_testkit::{Server, answer};
use goodput_wire::RequestFormat;

const PAUSE: Nanos = Nanos::from_millis(30);
const TAKES: Duration = Duration::from_millis(20);

/// The server sees the number of each request.
fn echo() -> Server {
    Server::start(|request| say(&format!("re{}", request.number), TAKES))
}

#[test]
fn a_step_is_due_a_pause_after_the_step_before() {
    let server = echo();
    let sessions = vec![session(&[&["a"], &["b"], &["c"]], PAUSE); 4];
    let ended = play(plan(open(40.0, 12), sessions, &[], &server));
    assert_eq!(indices(&ended), (0..12).collect::<Vec<_>>());
    for (number, steps) in (0u64..).zip(ended.sink.0.chunks(3)) {
        assert_eq!(steps[0].scheduled, Nanos::from_millis(25 * number));
        assert!(steps[0].pacer_lag.is_some());
        for (turn, record) in (0u32..).zip(steps) {
            assert_eq!((record.planned.session, record.planned.turn), (Some(number), turn));
            assert!(record.is_ok() && record.worker == steps[0].worker);
            assert!(record.exchange.stamps.sent_first.unwrap() >= record.scheduled);
        }
        for pair in steps.windows(2) {
            assert_eq!(pair[1].scheduled, pair[0].exchange.stamps.ended + PAUSE);
            assert_eq!(pair[1].pacer_lag, None);
        }
    }
    assert_eq!(ended.cut_requests, 0);
}

#[test]
fn a_session_of_one_request_is_no_session_in_the_record() {
    let ended = play(plan(open(100.0, 2), vec![session(&[&["a"]], PAUSE); 2], &[], &echo()));
    assert!(ended.sink.0.iter().all(|record| record.planned.session.is_none()));
}

#[test]
fn the_history_is_what_the_server_said() {
    let server = Server::start(|request| {
        let said = ["first \\\"word\\\" ü\\n", "", "third"][request.number];
        say(said, Duration::ZERO)
    });
    let sessions = vec![session(&[&["a"], &["b"], &["c"]], Nanos::ZERO)];
    let ended = play(plan(replay(None), sessions, &[0], &server));
    assert!(ended.sink.0.iter().all(|record| record.exchange.text.is_none()));
    let first = assistant("first \"word\" ü\n");
    // An answer without text leaves nothing behind.
    let histories = [vec![], vec![user("a"), first.clone()], vec![user("a"), first, user("b")]];
    let bodies: Vec<String> = server.requests().into_iter().map(|seen| seen.body).collect();
    for ((history, asked), body) in histories.iter().zip(["a", "b", "c"]).zip(bodies) {
        assert_eq!(body.as_bytes(), &dialect().encode(history, &request(asked))[..]);
    }
}

#[test]
fn the_history_is_the_data_sets_where_it_has_one() {
    let server = echo();
    let mut made = session(&[&["a"], &["b"], &["c"]], Nanos::ZERO);
    made.history = History::Dataset;
    made.steps[0].reply = Some(Message::Raw(r#"{"role":"assistant","content":"kept"}"#.into()));
    let reply = made.steps[0].reply.clone().unwrap();
    play(plan(replay(None), vec![made], &[0], &server));
    let history = [user("a"), reply, user("b"), assistant("re1")];
    assert_eq!(
        server.requests()[2].body.as_bytes(),
        &dialect().encode(&history, &request("c"))[..]
    );
}

#[test]
fn bodies_that_the_plan_alone_makes_are_hashed_where_that_is_asked_for() {
    let server = echo();
    let of_server = session(&[&["a", "parallel"], &["b"]], Nanos::ZERO);
    let mut of_data = session(&[&["a"], &["b"], &["c"]], Nanos::ZERO);
    of_data.history = History::Dataset;
    of_data.steps[0].reply = Some(assistant("kept"));
    let hashes = |hash_bodies, model: &str| -> Vec<Option<u64>> {
        let sessions = vec![of_server.clone(), of_data.clone()];
        let mut run = plan(replay(None), sessions, &[0, 0], &server);
        (run.hash_bodies, run.dialect) = (hash_bodies, RequestFormat::new(Api::Chat, model, true));
        play(run).sink.0.iter().map(|record| record.exchange.body_hash).collect()
    };
    assert_eq!(hashes(false, "m"), [None; 6]);
    // By sha256sum, of `{"max_tokens":1,"messages":[{"content":"a","role":"user"}],"model":,"stream":true}`
    // and so on. A body with an answer of the server in it has none.
    let first = Some(0x5dda_e634_4c46_8560);
    let second_line = Some(0x05a6_e6bb_b4a7_6951);
    let second = Some(0x1741_9ec3_5d9a_4936);
    let expected = [first, second_line, None, first, second, None];
    assert_eq!(hashes(true, "m"), expected);
    assert_eq!(hashes(true, "another \"name\""), expected);
}

#[test]
fn text_is_in_the_record_only_where_it_was_asked_for() {
    let server = Server::start(|_| say("yes", Duration::ZERO));
    let part = |text: &str| MessagePart::Text(text.into());
    let image = MessagePart::Image("data:image/png;base64,AAAA".into());
    let mut made = session(&[&["a"], &["b"]], Nanos::ZERO);
    made.steps[1].requests[0].messages = vec![
        Message::Raw(r#"{"role":"tool"}"#.into()),
        Message::Plain { role: Role::User, parts: vec![part("see "), image, part("!")] },
    ];
    for (keep_text, keep_answers) in [(false, false), (false, true), (true, false)] {
        let mut run = plan(replay(None), vec![made.clone()], &[0], &server);
        (run.keep_text, run.keep_answers) = (keep_text, keep_answers);
        let ended = play(run);
        let prompts = ["a", r#"{"role":"tool"}see [image]!"#];
        for (record, prompt) in ended.sink.0.iter().zip(prompts) {
            assert_eq!(record.prompt.as_deref(), keep_text.then_some(prompt));
            let answer = (keep_text || keep_answers).then_some("yes");
            assert_eq!(record.exchange.text.as_deref(), answer);
        }
    }
}

#[test]
fn a_step_asks_everything_at_once_and_ends_with_the_last() {
    let together = Barrier::new(3);
    let server = Server::start(move |seen| {
        if seen.number > 0 && !seen.body.contains("end") {
            // No request is answered before all three are in flight.
            together.wait();
        }
        let takes = if seen.body.contains("slow") { 100 } else { 0 };
        let said = if seen.body.contains("side") { "no" } else { "yes" };
        say(said, Duration::from_millis(takes))
    });
    let made = session(&[&["main"], &["main2", "side slow", "side"], &["end"]], PAUSE);
    let ended = play(plan(replay(None), vec![made], &[0], &server));
    let records = &ended.sink.0;
    assert_eq!(indices(&ended), [0, 1, 2, 3, 4]);
    assert!(records.iter().all(goodput_model::RequestRecord::is_ok));
    let turns: Vec<u32> = records.iter().map(|record| record.planned.turn).collect();
    assert_eq!(turns, [0, 1, 1, 1, 2]);
    let step = &records[1..4];
    assert!(step.iter().all(|record| record.scheduled == step[0].scheduled));
    let ends = step.iter().map(|record| record.exchange.stamps.ended);
    assert_eq!(records[4].scheduled, ends.max().unwrap() + PAUSE);
    let history = [user("main"), assistant("yes"), user("main2"), assistant("yes")];
    let last = server.requests().pop().unwrap();
    assert_eq!(last.body.as_bytes(), &dialect().encode(&history, &request("end"))[..]);
}

#[test]
fn a_cap_counts_requests_not_sessions() {
    let server = echo();
    let made = session(&[&["a", "b"], &["c"]], Nanos::ZERO);
    let ended = play(plan(replay(Some(1)), vec![made], &[0], &server));
    let [first, second, third] = &ended.sink.0[..] else { panic!() };
    // The order of two requests at one instant is unspecified.
    let (first, second) =
        if first.cap_wait == Nanos::ZERO { (first, second) } else { (second, first) };
    assert_eq!((first.cap_wait, third.cap_wait), (Nanos::ZERO, Nanos::ZERO));
    assert!(second.cap_wait > Nanos::ZERO);
    assert!(second.exchange.stamps.dispatched >= first.exchange.stamps.ended);
}

#[test]
fn a_session_that_fails_is_over_and_counted() {
    let server = Server::start(|seen| match &seen.body {
        body if body.contains("bad") => vec![answer("500 Oh", "application/json", "{}")],
        _ => say("fine", Duration::ZERO),
    });
    let sessions = vec![
        session(&[&["a"], &["bad"], &["c", "d"], &["e"]], Nanos::ZERO),
        // A failure outside of the main line does not end the session.
        session(&[&["a", "bad"], &["b"]], Nanos::ZERO),
    ];
    let ended = play(plan(replay(None), sessions, &[0, 0], &server));
    assert_eq!(indices(&ended), [0, 1, 5, 6, 7]);
    assert_eq!(ended.cut_requests, 3);
    let failed: Vec<_> = ended.sink.0.iter().filter(|record| !record.is_ok()).collect();
    assert_eq!(failed.iter().map(|record| record.index).collect::<Vec<_>>(), [1, 6]);
    assert_eq!(failed[0].exchange.failure.as_ref().unwrap().class, ErrorClass::Http(500));
}

#[test]
fn a_replay_keeps_its_instants_and_ends_with_them() {
    let sessions = vec![session(&[&["a"]], PAUSE); 9];
    let arrivals = [0, 7, 7, 40, 41];
    let ended = play(plan(replay(None), sessions, &arrivals, &echo()));
    let due: Vec<Nanos> = ended.sink.0.iter().map(|record| record.scheduled).collect();
    assert_eq!(due, arrivals.map(Nanos::from_millis));
    assert_eq!(indices(&ended), [0, 1, 2, 3, 4]);
}

#[test]
fn a_shape_gives_the_instants() {
    let (shape, arrivals) = ("1s@40,1s@10".parse::<LoadShape>().unwrap(), ArrivalProcess::Poisson);
    let mode = Mode::Shaped { shape: shape.clone(), arrivals, max_concurrency: None };
    let load = Load { num_requests: Some(8), seed: 5, ..common::load(mode) };
    let ended = play(plan(load, vec![session(&[&["a"]], PAUSE); 9], &[], &echo()));
    let due: Vec<Nanos> = ended.sink.0.iter().map(|record| record.scheduled).collect();
    let expected = goodput_model::schedule::ArrivalSequence::shaped(&shape, arrivals, 5);
    assert_eq!(due, expected.take(8).collect::<Vec<_>>());
}

#[test]
fn sessions_arrive_whatever_the_server_does() {
    // No request is answered before the last has arrived.
    let all = Barrier::new(6);
    let server = Server::start(move |seen| {
        if !seen.body.contains("second") {
            all.wait();
        }
        say("late", Duration::ZERO)
    });
    let sessions = vec![session(&[&["first"], &["second"]], Nanos::ZERO); 6];
    let ended = play(plan(replay(None), sessions, &[0, 10, 20, 30, 40, 50], &server));
    assert_eq!(indices(&ended), (0..12).collect::<Vec<_>>());
    assert!(ended.sink.0.iter().all(goodput_model::RequestRecord::is_ok));
}

#[test]
fn the_number_of_requests_ends_inside_a_session() {
    let sessions = vec![session(&[&["a"], &["b", "c"]], PAUSE); 3];
    let ended = play(plan(open(100.0, 5), sessions, &[], &echo()));
    assert_eq!(indices(&ended), [0, 1, 2, 3, 4]);
    // What was never asked for is not missing.
    assert_eq!(ended.cut_requests, 0);
}

#[test]
fn a_step_that_would_come_after_the_end_is_not_sent() {
    let rate = Rate::PerSecond(10.0);
    let mode = Mode::Open { rate, arrivals: ArrivalProcess::Constant, max_concurrency: None };
    let load = Load { duration: Some(Duration::from_millis(350)), ..common::load(mode) };
    let hour = Nanos::from_millis(3_600_000);
    let ended = play(plan(load, vec![session(&[&["a"], &["b"], &["c"]], hour); 9], &[], &echo()));
    assert_eq!(indices(&ended), [0, 3, 6, 9]);
    assert_eq!(ended.cut_requests, 8);
}

#[test]
fn a_stop_ends_sessions_in_thought() {
    let control = RunControl::new();
    let hour = Nanos::from_millis(3_600_000);
    let server = echo();
    let run = plan(replay(None), vec![session(&[&["a"], &["b"], &["c"]], hour)], &[0], &server);
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            while server.requests().is_empty() {
                goodput_clock::pause(Nanos::from_millis(10));
            }
            control.stop();
        });
        play_under(run, &control)
    });
    assert_eq!((indices(&ended), ended.cut_requests), (vec![0], 2));
    // The first request had begun by then, and the second was an hour away.
    let begun = ended.sink.0[0].exchange.stamps.dispatched;
    assert!(ended.stopped.unwrap() >= begun && ended.stopped.unwrap() < hour);
}

#[test]
fn the_drain_begins_when_the_last_step_is_sent() {
    // The pause is longer than the drain, and no request may be cut off in it.
    let mut load = replay(None);
    load.drain = Duration::from_millis(100);
    let made = session(&[&["a"], &["b"]], Nanos::from_millis(400));
    let ended = play(plan(load, vec![made], &[0], &echo()));
    assert_eq!((indices(&ended), ended.cut_requests), (vec![0, 1], 0));
    assert_eq!(ended.stopped, None);
    assert!(ended.sink.0.iter().all(goodput_model::RequestRecord::is_ok));
}

#[test]
fn the_header_tells_sessions_apart() {
    let server = echo();
    let sessions = vec![session(&[&["a"], &["b", "c"]], Nanos::ZERO), session(&[&["d"]], PAUSE)];
    let mut run = plan(replay(None), sessions, &[0, 100], &server);
    run.session_header = Some("X-Session".parse().unwrap());
    let endpoint = Arc::clone(&run.endpoint);
    play(run);
    let prefix = endpoint.request_id(0).unwrap();
    let prefix = prefix.strip_suffix("-0").unwrap();
    for seen in server.requests() {
        let session = u32::from(seen.body.contains("\"d\""));
        assert_eq!(seen.header("x-session"), Some(format!("{prefix}-s{session}").as_str()));
    }
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn nothing_to_send_is_no_run_without_end() {
    let server = echo();
    assert_eq!(indices(&play(plan(replay(None), Vec::new(), &[], &server))), [0; 0]);
    assert_eq!(indices(&play(plan(open(10.0, 5), Vec::new(), &[], &server))), [0; 0]);
    let empty = session(&[&[]], PAUSE);
    let mut odd = session(&[&["a"], &["b"]], Nanos::ZERO);
    odd.steps.insert(1, SessionStep { after: Nanos::ZERO, requests: Vec::new(), reply: None });
    let ended = play(plan(open(10.0, 5), vec![odd, empty], &[], &server));
    assert_eq!((indices(&ended), ended.cut_requests), (vec![0], 1));
}
