//! [`Client`]: sends requests over its worker's connections and fills in what happened.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use goodput_clock::now;
use goodput_model::{ErrorClass, Exchange, Failure, Http, Stage};
use http::{HeaderMap, Method, Request, Response, header};
use hyper::body::Incoming;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use crate::answer::{AnswerReader, Fault, Read, excerpt};
use crate::connection::{Connection, SendBody};
use crate::endpoint::Endpoint;
use crate::fault;
use crate::pool::{Lease, Pool};

/// Most bytes of an answer that is not a stream.
const WHOLE_LIMIT: usize = 64 << 20;

/// Most bytes of an error answer that are looked at.
const ERROR_LIMIT: usize = 64 << 10;

/// How long the body of a refusal is waited for.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(2);

/// Most characters of an error message that are kept.
const MESSAGE_LIMIT: usize = 200;

/// Connections opened at once ahead of a run.
const OPEN_AT_ONCE: usize = 128;

/// How long the end of the body may lag behind `[DONE]` for the connection to be kept.
const DONE_GRACE: Duration = Duration::from_millis(100);

/// The sending side of one worker. Lives on a current-thread runtime with a local task set.
pub struct Client {
    pool: Rc<Pool>,
}

/// How a status-200 answer is to be read, by its content type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Stream,
    /// Servers have been seen to stream under any type: the first byte tells.
    Unsaid,
    Whole,
    Html,
}

impl Client {
    /// A client for this endpoint, without a connection yet.
    pub fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { pool: Rc::new(Pool::new(endpoint)) }
    }

    /// Opens connections ahead of their first use, as many as will be used at once. What cannot be
    /// opened is left to the requests to report.
    pub async fn connect_ahead(&self, count: u32) {
        if self.pool.endpoint().http == Http::Http2 {
            // One carries many, and more are opened when it is full.
            drop(self.pool.lease().await);
            return;
        }
        let mut opening = JoinSet::new();
        for started in 0..count as usize {
            if started >= OPEN_AT_ONCE {
                self.keep_opened(opening.join_next().await);
            }
            let pool = Rc::clone(&self.pool);
            opening.spawn_local(async move { pool.open().await });
        }
        while let Some(opened) = opening.join_next().await {
            self.keep_opened(Some(opened));
        }
    }

    fn keep_opened(&self, opened: Option<Result<Result<Lease, Failure>, JoinError>>) {
        if let Some(Ok(Ok(lease))) = opened {
            self.pool.give_back(lease.connection);
        }
    }

    /// Sends one request and reads its answer. Whatever happens is in `exchange`, step by step,
    /// so a caller that stops waiting still has everything that came.
    pub async fn send(&self, body: Bytes, exchange: &mut Exchange) {
        exchange.body_bytes = body.len() as u64;
        if let Err(failure) = self.try_send(body, exchange).await {
            let message = self.pool.endpoint().secrets.scrub(failure.message);
            let message = message.chars().take(MESSAGE_LIMIT).collect();
            exchange.failure = Some(Failure { message, ..failure });
        }
    }

    async fn try_send(&self, body: Bytes, exchange: &mut Exchange) -> Result<(), Failure> {
        let begin = now();
        let mut lease = self.pool.lease().await?;
        if lease.opened.is_none() {
            exchange.blocked = now() - begin;
        }
        loop {
            let was_reused = lease.opened.is_none();
            exchange.stamps.connect = lease.opened;
            exchange.connection = lease.connection.id;
            match self.talk(lease, body.clone(), exchange).await {
                // The server had closed the idle connection; not a byte of an answer came.
                Err(failure)
                    if failure.class == ErrorClass::Closed
                        && was_reused
                        && exchange.reconnects == 0 =>
                {
                    exchange.reconnects = 1;
                    exchange.blocked = now() - begin;
                    exchange.stamps.sent_first = None;
                    exchange.stamps.sent_last = None;
                    lease = self.pool.open().await?;
                }
                outcome => return outcome,
            }
        }
    }

    async fn talk(
        &self,
        mut lease: Lease,
        body: Bytes,
        exchange: &mut Exchange,
    ) -> Result<(), Failure> {
        let outcome = self.converse(&mut lease.connection, body, exchange).await;
        // A refusal that was read to its end leaves a good connection; the pool looks at it.
        self.pool.give_back(lease.connection);
        outcome
    }

    async fn converse(
        &self,
        connection: &mut Connection,
        body: Bytes,
        exchange: &mut Exchange,
    ) -> Result<(), Failure> {
        let endpoint = self.pool.endpoint();
        let request = request(endpoint, Method::POST, &endpoint.route, body);
        let bytes_before = connection.stamps.bytes.get();
        let response =
            connection.request(request, &mut exchange.stamps).await.map_err(|error| {
                fault::before_answer(
                    &error,
                    exchange.stamps.stage(),
                    answer_began(connection, bytes_before),
                )
            })?;
        exchange.stamps.headers = Some(connection.stamps.last_read.get());
        exchange.status = Some(response.status().as_u16());
        if !response.status().is_success() {
            return Err(refusal(connection, response).await);
        }
        if let Some(coding) = response.headers().get(header::CONTENT_ENCODING)
            && coding != "identity"
        {
            let message = format!("the answer is compressed ({coding:?}), which nobody asked for");
            let stage = exchange.stamps.stage();
            return Err(Failure { class: ErrorClass::BadHttp, stage, message });
        }
        let shape = shape(response.headers());
        if shape == Shape::Html {
            return Err(web_page(connection, response).await);
        }
        receive(connection, response.into_body(), shape, exchange, endpoint.keep_text).await
    }

    /// Fetches a path below the base URL: status and body.
    pub(crate) async fn get(&self, route: &str) -> Result<(u16, Vec<u8>), Failure> {
        let endpoint = self.pool.endpoint();
        let mut lease = self.pool.open().await?;
        let path = endpoint.url.route(route);
        let request = request(endpoint, Method::GET, &path, Bytes::new());
        let mut exchange = Exchange::default();
        let response = lease
            .connection
            .request(request, &mut exchange.stamps)
            .await
            .map_err(|error| fault::before_answer(&error, Stage::Headers, false))?;
        let status = response.status().as_u16();
        let bytes = collect(&mut lease.connection, response.into_body(), WHOLE_LIMIT)
            .await
            .map_err(|error| fault::in_answer(&error, Stage::Stream))?;
        Ok((status, bytes))
    }
}

fn request(endpoint: &Endpoint, method: Method, path: &str, body: Bytes) -> Request<SendBody> {
    let is_http2 = endpoint.http == Http::Http2;
    let uri = if is_http2 {
        let scheme = if endpoint.url.is_https { "https" } else { "http" };
        format!("{scheme}://{}{path}", endpoint.url.authority)
    } else {
        path.to_owned()
    };
    let mut request = Request::new(SendBody::new(body));
    *request.method_mut() = method;
    // invariant: scheme, authority and path were parsed from a valid URI.
    *request.uri_mut() = uri.parse().unwrap_or_default();
    *request.headers_mut() = endpoint.headers.clone();
    request
}

fn shape(headers: &HeaderMap) -> Shape {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    if kind.starts_with("text/html") {
        Shape::Html
    } else if kind.starts_with("text/event-stream") {
        Shape::Stream
    } else {
        Shape::Unsaid
    }
}

/// An answer in one piece is a JSON object; no event stream begins like one.
fn shape_of(bytes: &[u8]) -> Shape {
    match bytes.trim_ascii_start().first() {
        None => Shape::Unsaid,
        Some(b'{' | b'[') => Shape::Whole,
        Some(_) => Shape::Stream,
    }
}

/// Reads the body of an answer to its end.
async fn receive(
    connection: &mut Connection,
    mut body: Incoming,
    mut shape: Shape,
    exchange: &mut Exchange,
    keep_text: bool,
) -> Result<(), Failure> {
    let mut reader = AnswerReader::new(keep_text);
    let mut whole = Vec::new();
    loop {
        // After `[DONE]` only the end of the body is missing, and some servers never send it.
        let patience = if reader.is_done() { DONE_GRACE } else { Duration::MAX };
        let Ok(data) = timeout(patience, connection.data(&mut body)).await else { break };
        let read = last_read(connection);
        match data {
            Some(Ok(bytes)) => {
                exchange.stamps.first_byte.get_or_insert(read.at);
                if shape == Shape::Unsaid {
                    shape = shape_of(&bytes);
                }
                if shape == Shape::Whole {
                    append(&mut whole, &bytes).map_err(|fault| failed(fault, exchange))?;
                } else {
                    reader.push(&bytes, read, exchange).map_err(|fault| failed(fault, exchange))?;
                }
            }
            // Complete but for the closing chunk: everything that matters has come.
            Some(Err(_)) if reader.is_done() => break,
            Some(Err(error)) => return Err(fault::in_answer(&error, exchange.stamps.stage())),
            None => break,
        }
    }
    let read = last_read(connection);
    match shape {
        Shape::Whole => reader.whole(&whole, read, exchange),
        _ => reader.finish(read, exchange),
    }
    .map_err(|fault| failed(fault, exchange))
}

/// An answer in one piece is kept until it is all there, within a limit.
fn append(whole: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Fault> {
    if whole.len() + bytes.len() > WHOLE_LIMIT {
        return Err(Fault::new(ErrorClass::EventTooLarge, "the answer is larger than 64 MiB"));
    }
    whole.extend_from_slice(bytes);
    Ok(())
}

/// Whether any byte of the answer has come. Streams of HTTP/2 share their socket: there it cannot
/// be told, and only a connection that is gone fails before the headers.
fn answer_began(connection: &Connection, bytes_before: u64) -> bool {
    !connection.is_multiplexed() && connection.stamps.bytes.get() > bytes_before
}

fn last_read(connection: &Connection) -> Read {
    Read { at: connection.stamps.last_read.get(), sequence: connection.stamps.reads.get() }
}

fn failed(fault: Fault, exchange: &Exchange) -> Failure {
    Failure { class: fault.class, stage: exchange.stamps.stage(), message: fault.message }
}

/// A status that is no success, with what the server says about it.
async fn refusal(connection: &mut Connection, response: Response<Incoming>) -> Failure {
    let status = response.status();
    let location = response.headers().get(header::LOCATION).and_then(|to| to.to_str().ok());
    let redirect = location.map(|to| format!("the server redirects to {to}"));
    // What it says about it may never come; the status is known.
    let body = collect(connection, response.into_body(), ERROR_LIMIT);
    let bytes = timeout(REFUSAL_PATIENCE, body).await.ok().and_then(Result::ok).unwrap_or_default();
    let said = crate::json::read(&bytes).ok().and_then(|body| body.error);
    let message = said.map_or_else(|| detail(&bytes), |error| crate::json::error_text(&error));
    let message = redirect.unwrap_or_else(|| excerpt(message.as_bytes()));
    Failure { class: ErrorClass::Http(status.as_u16()), stage: Stage::Headers, message }
}

/// `{"detail": …}`, or the text as it is.
fn detail(bytes: &[u8]) -> String {
    serde_json::from_slice::<serde_json::Value>(bytes)
        .map_or_else(|_| excerpt(bytes), |value| crate::json::error_text(&value))
}

async fn web_page(connection: &mut Connection, response: Response<Incoming>) -> Failure {
    let bytes = collect(connection, response.into_body(), ERROR_LIMIT).await.unwrap_or_default();
    Failure { class: ErrorClass::Html, stage: Stage::FirstToken, message: excerpt(&bytes) }
}

/// The body up to a limit; the rest is left unread.
async fn collect(
    connection: &mut Connection,
    mut body: Incoming,
    limit: usize,
) -> Result<Vec<u8>, hyper::Error> {
    let mut bytes = Vec::new();
    while let Some(data) = connection.data(&mut body).await {
        bytes.extend_from_slice(&data?);
        if bytes.len() >= limit {
            break;
        }
    }
    Ok(bytes)
}
