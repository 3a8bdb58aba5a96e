//! [`Line`]: the connection of a client as the proxy needs it: it knows how long its client has been
//! silent or deaf, and can be ended from outside of hyper.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use goodput_clock::now;
use goodput_model::Nanos;
use rustix::net::RecvFlags;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;

use crate::proxy::flow::FlowTimer;
use crate::proxy::settings::Limits;

/// How long a connection may be open without a request.
const IDLE_TIME: Nanos = Nanos::from_millis(75_000);

/// How long a client may take to end an idle connection after it was asked to.
const PARTING: Nanos = Nanos::from_millis(1_000);

/// How long a connection may take for its first request, or for the rest of a head, before it may have
/// to make way.
const GRACE: Nanos = Nanos::from_millis(1_000);

/// How much a client may still send of an unwanted body.
const LINGER_BYTES: usize = 16 << 20;

/// How often half of a beginning is looked at again.
const PEEK_AGAIN: Duration = Duration::from_millis(5);

/// What a connection with a request in flight has; its requests share it.
pub(crate) type Seat = Rc<OwnedSemaphorePermit>;

/// A connection of a client.
pub(crate) struct Line {
    stream: TcpStream,
    /// Requests in flight.
    under_way: Cell<u32>,
    /// Whether there has been a request.
    has_asked: Cell<bool>,
    /// Requests may share it.
    is_shared: Cell<bool>,
    /// What its requests in flight share.
    seat: RefCell<Weak<OwnedSemaphorePermit>>,
    /// It was told to make way.
    makes_way: Cell<bool>,
    /// Since when it has had nothing to do.
    idle_since: Cell<Nanos>,
    /// When the first byte came that belongs to no request yet.
    head_since: Cell<Option<Nanos>>,
    last_read: Cell<Nanos>,
    /// Since when the client has taken nothing although there is something.
    deaf_since: Cell<Option<Nanos>>,
    /// The rest of a request was left unread.
    has_rest: Cell<bool>,
    is_broken: Cell<bool>,
    is_closed: Cell<bool>,
    /// Since when it has been asked to end after its requests in flight.
    leaving_since: Cell<Option<Nanos>>,
    waker: RefCell<Option<Waker>>,
    /// Those who wait until the client takes something.
    waiting: RefCell<Vec<Waker>>,
    /// Its streams, where it is of HTTP/2.
    flows: RefCell<Vec<Weak<FlowTimer>>>,
}

/// What is to be done about a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Nothing,
    /// It has had nothing to do for too long.
    Parting,
    /// Its client is too slow.
    Closing,
}

impl Line {
    pub(crate) fn new(stream: TcpStream) -> Rc<Self> {
        Rc::new(Self {
            stream,
            under_way: Cell::new(0),
            has_asked: Cell::new(false),
            is_shared: Cell::new(false),
            seat: RefCell::default(),
            makes_way: Cell::new(false),
            idle_since: Cell::new(now()),
            head_since: Cell::new(None),
            last_read: Cell::new(now()),
            deaf_since: Cell::new(None),
            has_rest: Cell::new(false),
            is_broken: Cell::new(false),
            is_closed: Cell::new(false),
            leaving_since: Cell::new(None),
            waker: RefCell::new(None),
            waiting: RefCell::default(),
            flows: RefCell::default(),
        })
    }

    /// A request has begun; it ends with the guard. Returns when its first byte came, too.
    pub(crate) fn begin_request(self: &Rc<Self>, is_shared: bool) -> (LineRequest, Nanos) {
        self.is_shared.set(is_shared);
        self.has_asked.set(true);
        self.under_way.set(self.under_way.get() + 1);
        let first = self.head_since.take();
        let arrived = first.filter(|_| !is_shared).unwrap_or(self.last_read.get());
        (LineRequest { line: Rc::clone(self), seat: None }, arrived)
    }

    /// Its seat, while it has a request in flight.
    pub(crate) fn current_permit(&self) -> Option<Seat> {
        self.seat.borrow().upgrade()
    }

    /// Gives it a seat.
    pub(crate) fn assign_permit(&self, permit: OwnedSemaphorePermit) -> Seat {
        let seat = Rc::new(permit);
        *self.seat.borrow_mut() = Rc::downgrade(&seat);
        seat
    }

    /// Since when it has had nothing to do, where it could make way for another: no request is under
    /// way, and nothing of an answer waits to be taken.
    pub(crate) fn idle_since(&self) -> Option<Nanos> {
        let is_busy = self.under_way.get() > 0 || self.deaf_since.get().is_some();
        let is_ending = self.is_closed.get() || self.leaving_since.get().is_some();
        (!is_busy && !is_ending).then(|| self.idle_since.get())
    }

    /// Ends it for another, which is what it returns; not where its client has just begun to ask.
    pub(crate) fn close_for_another(&self, present: Nanos) -> bool {
        // What a client of HTTP/2 has not taken of its last answer shows nowhere: it has time to.
        let has_head = self.has_asked.get() && !self.is_shared.get();
        if has_head && self.head_since.get().is_none() && self.has_bytes() {
            self.head_since.set(Some(present));
        }
        let begun = if has_head { self.head_since.get() } else { Some(self.idle_since.get()) };
        if begun.is_some_and(|begun| present - begun < GRACE) {
            return false;
        }
        if self.has_asked.get() {
            self.ask_to_end(present);
        } else {
            self.close();
        }
        self.makes_way.set(true);
        true
    }

    /// Whether it was told to make way.
    pub(crate) fn is_making_way(&self) -> bool {
        self.makes_way.get()
    }

    /// Whether something waits to be read.
    fn has_bytes(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        rustix::net::recv(&self.stream, &mut [0_u8; 1], flags).is_ok_and(|(n, _)| n > 0)
    }

    /// The handshake of TLS is over: none of its bytes belonged to a request.
    pub(crate) fn handshake_done(&self) {
        self.head_since.set(None);
    }

    /// Closes it where its client is too slow, which is what it returns, and asks it to end where its
    /// client has had nothing to ask for too long.
    pub(crate) fn close_if_slow(&self, limits: &Limits, present: Nanos) -> bool {
        let due = self.due_actions(limits, present);
        match (due, self.leaving_since.get()) {
            (Due::Nothing, _) => {}
            (Due::Parting, None) => self.ask_to_end(present),
            (Due::Parting, Some(since)) if present - since < PARTING => {}
            (Due::Parting, Some(_)) | (Due::Closing, _) => self.close(),
        }
        due == Due::Closing
    }

    /// Ends its streams whose client takes nothing; how many there were.
    pub(crate) fn end_stalled_streams(&self, limits: &Limits, present: Nanos) -> u64 {
        let mut deaf = 0;
        self.flows.borrow_mut().retain(|flow| {
            let Some(flow) = flow.upgrade() else { return false };
            deaf += u64::from(flow.end_if_stalled(limits.body_time.into(), present));
            true
        });
        deaf
    }

    /// A new stream.
    pub(crate) fn new_flow(&self) -> Rc<FlowTimer> {
        let flow = Rc::new(FlowTimer::default());
        self.flows.borrow_mut().push(Rc::downgrade(&flow));
        flow
    }

    fn due_actions(&self, limits: &Limits, present: Nanos) -> Due {
        let passed = |since: Nanos, limit: Nanos| present - since > limit;
        if self.deaf_since.get().is_some_and(|since| passed(since, limits.body_time.into())) {
            return Due::Closing;
        }
        if self.under_way.get() > 0 {
            return Due::Nothing;
        }
        let head_time = limits.head_time.into();
        // The first request must come soon: until then this may be a handshake that never ends. Frames
        // of HTTP/2 do not begin a request.
        let is_slow = self.head_since.get().filter(|_| !self.is_shared.get());
        let is_slow = is_slow.is_some_and(|since| passed(since, head_time));
        if is_slow || (!self.has_asked.get() && passed(self.idle_since.get(), head_time)) {
            Due::Closing
        } else if self.leaving_since.get().is_some() || passed(self.idle_since.get(), IDLE_TIME) {
            Due::Parting
        } else {
            Due::Nothing
        }
    }

    /// Whether it has been idle for this long, counted from when it was asked to end.
    pub(crate) fn is_idle_for(&self, limit: Nanos) -> bool {
        let since = self.leaving_since.get().unwrap_or_default().max(self.idle_since.get());
        self.under_way.get() == 0 && now() - since > limit
    }

    /// Asks it to end after its requests in flight.
    pub(crate) fn ask_to_end(&self, present: Nanos) {
        self.leaving_since.set(Some(present));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Runs what speaks HTTP on it to its end, and tells it when to leave.
    pub(crate) async fn serve_http<C: Future + Unpin>(
        &self,
        mut connection: C,
        leave: impl Fn(&mut C),
    ) {
        let mut is_told = false;
        // A connection that fails is the client's to notice.
        let _ = poll_fn(|cx| {
            if self.leaving_since.get().is_some() && !is_told {
                is_told = true;
                leave(&mut connection);
            }
            let mut kept = self.waker.borrow_mut();
            if !kept.as_ref().is_some_and(|kept| kept.will_wake(cx.waker())) {
                *kept = Some(cx.waker().clone());
            }
            drop(kept);
            Pin::new(&mut connection).poll(cx)
        })
        .await;
    }

    /// Whether the first bytes that come are these; they stay where they are.
    pub(crate) async fn peek_starts_with(&self, these: &[u8]) -> bool {
        let mut first = [0; 32];
        let first = &mut first[..these.len().min(32)];
        while !self.is_closed.get() && self.leaving_since.get().is_none() {
            match self.stream.peek(first).await {
                Ok(0) | Err(_) => return false,
                Ok(n) if n == these.len() => return first == these,
                Ok(n) if first[..n] != these[..n] => return false,
                // So far they are; the socket does not say when there are more than before.
                Ok(_) => sleep(PEEK_AGAIN).await,
            }
        }
        false
    }

    /// Ends the connection; hyper finds it closed by the client.
    pub(crate) fn close(&self) {
        self.is_closed.set(true);
        let _ = rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Both);
    }

    /// Breaks the connection: the client gets a reset, which no end of an answer looks like.
    pub(crate) fn reset(&self) {
        self.is_broken.set(true);
        let _ = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
    }

    /// Ready where its client leaves no bytes waiting that it could take. What waits for that is woken by
    /// the next write, which may be another task's.
    pub(crate) fn poll_client_caught_up(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.deaf_since.get().is_none() {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// The rest of a request will not be read.
    pub(crate) fn abandon_rest(&self) {
        self.has_rest.set(true);
    }

    /// Reads and forgets what still comes after the last answer, where a request was not read to its
    /// end. A connection that is closed with bytes unread is reset, and a client that is still sending
    /// would never see what it was answered.
    pub(crate) async fn drain_rest(&self) {
        if self.is_broken.get() || !self.has_rest.get() {
            return;
        }
        let _ = rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Write);
        let mut forgotten = vec![0; 16 << 10];
        let mut left = LINGER_BYTES;
        while left > 0 && self.stream.readable().await.is_ok() {
            match self.stream.try_read(&mut forgotten) {
                Ok(0) => return,
                Ok(n) => left = left.saturating_sub(n),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    fn check_open(&self) -> io::Result<()> {
        if self.is_broken.get() { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }

    fn note_bytes(&self) {
        let present = now();
        self.last_read.set(present);
        if self.under_way.get() == 0 && self.head_since.get().is_none() {
            self.head_since.set(Some(present));
        }
    }

    /// Tries a write until the socket has taken something or is full.
    fn poll_write_with(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        self.check_open()?;
        loop {
            if self.stream.poll_write_ready(cx)?.is_pending() {
                if self.deaf_since.get().is_none() {
                    self.deaf_since.set(Some(now()));
                }
                return Poll::Pending;
            }
            match write(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => {
                    self.deaf_since.set(None);
                    self.waiting.take().into_iter().for_each(Waker::wake);
                    return Poll::Ready(outcome);
                }
            }
        }
    }
}

/// A request in flight on a line.
pub(crate) struct LineRequest {
    line: Rc<Line>,
    seat: Option<Seat>,
}

impl LineRequest {
    /// It has this seat to its end.
    pub(crate) fn hold_permit(&mut self, seat: Seat) {
        self.seat = Some(seat);
    }
}

impl Drop for LineRequest {
    fn drop(&mut self) {
        self.line.under_way.set(self.line.under_way.get() - 1);
        self.line.idle_since.set(now());
    }
}

/// The line as hyper sees it.
pub(crate) struct LineIo(pub(crate) Rc<Line>);

impl AsyncRead for LineIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let line = &self.0;
        loop {
            line.check_open()?;
            ready!(line.stream.poll_read_ready(cx))?;
            match line.stream.try_read_buf(buffer) {
                Ok(_) => {
                    line.note_bytes();
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for LineIo {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write_with(cx, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write_with(cx, |stream| stream.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.0.is_broken.get() {
            let _ = rustix::net::shutdown(&self.0.stream, rustix::net::Shutdown::Write);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
