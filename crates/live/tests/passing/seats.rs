//! More clients than there may be: idle ones make way, requests wait, and the health path is answered.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::pairings::{Certificate, ask as ask_over_tls};
use crate::support::{Notes, connect, raw_server, settings, start, until};
use goodput_clock::pause;
use goodput_live::{HEALTH, Proxy, Settings};
use goodput_mock::MockServer;
use goodput_model::{Http, Nanos};
use goodput_testkit::{Server, answer};

const SEATS: usize = 8;

/// Requests that may wait for a seat.
const WAITING: usize = 192;

fn proxy(url: &str, change: impl Fn(&mut Settings)) -> (Proxy, Arc<Notes>) {
    let mut settings = settings(url);
    settings.limits.connections = SEATS;
    change(&mut settings);
    start(settings)
}

fn ask(stream: &mut TcpStream, path: &str) {
    write!(stream, "GET {path} HTTP/1.1\r\nhost: h\r\n\r\n").unwrap();
}

/// The status of the answer that comes, whose body has this many bytes by its head.
fn status(stream: &mut TcpStream) -> u16 {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap();
    stream.read_exact(&mut vec![0; length.parse().unwrap()]).unwrap();
    head[9..12].parse().unwrap()
}

fn client(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = connect(address);
    ask(&mut stream, path);
    stream
}

fn is_closed(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0; 64]), Ok(0) | Err(_))
}

fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    peeked.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

/// A server that answers when it is let go.
fn held_server() -> (SocketAddr, Arc<AtomicBool>) {
    let go = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&go);
    let address = raw_server(move |mut stream| {
        let mut head = [0; 1024];
        while stream.read(&mut head).is_ok_and(|n| n > 0) {
            until(|| told.load(Ordering::SeqCst));
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
        }
    });
    (address, go)
}

#[test]
fn the_client_that_has_been_idle_longest_makes_way() {
    let server = Server::start(|_| vec![answer("200 OK", "text/plain", "ok")]);
    for workers in [1, 2] {
        let (proxy, _notes) = proxy(&server.url(), |settings| settings.workers = workers);
        let mut clients: Vec<_> = (0..SEATS)
            .map(|_| {
                let mut client = client(proxy.address(), "/x");
                assert_eq!(status(&mut client), 200);
                // So that which is the longest is known.
                pause(Nanos::from_millis(2));
                client
            })
            .collect();
        assert_eq!((proxy.tally().at_limit.get(), proxy.tally().made_way.get()), (0, 0));
        let mut ninth = client(proxy.address(), "/x");
        assert_eq!(status(&mut ninth), 200);
        until(|| proxy.tally().made_way.get() == 1 && proxy.tally().open.get() == SEATS as u64);
        assert_eq!(proxy.tally().at_limit.get(), 1);
        if workers == 1 {
            let mut oldest = clients.remove(0);
            assert!(is_closed(&mut oldest));
            for client in &mut clients {
                assert!(is_open(client));
                ask(client, "/x");
                assert_eq!(status(client), 200);
            }
        }
    }
}

#[test]
fn health_is_answered_while_every_seat_is_taken_and_others_wait() {
    let (upstream, go) = held_server();
    let (proxy, notes) = proxy(&format!("http://{upstream}"), |_| ());
    let mut taken: Vec<_> = (0..SEATS).map(|_| client(proxy.address(), "/x")).collect();
    until(|| proxy.tally().in_flight.get() == SEATS as u64);
    let mut waiting = client(proxy.address(), "/waits");
    for _ in 0..3 {
        assert_eq!(status(&mut client(proxy.address(), HEALTH)), 200);
    }
    assert_eq!(proxy.tally().requests.get(), SEATS as u64, "it waits for its turn");
    assert!(
        taken.iter().chain([&waiting]).all(is_open),
        "connections with requests in flight stay"
    );
    go.store(true, Ordering::SeqCst);
    for client in taken.iter_mut().chain([&mut waiting]) {
        assert_eq!(status(client), 200);
    }
    // All is as before.
    assert_eq!(notes.answers(SEATS + 1).len(), SEATS + 1);
    until(|| proxy.tally().open.get() <= SEATS as u64);
    assert_eq!(status(&mut client(proxy.address(), "/x")), 200);
    assert_eq!((proxy.tally().turned_away.get(), proxy.tally().refused.get()), (0, 0));
}

#[test]
fn a_connection_that_cannot_even_wait_is_told_so() {
    let (upstream, go) = held_server();
    let one = |settings: &mut Settings| settings.limits.connections = 1;
    let (proxy, _notes) = proxy(&format!("http://{upstream}"), one);
    let mut first = client(proxy.address(), "/x");
    until(|| proxy.tally().in_flight.get() == 1);
    let mut others: Vec<_> = (0..WAITING + 3).map(|_| client(proxy.address(), "/x")).collect();
    until(|| proxy.tally().turned_away.get() == 3);
    assert_eq!(status(&mut client(proxy.address(), HEALTH)), 200);
    go.store(true, Ordering::SeqCst);
    assert_eq!(status(&mut first), 200);
    let refused = others.iter_mut().filter_map(|client| (status(client) == 503).then_some(client));
    let refused: Vec<_> = refused.collect();
    assert_eq!(refused.len(), 3);
    assert!(refused.into_iter().all(is_closed));
    assert_eq!(proxy.tally().requests.get(), 1 + WAITING as u64);
}

#[test]
fn clients_that_never_ask_make_way_too() {
    let server = Server::start(|_| vec![answer("200 OK", "text/plain", "ok")]);
    let (proxy, _notes) = proxy(&server.url(), |_| ());
    // One says nothing, the next the half of a preface, the third the half of a head.
    let words: [&[u8]; 3] = [b"", b"PRI * HTTP", b"GET / HTTP/1.1\r\nhost"];
    let mut silent: Vec<_> = (0..SEATS)
        .map(|n| {
            let mut stream = connect(proxy.address());
            stream.write_all(words[n % words.len()]).unwrap();
            stream
        })
        .collect();
    let mut clients: Vec<_> = (0..SEATS)
        .map(|_| {
            let mut client = client(proxy.address(), "/x");
            assert_eq!(status(&mut client), 200);
            client
        })
        .collect();
    until(|| proxy.tally().open.get() == SEATS as u64);
    assert!(
        silent.iter_mut().chain(&mut clients).filter(|client| is_open(client)).count() == SEATS
    );
    assert_eq!((proxy.tally().made_way.get(), proxy.tally().too_slow.get()), (SEATS as u64, 0));
}

#[test]
fn handshakes_that_never_end_make_way_too() {
    let upstream = MockServer::start("127.0.0.1:0", "".parse().unwrap(), None, None).unwrap();
    let certificate = Certificate::new();
    let (proxy, _notes) = proxy(&format!("http://{}", upstream.address()), |settings| {
        settings.tls = Some(certificate.files());
    });
    let mut halves: Vec<_> = (0..SEATS + 4)
        .map(|_| {
            let mut stream = connect(proxy.address());
            stream.write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
            stream
        })
        .collect();
    until(|| proxy.tally().made_way.get() == 4 && proxy.tally().open.get() == SEATS as u64);
    assert!(halves.iter_mut().take(4).all(is_closed));
    assert!(halves.iter().skip(4).all(is_open));
    let url = format!("https://localhost:{}", proxy.address().port());
    for http in [Http::Http1, Http::Http2] {
        assert_eq!(ask_over_tls(&url, http, 1)[0].failure, None);
    }
    // The first of the two may have left before the second came.
    assert!((5..=6).contains(&proxy.tally().made_way.get()));
}

#[test]
fn idle_clients_of_http2_are_sent_goaway() {
    const GO_AWAY: u8 = 7;
    let server = Server::start(|_| vec![answer("200 OK", "text/plain", "ok")]);
    let (proxy, _notes) = proxy(&server.url(), |_| ());
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], payload].concat()
    };
    let next = |client: &mut TcpStream| {
        let mut head = [0; 9];
        client.read_exact(&mut head).ok()?;
        client.read_exact(&mut vec![0; usize::from(head[1]) * 256 + usize::from(head[2])]).ok()?;
        Some((head[3], head[4] & 1 == 1, head[8]))
    };
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let get = frame(1, 5, 1, &[0x82, 0x86, 0x84, 0x41, 1, b'h']);
    let opening = [preface, frame(4, 0, 0, &[]), get].concat();
    let mut clients: Vec<_> = (0..SEATS)
        .map(|_| {
            let mut client = connect(proxy.address());
            client.write_all(&opening).unwrap();
            while !matches!(next(&mut client), Some((0 | 1, true, 1))) {}
            client
        })
        .collect();
    let mut ninth = client(proxy.address(), "/x");
    assert_eq!(status(&mut ninth), 200);
    let frames: Vec<_> = std::iter::from_fn(|| next(&mut clients[0])).collect();
    assert!(frames.iter().any(|(kind, ..)| *kind == GO_AWAY), "{frames:?}");
    until(|| proxy.tally().open.get() == SEATS as u64);
    assert!(clients[1..].iter().all(is_open) && is_open(&ninth));
    assert_eq!(proxy.tally().made_way.get(), 1);
}
