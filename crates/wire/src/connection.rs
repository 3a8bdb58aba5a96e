//! One connection: opened with stamps, carrying one exchange at a time (HTTP/1.1) or many (HTTP/2).

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use goodput_clock::now;
use goodput_model::{Connect, Failure, Http, Nanos, Span, Stamps};
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::endpoint::Endpoint;
use crate::fault;
use crate::socket::{Socket, SocketStamps, StampedTcp};

/// Streams put on one HTTP/2 connection before another is opened: the protocol's initial limit.
/// Beyond it requests would queue inside the client, unseen.
const HTTP2_STREAMS: usize = 100;

/// An open connection.
pub(crate) struct Connection {
    pub(crate) id: u64,
    pub(crate) stamps: Rc<SocketStamps>,
    protocol: Protocol,
}

enum Protocol {
    Http1 {
        sender: http1::SendRequest<SendBody>,
        /// Reads and writes the socket. Polled by the task of the request itself, so that nothing
        /// stands between a read and the task that wants it.
        driver: Driver,
    },
    Http2 {
        sender: http2::SendRequest<SendBody>,
        /// Streams in use, over all handles of this connection.
        streams: Rc<Streams>,
        /// The stream that this handle stands for; the pool's own handle has none.
        _stream: Option<StreamSlot>,
    },
}

/// `None` once the connection has ended.
type Driver = Option<Pin<Box<http1::Connection<TokioIo<Socket>, SendBody>>>>;

/// The streams of a multiplexed connection.
struct Streams {
    in_use: Cell<usize>,
    /// As many as the server allows, once its settings have come, and no more than we like.
    limit: Cell<usize>,
}

/// One stream of a multiplexed connection, given back when dropped.
struct StreamSlot(Rc<Streams>);

impl StreamSlot {
    fn take(streams: &Rc<Streams>) -> Option<Self> {
        (streams.in_use.get() < streams.limit.get()).then(|| {
            streams.in_use.set(streams.in_use.get() + 1);
            Self(Rc::clone(streams))
        })
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        self.0.in_use.set(self.0.in_use.get() - 1);
    }
}

impl Connection {
    /// Opens a connection, noting its steps.
    pub(crate) async fn open(endpoint: &Endpoint, id: u64) -> Result<(Self, Connect), Failure> {
        let start = now();
        let tcp = dial(&endpoint.addresses).await.map_err(|error| fault::connecting(&error))?;
        let connected = Span { start, end: now() };
        let stamps = Rc::new(SocketStamps::default());
        let tcp = StampedTcp::new(tcp, Rc::clone(&stamps));
        let (socket, tls) = match &endpoint.tls {
            None => (Socket::plain(tcp), None),
            Some(tls) => {
                let stream = TlsConnector::from(std::sync::Arc::clone(&tls.config))
                    .connect(tls.name.clone(), tcp)
                    .await
                    .map_err(|error| fault::handshaking(&error))?;
                let tls = Span { start: connected.end, end: now() };
                (Socket::tls(stream), Some(tls))
            }
        };
        let protocol = Protocol::start(endpoint.http, socket)
            .await
            .map_err(|error| fault::before_answer(&error, goodput_model::Stage::Connect, false))?;
        Ok((Self { id, stamps, protocol }, Connect { tcp: connected, tls }))
    }

    /// Sends a request and waits for status and headers, noting when the request was written.
    pub(crate) async fn request(
        &mut self,
        request: Request<SendBody>,
        stamps: &mut Stamps,
    ) -> Result<Response<Incoming>, hyper::Error> {
        let handed_over = Rc::clone(&request.body().handed_over);
        match &mut self.protocol {
            Protocol::Http1 { sender, driver } => {
                self.stamps.expect_request();
                let mut response = pin!(sender.send_request(request));
                poll_fn(|cx| {
                    drive(driver, cx);
                    let poll = response.as_mut().poll(cx);
                    stamps.sent_first = self.stamps.first_write.get();
                    stamps.sent_last = self.stamps.last_write.get();
                    poll
                })
                .await
            }
            Protocol::Http2 { sender, .. } => {
                sender.ready().await?;
                let mut response = pin!(sender.send_request(request));
                poll_fn(|cx| {
                    let poll = response.as_mut().poll(cx);
                    // Streams share the socket: what can be told apart is the hand-over.
                    stamps.sent_first = handed_over.get();
                    stamps.sent_last = handed_over.get();
                    poll
                })
                .await
            }
        }
    }

    /// The next bytes of the body; `None` at its end.
    pub(crate) async fn data(
        &mut self,
        body: &mut Incoming,
    ) -> Option<Result<Bytes, hyper::Error>> {
        loop {
            let frame = match &mut self.protocol {
                Protocol::Http1 { driver, .. } => {
                    poll_fn(|cx| match Pin::new(&mut *body).poll_frame(cx) {
                        Poll::Pending => {
                            drive(driver, cx);
                            Pin::new(&mut *body).poll_frame(cx)
                        }
                        ready @ Poll::Ready(_) => ready,
                    })
                    .await
                }
                Protocol::Http2 { .. } => poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await,
            };
            match frame? {
                Err(error) => return Some(Err(error)),
                // Trailers carry no token.
                Ok(frame) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Some(Ok(bytes));
                    }
                }
            }
        }
    }

    /// Whether another request can be sent now. Looks at the socket: the server may have closed it.
    pub(crate) fn is_ready(&mut self) -> bool {
        match &mut self.protocol {
            Protocol::Http1 { sender, driver } => {
                drive(driver, &mut Context::from_waker(Waker::noop()));
                driver.is_some() && sender.is_ready()
            }
            Protocol::Http2 { sender, .. } => !sender.is_closed(),
        }
    }

    /// Whether several exchanges share it.
    pub(crate) fn is_multiplexed(&self) -> bool {
        matches!(self.protocol, Protocol::Http2 { .. })
    }

    /// Another handle to a multiplexed connection, if it has a stream to spare.
    pub(crate) fn share(&self) -> Option<Self> {
        let Protocol::Http2 { sender, streams, .. } = &self.protocol else { return None };
        let slot = StreamSlot::take(streams)?;
        let protocol = Protocol::Http2 {
            sender: sender.clone(),
            streams: Rc::clone(streams),
            _stream: Some(slot),
        };
        Some(Self { id: self.id, stamps: Rc::clone(&self.stamps), protocol })
    }
}

impl Protocol {
    async fn start(http: Http, socket: Socket) -> Result<Self, hyper::Error> {
        let io = TokioIo::new(socket);
        Ok(match http {
            Http::Http1 => {
                let (sender, driver) = http1::handshake(io).await?;
                Self::Http1 { sender, driver: Some(Box::pin(driver)) }
            }
            Http::Http2 => {
                let (sender, mut driver) = http2::Builder::new(LocalTasks).handshake(io).await?;
                let limit = Cell::new(HTTP2_STREAMS);
                let streams = Rc::new(Streams { in_use: Cell::new(0), limit });
                let watched = Rc::clone(&streams);
                tokio::task::spawn_local(poll_fn(move |cx| {
                    let poll = Pin::new(&mut driver).poll(cx);
                    watched.limit.set(driver.current_max_send_streams().min(HTTP2_STREAMS));
                    poll
                }));
                Self::Http2 { sender, streams, _stream: None }
            }
        })
    }
}

/// Polls the driver of an HTTP/1.1 connection; it is dropped once the connection has ended.
fn drive(driver: &mut Driver, cx: &mut Context<'_>) {
    if let Some(running) = driver
        && running.as_mut().poll(cx).is_ready()
    {
        *driver = None;
    }
}

/// Longest wait for one address: another may answer.
const DIAL_LIMIT: Duration = Duration::from_secs(5);

/// Tries the addresses in order; the error is that of the first, which is the preferred one.
pub(crate) async fn dial(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut first = None;
    for address in addresses {
        let attempt = timeout(DIAL_LIMIT, TcpStream::connect(address)).await;
        match attempt.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(stream) => {
                // Head and body in separate small writes would meet Nagle and a delayed ACK: 40 ms.
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => drop(first.get_or_insert(error)),
        }
    }
    Err(first.unwrap_or_else(|| io::Error::other("the name has no address")))
}

/// Runs HTTP/2 connection tasks on the worker's own thread.
#[derive(Clone)]
struct LocalTasks;

impl<F: Future + 'static> hyper::rt::Executor<F> for LocalTasks {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move {
            future.await;
        });
    }
}

/// A request body in one piece that notes when it was handed to the protocol.
pub(crate) struct SendBody {
    bytes: Option<Bytes>,
    handed_over: Rc<Cell<Option<Nanos>>>,
}

impl SendBody {
    pub(crate) fn new(bytes: Bytes) -> Self {
        let bytes = Some(bytes).filter(|bytes| !bytes.is_empty());
        Self { bytes, handed_over: Rc::default() }
    }
}

impl Body for SendBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = self.bytes.take();
        if bytes.is_some() {
            self.handed_over.set(Some(now()));
        }
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, Bytes::len) as u64)
    }
}
