//! Requests that share a connection of HTTP/2 to the upstream: what becomes of them when it fails.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::{Notes, connect, exchange, post, raw_server, settings, start, until};
use goodput_clock::{now, pause};
use goodput_live::{Proxy, Settings, Upstream};
use goodput_model::{Http, Nanos};

const PATH: &str = "/v1/x";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;

/// The server's end of a connection of HTTP/2, as far as a test needs it.
struct Line(TcpStream);

impl Line {
    fn accept(mut stream: TcpStream) -> Self {
        stream.read_exact(&mut [0; 24]).unwrap();
        let mut line = Self(stream);
        line.frame(SETTINGS, 0, 0, &[]);
        line
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        let _ = self.0.write_all(&frame);
    }

    /// Kind, flags and stream of the next frame; none when the client has gone.
    fn next(&mut self) -> Option<(u8, u8, u32)> {
        self.next_whole().map(|(head, _)| head)
    }

    /// The same with its payload.
    fn next_whole(&mut self) -> Option<((u8, u8, u32), Vec<u8>)> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload).ok()?;
        let stream = u32::from_be_bytes(head[5..9].try_into().unwrap());
        Some(((head[3], head[4], stream), payload))
    }

    /// The stream of the next request that has come whole.
    fn request(&mut self) -> Option<u32> {
        loop {
            let (kind, flags, stream) = self.next()?;
            if [DATA, HEADERS].contains(&kind) && flags & 1 == 1 {
                return Some(stream);
            }
        }
    }

    /// `:status: 200`, and that is all.
    fn answer(&mut self, stream: u32) {
        self.frame(HEADERS, 5, stream, &[0x88]);
    }

    fn answer_all(&mut self) {
        while let Some(stream) = self.request() {
            self.answer(stream);
        }
    }
}

fn proxy(upstream: SocketAddr, change: impl Fn(&mut Settings)) -> (Proxy, Arc<Notes>) {
    let url = format!("http://{upstream}").parse().unwrap();
    let upstream = Upstream { url, http: Http::Http2, cacert: None, insecure: false };
    let mut settings = Settings { upstream, ..settings("http://127.0.0.1:1") };
    change(&mut settings);
    start(settings)
}

fn status(answer: &[u8]) -> &[u8] {
    &answer[9..12]
}

#[test]
fn requests_of_a_connection_that_fails_are_sent_again_only_where_the_server_left_them() {
    const MANY: usize = 20;
    // It leaves with the first request as its last, or it goes without a word.
    for says_so in [true, false] {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let upstream = raw_server(move |stream| {
            let mut line = Line::accept(stream);
            if counted.fetch_add(1, Ordering::SeqCst) > 0 {
                return line.answer_all();
            }
            let first = line.request().unwrap();
            line.answer(first);
            for _ in 0..MANY {
                line.request().unwrap();
            }
            if says_so {
                line.frame(GO_AWAY, 0, 0, &[first.to_be_bytes(), [0; 4]].concat());
            }
        });
        let (proxy, _notes) = proxy(upstream, |_| {});
        let address = proxy.address();
        let ask = move || exchange(address, post(PATH, "{}").as_bytes());
        assert_eq!(status(&ask()), b"200");
        let asking: Vec<_> = (0..MANY).map(|_| std::thread::spawn(ask)).collect();
        let expected = if says_so { b"200" } else { b"502" };
        for asked in asking {
            assert_eq!(status(&asked.join().unwrap()), expected, "{says_so}");
        }
        let sent_again = if says_so { MANY as u64 } else { 0 };
        assert_eq!(proxy.tally().resent.get(), sent_again);
        // All of them on one connection.
        assert_eq!(count.load(Ordering::SeqCst), if says_so { 2 } else { 1 });
    }
}

#[test]
fn a_connection_that_swallowed_a_request_gets_no_other() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let upstream = raw_server(move |stream| {
        let mut line = Line::accept(stream);
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            while line.next().is_some() {}
        }
        line.answer_all();
    });
    let (proxy, notes) =
        proxy(upstream, |settings| settings.limits.answer_time = Duration::from_millis(500));
    let answers = [(); 2].map(|()| exchange(proxy.address(), post(PATH, "{}").as_bytes()));
    assert_eq!(answers.each_ref().map(|answer| status(answer)), [b"504", b"200"]);
    let links: Vec<_> = notes.answers(2).iter().map(|told| told.exchange.connection).collect();
    assert_eq!(links, [0, 1]);
}

#[test]
fn a_goaway_message_stays_on_its_connection() {
    let upstream = raw_server(move |stream| {
        let mut line = Line::accept(stream);
        line.request().unwrap();
        // "Enhance your calm", with a text.
        let payload = [&[0; 7][..], &[11], b"SECRET (of ours)"].concat();
        line.frame(GO_AWAY, 0, 0, &payload);
    });
    let (proxy, notes) = proxy(upstream, |_| {});
    assert_eq!(status(&exchange(proxy.address(), post(PATH, "{}").as_bytes())), b"502");
    let message = notes.answers(1).remove(0).exchange.failure.unwrap().message;
    assert!(message.starts_with("connection error received: ") && !message.contains("SECRET"));
}

#[test]
fn a_request_was_sent_when_the_last_of_it_had_come() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let upstream = raw_server(move |stream| {
        let mut line = Line::accept(stream);
        while let Some((kind, flags, stream)) = line.next() {
            if kind == HEADERS {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            if kind == DATA && flags & 1 == 1 {
                line.answer(stream);
            }
        }
    });
    let (proxy, notes) = proxy(upstream, |_| {});
    let mut client = connect(proxy.address());
    let request = post(PATH, "0123456789");
    let (first, rest) = request.split_at(request.len() - 5);
    client.write_all(first.as_bytes()).unwrap();
    until(|| seen.load(Ordering::SeqCst) == 1);
    let middle = now();
    client.write_all(rest.as_bytes()).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(status(&answer), b"200");
    let stamps = notes.answers(1).remove(0).exchange.stamps;
    assert!(stamps.sent_first.is_some_and(|sent| Nanos::ZERO < sent && sent < middle));
    assert!(stamps.sent_last.is_some_and(|sent| sent >= middle));
}

#[test]
fn who_waits_for_a_connection_waits_no_longer_than_one_may_take() {
    const MANY: u64 = 30;
    const LIMIT: Duration = Duration::from_millis(250);
    // It takes connections and never shakes hands.
    let upstream = raw_server(|stream| drop(crate::support::read_all(&stream)));
    let url = format!("https://{upstream}").parse().unwrap();
    let upstream = Upstream { url, http: Http::Http2, cacert: None, insecure: true };
    let mut settings = Settings { upstream, ..settings("http://127.0.0.1:1") };
    settings.limits.connect_time = LIMIT;
    let (proxy, _notes) = start(settings);
    let address = proxy.address();
    let begin = now();
    let ask = move || exchange(address, post(PATH, "{}").as_bytes());
    let asking: Vec<_> = (0..MANY).map(|_| std::thread::spawn(ask)).collect();
    for asked in asking {
        assert_eq!(status(&asked.join().unwrap()), b"504");
    }
    // One after another they would take twice as long at least.
    let took = now() - begin;
    assert!(took.0 < MANY * Nanos::from(LIMIT).0 / 2, "{took:?}");
}

#[test]
fn a_connection_to_the_upstream_carries_100_requests_at_once() {
    const MOST: usize = 100;
    let counts: Arc<[AtomicUsize; 2]> = Arc::default();
    let (counted, go) = (Arc::clone(&counts), Arc::new(AtomicUsize::new(0)));
    let told = Arc::clone(&go);
    let upstream = raw_server(move |stream| {
        let mut line = Line::accept(stream);
        counted[0].fetch_add(1, Ordering::SeqCst);
        let mut held = Vec::new();
        while counted[1].load(Ordering::SeqCst) <= MOST {
            let Some(stream) = line.request() else { return };
            held.push(stream);
            // The last one of each connection waits for the others.
            let all = counted[1].fetch_add(1, Ordering::SeqCst) + 1;
            if held.len() == MOST || all > MOST {
                break;
            }
        }
        until(|| told.load(Ordering::SeqCst) == 1);
        for stream in held {
            line.answer(stream);
        }
        line.answer_all();
    });
    let (proxy, _notes) = proxy(upstream, |_| ());
    let address = proxy.address();
    let ask = || std::thread::spawn(move || exchange(address, post(PATH, "{}").as_bytes()));
    // One after the other, so that all find the connection that is there.
    let asked: Vec<_> = (1..=MOST + 1)
        .map(|n| {
            let asking = ask();
            until(|| counts[1].load(Ordering::SeqCst) == n);
            asking
        })
        .collect();
    assert_eq!(counts[0].load(Ordering::SeqCst), 2);
    go.store(1, Ordering::SeqCst);
    for asking in asked {
        assert_eq!(status(&asking.join().unwrap()), b"200");
    }
}

/// A second that a busy machine may lack, and what a limit may be kept late by.
const EARLY: Nanos = Nanos::from_millis(1_000);
const LATE: Nanos = Nanos::from_millis(8_000);

/// The status of an answer that may take longer than others.
fn patient(address: SocketAddr) -> Vec<u8> {
    let mut client = connect(address);
    client.set_read_timeout(Some(Duration::from_mins(2))).unwrap();
    client.write_all(post(PATH, "{}").as_bytes()).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    status(&answer).to_vec()
}

/// Real seconds: a connection in use is pinged after 20 of them, and has 10 to answer.
#[test]
fn a_connection_is_asked_whether_it_lives_and_given_up_if_it_does_not() {
    let [every, limit] = [20_000, 10_000].map(Nanos::from_millis);
    // One says nothing to it; the other does, and answers when the first has been given up.
    let asking = [true, false].map(|is_deaf| {
        let (tell, told) = channel();
        let upstream = raw_server(move |stream| {
            let mut line = Line::accept(stream);
            let request = line.request().unwrap();
            let begin = now();
            while let Some(((kind, flags, _), payload)) = line.next_whole() {
                if kind != PING || flags & 1 == 1 {
                    continue;
                }
                tell.send(now() - begin).unwrap();
                if !is_deaf {
                    line.frame(PING, 1, 0, &payload);
                    pause(limit + EARLY + EARLY);
                    line.answer(request);
                }
            }
            // The test may be over.
            let _ = tell.send(now() - begin);
        });
        let (proxy, notes) = proxy(upstream, |_| {});
        let address = proxy.address();
        (std::thread::spawn(move || patient(address)), told, proxy, notes)
    });
    let between = |at: Nanos, due: Nanos| due - EARLY < at && at < due + LATE;
    for ((client, told, proxy, notes), expected) in asking.into_iter().zip([b"502", b"200"]) {
        assert_eq!(client.join().unwrap(), expected);
        let asked = told.recv().unwrap();
        assert!(between(asked, every), "{asked:?}");
        if expected == b"502" {
            let ended = told.recv().unwrap();
            assert!(between(ended, every + limit), "{ended:?}");
        }
        assert_eq!((notes.answers(1).len(), proxy.tally().resent.get()), (1, 0));
    }
}

/// Real seconds: sixty of them.
#[test]
fn a_connection_that_was_idle_for_a_minute_gets_no_more_requests() {
    let proxies = [Http::Http1, Http::Http2].map(|http| {
        let upstream = raw_server(move |mut stream| {
            if http == Http::Http2 {
                return Line::accept(stream).answer_all();
            }
            let mut byte = [0];
            while stream.read(&mut byte).is_ok_and(|n| n > 0) {
                // The end of a body.
                if byte == *b"}" {
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                }
            }
        });
        proxy(upstream, move |settings| settings.upstream.http = http)
    });
    let ask = |proxy: &Proxy| exchange(proxy.address(), post(PATH, "{}").as_bytes());
    for wait in [0, 2_000, 61_000] {
        pause(Nanos::from_millis(wait));
        for (proxy, _) in &proxies {
            assert_eq!(status(&ask(proxy)), b"200");
        }
    }
    for (_, notes) in proxies {
        let links: Vec<_> = notes.answers(3).iter().map(|told| told.exchange.connection).collect();
        assert_eq!(links, [0, 0, 1]);
    }
}
