//! A streaming server whose every write is on record.
//!
//! `goodput-truth --port P --ttft-us N --itl-us N --seconds S`: answers every POST with a chat
//! stream of `max_tokens` tokens, and after S seconds prints what really happened as JSON.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use goodput_bench::{Distribution, Poller, exponential_distance, flag};
use goodput_clock::now;
use goodput_model::Nanos;
use serde_json::json;

const LISTENER: u64 = u64::MAX;

struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    answer: Option<Answer>,
}

struct Answer {
    arrived: Nanos,
    due: Nanos,
    left: u32,
    last_write: Option<Nanos>,
}

#[derive(Default)]
struct Truth {
    arrivals: Vec<u64>,
    ttft: Distribution,
    itl: Distribution,
    late: Distribution,
    events: u64,
    requests: u64,
}

struct Server {
    connections: Vec<Option<Connection>>,
    due: BinaryHeap<Reverse<(Nanos, usize)>>,
    truth: Truth,
    ttft: Nanos,
    itl: Nanos,
    token: Vec<u8>,
    end: Vec<u8>,
}

#[expect(clippy::print_stdout, reason = "its result")]
fn main() -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", flag("--port", 8300)))?;
    listener.set_nonblocking(true)?;
    let mut poller = Poller::new()?;
    poller.add(&listener, LISTENER)?;
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len()).into_bytes();
    let usage = r#"data: {"id":"t","object":"chat.completion.chunk","model":"truth","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#;
    let mut server = Server {
        connections: Vec::new(),
        due: BinaryHeap::new(),
        truth: Truth::default(),
        ttft: Nanos::from_micros(flag("--ttft-us", 50_000)),
        itl: Nanos::from_micros(flag("--itl-us", 10_000)),
        token: chunk(
            "data: {\"id\":\"chatcmpl-truth\",\"object\":\"chat.completion.chunk\",\"created\":1794711920,\"model\":\"truth\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n",
        ),
        end: [chunk(&format!("{usage}\n\ndata: [DONE]\n\n")), b"0\r\n\r\n".to_vec()].concat(),
    };
    let end = now() + Nanos::from_millis(1000 * flag("--seconds", 10));
    while now() < end {
        let next = server.due.peek().map_or(end, |Reverse((due, _))| (*due).min(end));
        for number in poller.wait(Some(next))? {
            if number == LISTENER {
                server.accept(&listener, &poller)?;
            } else {
                server.read(number as usize);
            }
        }
        server.write_due();
    }
    println!("{}", server.truth.report());
    Ok(())
}

impl Server {
    fn accept(&mut self, listener: &TcpListener, poller: &Poller) -> io::Result<()> {
        while let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            poller.add(&stream, self.connections.len() as u64)?;
            self.connections.push(Some(Connection { stream, received: Vec::new(), answer: None }));
        }
        Ok(())
    }

    fn read(&mut self, number: usize) {
        let Some(connection) = self.connections[number].as_mut() else { return };
        let mut buffer = vec![0; 65536];
        match connection.stream.read(&mut buffer) {
            Ok(0) => self.connections[number] = None,
            Ok(n) => {
                let arrived = now();
                connection.received.extend_from_slice(&buffer[..n]);
                self.begin(number, arrived);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.connections[number] = None,
        }
    }

    /// Starts an answer if the request is complete.
    fn begin(&mut self, number: usize, arrived: Nanos) {
        let Some(connection) = self.connections[number].as_mut() else { return };
        let Some((end, tokens)) = complete(&connection.received) else { return };
        connection.received.drain(..end);
        let due = arrived + self.ttft;
        connection.answer = Some(Answer { arrived, due, left: tokens, last_write: None });
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let _ = connection.stream.write(head);
        self.due.push(Reverse((due, number)));
        self.truth.arrivals.push(arrived.0);
        self.truth.requests += 1;
    }

    fn write_due(&mut self) {
        while let Some(Reverse((due, number))) = self.due.peek().copied() {
            if now() < due {
                return;
            }
            self.due.pop();
            self.write_token(number);
        }
    }

    fn write_token(&mut self, number: usize) {
        let Some(connection) = self.connections[number].as_mut() else { return };
        let Some(answer) = connection.answer.as_mut() else { return };
        answer.left -= 1;
        let at = now();
        let outcome = if answer.left == 0 {
            connection.stream.write(&[self.token.as_slice(), &self.end].concat())
        } else {
            connection.stream.write(&self.token)
        };
        if outcome.is_err() {
            self.connections[number] = None;
            return;
        }
        self.truth.events += 1;
        self.truth.late.push((at - answer.due).0);
        match answer.last_write {
            None => self.truth.ttft.push((at - answer.arrived).0),
            Some(last) => self.truth.itl.push((at - last).0),
        }
        answer.last_write = Some(at);
        answer.due += self.itl;
        if answer.left == 0 {
            connection.answer = None;
        } else {
            self.due.push(Reverse((answer.due, number)));
        }
    }
}

/// Where the request ends and how many tokens it asks for, once it is all there.
fn complete(received: &[u8]) -> Option<(usize, u32)> {
    let head = memchr::memmem::find(received, b"\r\n\r\n")? + 4;
    let number_after = |name: &[u8]| {
        let at = memchr::memmem::find(received, name)? + name.len();
        let digits = received[at..].iter().take_while(|byte| byte.is_ascii_digit());
        Some(digits.fold(0, |n: u32, byte| n.wrapping_mul(10).wrapping_add(u32::from(byte - b'0'))))
    };
    let end = head + number_after(b"content-length: ")? as usize;
    (received.len() >= end).then(|| (end, number_after(b"\"max_tokens\":").unwrap_or(16).max(1)))
}

impl Truth {
    fn report(&mut self) -> serde_json::Value {
        self.arrivals.sort_unstable();
        let span = self.arrivals.last().zip(self.arrivals.first()).map_or(0, |(b, a)| b - a);
        json!({
            "requests": self.requests, "events": self.events,
            "arrivals_per_s": self.arrivals.len().saturating_sub(1) as f64 / (span as f64 / 1e9),
            "ks_exponential": exponential_distance(&self.arrivals),
            "ttft_ms": self.ttft.summary(), "itl_ms": self.itl.summary(),
            "write_lateness_ms": self.late.summary(),
        })
    }
}
