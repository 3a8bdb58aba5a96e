//! [`Client`]: sends requests over its worker's connections and fills in what happened.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use goodput_model::{ErrorClass, Exchange, Failure, Stage};
use http::{HeaderMap, Method, Request, Response, header};
use hyper::body::Incoming;
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

/// How long the end of the body may lag behind `[DONE]` for the connection to be kept.
const DONE_GRACE: Duration = Duration::from_millis(100);

/// The sending side of one worker. Lives on a current-thread runtime with a local task set.
pub struct Client {
    pool: Pool,
}

/// How a status-200 answer is to be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Stream,
    Whole,
    Html,
}

impl Client {
    /// A client for this endpoint, without a connection yet.
    pub fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { pool: Pool::new(endpoint) }
    }

    /// Opens connections ahead of their first use, as many as will be used at once. What cannot be
    /// opened is left to the requests to report.
    pub async fn connect_ahead(&self, count: u32) {
        let mut leases = Vec::new();
        for _ in 0..count {
            match self.pool.lease().await {
                Ok(lease) => leases.push(lease),
                Err(_) => break,
            }
        }
        for lease in leases {
            self.pool.give_back(lease.connection);
        }
    }

    /// Sends one request and reads its answer. Whatever happens is in `exchange`, step by step,
    /// so a caller that stops waiting still has everything that came.
    pub async fn send(&self, body: Bytes, exchange: &mut Exchange) {
        exchange.body_bytes = body.len() as u64;
        if let Err(failure) = self.try_send(body, exchange).await {
            let message = self.pool.endpoint().secrets.scrub(failure.message);
            exchange.failure = Some(Failure { message, ..failure });
        }
    }

    async fn try_send(&self, body: Bytes, exchange: &mut Exchange) -> Result<(), Failure> {
        let mut lease = self.pool.lease().await?;
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
        let reads_before = connection.stamps.reads.get();
        let response =
            connection.request(request, &mut exchange.stamps).await.map_err(|error| {
                fault::before_answer(
                    &error,
                    exchange.stamps.stage(),
                    connection.stamps.reads.get() > reads_before,
                )
            })?;
        exchange.stamps.headers = Some(connection.stamps.last_read.get());
        exchange.status = Some(response.status().as_u16());
        if !response.status().is_success() {
            return Err(refusal(connection, response).await);
        }
        match shape(response.headers(), endpoint.stream) {
            Shape::Stream => {
                stream(connection, response.into_body(), exchange, endpoint.keep_text).await
            }
            Shape::Whole => {
                whole(connection, response.into_body(), exchange, endpoint.keep_text).await
            }
            Shape::Html => Err(web_page(connection, response).await),
        }
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
    let is_http2 = endpoint.http == goodput_model::Http::Http2;
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

fn shape(headers: &HeaderMap, stream_asked: bool) -> Shape {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    if kind.starts_with("text/html") {
        Shape::Html
    } else if kind.starts_with("text/event-stream") {
        Shape::Stream
    } else if kind.starts_with("application/json") || !stream_asked {
        Shape::Whole
    } else {
        // Servers have been seen to stream under any type.
        Shape::Stream
    }
}

/// Reads a stream of events.
async fn stream(
    connection: &mut Connection,
    mut body: Incoming,
    exchange: &mut Exchange,
    keep_text: bool,
) -> Result<(), Failure> {
    let mut reader = AnswerReader::new(keep_text);
    loop {
        // After `[DONE]` only the end of the body is missing, and some servers never send it.
        let patience = if reader.is_done() { DONE_GRACE } else { Duration::MAX };
        let Ok(data) = timeout(patience, connection.data(&mut body)).await else { break };
        let read = last_read(connection);
        match data {
            Some(Ok(bytes)) => {
                exchange.stamps.first_byte.get_or_insert(read.at);
                reader.push(&bytes, read, exchange).map_err(|fault| failed(fault, exchange))?;
            }
            // Complete but for the closing chunk: everything that matters has come.
            Some(Err(_)) if reader.is_done() => break,
            Some(Err(error)) => return Err(fault::in_answer(&error, exchange.stamps.stage())),
            None => break,
        }
    }
    let read = last_read(connection);
    reader.finish(read, exchange).map_err(|fault| failed(fault, exchange))
}

/// Reads an answer in one piece.
async fn whole(
    connection: &mut Connection,
    mut body: Incoming,
    exchange: &mut Exchange,
    keep_text: bool,
) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    while let Some(data) = connection.data(&mut body).await {
        let data = data.map_err(|error| fault::in_answer(&error, exchange.stamps.stage()))?;
        exchange.stamps.first_byte.get_or_insert(connection.stamps.last_read.get());
        if bytes.len() + data.len() > WHOLE_LIMIT {
            let fault = Fault::new(ErrorClass::EventTooLarge, "the answer is larger than 64 MiB");
            return Err(failed(fault, exchange));
        }
        bytes.extend_from_slice(&data);
    }
    let read = last_read(connection);
    let mut reader = AnswerReader::new(keep_text);
    reader.whole(&bytes, read, exchange).map_err(|fault| failed(fault, exchange))
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
    let bytes = collect(connection, response.into_body(), ERROR_LIMIT).await.unwrap_or_default();
    let said = crate::json::read(&bytes).ok().and_then(|body| body.error);
    let message = said.map_or_else(|| detail(&bytes), |error| crate::json::error_text(&error));
    let message = excerpt(message.as_bytes());
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
