//! The simulated engine's API over real sockets: every endpoint, every protocol.

use std::process::{Command, Stdio};

use crate::support::mock::{MockProcess, SHORT, post};
use crate::support::{Session, certificate};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";

#[test]
fn every_endpoint_answers() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &["--set", "max_model_len=4096"]);
    for path in ["/health", "/ping", "/health/"] {
        assert_eq!(mock.get(path).json(), json!({"status": "ok"}), "{path}");
    }
    assert_eq!(mock.get("/version").json(), json!({"version": env!("CARGO_PKG_VERSION")}));
    let info = mock.get("/server_info").json();
    assert_eq!(info["engine"], json!("goodput mock"));
    assert_eq!((&info["max_model_len"], &info["max_num_seqs"]), (&json!(4096), &json!(100_000)));
    let model = &mock.get("/v1/models").json()["data"][0];
    assert_eq!((&model["id"], &model["max_model_len"]), (&json!("mock"), &json!(4096)));
    let page = mock.get("/metrics");
    assert_eq!(page.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert_eq!(mock.post("/reset_prefix_cache", "").json(), json!({}));

    let tokens = mock.post("/tokenize", r#"{"prompt":"hello there"}"#).json();
    assert_eq!((&tokens["count"], &tokens["max_model_len"]), (&json!(3), &json!(4096)));
    let text = mock.post("/detokenize", json!({"tokens": tokens["tokens"]}).to_string()).json();
    assert_eq!(text["prompt"], "<|bos|>hello there");

    let chat = mock.post(CHAT, SHORT).json();
    assert_eq!(chat["object"], "chat.completion");
    assert_eq!(chat["choices"][0]["finish_reason"], "length");
    assert_eq!(chat["usage"]["total_tokens"], 5 + 2);
    let completion = r#"{"prompt":["a","b"],"max_tokens":3,"stop":null}"#;
    let completion = mock.post("/v1/completions", completion).json();
    assert_eq!(completion["choices"].as_array().unwrap().len(), 2);
    assert_eq!(completion["usage"]["completion_tokens"], 6);
    let vectors = mock.post("/v1/embeddings", r#"{"input":"a","dimensions":5}"#).json();
    assert_eq!(vectors["data"][0]["embedding"].as_array().unwrap().len(), 5);
}

/// The words of a stream's events, and whether it ended as it should.
fn words(stream: &str) -> (String, bool) {
    let events = stream.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
    let mut text = String::new();
    let mut last = "";
    for event in events {
        last = event;
        let event: Value = serde_json::from_str(event).unwrap_or_default();
        text += event["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
    }
    (text, last == "[DONE]")
}

#[test]
fn a_stream_says_what_a_whole_answer_says() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let ask = |stream: bool, version: &str| {
        let messages = json!([{"role": "user", "content": "hi"}]);
        let body = json!({"messages": messages, "seed": 3, "max_tokens": 40, "stream": stream});
        let request = String::from_utf8(post(CHAT, body.to_string())).unwrap();
        mock.ask(request.replace("HTTP/1.1", version))
    };
    let whole = ask(false, "HTTP/1.1").json()["choices"][0]["message"]["content"].clone();
    for (version, framing) in [("HTTP/1.1", Some("chunked")), ("HTTP/1.0", None)] {
        let stream = ask(true, version);
        assert_eq!(stream.header("content-type"), Some("text/event-stream; charset=utf-8"));
        assert_eq!(stream.header("transfer-encoding"), framing);
        let (text, is_done) = words(std::str::from_utf8(&stream.body).unwrap());
        assert_eq!((text.as_str(), is_done), (whole.as_str().unwrap(), true), "{version}");
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let mut line = mock.connect();
    let stream = SHORT.replace("\"max_tokens\":2", "\"max_tokens\":50,\"stream\":true");
    let health = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
    let missing = b"GET /nope HTTP/1.1\r\nHost: x\r\n\r\n";
    line.send([&post(CHAT, &stream)[..], health, missing, &post(CHAT, SHORT)].concat());
    let first = line.answer().unwrap();
    assert!(words(std::str::from_utf8(&first.body).unwrap()).1);
    assert_eq!(line.answer().unwrap().json(), json!({"status": "ok"}));
    assert_eq!(line.answer().unwrap().error()["code"], "not_found");
    assert_eq!(line.answer().unwrap().json()["usage"]["completion_tokens"], 2);
}

#[test]
fn a_client_that_asks_first_is_told_to_go_on_or_not() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let head = |length: usize| {
        format!(
            "POST {CHAT} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    let mut line = mock.connect();
    line.send(head(SHORT.len()));
    assert_eq!(line.answer().unwrap().status, 100);
    line.send(SHORT);
    assert_eq!(line.answer().unwrap().status, 200);
    let refused = mock.ask(head(1 << 40));
    assert_eq!(refused.status, 413);
    refused.error();
}

#[test]
fn methods() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let cases = [
        ("GET", CHAT, "POST"),
        ("DELETE", CHAT, "POST"),
        ("HEAD", "/tokenize", "POST"),
        ("OPTIONS", "/v1/models", "GET, HEAD"),
        ("POST", "/metrics", "GET, HEAD"),
        ("BREW", "/health", "GET, HEAD"),
    ];
    for (method, path, allow) in cases {
        let mut line = mock.connect();
        line.send(format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        let said = line.rest();
        assert!(said.starts_with("HTTP/1.1 405 "), "{method} {path}: {said}");
        assert!(said.contains(&format!("\r\nallow: {allow}\r\n")), "{method} {path}: {said}");
        let body = said.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(body.is_empty(), method == "HEAD", "{method} {path}: {said}");
        assert!(body.is_empty() || body.contains(method), "{method} {path}: {said}");
    }
    // HEAD is GET without the body.
    let mut line = mock.connect();
    line.send("HEAD /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let said = line.rest();
    assert!(said.starts_with("HTTP/1.1 200 ") && said.ends_with("\r\n\r\n"), "{said}");
    assert!(said.contains("\r\ncontent-length: 15\r\n"), "{said}");
    for path in ["/", "/v1", "/v1/nope", "/V1/models", "/v1/models/../x", "/%2e"] {
        let answer = mock.get(path);
        assert_eq!((answer.status, &answer.error()["code"]), (404, &json!("not_found")), "{path}");
    }
}

#[test]
fn a_key_is_asked_for_where_it_matters() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &["--api-key-env", "MOCK_KEY"]);
    let ask = |path: &str, authorization: &str| {
        mock.ask(format!("GET {path} HTTP/1.1\r\nHost: x\r\n{authorization}\r\n"))
    };
    for right in ["Authorization: Bearer sesame\r\n", "authorization: bearer  sesame\r\n"] {
        assert_eq!(ask("/v1/models", right).status, 200, "{right}");
    }
    let wrong =
        ["", "Bearer", "Bearer ", "Bearer Sesame", "Basic sesame", "sesame", "Bearer sesame x"];
    for wrong in wrong {
        let line =
            if wrong.is_empty() { String::new() } else { format!("Authorization: {wrong}\r\n") };
        let answer = ask("/v1/models", &line);
        assert_eq!(answer.status, 401, "{wrong}");
        assert_eq!(answer.header("www-authenticate"), Some("bearer"));
        let error = answer.error();
        assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("authentication_error"), &json!("invalid_api_key"))
        );
    }
    for open in ["/health", "/metrics", "/version"] {
        assert_eq!(ask(open, "").status, 200, "{open}");
    }
    for closed in [CHAT, "/tokenize", "/v1/nope"] {
        assert_eq!(mock.post(closed, SHORT).status, 401, "{closed}");
    }
}

/// A stream of HTTP/2 that its client gives up is given up here too.
#[test]
fn giving_up_a_stream_of_http2_frees_its_slot() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &["--itl", "5ms"]);
    if curl(&["http://127.0.0.1:1", "--version"]).is_none() {
        return;
    }
    let body = SHORT.replace("\"max_tokens\":2", "\"max_tokens\":100000,\"stream\":true");
    let url = format!("http://127.0.0.1:{}{CHAT}", mock.port);
    let args = ["-sN", "--noproxy", "*", "--http2-prior-knowledge", &url, "-d", &body];
    let mut child = Command::new("curl").args(args).stdout(Stdio::null()).spawn().unwrap();
    mock.until_running(1.0);
    child.kill().unwrap();
    child.wait().unwrap();
    mock.until_running(0.0);
    mock.assert_serves("after a stream that was given up");
}

/// Status, version, and body of what curl gets; none if no curl can.
#[expect(clippy::print_stderr, reason = "who reads the test's output should know")]
fn curl(args: &[&str]) -> Option<(String, String)> {
    let about = Command::new("curl").arg("--version").output().ok()?;
    if !String::from_utf8_lossy(&about.stdout).contains("HTTP2") {
        eprintln!("not run: no curl with HTTP/2");
        return None;
    }
    let told =
        ["-sS", "--noproxy", "*", "--max-time", "60", "-w", "\n%{http_code} %{http_version}"];
    let output = Command::new("curl").args(told).args(args).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {complaint}");
    let (body, status) = said.rsplit_once('\n').unwrap();
    Some((status.to_owned(), body.to_owned()))
}

#[test]
fn curl_over_every_protocol() {
    let session = Session::new();
    let plain = MockProcess::fast(&session, &[]);
    let [cert, key] = certificate(&session);
    let secure = MockProcess::fast(&session, &["--tls-cert", &cert, "--tls-key", &key]);
    let plain = format!("http://127.0.0.1:{}", plain.port);
    let secure = format!("https://localhost:{}", secure.port);
    let stream = SHORT.replace("\"max_tokens\":2", "\"seed\":1,\"max_tokens\":30,\"stream\":true");
    let mut texts = Vec::new();
    for (base, protocol, version) in [
        (&plain, "--http1.1", "1.1"),
        (&plain, "--http2-prior-knowledge", "2"),
        (&secure, "--http1.1", "1.1"),
        (&secure, "--http2", "2"),
    ] {
        let ask = |path: &str, more: &[&str]| {
            let url = format!("{base}{path}");
            curl(&[&[protocol, "--cacert", &cert, &url], more].concat())
        };
        let Some((status, body)) = ask("/v1/models", &[]) else { return };
        assert_eq!(status, format!("200 {version}"));
        assert!(body.contains("\"id\":\"mock\""), "{body}");
        let (status, body) = ask(CHAT, &["-N", "-d", &stream]).unwrap();
        assert_eq!(status, format!("200 {version}"));
        let (text, is_done) = words(&body);
        assert!(is_done && text.split_whitespace().count() == 30, "{body}");
        texts.push(text);
        let (status, body) = ask(CHAT, &["-d", "{}"]).unwrap();
        assert_eq!(status, format!("400 {version}"));
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["error"]["param"], "messages");
        let (status, _) = ask("/nope", &["-d", "{}"]).unwrap();
        assert_eq!(status, format!("404 {version}"));
        let (status, body) = ask("/health", &["-X", "POST"]).unwrap();
        assert_eq!(status, format!("405 {version}"), "{body}");
    }
    texts.dedup();
    assert_eq!(texts.len(), 1, "{texts:?}");
}
