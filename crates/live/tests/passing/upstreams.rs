//! Answers of HTTP/1.1 upstreams, read by hand: early, in steps, in two framings, cut anywhere.

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use crate::support::{connect, exchange, post, raw_server, settings, split, start, unchunk, until};
use goodput_clock::pause;
use goodput_live::{Ending, Upstream};
use goodput_model::{ErrorClass, Nanos};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

const PATH: &str = "/v1/x";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn read_to(stream: &mut impl Read, end: &[u8]) -> Vec<u8> {
    let (mut came, mut byte) = (Vec::new(), [0]);
    while !came.ends_with(end) {
        stream.read_exact(&mut byte).unwrap();
        came.push(byte[0]);
    }
    came
}

/// A server that says this to every request, with its connections counted. It keeps them open.
fn says(text: &str) -> (SocketAddr, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, text) = (Arc::clone(&count), text.as_bytes().to_vec());
    let address = raw_server(move |mut stream| {
        counted.fetch_add(1, Ordering::SeqCst);
        let (mut came, mut byte) = (Vec::new(), [0]);
        while stream.read(&mut byte).is_ok_and(|n| n > 0) {
            came.push(byte[0]);
            // The bodies that are sent here.
            if came.ends_with(b"{}") || came.ends_with(b"\r\n\r\nhe") {
                stream.write_all(&text).unwrap();
            }
        }
    });
    (address, count)
}

#[test]
fn an_answer_may_come_before_the_request_is_whole() {
    let (tell, told) = channel();
    let upstream = raw_server(move |mut stream| {
        read_to(&mut stream, b"first");
        let begin = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nearly\r\n";
        stream.write_all(begin.as_bytes()).unwrap();
        let rest = read_to(&mut BufReader::new(&stream), b"0\r\n\r\n");
        tell.send(rest).unwrap();
        stream.write_all(b"4\r\nlate\r\n0\r\n\r\n").unwrap();
    });
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    let mut client = connect(proxy.address());
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n"
    );
    client.write_all(head.as_bytes()).unwrap();
    read_to(&mut client, b"early\r\n");
    // More than a socket takes at once.
    let long = vec![b'x'; 6 << 20];
    client.write_all(format!("{:x}\r\n", long.len()).as_bytes()).unwrap();
    client.write_all(&long).unwrap();
    client.write_all(b"\r\n0\r\n\r\n").unwrap();
    assert!(read_to(&mut client, b"0\r\n\r\n").ends_with(b"4\r\nlate\r\n0\r\n\r\n"));
    let rest = told.recv().unwrap();
    let body = unchunk(&rest[2..]);
    assert!(body == (long, true), "{}", body.0.len());
    let told = notes.answers(1).remove(0);
    assert_eq!((told.ending, told.bytes), (Ending::Whole, 9));
}

#[test]
fn a_connection_whose_request_was_not_whole_carries_no_other() {
    let (upstream, count) = says(std::str::from_utf8(OK).unwrap());
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    let mut client = connect(proxy.address());
    let half = format!("POST {PATH} HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nhe");
    client.write_all(half.as_bytes()).unwrap();
    assert!(read_to(&mut client, b"\r\n\r\nok").starts_with(b"HTTP/1.1 200 "));
    notes.answers(1);
    for connections in [2, 2] {
        assert!(exchange(proxy.address(), post(PATH, "{}").as_bytes()).ends_with(b"ok"));
        assert_eq!(count.load(Ordering::SeqCst), connections);
    }
}

#[test]
fn interim_answers_are_passed_over() {
    let (upstream, count) = says(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n\
         HTTP/1.1 200 Fine\r\ncontent-length: 2\r\n\r\nok",
    );
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    for _ in 0..2 {
        let answer = exchange(proxy.address(), post(PATH, "{}").as_bytes());
        let (head, body) = split(&answer);
        assert!(head.starts_with("HTTP/1.1 200 Fine\r\n") && !head.contains("link"), "{head}");
        assert_eq!(body, b"ok");
    }
    assert_eq!((notes.answers(2).len(), count.load(Ordering::SeqCst)), (2, 1));
}

#[test]
fn of_two_framings_one_is_passed_on() {
    let (upstream, count) = says(
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n\
         5\r\nhello\r\n0\r\n\r\n",
    );
    let (proxy, _notes) = start(settings(&format!("http://{upstream}")));
    for connections in [1, 2] {
        let answer = exchange(proxy.address(), post(PATH, "{}").as_bytes());
        let (head, body) = split(&answer);
        assert!(!head.contains("content-length"), "{head}");
        assert_eq!(unchunk(body), (b"hello".to_vec(), true));
        // A server that says both gets no second request on the connection.
        assert_eq!(count.load(Ordering::SeqCst), connections);
    }
}

#[test]
fn a_head_may_be_as_long_as_the_limit_and_no_longer() {
    let begin = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx: ";
    for (length, status) in [(20_000, "200"), (20_001, "502")] {
        let padding = "y".repeat(length - begin.len() - 4);
        let (upstream, _) = says(&format!("{begin}{padding}\r\n\r\nok"));
        let mut settings = settings(&format!("http://{upstream}"));
        settings.limits.head_bytes = 20_000;
        let (proxy, notes) = start(settings);
        let answer = exchange(proxy.address(), post(PATH, "{}").as_bytes());
        assert!(answer.starts_with(format!("HTTP/1.1 {status} ").as_bytes()), "{length}");
        let failure = notes.answers(1).remove(0).exchange.failure;
        let class = failure.map(|failure| failure.class);
        assert_eq!(class, (status == "502").then_some(ErrorClass::BadHttp), "{length}");
    }
}

#[test]
fn a_cut_is_never_an_end_wherever_it_is() {
    let text = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x\r\n\r\n\
                3\r\nabc\r\nA\r\n0123456789\r\n0\r\nx: 1\r\n\r\n";
    let head = text.find("\r\n\r\n").unwrap() + 4;
    let length = Arc::new(AtomicUsize::new(0));
    let next = Arc::clone(&length);
    let upstream = raw_server(move |mut stream| {
        read_to(&mut stream, b"{}");
        stream.write_all(&text.as_bytes()[..next.load(Ordering::SeqCst)]).unwrap();
    });
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    for cut in 0..=text.len() {
        length.store(cut, Ordering::SeqCst);
        let answer = exchange(proxy.address(), post(PATH, "{}").as_bytes());
        let told = notes.answers(cut + 1).remove(cut);
        let class = told.exchange.failure.map(|failure| failure.class);
        if cut < head {
            assert!(answer.starts_with(b"HTTP/1.1 502 "), "{cut}");
            assert_eq!((told.ending, class), (Ending::Broken, Some(ErrorClass::Closed)), "{cut}");
        } else {
            let (body, is_whole) = unchunk(split(&answer).1);
            assert!(b"abc0123456789".starts_with(body.as_slice()), "{cut}");
            let is_all = cut == text.len();
            let expected = if is_all { Ending::Whole } else { Ending::Broken };
            assert_eq!((is_whole, told.ending), (is_all, expected), "{cut}");
            assert_eq!(class, (!is_all).then_some(ErrorClass::Cut), "{cut}");
        }
    }
    assert_eq!(proxy.tally().resent.get(), 0);
}

#[test]
fn nothing_that_an_upstream_says_is_in_the_words_of_a_failure() {
    for text in [
        "SECRET\r\n\r\n",
        "HTTP/1.1 200 OK\r\nSECRET\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: SECRET\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nSECRET\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nSECRET\r\n\r\n",
    ] {
        let (upstream, _) = says(text);
        let (proxy, notes) = start(settings(&format!("http://{upstream}")));
        exchange(proxy.address(), post(PATH, "{}").as_bytes());
        let failure = notes.answers(1).remove(0).exchange.failure.unwrap();
        assert_eq!(failure.class, ErrorClass::BadHttp, "{text:?}");
        assert!(!failure.message.contains("SECRET"), "{}", failure.message);
    }
}

#[test]
fn a_request_that_never_left_whole_is_sent_again_however_long_it_took() {
    const LENGTH: usize = 12 << 20;
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let upstream = raw_server(move |mut stream| {
        let is_first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        read_to(&mut stream, b"\r\n\r\n");
        if is_first {
            stream.write_all(OK).unwrap();
            // Of the second request it takes the head, and leaves after longer than an idle
            // connection would be given.
            read_to(&mut stream, b"\r\n\r\n");
            return pause(Nanos::from_millis(1_200));
        }
        let body = std::io::copy(&mut (&stream).take(LENGTH as u64), &mut std::io::sink());
        assert_eq!(body.unwrap(), LENGTH as u64);
        stream.write_all(OK).unwrap();
    });
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    assert!(exchange(proxy.address(), post(PATH, "").as_bytes()).ends_with(b"ok"));
    let answer = exchange(proxy.address(), post(PATH, &"x".repeat(LENGTH)).as_bytes());
    assert!(answer.ends_with(b"ok"), "{}", String::from_utf8_lossy(&answer));
    assert_eq!((count.load(Ordering::SeqCst), proxy.tally().resent.get()), (2, 1));
    assert_eq!(notes.answers(2)[1].exchange.reconnects, 1);
}

#[test]
fn the_line_before_a_chunk_may_have_4_kib_and_no_more() {
    const MOST: usize = 4 << 10;
    // With its size, the sign before the extension and the line end.
    let line = |length: usize| format!("5;{}\r\n", "x".repeat(length - 4));
    let cases = [
        (format!("{}again\r\n0\r\n\r\n", line(MOST)), "helloagain"),
        (format!("{}again\r\n0\r\n\r\n", line(MOST + 1)), "hello"),
        // Nothing more is waited for when the line is too long already: this one has no end.
        (format!("5;{}", "x".repeat(MOST)), "hello"),
    ];
    for (rest, passed) in cases {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n";
        let (upstream, _) = says(&format!("{head}{rest}"));
        let (proxy, notes) = start(settings(&format!("http://{upstream}")));
        let answer = exchange(proxy.address(), post(PATH, "{}").as_bytes());
        let is_whole = passed == "helloagain";
        let length = rest.len();
        assert_eq!(unchunk(split(&answer).1), (passed.as_bytes().to_vec(), is_whole), "{length}");
        let failure = notes.answers(1).remove(0).exchange.failure;
        let class = failure.map(|failure| failure.class);
        assert_eq!(class, (!is_whole).then_some(ErrorClass::BadHttp), "{length}");
    }
}

#[test]
fn of_connections_that_are_idle_256_are_kept() {
    const MOST: usize = 256;
    const MANY: usize = MOST + 4;
    let [held, left]: [Arc<AtomicUsize>; 2] = Default::default();
    let (holding, leaving) = (Arc::clone(&held), Arc::clone(&left));
    let upstream = raw_server(move |mut stream| {
        read_to(&mut stream, b"{}");
        holding.fetch_add(1, Ordering::SeqCst);
        // All of them at once, so that each has a connection of its own.
        until(|| holding.load(Ordering::SeqCst) == MANY);
        stream.write_all(OK).unwrap();
        crate::support::read_all(&stream);
        leaving.fetch_add(1, Ordering::SeqCst);
    });
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    let address = proxy.address();
    let ask = move || exchange(address, post(PATH, "{}").as_bytes());
    let asked: Vec<_> = (0..MANY).map(|_| std::thread::spawn(ask)).collect();
    for asked in asked {
        assert!(asked.join().unwrap().ends_with(b"ok"));
    }
    notes.answers(MANY);
    until(|| left.load(Ordering::SeqCst) == MANY - MOST);
    // No others follow.
    pause(Nanos::from_millis(200));
    assert_eq!(left.load(Ordering::SeqCst), MANY - MOST);
}

type Tls = StreamOwned<ServerConnection, TcpStream>;

/// A server under TLS.
fn tls_server(serve: impl Fn(&mut Tls) + Send + Sync + 'static) -> SocketAddr {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    raw_server(move |stream| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        serve(&mut StreamOwned::new(connection, stream));
    })
}

#[test]
fn a_farewell_of_tls_is_no_answer() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    // Answers one request, and takes leave in good order when the second comes.
    let upstream = tls_server(move |stream| {
        read_to(stream, b"{}");
        stream.write_all(OK).unwrap();
        stream.flush().unwrap();
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            read_to(stream, b"{}");
        }
        stream.conn.send_close_notify();
        stream.flush().unwrap();
    });
    let url = format!("https://localhost:{}", upstream.port());
    let mut settings = settings(&url);
    settings.upstream = Upstream { insecure: true, ..settings.upstream };
    let (proxy, notes) = start(settings);
    for _ in 0..2 {
        let answer = exchange(proxy.address(), post(PATH, "{}").as_bytes());
        assert!(answer.ends_with(b"ok"), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!((count.load(Ordering::SeqCst), proxy.tally().resent.get()), (2, 1));
    let reconnects: Vec<_> = notes.answers(2).iter().map(|told| told.exchange.reconnects).collect();
    assert_eq!(reconnects, [0, 1]);
}
