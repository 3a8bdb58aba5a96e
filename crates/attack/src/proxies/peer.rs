//! Both ends of a connection by hand: servers that do as they like, clients that send any bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::Nanos;

use crate::program::seconds_to_nanos;

/// How often who waits for a socket looks whether it is all over.
const LOOK: Duration = Duration::from_millis(50);

/// Bytes of a connection that are remembered.
const MOST_HEARD: usize = 1 << 20;

/// Bytes of an answer that are remembered.
const MOST_SAID: usize = 256 << 10;

/// A server on the loopback that ends with its owner.
pub(super) struct OriginServer {
    pub(super) address: SocketAddr,
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
    is_over: Arc<AtomicBool>,
    /// Connections that are being served.
    pub(super) open: Arc<AtomicUsize>,
}

impl OriginServer {
    /// Hands each connection to `serve`, on a thread of its own.
    pub(super) fn start(
        serve: impl Fn(&mut Visitor) + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let origin =
            Self { address, heard: Arc::default(), is_over: Arc::default(), open: Arc::default() };
        let (heard, is_over, open, serve) = (
            Arc::clone(&origin.heard),
            Arc::clone(&origin.is_over),
            Arc::clone(&origin.open),
            Arc::new(serve),
        );
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                let (heard, is_over) = (Arc::clone(&heard), Arc::clone(&is_over));
                let (open, serve) = (Arc::clone(&open), Arc::clone(&serve));
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(Vec::new());
                open.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    let mut visitor =
                        Visitor { stream, number, heard, is_over, unread: Vec::new() };
                    visitor.set_timeouts();
                    serve(&mut visitor);
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Ok(origin)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What came on each connection so far.
    pub(super) fn received_requests(&self) -> Vec<Vec<u8>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for OriginServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // The thread that accepts looks up once more.
        let _ = TcpStream::connect(self.address);
    }
}

/// A server's end of one connection.
pub(super) struct Visitor {
    pub(super) stream: TcpStream,
    /// Counted from 0 in order of arrival.
    pub(super) number: usize,
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
    is_over: Arc<AtomicBool>,
    unread: Vec<u8>,
}

impl Visitor {
    fn set_timeouts(&self) {
        let _ = self.stream.set_read_timeout(Some(LOOK));
        let _ = self.stream.set_write_timeout(Some(LOOK));
        let _ = self.stream.set_nodelay(true);
    }

    /// What comes next; `Some` and empty if nothing came in time, `None` at the end.
    pub(super) fn read(&mut self) -> Option<Vec<u8>> {
        let mut room = vec![0; 16 << 10];
        match self.stream.read(&mut room) {
            Ok(0) => None,
            Ok(length) => {
                room.truncate(length);
                let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(own) = heard.get_mut(self.number).filter(|own| own.len() < MOST_HEARD) {
                    own.extend_from_slice(&room);
                }
                Some(room)
            }
            Err(error) if is_pause(&error) && !self.is_over.load(Ordering::SeqCst) => {
                Some(Vec::new())
            }
            Err(_) => None,
        }
    }

    /// The path of the next request, once all of it has come.
    pub(super) fn read_request(&mut self) -> Option<String> {
        loop {
            if let Some(length) = request_length(&self.unread) {
                let request: Vec<u8> = self.unread.drain(..length).collect();
                let line = String::from_utf8_lossy(&request);
                return line.split(' ').nth(1).map(str::to_owned);
            }
            let more = self.read()?;
            self.unread.extend(more);
        }
    }

    /// Writes all of it, unless it is all over.
    pub(super) fn send_bytes(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(length) if length > 0 => bytes = &bytes[length..],
                Err(error) if is_pause(&error) && !self.is_over.load(Ordering::SeqCst) => {}
                _ => return false,
            }
        }
        true
    }

    /// Sends the same until the peer is gone.
    pub(super) fn flood(&mut self, piece: &[u8]) {
        let many = piece.repeat(1 + (32 << 10) / piece.len());
        while self.send_bytes(&many) {}
    }

    /// Says a byte at a time.
    pub(super) fn drip(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().cycle() {
            if !self.send_bytes(&[*byte]) {
                return;
            }
            pause(Nanos::from_millis(20));
        }
    }

    /// Says nothing until the other side has gone; what comes is thrown away.
    pub(super) fn wait(&mut self) {
        while self.read().is_some() {}
    }
}

fn is_pause(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Where a needle begins.
pub(super) fn find_bytes(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|part| part == needle)
}

/// The length of the first request in these bytes, once it is whole.
pub(super) fn request_length(bytes: &[u8]) -> Option<usize> {
    let head = find_bytes(bytes, b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    if text.contains("\r\ntransfer-encoding:") {
        return chunks_length(&bytes[head..]).map(|length| head + length);
    }
    let said = text.split("\r\ncontent-length:").nth(1).and_then(|rest| rest.split('\r').next());
    let length: usize = said.map_or(Some(0), |said| said.trim().parse().ok())?;
    (bytes.len() >= head + length).then_some(head + length)
}

/// The length of a chunked body with its trailers, once it is whole.
pub(super) fn chunks_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = find_bytes(bytes.get(at..)?, b"\r\n")?;
        let size = String::from_utf8_lossy(&bytes[at..at + line]).into_owned();
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        at += line + 2;
        if size == 0 {
            // Trailers and their empty line; the line end before it may be that of the last chunk.
            return find_bytes(&bytes[at - 2..], b"\r\n\r\n").map(|end| at + 2 + end);
        }
        at = at.checked_add(size)?.checked_add(2)?;
    }
}

/// What a client was told.
#[derive(Debug, Default)]
pub(super) struct ReceivedBytes {
    /// The first bytes, and the last few.
    pub(super) first: Vec<u8>,
    last: Vec<u8>,
    total: u64,
    pub(super) seconds: f64,
    /// The other side ended the connection.
    pub(super) is_over: bool,
}

impl ReceivedBytes {
    pub(super) fn status(&self) -> Option<u16> {
        let line = self.first.strip_prefix(b"HTTP/1.1 ").or(self.first.strip_prefix(b"HTTP/1.0 "));
        String::from_utf8_lossy(line?.get(..3)?).parse().ok()
    }

    /// Its beginning, to be shown.
    pub(super) fn text(&self) -> String {
        let first = &self.first[..self.first.len().min(300)];
        format!("{} ({} bytes)", String::from_utf8_lossy(first), self.total)
    }

    pub(super) fn body(&self) -> &[u8] {
        find_bytes(&self.first, b"\r\n\r\n").map_or(&[], |end| &self.first[end + 4..])
    }

    /// Whether the answer came to the end that its head promised.
    pub(super) fn is_whole(&self) -> bool {
        let Some(head) = find_bytes(&self.first, b"\r\n\r\n") else { return false };
        let text = String::from_utf8_lossy(&self.first[..head]).to_ascii_lowercase();
        if text.contains("transfer-encoding: chunked") {
            return self.last.ends_with(b"0\r\n\r\n");
        }
        let length = text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let came = self.total - (head as u64 + 4);
        length.and_then(|length| length.parse().ok()).map_or(self.is_over, |said: u64| came == said)
    }

    fn take(&mut self, bytes: &[u8]) {
        let room = MOST_SAID.saturating_sub(self.first.len()).min(bytes.len());
        self.first.extend_from_slice(&bytes[..room]);
        self.last.extend_from_slice(&bytes[bytes.len().saturating_sub(16)..]);
        let old = self.last.len().saturating_sub(16);
        self.last.drain(..old);
        self.total += bytes.len() as u64;
    }
}

/// Sends bytes and reads what comes, until it ends or for `limit_s`.
pub(super) fn send_and_receive(address: SocketAddr, request: &[u8], limit_s: f64) -> ReceivedBytes {
    let begin = now();
    let mut said = ReceivedBytes::default();
    if let Ok(stream) = TcpStream::connect(address) {
        let _ = stream.set_write_timeout(Some(Duration::from_secs_f64(limit_s)));
        // An answer may come before the request is whole, and the rest is refused then.
        let _ = (&stream).write_all(request);
        read_until(&stream, &mut said, begin + seconds_to_nanos(limit_s));
    }
    said.seconds = (now().0 - begin.0) as f64 / 1e9;
    said
}

/// Reads what comes until then.
pub(super) fn read_until(mut stream: &TcpStream, said: &mut ReceivedBytes, end: Nanos) {
    let mut room = vec![0; 64 << 10];
    let _ = stream.set_read_timeout(Some(LOOK));
    while now() < end {
        match stream.read(&mut room) {
            Ok(0) => {
                said.is_over = true;
                return;
            }
            Ok(length) => said.take(&room[..length]),
            Err(error) if is_pause(&error) => {}
            Err(_) => {
                said.is_over = true;
                return;
            }
        }
    }
}

/// This many connections, each of which has sent these bytes.
pub(super) fn open_many(
    address: SocketAddr,
    count: usize,
    bytes: &[u8],
) -> std::io::Result<Vec<TcpStream>> {
    (0..count)
        .map(|_| {
            let mut stream = TcpStream::connect(address)?;
            stream.set_write_timeout(Some(LOOK))?;
            // One that is closed already was shown the door, which is all right.
            let _ = stream.write_all(bytes);
            Ok(stream)
        })
        .collect()
}

/// Writes until this instant or until it is refused, in pieces that may depend on their number.
pub(super) fn write_until(stream: &mut TcpStream, end: Nanos, piece: impl Fn(u32) -> Vec<u8>) {
    let _ = stream.set_write_timeout(Some(LOOK));
    for number in 0.. {
        let piece = piece(number);
        let mut rest = &piece[..];
        while !rest.is_empty() {
            match stream.write(rest) {
                Ok(length) if length > 0 => rest = &rest[length..],
                Err(error) if is_pause(&error) => {}
                _ => return,
            }
            if now() > end {
                return;
            }
        }
        if piece.is_empty() {
            return;
        }
    }
}

/// Ends the sending side alone.
pub(super) fn shut_down_writes(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
}
