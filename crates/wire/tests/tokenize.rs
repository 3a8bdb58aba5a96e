//! Counting tokens by the server's `/tokenize`: the mock's, and servers that speak otherwise.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::future::Future;
use std::sync::Arc;

use goodput_mock::MockServer;
use goodput_model::{ErrorClass, Failure};
use goodput_testkit::{ArrivedRequest, Server, Step, answer};
use goodput_wire::{Endpoint, EndpointSettings, Tokenizing, count_remote_tokens};

fn endpoint(url: &str, key: Option<&str>) -> Arc<Endpoint> {
    let settings = EndpointSettings {
        api_key: key.map(str::to_owned),
        ..EndpointSettings::new(url.parse().unwrap())
    };
    Arc::new(Endpoint::new(&settings).unwrap())
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, future)
}

/// Counts some texts one after another.
fn count(url: &str, texts: &[&str]) -> (Vec<Result<Option<u32>, Failure>>, Option<u32>) {
    run(async {
        let mut tokenizing = Tokenizing::new(&endpoint(url, None), "m");
        let mut counts = Vec::new();
        for text in texts {
            counts.push(tokenizing.count(text).await);
        }
        (counts, tokenizing.max_model_len())
    })
}

fn json(body: &str) -> Vec<Step> {
    vec![answer("200 OK", "application/json", body)]
}

fn refusal(status: &str) -> Vec<Step> {
    vec![answer(status, "application/json", r#"{"detail":"no"}"#)]
}

fn path(request: &ArrivedRequest) -> &str {
    request.line.split(' ').nth(1).unwrap()
}

#[test]
fn the_mock_counts() {
    let mock = MockServer::start("127.0.0.1:0", "".parse().unwrap(), None, None).unwrap();
    for base in ["", "/v1", "/v1/chat/completions"] {
        let endpoint = endpoint(&format!("http://{}{base}", mock.address()), None);
        run(async {
            let mut tokenizing = Tokenizing::new(&endpoint, "mock");
            assert_eq!(tokenizing.max_model_len(), None);
            // Words of up to six letters with their space, numbers of three digits, other bytes.
            let many = " and elephants, 12".repeat(100);
            assert_eq!(tokenizing.count(&many).await, Ok(Some(600)));
            assert_eq!(tokenizing.count("").await, Ok(Some(0)), "no special tokens");
            assert!(tokenizing.max_model_len().is_some());
            assert_eq!(count_remote_tokens(&endpoint, "mock", " and").await, Ok(Some(1)));
        });
    }
}

#[test]
fn one_form_and_one_connection_for_all() {
    let server =
        Server::start(|_| json(r#"{"count":3,"max_model_len":4096,"tokens":[1,2,3],"x":0}"#));
    let (counts, context) = count(&format!("{}/v1", server.url()), &["a \"b\"\n", "c", "d"]);
    assert_eq!(counts, [Ok(Some(3)), Ok(Some(3)), Ok(Some(3))]);
    assert_eq!(context, Some(4096));
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request.connection == 0));
    assert_eq!(requests[0].line, "POST /tokenize HTTP/1.1");
    let body = r#"{"add_special_tokens":false,"model":"m","prompt":"a \"b\"\n"}"#;
    assert_eq!(requests[0].body, body);
}

#[test]
fn a_server_that_takes_content() {
    // As llama.cpp does: without `content` there is nothing to count.
    let server = Server::start(|request| {
        let is_known = request.body.contains(r#""content":"#);
        json(if is_known { r#"{"tokens":[5,6]}"# } else { r#"{"tokens":[]}"# })
    });
    let (counts, context) = count(&server.url(), &["a", "b"]);
    assert_eq!((counts, context), (vec![Ok(Some(2)), Ok(Some(2))], None));
    let bodies: Vec<_> = server.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(
        bodies[1..],
        [r#"{"add_special":false,"content":"a"}"#, r#"{"add_special":false,"content":"b"}"#,]
    );
}

#[test]
fn it_may_be_anywhere() {
    for home in ["/llm/tokenize", "/llm/v1/tokenize", "/tokenize"] {
        let server = Server::start(move |request| {
            if path(request) == home { json(r#"{"count":1}"#) } else { refusal("404 Not Found") }
        });
        let (counts, _) = count(&format!("{}/llm/v1", server.url()), &["a", "b"]);
        assert_eq!(counts, [Ok(Some(1)), Ok(Some(1))], "{home}");
        assert_eq!(path(server.requests().last().unwrap()), home);
    }
}

#[test]
fn a_server_without_it_is_asked_once() {
    for status in ["404 Not Found", "405 Method Not Allowed", "501 Not Implemented"] {
        let server = Server::start(move |_| refusal(status));
        assert_eq!(count(&server.url(), &["a", "b"]).0, [Ok(None), Ok(None)], "{status}");
        assert_eq!(server.requests().len(), 2, "{status}: each place once");
    }
    for steps in [refusal("400 Bad Request"), vec![answer("200 OK", "text/html", "<html>")]] {
        let server = Server::start(move |_| steps.clone());
        assert_eq!(count(&server.url(), &["a"]).0, [Ok(None)]);
        assert_eq!(server.requests().len(), 4, "each place in each form");
    }
}

#[test]
fn what_is_wrong_with_the_server_is_said() {
    for (status, number) in [("401 Unauthorized", 401), ("500 Oops", 500), ("429 Later", 429)] {
        let server = Server::start(move |_| {
            vec![answer(status, "text/plain", "the key sk-verysecret is bad")]
        });
        let endpoint = endpoint(&server.url(), Some("sk-verysecret"));
        let failure = run(count_remote_tokens(&endpoint, "m", "a")).unwrap_err();
        assert_eq!(failure.class, ErrorClass::Http(number));
        assert_eq!(failure.message, "the key [redacted] is bad");
    }
    // Once it has been found it must not be taken for missing.
    let server = Server::start(|request| match request.number {
        0 => json(r#"{"count":1}"#),
        _ => refusal("404 Not Found"),
    });
    let (counts, _) = count(&server.url(), &["a", "b"]);
    assert_eq!(counts[1].as_ref().unwrap_err().class, ErrorClass::Http(404));
}

#[test]
fn a_connection_that_was_closed_is_opened_anew() {
    let server = Server::start(|_| {
        let mut steps = json(r#"{"count":1}"#);
        steps.push(Step::Close);
        steps
    });
    let (counts, _) = count(&server.url(), &["a", "b", "c"]);
    assert_eq!(counts, [Ok(Some(1)), Ok(Some(1)), Ok(Some(1))]);
}
