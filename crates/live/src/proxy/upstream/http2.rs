//! HTTP/2 by hyper: a connection is shared, has a task of its own, and counts its streams.

use std::cell::Cell;
use std::error::Error;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use goodput_clock::now;
use goodput_model::{ErrorClass, Exchange, Failure, FailureStage, Nanos};
use goodput_wire::Socket;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};

use crate::proxy::inquiry::Payload;

/// Streams put on one HTTP/2 connection before another is opened.
const STREAMS: usize = 100;

/// Bytes of an answer that an upstream may send ahead, for a stream and for a connection.
const STREAM_WINDOW: u32 = 32 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;

/// Bytes of a request that wait to be sent.
const SEND_BUFFER: usize = 16 << 10;

/// How often a connection of HTTP/2 with requests in flight is pinged, and how long it
/// may take to say so.
const ASK_EVERY: Duration = Duration::from_secs(20);
const ASK_LIMIT: Duration = Duration::from_secs(10);

/// A connection, or a stream of one.
pub(super) struct Http2 {
    sender: http2::SendRequest<Payload>,
    streams: Rc<Streams>,
    _slot: Option<Slot>,
}

/// The streams of a multiplexed connection.
struct Streams {
    in_use: Cell<usize>,
    limit: Cell<usize>,
    /// When one of them was last given back.
    last_used: Cell<Nanos>,
}

/// One of them, given back when dropped.
struct Slot(Rc<Streams>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.in_use.set(self.0.in_use.get() - 1);
        self.0.last_used.set(now());
    }
}

impl Http2 {
    pub(super) async fn new(socket: Socket, head_bytes: usize) -> Result<Self, Failure> {
        let (sender, mut driver) = http2::Builder::new(LocalTasks)
            .timer(TokioTimer::new())
            .keep_alive_interval(ASK_EVERY)
            .keep_alive_timeout(ASK_LIMIT)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .max_header_list_size(u32::try_from(head_bytes).unwrap_or(u32::MAX))
            .handshake(TokioIo::new(socket))
            .await
            .map_err(|error| http2_failure(&error, FailureStage::Connect))?;
        let streams = Rc::new(Streams {
            in_use: Cell::new(0),
            limit: Cell::new(STREAMS),
            last_used: Cell::new(now()),
        });
        let watched = Rc::clone(&streams);
        tokio::task::spawn_local(poll_fn(move |cx| {
            let poll = Pin::new(&mut driver).poll(cx);
            watched.limit.set(driver.current_max_send_streams().min(STREAMS));
            poll
        }));
        Ok(Self { sender, streams, _slot: None })
    }

    /// Another handle to it, if it has a stream to spare.
    pub(super) fn new_handle(&self) -> Option<Self> {
        let Self { sender, streams, .. } = self;
        if streams.in_use.get() >= streams.limit.get() {
            return None;
        }
        streams.in_use.set(streams.in_use.get() + 1);
        let slot = Some(Slot(Rc::clone(streams)));
        Some(Self { sender: sender.clone(), streams: Rc::clone(streams), _slot: slot })
    }

    /// Whether it has carried nothing for longer than this.
    pub(super) fn is_unused_for(&self, limit: Nanos) -> bool {
        self.streams.in_use.get() == 0 && now() - self.streams.last_used.get() > limit
    }

    pub(super) fn is_ready(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Sends a request and waits for the head of its answer, for as long as `late` allows.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Payload>,
        exchange: &mut Exchange,
        mut late: impl FnMut(&mut Context<'_>) -> Poll<Failure>,
    ) -> Result<Response<Incoming>, Wrong> {
        let ready = poll_fn(|cx| self.sender.poll_ready(cx)).await;
        ready.map_err(|error| Wrong {
            failure: http2_failure(&error, FailureStage::Send),
            is_untaken: true,
        })?;
        let sent = now();
        exchange.stamps.sent_first = Some(sent);
        let inquiry = request.body().inquiry();
        let mut response = pin!(self.sender.send_request(request));
        poll_fn(|cx| {
            let poll = response.as_mut().poll(cx);
            // Others share the socket: the body left when the last of it had come.
            let whole = inquiry.as_ref().and_then(|inquiry| inquiry.completed_at());
            exchange.stamps.sent_last = Some(whole.map_or(sent, |whole| whole.max(sent)));
            match poll {
                Poll::Ready(outcome) => Poll::Ready(outcome.map_err(|error| {
                    let failure = http2_failure(&error, FailureStage::Headers);
                    let is_untaken = error.is_canceled() || is_refusal(&failure.message);
                    Wrong { failure, is_untaken }
                })),
                Poll::Pending => late(cx).map(|failure| Err(Wrong { failure, is_untaken: false })),
            }
        })
        .await
    }
}

/// What went wrong with a request.
pub(super) struct Wrong {
    pub(super) failure: Failure,
    /// The server never had it, or says that it did nothing with it.
    pub(super) is_untaken: bool,
}

/// What hyper says, as a failure. Its innermost cause says most, but for what the server says in its
/// own words.
pub(super) fn http2_failure(error: &hyper::Error, stage: FailureStage) -> Failure {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message = cause.to_string();
        source = cause.source();
    }
    strip_goaway_text(&mut message);
    let is_bad = error.is_parse()
        || message.contains("frame with invalid size")
        || message.contains("PROTOCOL_ERROR");
    let class = if is_bad { ErrorClass::BadHttp } else { ErrorClass::Closed };
    Failure { class, stage, message }
}

/// Takes out of a message of GOAWAY the text that came with it, which stands in brackets at the end.
fn strip_goaway_text(message: &mut String) {
    if message.starts_with("connection error")
        && let Some(begin) = message.find(" (")
    {
        message.truncate(begin);
    }
}

/// Whether the server gave up on one stream that it had taken.
pub(super) fn is_stream_reset(message: &str) -> bool {
    message.starts_with("stream error received") && !is_refusal(message)
}

/// Whether a server of HTTP/2 says that it did nothing with a request: it refused its stream, or left
/// with a last stream before it.
fn is_refusal(message: &str) -> bool {
    let refused = "stream error received: refused stream";
    message.starts_with(refused) || message.starts_with("connection error received")
}

/// Runs tasks of HTTP/2 on the worker's own thread.
#[derive(Clone)]
struct LocalTasks;

impl<F: Future + 'static> hyper::rt::Executor<F> for LocalTasks {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move {
            future.await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_goaway_are_left_out() {
        let mut message =
            "connection error received: not a result of an error (b\"a (secret) prompt\")"
                .to_owned();
        strip_goaway_text(&mut message);
        assert_eq!(message, "connection error received: not a result of an error");
        let other = "stream error received: stream no longer needed";
        let mut message = other.to_owned();
        strip_goaway_text(&mut message);
        assert_eq!(message, other);
    }
}
