//! A shadow in a process of its own, and servers that say what they are told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::Nanos;
use serde_json::{Value, json};

use crate::support::{Outcome, Session, outcome};

/// Longer than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A shadow in a process of its own.
pub(crate) struct Shadow {
    child: Option<Child>,
    said: Arc<Mutex<String>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Shadow {
    pub(crate) fn start(session: &Session, [primary, candidate]: [&str; 2], more: &[&str]) -> Self {
        let args = ["shadow", "--primary", primary, "--candidate", candidate, "--json"];
        let rest =
            ["--listen", "127.0.0.1:0", "--out", "shadow", "--drain", "500ms", "--share", "100%"];
        let rest = if more.contains(&"--share") { &rest[..6] } else { &rest[..] };
        let mut command = session.command(&[&args[..], rest, more].concat());
        command.env("CANDIDATE_KEY", "candidates-own-key");
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let (lines, own) =
            (BufReader::new(child.stderr.take().unwrap()).lines(), Arc::clone(&said));
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                own.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        let shadow = Self { child: Some(child), said, reader: Some(reader) };
        shadow.until("of the requests also go to");
        shadow
    }

    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Waits until it has said something.
    pub(crate) fn until(&self, words: &str) {
        let end = now() + Nanos::from(PATIENCE);
        while !self.said().contains(words) {
            assert!(now() < end, "never said {words:?}: {}", self.said());
            pause(Nanos::from_millis(5));
        }
    }

    /// Its address after these words.
    fn address(&self, words: &str) -> String {
        let said = self.said();
        let rest = said.split_once(words).unwrap_or_else(|| panic!("{said}")).1;
        rest.split(['\n', '/']).next().unwrap().to_owned()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address("listening on http://"))
    }

    pub(crate) fn signal(&self, name: &str) {
        crate::support::signal(self.child.as_ref().unwrap(), name);
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn end(mut self) -> (Outcome, Value) {
        self.signal("-INT");
        let output = self.child.take().unwrap().wait_with_output().unwrap();
        self.reader.take().unwrap().join().unwrap();
        let mut outcome = outcome(output);
        outcome.stderr = self.said();
        let result = serde_json::from_str(&outcome.stdout).unwrap_or(Value::Null);
        assert!(!result.is_null(), "{}\n{}", outcome.stdout, outcome.stderr);
        (outcome, result)
    }

    /// The status and body that a client gets for these bytes.
    pub(crate) fn ask(&self, request: &[u8]) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(self.address("listening on http://")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request).unwrap();
        read_answer(&mut stream)
    }

    /// A metric by its name and labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let mut stream = TcpStream::connect(self.address("metrics of this run: http://")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name}: {page}")).parse().unwrap()
    }

    /// Waits until a metric has this value.
    pub(crate) fn until_metric(&self, name: &str, value: f64) {
        let end = now() + Nanos::from(PATIENCE);
        while self.metric(name) != value {
            assert!(now() < end, "{name} is {}, not {value}", self.metric(name));
            pause(Nanos::from_millis(5));
        }
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reads an answer with a length.
fn read_answer(stream: &mut TcpStream) -> (u16, Vec<u8>) {
    let mut got = Vec::new();
    let mut bytes = [0; 1 << 14];
    loop {
        let end = got.windows(4).position(|part| part == b"\r\n\r\n").map(|at| at + 4);
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&got[..end]).to_lowercase();
            let length = head.split_once("content-length: ").expect("a length").1;
            let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
            if got.len() >= end + length {
                let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                return (status, got[end..end + length].to_vec());
            }
        }
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "cut: {}", String::from_utf8_lossy(&got));
        got.extend_from_slice(&bytes[..count]);
    }
}

/// A server of the test's own: what it answers to each request, in bytes; none is never.
pub(crate) struct Server {
    port: u16,
    /// Everything that it was sent.
    got: Arc<Mutex<Vec<u8>>>,
    pub(crate) requests: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) fn start(answer: impl Fn(usize) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (got, requests): (Arc<Mutex<Vec<u8>>>, Arc<AtomicUsize>) = Default::default();
        let (all, count, answer) = (Arc::clone(&got), Arc::clone(&requests), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (all, count, answer) =
                    (Arc::clone(&all), Arc::clone(&count), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &all, &count, &*answer));
            }
        });
        Self { port, got, requests }
    }

    /// Accepts, and never answers.
    pub(crate) fn hanging() -> Self {
        Self::start(|_| None)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn got(&self) -> String {
        String::from_utf8_lossy(&self.got.lock().unwrap()).into_owned()
    }
}

fn serve(
    mut stream: TcpStream,
    all: &Mutex<Vec<u8>>,
    count: &AtomicUsize,
    answer: &dyn Fn(usize) -> Option<Vec<u8>>,
) {
    let (mut got, mut bytes) = (Vec::new(), vec![0; 1 << 16]);
    while let Ok(read @ 1..) = stream.read(&mut bytes) {
        got.extend_from_slice(&bytes[..read]);
        let Some(end) = got.windows(4).position(|part| part == b"\r\n\r\n").map(|at| at + 4) else {
            continue;
        };
        let head = String::from_utf8_lossy(&got[..end]).to_lowercase();
        let length = head.split_once("content-length: ").map_or("0", |parts| parts.1);
        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
        if got.len() < end + length {
            continue;
        }
        all.lock().unwrap().extend(got.drain(..end + length));
        let number = count.fetch_add(1, Ordering::SeqCst);
        if let Some(answer) = answer(number)
            && stream.write_all(&answer).is_err()
        {
            return;
        }
    }
}

/// A good answer in one piece.
pub(crate) fn good(text: &str) -> Vec<u8> {
    let body = json!({
        "id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop",
                     "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    });
    answer_of("200 OK", body.to_string().as_bytes())
}

pub(crate) fn answer_of(status: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}
