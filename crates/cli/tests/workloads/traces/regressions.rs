//! What once went wrong.

use std::fs;

use goodput_testkit::{Server, timed_stream};
use serde_json::{Value, json};

use super::{ENGINE, lines, mooncake, notes, replayed, sessions, with_files};
use crate::support::{Session, ms, number};

fn made(session: &Session, args: &[&str]) {
    let outcome = session.run(&[&["workload", "make"], args].concat());
    assert_eq!(outcome.code, Some(0), "{args:?}: {}", outcome.stderr);
}

#[test]
fn make_does_not_overwrite_a_file() {
    let session = with_files(&[("f.jsonl", "precious")]);
    let args =
        ["workload", "make", "--workload", "chat", "--num-requests", "1", "--output", "f.jsonl"];
    assert_eq!(session.run(&args).code, Some(2));
    assert_eq!(fs::read_to_string(session.path("f.jsonl")).unwrap(), "precious");
}

#[test]
fn a_frozen_data_set_sends_the_bytes_of_the_data_set() {
    let talk = lines(&[json!({"prompt": "one", "output_tokens": 4})]);
    let session = with_files(&[("p.jsonl", &talk)]);
    made(&session, &["--dataset", "p.jsonl", "--num-requests", "1", "--output", "f.jsonl"]);
    let sent = |args: [&str; 2], out: &str| {
        let server = Server::start(|_| timed_stream(ms(0), ms(0), 2));
        let load = ["--model", "m", "--no-probe", "--concurrency", "1", "--num-requests", "1"];
        let url = server.url();
        let run = ["run", &url, "--quiet", "--out", out];
        session.run(&[&run[..], &load, &args].concat()).assert_finished("");
        server.requests()[0].body.clone()
    };
    assert_eq!(sent(["--workload", "f.jsonl"], "a"), sent(["--dataset", "p.jsonl"], "b"));
}

#[test]
fn flags_that_a_frozen_workload_cannot_follow_are_refused_or_not_claimed() {
    let session = Session::new();
    made(&session, &["--workload", "chat", "--num-requests", "1", "--output", "f.jsonl"]);
    let args = ["run", "mock:fast", "--concurrency", "1", "--num-requests", "1", "--workload"];
    let args = [&args[..], &["f.jsonl", "--structured", "json", "--json", "--quiet"]].concat();
    let outcome = session.run(&args);
    let summary: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
    let claims =
        summary["run"]["workload"].as_str().is_some_and(|text| text.contains("constraint"));
    assert!(outcome.code == Some(2) || !claims, "{}", summary["run"]["workload"]);
}

#[test]
fn constraints_of_a_frozen_workload_are_checked() {
    let session = Session::new();
    let what = ["--workload", "chat", "--structured", "choice", "--num-requests", "2"];
    made(&session, &[&what[..], &["--output", "f.jsonl"]].concat());
    let args = ["--workload", "f.jsonl", "--concurrency", "1", "--num-requests", "2"];
    let (_, summary) = replayed(&session, "mock:fast", &args);
    assert_eq!(summary["structured"]["choice"]["checked"], 2);
}

#[test]
fn the_pauses_of_a_frozen_trace_are_scaled_too() {
    let session = with_files(&[("own.jsonl", &sessions())]);
    made(&session, &["--trace", "own.jsonl", "--replay", "think-times", "--output", "f.jsonl"]);
    let args = ["--workload", "f.jsonl", "--time-scale", "0.5"];
    let (records, _) = replayed(&session, "mock:fast", &args);
    let pause = records[1].scheduled - records[0].exchange.stamps.ended;
    assert_eq!(pause.as_ms(), 20.0);
}

#[test]
fn a_plan_notices_another_frozen_file() {
    let session = Session::new();
    let make = |seed: &str, name: &str| {
        made(
            &session,
            &["--workload", "chat", "--num-requests", "1", "--seed", seed, "--output", name],
        );
    };
    make("1", "f.jsonl");
    replayed(
        &session,
        "mock:fast",
        &["--workload", "f.jsonl", "--concurrency", "1", "--num-requests", "1"],
    );
    make("2", "g.jsonl");
    fs::rename(session.path("g.jsonl"), session.path("f.jsonl")).unwrap();
    let outcome = session.run(&["run", "--plan", "out/plan.toml", "--out", "again"]);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
}

#[test]
fn lengths_that_a_trace_does_not_take_are_refused() {
    let session = with_files(&[("t.jsonl", &mooncake(&[(0.0, 50, 4, &[])]))]);
    for flag in ["--max-tokens", "--input-tokens", "--turns"] {
        let outcome = session.run(&["run", "mock:fast", "--trace", "t.jsonl", flag, "7"]);
        assert_eq!(outcome.code, Some(2), "{flag} is ignored");
    }
}

#[test]
fn blocks_behind_another_beginning_are_not_expected_in_the_cache() {
    let rows: [(f64, u32, u32, &[u64]); 2] =
        [(0.0, 1536, 2, &[1, 2, 3]), (1.0, 1536, 2, &[2, 1, 3])];
    let session = with_files(&[("t.jsonl", &mooncake(&rows)), ("engine.toml", ENGINE)]);
    let args = ["--trace", "t.jsonl", "--concurrency", "1", "--num-requests", "2"];
    let (_, summary) = replayed(&session, "mock:engine.toml", &args);
    assert_eq!(number(&summary, "cache.observed"), 0.0);
    assert_eq!(number(&summary, "cache.requested"), 0.0);
}

#[test]
fn a_trace_of_another_version_says_so() {
    let session = with_files(&[("t.jsonl", "{\"schema\":\"goodput.trace/9\"}\n")]);
    let outcome = session.run(&["run", "mock:fast", "--trace", "t.jsonl"]);
    assert!(outcome.stderr.contains("expected `goodput.trace/2`"), "{}", outcome.stderr);
}

#[test]
fn a_conversion_without_a_single_row_fails() {
    let session = with_files(&[("p.txt", "one\n")]);
    let args = ["workload", "convert", "p.txt", "--to", "mooncake", "--output", "none.jsonl"];
    let outcome = session.run(&args);
    assert_eq!((outcome.code, session.path("none.jsonl").exists()), (Some(2), false));
}

#[test]
fn a_trace_that_ends_before_the_requests_asked_for_says_so() {
    let session = with_files(&[("t.jsonl", &mooncake(&[(0.0, 50, 4, &[])]))]);
    let args = ["--trace", "t.jsonl", "--concurrency", "1", "--num-requests", "9"];
    let (_, summary) = replayed(&session, "mock:fast", &args);
    assert!(!notes(&summary).is_empty(), "1 of 9 requests, and not a word");
}
