//! Tokenizers and datasets of a hub: from its cache, or fetched once.

use std::fs;

use goodput_testkit::{ArrivedRequest, Server, Step, answer};
use serde_json::{Value, json};

use super::with_file;
use crate::support::{Outcome, Session, outcome};

/// A tokenizer by white space: `a-b c-d` is two tokens.
fn tokenizer() -> String {
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null, "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a-b": 1}, "unk_token": "[UNK]"},
    })
    .to_string()
}

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// `goodput workload show` with the hub where the test says it is.
fn shown(session: &Session, args: &[&str], vars: &[(&str, &str)]) -> (Outcome, Value) {
    let all = [&["workload", "show", "--json", "--num-requests", "1"], args].concat();
    let mut command = session.command(&all);
    for name in ["HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN", "HF_HUB_OFFLINE"] {
        command.env_remove(name);
    }
    command.env("HF_HOME", session.path("hf")).envs(vars.iter().copied());
    let outcome = outcome(command.output().unwrap());
    let view = serde_json::from_str(&outcome.stdout).unwrap_or(Value::Null);
    (outcome, view)
}

/// A port at which nothing listens.
fn closed() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn a_tokenizer_is_found_in_the_cache_of_the_hub() {
    let main = format!("hf/hub/models--org--name/snapshots/{COMMIT}/tokenizer.json");
    let session = with_file(&main, tokenizer());
    // An older snapshot whose tokenizer is broken is not the one that `main` names.
    let other = session.path("hf/hub/models--org--name/snapshots/ffff");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("tokenizer.json"), "{").unwrap();
    fs::create_dir_all(session.path("hf/hub/models--org--name/refs")).unwrap();
    fs::write(session.path("hf/hub/models--org--name/refs/main"), COMMIT).unwrap();
    fs::write(session.path("p.txt"), "a-b c-d e-f\n").unwrap();
    let silent = closed();
    let vars = [("HF_ENDPOINT", silent.as_str())];
    let (outcome, view) = shown(&session, &["p.txt", "--tokenizer", "org/name"], &vars);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(view["previews"][0]["input_tokens"], 3);
    // What is not there cannot be fetched: the message says where it was looked for.
    let (outcome, _) = shown(&session, &["p.txt", "--tokenizer", "org/other"], &vars);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    let cache = session.path("hf/hub").display().to_string();
    let words =
        ["`org/other` is not in the hub's cache", &cache, &silent, "hint: ", "tokenizer.json"];
    assert!(words.iter().all(|word| outcome.stderr.contains(word)), "{}", outcome.stderr);
    // No request is made if the environment forbids it.
    let hub = Server::start(|_| vec![answer("500 Oops", "text/plain", "asked")]);
    let url = hub.url();
    let vars = [("HF_ENDPOINT", url.as_str()), ("HF_HUB_OFFLINE", "1")];
    let (outcome, _) = shown(&session, &["p.txt", "--tokenizer", "org/other"], &vars);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("HF_HUB_OFFLINE"), "{}", outcome.stderr);
    assert!(hub.requests().is_empty());
}

/// A hub that lists these files and redirects to another server for each of them.
fn hub(files: &'static [(&'static str, &'static str)]) -> (Server, Server) {
    let store = Server::start(move |request: &ArrivedRequest| {
        let content = files.iter().find(|(name, _)| request.line.contains(name));
        vec![match content {
            Some((_, content)) => answer("200 OK", "application/octet-stream", content),
            None => answer("404 Not Found", "text/plain", "no such file"),
        }]
    });
    let elsewhere = store.url();
    let hub = Server::start(move |request: &ArrivedRequest| {
        let path = request.line.split(' ').nth(1).unwrap();
        if path.starts_with("/api/") {
            let names = files.iter().map(|(name, _)| json!({"rfilename": name}));
            let list = json!({"sha": COMMIT, "siblings": names.collect::<Vec<_>>()});
            return vec![answer("200 OK", "application/json", &list.to_string())];
        }
        let head = "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: ";
        vec![Step::write(format!("{head}{elsewhere}{path}?sig=secret77\r\n\r\n"))]
    });
    (hub, store)
}

fn paths(server: &Server) -> Vec<String> {
    let path = |request: ArrivedRequest| request.line.split(' ').nth(1).unwrap().to_owned();
    server.requests().into_iter().map(path).collect()
}

#[test]
fn a_data_set_of_the_hub_is_fetched_once_and_the_token_stays_with_the_hub() {
    let (hub, store) = hub(&[("README.md", "# x"), ("data.jsonl", "{\"prompt\":\"from afar\"}\n")]);
    let session = Session::new();
    let url = hub.url();
    let vars = [("HF_ENDPOINT", url.as_str()), ("HF_TOKEN", "hf_secret_token")];
    for _ in 0..2 {
        let (outcome, view) = shown(&session, &["--dataset", "hf:org/data"], &vars);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let body = view["previews"][0]["body"].as_str().unwrap();
        assert!(body.contains("from afar"), "{body}");
        assert!(!outcome.stderr.contains("secret"), "{}", outcome.stderr);
    }
    let file = "/datasets/org/data/resolve/main/data.jsonl";
    assert_eq!(paths(&hub), ["/api/datasets/org/data", file]);
    assert_eq!(paths(&store), [format!("{file}?sig=secret77")]);
    let token = |request: &ArrivedRequest| request.header("authorization").map(str::to_owned);
    let given = Some("Bearer hf_secret_token".to_owned());
    assert!(hub.requests().iter().all(|request| token(request) == given));
    assert_eq!(token(&store.requests()[0]), None);
    let written = session.everything_written();
    let written = String::from_utf8_lossy(&written);
    assert!(written.contains("from afar"));
    assert!(!written.contains("hf_secret_token") && !written.contains("secret77"));
    let main = session.path("hf/hub/datasets--org--data/refs/main");
    assert_eq!(fs::read_to_string(main).unwrap(), COMMIT);
}

#[test]
fn of_several_files_of_the_hub_one_must_be_named() {
    let files = &[
        ("train.jsonl", "{\"prompt\":\"train\"}\n"),
        ("test.jsonl", "{\"prompt\":\"test\"}\n"),
        ("card.md", "x"),
    ];
    let (hub, _store) = hub(files);
    let (session, url) = (Session::new(), hub.url());
    let vars = [("HF_ENDPOINT", url.as_str())];
    let (outcome, _) = shown(&session, &["--dataset", "hf:org/data"], &vars);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    let words = ["`org/data` has 2 files", "hf:org/data:FILE", "train.jsonl", "test.jsonl"];
    assert!(words.iter().all(|word| outcome.stderr.contains(word)), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("card.md"), "{}", outcome.stderr);
    let (outcome, view) = shown(&session, &["--dataset", "hf:org/data:test.jsonl"], &vars);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(view["previews"][0]["body"].as_str().unwrap().contains("\"test\""));
    for (name, word) in [("hf:org/data:none.jsonl", "none.jsonl"), ("hf:a/b/c", "hf:ORG/NAME")] {
        let (outcome, _) = shown(&session, &["--dataset", name], &vars);
        assert_eq!(outcome.code, Some(2), "{name}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(word), "{name}: {}", outcome.stderr);
    }
}

#[test]
fn a_tokenizer_is_fetched_from_the_hub() {
    let text: &'static str = Box::leak(tokenizer().into_boxed_str());
    let (hub, _store) = hub(Box::leak(Box::new([("tokenizer.json", text)])));
    let session = with_file("p.txt", "a-b c-d\n");
    let url = hub.url();
    for endpoint in [url, closed()] {
        let vars = [("HF_ENDPOINT", endpoint.as_str())];
        let (outcome, view) = shown(&session, &["p.txt", "--tokenizer", "org/name"], &vars);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert_eq!(view["previews"][0]["input_tokens"], 2);
    }
    assert_eq!(paths(&hub), ["/api/models/org/name", "/org/name/resolve/main/tokenizer.json"]);
}

#[test]
fn a_download_that_breaks_off_leaves_nothing_behind() {
    let line = "{\"prompt\":\"whole\"}\n";
    let hub = Server::start(move |request: &ArrivedRequest| {
        if request.line.contains("/api/") {
            let list = json!({"sha": COMMIT, "siblings": [{"rfilename": "d.jsonl"}]}).to_string();
            return vec![answer("200 OK", "application/json", &list)];
        }
        // The first time the connection ends before the file does.
        let missing = if request.number < 2 { 9 } else { 0 };
        let length = line.len() + missing;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
        vec![Step::write(head + line), Step::Close]
    });
    let (session, url) = (Session::new(), hub.url());
    let vars = [("HF_ENDPOINT", url.as_str())];
    let (outcome, _) = shown(&session, &["--dataset", "hf:org/data"], &vars);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("cannot download `d.jsonl` of `org/data`"),
        "{}",
        outcome.stderr
    );
    assert!(!String::from_utf8_lossy(&session.everything_written()).contains("whole"));
    let (outcome, view) = shown(&session, &["--dataset", "hf:org/data"], &vars);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(view["previews"][0]["body"].as_str().unwrap().contains("whole"));
}
