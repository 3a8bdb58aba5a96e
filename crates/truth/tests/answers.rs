//! The truth server on real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use goodput_clock::{now, pause};
use goodput_model::Nanos;
use goodput_truth::{Timing, TruthServer, instants_in};
use serde_json::Value;

const TIMING: Timing = Timing { ttft: Nanos::from_millis(5), itl: Nanos::from_millis(2) };

fn start() -> TruthServer {
    TruthServer::start("127.0.0.1:0", TIMING).unwrap()
}

fn connect(server: &TruthServer) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn request(body: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Reads one chunked answer to its end and takes the chunks apart.
fn answer(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n0\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
    let text = String::from_utf8(bytes).unwrap();
    let (head, mut rest) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let mut body = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n").unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return body;
        }
        body.push_str(&after[..size]);
        rest = after[size..].strip_prefix("\r\n").unwrap();
    }
}

fn events(body: &str) -> Vec<Value> {
    let data = body.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn text(body: &str) -> String {
    let contents = events(body);
    contents.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect()
}

#[test]
fn an_answer_has_the_tokens_asked_for_at_their_instants() {
    let server = start();
    let mut stream = connect(&server);
    let asked = now();
    stream
        .write_all(
            request(r#"{"max_tokens":20,"stream_options":{"include_usage":true}}"#).as_bytes(),
        )
        .unwrap();
    let body = answer(&mut stream);
    let done = now();
    let written = instants_in(&text(&body));
    assert_eq!(written.len(), 20);
    assert!(written.is_sorted());
    assert!(written[0] >= asked + TIMING.ttft && *written.last().unwrap() <= done);
    // Each token is due at a fixed distance from the first one's scheduled instant, and none is
    // early.
    for (i, instant) in written.iter().enumerate() {
        assert!(*instant >= asked + TIMING.ttft + Nanos::from_millis(2 * i as u64));
    }
    let events = events(&body);
    assert_eq!(events.len(), 22);
    assert_eq!(events[20]["choices"][0]["finish_reason"], "length");
    assert_eq!(events[21]["usage"]["completion_tokens"], 20);
    assert_eq!(events[21]["usage"]["prompt_tokens"], 1);
    assert!(body.ends_with("data: [DONE]\n\n"));
    let report = server.stop().unwrap();
    assert_eq!((report.requests, report.events), (1, 20));
    assert_eq!((report.ttft_ms.n, report.itl_ms.n, report.write_lateness_ms.n), (1, 19, 20));
    assert!(report.ttft_ms.p50.unwrap() >= 5.0);
    assert!(report.first_arrival.unwrap() >= asked);
}

#[test]
fn a_request_may_come_in_pieces_and_a_connection_carry_two() {
    let server = start();
    let mut stream = connect(&server);
    for byte in request(r#"{"max_tokens":3}"#).bytes() {
        stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(instants_in(&text(&answer(&mut stream))).len(), 3);
    // The next two at once.
    let two = request(r#"{"max_tokens":4}"#) + &request(r#"{"max_completion_tokens": 5}"#);
    stream.write_all(two.as_bytes()).unwrap();
    assert_eq!(instants_in(&text(&answer(&mut stream))).len(), 4);
    let body = answer(&mut stream);
    assert_eq!(instants_in(&text(&body)).len(), 5);
    assert!(!body.contains("usage"));
    assert_eq!(server.stop().unwrap().requests, 3);
}

#[test]
fn garbage_harms_no_client_else() {
    let server = start();
    let mut good = connect(&server);
    good.write_all(request(r#"{"max_tokens":30}"#).as_bytes()).unwrap();
    let long = vec![b'x'; 100_000];
    let bad: [&[u8]; 6] = [
        b"\r\n\r\n",
        b"\x16\x03\x01\x00\xff\xff\xff\xff\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 18446744073709551615\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 10\r\n\r\nabc",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
        &long,
    ];
    for bytes in bad {
        let mut stream = connect(&server);
        // It may hang up before all is written.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    // One that floods while it is answered, and one that leaves.
    let mut flood = connect(&server);
    flood.write_all(request(r#"{"max_tokens":1000000}"#).as_bytes()).unwrap();
    while flood.write_all(&[b'y'; 10_000]).is_ok() {}
    drop(flood);
    assert_eq!(instants_in(&text(&answer(&mut good))).len(), 30);
}

#[test]
fn a_reader_that_pauses_still_gets_a_whole_stream() {
    let timing = Timing { ttft: Nanos::ZERO, itl: Nanos::ZERO };
    let server = TruthServer::start("127.0.0.1:0", timing).unwrap();
    let mut stream = connect(&server);
    // Far more than the socket's buffers hold.
    let tokens = 100_000;
    stream.write_all(request(&format!(r#"{{"max_tokens":{tokens}}}"#)).as_bytes()).unwrap();
    pause(Nanos::from_millis(100));
    let mut received = Vec::new();
    let mut buffer = vec![0; 100_000];
    while !received.ends_with(b"\r\n0\r\n\r\n") {
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0);
        received.extend_from_slice(&buffer[..n]);
    }
    let received = String::from_utf8(received).unwrap();
    let contents: String =
        received.split("\"content\":\"").skip(1).map(|rest| &rest[..20]).collect();
    let written = instants_in(&contents);
    assert_eq!(written.len(), tokens);
    assert!(written.is_sorted());
}

#[test]
fn probes_are_answered() {
    let server = start();
    for (path, expected) in
        [("/v1/models", "\"id\":\"truth\""), ("/health", "200 OK"), ("/other", "404 Not Found")]
    {
        let mut stream = connect(&server);
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains(expected), "{answer}");
    }
    assert_eq!(server.stop().unwrap().requests, 0);
}

#[test]
fn a_stop_is_prompt() {
    let slow = Timing { ttft: Nanos::from_millis(3_600_000), itl: Nanos::ZERO };
    for is_busy in [false, true] {
        let server = TruthServer::start("127.0.0.1:0", slow).unwrap();
        let mut stream = connect(&server);
        if is_busy {
            stream.write_all(request("{}").as_bytes()).unwrap();
            // The head shows that the answer has begun.
            stream.read_exact(&mut [0; 20]).unwrap();
        }
        assert_eq!(server.stop().unwrap().events, 0);
        assert!(stream.read_to_end(&mut Vec::new()).is_ok());
    }
    // Dropping is stopping.
    let server = start();
    let address = server.address();
    drop(server);
    assert!(TcpStream::connect(address).is_err());
}
