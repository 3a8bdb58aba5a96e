//! Real servers' answers over a real socket, in reads of one byte and in one piece.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::sync::Arc;

use bytes::Bytes;
use goodput_model::{ErrorClass, Exchange, Http};
use goodput_testkit::{LAST_CHUNK, STREAM_HEAD, Server, Step};
use goodput_wire::{Client, Endpoint, EndpointSettings};

fn sample(name: &str) -> String {
    let path = format!("{}/tests/samples/{name}.sse", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn exchange(steps: Vec<Step>) -> Exchange {
    exchange_over(Http::Http1, steps)
}

fn exchange_over(http: Http, steps: Vec<Step>) -> Exchange {
    let server = Server::start(move |_| steps.clone());
    let settings =
        EndpointSettings { http, ..EndpointSettings::new(server.url().parse().unwrap()) };
    let endpoint = Arc::new(Endpoint::new(&settings).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut exchange = Exchange::default();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        Client::new(endpoint).send(Bytes::from_static(b"{}"), &mut exchange).await;
    });
    exchange
}

/// What must not depend on how the bytes arrive.
fn essence(exchange: &Exchange) -> impl PartialEq + std::fmt::Debug {
    let texts: Vec<_> = exchange.chunks.iter().map(|c| (c.bytes, c.tokens, c.choice)).collect();
    let class = exchange.failure.as_ref().map(|failure| failure.class);
    (texts, exchange.output_tokens, exchange.input_tokens, exchange.finish.clone(), class)
}

#[test]
fn streams_survive_any_packaging() {
    for name in [
        "vllm-chat-n2",
        "llama-server-chat-length",
        "tfserve-chat",
        "lcp-ping",
        "litellm-chat",
        "llama-server-ping-error",
    ] {
        let body = sample(name);
        let frame = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
        let whole =
            exchange(vec![Step::write(format!("{STREAM_HEAD}{}{LAST_CHUNK}", frame(&body)))]);
        // Every byte in a chunk of its own, every byte of that in a write of its own.
        let small: String = body.chars().map(|c| frame(&c.to_string())).collect();
        let all = format!("{STREAM_HEAD}{small}{LAST_CHUNK}");
        let bytewise = exchange(all.bytes().map(|byte| Step::Write(vec![byte])).collect());
        assert_eq!(essence(&bytewise), essence(&whole), "{name}");
        assert!(!whole.chunks.is_empty(), "{name}");
        if name != "llama-server-ping-error" {
            assert_eq!(whole.failure, None, "{name}");
            assert!(whole.chunks.iter().all(|c| c.coalesced || whole.chunks.len() == 1), "{name}");
        }
    }
}

#[test]
fn stamps_are_in_order_and_apart() {
    let steps = goodput_testkit::timed_stream(
        std::time::Duration::from_millis(20),
        std::time::Duration::from_millis(5),
        4,
    );
    let exchange = exchange(steps);
    assert_eq!(exchange.failure, None);
    let stamps = &exchange.stamps;
    let connect = stamps.connect.expect("a new connection");
    let order = [
        Some(connect.tcp.start),
        Some(connect.tcp.end),
        stamps.sent_first,
        stamps.headers,
        stamps.first_byte,
        stamps.first_token,
        stamps.last_token,
        stamps.done,
    ];
    let order: Vec<_> = order.into_iter().map(|stamp| stamp.expect("every stamp")).collect();
    assert!(order.is_sorted(), "{order:?}");
    // An answer can be here before our own write has returned.
    assert!(stamps.sent_first <= stamps.sent_last && stamps.sent_last < stamps.first_token);
    // Headers came at once; the first token cannot come before its 20 ms.
    let (sent, first) = (stamps.sent_first.unwrap(), stamps.first_token.unwrap());
    assert!(stamps.headers.unwrap() < first && (first - sent).as_ms() >= 20.0);
    assert_eq!(exchange.chunks.len(), 4);
}

#[test]
fn refusals_of_real_servers_keep_their_words() {
    let cases = [
        ("vllm-err-model", "404 Not Found", "application/json", "does not exist"),
        ("vllm-err-ctx", "400 Bad Request", "application/json", "max_model_len"),
        ("llama-server-err-ctx", "400 Bad Request", "application/json", "context"),
        ("tfserve-err-field", "422 Unprocessable Entity", "application/json", "ignore_eos"),
        ("tfserve-err-500", "500 Internal Server Error", "text/plain", "Internal Server Error"),
        ("litellm-err-model", "400 Bad Request", "application/json", "Invalid model name"),
        ("lcp-err", "500 Internal Server Error", "application/json", "validation error"),
    ];
    for (name, status, kind, words) in cases {
        let exchange = exchange(vec![goodput_testkit::answer(status, kind, &sample(name))]);
        let failure = exchange.failure.expect(name);
        assert_eq!(failure.class, ErrorClass::Http(status[..3].parse().unwrap()), "{name}");
        assert!(failure.message.contains(words), "{name}: {}", failure.message);
    }
}

#[test]
fn every_way_to_delimit_a_body() {
    let events = format!("{}{}", goodput_testkit::token_event("a"), goodput_testkit::end_events(1));
    let kind = "content-type: text/event-stream";
    let (half, rest) = events.split_at(events.len() / 2);
    let piece = |text: &str| format!("{:x};ext=1\r\n{text}\r\n", text.len());
    let whole = events.len();
    let cases = [
        (
            "length",
            format!("HTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: {whole}\r\n\r\n{events}"),
            false,
        ),
        (
            "to the end",
            format!("HTTP/1.1 200 OK\r\n{kind}\r\nconnection: close\r\n\r\n{events}"),
            true,
        ),
        ("HTTP/1.0", format!("HTTP/1.0 200 OK\r\n{kind}\r\n\r\n{events}"), true),
        (
            "chunks with extensions and trailers",
            format!(
                "HTTP/1.1 200 OK\r\n{kind}\r\nTransfer-Encoding: chunked\r\n\r\n{}{}0\r\nx-t: 1\r\n\r\n",
                piece(half),
                piece(rest)
            ),
            false,
        ),
        (
            "an interim answer first",
            format!(
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n{kind}\r\ncontent-length: {whole}\r\n\r\n{events}"
            ),
            false,
        ),
    ];
    for (name, text, closes) in cases {
        for bytewise in [false, true] {
            let mut steps: Vec<_> = if bytewise {
                text.bytes().map(|byte| Step::Write(vec![byte])).collect()
            } else {
                vec![Step::write(text.clone())]
            };
            if closes {
                steps.push(Step::Close);
            }
            let exchange = exchange(steps);
            assert_eq!(exchange.failure, None, "{name}, bytewise: {bytewise}");
            assert_eq!(exchange.chunks.len(), 1, "{name}");
        }
    }
}

#[test]
fn framing_that_lies_is_no_http() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
    let cases = [
        (
            "two lengths",
            format!("{head}content-length: 5\r\ncontent-length: 6\r\n\r\nhello"),
            ErrorClass::BadHttp,
        ),
        ("a bad length", format!("{head}content-length: x\r\n\r\n"), ErrorClass::BadHttp),
        ("a sign", format!("{head}content-length: +5\r\n\r\nhello"), ErrorClass::BadHttp),
        (
            "a coding that was not asked for",
            format!("{head}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
            ErrorClass::BadHttp,
        ),
        (
            "a chunk without a size",
            format!("{head}transfer-encoding: chunked\r\n\r\nzz\r\n"),
            ErrorClass::BadHttp,
        ),
        (
            "a chunk longer than it says",
            format!("{head}transfer-encoding: chunked\r\n\r\n1\r\nab\r\n"),
            ErrorClass::BadHttp,
        ),
        (
            "an endless head",
            format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(300_000)),
            ErrorClass::BadHttp,
        ),
        (
            "a body shorter than its length",
            format!("{head}content-length: 50\r\n\r\nhello"),
            ErrorClass::Cut,
        ),
        ("half a head", "HTTP/1.1 200 O".to_owned(), ErrorClass::Cut),
        ("nothing", String::new(), ErrorClass::Closed),
    ];
    for (name, text, class) in cases {
        let exchange = exchange(vec![Step::write(text), Step::Close]);
        let failure = exchange.failure.unwrap_or_else(|| panic!("{name}: no failure"));
        assert_eq!(failure.class, class, "{name}: {}", failure.message);
    }
}

#[test]
fn a_broken_protocol_of_http2_is_no_http() {
    // Settings, then two windows that add up to more than a window may have.
    let settings = b"\0\0\0\x04\0\0\0\0\0".to_vec();
    let window = b"\0\0\x04\x08\0\0\0\0\0\x7f\xff\xff\xff".to_vec();
    let pause = Step::Pause(std::time::Duration::from_secs(1));
    let steps = vec![Step::Write([settings, window.clone(), window].concat()), pause];
    let failure = exchange_over(Http::Http2, steps).failure.unwrap();
    assert_eq!(failure.class, ErrorClass::BadHttp, "{}", failure.message);
}
