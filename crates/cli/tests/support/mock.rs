//! A simulated engine of its own process, and a client that sends whatever bytes it is told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr};
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::{Nanos, RequestRecord};
use goodput_record::LogReader;
use serde_json::Value;

use super::Session;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A mock process, ended when the test ends.
pub(crate) struct MockProcess {
    child: Child,
    pub(crate) port: String,
    /// Kept open: a server must not lose the place it writes to.
    said: BufReader<ChildStderr>,
}

impl MockProcess {
    /// One without latency.
    pub(crate) fn fast(session: &Session, args: &[&str]) -> Self {
        Self::start(session, &[&["--profile", "fast"], args].concat())
    }

    /// Starts one on a free port; `args` name the profile, the faults and so on.
    pub(crate) fn start(session: &Session, args: &[&str]) -> Self {
        let mut child = session.command(&[&["mock", "--listen", "127.0.0.1:0"], args].concat());
        child.env("MOCK_KEY", "sesame");
        child.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        let mut child = child.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let address = line.split_once("://127.0.0.1:").unwrap_or_else(|| panic!("{line}")).1;
        let port = address.split_whitespace().next().unwrap().to_owned();
        Self { child, port, said }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// How often it says that a fault happened.
    pub(crate) fn injected(&self, kind: &str) -> f64 {
        self.metric(&format!("mock_faults_total{{kind=\"{kind}\"}}"))
    }

    /// Ends it the hard way.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as Ctrl-C does, and returns its last words.
    pub(crate) fn interrupt(mut self) -> String {
        super::signal(&self.child, "-INT");
        let mut words = String::new();
        self.said.read_to_string(&mut words).unwrap();
        assert!(self.child.wait().unwrap().success(), "{words}");
        words
    }

    pub(crate) fn connect(&self) -> Line {
        let stream = TcpStream::connect(format!("127.0.0.1:{}", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Line { stream, received: Vec::new() }
    }

    /// The answer to these bytes on a connection of their own.
    pub(crate) fn ask(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut line = self.connect();
        line.send(request);
        line.answer().expect("an answer")
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"))
    }

    pub(crate) fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Answer {
        self.ask(post(path, body))
    }

    /// The sum over all labels of a metric.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let page = String::from_utf8(self.get("/metrics").body).unwrap();
        let has_name =
            |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
        let values = page.lines().filter(has_name);
        values.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }

    /// Waits until this many requests are running.
    pub(crate) fn until_running(&self, count: f64) {
        let end = now() + Nanos::from(PATIENCE);
        loop {
            let running = self.metric("vllm:num_requests_running");
            if running == count {
                return;
            }
            assert!(now() < end, "{running} running, not {count}");
            pause(Nanos::from_millis(5));
        }
    }

    /// It still answers, and nothing is left running.
    pub(crate) fn assert_serves(&self, context: &str) {
        self.until_running(0.0);
        let answer = self.post("/v1/chat/completions", SHORT);
        assert_eq!(answer.status, 200, "{context}: {answer:?}");
        assert_eq!(answer.json()["usage"]["completion_tokens"], 2, "{context}");
    }
}

impl Drop for MockProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request of two tokens.
pub(crate) const SHORT: &str =
    r#"{"model":"mock","messages":[{"role":"user","content":"hi"}],"max_tokens":2}"#;

pub(crate) fn post(path: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// A connection.
pub(crate) struct Line {
    stream: TcpStream,
    received: Vec<u8>,
}

/// An answer with its body put together.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The error of a refusal, which has OpenAI's four fields and no others.
    pub(crate) fn error(&self) -> Value {
        let Value::Object(mut body) = self.json() else { panic!("{self:?}") };
        let error = body.remove("error").unwrap_or_else(|| panic!("no error: {self:?}"));
        assert!(body.is_empty(), "{self:?}");
        let fields: Vec<&String> = error.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["code", "message", "param", "type"], "{self:?}");
        assert!(!error["message"].as_str().unwrap().is_empty(), "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"));
        error
    }
}

impl Line {
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends what the server takes.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// Nothing more will be sent.
    pub(crate) fn end_sending(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Reads until the text has come.
    pub(crate) fn read_until(&mut self, text: &str) {
        while !self.received.windows(text.len()).any(|part| part == text.as_bytes()) {
            assert!(self.more(), "ended before {text:?}: {:?}", self.text());
        }
    }

    /// Everything up to the end of the connection.
    pub(crate) fn rest(&mut self) -> String {
        while self.more() {}
        let text = self.text();
        self.received.clear();
        text
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.received).into_owned()
    }

    /// Whether something came; not at the end of the connection.
    fn more(&mut self) -> bool {
        let mut bytes = [0; 1 << 14];
        match self.stream.read(&mut bytes) {
            Ok(count) => {
                self.received.extend_from_slice(&bytes[..count]);
                count > 0
            }
            // A server that does not answer is never what was expected.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("nothing came; so far: {:?}", self.text())
            }
            Err(_) => false,
        }
    }

    /// The next answer, if the connection does not end before it.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let end = self.fill(|received| position(received, b"\r\n\r\n").map(|at| at + 4))?;
        let head = String::from_utf8_lossy(&self.received[..end]).to_lowercase();
        self.received.drain(..end);
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let mut answer = Answer { status, head, body: Vec::new() };
        if status == 100 {
            return Some(answer);
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(part) = self.chunk() {
                answer.body.extend(part);
            }
        } else if let Some(length) = answer.header("content-length") {
            let length: usize = length.parse().unwrap();
            self.fill(|received| (received.len() >= length).then_some(length))?;
            answer.body = self.received.drain(..length).collect();
        } else {
            while self.more() {}
            answer.body = std::mem::take(&mut self.received);
        }
        Some(answer)
    }

    /// The next chunk that is not empty.
    fn chunk(&mut self) -> Option<Vec<u8>> {
        let end = self.fill(|received| position(received, b"\r\n"))?;
        let length = std::str::from_utf8(&self.received[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        self.received.drain(..end + 2);
        self.fill(|received| (received.len() >= length + 2).then_some(0))?;
        let part = self.received.drain(..length).collect();
        self.received.drain(..2);
        (length > 0).then_some(part)
    }

    fn fill(&mut self, found: impl Fn(&[u8]) -> Option<usize>) -> Option<usize> {
        loop {
            if let Some(at) = found(&self.received) {
                return Some(at);
            }
            if !self.more() {
                return None;
            }
        }
    }
}

fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// Every record of a log, in its order.
pub(crate) fn records(log: &Path) -> Vec<RequestRecord> {
    let mut reader = LogReader::<RequestRecord>::open(log, Vec::new()).unwrap();
    let records = reader.by_ref().collect();
    assert!(!reader.is_damaged(), "{}", log.display());
    records
}
