//! [`Reply`]: the body of an answer on its way to the client.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::proxy::call::Call;
use crate::proxy::flow::FlowTimer;
use crate::proxy::line::Line;
use crate::proxy::upstream::UpstreamAnswer;

/// The upstream broke off: the client must see that the answer is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the upstream closed the connection")]
pub(crate) struct CutAnswer;

/// The body of an answer.
pub(crate) enum Reply {
    Own(Option<Bytes>),
    Passed(Box<Passed>),
}

/// An answer that is passed on frame by frame, and looked at behind that.
pub(crate) struct Passed {
    answer: UpstreamAnswer,
    call: Call,
    line: Rc<Line>,
    /// The stream that it leaves on, where that is one.
    flow: Option<Rc<FlowTimer>>,
    /// The end of the connection would be taken for the end of the answer.
    ends_with_line: bool,
    /// The upstream broke off.
    is_cut: bool,
    is_over: bool,
}

impl Passed {
    pub(crate) fn new(
        answer: UpstreamAnswer,
        call: Call,
        line: Rc<Line>,
        ends_with_line: bool,
    ) -> Self {
        let flow = FlowTimer::of_current_task();
        Self { answer, call, line, flow, ends_with_line, is_cut: false, is_over: false }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CutAnswer>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if self.is_cut {
            return self.poll_cut(cx);
        }
        match self.answer.poll_frame(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(bytes) = frame.data_ref() {
                    self.call.add_bytes(bytes, self.answer.last_read());
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(failure))) => {
                self.is_cut = true;
                self.call.mark_broken(failure);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(None) => {
                self.is_over = true;
                self.call.mark_whole();
                Poll::Ready(None)
            }
        }
    }

    /// Breaks off, once the client has everything that had come: hyper drops what it has not written.
    fn poll_cut(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CutAnswer>>> {
        ready!(self.line.poll_client_caught_up(cx));
        self.is_over = true;
        self.reset_line();
        Poll::Ready(Some(Err(CutAnswer)))
    }

    fn reset_line(&self) {
        if self.ends_with_line {
            self.line.reset();
        }
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // Hyper does not ask for the end of a body whose length it knows.
        if !self.is_cut && self.answer.finish_reading() {
            self.call.mark_whole();
        } else {
            self.reset_line();
        }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = CutAnswer;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutAnswer>>> {
        match self.get_mut() {
            Self::Own(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Passed(passed) => {
                let poll = passed.poll(cx);
                if let Some(flow) = &passed.flow {
                    flow.frame_handed_out(matches!(poll, Poll::Ready(Some(Ok(_)))));
                }
                poll
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(bytes) => bytes.is_none(),
            Self::Passed(passed) => passed.is_over || passed.answer.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Passed(passed) => passed.answer.size_hint(),
        }
    }
}
