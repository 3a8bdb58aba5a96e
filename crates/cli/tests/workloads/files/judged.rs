//! What is found out about answers after the run.

use goodput_testkit::{LAST_CHUNK, STREAM_HEAD, Server, Step, chunk, token_event};
use serde_json::{Value, json};

use super::{ALONE, bodies, saying, with_file};
use crate::support::{Session, at, number};

/// Runs against a server that answers with these texts in turn.
fn judged(session: &Session, texts: &'static [&'static str], args: &[&str]) -> (Server, Value) {
    let server = saying(move |request| texts[request.number % texts.len()].to_owned());
    let (outcome, summary) = session.measure(&server.url(), &[&ALONE[..], args].concat());
    outcome.assert_finished(&format!("{args:?}"));
    (server, summary)
}

fn has_caveat(summary: &Value, code: &str) -> bool {
    summary["caveats"].as_array().unwrap().iter().any(|caveat| caveat["code"] == code)
}

#[test]
fn answers_are_counted_by_one_tokenizer_after_the_run() {
    let texts = &["hello world", "hello world, hello"];
    let session = with_file("p.txt", "one\n");
    let args = ["--dataset", "p.txt", "--num-requests", "6", "--count-with", "cl100k_base"];
    let (_, summary) = judged(&session, texts, &args);
    // By cl100k two tokens and four; by the server's usage three each time.
    let recount = &summary["recount"];
    assert_eq!(recount["tokenizer"], "cl100k_base");
    assert_eq!((&recount["n"], &recount["output_tokens"]), (&json!(6), &json!(3 * 2 + 3 * 4)));
    assert_eq!(recount["characters"], 3 * (11 + 18));
    assert_eq!(recount["ratio_to_server"], 1.0);
    assert_eq!(
        (&summary["tokens"]["output"], at(&summary, "tokens.output_source")),
        (&json!(18), &json!("usage"))
    );
    let written = session.everything_written();
    assert!(!String::from_utf8_lossy(&written).contains("hello world"), "an answer is left");
    // A report made later says the same.
    let again = session.run(&["report", "out", "--json"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap()["recount"], *recount);
}

#[test]
fn without_usage_our_tokenizer_counts_the_answers() {
    let session = with_file("p.txt", "one\n");
    let args = ["--dataset", "p.txt", "--num-requests", "4", "--no-usage"];
    let server = Server::start(|_| {
        let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
        let events = token_event("hello world, hello") + end + "data: [DONE]\n\n";
        vec![Step::write(format!("{STREAM_HEAD}{}{LAST_CHUNK}", chunk(&events)))]
    });
    let with = [&ALONE[..], &args, &["--tokenizer", "cl100k_base"]].concat();
    let (_, summary) = session.measure(&server.url(), &with);
    assert_eq!(
        (&summary["tokens"]["output_source"], &summary["tokens"]["output"]),
        (&json!("tokenizer"), &json!(16))
    );
    // Without a tokenizer there is one event each, and the result says what that is worth.
    let session = with_file("p.txt", "one\n");
    let (_, summary) = session.measure(&server.url(), &[&ALONE[..], &args].concat());
    assert_eq!(
        (&summary["tokens"]["output_source"], &summary["tokens"]["output"]),
        (&json!("chunks"), &json!(4))
    );
}

const TICKET: &str = r#"{"title":"t","category":"bug","priority":1,"tags":[],"customer":{"name":"n","is_member":true}}"#;

/// A kind, a constraint of one's own, answers, and the share of them that keep it.
type Case<'a> = (&'a str, Option<&'a str>, &'static [&'static str], Option<f64>);

#[test]
fn answers_are_checked_against_their_constraint() {
    let own = r#"{"type":"object","required":["x"],"properties":{"x":{"type":"integer"}}}"#;
    let cases: [Case<'_>; 8] = [
        ("json", None, &[TICKET, "{\"title\":\"t\"}"], Some(0.5)),
        ("json", Some(own), &["{\"x\":1}", "{\"x\":\"1\"}"], Some(0.5)),
        ("regex", None, &["2026-11-15T10:00:00Z", "2026-13-15T10:00:00Z"], Some(0.5)),
        ("regex", Some("[a-c]+"), &["abc", "abcd"], Some(0.5)),
        ("choice", None, &["neutral", " neutral"], Some(0.5)),
        ("choice", Some("yes\nno\n"), &["no", "No"], Some(0.5)),
        ("choice", Some("yes\nno\n"), &["yes"], Some(1.0)),
        ("grammar", None, &["1 + 2", "nonsense"], None),
    ];
    for (kind, text, answers, expected) in cases {
        let session = with_file("own", text.unwrap_or_default());
        let file = ["--structured-file", "own"];
        let own: &[&str] = if text.is_some() { &file } else { &[] };
        let args = ["--input-tokens", "20", "--num-requests", "4", "--structured", kind];
        let (_, summary) = judged(&session, answers, &[&args, own].concat());
        let found = &summary["structured"][kind];
        assert_eq!((&found["asked"], &found["answered"]), (&json!(4), &json!(4)), "{kind}");
        assert_eq!(found["checked"], if expected.is_some() { 4 } else { 0 }, "{kind} {text:?}");
        assert_eq!(found["valid_share"].as_f64(), expected, "{kind} {text:?}");
        assert_eq!(has_caveat(&summary, "structured_invalid"), expected == Some(0.5), "{kind}");
        assert_eq!(summary["breakdown"]["constraint"][kind]["ok"], 4);
        let written = session.everything_written();
        let written = String::from_utf8_lossy(&written);
        assert!(!written.contains("is_member\":true") && !written.contains("abcd"), "{kind}");
    }
}

#[test]
fn a_share_of_the_requests_is_constrained_and_only_those_are_checked() {
    let session = Session::new();
    let args = ["--input-tokens", "20", "--num-requests", "40", "--structured", "choice:50%"];
    let (server, summary) = judged(&session, &["neutral"], &args);
    let bodies = bodies(&server);
    let asked = bodies.iter().filter(|body| body.get("structured_outputs").is_some()).count();
    // The share is drawn for each request: five standard errors.
    assert!((4..=36).contains(&asked), "{asked}");
    assert_eq!(number(&summary, "structured.choice.asked"), asked as f64);
    assert_eq!(number(&summary, "structured.choice.valid"), asked as f64);
    assert_eq!(number(&summary, "breakdown.constraint.none.ok"), (40 - asked) as f64);
    // Answers under a constraint end by themselves.
    for body in bodies {
        let is_free = body.get("structured_outputs").is_none();
        assert_eq!(body.get("ignore_eos").is_some(), is_free, "{body}");
    }
}

#[test]
fn constraints_are_written_as_openai_and_vllm_have_them() {
    let schema = r#"{"type":"object"}"#;
    let cases = [
        (
            ["json", schema],
            "response_format",
            json!({"type": "json_schema",
                "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": true}}),
        ),
        (["regex", "[0-9]+"], "structured_outputs", json!({"regex": "[0-9]+"})),
        (["choice", "yes\nno"], "structured_outputs", json!({"choice": ["yes", "no"]})),
        (["grammar", "root ::= x"], "structured_outputs", json!({"grammar": "root ::= x"})),
    ];
    for ([kind, text], field, expected) in cases {
        let session = with_file("own", text);
        let args = ["--input-tokens", "20", "--max-tokens", "9", "--num-requests", "1"];
        let own = ["--structured", kind, "--structured-file", "own"];
        let (server, _) = judged(&session, &["x"], &[&args[..], &own].concat());
        let body = bodies(&server).remove(0);
        assert_eq!(body[field], expected, "{kind}");
        assert_eq!(body["max_tokens"], 9, "{kind}");
        assert!(body.get("min_tokens").is_none() && body.get("ignore_eos").is_none(), "{body}");
    }
}

#[test]
fn constraints_that_are_none_are_refused_before_the_run() {
    let cases = [
        ("json", "{", "json"),
        ("json", "{\"type\": 5}", "json"),
        ("regex", "(", "regex"),
        ("choice", "a\na\n", "choice"),
        ("choice", " \n", "choice"),
        ("yaml", "x", "json, regex, choice, or grammar"),
        ("json:200%", "{}", "json:50%"),
    ];
    for (kind, text, word) in cases {
        let session = with_file("own", text);
        let args =
            ["run", "mock:fast", "--concurrency", "1", "--num-requests", "1", "--structured"];
        let outcome = session.run(&[&args[..], &[kind, "--structured-file", "own"]].concat());
        assert_eq!(outcome.code, Some(2), "{kind} {text}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(word), "{kind} {text}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("hint: "), "{kind} {text}: {}", outcome.stderr);
        assert!(!session.path("runs").exists(), "{kind} {text}");
    }
}
