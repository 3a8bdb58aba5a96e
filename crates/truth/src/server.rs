//! The server's one loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use goodput_clock::now;
use goodput_model::Nanos;
use rustix::net::SocketFlags;

use crate::Timing;
use crate::numbers::{Report, Truth};
use crate::poller::{Poller, ReadySocket};
use crate::request::{HEAD_LIMIT, RequestProgress, Route, request_progress};
use crate::template::{self, HEAD, TokenTemplate};

const LISTENER: u64 = 0;
const STOP: u64 = 1;
const FIRST_CONNECTION: u64 = 2;

/// Connections that may wait to be accepted: a thousand clients may start at once.
const BACKLOG: i32 = 4096;

/// Requests begun and tokens written between two looks at the sockets, so that arrivals are stamped
/// in time even when a thousand of them come, or are due, at once.
const BATCH: usize = 8;

/// How long to leave waiting connections alone when the process is out of descriptors.
const RECOVERY: Nanos = Nanos::from_millis(50);

/// Serves on the calling thread until the instant has come, and says what really happened.
pub fn serve_until(listener: TcpListener, timing: Timing, until: Nanos) -> io::Result<Report> {
    goodput_clock::request_prompt_wakeups();
    ServerLoop::new(listener, timing)?.run(Some(until))
}

pub(crate) struct ServerLoop {
    listener: TcpListener,
    poller: Poller,
    connections: HashMap<u64, Connection>,
    next_number: u64,
    /// Connections that have something new: read already, not yet looked at.
    news: VecDeque<u64>,
    /// When the next token of each answer is due; an answer whose socket is full is not in here.
    due: BinaryHeap<Reverse<(Nanos, u64)>>,
    timing: Timing,
    token: TokenTemplate,
    /// The last token of an answer and its end, put together for one write.
    last: Vec<u8>,
    input: Vec<u8>,
    truth: Truth,
    /// When to accept again, after running out of descriptors.
    deaf_until: Option<Nanos>,
}

struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    /// Bytes that must have been received before it is worth to look again.
    needs: usize,
    arrived: Nanos,
    is_news: bool,
    answer: Option<TruthAnswer>,
    /// What the socket did not take.
    unsent: Vec<u8>,
    /// The socket is full.
    is_blocked: bool,
    /// The poller has been told so.
    watches_writes: bool,
    /// No more requests after this answer.
    closes: bool,
}

struct TruthAnswer {
    arrived: Nanos,
    due: Nanos,
    tokens: u32,
    left: u32,
    usage: bool,
    last_write: Option<Nanos>,
}

impl ServerLoop {
    pub(crate) fn new(listener: TcpListener, timing: Timing) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        rustix::net::listen(&listener, BACKLOG)?;
        // Accepted sockets inherit this.
        rustix::net::sockopt::set_tcp_nodelay(&listener, true)?;
        let poller = Poller::new()?;
        poller.add(&listener, LISTENER)?;
        Ok(Self {
            listener,
            poller,
            connections: HashMap::new(),
            next_number: FIRST_CONNECTION,
            news: VecDeque::new(),
            due: BinaryHeap::new(),
            timing,
            token: TokenTemplate::new(),
            last: Vec::new(),
            input: vec![0; 64 << 10],
            truth: Truth::default(),
            deaf_until: None,
        })
    }

    /// Ends the loop once this is readable.
    pub(crate) fn stop_on(&self, signal: &OwnedFd) -> io::Result<()> {
        self.poller.add(signal, STOP)
    }

    pub(crate) fn run(mut self, until: Option<Nanos>) -> io::Result<Report> {
        let mut ready: Vec<ReadySocket> = Vec::new();
        loop {
            let next = self.due.peek().map(|Reverse((due, _))| *due);
            let at_once = (!self.news.is_empty()).then_some(Nanos::ZERO);
            let deadline = [until, next, self.deaf_until, at_once].into_iter().flatten().min();
            self.poller.wait(deadline, &mut ready)?;
            for ready in &ready {
                match ready.number {
                    LISTENER => self.accept()?,
                    STOP => return Ok(self.truth.report()),
                    number => self.handle_ready(number, *ready),
                }
            }
            self.continue_pending();
            self.write_due();
            let present = now();
            if until.is_some_and(|until| present >= until) {
                return Ok(self.truth.report());
            }
            if self.deaf_until.is_some_and(|instant| present >= instant) {
                self.deaf_until = None;
                self.poller.add(&self.listener, LISTENER)?;
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match rustix::net::accept_with(&self.listener, flags) {
                Ok(socket) => self.add_connection(TcpStream::from(socket))?,
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
                Err(_) => {
                    // Out of descriptors or memory: without a pause the loop would turn for nothing.
                    self.poller.remove(&self.listener)?;
                    self.deaf_until = Some(now() + RECOVERY);
                    return Ok(());
                }
            }
        }
    }

    fn add_connection(&mut self, stream: TcpStream) -> io::Result<()> {
        let number = self.next_number;
        self.next_number += 1;
        self.poller.add(&stream, number)?;
        let connection = Connection {
            stream,
            received: Vec::new(),
            needs: 0,
            arrived: Nanos::ZERO,
            is_news: false,
            answer: None,
            unsent: Vec::new(),
            is_blocked: false,
            watches_writes: false,
            closes: false,
        };
        self.connections.insert(number, connection);
        Ok(())
    }

    /// Takes what has come and sends what is left; the rest can wait.
    fn handle_ready(&mut self, number: u64, ready: ReadySocket) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let received = if ready.readable { connection.read(&mut self.input) } else { Ok(()) };
        let sent = if ready.writable { connection.send_rest() } else { Ok(()) };
        if received.and(sent).is_err() {
            // Whatever it was, it is that client's affair.
            self.connections.remove(&number);
        } else if !connection.is_news {
            connection.is_news = true;
            self.news.push_back(number);
        }
    }

    fn continue_pending(&mut self) {
        for _ in 0..BATCH {
            let Some(number) = self.news.pop_front() else { return };
            let Some(connection) = self.connections.get_mut(&number) else { continue };
            connection.is_news = false;
            // An answer that waits for its instant is among the due ones already.
            let is_waiting = connection.answer.is_some() && !connection.watches_writes;
            if !is_waiting && self.continue_connection(number).is_err() {
                self.connections.remove(&number);
            }
        }
    }

    /// Takes the next step of a connection: wait for its socket, wait for the next token's instant,
    /// or begin with the next request.
    fn continue_connection(&mut self, number: u64) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(()) };
        loop {
            if connection.is_blocked != connection.watches_writes {
                let watch = connection.is_blocked;
                self.poller.watch_writes(&connection.stream, number, watch)?;
                connection.watches_writes = watch;
            }
            if connection.is_blocked {
                return Ok(());
            }
            if let Some(answer) = connection.answer.as_ref().filter(|answer| answer.left > 0) {
                self.due.push(Reverse((answer.due, number)));
                return Ok(());
            }
            connection.answer = None;
            if connection.closes {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            let Some(asked) = connection.next_request()? else { return Ok(()) };
            if let Route::Stream { tokens, usage } = asked {
                let arrived = connection.arrived;
                let due = arrived + self.timing.ttft;
                connection.answer = Some(TruthAnswer {
                    arrived,
                    due,
                    tokens,
                    left: tokens,
                    usage,
                    last_write: None,
                });
                self.truth.add_arrival(arrived);
            }
        }
    }

    fn write_due(&mut self) {
        for _ in 0..BATCH {
            let Some(Reverse((due, number))) = self.due.peek().copied() else { return };
            if now() < due {
                return;
            }
            self.due.pop();
            if self.write_token(number).and_then(|()| self.continue_connection(number)).is_err() {
                self.connections.remove(&number);
            }
        }
    }

    fn write_token(&mut self, number: u64) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(()) };
        let Connection { stream, unsent, is_blocked, answer: Some(answer), .. } = connection else {
            return Ok(());
        };
        let is_last = answer.left == 1;
        if is_last {
            self.last.clear();
            self.last.extend(self.token.with_instant(Nanos::ZERO));
            self.last.extend(template::end_events(answer.tokens, answer.usage));
        }
        let at = now();
        let token = self.token.with_instant(at);
        let bytes = if is_last {
            self.last[..token.len()].copy_from_slice(token);
            &self.last
        } else {
            token
        };
        let written = write_some(stream, bytes)?;
        *is_blocked = written < bytes.len();
        if written == 0 {
            // The token has not begun: it gets a new instant once there is room.
            return Ok(());
        }
        unsent.extend_from_slice(&bytes[written..]);
        self.truth.events += 1;
        self.truth.last_write = at;
        self.truth.lateness.push(at - answer.due);
        match answer.last_write {
            None => self.truth.ttft.push(at - answer.arrived),
            Some(last) => self.truth.itl.push(at - last),
        }
        answer.last_write = Some(at);
        answer.due += self.timing.itl;
        answer.left -= 1;
        Ok(())
    }
}

impl Connection {
    fn read(&mut self, input: &mut [u8]) -> io::Result<()> {
        match self.stream.read(input) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                self.arrived = now();
                self.received.extend_from_slice(&input[..n]);
                // Our clients do not send more while they are being answered.
                let is_flood = self.answer.is_some() && self.received.len() > HEAD_LIMIT;
                if is_flood { Err(ErrorKind::InvalidData.into()) } else { Ok(()) }
            }
            Err(error) if is_temporary(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes the next request, if it is all there, and sends the beginning of its answer.
    fn next_request(&mut self) -> io::Result<Option<Route>> {
        if self.received.is_empty() || self.received.len() < self.needs {
            return Ok(None);
        }
        let request = match request_progress(&self.received) {
            RequestProgress::Whole(request) => request,
            RequestProgress::Needs(bytes) => {
                self.needs = bytes;
                return Ok(None);
            }
            RequestProgress::Broken => {
                let _ = write_some(&self.stream, &template::response_page("400 Bad Request", "{}"));
                return Err(ErrorKind::InvalidData.into());
            }
        };
        self.received.drain(..request.length);
        self.received.shrink_to(HEAD_LIMIT);
        self.needs = 0;
        self.closes = request.closes;
        match request.asked {
            Route::Stream { .. } => self.send(HEAD)?,
            Route::Models => self.send(&template::response_page("200 OK", MODELS))?,
            Route::Health => self.send(&template::response_page("200 OK", "{}"))?,
            Route::Unknown => self.send(&template::response_page("404 Not Found", "{}"))?,
        }
        Ok(Some(request.asked))
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = write_some(&self.stream, bytes)?;
        self.unsent.extend_from_slice(&bytes[written..]);
        self.is_blocked = !self.unsent.is_empty();
        Ok(())
    }

    fn send_rest(&mut self) -> io::Result<()> {
        let written = write_some(&self.stream, &self.unsent)?;
        self.unsent.drain(..written);
        self.is_blocked = !self.unsent.is_empty();
        Ok(())
    }
}

const MODELS: &str = r#"{"object":"list","data":[{"id":"truth","object":"model","created":1794711920,"owned_by":"goodput"}]}"#;

/// How many bytes the socket took, which may be none.
fn write_some(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() {
        return Ok(0);
    }
    match stream.write(bytes) {
        Err(error) if is_temporary(&error) => Ok(0),
        outcome => outcome,
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
