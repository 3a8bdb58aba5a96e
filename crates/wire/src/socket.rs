//! [`Socket`]: a TCP stream, plain or under TLS, that stamps every read and write.
//!
//! The stamp sits below TLS: the kernel's where it gives one (`arrival.rs`), else the return of the
//! socket call. Neither decryption nor HTTP framing nor parsing is inside it.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use goodput_clock::now;
use goodput_model::Nanos;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::arrival::{ReadStamp, enable_kernel_stamps, read_with_stamp};

/// What the socket has seen. Shared between the connection and the reader of its answers; both
/// live on one thread.
#[derive(Debug, Default)]
pub(crate) struct SocketStamps {
    /// When the bytes of the latest read came, and how many arrivals there were.
    pub(crate) last_read: Cell<ReadStamp>,
    pub(crate) reads: Cell<u64>,
    /// When the first write since [`SocketStamps::expect_request`] was handed to the socket.
    pub(crate) first_write: Cell<Option<Nanos>>,
    /// When the latest write had been taken.
    pub(crate) last_write: Cell<Option<Nanos>>,
}

impl SocketStamps {
    /// A request is about to be written.
    pub(crate) fn expect_request(&self) {
        self.first_write.set(None);
        self.last_write.set(None);
    }
}

/// A [`TcpStream`] with stamps.
pub(crate) struct StampedTcp {
    tcp: TcpStream,
    stamps: Rc<SocketStamps>,
    /// Most bytes of the next read: room for two events like the last one. A read has one stamp, that
    /// of its last bytes, so after a stall small reads tell more than one that takes everything.
    most: Cell<usize>,
}

/// Least room of a read; the most doubles while reads fill it.
const LEAST_READ: usize = 512;
const MOST_READ: usize = 64 << 10;

impl StampedTcp {
    pub(crate) fn new(tcp: TcpStream, stamps: Rc<SocketStamps>) -> Self {
        enable_kernel_stamps(tcp.as_fd());
        stamps.last_read.set(ReadStamp::by_read(now()));
        Self { tcp, stamps, most: Cell::new(LEAST_READ) }
    }

    /// Reads once, if there is something to read.
    fn try_read(&self, room: &mut [u8]) -> io::Result<usize> {
        let mut came = 0;
        let size = room.len().min(self.most.get());
        let room = &mut room[..size];
        let outcome = self.tcp.try_io(Interest::READABLE, || {
            let earlier = self.stamps.last_read.get();
            let (n, arrival) = read_with_stamp(self.tcp.as_fd(), room, &earlier)?;
            came = n;
            if n > 0 {
                let is_new = arrival.at != earlier.at;
                self.stamps.last_read.set(arrival);
                self.stamps.reads.set(self.stamps.reads.get() + u64::from(is_new));
            }
            // Less than asked for: the queue is empty, and saying so saves the call that would
            // find that out. Bytes that come later wake the task again.
            let is_drained = 0 < n && n < size;
            let next = if is_drained { 2 * n } else { 2 * size };
            self.most.set(next.clamp(LEAST_READ, MOST_READ));
            if is_drained { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(n) }
        });
        if came > 0 { Ok(came) } else { outcome }
    }

    fn note_write(&self, begin: Nanos) {
        if self.stamps.first_write.get().is_none() {
            self.stamps.first_write.set(Some(begin));
        }
        self.stamps.last_write.set(Some(now()));
    }
}

impl AsyncRead for StampedTcp {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.tcp.poll_read_ready(cx))?;
            // No more than will be read: what is made ready here is written to.
            let room = buffer.remaining().min(self.most.get());
            match self.try_read(buffer.initialize_unfilled_to(room)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(came) => {
                    buffer.advance(came);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for StampedTcp {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let begin = now();
        let written = ready!(Pin::new(&mut self.tcp).poll_write(cx, bytes));
        self.note_write(begin);
        Poll::Ready(ignore_cut_write(written, bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let begin = now();
        let written = ready!(Pin::new(&mut self.tcp).poll_write_vectored(cx, slices));
        self.note_write(begin);
        Poll::Ready(ignore_cut_write(written, slices.iter().map(|slice| slice.len()).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

/// A server may refuse a long request before it is all there, answer, and close. Its answer is then
/// still to be read, which an error of the write would prevent: the write is taken as done, and the
/// reading side finds out how the connection ended.
fn ignore_cut_write(written: io::Result<usize>, all: usize) -> io::Result<usize> {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    written.or_else(|error| match error.kind() {
        BrokenPipe | ConnectionReset => Ok(all),
        _ => Err(error),
    })
}

/// A connection to a server, plain or encrypted.
pub struct Socket {
    stream: SocketStream,
    stamps: Rc<SocketStamps>,
}

enum SocketStream {
    Plain(StampedTcp),
    Tls(Box<TlsStream<StampedTcp>>),
}

impl Socket {
    pub(crate) fn stamps(&self) -> &SocketStamps {
        &self.stamps
    }

    pub(crate) fn shared_stamps(&self) -> Rc<SocketStamps> {
        Rc::clone(&self.stamps)
    }

    /// The socket beneath.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            SocketStream::Plain(stream) => stream.tcp.as_fd(),
            SocketStream::Tls(stream) => stream.get_ref().0.tcp.as_fd(),
        }
    }

    pub(crate) fn plain(tcp: StampedTcp) -> Self {
        Self { stamps: Rc::clone(&tcp.stamps), stream: SocketStream::Plain(tcp) }
    }

    pub(crate) fn tls(tls: TlsStream<StampedTcp>) -> Self {
        Self {
            stamps: Rc::clone(&tls.get_ref().0.stamps),
            stream: SocketStream::Tls(Box::new(tls)),
        }
    }
}

/// Calls the same method on whichever stream it is.
macro_rules! either {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut $self.get_mut().stream {
            SocketStream::Plain(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            SocketStream::Tls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            SocketStream::Plain(stream) => stream.is_write_vectored(),
            SocketStream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_shutdown(cx))
    }
}
