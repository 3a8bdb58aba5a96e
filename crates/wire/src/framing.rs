//! [`BodyFraming`]: where the body of an HTTP/1.1 answer lies in the bytes of its connection.

use std::ops::Range;

/// What is still to come of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    /// Nothing: the answer is complete.
    Done,
    /// This many bytes.
    Length(u64),
    /// Everything until the connection ends.
    ToEnd,
    /// Chunks, of which the next size line is due.
    ChunkSize,
    /// This many bytes of a chunk, then its line end.
    ChunkData(u64),
    /// The line end after a chunk's bytes.
    ChunkEnd,
    /// Trailer lines after the last chunk.
    Trailers,
}

/// What was found in some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FramedBytes {
    /// A piece of the body; without one, more bytes are needed, or the body is at its end.
    pub piece: Option<Range<usize>>,
    /// How many bytes are used up, the piece included.
    pub used: usize,
}

impl BodyFraming {
    /// How the body is delimited (RFC 9112, section 6), and whether the connection stays open.
    pub(crate) fn from_head(
        status: u16,
        response: &httparse::Response<'_, '_>,
    ) -> Result<(Self, bool), &'static str> {
        let mut length = None;
        let mut is_chunked = false;
        let mut keeps_alive = response.version == Some(1);
        for header in response.headers.iter() {
            let value = String::from_utf8_lossy(header.value).to_ascii_lowercase();
            if header.name.eq_ignore_ascii_case("content-length") {
                let said =
                    parse_digits(header.value.trim_ascii()).ok_or("invalid content-length")?;
                if length.replace(said).is_some_and(|earlier| earlier != said) {
                    return Err("two different lengths for one response");
                }
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                // Nothing else was asked for, and nothing else is understood.
                let is_other = |coding: &str| !matches!(coding, "" | "chunked" | "identity");
                if value.split(',').map(str::trim).any(is_other) {
                    return Err("an unexpected transfer coding");
                }
                is_chunked = value.trim_end().ends_with("chunked");
            } else if header.name.eq_ignore_ascii_case("connection") {
                if value.contains("close") {
                    keeps_alive = false;
                } else if value.contains("keep-alive") {
                    keeps_alive = true;
                }
            }
        }
        let framing = match (status, is_chunked, length) {
            (204 | 304, _, _) | (_, false, Some(0)) => Self::Done,
            (_, true, _) => Self::ChunkSize,
            (_, false, Some(length)) => Self::Length(length),
            (_, false, None) => Self::ToEnd,
        };
        Ok((framing, keeps_alive && framing != Self::ToEnd))
    }

    /// Takes the next piece of the body from the front of `bytes`, or says what is wrong with them.
    pub fn take_framed(&mut self, bytes: &[u8]) -> Result<FramedBytes, &'static str> {
        let mut taken = self.take_data(bytes)?;
        while *self == Self::Trailers && taken.piece.is_none() {
            let rest = &bytes[taken.used..];
            let Some(end) = memchr::memchr(b'\n', rest) else { break };
            taken.used += end + 1;
            if matches!(&rest[..end], b"" | b"\r") {
                *self = Self::Done;
            }
        }
        Ok(taken)
    }

    /// The same, but trailers stay where they are.
    pub(crate) fn take_data(&mut self, bytes: &[u8]) -> Result<FramedBytes, &'static str> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let step = match *self {
                Self::Done | Self::Trailers => None,
                Self::ToEnd => return Ok(clip_piece(rest, used, u64::MAX)),
                Self::Length(left) => {
                    let taken = clip_piece(rest, used, left);
                    let left = left - taken.length();
                    *self = if left == 0 { Self::Done } else { Self::Length(left) };
                    return Ok(taken);
                }
                Self::ChunkData(left) => {
                    let taken = clip_piece(rest, used, left);
                    let left = left - taken.length();
                    *self = if left == 0 { Self::ChunkEnd } else { Self::ChunkData(left) };
                    return Ok(taken);
                }
                Self::ChunkEnd => match rest {
                    [b'\r', b'\n', ..] => Some((2, Self::ChunkSize)),
                    [] | [b'\r'] => None,
                    _ => return Err("a chunk is longer than its size line says"),
                },
                Self::ChunkSize => chunk_size(rest)?.map(|(line, size)| {
                    (line, if size == 0 { Self::Trailers } else { Self::ChunkData(size) })
                }),
            };
            let Some((passed, next)) = step else { return Ok(FramedBytes { piece: None, used }) };
            used += passed;
            *self = next;
        }
    }
}

/// A number in digits alone; the usual parser takes a sign as well.
pub(crate) fn parse_digits(text: &[u8]) -> Option<u64> {
    let is_number = text.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

/// Longest line before a chunk: its size, and extensions, which are ignored.
const LINE_LIMIT: usize = 4 << 10;

/// The length of the line before a chunk, and the size that it says; none while it is not whole.
fn chunk_size(rest: &[u8]) -> Result<Option<(usize, u64)>, &'static str> {
    let mut size = 0;
    for (at, byte) in rest.iter().enumerate().take(16) {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            b'\r' if at > 0 && rest.get(at + 1) == Some(&b'\n') => return Ok(Some((at + 2, size))),
            // Without a digit the parser would take the line for that of the last chunk.
            _ if at == 0 => return Err("a chunk without a size"),
            _ => break,
        };
        size = size << 4 | u64::from(digit);
    }
    unusual_chunk_size(rest)
}

/// The same for a line that has more in it than the size, or is not whole.
#[cold]
fn unusual_chunk_size(rest: &[u8]) -> Result<Option<(usize, u64)>, &'static str> {
    // Not beyond the limit, so that the fault does not depend on how much came at once.
    let bounded = &rest[..rest.len().min(LINE_LIMIT)];
    let parsed = httparse::parse_chunk_size(bounded).map_err(|_| "a chunk without a size")?;
    let (line, size) = match parsed {
        httparse::Status::Complete(found) => found,
        httparse::Status::Partial if rest.len() > bounded.len() => {
            return Err("the line before a chunk is too long");
        }
        httparse::Status::Partial => return Ok(None),
    };
    // Within an extension the parser takes every byte; to other parsers this one ends the line.
    if rest[..line - 1].contains(&b'\n') {
        return Err("a chunk without a size");
    }
    Ok(Some((line, size)))
}

impl FramedBytes {
    fn length(&self) -> u64 {
        self.piece.as_ref().map_or(0, |piece| piece.len() as u64)
    }
}

/// Up to `limit` bytes of `rest`, which begins at `at`.
fn clip_piece(rest: &[u8], at: usize, limit: u64) -> FramedBytes {
    let length = usize::try_from(limit).unwrap_or(usize::MAX).min(rest.len());
    FramedBytes { piece: (length > 0).then_some(at..at + length), used: at + length }
}
