//! `goodput record` as a process of its own, and a client of it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::Nanos;
use serde_json::Value;

use crate::support::Session;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running recording, which ends with the test.
pub(crate) struct Recording {
    pub(crate) child: Child,
    port: String,
    pub(crate) said: BufReader<ChildStderr>,
    before: String,
}

impl Recording {
    pub(crate) fn start(session: &Session, upstream: &str, args: &[&str]) -> Self {
        Self::spawn(session.command(&command(upstream, args)))
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut before = String::new();
        let port = loop {
            let mut line = String::new();
            assert!(said.read_line(&mut line).unwrap() > 0, "it ended: {before}");
            before.push_str(&line);
            if let Some((_, port)) = line.trim().split_once("listening on http://127.0.0.1:") {
                break port.to_owned();
            }
        };
        Self { child, port, said, before }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn signal(&self, name: &str) {
        crate::support::signal(&self.child, name);
    }

    /// A chat request with these lines in its head; status and body of the answer.
    pub(crate) fn ask(&self, head: &str, body: &str) -> (u16, String) {
        self.send(head, body).answer()
    }

    pub(crate) fn send(&self, head: &str, body: &str) -> PendingRequest {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        write!(
            stream,
            "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             Content-Length: {length}\r\n{head}\r\n{body}"
        )
        .unwrap();
        PendingRequest(stream)
    }

    /// Its last words and exit code, once it ends by itself.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let mut words = std::mem::take(&mut self.before);
        self.said.read_to_string(&mut words).unwrap();
        (self.child.wait().unwrap().code(), words)
    }

    /// As `stop`, with what it printed on stdout in between.
    pub(crate) fn finished(mut self, signal: &str) -> (Option<i32>, String, String) {
        let mut out = self.child.stdout.take().unwrap();
        let (code, words) = self.stop(signal);
        let mut printed = String::new();
        out.read_to_string(&mut printed).unwrap();
        (code, printed, words)
    }

    pub(crate) fn stop(self, signal: &str) -> (Option<i32>, String) {
        self.signal(signal);
        self.ended()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request whose answer is not read yet.
pub(crate) struct PendingRequest(TcpStream);

impl PendingRequest {
    /// Where its answer comes.
    pub(crate) fn stream(self) -> TcpStream {
        self.0
    }

    pub(crate) fn answer(mut self) -> (u16, String) {
        let mut text = String::new();
        self.0.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text}"));
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

/// What starts a recording.
pub(crate) fn command<'a>(upstream: &'a str, args: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["record", "--upstream", upstream, "--listen", "127.0.0.1:0"];
    all.extend(["--output", "trace.jsonl"]);
    all.extend(args);
    all
}

/// Header and rows; every line is whole.
pub(crate) fn read(path: &Path) -> (Value, Vec<Value>) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    let mut lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    (lines.next().unwrap(), lines.collect())
}

/// Waits for something.
pub(crate) fn until(what: &str, mut is_there: impl FnMut() -> bool) {
    let end = now() + Nanos::from(PATIENCE);
    while !is_there() {
        assert!(now() < end, "{what} never came");
        pause(Nanos::from_millis(5));
    }
}
