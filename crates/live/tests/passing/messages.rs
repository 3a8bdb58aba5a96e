//! Messages without a body, with trailers, in steps: what HTTP allows passes as it is.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::channel;

use crate::support::{connect, exchange, raw_server, settings, split, start, unchunk};
use goodput_live::Ending;
use goodput_testkit::{Server, Step, answer};

/// One answer to one request through a proxy: what the client gets.
fn through(request: &str, answer: &'static str) -> Vec<u8> {
    let server = Server::start(move |_| vec![Step::write(answer), Step::Close]);
    let (proxy, notes) = start(settings(&server.url()));
    let came = exchange(proxy.address(), request.as_bytes());
    assert_eq!(notes.answers(1)[0].ending, Ending::Whole, "{request}");
    came
}

const GET: &str = "GET /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";

#[test]
fn answers_without_a_body_have_none() {
    let head = "HEAD /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    let came = through(head, "HTTP/1.1 200 OK\r\ncontent-length: 7\r\netag: a\r\n\r\n");
    let (lines, body) = split(&came);
    assert!(lines.contains("content-length: 7") && lines.contains("etag: a"), "{lines}");
    assert_eq!(body, b"");
    let came = through(GET, "HTTP/1.1 204 No Content\r\nx: y\r\n\r\n");
    let (lines, body) = split(&came);
    assert!(lines.starts_with("HTTP/1.1 204 ") && lines.contains("x: y"), "{lines}");
    assert!(!lines.contains("content-length") && !lines.contains("transfer-encoding"), "{lines}");
    assert_eq!(body, b"");
    let came = through(GET, "HTTP/1.1 304 Not Modified\r\netag: a\r\ncontent-length: 9\r\n\r\n");
    let (lines, body) = split(&came);
    assert!(lines.starts_with("HTTP/1.1 304 ") && lines.contains("etag: a"), "{lines}");
    assert_eq!(body, b"");
    let came = through(GET, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    assert!(split(&came).0.contains("content-length: 0"));
}

#[test]
fn headers_of_an_answer_pass_but_for_those_of_its_connection() {
    let came = through(
        GET,
        "HTTP/1.1 200 OK\r\nconnection: close, x-hop\r\nx-hop: 1\r\nkeep-alive: timeout=3\r\n\
         set-cookie: a=1\r\nset-cookie: b=2\r\nx-request-id: 7\r\nserver: s\r\n\
         content-encoding: gzip\r\ncontent-length: 2\r\n\r\n\x1f\x01",
    );
    let (head, body) = split(&came);
    for kept in ["set-cookie: a=1", "set-cookie: b=2", "x-request-id: 7", "server: s"] {
        assert!(head.contains(kept), "{kept}: {head}");
    }
    assert!(head.contains("content-encoding: gzip") && head.contains("content-length: 2"));
    for gone in ["x-hop", "keep-alive", "date:", "via:"] {
        assert!(!head.contains(gone), "{gone}: {head}");
    }
    assert_eq!(body, b"\x1f\x01");
}

#[test]
fn a_body_that_ends_with_its_connection_is_whole() {
    let came = through(GET, "HTTP/1.1 200 OK\r\n\r\nto the end");
    assert_eq!(unchunk(split(&came).1), (b"to the end".to_vec(), true));
    let came = through(GET, "HTTP/1.0 200 OK\r\n\r\nto the end");
    assert_eq!(unchunk(split(&came).1), (b"to the end".to_vec(), true));
}

#[test]
fn a_length_next_to_chunks_is_not_believed() {
    for length in ["3", "11", "99"] {
        let server = Server::start(move |_| {
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: ";
            let body = "\r\n\r\n6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n";
            vec![Step::write(format!("{head}{length}{body}")), Step::Close]
        });
        let (proxy, notes) = start(settings(&server.url()));
        let came = exchange(proxy.address(), GET.as_bytes());
        let (head, body) = split(&came);
        assert!(!head.contains("content-length"), "{head}");
        assert_eq!(unchunk(body), (b"hello world".to_vec(), true), "{length}");
        assert_eq!(notes.answers(1)[0].ending, Ending::Whole, "{length}");
    }
}

#[test]
fn trailers_pass_to_those_who_want_them() {
    let chunked = "HTTP/1.1 200 OK\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n\
                   2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n";
    let asks = GET.replace("connection: close", "connection: close, te\r\nte: trailers");
    let came = through(&asks, chunked);
    assert!(
        came.ends_with(b"2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n"),
        "{}",
        String::from_utf8_lossy(&came)
    );
    let came = through(GET, chunked);
    assert!(came.ends_with(b"2\r\nok\r\n0\r\n\r\n"), "{}", String::from_utf8_lossy(&came));
}

#[test]
fn trailers_of_a_request_pass() {
    let (sender, seen) = channel();
    let upstream = raw_server(move |mut stream| {
        let came = read_to(&mut stream, b"x-sum: 7\r\n\r\n");
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
        sender.send(came).unwrap();
    });
    let (proxy, _notes) = start(settings(&format!("http://{upstream}")));
    let request = "POST /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\ntrailer: x-sum\r\n\
                   transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n";
    assert_eq!(split(&exchange(proxy.address(), request.as_bytes())).1, b"ok");
    assert!(seen.recv().unwrap().ends_with(b"2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n"));
}

#[test]
fn a_body_that_goes_on_behind_its_answers_head_is_told_whole() {
    let upstream = raw_server(move |mut stream| {
        read_to(&mut stream, b"\r\n\r\n");
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab").unwrap();
        read_to(&mut stream, b"last");
        stream.write_all(b"cd").unwrap();
    });
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    let mut client = connect(proxy.address());
    let head = "POST /x HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\n";
    client.write_all(format!("{head}first").as_bytes()).unwrap();
    read_to(&mut client, b"\r\n\r\nab");
    client.write_all(b"last").unwrap();
    read_to(&mut client, b"cd");
    assert_eq!(notes.answers(1)[0].ending, Ending::Whole);
    assert_eq!(notes.questions()[0].body.as_deref(), Some(&b"firstlast"[..]));
}

fn read_to(stream: &mut TcpStream, end: &[u8]) -> Vec<u8> {
    let (mut came, mut byte) = (Vec::new(), [0]);
    while !came.ends_with(end) {
        stream.read_exact(&mut byte).unwrap();
        came.push(byte[0]);
    }
    came
}

#[test]
fn a_body_is_passed_on_while_it_comes() {
    let (sender, seen) = channel();
    let upstream = raw_server(move |mut stream| {
        read_to(&mut stream, b"\r\n\r\nfirst");
        sender.send(()).unwrap();
        read_to(&mut stream, b"second");
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
    });
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    let mut client = connect(proxy.address());
    let head = "POST /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 11\r\n\r\n";
    client.write_all(format!("{head}first").as_bytes()).unwrap();
    // The second half is sent only when the first is at the upstream.
    seen.recv().unwrap();
    assert!(notes.questions().is_empty());
    client.write_all(b"second").unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(split(&answer).1, b"ok");
    assert_eq!(notes.questions()[0].body.as_deref(), Some(&b"firstsecond"[..]));
}

#[test]
fn who_expects_to_be_asked_for_the_body_is_asked() {
    let server = Server::start(|_| vec![answer("200 OK", "text/plain", "ok")]);
    let (proxy, _notes) = start(settings(&server.url()));
    let mut client = connect(proxy.address());
    let head = "POST /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\nexpect: 100-continue\r\n\
                content-length: 5\r\n\r\n";
    client.write_all(head.as_bytes()).unwrap();
    let interim = read_to(&mut client, b"\r\n\r\n");
    assert!(interim.starts_with(b"HTTP/1.1 100 "), "{}", String::from_utf8_lossy(&interim));
    client.write_all(b"hello").unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(split(&answer).1, b"ok");
    let seen = &server.requests()[0];
    assert_eq!((seen.body.as_str(), seen.header("expect")), ("hello", None));
}

#[test]
fn a_connection_carries_one_request_after_the_other() {
    let server =
        Server::start(|request| vec![answer("200 OK", "text/plain", &request.number.to_string())]);
    let (proxy, _notes) = start(settings(&server.url()));
    let mut client = connect(proxy.address());
    for number in 0..3 {
        client.write_all(b"GET /x HTTP/1.1\r\nhost: h\r\n\r\n").unwrap();
        let head = read_to(&mut client, b"\r\n\r\n");
        assert!(head.starts_with(b"HTTP/1.1 200 OK"));
        let mut body = [0];
        client.read_exact(&mut body).unwrap();
        assert_eq!(body[0], b'0' + number);
    }
    assert_eq!(proxy.tally().connections.get(), 1);
    assert!(server.requests().iter().all(|request| request.connection == 0));
}

#[test]
fn bytes_that_are_no_text_pass() {
    let (sender, seen) = channel();
    let upstream = raw_server(move |mut stream| {
        sender.send(read_to(&mut stream, b"\xff\xfe\0")).unwrap();
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(b"data: \xff\n\n").unwrap();
    });
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    let mut request = b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nx-latin: \xe9\r\n\
                        connection: close\r\ncontent-length: 3\r\n\r\n"
        .to_vec();
    request.extend_from_slice(b"\xff\xfe\0");
    let answer = exchange(proxy.address(), &request);
    assert_eq!(split(&answer).1, b"data: \xff\n\n");
    let came = seen.recv().unwrap();
    assert!(came.windows(10).any(|ten| ten == b"x-latin: \xe9"));
    let told = notes.answers(1).remove(0);
    assert_eq!(told.ending, Ending::Whole);
    assert_eq!(told.exchange.failure.unwrap().class, goodput_model::ErrorClass::BadEvent);
}

#[test]
fn a_body_of_unknown_length_passes_whatever_the_method() {
    for method in ["GET", "HEAD", "POST", "DELETE"] {
        let (tell, told) = channel();
        let upstream = raw_server(move |mut stream| {
            let (mut came, mut byte) = (Vec::new(), [0]);
            let is_chunked = |came: &[u8]| came.windows(9).any(|nine| nine == b": chunked");
            while !came.ends_with(b"\r\n\r\n")
                || (is_chunked(&came) && !came.ends_with(b"0\r\n\r\n"))
            {
                stream.read_exact(&mut byte).unwrap();
                came.push(byte[0]);
            }
            tell.send(came).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        });
        let (proxy, _notes) = start(settings(&format!("http://{upstream}")));
        let request = format!(
            "{method} /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\
             transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        );
        let answer = exchange(proxy.address(), request.as_bytes());
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{method}");
        let came = told.recv().unwrap();
        let (head, body) = split(&came);
        assert!(head.contains("transfer-encoding: chunked"), "{method}: {head}");
        assert_eq!(unchunk(body), (b"hello".to_vec(), true), "{method}");
    }
}

#[test]
fn an_answer_in_another_transfer_coding_is_not_passed_off_as_plain() {
    for coding in ["gzip, chunked", "gzip"] {
        let server = Server::start(move |_| {
            let head = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {coding}\r\n\r\n");
            vec![Step::write(head + "2\r\n\x1f\x01\r\n0\r\n\r\n"), Step::Close]
        });
        let (proxy, notes) = start(settings(&server.url()));
        let came = exchange(proxy.address(), GET.as_bytes());
        assert!(came.starts_with(b"HTTP/1.1 502 "), "{coding}");
        assert_eq!(notes.answers(1)[0].ending, Ending::Broken, "{coding}");
    }
}
