//! Traces that were recorded: how they are shown, and what is sent again.

use goodput_testkit::{Server, timed_stream};
use serde_json::{Value, json};

use super::{lines, with_files};
use crate::support::{ms, number};

/// A conversation of two requests and one that was refused, recorded with its text.
fn talk() -> String {
    let opened = json!([{"role": "user", "content": "QUESTION ONE"}]);
    let went_on = json!([
        {"role": "user", "content": "QUESTION ONE"},
        {"role": "assistant", "content": "ANSWER ONE"},
        {"role": "user", "content": "QUESTION TWO"}
    ]);
    let row = |at: f64, messages: &Value, ttft: f64, status: u16| {
        json!({
            "at": at, "session": "1", "endpoint": "chat", "model": "big", "input_tokens": 40,
            "output_tokens": 2, "blocks": [7, 8, 9], "ttft": ttft, "took": 0.1, "status": status,
            "finish": "stop", "cached_tokens": 16,
            "body": {"model": "big", "temperature": 0.5, "messages": messages}
        })
    };
    lines(&[
        json!({"schema": "goodput.trace/2", "block_tokens": 16, "text": true}),
        row(0.2, &went_on, 0.03, 200),
        row(0.0, &opened, 0.01, 200),
        row(0.1, &opened, 0.01, 400),
    ])
}

#[test]
fn show_tells_how_a_trace_was_served() {
    let session = with_files(&[("t.jsonl", &talk())]);
    let outcome = session.run(&["workload", "show", "--json", "t.jsonl"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let view: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let served = &view["served"];
    assert_eq!(served["endpoints"], json!([["chat", 2]]));
    assert_eq!(served["models"], json!([["big", 2]]));
    assert_eq!(served["statuses"], json!([["200", 2]]));
    assert_eq!(served["ends"], json!([["stop", 2]]));
    assert_eq!((number(served, "ttft_ms.min"), number(served, "ttft_ms.max")), (10.0, 30.0));
    assert_eq!(number(served, "cache_hit_rate"), 0.4);
    assert_eq!((number(&view, "arrivals_s.n"), number(&view, "span_s")), (2.0, 0.2));
    // The second begins with all blocks of the first, but its last token is computed.
    assert_eq!(number(&view, "expected_hit_rate"), 32.0 / 80.0);
    let page = session.run(&["workload", "show", "t.jsonl"]).stdout;
    for words in [
        "Models      big 2 (100.0 %)",
        "Status      200 2 (100.0 %)",
        "TTFT as served, ms: mean 20",
        "Arrivals over time, s:",
        "1 of 3 entries left out: refused with 400 when recorded (1)",
    ] {
        assert!(page.contains(words), "no {words:?} in {page}");
    }
}

#[test]
fn recorded_text_is_sent_again_and_becomes_a_data_set() {
    let session = with_files(&[("t.jsonl", &talk())]);
    let sent = |replay: &str| -> Vec<Value> {
        let server = Server::start(|_| timed_stream(ms(0), ms(0), 2));
        let args = ["--model", "m", "--no-probe", "--canary", "off", "--trace", "t.jsonl"];
        let args = [&args[..], &["--replay", replay]].concat();
        let (outcome, _) = session.measure(&server.url(), &args);
        outcome.assert_finished("");
        std::fs::remove_dir_all(session.path("out")).unwrap();
        let bodies = server.requests().into_iter().map(|request| request.body);
        bodies.map(|body| serde_json::from_str(&body).unwrap()).collect()
    };
    let said = |body: &Value| -> Vec<String> {
        let messages = body["messages"].as_array().unwrap().iter();
        messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    };
    let [one, two] = sent("timestamps").try_into().unwrap();
    assert_eq!(said(&one), ["QUESTION ONE"]);
    assert_eq!(said(&two), ["QUESTION ONE", "ANSWER ONE", "QUESTION TWO"]);
    assert_eq!((&two["model"], &two["temperature"]), (&json!("m"), &json!(0.5)));
    assert_eq!(two["max_tokens"], 2);
    let [_, two] = sent("think-times").try_into().unwrap();
    let [first, answer, last] = said(&two).try_into().unwrap();
    assert_eq!((first.as_str(), last.as_str()), ("QUESTION ONE", "QUESTION TWO"));
    assert_ne!(answer, "ANSWER ONE");
    let args = ["workload", "convert", "t.jsonl", "--to", "messages", "--output", "d.jsonl"];
    let outcome = session.run(&args);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let text = std::fs::read_to_string(session.path("d.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(said(&lines[1]), ["QUESTION ONE", "ANSWER ONE", "QUESTION TWO"]);
}
