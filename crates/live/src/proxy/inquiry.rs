//! [`Inquiry`]: the body of a request on its way to the upstream, and what is kept of it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use goodput_clock::{now, run_until, wait_until};
use goodput_model::Nanos;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::proxy::after::WholeRequest;
use crate::proxy::deadline::Deadline;
use crate::proxy::shared::Shared;

/// What can go wrong with a body on the client's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("the client sent no data for too long")]
    Slow,
    #[error("the client disconnected, or its body is not valid HTTP")]
    Broken,
}

/// A request's body while it comes in. It outlives the attempt to send it: what has come of it can be
/// sent once more.
pub(crate) struct Inquiry {
    inner: RefCell<InquiryState>,
    /// As the client said; none if it did not.
    length: Option<u64>,
}

struct InquiryState {
    incoming: Incoming,
    shared: Rc<Shared>,
    kept: BodyBuffer,
    /// Bytes of the common allowance that are held.
    held: usize,
    came: u64,
    /// When the last of it came.
    whole_at: Option<Nanos>,
    trouble: Option<Trouble>,
    deadline: Deadline,
    /// Told when the body is whole.
    told: Option<Box<WholeRequest>>,
}

/// What has come so far.
enum BodyBuffer {
    /// One piece, as it lay in the buffer that it was read into.
    One(Bytes),
    /// Small pieces would each hold their buffer: they are put together.
    Many(Vec<u8>),
    TooMuch,
}

impl Inquiry {
    /// The receiver gets it when the body is complete: at once, where there is none.
    pub(crate) fn new(
        shared: &Rc<Shared>,
        incoming: Incoming,
        told: Box<WholeRequest>,
    ) -> Rc<Self> {
        let length = incoming.size_hint().exact();
        let is_empty = incoming.is_end_stream();
        let inquiry = Self {
            length,
            inner: RefCell::new(InquiryState {
                incoming,
                shared: Rc::clone(shared),
                kept: BodyBuffer::One(Bytes::new()),
                held: 0,
                came: 0,
                whole_at: None,
                trouble: None,
                deadline: Deadline::new(shared.limits.body_time),
                told: Some(told),
            }),
        };
        if is_empty {
            inquiry.inner.borrow_mut().mark_complete();
        }
        Rc::new(inquiry)
    }

    /// What can be sent: everything from its beginning, if that is still at hand.
    pub(crate) fn replay_payload(self: &Rc<Self>) -> Option<Payload> {
        let inner = self.inner.borrow();
        let before = match &inner.kept {
            BodyBuffer::One(bytes) => bytes.clone(),
            BodyBuffer::Many(bytes) => Bytes::copy_from_slice(bytes),
            BodyBuffer::TooMuch => return None,
        };
        if inner.trouble.is_some() || before.len() as u64 != inner.came {
            return None;
        }
        let before = Some(before).filter(|bytes| !bytes.is_empty());
        Some(Payload::Passing { inquiry: Rc::clone(self), before })
    }

    /// What went wrong on the client's side.
    pub(crate) fn client_failure(&self) -> Option<Trouble> {
        self.inner.borrow().trouble
    }

    /// When the last of it came; none while there is more to come.
    pub(crate) fn completed_at(&self) -> Option<Nanos> {
        self.inner.borrow().whole_at
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.completed_at().is_some()
    }

    /// Bytes that came.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.inner.borrow().came
    }

    /// Reads and drops the rest, for at most this time: a request that no server could
    /// take is told of, too.
    pub(crate) async fn read_rest(&self, limit: Duration) {
        let rest = poll_fn(|cx| {
            while let Some(Ok(_)) = ready!(self.poll(cx)) {}
            Poll::Ready(())
        });
        // What is not whole by then stays untold.
        let _ = run_until(wait_until(now() + limit.into()), rest).await;
    }

    /// It will not be sent once more, and its answer is over or near: nothing more is told of it.
    pub(crate) fn drop_buffer(&self, told: bool) {
        let mut inner = self.inner.borrow_mut();
        inner.kept = BodyBuffer::TooMuch;
        inner.release_buffer();
        if told {
            inner.told = None;
        }
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Trouble>>> {
        let mut inner = self.inner.borrow_mut();
        if inner.whole_at.is_some() {
            return Poll::Ready(None);
        }
        match Pin::new(&mut inner.incoming).poll_frame(cx) {
            Poll::Pending => {
                if inner.deadline.poll(cx).is_pending() {
                    return Poll::Pending;
                }
                inner.trouble = Some(Trouble::Slow);
                Poll::Ready(Some(Err(Trouble::Slow)))
            }
            Poll::Ready(Some(Ok(frame))) => {
                inner.deadline.restart();
                if let Some(bytes) = frame.data_ref() {
                    inner.buffer_bytes(bytes);
                }
                if frame.is_trailers() || inner.incoming.is_end_stream() {
                    inner.mark_complete();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(_))) => {
                inner.trouble = Some(Trouble::Broken);
                Poll::Ready(Some(Err(Trouble::Broken)))
            }
            Poll::Ready(None) => {
                inner.mark_complete();
                Poll::Ready(None)
            }
        }
    }
}

impl InquiryState {
    fn buffer_bytes(&mut self, bytes: &Bytes) {
        self.came += bytes.len() as u64;
        let limits = &self.shared.limits;
        let is_too_long = self.came > limits.kept_bytes as u64;
        if matches!(self.kept, BodyBuffer::TooMuch) {
            return;
        }
        if is_too_long || !self.shared.allowance.reserve(bytes.len(), limits.kept_total) {
            self.kept = BodyBuffer::TooMuch;
            self.release_buffer();
            return;
        }
        self.held += bytes.len();
        match &mut self.kept {
            BodyBuffer::One(first) if first.is_empty() => *first = bytes.clone(),
            BodyBuffer::One(first) => {
                let mut both = Vec::with_capacity(2 * (first.len() + bytes.len()));
                both.extend_from_slice(first);
                both.extend_from_slice(bytes);
                self.kept = BodyBuffer::Many(both);
            }
            BodyBuffer::Many(all) => all.extend_from_slice(bytes),
            BodyBuffer::TooMuch => {}
        }
    }

    fn mark_complete(&mut self) {
        if self.whole_at.is_some() {
            return;
        }
        self.whole_at = Some(now());
        if let BodyBuffer::Many(all) = &mut self.kept {
            self.kept = BodyBuffer::One(Bytes::from(std::mem::take(all)));
        }
        let body = match &self.kept {
            BodyBuffer::One(bytes) => Some(bytes.clone()),
            _ => None,
        };
        if let Some(told) = self.told.take() {
            self.shared.after.request_complete(told, body);
        }
    }

    fn release_buffer(&mut self) {
        self.shared.allowance.release(std::mem::take(&mut self.held));
    }
}

impl Drop for InquiryState {
    fn drop(&mut self) {
        self.release_buffer();
    }
}

/// The body that is sent to an upstream.
pub(crate) enum Payload {
    /// All of it.
    Whole(Option<Bytes>),
    /// What a client is still sending, after what has come before.
    Passing { inquiry: Rc<Inquiry>, before: Option<Bytes> },
}

impl Payload {
    /// What a client sends, where it is that.
    pub(crate) fn inquiry(&self) -> Option<Rc<Inquiry>> {
        match self {
            Self::Whole(_) => None,
            Self::Passing { inquiry, .. } => Some(Rc::clone(inquiry)),
        }
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Trouble;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Trouble>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Passing { inquiry, before } => match before.take() {
                Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                None => inquiry.poll(cx),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Passing { inquiry, before } => before.is_none() && inquiry.is_whole(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Passing { inquiry, .. } => {
                inquiry.length.map_or_else(SizeHint::default, SizeHint::with_exact)
            }
        }
    }
}
