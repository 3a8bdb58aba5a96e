//! Bytes of one connection, each wait with an end.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use goodput_clock::now;
use goodput_model::Nanos;

/// Bytes that are read and thrown away behind a request, so that the response is not lost with them.
const MOST_REST: usize = 64 * 1024;

/// Why a request did not arrive whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestError {
    /// The client went away.
    Cut,
    TooSlow,
    TooLarge,
}

/// A head, without the empty line that ends it, and what came behind it.
type Head = (Vec<u8>, Vec<u8>);

/// Reads up to the empty line.
pub(crate) fn read_head(
    stream: &mut TcpStream,
    most: usize,
    end: Nanos,
) -> Result<Head, RequestError> {
    let mut head = Vec::new();
    loop {
        read_some(stream, &mut head, end)?;
        let Some((length, line)) = head_length(&head) else {
            if head.len() <= most {
                continue;
            }
            return Err(RequestError::TooLarge);
        };
        let rest = head.get(length + line..).unwrap_or_default().to_vec();
        head.truncate(length);
        return if length <= most { Ok((head, rest)) } else { Err(RequestError::TooLarge) };
    }
}

/// Reads on until there are this many bytes; what comes behind them is cut off.
pub(crate) fn read_body(
    stream: &mut TcpStream,
    mut body: Vec<u8>,
    length: usize,
    end: Nanos,
) -> Result<Vec<u8>, RequestError> {
    while body.len() < length {
        read_some(stream, &mut body, end)?;
    }
    body.truncate(length);
    Ok(body)
}

/// Reads what is there, or waits for it.
fn read_some(stream: &mut TcpStream, into: &mut Vec<u8>, end: Nanos) -> Result<(), RequestError> {
    let mut part = [0; 4096];
    loop {
        let left = time_left(end).map_err(|_| RequestError::TooSlow)?;
        stream.set_read_timeout(Some(left)).map_err(|_| RequestError::Cut)?;
        match stream.read(&mut part) {
            Ok(0) => return Err(RequestError::Cut),
            Ok(bytes) => {
                into.extend_from_slice(part.get(..bytes).unwrap_or_default());
                return Ok(());
            }
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    return Err(RequestError::TooSlow);
                }
                _ => return Err(RequestError::Cut),
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

/// Writes all of it before `end`.
pub fn write_all_before(stream: &mut TcpStream, bytes: &[u8], end: Nanos) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        stream.set_write_timeout(Some(time_left(end)?))?;
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Ends a connection: closing over unread bytes would reset it, and may take the response along.
pub(crate) fn close_gracefully(stream: &mut TcpStream, end: Nanos) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let (mut part, mut thrown) = ([0; 1024], 0);
    while thrown < MOST_REST {
        stream.set_read_timeout(Some(time_left(end)?))?;
        match stream.read(&mut part)? {
            0 => break,
            bytes => thrown += bytes,
        }
    }
    Ok(())
}

/// Time until then; an error where there is none.
fn time_left(end: Nanos) -> io::Result<Duration> {
    match end - now() {
        Nanos::ZERO => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left.into()),
    }
}
