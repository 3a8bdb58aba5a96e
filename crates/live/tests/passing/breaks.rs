//! What breaks on one side is seen on the other, and told once.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{
    connect, exchange, post, raw_server, read_all, settings, split, start, unchunk, until,
};
use goodput_live::{Drained, Ending};
use goodput_model::ErrorClass;
use goodput_testkit::{
    LAST_CHUNK, STREAM_HEAD, Server, Step, answer, chunk, end_events, token_event,
};

const CHAT: &str = "/v1/chat/completions";

/// Head and first token, then nothing.
fn begin() -> Step {
    Step::write(format!("{STREAM_HEAD}{}", chunk(&token_event("a"))))
}

#[test]
fn an_answer_that_the_upstream_cuts_is_cut_for_the_client() {
    for (last, kind) in [(Step::Reset, "reset"), (Step::Close, "close")] {
        let server = Server::start(move |_| {
            vec![begin(), Step::Pause(Duration::from_millis(30)), last.clone()]
        });
        let (proxy, notes) = start(settings(&server.url()));
        let answer = exchange(proxy.address(), post(CHAT, "{}").as_bytes());
        let (head, body) = split(&answer);
        assert!(head.starts_with("HTTP/1.1 200"), "{kind}: {head}");
        assert_eq!(unchunk(body), (token_event("a").into_bytes(), false), "{kind}");
        let told = notes.answers(1).remove(0);
        assert_eq!(told.ending, Ending::Broken, "{kind}");
        assert_eq!(told.exchange.failure.unwrap().class, ErrorClass::Cut, "{kind}");
        assert_eq!(told.exchange.chunks.len(), 1, "{kind}");
        assert_eq!(proxy.tally().upstream_failures.get(), 1, "{kind}");
    }
}

#[test]
fn a_body_that_is_shorter_than_it_says_is_cut_too() {
    let text =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{\"a\"";
    let server = Server::start(move |_| vec![Step::write(text), Step::Close]);
    let (proxy, notes) = start(settings(&server.url()));
    let answer = exchange(proxy.address(), post(CHAT, "{}").as_bytes());
    let (head, body) = split(&answer);
    assert!(head.contains("content-length: 50"), "{head}");
    assert!(body.len() < 50);
    assert_eq!(notes.answers(1)[0].ending, Ending::Broken);
}

#[test]
fn a_client_of_http_1_0_cannot_take_a_cut_for_an_end() {
    let server =
        Server::start(move |_| vec![begin(), Step::Pause(Duration::from_millis(30)), Step::Reset]);
    let (proxy, _notes) = start(settings(&server.url()));
    let mut stream = connect(proxy.address());
    let request = post(CHAT, "{}").replace("HTTP/1.1", "HTTP/1.0");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let outcome = stream.read_to_end(&mut answer);
    assert_eq!(outcome.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn an_upstream_that_makes_no_sense_is_a_502() {
    for (text, name) in [
        ("SSH-2.0-server\r\n", "another protocol"),
        ("HTTP/1.1 200 OK\r\nbad header\r\n\r\n", "no header"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello", "two lengths"),
        ("", "nothing"),
        ("HTTP/1.1 200", "half a head"),
        (
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
            "a switch",
        ),
    ] {
        let server = Server::start(move |_| vec![Step::write(text), Step::Close]);
        let (proxy, notes) = start(settings(&server.url()));
        let answer = exchange(proxy.address(), post(CHAT, "{}").as_bytes());
        let (head, body) = split(&answer);
        assert!(head.starts_with("HTTP/1.1 502 "), "{name}: {head}");
        assert!(String::from_utf8_lossy(body).contains("\"code\":\"upstream_broken\""), "{name}");
        assert_eq!(notes.answers(1)[0].ending, Ending::Broken, "{name}");
    }
}

#[test]
fn an_upstream_that_says_nothing_is_a_504_and_one_that_stops_is_a_cut() {
    let server =
        Server::start(
            |request| {
                if request.line.contains("silent") { vec![] } else { vec![begin()] }
            },
        );
    let mut settings = settings(&server.url());
    settings.limits.answer_time = Duration::from_millis(200);
    let (proxy, notes) = start(settings);
    let silent = exchange(proxy.address(), post("/silent/chat/completions", "{}").as_bytes());
    assert!(silent.starts_with(b"HTTP/1.1 504 "));
    let stalled = exchange(proxy.address(), post(CHAT, "{}").as_bytes());
    assert!(!unchunk(split(&stalled).1).1);
    for told in notes.answers(2) {
        assert_eq!(told.ending, Ending::Broken);
        assert_eq!(told.exchange.failure.unwrap().class, ErrorClass::Timeout);
    }
}

#[test]
fn a_client_that_leaves_cancels_its_request() {
    // In the middle of an answer, and before there is one.
    for has_begun in [true, false] {
        let gone = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&gone);
        let upstream = raw_server(move |mut stream| {
            let mut head = [0; 1024];
            let _ = stream.read(&mut head).unwrap();
            if has_begun {
                stream.write_all(STREAM_HEAD.as_bytes()).unwrap();
                stream.write_all(chunk(&token_event("a")).as_bytes()).unwrap();
            }
            read_all(&stream);
            seen.store(true, Ordering::SeqCst);
        });
        let (proxy, notes) = start(settings(&format!("http://{upstream}")));
        let mut client = connect(proxy.address());
        client.write_all(post(CHAT, "{}").as_bytes()).unwrap();
        if has_begun {
            client.read_exact(&mut [0; 20]).unwrap();
        } else {
            until(|| proxy.tally().in_flight.get() == 1 && !notes.questions().is_empty());
        }
        drop(client);
        until(|| gone.load(Ordering::SeqCst));
        let told = notes.answers(1).remove(0);
        assert_eq!(told.ending, Ending::ClientGone, "{has_begun}");
        assert_eq!(told.exchange.failure.unwrap().class, ErrorClass::CutOff);
        assert_eq!((notes.questions().len(), proxy.tally().in_flight.get()), (1, 0));
        assert_eq!(proxy.tally().clients_gone.get(), 1);
    }
}

#[test]
fn leaving_after_the_last_event_is_no_loss() {
    let events = format!("{}{}", token_event("a"), end_events(1));
    let server =
        Server::start(move |_| vec![Step::write(format!("{STREAM_HEAD}{}", chunk(&events)))]);
    let (proxy, notes) = start(settings(&server.url()));
    let mut client = connect(proxy.address());
    client.write_all(post(CHAT, "{}").as_bytes()).unwrap();
    let mut came = Vec::new();
    while !came.ends_with(b"data: [DONE]\n\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        came.push(byte[0]);
    }
    drop(client);
    let told = notes.answers(1).remove(0);
    assert_eq!((told.ending, told.exchange.failure), (Ending::Whole, None));
    assert_eq!(proxy.tally().clients_gone.get(), 0);
}

#[test]
fn connections_are_kept_and_a_closed_one_is_replaced_once() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    // Answers one request on each connection and closes at the second, without a word.
    let upstream = raw_server(move |mut stream| {
        let mut head = [0; 1024];
        while stream.read(&mut head).is_ok_and(|n| n > 0) {
            if counted.fetch_add(1, Ordering::SeqCst) == 1 {
                return;
            }
            let ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
            stream.write_all(ok.as_bytes()).unwrap();
        }
    });
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    for _ in 0..2 {
        let answer = exchange(proxy.address(), post("/v1/x", "{\"a\":1}").as_bytes());
        assert_eq!(split(&answer).1, b"ok");
    }
    let told = notes.answers(2);
    assert_eq!([told[0].exchange.reconnects, told[1].exchange.reconnects], [0, 1]);
    assert!(told[0].exchange.stamps.connect.is_some());
    assert_eq!((count.load(Ordering::SeqCst), proxy.tally().resent.get()), (3, 1));
    assert_eq!(notes.questions().len(), 2);
}

#[test]
fn what_a_server_may_have_worked_on_is_not_sent_twice() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    // Answers the first request of a connection, and closes long after the second came.
    let upstream = raw_server(move |mut stream| {
        let mut head = [0; 1024];
        let _ = stream.read(&mut head).unwrap();
        counted.fetch_add(1, Ordering::SeqCst);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
        if stream.read(&mut head).is_ok_and(|n| n > 0) {
            counted.fetch_add(1, Ordering::SeqCst);
            goodput_clock::pause(goodput_model::Nanos::from_millis(1_100));
        }
    });
    let (proxy, _notes) = start(settings(&format!("http://{upstream}")));
    let get = "GET /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n".to_owned();
    for (request, answer, seen) in [
        (post(CHAT, ""), "HTTP/1.1 200 ", 1),
        (post(CHAT, ""), "HTTP/1.1 502 ", 2),
        (post(CHAT, ""), "HTTP/1.1 200 ", 3),
        // One that changes nothing may be.
        (get, "HTTP/1.1 200 ", 5),
    ] {
        let came = exchange(proxy.address(), request.as_bytes());
        assert!(came.starts_with(answer.as_bytes()), "{seen}: {}", String::from_utf8_lossy(&came));
        assert_eq!(count.load(Ordering::SeqCst), seen);
    }
    assert_eq!(proxy.tally().resent.get(), 1);
}

#[test]
fn a_first_request_on_a_new_connection_is_never_sent_twice() {
    let server = Server::start(|_| vec![Step::Close]);
    let (proxy, _notes) = start(settings(&server.url()));
    let answer = exchange(proxy.address(), post(CHAT, "{}").as_bytes());
    assert!(answer.starts_with(b"HTTP/1.1 502 "));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_drain_waits_for_answers_and_takes_no_more() {
    let events = format!("{}{}", token_event("b"), end_events(2));
    let server = Server::start(move |_| {
        let rest = format!("{}{LAST_CHUNK}", chunk(&events));
        vec![begin(), Step::WriteAt(Duration::from_millis(300), rest.into_bytes())]
    });
    let (proxy, notes) = start(settings(&server.url()));
    let address = proxy.address();
    let idle = connect(address);
    let mut client = connect(address);
    let request = post(CHAT, "{}").replace("connection: close\r\n", "");
    client.write_all(request.as_bytes()).unwrap();
    until(|| proxy.tally().in_flight.get() == 1 && proxy.tally().statuses[2].get() == 1);
    let drained = proxy.drain(Duration::from_secs(20));
    assert_eq!(drained, Drained { cut: 0 });
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert!(unchunk(split(&answer).1).1);
    assert_eq!(notes.answers(1)[0].ending, Ending::Whole);
    assert!(std::net::TcpStream::connect(address).is_err());
    drop(idle);
}

#[test]
fn a_drain_cuts_what_takes_too_long_and_counts_it() {
    let server = Server::start(|_| vec![begin()]);
    let (proxy, notes) = start(settings(&server.url()));
    let tally = Arc::clone(proxy.tally());
    let mut client = connect(proxy.address());
    client.write_all(post(CHAT, "{}").as_bytes()).unwrap();
    until(|| tally.statuses[2].get() == 1);
    let drained = proxy.drain(Duration::from_millis(50));
    assert_eq!(drained, Drained { cut: 1 });
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    assert!(!unchunk(split(&answer).1).1);
    let told = notes.answers(1).remove(0);
    assert_eq!(told.ending, Ending::Broken);
    assert_eq!(told.exchange.failure.unwrap().class, ErrorClass::CutOff);
    assert_eq!((tally.in_flight.get(), tally.open.get()), (0, 0));
}

#[test]
fn a_refusal_while_the_body_still_comes_reaches_the_client() {
    // The upstream answers after the head, and closes with the body unread.
    let upstream = raw_server(|mut stream| {
        let mut head = [0; 512];
        let _ = stream.read(&mut head).unwrap();
        let no = "HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno";
        stream.write_all(no.as_bytes()).unwrap();
    });
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    let mut client = connect(proxy.address());
    let length = 8 << 20;
    let head = format!("POST {CHAT} HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\n\r\n");
    client.write_all(head.as_bytes()).unwrap();
    let mut sender = client.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        let piece = vec![b'x'; 64 << 10];
        for _ in 0..length / piece.len() {
            if sender.write_all(&piece).is_err() {
                return;
            }
        }
    });
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 413 "), "{}", String::from_utf8_lossy(&answer));
    assert!(answer.ends_with(b"no"));
    drop(client);
    sending.join().unwrap();
    assert_eq!(notes.answers(1)[0].exchange.status, Some(413));
}

#[test]
fn health_is_answered_here() {
    let server = Server::start(|_| vec![answer("200 OK", "text/plain", "upstream")]);
    let (proxy, _notes) = start(settings(&server.url()));
    let request = b"GET /goodput/health HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    assert_eq!(split(&exchange(proxy.address(), request)).1, b"ok\n");
    assert_eq!((server.requests().len(), proxy.tally().requests.get()), (0, 0));
}
