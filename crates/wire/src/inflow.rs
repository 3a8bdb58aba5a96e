//! [`Inflow`]: answers of HTTP/1.1 as their bytes come, taken apart for a proxy that passes them
//! on.
//!
//! Stricter than what reads the answers to our own requests: what two readers could understand
//! differently is refused. Holds no buffer, only what of a head or a line has come so far.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};
use http::{HeaderName, HeaderValue, StatusCode};

use crate::framing::{BodyFraming, parse_digits};

/// Most lines of a head, or of trailers.
const LINES: usize = 100;

/// What comes on one connection, an answer at a time.
#[derive(Debug)]
pub struct Inflow {
    stage: InflowStage,
    /// What came and cannot be understood without what follows.
    rest: Vec<u8>,
    /// Most bytes of a head, and of trailers.
    head_bytes: usize,
    /// What was understood and not yet taken.
    head: Option<InflowHead>,
    data: Bytes,
    trailers: Option<HeaderMap>,
    fault: Option<&'static str>,
    /// Whether the head says how long the body is.
    is_sized: bool,
    /// Whether the connection outlives the answer.
    keeps_alive: bool,
    /// Whether a byte of the answer has come.
    has_begun: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InflowStage {
    /// A head is due; its answer may have a body.
    Head {
        may_have_body: bool,
    },
    Body(BodyFraming),
}

/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InflowHead {
    /// The status.
    pub status: StatusCode,
    /// The words behind the status, where they are not the usual ones.
    pub reason: Option<Bytes>,
    /// The headers. Of two framings only the one that holds is among them.
    pub headers: HeaderMap,
}

/// A part of an answer's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyPart {
    /// Bytes, never none.
    Data(Bytes),
    /// What came after the last of them.
    Trailers(HeaderMap),
}

impl Inflow {
    /// A connection on which nothing has come, with a limit for heads.
    pub fn new(head_bytes: usize) -> Self {
        Self {
            stage: InflowStage::Body(BodyFraming::Done),
            rest: Vec::new(),
            head_bytes,
            head: None,
            data: Bytes::new(),
            trailers: None,
            fault: None,
            is_sized: true,
            keeps_alive: true,
            has_begun: false,
        }
    }

    /// A request is about to be sent. The answer to `HEAD` has no body, whatever it says.
    pub fn expect_answer(&mut self, may_have_body: bool) {
        self.stage = InflowStage::Head { may_have_body };
        self.has_begun = false;
    }

    /// These bytes came. What came before must have been taken; they themselves are used as room.
    pub fn push(&mut self, bytes: &mut [u8]) {
        self.has_begun |= !bytes.is_empty();
        if self.rest.is_empty() {
            let used = self.parse_front(bytes);
            self.rest = bytes[used..].to_vec();
        } else {
            let mut all = std::mem::take(&mut self.rest);
            all.extend_from_slice(bytes);
            let used = self.parse_front(&mut all);
            self.rest = if used == 0 { all } else { all[used..].to_vec() };
        }
    }

    /// The connection has ended: whether that is the end of the answer.
    pub fn end_of_stream(&mut self) -> bool {
        let is_end = self.stage == InflowStage::Body(BodyFraming::ToEnd);
        if is_end {
            self.stage = InflowStage::Body(BodyFraming::Done);
        }
        is_end
    }

    /// The head, once it is whole.
    pub fn take_head(&mut self) -> Result<Option<InflowHead>, &'static str> {
        match (self.head.take(), self.fault) {
            (None, Some(fault)) => Err(fault),
            (head, _) => Ok(head),
        }
    }

    /// The next part of the body, if it is there. What is wrong comes after all that is right.
    pub fn take_part(&mut self) -> Result<Option<BodyPart>, &'static str> {
        if !self.data.is_empty() {
            return Ok(Some(BodyPart::Data(std::mem::take(&mut self.data))));
        }
        match (self.trailers.take(), self.fault) {
            (None, Some(fault)) => Err(fault),
            (trailers, _) => Ok(trailers.map(BodyPart::Trailers)),
        }
    }

    /// Whether a byte of the answer has come.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether the answer is over and all of it was taken.
    pub fn is_over(&self) -> bool {
        let is_taken = self.head.is_none() && self.data.is_empty() && self.trailers.is_none();
        self.stage == InflowStage::Body(BodyFraming::Done) && is_taken && self.fault.is_none()
    }

    /// Whether the connection can carry another answer: this one is over, and nothing came after it.
    pub fn is_clean(&self) -> bool {
        self.is_over() && self.keeps_alive && self.rest.is_empty()
    }

    /// How many bytes of the body are still to be taken, where the head says that.
    pub fn body_bytes_left(&self) -> Option<u64> {
        let coming = match self.stage {
            InflowStage::Body(BodyFraming::Length(left)) => left,
            _ => 0,
        };
        self.is_sized.then(|| coming.saturating_add(self.data.len() as u64))
    }

    /// Takes everything that can be understood from the front of `bytes`; how much that is.
    fn parse_front(&mut self, bytes: &mut [u8]) -> usize {
        self.try_parse_front(bytes).unwrap_or_else(|fault| {
            self.fault = Some(fault);
            bytes.len()
        })
    }

    fn try_parse_front(&mut self, bytes: &mut [u8]) -> Result<usize, &'static str> {
        if self.fault.is_some() {
            return Ok(bytes.len());
        }
        let mut used = 0;
        while let InflowStage::Head { may_have_body } = self.stage {
            let Some(length) = self.parse_head(&bytes[used..], may_have_body)? else {
                return Ok(used);
            };
            used += length;
        }
        let used = used + self.join_data(&mut bytes[used..])?;
        if self.stage != InflowStage::Body(BodyFraming::Trailers) {
            return Ok(used);
        }
        let Some((length, trailers)) = parse_trailers(&bytes[used..], self.head_bytes)? else {
            return Ok(used);
        };
        self.stage = InflowStage::Body(BodyFraming::Done);
        self.trailers = Some(trailers).filter(|trailers| !trailers.is_empty());
        Ok(used + length)
    }

    /// Understands a head, if it is whole; its length. Interim answers are passed over.
    fn parse_head(
        &mut self,
        bytes: &[u8],
        may_have_body: bool,
    ) -> Result<Option<usize>, &'static str> {
        let mut lines = [httparse::EMPTY_HEADER; LINES];
        let mut response = httparse::Response::new(&mut lines);
        // What lies beyond the limit is not looked at, so that the fault of a head does not depend on how
        // much of it came at once.
        let head = &bytes[..bytes.len().min(self.head_bytes)];
        let outcome =
            response.parse(head).map_err(|_| "the response headers are not valid HTTP")?;
        let length = match outcome {
            httparse::Status::Complete(length) => length,
            httparse::Status::Partial if bytes.len() > head.len() => {
                return Err("the response headers are too large");
            }
            httparse::Status::Partial => return Ok(None),
        };
        let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
        let status = status.ok_or("the response has no status")?;
        if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(Some(length));
        }
        let mut headers = header_map(response.headers)?;
        let is_old = response.version == Some(0);
        self.keeps_alive = keeps_alive(&headers, is_old);
        let framing = self.body_framing(&mut headers, is_old)?;
        let has_body = may_have_body
            && ![StatusCode::SWITCHING_PROTOCOLS, StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED]
                .contains(&status);
        let framing = if has_body { framing } else { BodyFraming::Done };
        self.keeps_alive &=
            framing != BodyFraming::ToEnd && status != StatusCode::SWITCHING_PROTOCOLS;
        let reason = response.reason.filter(|words| Some(*words) != status.canonical_reason());
        let reason = reason.map(|words| Bytes::copy_from_slice(words.as_bytes()));
        self.is_sized = matches!(framing, BodyFraming::Done | BodyFraming::Length(_));
        self.stage = InflowStage::Body(framing);
        self.head = Some(InflowHead { status, reason, headers });
        Ok(Some(length))
    }

    /// How a body is delimited (RFC 9112, section 6.3).
    fn body_framing(
        &mut self,
        headers: &mut HeaderMap,
        is_old: bool,
    ) -> Result<BodyFraming, &'static str> {
        let length = content_length(headers)?;
        if let Some(last) = headers.get_all(TRANSFER_ENCODING).iter().next_back() {
            if is_old {
                return Err("a transfer coding in an HTTP/1.0 response");
            }
            let last = last.as_bytes().rsplit(|byte| *byte == b',').next().unwrap_or_default();
            let is_chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
            if headers.remove(CONTENT_LENGTH).is_some() {
                // A server that sends both may mean either.
                self.keeps_alive = false;
            }
            return Ok(if is_chunked { BodyFraming::ChunkSize } else { BodyFraming::ToEnd });
        }
        let Some(length) = length else { return Ok(BodyFraming::ToEnd) };
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        Ok(if length == 0 { BodyFraming::Done } else { BodyFraming::Length(length) })
    }

    /// Puts all pieces of the body in `bytes` into one; how much of them was used.
    fn join_data(&mut self, bytes: &mut [u8]) -> Result<usize, &'static str> {
        let InflowStage::Body(mut framing) = self.stage else { return Ok(0) };
        let (mut used, mut end) = (0, 0);
        let outcome = loop {
            let taken = match framing.take_data(&bytes[used..]) {
                Ok(taken) => taken,
                Err(fault) => break Err(fault),
            };
            if let Some(piece) = &taken.piece {
                bytes.copy_within(used + piece.start..used + piece.end, end);
                end += piece.len();
            }
            used += taken.used;
            if taken.piece.is_none() {
                break Ok(used);
            }
        };
        self.stage = InflowStage::Body(framing);
        self.data = Bytes::copy_from_slice(&bytes[..end]);
        outcome
    }
}

/// The length that the headers say, if they agree on one.
fn content_length(headers: &HeaderMap) -> Result<Option<u64>, &'static str> {
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        for said in value.as_bytes().split(|byte| *byte == b',') {
            let said = parse_digits(said.trim_ascii()).ok_or("invalid content-length")?;
            if length.replace(said).is_some_and(|earlier| earlier != said) {
                return Err("two different lengths for one response");
            }
        }
    }
    Ok(length)
}

/// Whether the connection stays open: `close` holds against everything else.
fn keeps_alive(headers: &HeaderMap, is_old: bool) -> bool {
    let has = |word: &str| {
        let values = headers.get_all(CONNECTION).iter();
        let mut words = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        words.any(|said| said.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
    };
    !has("close") && (!is_old || has("keep-alive"))
}

/// Understands trailers, if they are whole; their length and what they say.
fn parse_trailers(bytes: &[u8], limit: usize) -> Result<Option<(usize, HeaderMap)>, &'static str> {
    let mut lines = [httparse::EMPTY_HEADER; LINES];
    let parsed = httparse::parse_headers(bytes, &mut lines);
    let (length, lines) = match parsed.map_err(|_| "the trailers are not valid HTTP")? {
        httparse::Status::Complete((length, lines)) => (length, Some(lines)),
        httparse::Status::Partial => (bytes.len(), None),
    };
    if length > limit {
        return Err("the trailers are too large");
    }
    let Some(lines) = lines else { return Ok(None) };
    let ends = memchr::memchr_iter(b'\n', &bytes[..length]);
    if ends.into_iter().any(|end| end == 0 || bytes[end - 1] != b'\r') {
        return Err("the trailers are not valid HTTP");
    }
    Ok(Some((length, header_map(lines)?)))
}

fn header_map(lines: &[httparse::Header<'_>]) -> Result<HeaderMap, &'static str> {
    let mut headers = HeaderMap::with_capacity(lines.len());
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes());
        let value = HeaderValue::from_bytes(line.value);
        let (Ok(name), Ok(value)) = (name, value) else { return Err("a header is not valid HTTP") };
        headers.append(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests;
