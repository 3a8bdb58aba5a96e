//! The socket: a thread that accepts, and one for each client, of which there are few.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::Nanos;

use super::http::{self, Ask, MOST_HEAD, Refusal};
use super::page::Format;
use crate::host;

/// Clients at once. A silent one is gone after a while.
const SEATS: usize = 8;

/// After an accept that failed, which is a want of files or memory.
const BREATH: Nanos = Nanos::from_millis(100);

/// Bytes that are read and thrown away behind a head, so that the answer is not lost with them.
const MOST_REST: usize = 64 * 1024;

type Pages = Arc<dyn Fn(Format) -> String + Send + Sync>;

/// Serves a page.
#[derive(Clone)]
pub(super) struct Server {
    page: Pages,
    /// For a client's question, and then for the answer.
    patience: Nanos,
    taken: Arc<AtomicUsize>,
}

/// A client's place, free again when it goes.
struct Seat(Arc<AtomicUsize>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    pub(super) fn new(page: Pages, patience: Nanos) -> Self {
        Self { page, patience, taken: Arc::default() }
    }

    /// Serves until the process ends.
    pub(super) fn start(self, listener: TcpListener) -> io::Result<()> {
        let accept = move || {
            host::give_way();
            for stream in listener.incoming() {
                match stream {
                    Ok(stream) => self.welcome(stream),
                    Err(_) => pause(BREATH),
                }
            }
        };
        std::thread::Builder::new().name("listen".to_owned()).spawn(accept).map(drop)
    }

    fn welcome(&self, mut stream: TcpStream) {
        let before = self.taken.fetch_add(1, Ordering::Relaxed);
        let seat = Seat(Arc::clone(&self.taken));
        if before >= SEATS {
            // What does not go out at once does not go out: nobody waits here.
            let _ = stream.set_nonblocking(true);
            let _ = stream.write(&http::answer(refused(Refusal::Busy), &*self.page));
            return;
        }
        let server = self.clone();
        let serve = move || {
            host::give_way();
            // A client that goes away early is no concern of ours.
            let _ = server.serve(stream);
            drop(seat);
        };
        // Without a thread the client finds its connection closed.
        let _ = std::thread::Builder::new().name("scrape".to_owned()).spawn(serve);
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let end = now() + self.patience;
        let ask = match read_head(&mut stream, end)? {
            Ok(head) => http::read(&head),
            Err(refusal) => refused(refusal),
        };
        let end = now() + self.patience;
        let answer = http::answer(ask, &*self.page);
        let mut rest = answer.as_slice();
        while !rest.is_empty() {
            stream.set_write_timeout(Some(left(end)?))?;
            match stream.write(rest) {
                Ok(0) => return Ok(()),
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        stream.shutdown(Shutdown::Write)?;
        // Closing over unread bytes resets the connection and may take the answer along.
        let (mut part, mut thrown) = ([0; 1024], 0);
        while thrown < MOST_REST {
            stream.set_read_timeout(Some(left(end)?))?;
            match stream.read(&mut part)? {
                0 => break,
                bytes => thrown += bytes,
            }
        }
        Ok(())
    }
}

/// Reads up to the empty line.
fn read_head(stream: &mut TcpStream, end: Nanos) -> io::Result<Result<Vec<u8>, Refusal>> {
    let (mut head, mut part) = (Vec::new(), [0; 1024]);
    loop {
        let Ok(left) = left(end) else { return Ok(Err(Refusal::TooSlow)) };
        stream.set_read_timeout(Some(left))?;
        let bytes = match stream.read(&mut part) {
            Ok(0) => return Ok(Err(Refusal::BadRequest)),
            Ok(bytes) => bytes,
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => continue,
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    return Ok(Err(Refusal::TooSlow));
                }
                _ => return Err(error),
            },
        };
        head.extend_from_slice(part.get(..bytes).unwrap_or_default());
        if let Some(length) = head_length(&head) {
            head.truncate(length);
        } else if head.len() <= MOST_HEAD {
            continue;
        }
        let is_small = head.len() <= MOST_HEAD;
        return Ok(if is_small { Ok(head) } else { Err(Refusal::TooLarge) });
    }
}

/// Bytes before the empty line, once it is there. Lines may end without a carriage return.
fn head_length(head: &[u8]) -> Option<usize> {
    let ends: [&[u8]; 2] = [b"\r\n\r\n", b"\n\n"];
    let found = ends.iter().map(|end| head.windows(end.len()).position(|part| part == *end));
    found.flatten().min()
}

/// Time until then; an error where there is none.
fn left(end: Nanos) -> io::Result<Duration> {
    match end - now() {
        Nanos::ZERO => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left.into()),
    }
}

fn refused(refusal: Refusal) -> (Ask, bool) {
    (Ask::Refused(refusal), false)
}
