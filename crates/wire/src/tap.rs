//! [`AnswerTap`]: an answer on its way through the proxy, read as [`crate::Client`] reads
//! its own.
//!
//! The proxy does not depend on this reader: it takes what comes, keeps a bounded part of it,
//! and whatever is wrong is a failure of the exchange and of nothing else. Its failures speak in words
//! of ours: those of the server may quote a prompt.

use goodput_model::{Chunk, ErrorClass, Exchange, Failure, Nanos};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

use crate::answer::{AnswerReader, Bounds, Read};
use crate::fault::AnswerError;

/// What is kept of an answer at most. This many chunks have the 4,096 gaps between them that a
/// trace keeps.
const BOUNDS: Bounds = Bounds { event: 4 << 20, chunks: 4097, text: 1 << 20 };

/// Most bytes of an answer in one piece: a longer one is not judged, for it would be read at once while
/// others pass.
const WHOLE_LIMIT: usize = 1 << 20;

/// The head of an answer.
#[derive(Debug, Clone, Copy)]
pub struct PassedHead<'a> {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// The read that completed it.
    pub read: Read,
}

/// An answer as it passes.
#[derive(Debug)]
pub struct AnswerTap {
    exchange: Exchange,
    look: BodyReading,
    is_api: bool,
    keep_text: bool,
}

/// How the bytes of the body are looked at.
#[derive(Debug)]
enum BodyReading {
    /// Not at all: the head is missing, nothing can be understood, or it is known how it ends.
    Not,
    /// The first byte that is not blank tells whether it is a stream; the blanks before it are kept.
    Unsaid(Vec<u8>),
    Stream(Box<AnswerReader>),
    Whole(Vec<u8>),
}

impl AnswerTap {
    /// An answer of which nothing has come. Of an answer outside of the API, only stamps and status
    /// are noted.
    pub fn new(is_api: bool, keep_text: bool) -> Self {
        Self { exchange: Exchange::default(), look: BodyReading::Not, is_api, keep_text }
    }

    /// What is known so far.
    pub fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// What is known so far, for those who know more: stamps of the request, its size.
    pub fn exchange_mut(&mut self) -> &mut Exchange {
        &mut self.exchange
    }

    /// Whether everything that matters has come: the stream said `[DONE]`.
    pub fn is_done(&self) -> bool {
        matches!(&self.look, BodyReading::Stream(reader) if reader.is_done())
    }

    /// The head has come.
    pub fn take_head(&mut self, head: PassedHead<'_>) {
        let PassedHead { status, headers, read } = head;
        self.exchange.stamps.headers = Some(read.at);
        self.exchange.head_lag_us = read.lag_us;
        self.exchange.status = Some(status);
        if !(200..300).contains(&status) {
            return self.set_failure(ErrorClass::Http(status));
        }
        if !self.is_api {
            return;
        }
        let value = |name| headers.get(name).map_or(&b""[..], |value| value.as_bytes());
        if !matches!(value(CONTENT_ENCODING), b"" | b"identity") {
            return self.set_failure(ErrorClass::BadHttp);
        }
        let kind = value(CONTENT_TYPE).trim_ascii_start().to_ascii_lowercase();
        if kind.starts_with(b"text/html") {
            return self.set_failure(ErrorClass::Html);
        }
        self.look = if kind.starts_with(b"text/event-stream") {
            self.new_stream_reading()
        } else {
            BodyReading::Unsaid(Vec::new())
        };
    }

    /// Bytes of the body that one read brought, or a part of them.
    pub fn take_bytes(&mut self, bytes: &[u8], read: Read) {
        self.exchange.stamps.first_byte.get_or_insert(read.at);
        if let BodyReading::Unsaid(blanks) = &mut self.look {
            let first = bytes.trim_ascii_start();
            let (before, first) = (&bytes[..bytes.len() - first.len()], first.first());
            if blanks.len() + before.len() > WHOLE_LIMIT {
                return self.set_failure(ErrorClass::EventTooLarge);
            }
            let Some(first) = first else { return blanks.extend_from_slice(before) };
            // In a stream a line that begins with a blank means something else than the rest of it.
            let blanks = std::mem::take(blanks);
            let is_whole = matches!(first, b'{' | b'[');
            self.look =
                if is_whole { BodyReading::Whole(Vec::new()) } else { self.new_stream_reading() };
            self.read_bytes(&blanks, read);
        }
        self.read_bytes(bytes, read);
    }

    fn read_bytes(&mut self, bytes: &[u8], read: Read) {
        let outcome = match &mut self.look {
            BodyReading::Not | BodyReading::Unsaid(_) => Ok(()),
            BodyReading::Stream(reader) if reader.is_done() => Ok(()),
            BodyReading::Stream(reader) => reader.push(bytes, read, &mut self.exchange),
            BodyReading::Whole(whole) if whole.len() + bytes.len() > WHOLE_LIMIT => {
                Err(AnswerError::new(ErrorClass::EventTooLarge, ""))
            }
            BodyReading::Whole(whole) => {
                whole.extend_from_slice(bytes);
                Ok(())
            }
        };
        if let Err(fault) = outcome {
            self.set_failure(fault.class);
        }
    }

    /// The body has ended in good order, seen by this read.
    pub fn end(mut self, read: Read) -> Exchange {
        let outcome = match std::mem::replace(&mut self.look, BodyReading::Not) {
            BodyReading::Not => {
                self.exchange.stamps.done.get_or_insert(read.at);
                Ok(())
            }
            BodyReading::Unsaid(_) => {
                AnswerReader::with_bounds(false, BOUNDS).finish(read, &mut self.exchange)
            }
            BodyReading::Stream(mut reader) => reader.finish(read, &mut self.exchange),
            BodyReading::Whole(whole) => {
                let mut reader = AnswerReader::with_bounds(self.keep_text, BOUNDS);
                reader.read_whole(&whole, read, &mut self.exchange)
            }
        };
        if let Err(fault) = outcome {
            self.set_failure(fault.class);
        }
        self.exchange
    }

    /// Bytes that are held to read it.
    pub fn held_bytes(&self) -> usize {
        let look = match &self.look {
            BodyReading::Not => 0,
            BodyReading::Stream(reader) => reader.held_bytes(),
            BodyReading::Unsaid(held) | BodyReading::Whole(held) => held.capacity(),
        };
        let text = self.exchange.text.as_ref().map_or(0, String::capacity);
        look + text + self.exchange.chunks.capacity() * size_of::<Chunk>()
    }

    /// Nothing more fits: chunks are only counted from here on, and what would have to be held to
    /// be read goes unjudged.
    pub fn stop_buffering(&mut self) {
        match &mut self.look {
            BodyReading::Not => {}
            BodyReading::Stream(reader) => reader.stop_buffering(&self.exchange),
            BodyReading::Unsaid(_) | BodyReading::Whole(_) => {
                self.set_failure(ErrorClass::EventTooLarge);
            }
        }
    }

    /// The reader itself is at fault: what it had seen stays, and the answer counts as unread.
    pub fn give_up(&mut self) {
        self.set_failure(ErrorClass::BadEvent);
    }

    /// It was broken off at this instant, on either side. What has come stays, and so does a failure
    /// that was seen before; a stream that had said `[DONE]` has lost nothing.
    /// What a stream had said by then is counted.
    pub fn break_off(mut self, failure: Failure, at: Nanos) -> Exchange {
        let mut exchange = if self.is_done() {
            self.end(Read { at, sequence: 0, lag_us: None })
        } else {
            self.count_tokens();
            self.exchange.failure.get_or_insert(failure);
            self.exchange
        };
        exchange.stamps.ended = at;
        exchange
    }

    fn new_stream_reading(&self) -> BodyReading {
        BodyReading::Stream(Box::new(AnswerReader::with_bounds(self.keep_text, BOUNDS)))
    }

    /// Counts what a stream has said so far.
    fn count_tokens(&mut self) {
        if let BodyReading::Stream(reader) = &self.look {
            reader.count_tokens(&mut self.exchange);
        }
    }

    /// Nothing more is looked at.
    fn set_failure(&mut self, class: ErrorClass) {
        self.count_tokens();
        let stage = self.exchange.stamps.stage();
        let message = failure_text(class).to_owned();
        self.exchange.failure.get_or_insert(Failure { class, stage, message });
        self.look = BodyReading::Not;
    }
}

/// Whether a server answered with a success that was not looked into, packed or too large as it was:
/// that says nothing about the server.
pub fn is_unread_success(exchange: &Exchange) -> bool {
    let is_success = exchange.status.is_some_and(|status| (200..300).contains(&status));
    is_success
        && exchange.failure.as_ref().is_some_and(|failure| {
            let is_ours = matches!(failure.class, ErrorClass::BadHttp | ErrorClass::EventTooLarge);
            // Others give the same classes to what really is a fault.
            is_ours && failure.message == failure_text(failure.class)
        })
}

/// What a class of failure means here.
fn failure_text(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Http(_) => "the server answered with an error",
        ErrorClass::BadHttp => "the answer is compressed: it was passed on unread",
        ErrorClass::Html => "a web page where an API's answer was expected",
        ErrorClass::BadJson => "the answer does not have the format of the API",
        ErrorClass::BadEvent => "an event does not have the format of the API",
        ErrorClass::EventTooLarge => "too large to read: it was passed on unread",
        ErrorClass::StreamError => "the server reported an error within its answer",
        ErrorClass::NoFinish => "the answer ended without a finish reason",
        ErrorClass::Empty => "the answer had no tokens",
        _ => "the answer failed",
    }
}

#[cfg(test)]
mod tests;
