//! HTTP/1.1 by hand: one request at a time on one socket, the body handed out in place.
//!
//! Written for this one task because the general client cost as much again as the reading itself
//! (docs/design/005). Heads are parsed by `httparse`; chunked framing is undone where the bytes lie,
//! so no event is copied between the socket's buffer and the event parser.

use std::future::poll_fn;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use goodput_model::Stamps;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::answer::clip_bytes;
use crate::framing::BodyFraming;
use crate::head::{AnswerHead, TransportError};
use crate::socket::Socket;
use crate::turn::ReadBudget;

/// Room for reads. Bodies pass through it in pieces; only a head must fit as a whole.
const BUFFER: usize = 8 << 10;

/// Largest head accepted.
const HEAD_LIMIT: usize = 256 << 10;

/// Most header lines accepted.
const HEADER_LINES: usize = 128;

/// One connection.
pub(crate) struct Http1Connection {
    socket: Socket,
    buffer: Vec<u8>,
    /// The part of the buffer that was read and not yet taken.
    unread: Range<usize>,
    body: BodyFraming,
    /// Whether the connection outlives the answer.
    keeps_alive: bool,
    turn: ReadBudget,
}

impl Http1Connection {
    pub(crate) fn new(socket: Socket) -> Self {
        Self {
            socket,
            buffer: vec![0; BUFFER],
            unread: 0..0,
            body: BodyFraming::Done,
            keeps_alive: true,
            turn: ReadBudget::default(),
        }
    }

    /// The socket beneath.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Writes a request and reads the head of its answer.
    pub(crate) async fn request(
        &mut self,
        request: &[u8],
        stamps: &mut Stamps,
    ) -> Result<AnswerHead, TransportError> {
        self.socket.stamps().expect_request();
        let written = self.write_request(request).await;
        stamps.sent_first = self.socket.stamps().first_write.get();
        stamps.sent_last = self.socket.stamps().last_write.get();
        // A server that answered before it had everything will not take another request.
        self.keeps_alive = written?;
        loop {
            if let Some(head) = self.take_head()? {
                return Ok(head);
            }
            if self.read_more().await? == 0 {
                let began = !self.unread.is_empty();
                return Err(if began {
                    TransportError::cut_off()
                } else {
                    TransportError::closed_early()
                });
            }
        }
    }

    /// The next bytes of the body; `None` at its end.
    pub(crate) async fn next_data(&mut self) -> Result<Option<&[u8]>, TransportError> {
        loop {
            if let Some(piece) = self.take_piece()? {
                return Ok(Some(&self.buffer[piece]));
            }
            if self.body == BodyFraming::Done {
                return Ok(None);
            }
            if self.read_more().await? == 0 {
                if self.body == BodyFraming::ToEnd {
                    self.body = BodyFraming::Done;
                    return Ok(None);
                }
                return Err(TransportError::cut_off());
            }
        }
    }

    /// Whether another request can be sent. Looks at the socket: the server may have closed it.
    pub(crate) fn is_ready(&mut self) -> bool {
        if self.body != BodyFraming::Done || !self.keeps_alive || !self.unread.is_empty() {
            return false;
        }
        self.turn = ReadBudget::default();
        // Anything to read now is the end, or unexpected bytes.
        self.poll_read(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// Writes all of `bytes`, unless an answer comes first. Whether all was written.
    async fn write_request(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        let mut rest = bytes;
        poll_fn(|cx| {
            while !rest.is_empty() {
                match Pin::new(&mut self.socket).poll_write(cx, rest) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(TransportError::closed_early())),
                    Poll::Ready(Ok(n)) => rest = &rest[n..],
                    Poll::Ready(Err(error)) => {
                        return Poll::Ready(Err(TransportError::from_io(&error, false)));
                    }
                    Poll::Pending => {
                        let read = ready!(self.poll_read(cx));
                        return Poll::Ready(read.map(|_| false));
                    }
                }
            }
            // Under TLS the last record may still be on its way to the socket.
            let flushed = ready!(Pin::new(&mut self.socket).poll_flush(cx));
            Poll::Ready(
                flushed.map(|()| true).map_err(|error| TransportError::from_io(&error, false)),
            )
        })
        .await
    }

    async fn read_more(&mut self) -> Result<usize, TransportError> {
        poll_fn(|cx| self.poll_read(cx)).await
    }

    /// Reads once, behind what is still unread.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, TransportError>> {
        if self.unread.is_empty() {
            self.unread = 0..0;
        } else if self.unread.end == self.buffer.len() {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
            if self.unread.end == self.buffer.len() {
                if self.buffer.len() >= HEAD_LIMIT {
                    return Poll::Ready(Err(TransportError::not_http(
                        "the response headers are too large",
                    )));
                }
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        ready!(self.turn.poll(cx));
        let mut room = ReadBuf::new(&mut self.buffer[self.unread.end..]);
        let polled = Pin::new(&mut self.socket).poll_read(cx, &mut room);
        let came = room.filled().len();
        self.turn.note_read(polled.is_ready().then_some(came));
        let outcome = ready!(polled);
        self.unread.end += came;
        let began = !self.unread.is_empty();
        Poll::Ready(outcome.map(|()| came).map_err(|error| TransportError::from_io(&error, began)))
    }

    /// Takes a whole head from the buffer, if it is there. Interim answers are passed over.
    fn take_head(&mut self) -> Result<Option<AnswerHead>, TransportError> {
        loop {
            let mut lines = [httparse::EMPTY_HEADER; HEADER_LINES];
            let mut response = httparse::Response::new(&mut lines);
            let bytes = &self.buffer[self.unread.clone()];
            let bad = |error: httparse::Error| {
                TransportError::not_http(&format!("{error}: {}", clip_bytes(bytes)))
            };
            let httparse::Status::Complete(length) = response.parse(bytes).map_err(bad)? else {
                return Ok(None);
            };
            let status = response.code.unwrap_or(0);
            let head = AnswerHead::new(status, response.headers);
            let (framing, keeps_alive) =
                BodyFraming::from_head(status, &response).map_err(TransportError::not_http)?;
            self.unread.start += length;
            if (100..200).contains(&status) && status != 101 {
                continue;
            }
            self.body = framing;
            self.keeps_alive &= keeps_alive;
            return Ok(Some(head));
        }
    }

    /// Takes the next piece of the body from the buffer; `None` when more must be read first, or
    /// at the end.
    fn take_piece(&mut self) -> Result<Option<Range<usize>>, TransportError> {
        let start = self.unread.start;
        let taken = self
            .body
            .take_framed(&self.buffer[self.unread.clone()])
            .map_err(TransportError::not_http)?;
        self.unread.start += taken.used;
        Ok(taken.piece.map(|piece| start + piece.start..start + piece.end))
    }
}
