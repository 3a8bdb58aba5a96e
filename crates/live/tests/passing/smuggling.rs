//! Requests that two servers could understand differently are refused, or arrive as one that cannot.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::{exchange, settings, split, start};
use goodput_testkit::{Server, answer};

/// What a refused request is answered with, on a proxy of its own; nothing of it may reach the upstream.
#[track_caller]
fn refused(request: &str, status: &str) {
    let server = Server::start(|_| vec![answer("200 OK", "text/plain", "ok")]);
    let (proxy, _notes) = start(settings(&server.url()));
    let answer = exchange(proxy.address(), request.as_bytes());
    let (head, _) = split(&answer);
    assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{request:?}: {head}");
    assert_eq!(answer.windows(9).filter(|nine| *nine == b"HTTP/1.1 ").count(), 1, "{request:?}");
    assert!(server.requests().is_empty(), "{request:?}");
}

/// What the upstream gets of a request.
#[track_caller]
fn passed(request: &str) -> Vec<goodput_testkit::ArrivedRequest> {
    let server = Server::start(|_| vec![answer("200 OK", "text/plain", "ok")]);
    let (proxy, _notes) = start(settings(&server.url()));
    exchange(proxy.address(), request.as_bytes());
    server.requests()
}

const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nhost: h\r\n\r\n";

#[test]
fn heads_that_lie_about_their_body() {
    let post = "POST /x HTTP/1.1\r\nhost: h\r\n";
    let cases = [
        ("content-length: 5\r\ncontent-length: 6\r\n\r\nhello", "400"),
        ("content-length: 5, 6\r\n\r\nhello", "400"),
        ("content-length: +5\r\n\r\nhello", "400"),
        ("content-length: 0x5\r\n\r\nhello", "400"),
        ("content-length: -5\r\n\r\nhello", "400"),
        ("content-length : 5\r\n\r\nhello", "400"),
        (" content-length: 5\r\n\r\nhello", "400"),
        ("x: a\r\n content-length: 5\r\n\r\nhello", "400"),
        ("content-length: 99999999999999999999\r\n\r\nhello", "400"),
        ("transfer-encoding: gzip\r\n\r\nhello", "400"),
        ("transfer-encoding: xchunked\r\n\r\n0\r\n\r\n", "400"),
        ("transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n", "400"),
        ("transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501"),
        ("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "501"),
        ("transfer-encoding: chunked\r\ntransfer-encoding: x\r\n\r\n0\r\n\r\n", "400"),
        ("host: other\r\ncontent-length: 0\r\n\r\n", "400"),
        ("x: a\rb\r\ncontent-length: 0\r\n\r\n", "400"),
        ("x: a\0b\r\ncontent-length: 0\r\n\r\n", "400"),
        ("x y: z\r\ncontent-length: 0\r\n\r\n", "400"),
        (": z\r\ncontent-length: 0\r\n\r\n", "400"),
        ("upgrade: websocket\r\nconnection: upgrade, close\r\ncontent-length: 0\r\n\r\n", "501"),
        ("expect: the-moon\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", "417"),
    ];
    for (rest, status) in cases {
        refused(&format!("{post}{rest}"), status);
    }
}

#[test]
fn lines_that_are_no_requests() {
    let end = "HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    refused(&format!("CONNECT h:443 {end}"), "405");
    refused(&format!("OPTIONS * {end}"), "400");
    refused("GET / HTTP/1.1\r\nconnection: close\r\n\r\n", "400");
    refused("GET /a b HTTP/1.1\r\nhost: h\r\n\r\n", "400");
    refused("GET / HTTP/3.0\r\nhost: h\r\n\r\n", "400");
    refused("POST /x HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "400");
}

#[test]
fn both_framings_at_once_become_one() {
    for both in [
        "content-length: 4\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 4\r\n",
    ] {
        let (sender, came) = std::sync::mpsc::channel();
        let upstream = crate::support::raw_server(move |mut stream| {
            let request = read_chunked(&stream);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
            sender.send((request, crate::support::read_all(&stream))).unwrap();
        });
        let (proxy, _notes) = start(settings(&format!("http://{upstream}")));
        let request = format!("POST /x HTTP/1.1\r\nhost: h\r\n{both}\r\n0\r\n\r\n{HIDDEN}");
        let answer = exchange(proxy.address(), request.as_bytes());
        assert_eq!(split(&answer).1, b"ok", "{both}");
        drop(proxy);
        let (request, rest) = came.recv().unwrap();
        assert!(request.contains("transfer-encoding: chunked"), "{request}");
        assert!(!request.contains("content-length"), "{request}");
        assert_eq!(rest, b"", "{both}");
    }
}

/// A request with a chunked body, to its last byte.
fn read_chunked(mut stream: &TcpStream) -> String {
    let mut came = Vec::new();
    let mut byte = [0];
    while !came.ends_with(b"0\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        came.push(byte[0]);
    }
    String::from_utf8(came).unwrap()
}

#[test]
fn what_follows_a_request_is_a_request_of_its_own() {
    let request = format!("POST /x HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nhello{HIDDEN}");
    let seen = passed(
        &request
            .replace("GET /hidden HTTP/1.1\r\n", "GET /hidden HTTP/1.1\r\nconnection: close\r\n"),
    );
    let lines: Vec<_> = seen.iter().map(|request| request.line.as_str()).collect();
    assert_eq!(lines, ["POST /x HTTP/1.1", "GET /hidden HTTP/1.1"]);
    assert_eq!(seen[0].body, "hello");
}

#[test]
fn equal_lengths_become_one() {
    let seen = passed(
        "POST /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 5\r\n\
         content-length: 5\r\n\r\nhello",
    );
    let lengths = seen[0].headers.iter().filter(|line| line.starts_with("content-length")).count();
    assert_eq!((seen.len(), lengths, seen[0].body.as_str()), (1, 1, "hello"));
}

#[test]
fn names_in_connection_cannot_take_the_framing_away() {
    let seen = passed(
        "POST /x HTTP/1.1\r\nhost: h\r\nconnection: close, content-length, host\r\n\
         content-length: 5\r\n\r\nhello",
    );
    assert_eq!((seen.len(), seen[0].body.as_str()), (1, "hello"));
    assert!(seen[0].header("host").is_some());
}

#[test]
fn chunks_that_cheat_are_no_body() {
    let head = "POST /v1/x HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n";
    for body in [
        "5\r\nhelloX0\r\n\r\n",
        "5\nhello\n0\n\n",
        "zz\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "5;\nx\r\nhello\r\n0\r\n\r\n",
        "5\rhello\r\n0\r\n\r\n",
    ] {
        // The head has been passed on when the body turns out bad; no whole request may arrive, and
        // nothing after it.
        let upstream = crate::support::raw_server(|stream| {
            let came = crate::support::read_all(&stream);
            assert!(!came.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&came));
        });
        let (proxy, notes) = start(settings(&format!("http://{upstream}")));
        let request = format!("{head}{body}{HIDDEN}");
        let answer = exchange(proxy.address(), request.as_bytes());
        assert!(
            answer.starts_with(b"HTTP/1.1 400 "),
            "{body:?}: {}",
            String::from_utf8_lossy(&answer)
        );
        assert!(notes.questions().is_empty(), "{body:?}");
        assert_eq!(notes.answers(1).len(), 1);
        assert_eq!(proxy.tally().requests.get(), 1);
    }
}

#[test]
fn extensions_of_chunks_do_not_pass() {
    let server = crate::support::raw_server(|mut stream| {
        let is_clean = read_chunked(&stream).ends_with("5\r\nhello\r\n0\r\n\r\n");
        let body = if is_clean { "clean" } else { "dirty" };
        let text = format!("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).unwrap();
    });
    let (proxy, _notes) = start(settings(&format!("http://{server}")));
    let answer = exchange(
        proxy.address(),
        b"POST /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n\
          5;a=\"b\"\r\nhello\r\n0\r\n\r\n",
    );
    assert_eq!(split(&answer).1, b"clean");
}

#[test]
fn its_own_upstream_is_found_out() {
    // The port is known only after the start: take one, and give it back.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut settings = settings(&format!("http://{port}"));
    settings.listen = port;
    let (proxy, _notes) = start(settings);
    let request = b"GET /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    assert!(exchange(proxy.address(), request).starts_with(b"HTTP/1.1 508 "));
}

#[test]
fn lines_that_end_in_a_bare_lf() {
    for head in [
        "GET /x HTTP/1.1\nhost: h\r\n\r\n",
        "GET /x HTTP/1.1\r\nhost: h\nx: y\r\n\r\n",
        "GET /x HTTP/1.1\r\nhost: h\r\nx: y\n\r\n",
        "GET /x HTTP/1.1\r\nhost: h\r\n\n",
        "GET /x HTTP/1.1\nhost: h\n\n",
        "\nGET /x HTTP/1.1\r\nhost: h\r\n\r\n",
        "POST /x HTTP/1.1\r\nhost: h\r\nx: y\ncontent-length: 5\r\n\r\nhello",
    ] {
        refused(head, "400");
    }
    // The LF comes in a read of its own.
    let server = Server::start(|_| vec![answer("200 OK", "text/plain", "ok")]);
    let (proxy, _notes) = start(settings(&server.url()));
    let mut client = crate::support::connect(proxy.address());
    for piece in ["GET /x HTTP/1.1\r\nhost: h", "\n", "\n"] {
        client.write_all(piece.as_bytes()).unwrap();
        goodput_clock::pause(goodput_model::Nanos::from_millis(20));
    }
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&answer));
    assert!(server.requests().is_empty());
}

/// Two requests with bodies that hold every line end, by length and in chunks.
const BOTH: &str = "POST /one HTTP/1.1\r\nhost: h\r\ncontent-length: 11\r\n\r\na\nb\r\n\r\n\n\nc\n\
    POST /two HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n\
    4;x=\"0\"\r\n\na\n\n\r\n0B\r\n0123456789\n\r\n0\r\nx: y\r\n\r\n";

#[test]
fn a_bare_lf_is_found_behind_any_body() {
    let upstream = || {
        crate::support::raw_server(|mut stream| {
            let (mut came, mut byte) = (Vec::new(), [0]);
            while stream.read_exact(&mut byte).is_ok() {
                came.push(byte[0]);
                if came.ends_with(b"\n\nc\n") || came.ends_with(b"0\r\n\r\n") {
                    let length = came.len();
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n{length:4}");
                    stream.write_all(head.as_bytes()).unwrap();
                    came.clear();
                }
            }
        })
    };
    let last = "GET /hidden HTTP/1.1\r\nhost: h\nconnection: close\r\n\r\n";
    // All at once, byte by byte, and cut in two where it hurts most.
    let text = format!("{BOTH}{last}");
    let around = |what: &str| text.find(what).unwrap() + what.len();
    let ends = ["\r\n\r\na", "c\n", "0\r\nx", "y\r\n\r", "y\r\n\r\n"].map(around);
    let cuts = ends.iter().map(|end| vec![*end]);
    let every = (1..text.len()).collect();
    for cuts in cuts.chain([vec![], every]) {
        let (proxy, notes) = start(settings(&format!("http://{}", upstream())));
        let mut client = crate::support::connect(proxy.address());
        let mut from = 0;
        for cut in cuts.iter().copied().chain([text.len()]) {
            // The refusal may come before the last bytes.
            let _ = client.write_all(&text.as_bytes()[from..cut]);
            from = cut;
            if cuts.len() == 1 {
                goodput_clock::pause(goodput_model::Nanos::from_millis(20));
            }
        }
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer);
        let statuses: Vec<_> =
            answer.match_indices("HTTP/1.1 ").map(|(at, _)| &answer[at + 9..at + 12]).collect();
        assert_eq!(statuses, ["200", "200", "400"], "{cuts:?}: {answer}");
        let bodies: Vec<_> = notes.questions().into_iter().filter_map(|asked| asked.body).collect();
        assert_eq!(bodies, ["a\nb\r\n\r\n\n\nc\n", "\na\n\n0123456789\n"], "{cuts:?}");
    }
}

#[test]
fn a_bare_lf_in_trailers_is_no_end_of_a_body() {
    for trailers in ["x: y\n\r\n", "x: y\r\n\n", "\n"] {
        let upstream = crate::support::raw_server(|stream| {
            let came = crate::support::read_all(&stream);
            assert!(!came.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&came));
        });
        let (proxy, notes) = start(settings(&format!("http://{upstream}")));
        let head = "POST /x HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n";
        let request = format!("{head}1\r\na\r\n0\r\n{trailers}{HIDDEN}");
        let answer = exchange(proxy.address(), request.as_bytes());
        assert!(answer.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&answer));
        assert!(notes.questions().is_empty());
        assert_eq!((notes.answers(1).len(), proxy.tally().requests.get()), (1, 1));
    }
}
