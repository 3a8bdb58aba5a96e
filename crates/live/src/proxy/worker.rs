//! A worker: one thread with its own runtime, its clients and its connections to the upstream.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::Duration;

use goodput_clock::now;
use goodput_model::Nanos;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::proxy::forward::{Forwarder, answer_request};
use crate::proxy::line::{Line, LineIo};
use crate::proxy::seats::RequestPermits;
use crate::proxy::shared::Shared;
use crate::proxy::strict::{LastBody, Strict};

/// How often slow and idle connections are looked for.
const SWEEP: Duration = Duration::from_millis(250);
const DRAIN_SWEEP: Duration = Duration::from_millis(20);

/// How long a connection without a request is waited for when the proxy ends.
const PARTING: Nanos = Nanos::from_millis(500);

/// How long to leave waiting connections alone when the process is out of descriptors.
const RECOVERY: Duration = Duration::from_millis(10);

/// How often to look for connections that can make way when not one more can be taken.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How long a client may go on sending an unwanted body.
const LINGER: Duration = Duration::from_secs(2);

/// Bytes of a request that a client of HTTP/2 may send ahead, for a stream and for a connection.
const STREAM_WINDOW: u32 = 32 << 10;
const CONNECTION_WINDOW: u32 = 512 << 10;

/// Bytes of an answer that wait to be taken by a client of HTTP/2.
const SEND_BUFFER: usize = 16 << 10;

/// Requests that a client may have in flight on one connection of HTTP/2.
const STREAMS: u32 = 256;

/// What a connection of HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Whether the proxy takes requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyPhase {
    Open,
    Draining,
    Stopped,
}

/// The clients of one thread, and what their requests share.
pub(crate) struct Worker {
    pub(crate) shared: Rc<Shared>,
    pub(crate) forwarder: Rc<Forwarder>,
    pub(crate) seats: RequestPermits,
    pub(crate) tls: Option<TlsAcceptor>,
    /// Connections that this worker has open.
    pub(crate) open: Cell<usize>,
    pub(crate) lines: RefCell<Vec<Weak<Line>>>,
    /// Those that were idle when they were last looked for, and since when; the eldest first.
    pub(crate) spare: RefCell<VecDeque<(Nanos, Weak<Line>)>>,
}

impl Worker {
    /// Serves until it is told to end, and its requests have ended or are no longer waited for.
    pub(crate) async fn run(
        self: &Rc<Self>,
        listener: TcpListener,
        phase: watch::Receiver<ProxyPhase>,
    ) {
        let mut ending = phase.clone();
        tokio::select! {
            // What ends it is asked first: clients that come without end use up the task's budget.
            biased;
            // Fails only when the proxy itself is gone.
            _ = ending.wait_for(|phase| *phase == ProxyPhase::Stopped) => {}
            () = self.shared.after.run_forever() => {}
            () = self.serve(listener, phase) => {}
        }
        self.shared.is_stopping.set(true);
    }

    async fn serve(self: &Rc<Self>, listener: TcpListener, mut phase: watch::Receiver<ProxyPhase>) {
        tokio::select! {
            biased;
            _ = phase.wait_for(|phase| *phase != ProxyPhase::Open) => {}
            () = self.sweep_connections() => {}
            () = self.accept(&listener) => {}
        }
        drop(listener);
        self.shared.is_draining.set(true);
        for line in self.lines.borrow().iter().filter_map(Weak::upgrade) {
            line.ask_to_end(now());
        }
        while self.open.get() > 0 {
            for line in self.lines.borrow().iter().filter_map(Weak::upgrade) {
                if line.is_idle_for(PARTING) {
                    line.close();
                }
            }
            sleep(DRAIN_SWEEP).await;
        }
        // What was told to be done after the last bytes.
        self.shared.after.run_queued();
    }

    async fn accept(self: &Rc<Self>, listener: &TcpListener) {
        loop {
            let Some(door) = self.admit_connection().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                // Out of descriptors: the connection stays in the backlog until one is free.
                self.close_idle(1);
                sleep(RECOVERY).await;
                continue;
            };
            // Without it the first token of every stream meets Nagle and a delayed ACK: 40 ms.
            let _ = stream.set_nodelay(true);
            let line = Line::new(stream);
            self.lines.borrow_mut().push(Rc::downgrade(&line));
            let open = OpenConnection::new(self, &line, door);
            if self.connections_to_close() > 0 {
                self.shared.tally.at_limit.add(1);
                self.close_idle(self.connections_to_close());
            }
            let worker = Rc::clone(self);
            tokio::task::spawn_local(async move {
                worker.serve_connection(&line).await;
                let _ = timeout(LINGER, line.drain_rest()).await;
                drop((line, open));
            });
        }
    }

    /// Room for one more connection.
    async fn admit_connection(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            if let Ok(door) = timeout(LOOK_AGAIN, self.seats.admit_connection()).await {
                return door;
            }
            self.close_idle(self.connections_to_close());
        }
    }

    /// How many connections there are beyond the limit.
    fn connections_to_close(&self) -> usize {
        self.seats.connections_to_close(self.shared.tally.open.get())
    }

    /// Closes up to this many connections, those that have been idle longest. One that has just
    /// begun is left alone until the next look, and no younger one is closed for it.
    fn close_idle(&self, count: usize) {
        let present = now();
        let mut spare = self.spare.borrow_mut();
        let (mut left, mut is_fresh, mut kept) = (count, false, Vec::new());
        while left > 0 {
            let Some((since, line)) = spare.pop_front() else {
                if std::mem::replace(&mut is_fresh, true) {
                    break;
                }
                *spare = self.idle_lines();
                kept.clear();
                continue;
            };
            // A connection that was busy since then is younger than all that were examined.
            let still = line.upgrade().filter(|line| line.idle_since() == Some(since));
            let Some(idle) = still else { continue };
            left -= 1;
            if idle.close_for_another(present) {
                self.seats.note_making_way();
                self.shared.tally.made_way.add(1);
            } else {
                kept.push((since, line));
            }
        }
        kept.into_iter().rev().for_each(|one| spare.push_front(one));
    }

    /// Connections that could make way, those that have been idle longest first.
    fn idle_lines(&self) -> VecDeque<(Nanos, Weak<Line>)> {
        let lines = self.lines.borrow();
        let idle = lines.iter().filter_map(|line| Some((line.upgrade()?.idle_since()?, line)));
        let mut idle: Vec<_> = idle.map(|(since, line)| (since, Weak::clone(line))).collect();
        idle.sort_unstable_by_key(|(since, _)| *since);
        idle.into()
    }

    /// Serves one connection to its end.
    async fn serve_connection(self: &Rc<Self>, line: &Rc<Line>) {
        let io = LineIo(Rc::clone(line));
        match &self.tls {
            None => {
                let is_http2 = line.peek_starts_with(PREFACE).await;
                self.serve_http(io, is_http2, line).await;
            }
            Some(tls) => {
                // In a box, so that connections without TLS do not have its size.
                let speak = async {
                    if let Ok(io) = tls.accept(io).await {
                        line.handshake_done();
                        let is_http2 = io.get_ref().1.alpn_protocol() == Some(b"h2");
                        self.serve_http(io, is_http2, line).await;
                    }
                };
                Box::pin(speak).await;
            }
        }
    }

    async fn serve_http<I>(self: &Rc<Self>, io: I, is_http2: bool, line: &Rc<Line>)
    where
        I: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let (forwarder, asked) = (Rc::clone(&self.forwarder), Rc::clone(line));
        let taken = LastBody::default();
        let told = taken.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            told.note_request(request.body());
            let (forwarder, line) = (Rc::clone(&forwarder), Rc::clone(&asked));
            // In a box: hyper keeps the room for it as long as the connection lives.
            Box::pin(answer_request(forwarder, line, request))
        });
        if is_http2 {
            let (io, streams) = (TokioIo::new(io), ClientStreams(Rc::clone(line)));
            let connection = Box::pin(self.http2_builder(streams).serve_connection(io, service));
            line.serve_http(connection, |connection| connection.as_mut().graceful_shutdown()).await;
        } else {
            let io = TokioIo::new(Strict::new(io, line, &taken));
            let connection = Box::pin(self.http1_builder().serve_connection(io, service));
            line.serve_http(connection, |connection| connection.as_mut().graceful_shutdown()).await;
        }
    }

    fn http1_builder(&self) -> http1::Builder {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            // The sweep finds slow ones.
            .header_read_timeout(None)
            .auto_date_header(false)
            .max_header_size(self.shared.limits.head_bytes)
            .max_buf_size(self.shared.limits.head_bytes.max(8192));
        builder
    }

    fn http2_builder(&self, streams: ClientStreams) -> http2::Builder<ClientStreams> {
        let mut builder = http2::Builder::new(streams);
        builder
            .timer(TokioTimer::new())
            .auto_date_header(false)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(u32::try_from(self.shared.limits.head_bytes).unwrap_or(u32::MAX));
        builder
    }

    /// Ends connections whose clients are too slow or idle, again and again.
    async fn sweep_connections(&self) {
        loop {
            sleep(SWEEP).await;
            let present = now();
            self.lines.borrow_mut().retain(|line| {
                let Some(line) = line.upgrade() else { return false };
                let is_slow = line.close_if_slow(&self.shared.limits, present);
                let slow = if is_slow {
                    1
                } else {
                    line.end_stalled_streams(&self.shared.limits, present)
                };
                self.shared.tally.too_slow.add(slow);
                true
            });
            // Some that came when none was idle, or idle ones of another worker.
            if self.connections_to_close() > 0 {
                self.close_idle(self.connections_to_close());
            }
        }
    }
}

/// An open connection, counted until it is dropped.
struct OpenConnection {
    worker: Rc<Worker>,
    line: Rc<Line>,
    _door: OwnedSemaphorePermit,
}

impl OpenConnection {
    fn new(worker: &Rc<Worker>, line: &Rc<Line>, door: OwnedSemaphorePermit) -> Self {
        worker.shared.tally.connections.add(1);
        worker.shared.tally.open.add(1);
        worker.open.set(worker.open.get() + 1);
        Self { worker: Rc::clone(worker), line: Rc::clone(line), _door: door }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.worker.shared.tally.open.drop_one();
        self.worker.open.set(self.worker.open.get() - 1);
        if self.line.is_making_way() {
            self.worker.seats.note_closed();
        }
    }
}

/// Runs the streams of a client's connection on the worker's own thread. Each can be ended, which resets
/// it and nothing else.
#[derive(Clone)]
struct ClientStreams(Rc<Line>);

impl<F: Future + 'static> hyper::rt::Executor<F> for ClientStreams {
    fn execute(&self, future: F) {
        self.0.new_flow().spawn(future);
    }
}
