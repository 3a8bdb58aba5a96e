//! One connection as the faults need it: hyper writes and reads through it, and we can break it,
//! close it when idle, and know how long its client has not been reading.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use goodput_clock::now;
use goodput_model::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connection.
pub(crate) struct MockConnection {
    stream: TcpStream,
    /// Its number, counted from the server's start.
    pub(crate) number: u64,
    /// Requests that have begun on it.
    pub(crate) requests: Cell<u32>,
    /// Requests in flight.
    under_way: Cell<u32>,
    /// Since when it has had nothing to do.
    idle_since: Cell<Nanos>,
    is_broken: Cell<bool>,
    /// Streams of HTTP/2 share it.
    pub(crate) is_shared: Cell<bool>,
    /// The socket is full: its client does not read.
    is_blocked: Cell<bool>,
    /// When it last took bytes again after having been full.
    unblocked: Cell<Nanos>,
}

impl MockConnection {
    pub(crate) fn new(stream: TcpStream, number: u64) -> Rc<Self> {
        Rc::new(Self {
            stream,
            number,
            requests: Cell::new(0),
            under_way: Cell::new(0),
            idle_since: Cell::new(now()),
            is_broken: Cell::new(false),
            is_shared: Cell::new(false),
            is_blocked: Cell::new(false),
            unblocked: Cell::new(Nanos::ZERO),
        })
    }

    /// Breaks the connection: the client gets a reset, and hyper an error. A stream of HTTP/2 is
    /// reset by its own error, and the others go on.
    pub(crate) fn reset(&self) {
        if self.is_shared.get() {
            return;
        }
        self.is_broken.set(true);
        // Closing with a linger time of zero sends a reset in place of an orderly end.
        let _ = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
    }

    /// Writes past HTTP. A full socket takes nothing, which is as well.
    pub(crate) fn write_raw(&self, bytes: &[u8]) {
        let _ = self.stream.try_write(bytes);
    }

    /// Ends the connection; hyper finds it closed by the client.
    pub(crate) fn close(&self) {
        let _ = rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Both);
    }

    /// Whether the client has closed its side. Hyper sees that for itself unless bytes came after
    /// the request, another one or a stray line end, which it does not look behind.
    pub(crate) fn is_gone(&self) -> bool {
        let mut looked = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let found = rustix::event::poll(&mut looked, Some(&Timespec::default()));
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        found.is_ok() && looked[0].revents().intersects(gone)
    }

    /// Reads and forgets what still comes after the last answer, until the client ends too. A
    /// connection that is closed with bytes unread is reset, and a client that is still sending
    /// then may never see why its request was refused.
    pub(crate) async fn drain_rest(&self) {
        if self.is_broken.get() {
            return;
        }
        let _ = rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Write);
        // Most clients have ended and send nothing: only those that do are worth the memory.
        let mut forgotten = vec![0; 64];
        while self.stream.readable().await.is_ok() {
            match self.stream.try_read(&mut forgotten) {
                Ok(0) => return,
                Ok(_) => forgotten.resize(1 << 16, 0),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// A request has begun; it ends with the guard.
    pub(crate) fn begin_request(self: &Rc<Self>) -> RequestInFlight {
        self.requests.set(self.requests.get().saturating_add(1));
        self.under_way.set(self.under_way.get() + 1);
        RequestInFlight(Rc::clone(self))
    }

    /// Since when it has been without a request, if it is.
    pub(crate) fn idle_since(&self) -> Option<Nanos> {
        (self.under_way.get() == 0).then(|| self.idle_since.get())
    }

    /// When bytes could leave that were due at `instant`: not while the client did not read.
    pub(crate) fn writable_since(&self, instant: Nanos) -> Nanos {
        if self.is_blocked.get() { now() } else { instant.max(self.unblocked.get()) }
    }

    fn check_open(&self) -> io::Result<()> {
        if self.is_broken.get() { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
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
                self.is_blocked.set(true);
                return Poll::Pending;
            }
            match write(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => {
                    if self.is_blocked.take() {
                        self.unblocked.set(now());
                    }
                    return Poll::Ready(outcome);
                }
            }
        }
    }
}

/// A request in flight on a connection.
pub(crate) struct RequestInFlight(Rc<MockConnection>);

impl RequestInFlight {
    pub(crate) fn line(&self) -> &Rc<MockConnection> {
        &self.0
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        self.0.under_way.set(self.0.under_way.get() - 1);
        self.0.idle_since.set(now());
    }
}

/// The line as hyper sees it.
pub(crate) struct MockConnectionIo(pub(crate) Rc<MockConnection>);

impl AsyncRead for MockConnectionIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            self.0.check_open()?;
            ready!(self.0.stream.poll_read_ready(cx))?;
            match self.0.stream.try_read(buffer.initialize_unfilled()) {
                Ok(read) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for MockConnectionIo {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write_with(cx, |stream| stream.try_write(bytes))
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
