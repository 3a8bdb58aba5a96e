//! Servers that always have bytes ready: limits of time and memory hold, and a stop is heard.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod common;

use std::time::Duration;

use common::{dialect, open, plan, play, play_under};
use goodput_engine::{EngineRun, RunControl};
use goodput_model::{ErrorClass, History, Nanos, Planned, Request, Session, SessionStep};
use goodput_testkit::{Server, answer, token_event};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

/// How long a server floods: longer than any limit here, so that its end is never the request's.
const FLOOD: Duration = Duration::from_secs(30);

/// What a busy machine may add to a limit. Where limits starve, requests last as long as the flood.
const ROOM: Nanos = Nanos::from_millis(8_000);

/// As many of these bytes as the client takes.
fn flood(bytes: &str) -> Server {
    let bytes = bytes.repeat(8_000).into_bytes();
    Server::start(move |_| {
        let flood = goodput_testkit::Step::Flood(FLOOD, bytes.clone());
        vec![goodput_testkit::Step::write(HEAD), flood]
    })
}

/// Eight requests at once on two workers, each for an answer of this many tokens.
fn eight(tokens: Option<u32>, server: &Server) -> EngineRun {
    let request = Request::prompt("x", Planned::new("test", 1, tokens));
    let step = SessionStep { after: Nanos::ZERO, requests: vec![request], reply: None };
    let sessions = vec![Session { steps: vec![step], history: History::Server }; 8];
    EngineRun { timeout: Duration::from_secs(1), ..plan(open(1_000.0, 8), sessions, &[], server) }
}

#[test]
fn a_flood_does_not_outlast_the_time_limit() {
    // So long an answer is asked for that its size has no limit that matters here.
    for bytes in [": ping\n\n".to_owned(), token_event("a")] {
        let ended = play(eight(Some(100_000_000), &flood(&bytes)));
        for record in &ended.sink.0 {
            let failure = record.exchange.failure.as_ref().unwrap();
            assert_eq!(failure.class, ErrorClass::Timeout, "{failure:?}");
            let took = record.exchange.stamps.ended - record.exchange.stamps.dispatched;
            assert!(took < Nanos::from_millis(1_000) + ROOM, "{took:?}");
        }
    }
}

#[test]
fn a_stop_is_heard_in_a_flood() {
    let server = flood(": ping\n\n");
    let run = EngineRun { timeout: FLOOD, ..eight(Some(100_000_000), &server) };
    let control = RunControl::new();
    let (begin, stop) = (goodput_clock::now(), control.clone());
    let stopper = std::thread::spawn(move || {
        goodput_clock::pause(Nanos::from_millis(500));
        stop.abort();
    });
    let ended = play_under(run, &control);
    stopper.join().unwrap();
    assert!(goodput_clock::now() - begin < Nanos::from_millis(500) + ROOM);
    let classes = ended.sink.0.iter().map(|record| record.exchange.failure.clone().unwrap().class);
    assert_eq!(classes.collect::<Vec<_>>(), [ErrorClass::CutOff; 8]);
}

#[test]
fn an_answer_ends_where_it_can_no_longer_be_one() {
    // Timed out they would hold hundreds of thousands of events after the minute.
    let failures = |run: EngineRun| {
        let ended = play(EngineRun { timeout: Duration::from_mins(1), ..run });
        let records = ended.sink.0.into_iter().map(|record| record.exchange);
        records
            .map(|exchange| (exchange.failure.unwrap(), exchange.chunks.len()))
            .collect::<Vec<_>>()
    };
    let tokens = flood(&token_event("a"));
    for (failure, chunks) in failures(eight(Some(8), &tokens)) {
        assert_eq!((failure.class, chunks), (ErrorClass::AnswerTooLarge, 4_225));
        let words = "the answer has more than 4224 events, and 8 tokens were requested";
        assert_eq!(failure.message, words);
    }
    // The body has the last word about what is asked for.
    let dialect = dialect().with_extra(r#"{"max_tokens": 16, "n": 2}"#).unwrap();
    for (failure, chunks) in failures(EngineRun { dialect, ..eight(Some(8), &tokens) }) {
        assert_eq!((failure.class, chunks), (ErrorClass::AnswerTooLarge, 8_705));
        assert!(failure.message.contains("2 answers of 16 tokens"), "{}", failure.message);
    }
    for (failure, _) in failures(eight(Some(8), &flood(": ping\n\n"))) {
        assert_eq!(failure.class, ErrorClass::AnswerTooLarge);
        assert!(failure.message.contains("more than 17301504 bytes"), "{}", failure.message);
    }
    let long = "x".repeat(300_000);
    let json =
        format!(r#"{{"choices":[{{"message":{{"content":"{long}"}},"finish_reason":"stop"}}]}}"#);
    let whole = Server::start(move |_| vec![answer("200 OK", "application/json", &json)]);
    for (failure, _) in failures(eight(Some(8), &whole)) {
        assert_eq!(failure.class, ErrorClass::AnswerTooLarge);
        assert!(failure.message.contains("270336 bytes of text"), "{}", failure.message);
    }
}
