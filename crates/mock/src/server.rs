//! The server: a thread with one runtime, one listener, and the engine behind it.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;

use goodput_clock::{now, request_prompt_wakeups};
use goodput_model::{Nanos, RequestRecord};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::api;
use crate::faults::{FaultWindow, Label};
use crate::line::{MockConnection, MockConnectionIo};
use crate::service::Service;
use crate::settings::MockSettings;
use crate::tally::MockTally;

/// Connections that may wait to be accepted: the standard 128 makes a burst wait a second for its
/// retry.
const BACKLOG: i32 = 4096;

/// How many times idle connections are looked for during the idle time.
const SWEEPS: u64 = 12;

/// And never more seldom than this: the list of connections is cleared with it.
const SWEEP_MOST: Nanos = Nanos::from_millis(5_000);

/// How often idle connections are looked for while new ones are refused.
const REFUSAL_SWEEP: Nanos = Nanos::from_millis(20);

/// How long a client may go on sending an unwanted body.
const LINGER: Nanos = Nanos::from_millis(2_000);

/// How long to leave waiting connections alone when the process is out of descriptors.
const RECOVERY: Nanos = Nanos::from_millis(10);

/// Certificate and key in PEM.
#[derive(Debug, Clone)]
pub struct ServerTlsFiles {
    /// Certificate chain.
    pub certificate: PathBuf,
    /// Private key.
    pub key: PathBuf,
}

/// Why the server cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        error: io::Error,
    },
    /// Certificate or key cannot be used.
    #[error("cannot serve TLS: {0}")]
    Tls(String),
    /// The thread or its runtime cannot be made.
    #[error("cannot start: {0}")]
    Start(#[from] io::Error),
}

impl ServeError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Listen { error, .. } if error.kind() == io::ErrorKind::AddrInUse => {
                "another program uses this address; port 0 picks a free port"
            }
            Self::Listen { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
                "ports below 1024 need administrator rights; use a higher port"
            }
            Self::Tls(_) => {
                "--tls-cert takes a certificate chain in PEM, --tls-key the key of its first \
                 certificate"
            }
            _ => "--listen takes 127.0.0.1:8000; port 0 picks a free port",
        }
    }
}

/// A running server. Stops when dropped.
pub struct MockServer {
    address: SocketAddr,
    tally: Arc<MockTally>,
    has_delays: bool,
    info: Vec<u8>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl MockServer {
    /// Starts a server on `address` (port 0 picks one) on a thread of its own. What really happened
    /// to each request goes to `truth`, if anybody wants to know.
    pub fn start(
        address: &str,
        settings: MockSettings,
        tls: Option<&ServerTlsFiles>,
        truth: Option<SyncSender<RequestRecord>>,
    ) -> Result<Self, ServeError> {
        let listen = |error| ServeError::Listen { address: address.to_owned(), error };
        let listener = TcpListener::bind(address).map_err(listen)?;
        let address = listener.local_addr()?;
        let acceptor = tls.map(tls_acceptor).transpose()?;
        let tally = Arc::new(MockTally::default());
        let has_delays = settings.profile.has_delays();
        let info = api::server_info_response(&settings.profile);
        let counted = Arc::clone(&tally);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("mock".to_owned()).spawn(move || {
            request_prompt_wakeups();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            tokio::task::LocalSet::new().block_on(&runtime, async move {
                let service = Service::new(settings, counted, truth)?;
                let server = ServerThread {
                    service,
                    tls: acceptor,
                    lines: RefCell::default(),
                    accepted: Cell::default(),
                };
                tokio::select! {
                    outcome = Rc::new(server).serve(listener, address) => outcome,
                    _ = stopped => Ok(()),
                }
            })
        })?;
        Ok(Self { address, tally, has_delays, info, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has done so far.
    pub fn tally(&self) -> &Arc<MockTally> {
        &self.tally
    }

    /// What `/server_info` says: JSON with the settings that decide its speed.
    pub fn info(&self) -> &[u8] {
        &self.info
    }

    /// Whether its tokens have instants of their own, so that they can be late.
    pub fn has_delays(&self) -> bool {
        self.has_delays
    }

    /// Whether it still serves; it ends by itself only on an error.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Stops it, and says what ended it if something else did.
    pub fn stop(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        drop(self.stop.take());
        self.thread.take().map_or(Ok(()), |thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the server panicked")))
        })
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        // A panic in the server has printed itself; nothing more can be done about it here.
        let _ = self.end();
    }
}

fn tls_acceptor(files: &ServerTlsFiles) -> Result<TlsAcceptor, ServeError> {
    let wrong = |what: &PathBuf, error: &dyn std::fmt::Display| {
        ServeError::Tls(format!("{}: {error}", what.display()))
    };
    let chain: Vec<_> = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect)
        .map_err(|error| wrong(&files.certificate, &error))?;
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| wrong(&files.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| ServeError::Tls(error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

struct ServerThread {
    service: Rc<Service>,
    tls: Option<TlsAcceptor>,
    /// Every connection, to find the idle ones.
    lines: RefCell<Vec<Weak<MockConnection>>>,
    /// Connections so far.
    accepted: Cell<u64>,
}

impl ServerThread {
    async fn serve(self: Rc<Self>, listener: TcpListener, address: SocketAddr) -> io::Result<()> {
        let patience = Nanos::from(self.service.settings.patience);
        let every = Nanos(patience.0 / SWEEPS).clamp(REFUSAL_SWEEP, SWEEP_MOST);
        tokio::select! {
            outcome = self.listen(listener, address) => outcome,
            () = self.service.run() => Ok(()),
            () = self.close_idle(patience, every) => Ok(()),
        }
    }

    /// Accepts, except in the windows in which connections are to be refused.
    async fn listen(self: &Rc<Self>, listener: TcpListener, address: SocketAddr) -> io::Result<()> {
        let mut listener = into_async_listener(listener)?;
        for FaultWindow { from, length } in self.service.refusal_windows() {
            tokio::select! {
                () = self.accept(&listener) => {}
                () = self.service.timer().sleep_until(from) => {}
            }
            drop(listener);
            self.service.count_fault(Label::Named("refuse"));
            let reserved = reserve_address(address);
            tokio::select! {
                // Kept connections would carry requests past the refusal.
                () = self.close_idle(Nanos::ZERO, REFUSAL_SWEEP) => {}
                () = self.service.sleep_from(from, length) => {}
            }
            listener = into_async_listener(match reserved {
                Ok(socket) => socket,
                Err(_) => TcpListener::bind(address)?,
            })?;
        }
        self.accept(&listener).await;
        Ok(())
    }

    async fn accept(self: &Rc<Self>, listener: &tokio::net::TcpListener) {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of descriptors: the connection stays in the backlog until one is free.
                self.service.timer().sleep_until(now() + RECOVERY).await;
                continue;
            };
            // Without it the first token of every stream meets Nagle and a delayed ACK: 40 ms.
            let _ = stream.set_nodelay(true);
            let line = self.open_connection(stream);
            let server = Rc::clone(self);
            tokio::task::spawn_local(async move {
                if let Some(delay) = server.service.slow_accept() {
                    server.service.timer().sleep_until(now() + delay).await;
                }
                server.service.note_connected(true);
                // A connection that fails is the client's to notice.
                let _ = server.serve_connection(Rc::clone(&line)).await;
                server.service.note_connected(false);
                tokio::select! {
                    () = line.drain_rest() => {}
                    () = server.service.timer().sleep_until(now() + LINGER) => {}
                }
            });
        }
    }

    fn open_connection(&self, stream: TcpStream) -> Rc<MockConnection> {
        let line = MockConnection::new(stream, self.accepted.replace(self.accepted.get() + 1));
        self.lines.borrow_mut().push(Rc::downgrade(&line));
        line
    }

    /// Serves one connection to its end.
    async fn serve_connection(
        &self,
        line: Rc<MockConnection>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let io = MockConnectionIo(Rc::clone(&line));
        let service = Rc::clone(&self.service);
        let service = service_fn(move |request| {
            let (service, line) = (Rc::clone(&service), Rc::clone(&line));
            async move { service.answer(request, &line).await }
        });
        let mut builder = auto::Builder::new(ServerTasks);
        builder.http2().max_concurrent_streams(None);
        match &self.tls {
            None => builder.serve_connection(TokioIo::new(io), service).await,
            Some(tls) => {
                let io = tls.accept(io).await?;
                builder.serve_connection(TokioIo::new(io), service).await
            }
        }
    }

    /// Closes connections that have been idle for longer than the limit, again and again.
    async fn close_idle(&self, limit: Nanos, every: Nanos) {
        loop {
            self.lines.borrow_mut().retain(|line| {
                let Some(line) = line.upgrade() else { return false };
                if line.idle_since().is_some_and(|since| now() - since >= limit) {
                    line.close();
                }
                true
            });
            self.service.timer().sleep_until(now() + every).await;
        }
    }
}

/// A socket that has the address and refuses connections, so that no other process can take it.
fn reserve_address(address: SocketAddr) -> io::Result<TcpListener> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &address)?;
    Ok(TcpListener::from(socket))
}

fn into_async_listener(listener: TcpListener) -> io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    rustix::net::listen(&listener, BACKLOG)?;
    tokio::net::TcpListener::from_std(listener)
}

/// Runs HTTP/2 tasks on the server's own thread.
#[derive(Clone)]
struct ServerTasks;

impl<F: Future + 'static> hyper::rt::Executor<F> for ServerTasks {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move {
            future.await;
        });
    }
}
