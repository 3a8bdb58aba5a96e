//! What is too slow, too long or too much is held back or ended, and nothing grows with it.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::{connect, exchange, post, raw_server, settings, split, start, until};
use goodput_clock::{now, pause};
use goodput_live::Ending;
use goodput_model::Nanos;
use goodput_testkit::{Server, answer};

const CHAT: &str = "/v1/chat/completions";

/// More than all buffers of four sockets can hold, and far less than what is sent.
const BUFFERED: u64 = 40 << 20;

/// Writes until nothing has been taken for a while; how much was.
fn write_until_stuck(stream: &mut TcpStream, most: u64) -> u64 {
    stream.set_nonblocking(true).unwrap();
    let piece = vec![b'x'; 64 << 10];
    let (mut sent, mut moved) = (0, now());
    while sent < most && now() - moved < Nanos::from_millis(500) {
        let room = piece.len().min((most - sent) as usize);
        match stream.write(&piece[..room]) {
            Ok(n) => (sent, moved) = (sent + n as u64, now()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => pause(Nanos::from_millis(2)),
            Err(error) => panic!("{error}"),
        }
    }
    stream.set_nonblocking(false).unwrap();
    sent
}

fn read_head(stream: &mut TcpStream) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
}

#[test]
fn a_long_body_waits_for_an_upstream_that_does_not_read() {
    const LENGTH: u64 = 100 << 20;
    let (go, gone) = channel::<()>();
    let (count, counted) = channel();
    let gone = std::sync::Mutex::new(gone);
    let upstream = raw_server(move |mut stream| {
        read_head(&mut stream);
        gone.lock().unwrap().recv().unwrap();
        let mut body = std::io::copy(&mut (&stream).take(LENGTH), &mut std::io::sink());
        count.send(body.as_mut().map_or(0, |n| *n)).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
    });
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    let mut client = connect(proxy.address());
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: {LENGTH}\r\n\r\n"
    );
    client.write_all(head.as_bytes()).unwrap();
    let sent = write_until_stuck(&mut client, LENGTH);
    assert!(sent < BUFFERED, "{sent}");
    go.send(()).unwrap();
    let piece = vec![b'x'; 1 << 20];
    let mut left = LENGTH - sent;
    while left > 0 {
        let n = left.min(piece.len() as u64);
        client.write_all(&piece[..n as usize]).unwrap();
        left -= n;
    }
    assert_eq!(counted.recv().unwrap(), LENGTH);
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(split(&answer).1, b"ok");
    let told = notes.answers(1).remove(0);
    assert_eq!((told.ending, told.exchange.body_bytes), (Ending::Whole, LENGTH));
    // Longer than what is kept: the witness hears of it, without it.
    assert_eq!(notes.questions()[0].body, None);
    assert_eq!(proxy.tally().bytes_in.get(), LENGTH);
}

#[test]
fn a_long_answer_waits_for_a_client_that_does_not_read() {
    const LENGTH: u64 = 100 << 20;
    let sent = Arc::new(AtomicU64::new(0));
    let stuck = Arc::clone(&sent);
    let upstream = raw_server(move |mut stream| {
        read_head(&mut stream);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let first = write_until_stuck(&mut stream, LENGTH);
        stuck.store(first, Ordering::SeqCst);
        let _ = std::io::copy(&mut std::io::repeat(b'x').take(LENGTH - first), &mut stream);
        read_head(&mut stream);
    });
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    let mut client = connect(proxy.address());
    client.write_all(post("/v1/files", "{}").as_bytes()).unwrap();
    until(|| sent.load(Ordering::SeqCst) > 0);
    assert!(sent.load(Ordering::SeqCst) < BUFFERED, "{sent:?}");
    read_head(&mut client);
    assert_eq!(std::io::copy(&mut client, &mut std::io::sink()).unwrap(), LENGTH);
    let told = notes.answers(1).remove(0);
    assert_eq!((told.ending, told.bytes), (Ending::Whole, LENGTH));
}

#[test]
fn a_client_that_dribbles_its_head_is_let_go_and_others_are_not() {
    let server = Server::start(|_| vec![answer("200 OK", "text/plain", "ok")]);
    let mut settings = settings(&server.url());
    // This long a machine may freeze without one that is not slow being let go.
    settings.limits.head_time = Duration::from_millis(1_500);
    let (proxy, _notes) = start(settings);
    let mut kept = connect(proxy.address());
    let request = b"GET /x HTTP/1.1\r\nhost: h\r\n\r\n";
    kept.write_all(request).unwrap();
    let mut byte = [0];
    kept.read_exact(&mut byte).unwrap();
    // One says nothing, one begins like HTTP/2, one sends a header forever.
    let mut silent = connect(proxy.address());
    let mut half = connect(proxy.address());
    half.write_all(b"P").unwrap();
    let mut dribbler = connect(proxy.address());
    dribbler.write_all(b"GET / HTTP/1.1\r\nhost: h\r\n").unwrap();
    let end = now() + crate::support::PATIENCE;
    while dribbler.write_all(b"x: y\r\n").is_ok() && proxy.tally().too_slow.get() < 3 {
        assert!(now() < end);
        pause(Nanos::from_millis(10));
    }
    for slow in [&mut silent, &mut half, &mut dribbler] {
        let mut rest = Vec::new();
        let _ = slow.read_to_end(&mut rest);
        assert_eq!(rest, b"");
    }
    // A connection that has asked may be idle for longer than a head may take.
    let mut answer = vec![0; 512];
    let n = kept.read(&mut answer).unwrap();
    assert!(answer[..n].ends_with(b"ok"));
    kept.write_all(request).unwrap();
    assert!(kept.read(&mut answer).unwrap() > 0);
    assert!(server.requests().len() >= 2);
}

#[test]
fn a_body_that_stops_is_a_408() {
    let upstream = raw_server(|stream| drop(crate::support::read_all(&stream)));
    let mut settings = settings(&format!("http://{upstream}"));
    settings.limits.body_time = Duration::from_millis(200);
    let (proxy, notes) = start(settings);
    let request = format!("POST {CHAT} HTTP/1.1\r\nhost: h\r\ncontent-length: 100\r\n\r\n{{");
    let answer = exchange(proxy.address(), request.as_bytes());
    assert!(answer.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(notes.answers(1)[0].ending, Ending::ClientGone);
    assert!(notes.questions().is_empty());
}

#[test]
fn a_stream_without_a_window_is_ended_and_other_streams_are_not() {
    const SETTINGS: u8 = 4;
    const RESET: u8 = 3;
    let (first, is_over) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
    let seen_over = Arc::clone(&is_over);
    let upstream = raw_server(move |mut stream| {
        read_head(&mut stream);
        if first.fetch_add(1, Ordering::SeqCst) > 0 {
            return stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nfirst").unwrap();
        crate::support::read_all(&stream);
        is_over.store(1, Ordering::SeqCst);
    });
    let mut settings = settings(&format!("http://{upstream}"));
    settings.limits.body_time = Duration::from_millis(500);
    let (proxy, notes) = start(settings);
    let mut client = connect(proxy.address());
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], payload].concat()
    };
    // A stream begins without a window; GET http://h/.
    let no_window = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let ask = |stream| frame(1, 5, stream, &[0x82, 0x86, 0x84, 0x41, 1, b'h']);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    client.write_all(&[preface, no_window, ask(1)].concat()).unwrap();
    let until = |kind: u8, stream: u8, client: &mut TcpStream| loop {
        let mut head = [0; 9];
        client.read_exact(&mut head).unwrap();
        let mut payload = vec![0; usize::from(head[1]) * 256 + usize::from(head[2])];
        client.read_exact(&mut payload).unwrap();
        assert!(!(head[3] == 0 && head[8] == 1), "the window is missing");
        if (head[3], head[8]) == (kind, stream) {
            return payload;
        }
    };
    until(RESET, 1, &mut client);
    crate::support::until(|| seen_over.load(Ordering::SeqCst) == 1);
    let told = notes.answers(1).remove(0);
    assert_eq!((told.ending, proxy.tally().too_slow.get()), (Ending::ClientGone, 1));
    client.write_all(&[ask(3), frame(8, 0, 3, &[0, 0, 1, 0])].concat()).unwrap();
    assert_eq!(until(0, 3, &mut client), b"ok");
    assert_eq!(notes.answers(2)[1].ending, Ending::Whole);
}

#[test]
fn a_head_that_is_too_long_is_refused() {
    let server = Server::start(|_| vec![answer("200 OK", "text/plain", "ok")]);
    let (proxy, _notes) = start(settings(&server.url()));
    let long = "y".repeat(40_000);
    let request = format!("GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\nx: {long}\r\n\r\n");
    assert!(exchange(proxy.address(), request.as_bytes()).starts_with(b"HTTP/1.1 431 "));
    // With the lines for host and connection.
    let lines = |count: usize| {
        let many = "x: y\r\n".repeat(count - 2);
        format!("GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{many}\r\n")
    };
    let refused = exchange(proxy.address(), lines(101).as_bytes());
    assert!(refused.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&refused));
    assert!(server.requests().is_empty());
    let long = "y".repeat((32 << 10) - 200);
    let longest = format!("GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\nx: {long}\r\n\r\n");
    for request in [lines(100), longest] {
        let answer = exchange(proxy.address(), request.as_bytes());
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    }
}

#[test]
fn a_client_that_takes_nothing_of_its_answer_is_let_go() {
    let is_over = Arc::new(AtomicU64::new(0));
    let seen_over = Arc::clone(&is_over);
    let upstream = raw_server(move |mut stream| {
        read_head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        let piece = vec![b'x'; 1 << 20];
        while stream.write_all(&piece).is_ok() {}
        is_over.store(1, Ordering::SeqCst);
    });
    let mut settings = settings(&format!("http://{upstream}"));
    settings.limits.body_time = Duration::from_millis(500);
    let (proxy, notes) = start(settings);
    let mut client = connect(proxy.address());
    client.write_all(post(CHAT, "{}").as_bytes()).unwrap();
    until(|| seen_over.load(Ordering::SeqCst) == 1);
    assert_eq!(notes.answers(1)[0].ending, Ending::ClientGone);
    assert_eq!(proxy.tally().too_slow.get(), 1);
    until(|| proxy.tally().open.get() == 0);
}

#[test]
fn a_connection_of_http2_has_256_streams_at_once() {
    const STREAMS: u32 = 256;
    let go = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&go);
    let upstream = raw_server(move |mut stream| {
        read_head(&mut stream);
        until(|| told.load(Ordering::SeqCst) == 1);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
    let (proxy, _notes) = start(settings(&format!("http://{upstream}")));
    let mut client = connect(proxy.address());
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let head = [0, 0, payload.len() as u8, kind, flags];
        [&head[..], &stream.to_be_bytes(), payload].concat()
    };
    let ask = |n: u32| frame(1, 5, 2 * n + 1, &[0x82, 0x86, 0x84, 0x41, 1, b'h']);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let all = (0..=STREAMS).flat_map(ask).collect();
    client.write_all(&[preface, frame(4, 0, 0, &[]), all].concat()).unwrap();
    // The one too many is reset, which is what comes first, and the others are answered.
    let (mut resets, mut ends) = (Vec::new(), 0);
    while ends < STREAMS {
        let mut head = [0; 9];
        client.read_exact(&mut head).unwrap();
        let length = usize::from(head[1]) * 256 + usize::from(head[2]);
        let mut payload = vec![0; length];
        client.read_exact(&mut payload).unwrap();
        let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
        match (head[3], head[4] & 1) {
            (3, _) => {
                resets.push((stream, payload));
                until(|| proxy.tally().in_flight.get() == u64::from(STREAMS));
                go.store(1, Ordering::SeqCst);
            }
            (0 | 1, 1) => ends += 1,
            _ => {}
        }
    }
    // REFUSED_STREAM: the client may send it once more.
    assert_eq!(resets, [(2 * STREAMS + 1, vec![0, 0, 0, 7])]);
    assert_eq!(proxy.tally().requests.get(), u64::from(STREAMS));
}

#[test]
fn what_is_kept_has_a_common_limit() {
    let server = Server::start(|_| vec![answer("200 OK", "text/plain", "ok")]);
    let mut settings = settings(&server.url());
    settings.limits.kept_total = 10;
    let (proxy, notes) = start(settings);
    exchange(proxy.address(), post("/a", "0123456789").as_bytes());
    exchange(proxy.address(), post("/b", "0123456789x").as_bytes());
    exchange(proxy.address(), post("/c", "0123456789").as_bytes());
    notes.answers(3);
    let kept: Vec<_> = notes.questions().iter().map(|asked| asked.body.is_some()).collect();
    assert_eq!(kept, [true, false, true]);
    let (proxy, notes) = {
        let mut settings = crate::support::settings(&server.url());
        settings.limits.kept_bytes = 10;
        start(settings)
    };
    exchange(proxy.address(), post("/a", "0123456789").as_bytes());
    exchange(proxy.address(), post("/b", "0123456789x").as_bytes());
    notes.answers(2);
    let kept: Vec<_> = notes.questions().iter().map(|asked| asked.body.is_some()).collect();
    assert_eq!(kept, [true, false], "each has a limit of its own");
    assert_eq!(server.requests()[1].body, "0123456789x");
}
