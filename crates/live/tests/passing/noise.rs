//! Whatever bytes come from either side, nothing panics and the next request is served.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once};

use crate::support::{connect, exchange, post, raw_server, settings, start};
use proptest::prelude::*;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts panics on the proxy's threads: the runtime swallows those of tasks.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current().name() == Some("proxy") {
                PANICS.fetch_add(1, Ordering::SeqCst);
            }
            usual(info);
        }));
    });
}

/// Pieces that HTTP is made of, and noise between them.
fn pieces(
    begins: &'static [&'static str],
    words: &'static [&'static str],
) -> impl Strategy<Value = Vec<u8>> {
    let begin = proptest::sample::select(begins);
    let word = proptest::sample::select(words).prop_map(|word| word.as_bytes().to_vec());
    let noise = proptest::collection::vec(any::<u8>(), 0..20);
    let piece = prop_oneof![8 => word, 1 => noise];
    (begin, proptest::collection::vec(piece, 0..14))
        .prop_map(|(begin, pieces)| [begin.as_bytes(), &pieces.concat()].concat())
}

const BEGINS: &[&str] = &[
    "",
    "POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n",
    "POST /v1/completions HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\n",
    "GET /x HTTP/1.1\r\nhost: h\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
];

const ANSWER_BEGINS: &[&str] = &[
    "",
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n",
];

const REQUEST: &[&str] = &[
    "POST /v1/chat/completions HTTP/1.1\r\n",
    "GET / HTTP/1.1\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "host: h\r\n",
    "content-length: 5\r\n",
    "transfer-encoding: chunked\r\n",
    "connection: close\r\n",
    "expect: 100-continue\r\n",
    "te: trailers\r\n",
    "\r\n",
    "hello",
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "\0\0\0\x04\0\0\0\0\0",
    "\0\0\x05\x01\x05\0\0\0\x01\u{2}\u{4}\u{6}\u{7}\u{1}",
];

const ANSWER: &[&str] = &[
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.0 500 No\r\n",
    "HTTP/1.1 304 x\r\n",
    "content-type: text/event-stream\r\n",
    "content-type: application/json\r\n",
    "content-length: 20\r\n",
    "transfer-encoding: chunked\r\n",
    "trailer: x\r\n",
    "connection: close\r\n",
    "\r\n",
    "6\r\ndata: \r\n",
    "9\r\n{\"choices\r\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
    "data: [DONE]\n\n",
    "{\"error\":1}",
    "0\r\n\r\n",
    "0\r\nx: 1\r\n\r\n",
    "event: error\n",
];

fn cases() -> ProptestConfig {
    ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() }
}

/// Sends bytes, ends, and waits until the proxy has ended too.
fn send(address: SocketAddr, bytes: &[u8]) {
    let mut stream = connect(address);
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

fn serve(stream: std::net::TcpStream, said: &[u8]) {
    let mut stream = stream;
    let _ = stream.read(&mut [0; 4096]);
    let _ = stream.write_all(said);
}

#[test]
fn clients_that_send_noise() {
    count_panics();
    let ok = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
    let upstream = raw_server(|stream| serve(stream, ok));
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    proptest!(cases(), |(bytes in pieces(BEGINS, REQUEST))| {
        send(proxy.address(), &bytes);
    });
    assert!(exchange(proxy.address(), post("/v1/x", "{}").as_bytes()).ends_with(b"ok"));
    crate::support::until(|| proxy.tally().in_flight.get() == 0);
    let count = proxy.tally().requests.get();
    assert!(count > 30, "{count}");
    crate::support::until(|| notes.answers(0).len() as u64 == count);
    assert_eq!(PANICS.load(Ordering::SeqCst), 0);
    assert!(proxy.is_running());
}

#[test]
fn upstreams_that_send_noise() {
    count_panics();
    let said = Arc::new(Mutex::new(Vec::new()));
    let next = Arc::clone(&said);
    let upstream = raw_server(move |stream| {
        let said = next.lock().unwrap().clone();
        serve(stream, &said);
    });
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    let request = post("/v1/chat/completions", "{}");
    proptest!(cases(), |(bytes in pieces(ANSWER_BEGINS, ANSWER))| {
        *said.lock().unwrap() = bytes;
        send_and_read(proxy.address(), request.as_bytes());
    });
    *said.lock().unwrap() = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec();
    assert!(exchange(proxy.address(), request.as_bytes()).ends_with(b"ok"));
    crate::support::until(|| proxy.tally().in_flight.get() == 0);
    let count = proxy.tally().requests.get();
    crate::support::until(|| notes.answers(0).len() as u64 == count);
    assert_eq!(notes.questions().len() as u64, count);
    assert_eq!(PANICS.load(Ordering::SeqCst), 0);
}

fn send_and_read(address: SocketAddr, bytes: &[u8]) {
    let answer = exchange(address, bytes);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 "));
}
