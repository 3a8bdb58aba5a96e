//! A client that only reads and counts: the least CPU a streamed event can cost on this machine,
//! and the least error that its stamps can have.
//!
//! `goodput-floor --port P --tokens T --seconds S` with `--streams N`, a closed loop of N users, or
//! with `--rate R`, an open loop of Poisson arrivals. Prints events, CPU time, what it saw, and how
//! far its stamps are from the instants that the truth server writes into its tokens, as JSON.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use goodput_bench::{cpu_time, flag_or_default, optional_flag};
use goodput_clock::now;
use goodput_model::Nanos;
use goodput_truth::{BoundedValues, DIGITS, Poller, ReadySocket, parse_instant};
use memchr::memmem::Finder;
use serde_json::json;

/// How long an open loop waits for its last answers.
const DRAIN: Nanos = Nanos::from_millis(2_000);

#[expect(clippy::print_stdout, reason = "its result")]
fn main() -> io::Result<()> {
    let mut floor = FloorClient::new()?;
    let (begin, cpu_before) = (now(), cpu_time());
    let length = Nanos::from_secs_f64(flag_or_default("--seconds", 10.0));
    match optional_flag::<f64>("--rate") {
        None => floor.closed_loop(flag_or_default("--streams", 100), begin + length)?,
        Some(rate) => floor.open_loop(rate, begin + length)?,
    }
    let (cpu, seconds) = (cpu_time() - cpu_before, (now() - begin).as_secs());
    println!(
        "{}",
        json!({
            "events": floor.events, "reads": floor.reads, "seconds": seconds,
            "cpu_s": cpu.as_secs(),
            "cpu_us_per_event": cpu.as_secs() * 1e6 / floor.events.max(1) as f64,
            "ttft_ms": floor.ttft.quantiles(), "itl_ms": floor.itl.quantiles(),
            "arrival_error_ms": floor.error.quantiles(), "slip_ms": floor.slip.quantiles(),
        })
    );
    Ok(())
}

struct FloorClient {
    port: u16,
    request: Vec<u8>,
    poller: Poller,
    users: Vec<User>,
    /// Users of an open loop whose answer has ended.
    idle: Vec<usize>,
    input: Vec<u8>,
    content: Finder<'static>,
    events: u64,
    reads: u64,
    ttft: BoundedValues,
    itl: BoundedValues,
    error: BoundedValues,
    slip: BoundedValues,
}

struct User {
    stream: TcpStream,
    sent: Nanos,
    last_event: Option<Nanos>,
}

impl FloorClient {
    fn new() -> io::Result<Self> {
        goodput_clock::request_prompt_wakeups();
        let body = format!(
            r#"{{"max_tokens":{},"messages":[{{"content":"x","role":"user"}}],"model":"m","stream":true}}"#,
            flag_or_default("--tokens", 100)
        );
        let length = body.len();
        let head =
            format!("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {length}");
        Ok(Self {
            port: flag_or_default("--port", 8300),
            request: format!("{head}\r\n\r\n{body}").into_bytes(),
            poller: Poller::new()?,
            users: Vec::new(),
            idle: Vec::new(),
            input: vec![0; 64 << 10],
            content: Finder::new("\"content\":\""),
            events: 0,
            reads: 0,
            ttft: BoundedValues::default(),
            itl: BoundedValues::default(),
            error: BoundedValues::default(),
            slip: BoundedValues::default(),
        })
    }

    /// Every user asks again as soon as its answer has ended.
    fn closed_loop(&mut self, streams: usize, end: Nanos) -> io::Result<()> {
        for _ in 0..streams {
            self.connect()?;
        }
        for user in &mut self.users {
            user.ask(&self.request)?;
        }
        let mut ready: Vec<ReadySocket> = Vec::new();
        while now() < end {
            self.poller.wait(Some(end), &mut ready)?;
            for ready in &ready {
                let number = ready.number as usize;
                if self.read(number)? {
                    self.users[number].ask(&self.request)?;
                }
            }
        }
        Ok(())
    }

    /// Asks at Poisson instants, on an idle connection or a new one.
    fn open_loop(&mut self, rate: f64, end: Nanos) -> io::Result<()> {
        let mut gaps = ExponentialGaps(0x9e37_79b9_7f4a_7c15);
        let mut due = now() + gaps.next(rate);
        let mut ready: Vec<ReadySocket> = Vec::new();
        while now() < end + DRAIN && (due < end || self.idle.len() < self.users.len()) {
            let deadline = if due < end { due } else { end + DRAIN };
            self.poller.wait(Some(deadline), &mut ready)?;
            for ready in &ready {
                let number = ready.number as usize;
                if self.read(number)? {
                    self.idle.push(number);
                }
            }
            while due < end && now() >= due {
                // Getting a connection is not the schedule's error.
                let begin = now();
                let number = self.idle.pop().map_or_else(|| self.connect(), Ok)?;
                let opening = now() - begin;
                let user = &mut self.users[number];
                user.ask(&self.request)?;
                self.slip.push(user.sent - due - opening);
                due += gaps.next(rate);
            }
        }
        Ok(())
    }

    fn connect(&mut self) -> io::Result<usize> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let number = self.users.len();
        self.poller.add(&stream, number as u64)?;
        self.users.push(User { stream, sent: Nanos::ZERO, last_event: None });
        Ok(number)
    }

    /// Counts what has come for a user; whether its answer has ended.
    fn read(&mut self, number: usize) -> io::Result<bool> {
        let user = &mut self.users[number];
        let n = match user.stream.read(&mut self.input) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        let at = now();
        self.reads += 1;
        // The server hands each event to the socket whole, so none is torn by a read this large.
        let mut rest = &self.input[..n];
        while let Some(found) = self.content.find(rest) {
            rest = &rest[found + self.content.needle().len()..];
            self.events += 1;
            if let Some(written) = rest.get(..DIGITS).and_then(parse_instant) {
                self.error.push(at - written);
            }
            match user.last_event.replace(at) {
                None => self.ttft.push(at - user.sent),
                Some(last) => self.itl.push(at - last),
            }
        }
        Ok(rest.ends_with(b"\r\n0\r\n\r\n"))
    }
}

impl User {
    fn ask(&mut self, request: &[u8]) -> io::Result<()> {
        self.last_event = None;
        self.sent = now();
        (&self.stream).write_all(request)
    }
}

/// Exponential gaps from a small generator (xorshift), apart from the one under test.
struct ExponentialGaps(u64);

impl ExponentialGaps {
    fn next(&mut self, rate: f64) -> Nanos {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // 53 random bits, never zero.
        let uniform = ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        Nanos::from_secs_f64(-uniform.ln() / rate)
    }
}
