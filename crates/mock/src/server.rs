//! The server: a thread with one runtime, one listener, and the engine behind it.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use goodput_clock::{Timer, use_fine_timer_slack};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio_rustls::TlsAcceptor;

use crate::answer::{Answer, Engine, Service};
use crate::request::{Ask, Kind, Refusal, json_response};
use crate::settings::Settings;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Largest request body.
const BODY_LIMIT: usize = 64 << 20;

/// Certificate and key in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
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

/// A running server. Stops when dropped.
pub struct Mock {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Mock {
    /// Starts a server on `address` (port 0 picks one) on a thread of its own.
    pub fn start(
        address: &str,
        settings: Settings,
        tls: Option<&TlsFiles>,
    ) -> Result<Self, ServeError> {
        let listen = |error| ServeError::Listen { address: address.to_owned(), error };
        let listener = TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true)?;
        // The standard backlog of 128 makes a burst wait a second for its retry.
        rustix::net::listen(&listener, BACKLOG).map_err(io::Error::from)?;
        let address = listener.local_addr()?;
        let acceptor = tls.map(acceptor).transpose()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("mock".to_owned())
            .spawn(move || serve(listener, settings, acceptor, stopped))?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the server ends, which without [`Mock::drop`] is never, except by an error.
    pub fn wait(mut self) -> io::Result<()> {
        let thread = self.thread.take();
        thread.map_or(Ok(()), |thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the server panicked")))
        })
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in the server has printed itself; nothing more can be done about it here.
            let _ = thread.join();
        }
    }
}

fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ServeError> {
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

fn serve(
    listener: TcpListener,
    settings: Settings,
    tls: Option<TlsAcceptor>,
    stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    use_fine_timer_slack();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let slots = Arc::new(Semaphore::new(settings.slots as usize));
        let engine = Rc::new(Engine { settings, slots, timer: Timer::new()? });
        let requests = Rc::new(Cell::new(0));
        tokio::select! {
            () = accept(&listener, &engine, tls.as_ref(), &requests) => {}
            _ = stopped => {}
        }
        Ok(())
    })
}

async fn accept(
    listener: &tokio::net::TcpListener,
    engine: &Rc<Engine>,
    tls: Option<&TlsAcceptor>,
    requests: &Rc<Cell<u64>>,
) {
    loop {
        // Out of descriptors: the connection stays in the backlog until one is free.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            continue;
        };
        let (engine, tls, requests) = (Rc::clone(engine), tls.cloned(), Rc::clone(requests));
        tokio::task::spawn_local(async move {
            // A connection that fails is the client's to notice.
            let _ = serve_connection(stream, engine, tls, requests).await;
        });
    }
}

async fn serve_connection(
    stream: TcpStream,
    engine: Rc<Engine>,
    tls: Option<TlsAcceptor>,
    requests: Rc<Cell<u64>>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    // Without it the first token of every stream meets Nagle and a delayed ACK: 40 ms.
    stream.set_nodelay(true)?;
    let service = service_fn(move |request| {
        let id = requests.get();
        requests.set(id + 1);
        let engine = Rc::clone(&engine);
        async move { Ok::<_, Infallible>(answer(&engine, request, id).await) }
    });
    let builder = auto::Builder::new(LocalTasks);
    match tls {
        None => builder.serve_connection(TokioIo::new(stream), service).await,
        Some(tls) => {
            let stream = tls.accept(stream).await?;
            builder.serve_connection(TokioIo::new(stream), service).await
        }
    }
}

async fn answer(engine: &Rc<Engine>, request: Request<Incoming>, id: u64) -> Response<Answer> {
    let path = request.uri().path().trim_end_matches('/').to_owned();
    match (request.method(), path.as_str()) {
        (&Method::POST, "/v1/chat/completions") => generate(engine, Kind::Chat, request, id).await,
        (&Method::POST, "/v1/completions") => generate(engine, Kind::Completion, request, id).await,
        (&Method::GET, "/v1/models") => {
            let model =
                json!({"id": engine.settings.model, "object": "model", "owned_by": "goodput"});
            json_response(StatusCode::OK, &json!({"object": "list", "data": [model]}))
        }
        (&Method::GET, "/health") => json_response(StatusCode::OK, &json!({"status": "ok"})),
        (_, "/v1/chat/completions" | "/v1/completions" | "/v1/models" | "/health") => {
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed").into_response()
        }
        _ => Refusal::new(StatusCode::NOT_FOUND, format!("no such path: {path}")).into_response(),
    }
}

async fn generate(
    engine: &Rc<Engine>,
    kind: Kind,
    request: Request<Incoming>,
    id: u64,
) -> Response<Answer> {
    let body = match Limited::new(request.into_body(), BODY_LIMIT).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            let refusal = Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
            return refusal.into_response();
        }
        Err(error) => return Refusal::bad(error.to_string()).into_response(),
    };
    let ask = match Ask::read(kind, &body) {
        Ok(ask) => ask,
        Err(refusal) => return refusal.into_response(),
    };
    if let Some(model) = ask.model.as_deref().filter(|model| *model != engine.settings.model) {
        let message =
            format!("the model `{model}` does not exist; there is `{}`", engine.settings.model);
        return Refusal::new(StatusCode::NOT_FOUND, message).into_response();
    }
    let service = Service::new(engine, kind, &ask, id);
    if ask.stream.unwrap_or(false) { service.stream() } else { service.whole().await }
}

/// Runs HTTP/2 tasks on the server's own thread.
#[derive(Clone)]
struct LocalTasks;

impl<F: Future + 'static> hyper::rt::Executor<F> for LocalTasks {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move {
            future.await;
        });
    }
}
