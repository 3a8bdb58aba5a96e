//! What servers state about themselves next to the API, and servers that do not.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::sync::Arc;
use std::time::Duration;

use goodput_testkit::{ArrivedRequest, Server, Step, answer};
use goodput_wire::{Endpoint, EndpointSettings, FactsPage, fetch_facts_pages};
use serde_json::json;

fn pages(url: &str) -> Vec<FactsPage> {
    let settings = EndpointSettings {
        api_key: Some("sk-verysecret".to_owned()),
        ..EndpointSettings::new(url.parse().unwrap())
    };
    let endpoint = Arc::new(Endpoint::new(&settings).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, fetch_facts_pages(&endpoint))
}

fn path(request: &ArrivedRequest) -> &str {
    request.line.split(' ').nth(1).unwrap()
}

#[test]
fn what_answers_in_time_is_read_and_nothing_else() {
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(1 << 20));
    let server = Server::start(move |request| {
        let (status, body) = match path(request) {
            "/llm/version?k=1" => ("200 OK", r#"{"version":"1.2","said":["sk-verysecret!"]}"#),
            "/llm/get_server_info?k=1" => ("200 OK", r#"{"tp_size":8}"#),
            "/llm/get_model_info?k=1" => return vec![Step::Pause(Duration::from_mins(1))],
            "/llm/info?k=1" => ("200 OK", large.as_str()),
            "/llm/props?k=1" => ("200 OK", "<html>"),
            "/llm/v1/models?k=1" => ("200 OK", r#"{"data":[]}"#),
            _ => ("404 Not Found", r#"{"a":1}"#),
        };
        vec![answer(status, "application/json", body)]
    });
    let found = pages(&format!("{}/llm/v1?k=1", server.url()));
    let expected = [
        ("version", json!({"version": "1.2", "said": ["[redacted]!"]})),
        ("server_info", json!({"tp_size": 8})),
        ("models", json!({"data": []})),
    ];
    assert_eq!(found, expected.map(|(name, body)| FactsPage { name, body }));
    let mut asked: Vec<_> = server.requests().iter().map(|r| path(r).to_owned()).collect();
    asked.sort_unstable();
    assert_eq!(
        asked,
        [
            "/llm/get_model_info?k=1",
            "/llm/get_server_info?k=1",
            "/llm/info?k=1",
            "/llm/props?k=1",
            "/llm/server_info?k=1&config_format=json",
            "/llm/v1/models?k=1",
            "/llm/version?k=1",
        ]
    );
    // No server there.
    assert_eq!(pages("http://127.0.0.1:1"), []);
}
