//! A server that plays a script on a real socket, one thread per connection.
//!
//! It shares no code with the client or the mock: what it does on the wire is what the test says,
//! down to the byte, the pause and the reset.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use goodput_clock::{now, sleep_until};
use goodput_model::Nanos;

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivedRequest {
    /// Its number, over all connections, from 0.
    pub number: usize,
    /// Which connection it came on, from 0.
    pub connection: usize,
    /// `POST /v1/chat/completions HTTP/1.1`
    pub line: String,
    /// Header lines, names in lower case.
    pub headers: Vec<String>,
    /// The body.
    pub body: String,
}

impl ArrivedRequest {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| line.strip_prefix(&format!("{name}: ")))
    }
}

/// What the server does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Write these bytes at once.
    Write(Vec<u8>),
    /// Write at this time after the request had arrived.
    WriteAt(Duration, Vec<u8>),
    /// Write these bytes again and again for so long, as fast as they are taken.
    Flood(Duration, Vec<u8>),
    /// Do nothing for so long.
    Pause(Duration),
    /// End the connection in good order.
    Close,
    /// End it with a reset.
    Reset,
}

impl Step {
    /// Write this text.
    pub fn write(text: impl Into<String>) -> Self {
        Self::Write(text.into().into_bytes())
    }
}

/// A server that runs until the test ends.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<ArrivedRequest>>>,
}

impl Server {
    /// Starts a server that answers each request with the steps that `script` gives for it.
    pub fn start(script: impl Fn(&ArrivedRequest) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|e| panic!("bind: {e}"));
        let address = listener.local_addr().unwrap_or_else(|e| panic!("address: {e}"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (script, log) = (Arc::new(script), Arc::clone(&seen));
        std::thread::spawn(move || {
            for (connection, stream) in listener.incoming().flatten().enumerate() {
                let (script, log) = (Arc::clone(&script), Arc::clone(&log));
                std::thread::spawn(move || {
                    // The client going away is part of many scripts.
                    let _ = play_steps(&stream, connection, &log, &*script);
                });
            }
        });
        Self { address, seen }
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests so far, in order of arrival.
    pub fn requests(&self) -> Vec<ArrivedRequest> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn play_steps(
    stream: &TcpStream,
    connection: usize,
    log: &Mutex<Vec<ArrivedRequest>>,
    script: &dyn Fn(&ArrivedRequest) -> Vec<Step>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(mut request) = read_request(&mut reader)? {
        let arrived = now();
        request.connection = connection;
        {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            request.number = log.len();
            log.push(request.clone());
        }
        for step in script(&request) {
            match step {
                Step::Write(bytes) => (&*stream).write_all(&bytes)?,
                Step::WriteAt(after, bytes) => {
                    sleep_until(arrived + Nanos::from(after), || false);
                    (&*stream).write_all(&bytes)?;
                }
                Step::Flood(time, bytes) => {
                    let end = now() + Nanos::from(time);
                    while now() < end {
                        (&*stream).write_all(&bytes)?;
                    }
                }
                Step::Pause(time) => drop(sleep_until(now() + Nanos::from(time), || false)),
                Step::Close => return Ok(()),
                Step::Reset => {
                    rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> std::io::Result<Option<ArrivedRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut headers = Vec::new();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let header = header.trim_end();
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(": ").unwrap_or((header, ""));
        let name = name.to_ascii_lowercase();
        if name == "content-length" {
            length = value.parse().unwrap_or(0);
        }
        headers.push(format!("{name}: {value}"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(ArrivedRequest {
        number: 0,
        connection: 0,
        line: line.trim_end().to_owned(),
        headers,
        body,
    }))
}

/// Head of a chunked event stream.
pub const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The chunk that ends a chunked body.
pub const LAST_CHUNK: &str = "0\r\n\r\n";

/// `text` as one chunk of a chunked body.
pub fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// A whole answer with a length.
pub fn answer(status: &str, content_type: &str, body: &str) -> Step {
    Step::write(format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

/// The event of one chat token.
pub fn token_event(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

/// The event with a finish reason, usage for `tokens`, and `[DONE]`.
pub fn end_events(tokens: u32) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n\
         data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":7,\"completion_tokens\":{tokens}}}}}\n\n\
         data: [DONE]\n\n"
    )
}

/// A complete chat stream: the first token after `ttft`, each next one `itl` later, as planned
/// instants from the arrival of the request.
pub fn timed_stream(ttft: Duration, itl: Duration, tokens: u32) -> Vec<Step> {
    let mut steps = vec![Step::write(STREAM_HEAD)];
    for index in 0..tokens {
        let mut events = token_event("x");
        if index + 1 == tokens {
            events.push_str(&end_events(tokens));
        }
        let mut bytes = chunk(&events);
        if index + 1 == tokens {
            bytes.push_str(LAST_CHUNK);
        }
        steps.push(Step::WriteAt(ttft + itl * index, bytes.into_bytes()));
    }
    steps
}
