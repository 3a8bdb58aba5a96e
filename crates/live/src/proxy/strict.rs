//! [`Strict`]: what a client of HTTP/1.1 sends, as hyper may see it.
//!
//! Hyper ends a line of a head at a bare LF, too. A proxy in front of us may have taken that LF for a
//! part of a value: then its user could add a header, or a whole request, that it never saw. Such a head
//! is spoiled here, and hyper refuses it. Where heads begin and end is known by what hyper itself made of
//! the request before; so a head is handed on alone, and what follows it once its request was taken.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::Body;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::proxy::line::Line;

/// Stands where a bare LF was: no head may hold it.
const SPOILED: u8 = 0;

/// What is handed on after that, so that nothing more is waited for.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// The body of the last request that was taken, until its beginning is read.
#[derive(Clone, Default)]
pub(crate) struct LastBody(Rc<Cell<Option<ParsePosition>>>);

impl LastBody {
    /// A request was taken.
    pub(crate) fn note_request(&self, body: &impl Body) {
        let length = if body.is_end_stream() { Some(0) } else { body.size_hint().exact() };
        self.0.set(Some(
            length
                .map_or(ParsePosition::ChunkSize { size: 0, is_over: false }, ParsePosition::Data),
        ));
    }
}

/// What the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParsePosition {
    /// A head, or trailers.
    Lines(HeadLines),
    /// Nothing that is known: a head has ended, and its request is still to be taken.
    AfterHead,
    /// A body of which this many bytes are to come.
    Data(u64),
    /// The line before a chunk, and the size that it has said so far.
    ChunkSize { size: u64, is_over: bool },
    /// This many bytes of a chunk, and its line end.
    Chunk(u64),
    /// A bare LF came: the rest is nothing.
    Spoiled,
}

/// Lines up to an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HeadLines {
    /// Bytes of the line so far, its CR included, and the last of them.
    length: usize,
    last: u8,
    /// An empty line ends it; those before a head do not.
    may_end: bool,
    is_head: bool,
}

impl HeadLines {
    const HEAD: Self = Self { length: 0, last: 0, may_end: false, is_head: true };
    const TRAILERS: Self = Self { length: 0, last: 0, may_end: true, is_head: false };
}

impl ParsePosition {
    /// Goes over the next bytes, at least one; how many it took, and where the next one is. Spoils a bare
    /// LF.
    fn advance(self, bytes: &mut [u8]) -> (usize, Self) {
        let up_to = |most: u64| usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len());
        match self {
            Self::Lines(lines) => lines.advance(bytes),
            Self::Data(0) => (0, Self::Lines(HeadLines::HEAD)),
            Self::Data(left) => (up_to(left), Self::Data(left - up_to(left) as u64)),
            Self::Chunk(0) => (0, Self::ChunkSize { size: 0, is_over: false }),
            Self::Chunk(left) => (up_to(left), Self::Chunk(left - up_to(left) as u64)),
            Self::ChunkSize { size, is_over } => (1, parse_chunk_size(size, is_over, bytes[0])),
            Self::AfterHead | Self::Spoiled => (bytes.len(), self),
        }
    }
}

/// One byte more of the line before a chunk. What is wrong with it hyper finds out.
fn parse_chunk_size(size: u64, is_over: bool, byte: u8) -> ParsePosition {
    let digit = char::from(byte).to_digit(16).filter(|_| !is_over);
    match (byte, digit) {
        (b'\n', _) if size == 0 => ParsePosition::Lines(HeadLines::TRAILERS),
        // With the line end behind its bytes.
        (b'\n', _) => ParsePosition::Chunk(size.saturating_add(2)),
        (_, Some(digit)) => {
            let size = size.saturating_mul(16).saturating_add(u64::from(digit));
            ParsePosition::ChunkSize { size, is_over }
        }
        _ => ParsePosition::ChunkSize { size, is_over: true },
    }
}

impl HeadLines {
    fn advance(mut self, bytes: &mut [u8]) -> (usize, ParsePosition) {
        let mut passed = 0;
        for byte in bytes {
            passed += 1;
            let last = std::mem::replace(&mut self.last, *byte);
            if *byte != b'\n' {
                self.length += 1;
                continue;
            }
            if last != b'\r' {
                *byte = SPOILED;
                return (passed, ParsePosition::Spoiled);
            }
            let is_empty = std::mem::take(&mut self.length) == 1;
            if is_empty && self.may_end {
                let next = if self.is_head {
                    ParsePosition::AfterHead
                } else {
                    ParsePosition::Lines(Self::HEAD)
                };
                return (passed, next);
            }
            self.may_end |= !is_empty;
        }
        (passed, ParsePosition::Lines(self))
    }
}

/// A client's connection of HTTP/1.1.
pub(crate) struct Strict<I> {
    io: I,
    line: Rc<Line>,
    place: ParsePosition,
    taken: LastBody,
    /// What came behind a head.
    held: Bytes,
}

impl<I> Strict<I> {
    pub(crate) fn new(io: I, line: &Rc<Line>, taken: &LastBody) -> Self {
        let (line, taken) = (Rc::clone(line), taken.clone());
        Self { io, line, place: ParsePosition::Lines(HeadLines::HEAD), taken, held: Bytes::new() }
    }

    /// How many of these bytes may be handed on now.
    fn check_bytes(&mut self, bytes: &mut [u8]) -> usize {
        let mut passed = 0;
        while passed < bytes.len() && self.place != ParsePosition::AfterHead {
            let (n, next) = self.place.advance(&mut bytes[passed..]);
            passed += n;
            self.place = next;
            if next == ParsePosition::Spoiled {
                self.held = Bytes::from_static(HEAD_END);
                // So that its client sees the answer.
                self.line.abandon_rest();
                break;
            }
        }
        passed
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Strict<I> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let strict = self.get_mut();
        if strict.place == ParsePosition::AfterHead {
            // Nothing is read between a head and its request.
            let Some(body) = strict.taken.0.take() else {
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            };
            strict.place = body;
        }
        if strict.place == ParsePosition::Spoiled {
            let end = strict.held.split_to(strict.held.len().min(buffer.remaining()));
            buffer.put_slice(&end);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let came = if strict.held.is_empty() {
            ready!(Pin::new(&mut strict.io).poll_read(cx, buffer))?;
            None
        } else {
            let came = std::mem::take(&mut strict.held);
            buffer.put_slice(&came[..came.len().min(buffer.remaining())]);
            Some(came)
        };
        let passed = strict.check_bytes(&mut buffer.filled_mut()[before..]);
        if strict.place != ParsePosition::Spoiled {
            strict.held = match came {
                Some(came) => came.slice(passed..),
                None => Bytes::copy_from_slice(&buffer.filled()[before + passed..]),
            };
        }
        buffer.set_filled(before + passed);
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Strict<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
