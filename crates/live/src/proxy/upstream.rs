//! Connections to the upstream, and the answers that come on them.
//!
//! A connection of HTTP/1.1 has no task of its own: the waiting request drives it (`http1`,
//! with `outflow` for what is sent). So nothing stands between a read and its reader, and an answer that
//! is no longer wanted closes its connection by being dropped. Connections of HTTP/2 (`http2`) are
//! shared and have a task each.

mod http1;
mod http2;
mod outflow;
mod pool;

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use goodput_clock::now;
use goodput_model::{Connect, ErrorClass, Exchange, Failure, FailureStage, Nanos};
use goodput_wire::{Read, Socket, SocketWatch};
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};

use self::http1::Http1;
use self::http2::{Http2, Wrong, is_stream_reset};
use crate::proxy::deadline::Deadline;
use crate::proxy::inquiry::Payload;

pub(crate) use self::pool::{Pool, UpstreamRoute};

/// How soon after a request was sent the end of its connection may have been meant for an idle one.
const RACE: Nanos = Nanos::from_millis(1_000);

/// An open connection, or a stream of one.
pub(crate) struct Link {
    pub(crate) id: u64,
    pub(crate) watch: SocketWatch,
    /// The steps of opening it; none when it was there already.
    pub(crate) opened: Option<Connect>,
    protocol: Protocol,
}

/// A socket to the upstream that was just opened.
struct Opened {
    id: u64,
    socket: Socket,
    watch: SocketWatch,
    /// The steps of opening it.
    steps: Connect,
}

enum Protocol {
    Http1(Box<Http1>),
    Http2(Http2),
}

/// Why an answer is missing.
pub(crate) struct UpstreamFailure {
    pub(crate) failure: Failure,
    /// The connection had been closed when it was used: the request may be sent once more.
    pub(crate) is_stale: bool,
}

impl Link {
    fn new_http1(opened: Opened, head_bytes: usize) -> Self {
        let Opened { id, socket, watch, steps } = opened;
        let protocol = Protocol::Http1(Box::new(Http1::new(socket, head_bytes)));
        Self { id, watch, opened: Some(steps), protocol }
    }

    async fn new_http2(opened: Opened, head_bytes: usize) -> Result<Self, Failure> {
        let Opened { id, socket, watch, steps } = opened;
        let protocol = Protocol::Http2(Http2::new(socket, head_bytes).await?);
        Ok(Self { id, watch, opened: Some(steps), protocol })
    }

    /// Another handle to a connection of HTTP/2, if it has a stream to spare.
    pub(crate) fn new_handle(&self, opened: Option<Connect>) -> Option<Self> {
        let Protocol::Http2(shared) = &self.protocol else { return None };
        let protocol = Protocol::Http2(shared.new_handle()?);
        Some(Self { id: self.id, watch: self.watch.clone(), opened, protocol })
    }

    /// Whether it is of HTTP/2 and has carried nothing for longer than this.
    pub(crate) fn is_unused_for(&self, limit: Nanos) -> bool {
        matches!(&self.protocol, Protocol::Http2(shared) if shared.is_unused_for(limit))
    }

    /// Whether a request can be sent now. Looks at the socket: the server may have closed it.
    pub(crate) fn is_ready(&mut self) -> bool {
        match &mut self.protocol {
            Protocol::Http1(own) => own.is_ready(),
            Protocol::Http2(shared) => shared.is_ready(),
        }
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(
        mut self,
        request: Request<Payload>,
        exchange: &mut Exchange,
        pool: &Rc<Pool>,
    ) -> Result<(Response<()>, UpstreamAnswer), UpstreamFailure> {
        let was_reused = self.opened.is_none();
        let is_idempotent = request.method().is_idempotent();
        exchange.stamps.connect = self.opened;
        exchange.connection = self.id;
        self.watch.expect_request();
        let mut deadline = Deadline::new(pool.limits.answer_time);
        match self.exchange(request, exchange, &mut deadline).await {
            Ok((response, shared)) => {
                deadline.restart();
                let answer = UpstreamAnswer {
                    shared,
                    link: Some(self),
                    pool: Rc::clone(pool),
                    deadline,
                    has_trailers: false,
                };
                Ok((response, answer))
            }
            Err(Wrong { failure, is_untaken }) => {
                if failure.class == ErrorClass::Timeout {
                    pool.retire_connection(self.id);
                }
                let is_safe = match &self.protocol {
                    Protocol::Http1(own) => {
                        let sent = exchange.stamps.sent_first;
                        let is_race = sent.is_none_or(|sent| now() - sent < RACE);
                        is_untaken
                            || (!own.is_answered() && (!own.is_sent() || is_race || is_idempotent))
                    }
                    // Others share the socket; a stream that the server reset had been taken.
                    Protocol::Http2(_) => {
                        is_untaken || (is_idempotent && !is_stream_reset(&failure.message))
                    }
                };
                let is_stale = was_reused && is_safe && failure.class == ErrorClass::Closed;
                Err(UpstreamFailure { failure, is_stale })
            }
        }
    }

    /// The head of the answer, and its body where that does not come on a connection of its own.
    async fn exchange(
        &mut self,
        request: Request<Payload>,
        exchange: &mut Exchange,
        deadline: &mut Deadline,
    ) -> Result<(Response<()>, Option<Incoming>), Wrong> {
        let watch = self.watch.clone();
        let mut late = |cx: &mut Context<'_>| {
            deadline.poll(cx).map(|()| timeout_failure(FailureStage::Headers))
        };
        match &mut self.protocol {
            Protocol::Http1(own) => {
                own.begin_request(request);
                let outcome = poll_fn(|cx| {
                    let poll = own.poll_head(cx);
                    (exchange.stamps.sent_first, exchange.stamps.sent_last) =
                        watch.write_instants();
                    if poll.is_ready() { poll } else { late(cx).map(Err) }
                })
                .await;
                let wrong = |failure| Wrong { failure, is_untaken: !own.has_begun() };
                outcome.map(|response| (response, None)).map_err(wrong)
            }
            Protocol::Http2(shared) => {
                let response = shared.exchange(request, exchange, late).await?;
                let (parts, incoming) = response.into_parts();
                Ok((Response::from_parts(parts, ()), Some(incoming)))
            }
        }
    }
}

/// The body of an answer, with the connection that it comes on.
pub(crate) struct UpstreamAnswer {
    /// The body, where it shares its connection; else the connection has it.
    shared: Option<Incoming>,
    link: Option<Link>,
    pool: Rc<Pool>,
    deadline: Deadline,
    /// Trailers have come, after which there is nothing.
    has_trailers: bool,
}

impl UpstreamAnswer {
    /// The next part of the body.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let poll = match (&mut self.shared, &mut self.link) {
            (Some(incoming), _) => {
                let poll = Pin::new(incoming).poll_frame(cx);
                poll.map(|frame| frame.map(|frame| frame.map_err(|error| body_failure(&error))))
            }
            (None, Some(Link { protocol: Protocol::Http1(own), .. })) => own.poll_frame(cx),
            (None, _) => Poll::Ready(None),
        };
        match poll {
            Poll::Pending => self.deadline.poll(cx).map(|()| {
                if let Some(link) = &self.link {
                    self.pool.retire_connection(link.id);
                }
                Some(Err(timeout_failure(FailureStage::Stream)))
            }),
            Poll::Ready(Some(Ok(frame))) => {
                self.deadline.restart();
                self.has_trailers |= frame.is_trailers();
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(failure))) => Poll::Ready(Some(Err(failure))),
            Poll::Ready(None) => {
                self.return_connection();
                Poll::Ready(None)
            }
        }
    }

    /// The read that brought the latest part.
    pub(crate) fn last_read(&self) -> Read {
        let read = self.link.as_ref().map(|link| link.watch.last_read());
        read.unwrap_or(Read { at: now(), sequence: 0, lag_us: None })
    }

    /// Ends the reading. Whether everything had come; then the connection is kept.
    pub(crate) fn finish_reading(&mut self) -> bool {
        let is_whole = self.is_end_stream();
        if is_whole {
            self.return_connection();
        }
        is_whole
    }

    fn return_connection(&mut self) {
        if let Some(link) = self.link.take() {
            self.pool.return_link(link);
        }
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.has_trailers
            || match (&self.shared, &self.link) {
                (Some(incoming), _) => incoming.is_end_stream(),
                (None, Some(Link { protocol: Protocol::Http1(own), .. })) => own.is_end_stream(),
                (None, _) => true,
            }
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        match (&self.shared, &self.link) {
            (Some(incoming), _) => incoming.size_hint(),
            (None, Some(Link { protocol: Protocol::Http1(own), .. })) => own.size_hint(),
            (None, _) => SizeHint::with_exact(0),
        }
    }
}

/// What ended the body of an answer.
fn body_failure(error: &hyper::Error) -> Failure {
    let failure = http2::http2_failure(error, FailureStage::Stream);
    let class = match failure.class {
        ErrorClass::Closed => ErrorClass::Cut,
        class => class,
    };
    Failure { class, ..failure }
}

fn timeout_failure(stage: FailureStage) -> Failure {
    let message = "the upstream sent no data for too long".to_owned();
    Failure { class: ErrorClass::Timeout, stage, message }
}
