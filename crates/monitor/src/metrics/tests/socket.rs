//! Heads of all kinds, and clients of all kinds.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use super::super::server::MOST_HEAD;
use super::*;

/// The status of what a head is answered, and its body.
fn answered(address: SocketAddr, head: &[u8]) -> (String, String) {
    let answer = answer(address, &[head, b"\r\n\r\n"].concat());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let length = format!("Content-Length: {}", body.len());
    assert!(body.is_empty() || head.contains(&length), "{answer}");
    (head.split(' ').nth(1).unwrap().to_owned(), body.to_owned())
}

#[test]
fn heads_are_answered_by_their_method_path_and_wishes() {
    let strange = "403 Forbidden: use an address or a name of this machine\n";
    let cases: [(&[u8], &str, &str); 21] = [
        (b"GET /metrics HTTP/1.1\r\nHost: localhost:9400", "200", "page Text"),
        (b"GET /metrics HTTP/1.1\r\nHost: evil.example:9400", "403", strange),
        (b"GET / HTTP/1.1\r\nhost : evil.example", "400", "400 Bad Request\n"),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example", "403", strange),
        (b"HEAD /metrics HTTP/1.1\r\nHost:", "403", ""),
        (b"GET /metrics?a=b HTTP/1.0", "200", "page Text"),
        (b"GET /metrics HTTP/1.1\r\nAccept: */*", "200", "page Text"),
        (
            b"GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text;version=1.0.0;q=0.6, text/plain;q=0.5",
            "200",
            "page OpenMetrics",
        ),
        (
            b"GET /metrics HTTP/1.1\r\nAccept: text/plain,Application/OpenMetrics-Text; q=0.5",
            "200",
            "page Text",
        ),
        (b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text;q=0", "200", "page Text"),
        (b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text;q=x", "200", "page Text"),
        (b"HEAD /metrics HTTP/1.1", "200", ""),
        (b"GET / HTTP/1.1", "200", "goodput: the metrics of this run are at /metrics\n"),
        (b"GET /metrics/ HTTP/1.1", "404", "404 Not Found\n"),
        (b"GET /../metrics HTTP/1.1", "404", "404 Not Found\n"),
        (b"POST /metrics HTTP/1.1", "405", "405 Method Not Allowed\n"),
        (b"GET /metrics HTTP/2", "400", "400 Bad Request\n"),
        (b"GET  /metrics HTTP/1.1", "400", "400 Bad Request\n"),
        (b"GET /metrics", "400", "400 Bad Request\n"),
        (b"", "400", "400 Bad Request\n"),
        (b"\x16\x03\x01\xff\x00\n: : :", "400", "400 Bad Request\n"),
    ];
    let address = serve_pages(ms(60_000), |format| format!("page {format:?}"));
    for (head, status, body) in cases {
        let shown = String::from_utf8_lossy(head);
        assert_eq!(answered(address, head), (status.to_owned(), body.to_owned()), "{shown}");
    }
}

/// A server of the word `page` that waits so long for its clients.
fn serve(patience: Nanos) -> SocketAddr {
    serve_pages(patience, |_| "page".to_owned())
}

fn serve_pages(patience: Nanos, page: fn(MetricsFormat) -> String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    server::start_server(page, patience, listener).unwrap();
    address
}

fn send(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    // A server that has had enough may have closed meanwhile.
    let _ = stream.write_all(bytes);
    stream
}

/// Everything that comes until the end, or until the connection breaks.
fn heard(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    String::from_utf8(all).unwrap()
}

/// The answer to these bytes. A seat comes free a moment after its client has gone.
fn answer(address: SocketAddr, bytes: &[u8]) -> String {
    let end = now() + ms(60_000);
    loop {
        let said = heard(send(address, bytes));
        if !said.is_empty() && !said.starts_with("HTTP/1.1 503") {
            return said;
        }
        assert!(now() < end, "no seat came free");
        goodput_clock::pause(ms(10));
    }
}

const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn silent_or_odd_clients_keep_no_other_away() {
    let address = serve(ms(60_000));
    let mut silent: Vec<TcpStream> = (0..8).map(|_| send(address, b"GET /met")).collect();
    // All seats are taken: turned away, and at once.
    assert!(!heard(send(address, GET)).contains("page"));
    drop(silent.pop());
    assert!(answer(address, GET).ends_with("\r\n\r\npage"));
    for garbage in [&b"\0\xff\n\n"[..], b"\n\n", b"GET\r\n\r\n"] {
        assert!(answer(address, garbage).starts_with("HTTP/1.1 400"), "{garbage:?}");
    }
    let long = [b"GET / HTTP/1.1\r\nA: ".to_vec(), vec![b'a'; MOST_HEAD], b"\r\n\r\n".to_vec()];
    assert!(answer(address, &long.concat()).starts_with("HTTP/1.1 431"));
    // One that comes in pieces is as good as another.
    let mut slow = silent.pop().unwrap();
    slow.write_all(&GET[8..]).unwrap();
    assert!(heard(slow).ends_with("\r\n\r\npage"));
    // An unexpected body does not prevent the answer.
    let post = [b"POST / HTTP/1.1\r\n\r\n".to_vec(), vec![b'x'; 32 * 1024]].concat();
    let said = answer(address, &post);
    assert!(
        said.starts_with("HTTP/1.1 405") && said.contains("\r\nAllow: GET, HEAD\r\n"),
        "{said}"
    );
    // Half a head and an end.
    let half = silent.pop().unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    assert!(heard(half).starts_with("HTTP/1.1 400"));
}

#[test]
fn silent_clients_lose_their_seats_after_a_while() {
    let address = serve(ms(300));
    let silent: Vec<TcpStream> = (0..8).map(|_| send(address, b"G")).collect();
    for stream in silent {
        let said = heard(stream);
        assert!(said.starts_with("HTTP/1.1 408"), "{said}");
    }
    assert!(answer(address, GET).ends_with("\r\n\r\npage"));
}
