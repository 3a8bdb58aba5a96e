//! What once went wrong.

use std::fs;

use goodput_testkit::{ArrivedRequest, Server, Step, answer};
use serde_json::{Value, json};

use super::{ALONE, bodies, lines, notes, played, saying, sharegpt, with_file};
use crate::support::mock::records;
use crate::support::{Session, at, number, outcome};

#[test]
fn constraints_are_written_in_the_dialect_that_was_asked_for() {
    let cases = [
        ("structured-outputs", "json", "{}", "structured_outputs", json!({"json": {}})),
        ("guided", "json", "{}", "guided_json", json!({})),
        ("guided", "regex", "[0-9]+", "guided_regex", json!("[0-9]+")),
        ("guided", "choice", "yes\nno", "guided_choice", json!(["yes", "no"])),
        ("guided", "grammar", "root ::= x", "guided_grammar", json!("root ::= x")),
        ("sglang", "regex", "[0-9]+", "regex", json!("[0-9]+")),
        ("sglang", "choice", "yes\nn.o", "regex", json!("(yes|n\\.o)")),
        ("sglang", "grammar", "root ::= x", "ebnf", json!("root ::= x")),
        ("llamacpp", "json", "{}", "json_schema", json!({})),
        ("llamacpp", "choice", "yes\nno", "grammar", json!("root ::= \"yes\" | \"no\"")),
        ("llamacpp", "grammar", "root ::= x", "grammar", json!("root ::= x")),
    ];
    for (dialect, kind, text, field, expected) in cases {
        let session = with_file("own", text);
        let server = saying(|_| "x".to_owned());
        let own =
            ["--structured", kind, "--structured-file", "own", "--structured-dialect", dialect];
        let args = ["--input-tokens", "20", "--num-requests", "1"];
        session.measure(&server.url(), &[&ALONE[..], &args, &own].concat());
        assert_eq!(bodies(&server)[0][field], expected, "{dialect} {kind}");
    }
}

#[test]
fn a_constraint_that_the_dialect_cannot_write_is_refused() {
    let args = ["run", "mock:fast", "--concurrency", "1", "--num-requests", "1", "--structured"];
    let args = [&args[..], &["regex", "--structured-dialect", "llamacpp"]].concat();
    let outcome = Session::new().run(&args);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
}

#[test]
fn a_limit_of_the_user_wins_over_the_answers_of_the_file() {
    let session = with_file("t.json", sharegpt(3, 1));
    let args = ["--max-tokens", "17", "--num-requests", "3"];
    let (_, summary) = played(&session, "t.json", &args);
    assert_eq!(number(&summary, "lengths.output.planned_mean"), 17.0);
}

#[test]
fn turns_are_not_drawn_for_a_data_set() {
    let session = with_file("t.json", sharegpt(20, 6));
    let args = ["run", "mock:fast", "--rate", "1", "--dataset", "t.json", "--turns", "uniform:1:2"];
    let outcome = session.run(&args);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("their own turns"), "{}", outcome.stderr);
}

#[test]
fn a_run_by_time_does_not_say_how_often_it_repeats() {
    let session = with_file("p.txt", "one\n");
    let (_, summary) = played(&session, "p.txt", &["--duration", "300ms"]);
    let sent = number(&summary, "requests.scheduled") + number(&summary, "requests.cooldown");
    let said = notes(&summary).iter().any(|note| note.contains("10,000 requests"));
    assert!(!said || sent == 10_000.0, "{sent} sent: {:?}", notes(&summary));
}

#[test]
fn images_in_messages_are_counted() {
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    let line =
        json!({"messages": [{"role": "user", "content": [url, {"type": "text", "text": "?"}]}]});
    let session = with_file("m.jsonl", lines(&[line]));
    played(&session, "m.jsonl", &["--num-requests", "1"]);
    assert_eq!(records(&session.path("out/requests.log"))[0].planned.images, 1);
}

#[test]
fn images_are_no_wrong_prompt_length() {
    let args = ["--input-tokens", "20", "--max-tokens", "2", "--images", "1:8x8:png"];
    let args = [&args[..], &["--concurrency", "1", "--num-requests", "2"]].concat();
    let (_, summary) = Session::new().measure("mock:fast", &args);
    let codes = summary["caveats"].as_array().unwrap();
    assert!(codes.iter().all(|caveat| caveat["code"] != "input_length"), "{codes:?}");
}

#[test]
fn a_recount_names_its_tokenizer() {
    let session = with_file("p.txt", "one\n");
    let args = ["--no-usage", "--tokenizer", "cl100k_base", "--num-requests", "1"];
    let (_, summary) = played(&session, "p.txt", &args);
    assert_eq!(at(&summary, "recount.tokenizer"), "cl100k_base");
}

fn shown(session: &Session, args: &[&str], endpoint: &str) -> (i32, String, Value) {
    let mut command = session.command(&[&["workload", "show", "--json"], args].concat());
    command.env("HF_HOME", session.path("hf")).env("HF_ENDPOINT", endpoint);
    command.env_remove("HF_HUB_CACHE").env_remove("HUGGINGFACE_HUB_CACHE");
    let outcome = outcome(command.output().unwrap());
    let view = serde_json::from_str(&outcome.stdout).unwrap_or_default();
    (outcome.code.unwrap(), outcome.stderr, view)
}

#[test]
fn which_file_of_the_cache_is_taken_is_said() {
    let hub = Server::start(|request: &ArrivedRequest| {
        let list =
            json!({"sha": "abc", "siblings": [{"rfilename": "a.txt"}, {"rfilename": "b.txt"}]});
        let is_list = request.line.contains("/api/");
        let body = if is_list { list.to_string() } else { "text\n".to_owned() };
        vec![answer("200 OK", "text/plain", &body), Step::Close]
    });
    let (session, url) = (Session::new(), hub.url());
    assert_eq!(shown(&session, &["--dataset", "hf:o/d"], &url).0, 2);
    assert_eq!(shown(&session, &["--dataset", "hf:o/d:b.txt"], &url).0, 0);
    let (code, stderr, _) = shown(&session, &["--dataset", "hf:o/d"], &url);
    assert_eq!(code, 0);
    assert!(stderr.contains("b.txt from the cache"), "{stderr}");
}

#[test]
fn cached_files_are_listed_by_the_names_that_can_be_typed() {
    let session = with_file("hf/hub/datasets--o--d/snapshots/abc/data/a.txt", "a\n");
    fs::write(session.path("hf/hub/datasets--o--d/snapshots/abc/data/b.txt"), "b\n").unwrap();
    let (code, stderr, _) = shown(&session, &["--dataset", "hf:o/d"], "http://127.0.0.1:1");
    assert_eq!(code, 2);
    assert!(stderr.contains("data/a.txt"), "{stderr}");
}

#[test]
fn show_takes_a_data_set_of_the_hub_as_its_file() {
    let session = with_file("hf/hub/datasets--o--d/snapshots/abc/a.txt", "a\n");
    let (code, stderr, _) = shown(&session, &["hf:o/d"], "http://127.0.0.1:1");
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn a_gated_tokenizer_hints_at_the_token() {
    let hub = Server::start(|_| vec![answer("401 Unauthorized", "text/plain", "gated")]);
    let session = with_file("p.txt", "a\n");
    let (_, stderr, _) = shown(&session, &["p.txt", "--tokenizer", "o/m"], &hub.url());
    assert!(stderr.contains("HF_TOKEN"), "{stderr}");
}
