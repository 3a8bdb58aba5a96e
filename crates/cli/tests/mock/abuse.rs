//! What a public endpoint meets: requests that are wrong, broken off, endless or slow. Each gets
//! the right answer or none, and the server serves on.

use crate::support::mock::{MockProcess, SHORT, post};
use crate::support::{Session, certificate};
use goodput_clock::{now, pause};
use goodput_model::Nanos;
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
const EMBEDDINGS: &str = "/v1/embeddings";

/// A long stream.
const LONG: &str =
    r#"{"messages":[{"role":"user","content":"hi"}],"max_tokens":100000,"stream":true}"#;

fn head(path: &str, headers: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n")
}

#[test]
fn what_is_no_request_is_told_so_and_hung_up_on() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let many = "a: b\r\n".repeat(200);
    let long = |bytes| "a".repeat(bytes);
    let cases: Vec<(Vec<u8>, u16)> = vec![
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello".to_vec(), 400),
        (b"hello world\r\n\r\n".to_vec(), 400),
        (b"GET /health\r\n\r\n".to_vec(), 400),
        (b"GET /health HTTP/9.9\r\n\r\n".to_vec(), 400),
        (b"GET /he alth HTTP/1.1\r\n\r\n".to_vec(), 400),
        (b"GET /health HTTP/1.1\r\nno colon\r\n\r\n".to_vec(), 400),
        (b"GET /health HTTP/1.1\r\na\0b: c\r\n\r\n".to_vec(), 400),
        (format!("GET /health HTTP/1.1\r\n{many}\r\n").into_bytes(), 431),
        (format!("GET /health HTTP/1.1\r\na: {}\r\n\r\n", long(1 << 20)).into_bytes(), 431),
        (format!("GET /{} HTTP/1.1\r\n\r\n", long(70_000)).into_bytes(), 414),
        (head(CHAT, "Content-Length: many\r\n").into_bytes(), 400),
        (head(CHAT, "Content-Length: -1\r\n").into_bytes(), 400),
        (head(CHAT, "Content-Length: 1\r\nContent-Length: 2\r\n").into_bytes(), 400),
        (head(CHAT, "Content-Length: 99999999999999999999999\r\n").into_bytes(), 400),
        (head(CHAT, "Transfer-Encoding: gzip\r\n").into_bytes(), 400),
    ];
    for (request, status) in cases {
        let mut line = mock.connect();
        line.try_send(&request);
        let shown = String::from_utf8_lossy(&request[..request.len().min(60)]).into_owned();
        let said = line.rest();
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{shown}: {said}");
        assert!(said.contains("\r\nconnection: close\r\n"), "{shown}: {said}");
    }
    mock.assert_serves("after bytes that are not a request");
}

#[test]
fn chunked_bodies_and_broken_ones() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let chunked = head(CHAT, "Transfer-Encoding: chunked\r\n");
    let (first, second) = SHORT.split_at(20);
    let both = format!(
        "{chunked}{:x};name=value\r\n{first}\r\n{:X}\r\n{second}\r\n0\r\nTrailer: x\r\n\r\n",
        first.len(),
        second.len()
    );
    let mut line = mock.connect();
    line.send(both.repeat(2));
    for _ in 0..2 {
        assert_eq!(line.answer().unwrap().json()["usage"]["completion_tokens"], 2);
    }
    let broken = ["zz\r\n", "-5\r\n", "fffffffffffffffff\r\n", "5\r\nabcdefgh\r\n", "\r\n\r\n"];
    for chunk in broken {
        let mut line = mock.connect();
        line.send(format!("{chunked}{chunk}"));
        let answer = line.answer().unwrap_or_else(|| panic!("{chunk:?}: no answer"));
        assert_eq!((answer.status, answer.header("connection")), (400, Some("close")), "{chunk:?}");
        answer.error();
        assert_eq!(line.rest(), "", "{chunk:?}");
    }
    // One that ends before its length says so: an answer is all right, and so is none.
    for (length, body) in [(500, SHORT), (1, "")] {
        let mut line = mock.connect();
        line.send(head(CHAT, &format!("Content-Length: {length}\r\n")) + body);
        line.end_sending();
        if let Some(answer) = line.answer() {
            assert_eq!(answer.status, 400);
            answer.error();
        }
    }
    // What comes after a body that is longer than it says is the next request, and none.
    let mut line = mock.connect();
    line.send(head(CHAT, &format!("Content-Length: {}\r\n", SHORT.len())) + SHORT + "}}\r\n\r\n");
    assert_eq!(line.answer().unwrap().status, 200);
    assert_eq!(line.answer().unwrap().status, 400);
    mock.assert_serves("after broken bodies");
}

#[test]
fn bodies_that_cannot_be_served() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let with = |field: &str| SHORT.replace("\"max_tokens\":2", field);
    let bodies: Vec<(&str, Vec<u8>, Option<&str>)> = vec![
        (CHAT, b"".to_vec(), None),
        (CHAT, b"nope".to_vec(), None),
        (CHAT, b"[]".to_vec(), None),
        (CHAT, b"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xfe\"}]}".to_vec(), None),
        (CHAT, br#"{"messages":[{"role":"user","content":"\ud800"}]}"#.to_vec(), None),
        (CHAT, b"[".repeat(1 << 20), None),
        (CHAT, br#"{"a":"#.repeat(1 << 18), None),
        (CHAT, with(r#""max_tokens":1e999"#).into_bytes(), None),
        (CHAT, b"{}".to_vec(), Some("messages")),
        (CHAT, br#"{"messages":{}}"#.to_vec(), Some("messages")),
        (CHAT, br#"{"messages":[]}"#.to_vec(), Some("messages")),
        (CHAT, br#"{"messages":[7]}"#.to_vec(), Some("messages[0]")),
        (CHAT, br#"{"messages":[{"role":"king"}]}"#.to_vec(), Some("messages[0].role")),
        (CHAT, with(r#""max_tokens":-1"#).into_bytes(), Some("max_tokens")),
        (CHAT, with(r#""max_tokens":0"#).into_bytes(), Some("max_tokens")),
        (CHAT, with(r#""max_tokens":1.5"#).into_bytes(), Some("max_tokens")),
        (CHAT, with(r#""max_tokens":"2""#).into_bytes(), Some("max_tokens")),
        (CHAT, with(r#""max_tokens":99999999999999999999"#).into_bytes(), Some("max_tokens")),
        (CHAT, with(r#""max_tokens":9223372036854775807"#).into_bytes(), Some("max_tokens")),
        (CHAT, with(r#""n":-9223372036854775808"#).into_bytes(), Some("n")),
        (CHAT, with(r#""stream":"yes""#).into_bytes(), Some("stream")),
        (CHAT, with(r#""temperature":-0.1"#).into_bytes(), Some("temperature")),
        (CHAT, with(r#""stop":[1]"#).into_bytes(), Some("stop")),
        (CHAT, with(r#""tools":[{}]"#).into_bytes(), Some("tools[0].function.name")),
        (COMPLETIONS, br#"{"prompt":[]}"#.to_vec(), Some("prompt")),
        (COMPLETIONS, br#"{"prompt":[-1]}"#.to_vec(), Some("prompt")),
        (COMPLETIONS, br#"{"prompt":[[1],"a"]}"#.to_vec(), Some("prompt")),
        (EMBEDDINGS, br#"{"input":null}"#.to_vec(), Some("input")),
        (EMBEDDINGS, br#"{"input":"a","dimensions":0}"#.to_vec(), Some("dimensions")),
        ("/tokenize", b"{}".to_vec(), Some("prompt")),
        ("/detokenize", br#"{"tokens":[4294967295]}"#.to_vec(), Some("tokens")),
    ];
    let mut line = mock.connect();
    for (path, body, param) in bodies {
        // One connection for all: a rejected request does not close it.
        line.send(post(path, &body));
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let answer = line.answer().unwrap_or_else(|| panic!("{shown}: no answer"));
        assert_eq!(answer.status, 400, "{shown}: {answer:?}");
        let error = answer.error();
        assert_eq!(error["param"], param.map_or(Value::Null, Value::from), "{shown}: {error}");
        assert_eq!(error["type"], "invalid_request_error", "{shown}");
    }
    let answer = mock.post(CHAT, SHORT.replace("mock", "nope"));
    assert_eq!((answer.status, &answer.error()["code"]), (404, &json!("model_not_found")));
    let words = json!({"prompt": "word ".repeat(200_000)}).to_string();
    let answer = mock.post(COMPLETIONS, words);
    assert_eq!((answer.status, &answer.error()["code"]), (400, &json!("context_length_exceeded")));
    let gzip = head(CHAT, "Content-Encoding: gzip\r\nContent-Length: 4\r\n") + "\x1f\x08\x00\x00";
    let answer = mock.ask(gzip);
    assert_eq!(answer.status, 415);
    answer.error();
    mock.assert_serves("after bodies that cannot be served");
}

/// A few bytes must not ask for more than memory holds.
#[test]
fn requests_for_too_much_at_once_are_refused() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let most = 1 << 22;
    let each = 131_000;
    let cases = [
        (
            COMPLETIONS,
            json!({"prompt": "a", "n": 128, "max_tokens": each, "stream": true}),
            "max_tokens",
        ),
        (
            COMPLETIONS,
            json!({"prompt": ["a", "b"], "n": 64, "max_completion_tokens": each}),
            "max_completion_tokens",
        ),
        (
            COMPLETIONS,
            json!({"prompt": "a", "n": 2, "max_tokens": each, "logprobs": 20}),
            "max_tokens",
        ),
        (COMPLETIONS, json!({"prompt": vec!["a"; 3000], "max_tokens": 1}), "prompt"),
        (EMBEDDINGS, json!({"input": vec!["a"; 2000], "dimensions": 16_384}), "dimensions"),
        ("/tokenize", json!({"prompt": "!".repeat(most + 1)}), ""),
    ];
    for (path, body, param) in cases {
        let answer = mock.post(path, body.to_string());
        assert_eq!(answer.status, 400, "{path} {param}: {}", answer.head);
        let error = answer.error();
        assert_eq!(error["param"].as_str().unwrap_or_default(), param, "{error}");
    }
    let body = json!({"prompt": "a", "n": 128, "max_tokens": 200, "logprobs": 20});
    let answer = mock.post(COMPLETIONS, body.to_string());
    assert_eq!(answer.json()["usage"]["completion_tokens"], 25_600);
    mock.assert_serves("after requests for too much");
}

/// A client that is still sending reads its refusal all the same, because the server goes on
/// reading for a while before it closes: a reset would overtake the answer.
#[test]
fn refusals_reach_clients_that_are_still_sending() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &["--api-key-env", "MOCK_KEY"]);
    let bytes = vec![b' '; 16 << 20];
    let key = "Authorization: Bearer sesame\r\n";
    let too_long = format!("{key}Content-Length: {}\r\n", (64 << 20) + 1);
    let fits = format!("Content-Length: {}\r\n", bytes.len());
    let with_key = format!("{key}{fits}");
    let cases = [
        (CHAT, &too_long, 413),
        ("/tokenize", &too_long, 413),
        (CHAT, &fits, 401),
        ("/nope", &with_key, 404),
        ("/health", &with_key, 405),
    ];
    for (path, headers, status) in cases {
        let mut line = mock.connect();
        line.send(head(path, headers));
        line.send(&bytes);
        let answer = line.answer().unwrap_or_else(|| panic!("{path}: no {status}"));
        assert_eq!((answer.status, answer.header("connection")), (status, Some("close")));
        answer.error();
    }
    // One without a length is found out while it comes.
    let mut line = mock.connect();
    line.send(head(CHAT, &format!("{key}Transfer-Encoding: chunked\r\n")));
    for _ in 0..5 {
        line.send(format!("{:x}\r\n", bytes.len()));
        line.send(&bytes);
        line.send("\r\n");
    }
    assert_eq!(line.answer().unwrap().status, 413);
    let ok = mock.ask(head(CHAT, &format!("{key}Content-Length: {}\r\n", SHORT.len())) + SHORT);
    assert_eq!(ok.status, 200);
}

#[test]
fn clients_that_go_away_free_their_slots() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &["--ttft", "1ms", "--itl", "5ms", "--slots", "1"]);
    let whole = LONG.replace(",\"stream\":true", "");
    // In the middle of a stream, and of an answer that has not begun.
    for body in [LONG, &whole] {
        let mut line = mock.connect();
        line.send(post(CHAT, body));
        if body == LONG {
            line.read_until("\"content\":\" ");
        }
        mock.until_running(1.0);
        let mut waiting = mock.connect();
        waiting.send(post(CHAT, SHORT));
        drop(line);
        assert_eq!(waiting.answer().unwrap().status, 200, "the next in the queue");
        mock.assert_serves("after a client went away");
    }
    // Though it sent more than it asked: another request, or the line end of old clients.
    for more in ["GET /health HTTP/1.1\r\nHost: x\r\n\r\n", "\r\n"] {
        for body in [LONG, &whole] {
            let mut line = mock.connect();
            line.send([&post(CHAT, body)[..], more.as_bytes()].concat());
            mock.until_running(1.0);
            drop(line);
            mock.assert_serves("after a client that sent too much");
        }
    }
    // Who says that it sends no more is taken to be gone, as by most servers of engines.
    let mut line = mock.connect();
    line.send(post(CHAT, LONG));
    line.read_until("\"content\":\" ");
    line.end_sending();
    assert!(!line.rest().contains("[DONE]"));
    mock.assert_serves("after a half-close");
    // In the middle of a body.
    let mut line = mock.connect();
    line.send(head(CHAT, "Content-Length: 1000\r\n") + SHORT);
    drop(line);
    mock.assert_serves("after half a body");
    // Many at once.
    let lines: Vec<_> = (0..50)
        .map(|_| {
            let mut line = mock.connect();
            line.send(post(CHAT, LONG));
            line
        })
        .collect();
    mock.until_running(1.0);
    drop(lines);
    mock.assert_serves("after many clients went away");
    assert_eq!(mock.metric("vllm:num_requests_waiting"), 0.0);
}

#[test]
fn patience_ends() {
    let session = Session::new();
    let flags = ["--set", "patience=1s", "--ttft", "1ms", "--itl", "20ms"];
    let mock = MockProcess::fast(&session, &flags);
    let begin = now();
    let mut silent = mock.connect();
    let mut http2 = mock.connect();
    http2.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    let [cert, key] = certificate(&session);
    let secure = [&flags[..], &["--tls-cert", &cert, "--tls-key", &key]].concat();
    let secure = MockProcess::fast(&session, &secure);
    let mut no_handshake = secure.connect();
    no_handshake.send("\x16\x03\x01");
    let mut half_head = mock.connect();
    half_head.send("GET /health HTTP/1.1\r\nHost:");
    let mut half_body = mock.connect();
    half_body.send(head(CHAT, "Content-Length: 1000\r\n") + SHORT);
    let mut kept = mock.connect();
    kept.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(kept.answer().unwrap().status, 200);
    // Who is being answered is not idle, however long it takes.
    let mut stream = mock.connect();
    stream.send(post(CHAT, LONG.replace("100000", "80")));
    // A few bytes now and then do not count as progress: the request must arrive in time.
    while now() - begin < Nanos::from_millis(700) {
        half_head.try_send(" ");
        half_body.try_send(" ");
        pause(Nanos::from_millis(50));
    }
    assert_eq!(silent.rest(), "");
    assert_eq!(no_handshake.rest(), "");
    // Its own settings, and then nothing.
    assert!(!http2.rest().is_empty());
    assert!(half_head.answer().is_none_or(|answer| answer.status >= 400));
    let late = half_body.answer().unwrap();
    assert_eq!((late.status, late.header("connection")), (408, Some("close")));
    late.error();
    assert_eq!(kept.rest(), "");
    assert!(now() - begin >= Nanos::from_millis(1_000));
    let stream = stream.answer().unwrap();
    assert!(stream.body.ends_with(b"data: [DONE]\n\n"));
    assert!(now() - begin >= Nanos::from_millis(79 * 20));
    mock.assert_serves("after slow clients");
}

#[test]
fn what_was_sent_before_a_break_arrives() {
    let session = Session::new();
    for fault in ["cut=5", "reset-midstream=5"] {
        // All tokens at one instant, and one after the other.
        for itl in ["0s", "5ms"] {
            let mock = MockProcess::fast(&session, &["--itl", itl, "--fault", fault]);
            let mut line = mock.connect();
            line.send(post(CHAT, LONG.replace("100000", "10")));
            let said = line.rest();
            assert_eq!(said.matches("\"content\":\" ").count(), 5, "{fault} {itl}: {said}");
        }
    }
}
