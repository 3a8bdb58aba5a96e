//! A server that behaves until it does not: accepts, reads requests, answers a few of them well, and
//! then does what its script says.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::Nanos;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::http2;
use crate::program::seconds_to_nanos;

/// The limit of every flood.
const LONGEST_S: f64 = 15.0;

/// How often a thread that waits looks whether the attack is over.
const LOOK: Duration = Duration::from_millis(50);

/// Between two bytes of a drip.
const DRIP: Nanos = Nanos::from_millis(100);

/// The head of a stream that ends with its connection.
pub(super) const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// The head of a stream in chunks.
pub(super) const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The path of answers, as far as the dialects have it in common.
pub(super) const ANSWERS: &str = "/completions";

/// One token.
pub(super) const TOKEN: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a \"}}]}\n\n";

/// The finish reason and the count; `[DONE]` does not belong to it.
pub(super) const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}],\
     \"usage\":{\"prompt_tokens\":32,\"completion_tokens\":8}}\n\n";

pub(super) const DONE: &str = "data: [DONE]\n\n";

/// The events of a good answer.
pub(super) fn good_events() -> String {
    [TOKEN.repeat(8).as_str(), FINISH, DONE].concat()
}

/// One chunk with this inside.
pub(super) fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// A whole answer with a length.
pub(super) fn whole(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// What is done to a connection.
#[derive(Clone)]
pub(super) enum Act {
    /// Bytes, then the end.
    Close(Vec<u8>),
    /// Bytes, then a reset.
    Reset(Vec<u8>),
    /// Bytes, then nothing, and no end.
    Hold(Vec<u8>),
    /// Bytes, then others again and again.
    Flood(Vec<u8>, Vec<u8>),
    /// Bytes, then others one at a time, again and again.
    Drip(Vec<u8>, Vec<u8>),
    /// Anything else.
    With(fn(&mut PeerConnection) -> io::Result<()>),
}

pub(super) fn close(bytes: impl Into<Vec<u8>>) -> Act {
    Act::Close(bytes.into())
}

pub(super) fn hold(bytes: impl Into<Vec<u8>>) -> Act {
    Act::Hold(bytes.into())
}

pub(super) fn flood(first: impl Into<Vec<u8>>, rest: impl Into<Vec<u8>>) -> Act {
    Act::Flood(first.into(), rest.into())
}

/// When the act begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// As soon as there is a connection.
    Opened,
    /// With the first byte on a connection, which is not read; before TLS.
    Accepted,
    /// When a request has been read.
    Asked,
}

/// Which protocol good answers are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerProtocol {
    Http1,
    Http2,
}

/// How a server behaves.
#[derive(Clone)]
pub(super) struct Script {
    pub(super) act: Act,
    pub(super) when: When,
    pub(super) protocol: AnswerProtocol,
    /// Which requests are met with the act; others are answered as usual.
    pub(super) path: &'static str,
    /// This many of them are answered well before.
    pub(super) good: usize,
    pub(super) tls: Option<Arc<ServerConfig>>,
    /// What `--cacert` may name, as `ca.pem`.
    pub(super) authority: Option<String>,
}

impl Script {
    pub(super) fn new(act: Act) -> Self {
        Self {
            act,
            when: When::Asked,
            protocol: AnswerProtocol::Http1,
            path: ANSWERS,
            good: 0,
            tls: None,
            authority: None,
        }
    }
}

/// What threads of a server share.
struct ServerState {
    script: Script,
    stop: AtomicBool,
    /// Requests for the script's path so far.
    asked: AtomicUsize,
    /// The target of redirects, which no request may reach.
    elsewhere: TcpListener,
}

/// A server on the loopback until it is dropped.
pub(super) struct HostileServer {
    shared: Arc<ServerState>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl HostileServer {
    pub(super) fn start(script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let elsewhere = TcpListener::bind("127.0.0.1:0")?;
        elsewhere.set_nonblocking(true)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
        let shared = Arc::new(ServerState { script, stop, asked, elsewhere });
        let own = Arc::clone(&shared);
        let thread = thread::spawn(move || accept(&listener, &own));
        Ok(Self { shared, address, thread: Some(thread) })
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(super) fn script(&self) -> &Script {
        &self.shared.script
    }

    pub(super) fn asked(&self) -> usize {
        self.shared.asked.load(SeqCst)
    }

    pub(super) fn was_elsewhere_asked(&self) -> bool {
        self.shared.elsewhere.accept().is_ok()
    }
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<ServerState>) {
    let mut threads = Vec::new();
    while !shared.stop.load(SeqCst) {
        match listener.accept() {
            Ok((tcp, _)) => {
                let shared = Arc::clone(shared);
                // The attacked program may exit at any time, so errors are ignored.
                threads.push(thread::spawn(move || drop(serve(tcp, shared))));
            }
            Err(_) => pause(Nanos::from_millis(1)),
        }
    }
    for thread in threads {
        let _ = thread.join();
    }
}

fn serve(tcp: TcpStream, shared: Arc<ServerState>) -> io::Result<()> {
    tcp.set_nonblocking(false)?;
    tcp.set_nodelay(true)?;
    tcp.set_read_timeout(Some(LOOK))?;
    tcp.set_write_timeout(Some(LOOK))?;
    let script = shared.script.clone();
    let is_hostile = shared.asked.load(SeqCst) >= script.good;
    let patient =
        Patient { tcp, end: now() + seconds_to_nanos(LONGEST_S), shared: Arc::clone(&shared) };
    let tcp = patient.tcp.try_clone()?;
    let mut peer = PeerConnection { wire: Box::new(patient.again()?), tcp, shared };
    if is_hostile && (script.when == When::Opened || script.when == When::Accepted) {
        // A look whether the port is open sends nothing.
        if script.when == When::Accepted && !peer.is_spoken_to() {
            return Ok(());
        }
        peer.shared.asked.fetch_add(1, SeqCst);
        return peer.act(&script.act);
    }
    if let Some(config) = script.tls {
        let connection = ServerConnection::new(config).map_err(io::Error::other)?;
        let mut secured = StreamOwned::new(connection, patient);
        while secured.conn.is_handshaking() {
            secured.conn.complete_io(&mut secured.sock)?;
        }
        peer.wire = Box::new(secured);
    }
    match script.protocol {
        AnswerProtocol::Http1 => peer.serve_http1(),
        AnswerProtocol::Http2 => http2::serve(&mut peer),
    }
}

/// A socket that does not block forever after the attack.
struct Patient {
    tcp: TcpStream,
    end: Nanos,
    shared: Arc<ServerState>,
}

impl Patient {
    fn again(&self) -> io::Result<Self> {
        let (tcp, end) = (self.tcp.try_clone()?, self.end);
        Ok(Self { tcp, end, shared: Arc::clone(&self.shared) })
    }

    fn is_over(&self) -> bool {
        self.shared.stop.load(SeqCst) || now() > self.end
    }

    /// Tries again and again until it is over.
    fn retry(
        &mut self,
        mut one: impl FnMut(&mut TcpStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            match one(&mut self.tcp) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !self.is_over() => {}
                _ if self.is_over() => return Err(io::ErrorKind::TimedOut.into()),
                outcome => return outcome,
            }
        }
    }
}

impl Read for Patient {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.retry(|tcp| tcp.read(room))
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.retry(|tcp| tcp.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes in and out, plain or under TLS.
pub(super) trait Wire: Read + Write {
    /// A new key for what is sent, where there is one.
    fn change_key(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The end of what is sent, in good order.
    fn say_goodbye(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Wire for Patient {}

impl Wire for StreamOwned<ServerConnection, Patient> {
    fn change_key(&mut self) -> io::Result<()> {
        self.conn.refresh_traffic_keys().map_err(io::Error::other)
    }

    fn say_goodbye(&mut self) -> io::Result<()> {
        self.conn.send_close_notify();
        self.flush()
    }
}

/// The other end of one connection.
pub(super) struct PeerConnection {
    pub(super) wire: Box<dyn Wire>,
    pub(super) tcp: TcpStream,
    shared: Arc<ServerState>,
}

impl PeerConnection {
    /// Whether this request for the script's path is one of those that are answered well.
    pub(super) fn is_spared(&self) -> bool {
        self.shared.asked.fetch_add(1, SeqCst) < self.shared.script.good
    }

    pub(super) fn script(&self) -> &Script {
        &self.shared.script
    }

    pub(super) fn elsewhere(&self) -> io::Result<SocketAddr> {
        self.shared.elsewhere.local_addr()
    }

    pub(super) fn is_over(&self) -> bool {
        self.shared.stop.load(SeqCst)
    }

    pub(super) fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.wire.write_all(bytes.as_ref())?;
        self.wire.flush()
    }

    /// Until the attack is over.
    pub(super) fn hold(&self) {
        let end = now() + seconds_to_nanos(LONGEST_S);
        while !self.is_over() && now() < end {
            pause(Nanos::from_millis(10));
        }
    }

    /// Waits for a first byte, and leaves it where it is.
    fn is_spoken_to(&self) -> bool {
        let end = now() + seconds_to_nanos(LONGEST_S);
        while !self.is_over() && now() < end {
            match self.tcp.peek(&mut [0]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return outcome.is_ok_and(|length| length > 0),
            }
        }
        false
    }

    pub(super) fn act(&mut self, act: &Act) -> io::Result<()> {
        match act {
            Act::Close(bytes) => self.send(bytes)?,
            Act::Reset(bytes) => {
                self.send(bytes)?;
                // What was sent is to arrive first.
                pause(Nanos::from_millis(50));
                rustix::net::sockopt::set_socket_linger(&self.tcp, Some(Duration::ZERO))?;
            }
            Act::Hold(bytes) => {
                self.send(bytes)?;
                self.hold();
            }
            Act::Flood(first, rest) => {
                self.send(first)?;
                self.flood(rest)?;
            }
            Act::Drip(first, rest) => {
                self.send(first)?;
                for byte in rest.iter().cycle() {
                    self.send([*byte])?;
                    pause(DRIP);
                }
            }
            Act::With(act) => act(self)?,
        }
        Ok(())
    }

    /// The same again and again, in large pieces, until the peer is gone.
    pub(super) fn flood(&mut self, piece: &[u8]) -> io::Result<()> {
        let many = piece.repeat((64 << 10) / piece.len().max(1) + 1);
        loop {
            self.send(&many)?;
        }
    }

    fn serve_http1(&mut self) -> io::Result<()> {
        loop {
            let line = self.read_request()?;
            let script = self.script().clone();
            if line.contains(script.path) && !self.is_spared() {
                return self.act(&script.act);
            }
            if line.contains(ANSWERS) {
                let events = chunk(&good_events());
                self.send([CHUNKED, &events, "0\r\n\r\n"].concat())?;
            } else {
                self.send(whole("404 Not Found", "text/plain", "no"))?;
            }
        }
    }

    /// Reads one request, and returns its first line.
    pub(super) fn read_request(&mut self) -> io::Result<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.wire.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.wire.read_exact(&mut body)?;
        Ok(head.lines().next().unwrap_or_default().to_owned())
    }
}
