//! Who goodput talks to in these cases: the simulated engine as a process, and a scripted server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::Nanos;

use crate::case::Skip;
use crate::program::{Binary, RunningProcess, seconds_to_nanos};

/// No scripted connection lasts longer, whatever the other end does.
const LONGEST_S: f64 = 40.0;

/// `goodput mock` as a process of its own.
pub(super) struct Engine {
    pub(super) process: RunningProcess,
    pub(super) address: String,
}

impl Engine {
    pub(super) fn start(goodput: &Binary, folder: &Path, args: &[&str]) -> Result<Self, Skip> {
        Self::start_on(goodput, folder, "127.0.0.1:0", args)
    }

    pub(super) fn start_on(
        goodput: &Binary,
        folder: &Path,
        listen: &str,
        args: &[&str],
    ) -> Result<Self, Skip> {
        let words = ["mock", "--listen", listen, "--ttft", "5ms", "--itl", "1ms"];
        let name = format!("mock-{}", now().0);
        let mut process = goodput.start(folder, &name, &[&words[..], args].concat())?;
        let address = process.word_after("http://", 20.0)?;
        Ok(Self { process, address })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many requests came.
    pub(super) fn requests(&self) -> Result<u64, Skip> {
        let page = http_get(&self.address, "/metrics")?;
        let count = |line: &str| {
            line.strip_prefix("mock_requests_total")?.split(' ').nth(1)?.parse::<f64>().ok()
        };
        let sum: f64 = page.lines().filter_map(count).sum();
        Ok(sum as u64)
    }

    /// Waits until this number of requests came.
    pub(super) fn wait_for(&self, requests: u64, limit_s: f64) -> Result<(), Skip> {
        let end = now() + seconds_to_nanos(limit_s);
        while self.requests()? < requests {
            if now() > end {
                return Err(Skip::Broken(format!("fewer than {requests} requests came")));
            }
            pause(Nanos::from_millis(10));
        }
        Ok(())
    }
}

/// One page, whole, with its head.
pub(super) fn http_get(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut page = Vec::new();
    stream.read_to_end(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// What a scripted server does with one request.
pub(super) type Script = fn(&str, &mut HostConnection) -> std::io::Result<()>;

/// A server that plays a script to every client, until it is dropped.
pub(super) struct ScriptedServer {
    pub(super) address: SocketAddr,
    shared: Arc<HostState>,
}

#[derive(Default)]
struct HostState {
    is_over: AtomicBool,
    sent: AtomicU64,
    heads: Mutex<Vec<String>>,
}

/// One connection of a [`ScriptedServer`].
pub(super) struct HostConnection {
    stream: TcpStream,
    shared: Arc<HostState>,
    end: Nanos,
    /// Where else this host may lead to.
    pub(super) elsewhere: String,
}

impl ScriptedServer {
    pub(super) fn start(script: Script, elsewhere: &str) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(HostState::default());
        let (common, elsewhere) = (Arc::clone(&shared), elsewhere.to_owned());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if common.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let end = now() + seconds_to_nanos(LONGEST_S);
                let shared = Arc::clone(&common);
                let mut line = HostConnection { stream, shared, end, elsewhere: elsewhere.clone() };
                // A client that leaves ends its connection; that is not a fault of the attack.
                thread::spawn(move || line.serve(script));
            }
        });
        Ok(Self { address, shared })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Bytes of scripts that were sent.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// The heads that came.
    pub(super) fn request_heads(&self) -> Vec<String> {
        self.shared.heads.lock().map(|heads| heads.clone()).unwrap_or_default()
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl HostConnection {
    fn serve(&mut self, script: Script) -> std::io::Result<()> {
        self.stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        self.stream.set_write_timeout(Some(Duration::from_secs(10)))?;
        let head = self.read_head()?;
        if let Ok(mut heads) = self.shared.heads.lock() {
            heads.push(head.clone());
        }
        script(&head, self)
    }

    /// Reads a head and the body behind it.
    fn read_head(&mut self) -> std::io::Result<String> {
        let mut bytes = Vec::new();
        let mut piece = [0; 16 << 10];
        loop {
            let read = self.stream.read(&mut piece)?;
            bytes.extend_from_slice(&piece[..read]);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let lower = head.to_ascii_lowercase();
                let length = lower.split("content-length: ").nth(1);
                let length = length.and_then(|rest| rest.lines().next()?.trim().parse().ok());
                if body.len() >= length.unwrap_or(0) {
                    return Ok(head.to_owned());
                }
            }
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if self.is_over() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        self.stream.write_all(bytes)?;
        self.shared.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// An answer with status 200 and this body.
    pub(super) fn send_answer(&mut self, kind: &str, body: &str) -> std::io::Result<()> {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        self.send(head.as_bytes())?;
        self.send(body.as_bytes())
    }

    /// The same bytes again and again, up to this many mebibytes.
    pub(super) fn flood(&mut self, piece: &str, mebibytes: usize) -> std::io::Result<()> {
        let piece = piece.repeat((64 << 10) / piece.len() + 1);
        for _ in 0..(mebibytes << 20) / piece.len() {
            self.send(piece.as_bytes())?;
        }
        Ok(())
    }

    /// Keeps the connection open without a word.
    pub(super) fn hang(&self) {
        while !self.is_over() {
            pause(Nanos::from_millis(20));
        }
    }

    fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Relaxed) || now() > self.end
    }
}
