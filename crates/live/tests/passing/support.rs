//! What the tests of the proxy share: a witness that remembers, a proxy that is started, raw sockets.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_live::{Answered, Limits, ObservedRequest, Proxy, Settings, Upstream, Witness};
use goodput_model::{Http, Nanos};

/// Longest wait for what must happen; nothing is expected to take this long.
pub const PATIENCE: Nanos = Nanos::from_millis(20_000);

/// Remembers everything.
#[derive(Default)]
pub struct Notes {
    pub asked: Mutex<Vec<ObservedRequest>>,
    pub answered: Mutex<Vec<Answered>>,
}

impl Witness for Notes {
    fn request_seen(&self, asked: ObservedRequest) {
        self.asked.lock().unwrap().push(asked);
    }

    fn answer_seen(&self, answered: Answered) {
        self.answered.lock().unwrap().push(answered);
    }
}

impl Notes {
    /// The answers, once there are this many.
    pub fn answers(&self, count: usize) -> Vec<Answered> {
        until(|| self.answered.lock().unwrap().len() >= count);
        self.answered.lock().unwrap().clone()
    }

    pub fn questions(&self) -> Vec<ObservedRequest> {
        self.asked.lock().unwrap().clone()
    }
}

/// Waits until something is so.
#[track_caller]
pub fn until(is_so: impl Fn() -> bool) {
    let end = now() + PATIENCE;
    while !is_so() {
        assert!(now() < end, "it did not happen");
        pause(Nanos::from_millis(2));
    }
}

pub fn upstream(url: &str) -> Upstream {
    Upstream { url: url.parse().unwrap(), http: Http::Http1, cacert: None, insecure: false }
}

pub fn settings(url: &str) -> Settings {
    Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        upstream: upstream(url),
        workers: 1,
        session_header: Some("x-session".to_owned()),
        keep_text: false,
        limits: Limits::default(),
    }
}

pub fn start(settings: Settings) -> (Proxy, Arc<Notes>) {
    let notes = Arc::new(Notes::default());
    let proxy = Proxy::start(settings, Arc::<Notes>::clone(&notes)).unwrap();
    (proxy, notes)
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// A POST of this body to this path, with `Connection: close`.
pub fn post(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends bytes and reads everything until the connection ends.
pub fn exchange(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = connect(address);
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// Head and body of a raw answer.
pub fn split(answer: &[u8]) -> (String, &[u8]) {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    (String::from_utf8_lossy(&answer[..end]).into_owned(), &answer[end + 4..])
}

/// The bytes of a chunked body, and whether its last chunk came.
pub fn unchunk(mut body: &[u8]) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    loop {
        let Some(end) = body.windows(2).position(|two| two == b"\r\n") else {
            return (bytes, false);
        };
        let size = std::str::from_utf8(&body[..end]).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        body = &body[end + 2..];
        if size == 0 {
            return (bytes, true);
        }
        if body.len() < size + 2 {
            bytes.extend_from_slice(&body[..size.min(body.len())]);
            return (bytes, false);
        }
        bytes.extend_from_slice(&body[..size]);
        body = &body[size + 2..];
    }
}

/// A server that only listens and hands each connection's bytes to a function, for what the test kit
/// does not play.
pub fn raw_server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Reads until the client ends.
pub fn read_all(mut stream: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let _ = stream.shutdown(Shutdown::Both);
    bytes
}
