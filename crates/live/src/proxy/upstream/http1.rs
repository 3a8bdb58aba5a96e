//! HTTP/1.1 by hand: one request at a time on one socket, its answer read while it is still being sent.
//!
//! Hyper's client keeps 25 KiB of buffers and channels for each connection. Here what is read goes
//! through a buffer on the stack, and what waits to be written is little and let go.

use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use goodput_model::{ErrorClass, Failure, FailureStage};
use goodput_wire::{BodyPart, Inflow, Socket};
use http::{Method, Request, Response};
use hyper::body::{Frame, SizeHint};
use hyper::ext::ReasonPhrase;
use tokio::io::{AsyncRead, ReadBuf};

use super::outflow::Outflow;
use crate::proxy::inquiry::Payload;

/// Most bytes of one read.
const READ: usize = 16 << 10;

/// A connection.
pub(super) struct Http1 {
    socket: Socket,
    inflow: Inflow,
    outflow: Outflow,
    /// Whether the answer's body was asked for.
    is_asked: bool,
}

impl Http1 {
    pub(super) fn new(socket: Socket, head_bytes: usize) -> Self {
        Self {
            socket,
            inflow: Inflow::new(head_bytes),
            outflow: Outflow::default(),
            is_asked: false,
        }
    }

    /// Whether another request can be sent. Looks at the socket: the server may have closed it.
    pub(super) fn is_ready(&mut self) -> bool {
        if !self.outflow.is_whole() || !self.inflow.is_clean() {
            return false;
        }
        // Anything to read now is an end, or bytes without a request.
        self.poll_read(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// A request is to be sent.
    pub(super) fn begin_request(&mut self, request: Request<Payload>) {
        self.inflow.expect_answer(request.method() != Method::HEAD);
        self.outflow = Outflow::new(request);
        self.is_asked = false;
    }

    /// Sends what can be sent, and looks for the head of the answer.
    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<()>, Failure>> {
        let failure =
            |class, message: String| Failure { class, stage: FailureStage::Headers, message };
        while let Poll::Ready(came) = self.poll_read(cx) {
            match came {
                Ok(0) => {
                    let message = "connection closed before the answer".to_owned();
                    return Poll::Ready(Err(failure(ErrorClass::Closed, message)));
                }
                Ok(_) => {}
                Err(message) => return Poll::Ready(Err(failure(ErrorClass::Closed, message))),
            }
            let bad = |fault: &str| failure(ErrorClass::BadHttp, fault.to_owned());
            let Some(head) = self.inflow.take_head().map_err(bad)? else { continue };
            let mut response = Response::new(());
            *response.status_mut() = head.status;
            *response.headers_mut() = head.headers;
            if let Some(reason) = head.reason.and_then(|words| ReasonPhrase::try_from(words).ok()) {
                response.extensions_mut().insert(reason);
            }
            return Poll::Ready(Ok(response));
        }
        match ready!(self.outflow.poll(&mut self.socket, cx)) {
            Ok(()) => Poll::Pending,
            Err(message) => Poll::Ready(Err(failure(ErrorClass::Closed, message))),
        }
    }

    /// The next part of the answer's body. What of the request is still to be sent is sent.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let failure = |class, message: String| {
            Poll::Ready(Some(Err(Failure { class, stage: FailureStage::Stream, message })))
        };
        self.is_asked = true;
        loop {
            match self.inflow.take_part() {
                Ok(None) if self.inflow.is_over() => return Poll::Ready(None),
                Ok(None) => {}
                Ok(Some(BodyPart::Data(bytes))) => {
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Ok(Some(BodyPart::Trailers(trailers))) => {
                    return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
                }
                Err(fault) => return failure(ErrorClass::BadHttp, fault.to_owned()),
            }
            match self.poll_read(cx) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) if !self.inflow.end_of_stream() => {
                    let message = "connection closed in the middle of the answer".to_owned();
                    return failure(ErrorClass::Cut, message);
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(message)) => return failure(ErrorClass::Cut, message),
            }
        }
        match ready!(self.outflow.poll(&mut self.socket, cx)) {
            Ok(()) => Poll::Pending,
            Err(message) => failure(ErrorClass::Cut, message),
        }
    }

    /// Whether everything has come and was taken. A body whose length the head does not say is one that
    /// is there, even if nothing is in it.
    pub(super) fn is_end_stream(&self) -> bool {
        self.inflow.is_over() && (self.is_asked || self.inflow.body_bytes_left().is_some())
    }

    /// How much of the answer is still to come.
    pub(super) fn size_hint(&self) -> SizeHint {
        self.inflow.body_bytes_left().map_or_else(SizeHint::default, SizeHint::with_exact)
    }

    /// Whether a byte of the request was written.
    pub(super) fn has_begun(&self) -> bool {
        self.outflow.has_begun()
    }

    /// Whether all of the request was written.
    pub(super) fn is_sent(&self) -> bool {
        self.outflow.is_whole()
    }

    /// Whether a byte of the answer has come. What TLS says for itself is none.
    pub(super) fn is_answered(&self) -> bool {
        self.inflow.has_begun()
    }

    /// Reads once; how many bytes came, none at the end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, String>> {
        let mut room = [const { MaybeUninit::uninit() }; READ];
        let mut room = ReadBuf::uninit(&mut room);
        let outcome = ready!(Pin::new(&mut self.socket).poll_read(cx, &mut room));
        let bytes = room.filled_mut();
        self.inflow.push(bytes);
        Poll::Ready(outcome.map(|()| bytes.len()).map_err(|error| error.to_string()))
    }
}
