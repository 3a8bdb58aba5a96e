//! A peer that always has bytes ready holds up neither limits, nor a stop, nor other clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use crate::mirror::mirror;
use crate::support::{Notes, connect, exchange, post, raw_server, settings, split, start, until};
use bytes::Bytes;
use goodput_clock::{now, pause};
use goodput_live::{Caps, Ending, HEALTH, ObservedRequest, Proxy};
use goodput_model::{Api, ErrorClass, Nanos};
use goodput_testkit::token_event;

const CHAT: &str = "/v1/chat/completions";
const BODY: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

const LIMIT: Duration = Duration::from_millis(500);

/// Many times the limits that are set here, and far less than a flood takes.
const SOON: Nanos = Nanos::from_millis(8_000);

/// Requests that are flooded at once.
const FLOODS: usize = 6;

/// Reads the head of a request; its first line.
fn read_head(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return String::new();
        }
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned()
}

/// Writes this again and again until the other side closes.
fn flood(stream: &mut TcpStream, first: &str, again: &str) {
    let again = again.repeat(1 + (64 << 10) / again.len());
    let mut outcome = stream.write_all(first.as_bytes());
    while outcome.is_ok() {
        outcome = stream.write_all(again.as_bytes());
    }
}

/// A server that answers chats with tokens forever, and everything else with two bytes.
fn flooding_server() -> SocketAddr {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    raw_server(move |mut stream| {
        if read_head(&mut stream).contains(CHAT) {
            return flood(&mut stream, head, &token_event("word "));
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    })
}

/// Clients that read floods as fast as they come.
fn flooded(proxy: &Proxy) -> Vec<std::thread::JoinHandle<u64>> {
    let address = proxy.address();
    let clients = (0..FLOODS).map(|_| {
        std::thread::spawn(move || {
            let mut client = connect(address);
            client.write_all(post(CHAT, BODY).as_bytes()).unwrap();
            let (mut room, mut came) = (vec![0; 1 << 20], 0);
            while let Ok(n @ 1..) = client.read(&mut room) {
                came += n as u64;
            }
            came
        })
    });
    let clients = clients.collect();
    until(|| proxy.tally().statuses[2].get() == FLOODS as u64);
    clients
}

#[test]
fn interim_answers_without_end_are_no_answer() {
    let upstream = raw_server(|mut stream| {
        read_head(&mut stream);
        flood(&mut stream, "", "HTTP/1.1 100 Continue\r\n\r\n");
    });
    let mut settings = settings(&format!("http://{upstream}"));
    settings.limits.answer_time = LIMIT;
    let (proxy, notes) = start(settings);
    let begin = now();
    let answer = exchange(proxy.address(), post(CHAT, BODY).as_bytes());
    assert!(answer.starts_with(b"HTTP/1.1 504 "), "{}", String::from_utf8_lossy(&answer));
    assert!(now() - begin < SOON, "{:?}", now() - begin);
    let told = notes.answers(1).remove(0);
    assert_eq!(told.exchange.failure.unwrap().class, ErrorClass::Timeout);
}

#[test]
fn an_upload_without_end_does_not_hold_up_the_limit_on_answers() {
    let upstream = raw_server(|mut stream| {
        read_head(&mut stream);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let mut settings = settings(&format!("http://{upstream}"));
    settings.limits.answer_time = LIMIT;
    let (proxy, notes) = start(settings);
    let mut client = connect(proxy.address());
    let begin = now();
    let head = format!("POST {CHAT} HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n");
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(4096));
    flood(&mut client, &head, &chunk);
    assert!(now() - begin < SOON, "{:?}", now() - begin);
    let told = notes.answers(1).remove(0);
    assert_eq!(told.exchange.failure.unwrap().class, ErrorClass::Timeout);
    assert_eq!(exchange(proxy.address(), health().as_bytes())[9..12], *b"200");
}

fn health() -> String {
    format!("GET {HEALTH} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
}

#[test]
fn others_are_served_during_floods_and_a_stop_ends_them() {
    let upstream = flooding_server();
    let (proxy, notes) = start(settings(&format!("http://{upstream}")));
    let clients = flooded(&proxy);
    for _ in 0..20 {
        let begin = now();
        assert_eq!(split(&exchange(proxy.address(), post("/x", "{}").as_bytes())).1, b"ok");
        assert_eq!(exchange(proxy.address(), health().as_bytes())[9..12], *b"200");
        assert!(now() - begin < SOON, "{:?}", now() - begin);
    }
    let begin = now();
    let drained = proxy.drain(LIMIT);
    assert!(now() - begin < SOON, "{:?}", now() - begin);
    assert_eq!(drained.cut, FLOODS as u64);
    let told = notes.answers(FLOODS + 20);
    assert_eq!(told.iter().filter(|told| told.ending == Ending::Broken).count(), FLOODS);
    for client in clients {
        assert!(client.join().unwrap() > 1 << 20, "it was a flood");
    }
}

fn asked(number: u64) -> ObservedRequest {
    ObservedRequest {
        number,
        arrived: now(),
        api: Some(Api::Chat),
        head: Arc::new(http::Request::post(CHAT).body(()).unwrap().into_parts().0),
        via: http::HeaderValue::from_static("1.1 goodput-7"),
        session: None,
        body: Some(Bytes::from_static(BODY.as_bytes())),
    }
}

#[test]
fn a_candidate_that_floods_keeps_within_its_time() {
    let caps = Caps { time: LIMIT, answer_bytes: u64::MAX, ..Caps::default() };
    let (mirror, heard) = mirror(&format!("http://{}", flooding_server()), caps);
    let begin = now();
    (0..FLOODS as u64).for_each(|number| assert!(mirror.offer(&asked(number))));
    until(|| heard.lock().len() == FLOODS);
    assert!(now() - begin < SOON, "{:?}", now() - begin);
    for mirrored in heard.lock().iter() {
        let failure = mirrored.as_ref().unwrap().exchange.failure.as_ref().unwrap();
        assert_eq!(failure.class, ErrorClass::Timeout);
    }
    mirror.drain(Duration::ZERO);
}

#[test]
fn a_candidate_that_floods_is_switched_off_and_stopped_at_once() {
    let caps = Caps { answer_bytes: u64::MAX, ..Caps::default() };
    for is_switched in [true, false] {
        let url = format!("http://{}", flooding_server());
        let (mirror, heard) = mirror(&url, caps.clone());
        (0..FLOODS as u64).for_each(|number| assert!(mirror.offer(&asked(number))));
        until(|| mirror.tally().in_flight() == FLOODS as u64);
        pause(Nanos::from_millis(200));
        let begin = now();
        if is_switched {
            mirror.toggle();
            until(|| mirror.tally().in_flight() == 0);
        }
        mirror.drain(Duration::ZERO);
        assert!(now() - begin < SOON, "{:?}", now() - begin);
        assert_eq!(mirror.tally().cut(), FLOODS as u64);
        assert!(heard.lock().iter().all(Option::is_none));
    }
}

/// The proxy's other clients, while one floods it with requests that are answered at once.
#[test]
fn a_client_that_asks_without_end_does_not_hold_up_others() {
    let upstream = flooding_server();
    let (proxy, _notes): (Proxy, Arc<Notes>) = start(settings(&format!("http://{upstream}")));
    let mut client = connect(proxy.address());
    let mut reader = client.try_clone().unwrap();
    let reading = std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    let request = format!("GET {HEALTH} HTTP/1.1\r\nhost: h\r\n\r\n");
    let asking = std::thread::spawn(move || flood(&mut client, "", &request));
    for _ in 0..20 {
        let begin = now();
        assert_eq!(split(&exchange(proxy.address(), post("/x", "{}").as_bytes())).1, b"ok");
        assert!(now() - begin < SOON, "{:?}", now() - begin);
    }
    let begin = now();
    proxy.drain(Duration::from_mins(1));
    assert!(now() - begin < SOON, "its connection ends after an answer: {:?}", now() - begin);
    asking.join().unwrap();
    let _ = reading.join();
}
