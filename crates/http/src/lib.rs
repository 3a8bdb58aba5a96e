//! What small servers of ours have in common: as much of HTTP/1.1 as a page needs, with a bound on
//! every size and every wait.

mod reach;

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::Nanos;

pub use reach::{is_host, is_of_this_machine, may_name, names_this_machine};

/// How far threads that serve step back from those that measure.
const NICE: i32 = 10;

/// Bytes that are read and thrown away behind a question, so that the answer is not lost with them.
const MOST_REST: usize = 64 * 1024;

/// After an accept that failed, which is a want of files or memory.
const BREATH: Nanos = Nanos::from_millis(100);

/// A small server of ours.
pub trait Serve: Clone + Send + 'static {
    /// What its threads are called.
    const NAME: &'static str;
    /// Clients at once. A silent one is gone after a while.
    const SEATS: usize;

    /// One client, from its question to its end. One that goes away early is no concern of ours.
    fn serve(&self, stream: TcpStream) -> io::Result<()>;
    /// What is said to one client too many.
    fn busy(&self) -> Vec<u8>;
}

/// Serves until the process ends: a thread that accepts, and one for each client.
pub fn start<S: Serve>(server: S, listener: TcpListener) -> io::Result<()> {
    let seats = Seats::default();
    let accept = move || {
        give_way();
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => welcome(&server, &seats, stream),
                Err(_) => pause(BREATH),
            }
        }
    };
    std::thread::Builder::new().name(S::NAME.to_owned()).spawn(accept).map(drop)
}

fn welcome<S: Serve>(server: &S, seats: &Seats, mut stream: TcpStream) {
    let Some(seat) = seats.take(S::SEATS) else {
        // What does not go out at once does not go out: nobody waits here.
        let _ = stream.set_nonblocking(true);
        let _ = stream.write(&server.busy());
        return;
    };
    let server = server.clone();
    let serve = move || {
        give_way();
        let _ = server.serve(stream);
        drop(seat);
    };
    // Without a thread the client finds its connection closed.
    let _ = std::thread::Builder::new().name(format!("{}-client", S::NAME)).spawn(serve);
}

/// Without it the thread competes like any other.
fn give_way() {
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// Places for clients.
#[derive(Debug, Clone, Default)]
pub struct Seats(Arc<AtomicUsize>);

/// A client's place, free again when it goes.
#[derive(Debug)]
pub struct Seat(Arc<AtomicUsize>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Seats {
    /// One of so many; none where all are taken.
    pub fn take(&self, of: usize) -> Option<Seat> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let seat = Seat(Arc::clone(&self.0));
        (before < of).then_some(seat)
    }
}

/// Why there is no head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The client went away.
    Cut,
    /// It took too long.
    TooSlow,
    /// It sent too much.
    TooLarge,
}

/// A head, without the empty line that ends it, and what came behind it.
pub type Head = (Vec<u8>, Vec<u8>);

/// Reads up to the empty line.
pub fn read_head(
    stream: &mut TcpStream,
    most: usize,
    end: Nanos,
) -> io::Result<Result<Head, Broken>> {
    let mut head = Vec::new();
    loop {
        if let Err(broken) = read_some(stream, &mut head, end)? {
            return Ok(Err(broken));
        }
        let Some((length, line)) = head_length(&head) else {
            if head.len() <= most {
                continue;
            }
            return Ok(Err(Broken::TooLarge));
        };
        let rest = head.get(length + line..).unwrap_or_default().to_vec();
        head.truncate(length);
        return Ok(if length <= most { Ok((head, rest)) } else { Err(Broken::TooLarge) });
    }
}

/// Reads on until there are so many bytes; what comes behind them is cut off.
pub fn read_body(
    stream: &mut TcpStream,
    mut body: Vec<u8>,
    length: usize,
    end: Nanos,
) -> io::Result<Result<Vec<u8>, Broken>> {
    while body.len() < length {
        if let Err(broken) = read_some(stream, &mut body, end)? {
            return Ok(Err(broken));
        }
    }
    body.truncate(length);
    Ok(Ok(body))
}

/// Reads what is there, or waits for it.
fn read_some(
    stream: &mut TcpStream,
    into: &mut Vec<u8>,
    end: Nanos,
) -> io::Result<Result<(), Broken>> {
    let mut part = [0; 4096];
    loop {
        let Ok(left) = left(end) else { return Ok(Err(Broken::TooSlow)) };
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => return Ok(Err(Broken::Cut)),
            Ok(bytes) => {
                into.extend_from_slice(part.get(..bytes).unwrap_or_default());
                return Ok(Ok(()));
            }
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    return Ok(Err(Broken::TooSlow));
                }
                _ => return Err(error),
            },
        }
    }
}

/// Bytes before the empty line, and of it, once it is there. Lines may end without a carriage return.
fn head_length(head: &[u8]) -> Option<(usize, usize)> {
    let ends: [&[u8]; 2] = [b"\r\n\r\n", b"\n\n"];
    let found = ends.iter().filter_map(|end| {
        let at = head.windows(end.len()).position(|part| part == *end)?;
        Some((at, end.len()))
    });
    found.min()
}

/// Writes all of it.
pub fn send(stream: &mut TcpStream, bytes: &[u8], end: Nanos) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(end)?))?;
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Ends a connection: closing over unread bytes would reset it, and may take the answer along.
pub fn see_off(stream: &mut TcpStream, end: Nanos) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
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

/// Time until then; an error where there is none.
fn left(end: Nanos) -> io::Result<Duration> {
    match end - now() {
        Nanos::ZERO => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left.into()),
    }
}
