//! One connection: opened with stamps, carrying one exchange at a time (HTTP/1.1) or many (HTTP/2).

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use goodput_clock::now;
use goodput_model::{
    Connect, Failure, FailureStage, Http, Nanos, Stamps, TcpFacts, TimeSpan, TraceIds,
};
use http::{HeaderValue, Method};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::endpoint::{Endpoint, REQUEST_ID, SessionTag, TRACEPARENT};
use crate::fault;
use crate::head::{AnswerHead, TransportError};
use crate::http1::Http1Connection;
use crate::socket::{Socket, SocketStamps, StampedTcp};
use crate::tcp_info::TcpWatch;
use crate::tls::TlsSettings;
use crate::turn::ReadBudget;

/// Streams put on one HTTP/2 connection before another is opened: the protocol's initial limit.
/// Beyond it requests would queue inside the client, unseen.
const HTTP2_STREAMS: usize = 100;

/// An open connection.
pub(crate) struct HttpConnection {
    pub(crate) id: u64,
    pub(crate) stamps: Rc<SocketStamps>,
    tcp: Rc<TcpWatch>,
    protocol: HttpVersion,
}

enum HttpVersion {
    Http1(Box<Http1Connection>),
    Http2 {
        sender: http2::SendRequest<SendBody>,
        /// A descriptor of the socket that hyper owns, to ask TCP about it.
        socket: Option<Rc<OwnedFd>>,
        /// Streams in use, over all handles of this connection.
        streams: Rc<StreamCount>,
        /// The stream that this handle stands for; the pool's own handle has none.
        _stream: Option<StreamSlot>,
        /// The answer being read.
        body: Option<Incoming>,
        turn: ReadBudget,
    },
}

/// A piece of a body, where it lies or in a buffer of its own.
pub(crate) enum BodyChunk<'a> {
    InPlace(&'a [u8]),
    Owned(Bytes),
}

impl std::ops::Deref for BodyChunk<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::InPlace(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// The streams of a multiplexed connection.
struct StreamCount {
    in_use: Cell<usize>,
    /// As many as the server allows, once its settings have come, and no more than we like.
    limit: Cell<usize>,
}

/// One stream of a multiplexed connection, given back when dropped.
struct StreamSlot(Rc<StreamCount>);

impl StreamSlot {
    fn acquire(streams: &Rc<StreamCount>) -> Option<Self> {
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

impl HttpConnection {
    /// Opens a connection, noting its steps.
    pub(crate) async fn open(endpoint: &Endpoint, id: u64) -> Result<(Self, Connect), Failure> {
        let (socket, connect) =
            open_socket(&endpoint.addresses, endpoint.tls.as_deref(), WAITS).await?;
        let stamps = socket.shared_stamps();
        let protocol = match endpoint.http {
            Http::Http1 => HttpVersion::Http1(Box::new(Http1Connection::new(socket))),
            Http::Http2 => HttpVersion::start_http2(socket).await.map_err(|error| {
                TransportError::from_http2(&error, false).into_failure(FailureStage::Connect)
            })?,
        };
        let tcp = Rc::default();
        Ok((Self { id, stamps, tcp, protocol }, connect))
    }

    /// Sends a request and waits for status and headers, noting when the request was written.
    pub(crate) async fn request(
        &mut self,
        request: OutgoingRequest<'_>,
        stamps: &mut Stamps,
    ) -> Result<AnswerHead, TransportError> {
        match &mut self.protocol {
            HttpVersion::Http1(connection) => connection.request(&request.to_http1(), stamps).await,
            HttpVersion::Http2 { sender, body, .. } => {
                let request = request.into_http2();
                let handed_over = Rc::clone(&request.body().handed_over);
                sender.ready().await.map_err(|error| TransportError::from_http2(&error, false))?;
                let mut response = pin!(sender.send_request(request));
                let response = poll_fn(|cx| {
                    let poll = response.as_mut().poll(cx);
                    // Streams share the socket: what can be told apart is the hand-over.
                    stamps.sent_first = handed_over.get();
                    stamps.sent_last = handed_over.get();
                    poll
                })
                .await
                .map_err(|error| TransportError::from_http2(&error, false))?;
                let (parts, incoming) = response.into_parts();
                *body = Some(incoming);
                let headers =
                    parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
                Ok(AnswerHead::from_pairs(parts.status.as_u16(), headers))
            }
        }
    }

    /// The next bytes of the body; `None` at its end.
    pub(crate) async fn next_data(&mut self) -> Result<Option<BodyChunk<'_>>, TransportError> {
        match &mut self.protocol {
            HttpVersion::Http1(connection) => {
                Ok(connection.next_data().await?.map(BodyChunk::InPlace))
            }
            HttpVersion::Http2 { body: None, .. } => Ok(None),
            HttpVersion::Http2 { body: Some(body), turn, .. } => loop {
                let frame = poll_fn(|cx| {
                    ready!(turn.poll(cx));
                    let polled = Pin::new(&mut *body).poll_frame(cx);
                    turn.note_read(polled.is_ready().then_some(0));
                    polled
                });
                match frame
                    .await
                    .transpose()
                    .map_err(|error| TransportError::from_http2(&error, true))?
                {
                    None => return Ok(None),
                    // Trailers carry no token.
                    Some(frame) => {
                        if let Ok(bytes) = frame.into_data() {
                            turn.note_read(Some(bytes.len()));
                            return Ok(Some(BodyChunk::Owned(bytes)));
                        }
                    }
                }
            },
        }
    }

    /// Whether another request can be sent now. Looks at the socket: the server may have closed it.
    pub(crate) fn is_ready(&mut self) -> bool {
        match &mut self.protocol {
            HttpVersion::Http1(connection) => connection.is_ready(),
            HttpVersion::Http2 { sender, .. } => !sender.is_closed(),
        }
    }

    /// What TCP did since this was last asked. On a shared connection that is what it did for all.
    pub(crate) fn tcp_facts(&self) -> Option<TcpFacts> {
        match &self.protocol {
            HttpVersion::Http1(connection) => self.tcp.since_last(connection.as_fd()),
            HttpVersion::Http2 { socket, .. } => self.tcp.since_last(socket.as_ref()?.as_fd()),
        }
    }

    /// Another handle to a multiplexed connection, if it has a stream to spare.
    pub(crate) fn new_handle(&self) -> Option<Self> {
        let HttpVersion::Http2 { sender, socket, streams, .. } = &self.protocol else {
            return None;
        };
        let slot = StreamSlot::acquire(streams)?;
        let protocol = HttpVersion::Http2 {
            sender: sender.clone(),
            socket: socket.clone(),
            streams: Rc::clone(streams),
            _stream: Some(slot),
            body: None,
            turn: ReadBudget::default(),
        };
        let (stamps, tcp) = (Rc::clone(&self.stamps), Rc::clone(&self.tcp));
        Some(Self { id: self.id, stamps, tcp, protocol })
    }
}

impl HttpVersion {
    async fn start_http2(socket: Socket) -> Result<Self, hyper::Error> {
        let descriptor = socket.as_fd().try_clone_to_owned().ok().map(Rc::new);
        let io = TokioIo::new(socket);
        let (sender, mut driver) = http2::Builder::new(WorkerTasks).handshake(io).await?;
        let limit = Cell::new(HTTP2_STREAMS);
        let streams = Rc::new(StreamCount { in_use: Cell::new(0), limit });
        let watched = Rc::clone(&streams);
        tokio::task::spawn_local(poll_fn(move |cx| {
            let poll = Pin::new(&mut driver).poll(cx);
            watched.limit.set(driver.current_max_send_streams().min(HTTP2_STREAMS));
            poll
        }));
        let turn = ReadBudget::default();
        Ok(Self::Http2 { sender, socket: descriptor, streams, _stream: None, body: None, turn })
    }
}

/// What to ask, for either protocol.
pub(crate) struct OutgoingRequest<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) body: Bytes,
    /// Sent as `x-request-id`.
    pub(crate) id: Option<&'a str>,
    /// What it shares with the other requests of its session. It wins over the user's headers.
    pub(crate) session: Option<&'a SessionTag>,
    /// Sent as `traceparent`, unless the user sends one.
    pub(crate) trace: Option<TraceIds>,
}

impl OutgoingRequest<'_> {
    /// What is sent as `traceparent`: two of them would be none.
    fn traceparent(&self) -> Option<String> {
        let ids = self.trace.filter(|_| !self.endpoint.headers.contains_key(TRACEPARENT))?;
        Some(ids.to_string())
    }

    /// Head and body in one piece, so that they leave in one write.
    fn to_http1(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(512 + self.body.len());
        bytes.extend_from_slice(self.method.as_str().as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(self.path.as_bytes());
        bytes.extend_from_slice(b" HTTP/1.1\r\n");
        let session = self.session.map(|tag| (&tag.name, &tag.value));
        let is_said = |name| session.is_some_and(|(said, _)| said == name);
        let others = self.endpoint.headers.iter().filter(|(name, _)| !is_said(*name));
        for (name, value) in others.chain(session) {
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        if let Some(id) = self.id {
            bytes.extend_from_slice(format!("{REQUEST_ID}: {id}\r\n").as_bytes());
        }
        if let Some(trace) = self.traceparent() {
            bytes.extend_from_slice(format!("{TRACEPARENT}: {trace}\r\n").as_bytes());
        }
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", self.body.len()).as_bytes());
        bytes.extend_from_slice(&self.body);
        bytes
    }

    fn into_http2(self) -> http::Request<SendBody> {
        let scheme = if self.endpoint.url.is_https { "https" } else { "http" };
        let uri = format!("{scheme}://{}{}", self.endpoint.url.authority, self.path);
        let trace = self.traceparent().and_then(|trace| HeaderValue::try_from(trace).ok());
        let mut request = http::Request::new(SendBody::new(self.body));
        *request.method_mut() = self.method;
        // invariant: scheme, authority and path were parsed from a valid URI.
        *request.uri_mut() = uri.parse().unwrap_or_default();
        *request.headers_mut() = self.endpoint.headers.clone();
        if let Some(id) = self.id.and_then(|id| HeaderValue::from_str(id).ok()) {
            request.headers_mut().insert(REQUEST_ID, id);
        }
        if let Some(trace) = trace {
            request.headers_mut().insert(TRACEPARENT, trace);
        }
        if let Some(tag) = self.session {
            request.headers_mut().insert(tag.name.clone(), tag.value.clone());
        }
        request
    }
}

/// A connected socket, under TLS where there is a name to check, noting the steps.
pub(crate) async fn open_socket(
    addresses: &[SocketAddr],
    tls: Option<&TlsSettings>,
    waits: Waits,
) -> Result<(Socket, Connect), Failure> {
    let start = now();
    let tcp =
        connect_any(addresses, waits).await.map_err(|error| fault::connect_failure(&error))?;
    let connected = TimeSpan { start, end: now() };
    let tcp = StampedTcp::new(tcp, Rc::new(SocketStamps::default()));
    let Some(tls) = tls else {
        return Ok((Socket::plain(tcp), Connect { tcp: connected, tls: None }));
    };
    let stream = TlsConnector::from(std::sync::Arc::clone(&tls.config))
        .connect(tls.name.clone(), tcp)
        .await
        .map_err(|error| fault::handshake_failure(&error))?;
    let tls = TimeSpan { start: connected.end, end: now() };
    Ok((Socket::tls(stream), Connect { tcp: connected, tls: Some(tls) }))
}

/// Longest waits for an address: for one with others behind it, and for the last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    pub(crate) each: Duration,
    pub(crate) last: Duration,
}

/// Requests without a time limit.
pub(crate) const WAITS: Waits =
    Waits { each: Duration::from_secs(5), last: Duration::from_secs(5) };

/// Tries the addresses in order; the error is that of the first, which is the preferred one.
pub(crate) async fn connect_any(addresses: &[SocketAddr], waits: Waits) -> io::Result<TcpStream> {
    let mut first = None;
    for (place, address) in addresses.iter().enumerate() {
        let is_last = place + 1 == addresses.len();
        let limit = if is_last { waits.last } else { waits.each };
        let attempt = timeout(limit, TcpStream::connect(address)).await;
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
struct WorkerTasks;

impl<F: Future + 'static> hyper::rt::Executor<F> for WorkerTasks {
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

#[cfg(test)]
mod tests {
    use goodput_model::Header;

    use super::*;
    use crate::endpoint::EndpointSettings;

    fn endpoint(headers: Vec<Header>) -> Endpoint {
        Endpoint::new(&EndpointSettings {
            headers,
            ..EndpointSettings::new("http://127.0.0.1:1".parse().unwrap())
        })
        .unwrap()
    }

    #[test]
    fn a_trace_is_said_once_in_both_protocols_and_the_users_own_wins() {
        let ours = "00-000000000000000000000000000000ab-00000000000000cd-01";
        let said = |endpoint: &Endpoint, trace| {
            let request = || OutgoingRequest {
                endpoint,
                method: Method::POST,
                path: "/",
                body: Bytes::new(),
                id: None,
                session: None,
                trace,
            };
            let text = String::from_utf8(request().to_http1()).unwrap();
            let lines = text.lines().filter_map(|line| line.strip_prefix("traceparent: "));
            let one: Vec<String> = lines.map(str::to_owned).collect();
            let sent = request().into_http2();
            let values = sent.headers().get_all("traceparent").iter();
            let two: Vec<String> = values.map(|v| v.to_str().unwrap().to_owned()).collect();
            assert_eq!(one, two);
            one
        };
        let ids = Some(TraceIds { trace: 0xab, span: 0xcd });
        assert_eq!(said(&endpoint(Vec::new()), ids), [ours]);
        assert_eq!(said(&endpoint(Vec::new()), None), [""; 0]);
        let own = Header { name: "Traceparent".into(), value: "the user's".into() };
        assert_eq!(said(&endpoint(vec![own]), ids), ["the user's"]);
    }

    #[test]
    fn a_session_is_said_once_in_both_protocols() {
        let header = Header { name: "X-Session".into(), value: "the user's".into() };
        let endpoint = endpoint(vec![header]);
        let tag = endpoint.session_tag(&"x-session".parse().unwrap(), 7).unwrap();
        let run = endpoint.request_id(3).unwrap();
        let expected = format!("{}-s7", run.strip_suffix("-3").unwrap());
        let request = |session| OutgoingRequest {
            endpoint: &endpoint,
            method: Method::POST,
            path: "/",
            body: Bytes::new(),
            id: Some(&run),
            session,
            trace: None,
        };
        let said = |session| {
            let text = String::from_utf8(request(session).to_http1()).unwrap();
            let lines = text.lines().filter_map(|line| line.strip_prefix("x-session: "));
            let one: Vec<String> = lines.map(str::to_owned).collect();
            let sent = request(session).into_http2();
            let values = sent.headers().get_all("x-session").iter();
            let two: Vec<String> = values.map(|v| v.to_str().unwrap().to_owned()).collect();
            (one, two)
        };
        assert_eq!(said(Some(&tag)), (vec![expected.clone()], vec![expected]));
        let users = || vec!["the user's".to_owned()];
        assert_eq!(said(None), (users(), users()));
    }
}
