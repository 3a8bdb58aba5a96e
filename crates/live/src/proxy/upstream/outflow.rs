//! [`Outflow`]: a request of HTTP/1.1 on its way out.

use std::io::{IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use goodput_wire::Socket;
use http::header::{self, HeaderMap, HeaderName};
use http::{HeaderValue, Request};
use hyper::body::{Body, Frame};
use tokio::io::AsyncWrite;

use crate::proxy::inquiry::Payload;

/// Bytes that wait to be written before the body is asked for more.
const WAITING: usize = 8 << 10;

/// A frame that is longer is written from where it lies.
const SMALL: usize = 4 << 10;

/// A request, as far as it has not been written. The one of nothing is whole.
#[derive(Default)]
pub(super) struct Outflow {
    /// The rest of the body; none at its end.
    payload: Option<Payload>,
    framing: Framing,
    /// What waits to be written, and how much of it was.
    waiting: Vec<u8>,
    written: usize,
    /// What is to be written after that.
    frame: Bytes,
    has_begun: bool,
    /// Something was written that may not have left.
    needs_flush: bool,
    /// The body broke off.
    fault: Option<String>,
}

/// How the end of the body is told.
enum Framing {
    /// This many bytes are still to come from the body.
    Length(u64),
    /// By the last chunk, with these trailers.
    Chunked { trailers: Vec<HeaderName> },
}

impl Default for Framing {
    fn default() -> Self {
        Self::Length(0)
    }
}

impl Outflow {
    pub(super) fn new(request: Request<Payload>) -> Self {
        let (mut head, payload) = request.into_parts();
        let framing = choose_framing(&mut head.headers, &payload);
        let mut waiting = Vec::with_capacity(512);
        // Writing to memory cannot fail.
        let _ = write!(waiting, "{} {} HTTP/1.1\r\n", head.method, head.uri);
        write_headers(&mut waiting, &head.headers);
        waiting.extend_from_slice(b"\r\n");
        let payload = Some(payload).filter(|payload| !payload.is_end_stream());
        Self { payload, framing, waiting, ..Self::default() }
    }

    /// Whether a byte was written.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether everything was written.
    pub(super) fn is_whole(&self) -> bool {
        let is_written = self.waiting.is_empty() && self.frame.is_empty() && !self.needs_flush;
        is_written && self.payload.is_none() && self.fault.is_none()
    }

    /// Writes what can be written. Ready when that is everything, or when it never will be.
    pub(super) fn poll(
        &mut self,
        socket: &mut Socket,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), String>> {
        loop {
            self.fill_from_body(cx);
            if let Some(fault) = &self.fault {
                return Poll::Ready(Err(fault.clone()));
            }
            if self.waiting.is_empty() && self.frame.is_empty() {
                break;
            }
            let outcome = ready!(self.poll_write(socket, cx));
            self.needs_flush = true;
            self.advance_written(match outcome {
                Ok(0) => {
                    return self
                        .set_fault("the connection was closed during the request".to_owned());
                }
                Ok(written) => written,
                Err(error) => return self.set_fault(error.to_string()),
            });
        }
        // Under TLS the last record may still be on its way to the socket.
        if self.needs_flush {
            let outcome = ready!(Pin::new(socket).poll_flush(cx));
            if let Err(error) = outcome {
                return self.set_fault(error.to_string());
            }
            self.needs_flush = false;
        }
        if self.payload.is_none() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn set_fault(&mut self, fault: String) -> Poll<Result<(), String>> {
        self.fault = Some(fault.clone());
        Poll::Ready(Err(fault))
    }

    fn poll_write(
        &self,
        socket: &mut Socket,
        cx: &mut Context<'_>,
    ) -> Poll<std::io::Result<usize>> {
        let waiting = &self.waiting[self.written..];
        let socket = Pin::new(socket);
        if self.frame.is_empty() {
            return socket.poll_write(cx, waiting);
        }
        let slices = [IoSlice::new(waiting), IoSlice::new(&self.frame)];
        let first = usize::from(waiting.is_empty());
        socket.poll_write_vectored(cx, &slices[first..])
    }

    fn advance_written(&mut self, count: usize) {
        self.has_begun = true;
        let of_waiting = count.min(self.waiting.len() - self.written);
        self.written += of_waiting;
        if self.written < self.waiting.len() {
            return;
        }
        self.written = 0;
        self.waiting = Vec::new();
        if self.frame.is_empty() {
            return;
        }
        self.frame.advance(count - of_waiting);
        if self.frame.is_empty() {
            self.frame = Bytes::new();
            self.end_chunk();
            self.end_if_over();
        }
    }

    /// Asks the body for more, while there is room for it.
    fn fill_from_body(&mut self, cx: &mut Context<'_>) {
        while self.frame.is_empty() && self.waiting.len() < WAITING {
            let Some(payload) = &mut self.payload else { return };
            let poll = Pin::new(payload).poll_frame(cx);
            let Poll::Ready(frame) = poll else {
                if matches!(self.framing, Framing::Length(0)) {
                    // Nothing can come but the word that this was all.
                    self.payload = None;
                }
                return;
            };
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(bytes))) => self.push_data(bytes),
                Some(Ok(Err(frame))) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    self.push_last_chunk(&trailers);
                }
                None => self.push_last_chunk(&HeaderMap::new()),
                Some(Err(trouble)) => {
                    self.payload = None;
                    self.fault = Some(trouble.to_string());
                }
            }
        }
    }

    fn push_data(&mut self, mut bytes: Bytes) {
        if let Framing::Length(left) = &mut self.framing {
            bytes.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= bytes.len() as u64;
        } else if !bytes.is_empty() {
            let _ = write!(self.waiting, "{:X}\r\n", bytes.len());
        }
        if bytes.len() > SMALL {
            self.frame = bytes;
        } else if !bytes.is_empty() {
            self.waiting.extend_from_slice(&bytes);
            self.end_chunk();
        }
        self.end_if_over();
    }

    fn end_chunk(&mut self) {
        if matches!(self.framing, Framing::Chunked { .. }) {
            self.waiting.extend_from_slice(b"\r\n");
        }
    }

    /// Ends the request if its body says that it is over, so that its end leaves with its last bytes.
    fn end_if_over(&mut self) {
        let is_over = self.payload.as_ref().is_some_and(Body::is_end_stream);
        if is_over && self.frame.is_empty() {
            self.push_last_chunk(&HeaderMap::new());
        }
    }

    /// The body is over.
    fn push_last_chunk(&mut self, trailers: &HeaderMap) {
        self.payload = None;
        match &self.framing {
            Framing::Length(0) => {}
            Framing::Length(_) => {
                self.fault = Some("the body is shorter than its content-length".to_owned());
            }
            Framing::Chunked { trailers: named } => {
                let mut passed = trailers.clone();
                let gone = trailers.keys().filter(|name| !named.contains(name));
                gone.for_each(|name| drop(passed.remove(name)));
                self.waiting.extend_from_slice(b"0\r\n");
                write_headers(&mut self.waiting, &passed);
                self.waiting.extend_from_slice(b"\r\n");
            }
        }
    }
}

/// How the body is framed, which the headers say when this returns.
fn choose_framing(headers: &mut HeaderMap, payload: &Payload) -> Framing {
    if payload.is_end_stream() {
        headers.remove(header::TRANSFER_ENCODING);
        return Framing::Length(0);
    }
    if let Some(length) = payload.size_hint().exact() {
        headers.remove(header::TRANSFER_ENCODING);
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        return Framing::Length(length);
    }
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    Framing::Chunked { trailers: named_trailers(headers) }
}

/// The names that `Trailer` names, but for those that a message's frame or meaning hangs on.
fn named_trailers(headers: &HeaderMap) -> Vec<HeaderName> {
    const NEVER: [HeaderName; 12] = [
        header::AUTHORIZATION,
        header::CACHE_CONTROL,
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_RANGE,
        header::CONTENT_TYPE,
        header::HOST,
        header::MAX_FORWARDS,
        header::SET_COOKIE,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
    ];
    let values = headers.get_all(header::TRAILER).iter();
    let names = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let names = names.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok());
    names.filter(|name| !NEVER.contains(name)).collect()
}

fn write_headers(out: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}
