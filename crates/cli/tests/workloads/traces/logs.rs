//! Logs that people have already, replayed from the command line.

use std::collections::BTreeMap;
use std::fs;

use goodput_model::{Nanos, RequestRecord};
use serde_json::{Value, json};

use super::{due, lengths, lines, millis, notes, replayed, with_files};
use crate::support::Session;
use crate::support::mock::records;

/// Instants counted from the first.
fn from_first(records: &[RequestRecord]) -> Vec<Nanos> {
    let first = records[0].scheduled;
    due(records).into_iter().map(|at| at - first).collect()
}

/// For each request the first request of its session.
fn roots(records: &[RequestRecord]) -> Vec<usize> {
    let mut first: BTreeMap<Option<u64>, usize> = BTreeMap::new();
    let root =
        |(n, record): (usize, &RequestRecord)| *first.entry(record.planned.session).or_insert(n);
    records.iter().enumerate().map(root).collect()
}

#[test]
fn the_spans_of_a_run_give_back_its_arrivals() {
    let session = Session::new();
    let args = [
        "--rate",
        "200",
        "--num-requests",
        "40",
        "--isl",
        "uniform:20:60",
        "--osl",
        "uniform:2:6",
        "--turns",
        "2",
        "--turn-pause",
        "3ms",
        "--traces",
        "spans.jsonl",
        "--trace-share",
        "100%",
    ];
    let (mut recorded, _) = replayed(&session, "mock:fast", &args);
    recorded.sort_by_key(|record| record.scheduled);
    let spans = fs::read_to_string(session.path("spans.jsonl")).unwrap();
    let again = with_files(&[("spans.jsonl", &spans)]);
    let (replay, summary) = replayed(&again, "mock:fast", &["--trace", "spans.jsonl"]);
    assert_eq!(due(&replay), from_first(&recorded));
    assert_eq!(lengths(&replay), lengths(&recorded));
    assert_eq!(roots(&replay), roots(&recorded));
    assert_eq!(notes(&summary).iter().filter(|note| note.contains("left out")).count(), 0);
    let to = ["workload", "convert", "spans.jsonl", "--from", "otel", "--to", "goodput"];
    let outcome = again.run(&[&to[..], &["--output", "t.jsonl"]].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let third = with_files(&[("t.jsonl", &fs::read_to_string(again.path("t.jsonl")).unwrap())]);
    let (replay, _) = replayed(&third, "mock:fast", &["--trace", "t.jsonl"]);
    assert_eq!(due(&replay), from_first(&recorded));
}

const FORMAT: &str =
    "$remote_addr $msec $request_time \"$request\" $status $request_length $body_bytes_sent";

fn access_log() -> String {
    let line = |end: &str, took: &str, asked: u32, sent: u32| {
        format!(
            "192.0.2.7 {end} {took} \"POST /v1/chat/completions?u=ann HTTP/1.1\" 200 {asked} {sent}\n"
        )
    };
    // They end in another order than they came.
    line("1794820145.100", "0.020", 160, 400)
        + &line("1794820145.150", "0.150", 80, 200)
        + "192.0.2.7 1794820145.160 0.001 \"GET /health HTTP/1.1\" 200 80 2\n"
        + &line("1794820145.200", "0.010", 400, 600)
}

#[test]
fn an_access_log_is_replayed_and_the_plan_repeats_it() {
    let session = with_files(&[("access.log", &access_log())]);
    let args = [
        "--trace",
        "access.log",
        "--trace-format",
        "nginx",
        "--log-format",
        FORMAT,
        "--bytes-per-token",
        "4",
        "--answer-bytes-per-token",
        "200",
    ];
    let (replay, summary) = replayed(&session, "mock:fast", &args);
    let expected = (millis(&[0.0, 80.0, 190.0]), vec![(20, 1), (40, 2), (100, 3)]);
    assert_eq!((due(&replay), lengths(&replay)), expected);
    let said = notes(&summary);
    assert!(
        said.iter().any(|note| note.contains("estimated from the bytes of answers")),
        "{said:?}"
    );
    let outcome = session.run(&["run", "--plan", "out/plan.toml", "--out", "again", "--quiet"]);
    outcome.assert_finished("the plan again");
    let mut again = records(&session.path("again/requests.log"));
    again.sort_by_key(|record| record.index);
    assert_eq!((due(&again), lengths(&again)), expected);
    fs::remove_file(session.path("access.log")).unwrap();
    let written = String::from_utf8_lossy(&session.everything_written()).into_owned();
    assert!(!written.contains("192.0.2.7") && !written.contains("u=ann"));
}

#[test]
fn an_access_log_is_shown_and_converted() {
    let session = with_files(&[("access.log", &access_log())]);
    let of_log = ["--log-format", FORMAT, "--answer-bytes-per-token", "200"];
    let show = ["workload", "show", "access.log", "--json", "--trace-format", "nginx"];
    let outcome = session.run(&[&show[..], &of_log].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let shown: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(
        (&shown["requests"], &shown["classes"]),
        (&json!(3), &json!([["chat/completions", 3]]))
    );
    let convert = ["workload", "convert", "access.log", "--from", "nginx", "--to", "azure"];
    let outcome = session.run(&[&convert[..], &of_log, &["--output", "a.csv"]].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("a.csv: 3 of 4 nginx entries"), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("left out: 1 (not a request for tokens)"),
        "{}",
        outcome.stderr
    );
    let table = "TIMESTAMP,ContextTokens,GeneratedTokens\n0,20,1\n0.08,40,2\n0.19,100,3\n";
    assert_eq!(fs::read_to_string(session.path("a.csv")).unwrap(), table);
    // What the log does not say must be said.
    let outcome =
        session.run(&["run", "mock:fast", "--trace", "access.log", "--trace-format", "nginx"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("how long prompts are"), "{}", outcome.stderr);
    let outcome = session.run(&["run", "mock:fast", "--log-format", FORMAT]);
    assert!(
        outcome.stderr.contains("a flag for traces is given without a trace"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn sessions_of_a_proxys_log_are_replayed_turn_by_turn() {
    let row = |at: f64, end: f64, tokens: (u32, u32), talk: &str| {
        json!({"startTime": at, "endTime": end, "call_type": "acompletion", "model": "m", "status": "success",
            "prompt_tokens": tokens.0, "completion_tokens": tokens.1, "session_id": talk, "end_user": "ann"})
    };
    let log = lines(&[
        row(1000.0, 1000.02, (40, 3), "talk-of-ann"),
        row(1000.01, 1000.02, (50, 2), "talk-of-bob"),
        row(1000.06, 1000.08, (80, 3), "talk-of-ann"),
    ]);
    let session = with_files(&[("l.jsonl", &log)]);
    let args = ["--trace", "l.jsonl", "--replay", "think-times"];
    let (replay, _) = replayed(&session, "mock:fast", &args);
    assert_eq!(replay.len(), 3);
    let turns: Vec<u32> = replay.iter().map(|record| record.planned.turn).collect();
    assert_eq!(turns.iter().filter(|turn| **turn == 1).count(), 1, "{turns:?}");
    fs::remove_file(session.path("l.jsonl")).unwrap();
    assert!(!String::from_utf8_lossy(&session.everything_written()).contains("talk-of"));
}
