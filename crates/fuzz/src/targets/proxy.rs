//! The proxy on loopback sockets, between a client or a server that says whatever the input holds.

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use goodput_live::{
    Answered, Limits as ProxyLimits, ObservedRequest, Proxy, Settings, Upstream, Witness,
};
use goodput_model::Http;

use super::{FuzzTarget, USUAL, text_seeds, wire};

/// Nothing waits but by a mistake of ours; it is wall-clock time, so it is much.
const PATIENCE: Duration = Duration::from_mins(1);

/// What waits for a client or a server that says too little; the proxy's own limits end it.
const SHORT_WAIT: Duration = Duration::from_millis(200);

/// Connections from one address to one address leave their ports behind for a minute.
const INPUTS_PER_PROXY: u32 = 4_000;

/// Inputs of a short run: each is two connections.
const SHORT: u64 = 300;

/// A request that is as it should be.
const REQUEST: &[u8] = b"POST /v1/chat/completions HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\
    content-type: application/json\r\ncontent-length: 29\r\n\r\n{\"model\":\"m\",\"messages\":[1]}\n";

/// An answer that is as it should be.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
    content-length: 2\r\n\r\n{}";

pub(super) fn targets() -> Vec<FuzzTarget> {
    vec![
        FuzzTarget {
            name: "proxy-request",
            seeds: request_seeds,
            words: &[
                "POST /v1/chat/completions HTTP/1.1\r\n",
                "GET http://other/ HTTP/1.1\r\n",
                "host: here\r\n",
                "content-length: 5\r\n",
                "transfer-encoding: chunked\r\n",
                "Transfer-Encoding : chunked\r\n",
                "connection: upgrade, x-y\r\n",
                "upgrade: websocket\r\n",
                "expect: 100-continue\r\n",
                "5\r\nhello\r\n",
                "0\r\n\r\n",
                "\r\n\r\n",
                "x-session: a\r\n",
                " folded\r\n",
            ],
            check: |case| drive_proxy(case.input, ANSWER),
            limits: USUAL,
            short: SHORT,
        },
        FuzzTarget {
            name: "proxy-answer",
            seeds: answer_seeds,
            words: &wire::EVENTS,
            check: |case| drive_proxy(REQUEST, case.input),
            limits: USUAL,
            short: SHORT,
        },
    ]
}

fn request_seeds() -> Vec<Vec<u8>> {
    let mut all = vec![REQUEST.to_vec()];
    all.extend(text_seeds(&[
        "GET /v1/models HTTP/1.1\r\nhost: here\r\n\r\nGET /goodput/health HTTP/1.1\r\nhost: here\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-t: 1\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: here\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n{}",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0",
    ]));
    // HTTP/2: `:method POST`, `:scheme http`, `:path /`, then data.
    let head = [0, 0, 3, 1, 4, 0, 0, 0, 1, 0x83, 0x86, 0x84];
    let data = [0, 0, 2, 0, 1, 0, 0, 0, 1, b'{', b'}'];
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    all.push([&preface[..], &head, &data].concat());
    all
}

fn answer_seeds() -> Vec<Vec<u8>> {
    let mut all = wire::head_seeds();
    all.push(ANSWER.to_vec());
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    all.extend(wire::stream_seeds().iter().take(6).map(|stream| [&head[..], stream].concat()));
    all
}

/// Does not store requests.
struct Forgetful;

impl Witness for Forgetful {
    fn request_seen(&self, _: ObservedRequest) {}
    fn answer_seen(&self, _: Answered) {}
}

/// A proxy of one fuzzing thread, and what the server behind it says.
struct ThreadProxy {
    proxy: Proxy,
    answer: Arc<Mutex<Vec<u8>>>,
    used: u32,
}

thread_local! {
    static PLACE: RefCell<Option<ThreadProxy>> = const { RefCell::new(None) };
}

impl ThreadProxy {
    fn new() -> Result<Self, String> {
        let answer = Arc::new(Mutex::new(Vec::new()));
        let server = start_server(Arc::clone(&answer))
            .map_err(|error| format!("cannot use the loopback interface: {error}"))?;
        let url = format!("http://{server}").parse().map_err(|error| format!("{error:?}"))?;
        let upstream = Upstream { url, http: Http::Http1, cacert: None, insecure: false };
        let limits = ProxyLimits {
            head_time: SHORT_WAIT,
            body_time: SHORT_WAIT,
            answer_time: SHORT_WAIT,
            ..ProxyLimits::default()
        };
        let settings = Settings {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            tls: None,
            upstream,
            workers: 1,
            session_header: Some("x-session".to_owned()),
            keep_text: true,
            limits,
        };
        let proxy =
            Proxy::start(settings, Arc::new(Forgetful)).map_err(|error| error.to_string())?;
        Ok(Self { proxy, answer, used: 0 })
    }
}

/// A server that says the answer to everybody and hears whatever they say. Its thread ends with the
/// process.
fn start_server(answer: Arc<Mutex<Vec<u8>>>) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::Builder::new().spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let bytes = answer.lock().unwrap_or_else(PoisonError::into_inner).clone();
            // The proxy may be gone already: that is its right.
            let _ = stream.set_read_timeout(Some(SHORT_WAIT));
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(Shutdown::Write);
            while stream.read(&mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {}
        }
    })?;
    Ok(address)
}

/// Sends a request through the proxy to a server that gives this answer, and waits for the end.
fn drive_proxy(request: &[u8], answer: &[u8]) -> Result<(), String> {
    let place = PLACE.take().filter(|place| place.used < INPUTS_PER_PROXY);
    let mut place = place.map_or_else(ThreadProxy::new, Ok)?;
    place.used += 1;
    answer.clone_into(&mut place.answer.lock().unwrap_or_else(PoisonError::into_inner));
    let failed = |error: std::io::Error| format!("cannot use the loopback interface: {error}");
    let mut stream = TcpStream::connect(place.proxy.address()).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    // It may refuse the request before it has come whole.
    let _ = stream.write_all(request);
    let _ = stream.shutdown(Shutdown::Write);
    let mut room = [0; 4096];
    let outcome = loop {
        match stream.read(&mut room) {
            Ok(0) => break Ok(()),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                break Err(
                    "the proxy keeps the connection of a client that has finished".to_owned()
                );
            }
            Err(_) => break Ok(()),
        }
    };
    let is_running = place.proxy.is_running();
    PLACE.set(Some(place));
    if is_running { outcome } else { Err("a thread of the proxy has ended".to_owned()) }
}
