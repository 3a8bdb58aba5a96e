//! [`Proxy`]: the threads, and how they begin and end.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::Nanos;
use goodput_wire::EndpointError;
use http::{HeaderName, HeaderValue};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio_rustls::TlsAcceptor;

use crate::proxy::after::After;
use crate::proxy::backend::Backend;
use crate::proxy::forward::Forwarder;
use crate::proxy::keeping::Allowance;
use crate::proxy::seats::RequestPermits;
use crate::proxy::settings::{Limits, Settings, TlsFiles};
use crate::proxy::shared::Shared;
use crate::proxy::tally::Tally;
use crate::proxy::upstream::UpstreamRoute;
use crate::proxy::witness::Witness;
use crate::proxy::worker::{ProxyPhase, Worker};

/// Connections that may wait to be accepted: the standard 128 makes a burst wait a second for its
/// retry.
const BACKLOG: i32 = 4096;

/// How often a proxy that drains is looked at.
const LOOK: Nanos = Nanos::from_millis(5);

/// Why a proxy cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// Certificate or key cannot be used.
    #[error("cannot serve TLS: {0}")]
    Tls(String),
    /// The name of the session's header is none.
    #[error("`{0}` is not a valid header name")]
    Header(String),
    /// The upstream cannot be spoken to with these settings.
    #[error(transparent)]
    Upstream(#[from] EndpointError),
    /// A thread or its runtime cannot be made.
    #[error("cannot start: {0}")]
    Start(#[from] io::Error),
}

impl ProxyError {
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
                "--tls-cert takes a certificate chain in PEM, --tls-key the key of its first certificate"
            }
            Self::Upstream(_) => "check the server's URL and --cacert",
            _ => "--listen takes 127.0.0.1:8080; port 0 picks a free one",
        }
    }
}

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Requests that were cut when the time was up.
    pub cut: u64,
}

/// A running proxy. Stops at once when dropped.
pub struct Proxy {
    address: SocketAddr,
    tally: Arc<Tally>,
    phase: watch::Sender<ProxyPhase>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Proxy {
    /// Starts a proxy on threads of its own. Whatever passes is told to the witness. From then on the
    /// process has no huge pages.
    pub fn start(settings: Settings, witness: Arc<dyn Witness>) -> Result<Self, ProxyError> {
        // Each connection has buffers of which mostly the first bytes are used: with huge pages all of
        // them would take memory, half as much again for each stream.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
        let listen = |error| ProxyError::Listen { address: settings.listen, error };
        let listener = TcpListener::bind(settings.listen).map_err(listen)?;
        listener.set_nonblocking(true)?;
        rustix::net::listen(&listener, BACKLOG).map_err(io::Error::from)?;
        let address = listener.local_addr()?;
        let header =
            |name: String| name.parse::<HeaderName>().map_err(|_| ProxyError::Header(name.clone()));
        let tally = Arc::new(Tally::default());
        let (phase, phases) = watch::channel(ProxyPhase::Open);
        let count = settings.workers.max(1);
        let part = WorkerParts {
            plan: UpstreamRoute::new(&settings.upstream)?,
            tls: settings.tls.as_ref().map(tls_acceptor).transpose()?,
            seats: RequestPermits::new(settings.limits.connections),
            limits: settings.limits,
            keep_text: settings.keep_text,
            session_header: settings.session_header.map(header).transpose()?,
            via: via_header(address),
            witness,
            tally: Arc::clone(&tally),
            allowance: Allowance::default(),
        };
        let mut proxy = Self { address, tally, phase, threads: Vec::with_capacity(count) };
        for _ in 0..count {
            // All wait on one socket: a free worker takes the next client, and a second proxy on
            // the same port is found out.
            let (listener, part, phases) = (listener.try_clone()?, part.clone(), phases.clone());
            let thread = std::thread::Builder::new().name("proxy".to_owned());
            proxy.threads.push(thread.spawn(move || part.run(listener, phases))?);
        }
        Ok(proxy)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has done so far.
    pub fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// Whether all of its threads serve; they end by themselves only on an error.
    pub fn is_running(&self) -> bool {
        self.threads.iter().all(|thread| !thread.is_finished())
    }

    /// Takes no more requests, waits for those in flight up to a limit, and cuts the rest. When this
    /// returns, the witness has heard of every one of them.
    pub fn drain(mut self, limit: Duration) -> Drained {
        self.phase.send_replace(ProxyPhase::Draining);
        let end = now() + Nanos::from(limit);
        while now() < end && !self.threads.iter().all(JoinHandle::is_finished) {
            pause(LOOK);
        }
        self.stop();
        Drained { cut: self.tally.cut.get() }
    }

    fn stop(&mut self) {
        self.phase.send_replace(ProxyPhase::Stopped);
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so; there is nothing more to do about it here.
            let _ = thread.join();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What each worker is made of.
#[derive(Clone)]
struct WorkerParts {
    plan: UpstreamRoute,
    tls: Option<TlsAcceptor>,
    seats: RequestPermits,
    limits: Limits,
    keep_text: bool,
    session_header: Option<HeaderName>,
    via: HeaderValue,
    witness: Arc<dyn Witness>,
    tally: Arc<Tally>,
    allowance: Allowance,
}

impl WorkerParts {
    fn run(self, listener: TcpListener, phases: watch::Receiver<ProxyPhase>) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let tasks = LocalSet::new();
        let worker = tasks.block_on(&runtime, async {
            let worker = Rc::new(self.into_worker());
            let listener = tokio::net::TcpListener::from_std(listener)?;
            worker.run(listener, phases).await;
            io::Result::Ok(worker)
        })?;
        // Requests still in flight are cut here, and the witness hears of that, too.
        drop(tasks);
        worker.shared.after.run_queued();
        drop(worker);
        // A name that is still being looked up is not waited for.
        runtime.shutdown_background();
        Ok(())
    }

    fn into_worker(self) -> Worker {
        let Self { witness, tally, limits, allowance, seats, via, .. } = self;
        let after = After::new(witness, Arc::clone(&tally), self.session_header, via.clone());
        let backend = Backend::with_allowance(self.plan, limits.clone(), allowance.clone());
        let shared = Rc::new(Shared {
            limits,
            keep_text: self.keep_text,
            via,
            tally,
            allowance,
            after,
            is_draining: Cell::default(),
            is_stopping: Cell::default(),
        });
        let forwarder = Forwarder { shared: Rc::clone(&shared), backend, seats: seats.clone() };
        Worker {
            shared,
            forwarder: Rc::new(forwarder),
            seats,
            tls: self.tls,
            open: Cell::default(),
            lines: RefCell::default(),
            spare: RefCell::default(),
        }
    }
}

/// How this proxy is called in `Via`, unlike any other: a request that comes back is known by it.
fn via_header(address: SocketAddr) -> HeaderValue {
    let (_, Nanos(unix)) = goodput_clock::now_and_unix();
    let name = format!("1.1 goodput-{:x}-{:x}", unix / 1_000, address.port());
    HeaderValue::try_from(name).unwrap_or(HeaderValue::from_static("1.1 goodput"))
}

fn tls_acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ProxyError> {
    let wrong = |what: &PathBuf, error: &dyn std::fmt::Display| {
        ProxyError::Tls(format!("{}: {error}", what.display()))
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
        .map_err(|error| ProxyError::Tls(error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
