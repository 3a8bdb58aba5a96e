//! Bad servers: every failure in its own class, counted, and the run goes on.

use std::time::Duration;

use crate::support::{Session, about_time, at, ms, number, timed};
use goodput_testkit::{
    ArrivedRequest, LAST_CHUNK, STREAM_HEAD, Server, Step, answer, chunk, end_events, timed_stream,
    token_event,
};

fn good() -> Vec<Step> {
    timed_stream(ms(5), ms(1), 3)
}

/// A stream that begins well: head and one token.
fn begun() -> Vec<Step> {
    vec![Step::write(STREAM_HEAD), Step::write(chunk(&token_event("a")))]
}

fn then(mut steps: Vec<Step>, more: Vec<Step>) -> Vec<Step> {
    steps.extend(more);
    steps
}

/// Every second request meets the fault; the others must be fine.
fn every_second(fault: Vec<Step>) -> Server {
    Server::start(
        move |request: &ArrivedRequest| {
            if request.number % 2 == 1 { fault.clone() } else { good() }
        },
    )
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn each_fault_is_counted_in_its_class() {
    let stall = Duration::from_secs(30);
    let html = answer("200 OK", "text/html", "<html><title>Sign in</title></html>");
    let cases: Vec<(&str, &str, Vec<Step>)> = vec![
        (
            "http_500",
            "headers",
            vec![answer("500 Internal Server Error", "text/plain", "Internal Server Error")],
        ),
        (
            "http_429",
            "headers",
            vec![answer(
                "429 Too Many Requests",
                "application/json",
                r#"{"error":{"message":"slow down"}}"#,
            )],
        ),
        (
            "http_503",
            "headers",
            vec![answer("503 Service Unavailable", "application/json", r#"{"detail":"loading"}"#)],
        ),
        (
            "http_401",
            "headers",
            vec![answer("401 Unauthorized", "application/json", r#"{"error":{"message":"no"}}"#)],
        ),
        ("html", "first_token", vec![html]),
        ("bad_json", "first_token", vec![answer("200 OK", "application/json", "{\"choices\":")]),
        (
            "bad_event",
            "stream",
            then(begun(), vec![Step::write(chunk("data: garbage\n\n")), Step::write(LAST_CHUNK)]),
        ),
        (
            "stream_error",
            "stream",
            then(
                begun(),
                vec![
                    Step::write(chunk("data: {\"error\":{\"message\":\"boom\"}}\n\n")),
                    Step::write(LAST_CHUNK),
                ],
            ),
        ),
        (
            "no_finish",
            "stream",
            then(begun(), vec![Step::write(chunk("data: [DONE]\n\n")), Step::write(LAST_CHUNK)]),
        ),
        (
            "empty",
            "first_token",
            vec![
                Step::write(STREAM_HEAD),
                Step::write(chunk(&end_events(0))),
                Step::write(LAST_CHUNK),
            ],
        ),
        ("cut", "stream", then(begun(), vec![Step::Close])),
        ("cut", "stream", then(begun(), vec![Step::Pause(ms(20)), Step::Reset])),
        ("cut", "first_token", vec![Step::write(STREAM_HEAD), Step::Close]),
        ("closed", "headers", vec![Step::Close]),
        ("timeout", "stream", then(begun(), vec![Step::Pause(stall)])),
        ("timeout", "headers", vec![Step::Pause(stall)]),
        ("bad_http", "headers", vec![Step::write("SSH-2.0-OpenSSH_9\r\n\r\n"), Step::Close]),
    ];
    for (class, stage, fault) in cases {
        let server = every_second(fault);
        let args = [
            "--rate",
            "100",
            "--num-requests",
            "20",
            "--model",
            "m",
            "--timeout",
            "300ms",
            "--connections",
            "per-request",
            "--no-probe",
        ];
        let (outcome, summary) = Session::new().measure(&server.url(), &args);
        outcome.assert_finished(class);
        assert_eq!(
            at(&summary, "requests.errors"),
            &serde_json::json!({class: 10}),
            "{class}/{stage}"
        );
        assert_eq!(
            at(&summary, "requests.errors_by_stage"),
            &serde_json::json!({stage: 10}),
            "{class}"
        );
        assert_eq!(number(&summary, "requests.ok"), 10.0, "{class}/{stage}");
        assert_eq!(number(&summary, "requests.scheduled"), 20.0, "{class}/{stage}");
        assert_ne!(at(&summary, "verdict"), "valid", "{class}/{stage}");
    }
}

#[test]
fn what_is_odd_but_right_is_no_failure() {
    let no_done = end_events(3).replace("data: [DONE]\n\n", "");
    let cases: Vec<(&str, Vec<Step>)> = vec![
        (
            "DONE, then silence",
            then(
                begun(),
                vec![Step::write(chunk(&end_events(1))), Step::Pause(Duration::from_secs(5))],
            ),
        ),
        ("DONE, then a cut", then(begun(), vec![Step::write(chunk(&end_events(1))), Step::Close])),
        ("no DONE", then(begun(), vec![Step::write(chunk(&no_done)), Step::write(LAST_CHUNK)])),
        (
            "connection: close without length",
            vec![
                Step::write(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
                ),
                Step::write(token_event("a")),
                Step::write(end_events(1)),
                Step::Close,
            ],
        ),
        (
            "another content type",
            vec![
                Step::write(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n",
                ),
                Step::write(chunk(&token_event("a"))),
                Step::write(chunk(&end_events(1))),
                Step::write(LAST_CHUNK),
            ],
        ),
        (
            "pings during prefill",
            vec![
                Step::write(STREAM_HEAD),
                Step::write(chunk(": ping\r\n\r\n")),
                Step::write(chunk(":\n\n")),
                Step::write(chunk(&token_event("a"))),
                Step::write(chunk(&end_events(1))),
                Step::write(LAST_CHUNK),
            ],
        ),
    ];
    for (name, steps) in cases {
        let server = Server::start(move |_| steps.clone());
        // A stream that stays open would hold up every request of the length check.
        let args = [
            "--rate",
            "100",
            "--num-requests",
            "10",
            "--model",
            "m",
            "--timeout",
            "2s",
            "--no-length-check",
        ];
        let (outcome, summary) = Session::new().measure(&server.url(), &args);
        outcome.assert_finished(name);
        assert_eq!(number(&summary, "requests.ok"), 10.0, "{name}: {}", summary["requests"]);
    }
}

#[test]
fn timeouts_are_the_tail_not_missing_from_it() {
    timed(|| {
        // One in ten never answers: p90 and below are known, p95 is beyond the limit.
        let server = Server::start(|request: &ArrivedRequest| {
            if request.number % 10 == 9 {
                vec![Step::Pause(Duration::from_secs(30))]
            } else {
                good()
            }
        });
        let args = [
            "--rate",
            "100",
            "--num-requests",
            "100",
            "--model",
            "m",
            "--timeout",
            "400ms",
            "--connections",
            "per-request",
            "--no-probe",
        ];
        let (_, summary) = Session::new().measure(&server.url(), &args);
        about_time(|| {
            assert_eq!(number(&summary, "metrics.ttft.n"), 100.0);
            assert_eq!(number(&summary, "metrics.ttft.censored"), 10.0);
            assert!(at(&summary, "metrics.ttft.percentiles.90.value").is_number());
            assert!(at(&summary, "metrics.ttft.percentiles.95.value").is_null());
            assert_eq!(at(&summary, "metrics.ttft.percentiles.95.is_censored"), true);
        });
    });
}

#[test]
fn a_server_that_fails_everything_gets_a_report_that_says_so() {
    let server = Server::start(|_| vec![answer("500 Oops", "text/plain", "evil \u{1b}[31m text")]);
    let session = Session::new();
    let outcome = session.run(&[
        "run",
        &server.url(),
        "--rate",
        "50",
        "--num-requests",
        "10",
        "--model",
        "m",
        "--no-probe",
        "--out",
        "out",
    ]);
    assert_eq!(outcome.code, Some(3));
    assert!(outcome.stdout.contains("10 × http_500"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("VOID"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("all 10 measured requests failed"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains('\u{1b}') && !outcome.stderr.contains('\u{1b}'));
    assert!(session.path("out/summary.json").exists());
}

#[test]
fn idle_connections_closed_by_the_server_are_normal_life() {
    // The server takes one request per connection without saying so in advance.
    let server = Server::start(|_| then(good(), vec![Step::Close]));
    let args = ["--rate", "20", "--arrivals", "constant", "--num-requests", "20", "--model", "m"];
    let (outcome, summary) = Session::new().measure(&server.url(), &args);
    outcome.assert_finished("");
    assert_eq!(number(&summary, "requests.ok"), 20.0, "{}", summary["requests"]);
    // Found closed before use, or reopened when the close came too late to be seen.
    let opened = number(&summary, "requests.connects");
    assert!(opened >= 19.0, "{opened} opened");
}

#[test]
fn a_connection_that_dies_under_a_request_is_reopened_once_and_counted() {
    // The second request on a connection is met by a reset, before a byte of the answer.
    let server = Server::start(|request: &ArrivedRequest| {
        let earlier = request.number;
        if earlier % 2 == 1 { vec![Step::Reset] } else { good() }
    });
    let args = ["--concurrency", "1", "--num-requests", "4", "--model", "m", "--no-probe"];
    let (outcome, summary) = Session::new().measure(&server.url(), &args);
    outcome.assert_finished("");
    assert_eq!(number(&summary, "requests.ok"), 4.0, "{}", summary["requests"]);
    // 1 ok; 2 reset, reopened ok as the third the server sees; and so on.
    assert_eq!(number(&summary, "requests.reconnects"), 3.0);
}

/// A chat stream of one token, for which the server counts this many prompt tokens.
fn counted(prompt_tokens: u32) -> Vec<Step> {
    let end = end_events(1).replace(":7,", &format!(":{prompt_tokens},"));
    vec![
        Step::write(STREAM_HEAD),
        Step::write(chunk(&(token_event("a") + &end))),
        Step::write(LAST_CHUNK),
    ]
}

#[test]
fn a_flood_ends_where_it_can_no_longer_be_an_answer() {
    let bytes = token_event("a").repeat(4_000).into_bytes();
    let server = Server::start(move |_| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        vec![Step::write(head), Step::Flood(Duration::from_mins(1), bytes.clone())]
    });
    let args =
        ["--rate", "100", "--num-requests", "4", "--model", "m", "--isl", "32", "--osl", "8"];
    // The small request before the load meets it too, and ends the run.
    let refused = Session::new().run(&[&["run", &server.url()], &args[..]].concat());
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("answer_too_large"), "{}", refused.stderr);
    let args = [&args[..], &["--no-probe"]].concat();
    let (outcome, summary) = Session::new().measure(&server.url(), &args);
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    let errors = serde_json::json!({"answer_too_large": 4});
    assert_eq!(at(&summary, "requests.errors"), &errors);
}

#[test]
fn the_length_check_obeys_the_time_limit_of_requests() {
    // The first small request is answered, those of the length check never.
    let server = Server::start(|request: &ArrivedRequest| match request.number {
        0 => counted(7),
        _ if request.line.starts_with("GET") || request.line.contains("tokenize") => {
            vec![answer("404 Not Found", "text/plain", "no")]
        }
        _ => vec![Step::Pause(Duration::from_mins(1))],
    });
    let session = Session::new();
    let begin = goodput_clock::now();
    let args = ["run", &server.url(), "--model", "m", "--rate", "10", "--num-requests", "1"];
    let limits = ["--timeout", "300ms", "--out", "out", "--screen", "off"];
    let outcome = session.run(&[&args[..], &limits].concat());
    // A question took up to a minute, and two go unanswered.
    assert!((goodput_clock::now() - begin).as_secs() < 30.0, "{}", outcome.stderr);
    let line = "prompt lengths are approximate";
    assert!(outcome.stderr.contains(line), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("no answer within 0.3 s"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("calibrating prompt lengths"), "{}", outcome.stderr);
}

#[test]
fn a_length_check_that_takes_long_is_announced() {
    let server = Server::start(|request: &ArrivedRequest| match request.number {
        0 => counted(7),
        _ if request.line.contains("completions") => {
            vec![Step::Pause(ms(5_500)), answer("500 Internal Server Error", "text/plain", "no")]
        }
        _ => vec![answer("404 Not Found", "text/plain", "no")],
    });
    let args = ["run", &server.url(), "--model", "m", "--rate", "10", "--num-requests", "1"];
    let outcome = Session::new().run(&[&args[..], &["--timeout", "20s", "--out", "out"]].concat());
    let line = "calibrating prompt lengths with the server, for up to 60 s";
    assert_eq!(outcome.stderr.matches(line).count(), 1, "{}", outcome.stderr);
}

#[test]
fn a_usage_that_cannot_be_right_is_left_aside() {
    let server = Server::start(|request: &ArrivedRequest| {
        if request.line.contains("completions") {
            counted(u32::MAX)
        } else {
            vec![answer("404 Not Found", "text/plain", "no")]
        }
    });
    let args = ["run", &server.url(), "--model", "m", "--rate", "10", "--num-requests", "3"];
    let outcome = Session::new().run(&[&args[..], &["--out", "out"]].concat());
    outcome.assert_finished("usage");
    let line = "the server reports 4294967295 tokens for a prompt of 64, which is impossible";
    assert!(outcome.stderr.contains(line), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("requests"), "{}", outcome.stdout);
}

#[test]
fn a_model_whose_name_is_a_text_is_refused() {
    let run = |length: usize| {
        let list = format!(r#"{{"data":[{{"id":"{}"}}]}}"#, "m".repeat(length));
        let server = Server::start(move |request: &ArrivedRequest| {
            if request.line.contains("/models") {
                vec![answer("200 OK", "application/json", &list)]
            } else {
                good()
            }
        });
        let args = ["run", &server.url(), "--rate", "10", "--num-requests", "1", "--out", "out"];
        Session::new().run(&[&args[..], &["--no-length-check"]].concat())
    };
    run(256).assert_finished("256");
    let refused = run(1 << 20);
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("whose name has 1048576 characters"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--model"), "{}", refused.stderr);
    assert!(refused.stderr.len() < 1_000);
}
