//! Clients, from their connection to their end.

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use goodput_clock::{lower_priority, now, pause};
use goodput_model::Nanos;

use crate::connection::{RequestError, close_gracefully, read_body, read_head, write_all_before};
use crate::request::{HttpRequest, Method};
use crate::response::Response;

/// Wait after a failed accept, which means that files or memory have run out.
const ACCEPT_PAUSE: Nanos = Nanos::from_millis(100);

/// What a server allows its clients.
#[derive(Debug, Clone, Copy)]
pub struct HttpLimits {
    /// The name of its threads.
    pub name: &'static str,
    /// Clients at once; others get a 503.
    pub clients: usize,
    /// Bytes of a head.
    pub head_bytes: usize,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// Time for a head: a silent client holds a seat.
    pub head_wait: Nanos,
    /// Time for a body, and again for taking the response.
    pub wait: Nanos,
}

/// What is served.
pub trait Site: Send + Sync + 'static {
    /// Refuses a request before its body is read.
    fn check(&self, request: &HttpRequest) -> Result<(), Response>;
    /// Answers a request that passed [`Site::check`].
    fn reply(&self, request: &HttpRequest) -> HttpReply;
    /// Adds the headers that all responses have, including those of the server itself.
    fn finish(&self, response: Response) -> Response {
        response
    }
}

/// Writes to a client until it is done, or the client is gone.
pub type Writer = Box<dyn FnOnce(&mut TcpStream) -> io::Result<()>>;

/// What is sent back.
pub enum HttpReply {
    /// A response.
    Whole(Response),
    /// A response whose body goes on until the connection ends.
    Stream {
        /// Head and first bytes.
        start: Response,
        /// Writes the rest, for as long as it takes.
        write: Writer,
    },
}

impl From<Response> for HttpReply {
    fn from(response: Response) -> Self {
        Self::Whole(response)
    }
}

/// Serves until the process ends: a thread that accepts, and one for each client.
pub fn start_server(site: impl Site, limits: HttpLimits, listener: TcpListener) -> io::Result<()> {
    let server = HttpServer { site: Arc::new(site), limits, seats: ClientLimit::default() };
    let accept = move || {
        lower_priority();
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => server.accept_client(stream),
                Err(_) => pause(ACCEPT_PAUSE),
            }
        }
    };
    std::thread::Builder::new().name(limits.name.to_owned()).spawn(accept).map(drop)
}

struct HttpServer<S> {
    site: Arc<S>,
    limits: HttpLimits,
    seats: ClientLimit,
}

impl<S: Site> HttpServer<S> {
    fn accept_client(&self, mut stream: TcpStream) {
        let (site, limits) = (Arc::clone(&self.site), self.limits);
        let Some(seat) = self.seats.acquire(limits.clients) else {
            // What does not go out at once does not go out: accepting others must not wait.
            let _ = stream.set_nonblocking(true);
            let busy = site.finish(Response::text("503 Service Unavailable"));
            let _ = stream.write(&busy.to_bytes(false));
            return;
        };
        let serve = move || {
            lower_priority();
            // A client may go away at any time.
            let _ = serve_client(&*site, &limits, &mut stream);
            drop(seat);
        };
        // Without a thread the client finds its connection closed.
        let _ = std::thread::Builder::new().name(format!("{}-client", limits.name)).spawn(serve);
    }
}

fn serve_client(site: &impl Site, limits: &HttpLimits, stream: &mut TcpStream) -> io::Result<()> {
    let mut only_head = false;
    let outcome = read_request(site, limits, stream, &mut only_head);
    let response = match outcome.map(|request| site.reply(&request)) {
        Ok(HttpReply::Stream { start, write }) if !only_head => {
            write_all_before(stream, &site.finish(start).to_open_bytes(), now() + limits.wait)?;
            return write(stream);
        }
        Ok(HttpReply::Stream { .. }) => Response::text("200 OK"),
        Ok(HttpReply::Whole(response)) | Err(HttpRefusal::Response(response)) => response,
        Err(HttpRefusal::Broken(broken)) => {
            let (response, end) = (error_response(broken), now() + limits.head_wait);
            write_all_before(stream, &site.finish(response).to_bytes(only_head), end)?;
            // A client that is gone or silent sends nothing to wait for.
            return if broken == RequestError::TooLarge {
                close_gracefully(stream, end)
            } else {
                Ok(())
            };
        }
    };
    let end = now() + limits.wait;
    write_all_before(stream, &site.finish(response).to_bytes(only_head), end)?;
    close_gracefully(stream, end)
}

/// Why a request is not answered by [`Site::reply`].
enum HttpRefusal {
    /// It may not be asked, or not so.
    Response(Response),
    /// It did not arrive whole.
    Broken(RequestError),
}

impl From<RequestError> for HttpRefusal {
    fn from(broken: RequestError) -> Self {
        Self::Broken(broken)
    }
}

/// A request that passed [`Site::check`], with its body. `only_head` is set as soon as it is known.
fn read_request(
    site: &impl Site,
    limits: &HttpLimits,
    stream: &mut TcpStream,
    only_head: &mut bool,
) -> Result<HttpRequest, HttpRefusal> {
    let refused = |status| HttpRefusal::Response(Response::text(status));
    let (head, rest) = read_head(stream, limits.head_bytes, now() + limits.head_wait)?;
    let mut request = HttpRequest::parse(&head).ok_or_else(|| refused("400 Bad Request"))?;
    *only_head = request.method == Method::Head;
    site.check(&request).map_err(HttpRefusal::Response)?;
    if request.method == Method::Post {
        let length = request.body_length().ok_or_else(|| refused("411 Length Required"))?;
        if length > limits.body_bytes {
            return Err(refused("413 Content Too Large"));
        }
        request.body = read_body(stream, rest, length, now() + limits.wait)?;
    }
    Ok(request)
}

fn error_response(broken: RequestError) -> Response {
    Response::text(match broken {
        RequestError::Cut => "400 Bad Request",
        RequestError::TooSlow => "408 Request Timeout",
        RequestError::TooLarge => "431 Request Header Fields Too Large",
    })
}

/// Places for clients.
#[derive(Debug, Clone, Default)]
pub struct ClientLimit(Arc<AtomicUsize>);

/// A client's place, free again when it is dropped.
#[derive(Debug)]
pub struct Permit(Arc<AtomicUsize>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ClientLimit {
    /// One of this many; none if all are taken.
    pub fn acquire(&self, of: usize) -> Option<Permit> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let seat = Permit(Arc::clone(&self.0));
        (before < of).then_some(seat)
    }
}
