//! The client itself, on a loopback socket, against a server that says whatever the input holds.
//!
//! Slower than the rest, but what stands between the bytes and our parsers (sockets, hyper's HTTP/2,
//! the pool, the time limits) takes part.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::process;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use goodput_model::{Api, ConnectionPolicy, Exchange, Http};
use goodput_wire::{
    Client, Endpoint, EndpointSettings, PagePlace, Tokenizing, fetch_facts_pages, list_models,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;
use tokio::time::timeout;

use super::{FuzzTarget, InputLimits, ParserInput, USUAL, wire};

/// The server closes at once, so nothing waits but by a mistake of ours. It is wall-clock time: much.
const PATIENCE: Duration = Duration::from_mins(1);

/// Connections from one address to one address leave their ports behind for a minute.
const INPUTS_PER_ADDRESS: u32 = 4_000;

/// Sockets have buffers, and so has HTTP/2: 16 KiB frames and a table of headers.
const LIMITS: InputLimits =
    InputLimits { bytes: 4 << 20, per_byte: 128, time: Duration::from_secs(2) };

/// Inputs of a short run: each is a connection or several.
const SHORT: u64 = 400;

pub(super) fn targets() -> Vec<FuzzTarget> {
    vec![
        FuzzTarget {
            name: "client-http1",
            seeds: wire::head_seeds,
            words: &wire::EVENTS,
            check: |case| drive_client(case, Http::Http1, Ask::Stream),
            limits: LIMITS,
            short: SHORT,
        },
        FuzzTarget {
            name: "client-http2",
            seeds: frame_seeds,
            words: &["data: ", "\n\n", "200", "content-type", "\0\0\0\x04\u{1}\0\0\0\0"],
            check: |case| drive_client(case, Http::Http2, Ask::Stream),
            limits: LIMITS,
            short: SHORT,
        },
        FuzzTarget {
            name: "client-models",
            seeds: answer_seeds,
            words: &["\"data\":", "\"id\":", "\"max_model_len\":"],
            check: |case| drive_client(case, Http::Http1, Ask::Models),
            limits: USUAL,
            short: SHORT,
        },
        FuzzTarget {
            name: "client-tokenize",
            seeds: answer_seeds,
            words: &["\"count\":", "\"tokens\":[", "\"max_model_len\":"],
            check: |case| drive_client(case, Http::Http1, Ask::Tokens),
            limits: USUAL,
            short: SHORT,
        },
        FuzzTarget {
            name: "client-pages",
            seeds: answer_seeds,
            words: &["\"version\":", "{", "}"],
            check: |case| drive_client(case, Http::Http1, Ask::Pages),
            limits: LIMITS,
            short: SHORT,
        },
    ]
}

/// What the client asks for.
#[derive(Clone, Copy)]
enum Ask {
    Stream,
    Models,
    Tokens,
    Pages,
}

/// What a thread keeps from input to input.
struct ThreadClient {
    runtime: Runtime,
    listener: Rc<TcpListener>,
    used: u32,
}

thread_local! {
    static PLACE: RefCell<Option<ThreadClient>> = const { RefCell::new(None) };
}

/// Addresses used so far by this process.
static ADDRESSES: AtomicU32 = AtomicU32::new(0);

impl ThreadClient {
    fn new() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // All of 127.0.0.0/8 is this machine; other processes that fuzz begin elsewhere.
        let number = ADDRESSES.fetch_add(1, Ordering::Relaxed).wrapping_add(process::id() << 8);
        let [_, high, middle, low] = (number & 0x00ff_ffff).to_be_bytes();
        let address = SocketAddr::from((Ipv4Addr::new(127, high, middle, low.clamp(1, 254)), 0));
        let listener = Rc::new(runtime.block_on(TcpListener::bind(address))?);
        Ok(Self { runtime, listener, used: 0 })
    }
}

fn drive_client(case: &ParserInput<'_>, http: Http, ask: Ask) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot use the loopback interface: {error}");
    let place = PLACE.take().filter(|place| place.used < INPUTS_PER_ADDRESS);
    let mut place = place.map_or_else(ThreadClient::new, Ok).map_err(failed)?;
    place.used += 1;
    let address = place.listener.local_addr().map_err(failed)?;
    let endpoint = new_endpoint(address, http, ask)?;
    // Sockets of tasks that are dropped need it.
    let context = place.runtime.enter();
    let tasks = LocalSet::new();
    let listener = Rc::clone(&place.listener);
    let answer = Bytes::copy_from_slice(case.input);
    tasks.spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::task::spawn_local(async move {
                // The other side may be gone already: that is its right.
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
                let mut room = [0; 4096];
                while stream.read(&mut room).await.is_ok_and(|bytes| bytes > 0) {}
            });
        }
    });
    let asked = tasks.block_on(&place.runtime, timeout(PATIENCE, send_requests(endpoint, ask)));
    drop(tasks);
    drop(context);
    PLACE.set(Some(place));
    asked.map_err(|_| "the client still waits for a server that is gone".to_owned())
}

fn new_endpoint(address: SocketAddr, http: Http, ask: Ask) -> Result<Arc<Endpoint>, String> {
    let url = format!("http://{address}").parse();
    let settings = EndpointSettings {
        url: url.map_err(|error| format!("{error:?}"))?,
        api: Api::Chat,
        stream: matches!(ask, Ask::Stream),
        http,
        connections: ConnectionPolicy::Reuse,
        api_key: Some("sk-secret".to_owned()),
        headers: Vec::new(),
        cacert: None,
        insecure: false,
        keep_text: true,
    };
    Endpoint::new(&settings).map(Arc::new).map_err(|error| error.to_string())
}

async fn send_requests(endpoint: Arc<Endpoint>, ask: Ask) {
    match ask {
        Ask::Stream => {
            let mut exchange = Exchange::default();
            Client::new(endpoint).send(Bytes::from_static(b"{}"), &mut exchange).await;
        }
        Ask::Models => drop(list_models(&endpoint).await),
        Ask::Tokens => {
            let mut tokenizing = Tokenizing::new(&endpoint, "m");
            drop(tokenizing.count("a").await);
            drop(tokenizing.count("b").await);
        }
        Ask::Pages => {
            drop(fetch_facts_pages(&endpoint).await);
            let mut reader = PagePlace::next_to(&endpoint, "metrics").to_reader();
            drop(reader.read(PATIENCE).await);
        }
    }
}

fn answer_seeds() -> Vec<Vec<u8>> {
    let answer = |body: &str| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";
        format!("{head}{}\r\n\r\n{body}", body.len()).into_bytes()
    };
    let mut all: Vec<_> = [
        r#"{"object":"list","data":[{"id":"m","max_model_len":4096},{"id":"n"}]}"#,
        r#"{"count":3,"max_model_len":4096,"tokens":[1,2,3]}"#,
        r#"{"tokens":[1,{"id":2}]}"#,
        r#"{"version":"1.2","tp_size":8}"#,
        "vllm:num_requests_running 3\n",
    ]
    .into_iter()
    .map(answer)
    .collect();
    all.extend(wire::head_seeds());
    all
}

/// One frame of HTTP/2.
fn http2_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// What a server says first: its settings, an answer to the first stream, and more of the kind.
fn frame_seeds() -> Vec<Vec<u8>> {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const RESET: u8 = 3;
    const SETTINGS: u8 = 4;
    const PUSH: u8 = 5;
    const PING: u8 = 6;
    const GO_AWAY: u8 = 7;
    const WINDOW: u8 = 8;
    const CONTINUATION: u8 = 9;
    const END_STREAM: u8 = 1;
    const END_HEADERS: u8 = 4;
    let settings = http2_frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100, 0, 4, 0, 1, 0, 0]);
    let acknowledged = http2_frame(SETTINGS, 1, 0, &[]);
    // `:status: 200` of the static table; a literal `content-type: text/event-stream`.
    let fields = [&[0x88, 0x0f, 0x10, 17][..], b"text/event-stream"].concat();
    let head = http2_frame(HEADERS, END_HEADERS, 1, &fields);
    let event = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
    let data = http2_frame(DATA, 0, 1, event);
    let done = http2_frame(DATA, END_STREAM, 1, b"data: [DONE]\n\n");
    let begin = [settings, acknowledged].concat();
    let trailers = http2_frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x00, 1, b'x', 1, b'y']);
    vec![
        [begin.clone(), head.clone(), data.clone(), done.clone()].concat(),
        [begin.clone(), head.clone(), data.clone(), trailers].concat(),
        [begin.clone(), head.clone(), data.clone(), http2_frame(RESET, 0, 1, &[0, 0, 0, 8])]
            .concat(),
        [
            begin.clone(),
            http2_frame(PING, 0, 0, &[7; 8]),
            http2_frame(WINDOW, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
        ]
        .concat(),
        [begin.clone(), head, data, http2_frame(GO_AWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0])].concat(),
        [
            begin.clone(),
            http2_frame(HEADERS, 0, 1, &[0x88]),
            http2_frame(CONTINUATION, 0, 1, &[]),
            http2_frame(CONTINUATION, END_HEADERS, 1, &fields[1..]),
            done,
        ]
        .concat(),
        [begin, http2_frame(PUSH, END_HEADERS, 1, &[0, 0, 0, 2, 0x82, 0x84])].concat(),
    ]
}
