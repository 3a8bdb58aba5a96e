//! [`Client`]: sends requests over its worker's connections and fills in what happened.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use goodput_clock::now;
use goodput_model::{ErrorClass, Exchange, Failure, FailureStage, Http, Stamps, TraceIds};
use http::Method;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use crate::allowance::{AnswerLimits, AnswerMemoryShare};
use crate::answer::{AnswerReader, Read, clip_bytes};
use crate::connection::{HttpConnection, OutgoingRequest};
use crate::endpoint::{Endpoint, SessionTag};
use crate::fault::AnswerError;
use crate::fault::is_stream_reset;
use crate::head::{AnswerHead, TransportError};
use crate::pool::{ConnectionPool, Lease};
use crate::secrets::scrub_failure;

/// Most bytes of an answer that is not a stream.
const WHOLE_LIMIT: usize = 64 << 20;

/// Most bytes of an error answer that are looked at.
const ERROR_LIMIT: usize = 64 << 10;

/// What a page of facts may hold: a list of models, the tokens of a text, the answer of a collector.
const PAGE_LIMIT: usize = 16 << 20;

/// How long the body of a refusal is waited for.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(2);

/// Connections opened at once ahead of a run.
const OPEN_AT_ONCE: usize = 128;

/// How long the end of the body may lag behind `[DONE]` for the connection to be kept.
const DONE_GRACE: Duration = Duration::from_millis(100);

/// The sending side of one worker. Lives on a current-thread runtime with a local task set.
pub struct Client {
    pool: Rc<ConnectionPool>,
}

/// A body, which session it belongs to, and by which ids it is traced.
#[derive(Clone)]
pub struct Tagged<'a> {
    /// What is sent.
    pub body: Bytes,
    /// Sent as a header with it.
    pub session: Option<&'a SessionTag>,
    /// Sent as `traceparent` with it, unless the endpoint has one in all requests.
    pub trace: Option<TraceIds>,
    /// What its answer may amount to.
    pub allowance: AnswerLimits,
}

/// How a status-200 answer is to be read, by its content type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerShape {
    Stream,
    /// Servers have been seen to stream under any type: the first byte tells.
    Unsaid,
    Whole,
    Html,
}

impl Client {
    /// A client for this endpoint, without a connection yet.
    pub fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { pool: Rc::new(ConnectionPool::new(endpoint)) }
    }

    /// Opens connections ahead of their first use, as many as will be used at once. What cannot be
    /// opened is left to the requests to report.
    pub async fn connect_ahead(&self, count: u32) {
        if self.pool.endpoint().http == Http::Http2 {
            // One carries many, and more are opened when it is full.
            drop(self.pool.lease_connection().await);
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
            self.pool.return_connection(lease.connection);
        }
    }

    /// Sends one request without a limit and reads its answer. Whatever happens is in `exchange`, step by step,
    /// so a caller that stops waiting still has everything that came.
    pub async fn send(&self, body: Bytes, exchange: &mut Exchange) {
        let allowance = AnswerLimits::default();
        self.send_tagged(Tagged { body, session: None, trace: None, allowance }, exchange).await;
    }

    /// As [`Client::send`], for a request that says which session it belongs to and how long its
    /// answer may be.
    pub async fn send_tagged(&self, request: Tagged<'_>, exchange: &mut Exchange) {
        exchange.body_bytes = request.body.len() as u64;
        if let Err(failure) = self.try_send(request, exchange).await {
            exchange.failure = Some(scrub_failure(failure));
        }
    }

    async fn try_send(&self, request: Tagged<'_>, exchange: &mut Exchange) -> Result<(), Failure> {
        let begin = now();
        let mut lease = self.pool.lease_connection().await?;
        // Only a shared connection is waited for; taking an idle one is the client's own time.
        if lease.opened.is_none() && self.pool.endpoint().http == Http::Http2 {
            exchange.blocked = now() - begin;
        }
        loop {
            let was_reused = lease.opened.is_none();
            exchange.stamps.connect = lease.opened;
            exchange.connection = lease.connection.id;
            match self.exchange_over_lease(lease, request.clone(), exchange).await {
                // The server had closed the idle connection; not a byte of an answer came.
                Err(failure)
                    if failure.class == ErrorClass::Closed
                        && was_reused
                        && exchange.reconnects == 0
                        && !is_stream_reset(&failure.message) =>
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

    async fn exchange_over_lease(
        &self,
        mut lease: Lease,
        request: Tagged<'_>,
        exchange: &mut Exchange,
    ) -> Result<(), Failure> {
        let outcome = self.exchange_messages(&mut lease.connection, request, exchange).await;
        exchange.tcp = lease.connection.tcp_facts();
        // A refusal that was read to its end leaves a good connection; the pool looks at it.
        self.pool.return_connection(lease.connection);
        outcome
    }

    async fn exchange_messages(
        &self,
        connection: &mut HttpConnection,
        Tagged { body, session, trace, allowance }: Tagged<'_>,
        exchange: &mut Exchange,
    ) -> Result<(), Failure> {
        let endpoint = self.pool.endpoint();
        let (method, path) = (Method::POST, endpoint.route.as_str());
        let id = exchange.request_id.as_deref();
        let request = OutgoingRequest { endpoint, method, path, body, id, session, trace };
        let head = connection
            .request(request, &mut exchange.stamps)
            .await
            .map_err(|trouble| trouble.into_failure(exchange.stamps.stage()))?;
        let arrival = connection.stamps.last_read.get();
        exchange.stamps.headers = Some(arrival.at);
        exchange.head_lag_us = arrival.lag_us();
        exchange.status = Some(head.status);
        if !head.is_success() {
            return Err(refusal_failure(connection, head).await);
        }
        if let Some(coding) = head.content_encoding {
            let message = format!(
                "the answer is compressed ({coding}), although the request did not allow it"
            );
            let stage = exchange.stamps.stage();
            return Err(Failure { class: ErrorClass::BadHttp, stage, message });
        }
        let shape = shape_of_content_type(&head.content_type);
        if shape == AnswerShape::Html {
            return Err(web_page_failure(connection).await);
        }
        let reader = AnswerReader::new(endpoint.keep_text, allowance);
        let room = endpoint.memory.new_share();
        let intake = Intake { shape, allowance, reader, room };
        read_body(connection, intake, exchange).await
    }

    /// Fetches a path below the base URL: status and body.
    pub(crate) async fn get(&self, route: &str) -> Result<(u16, Vec<u8>), Failure> {
        let path = self.pool.endpoint().url.route(route);
        self.send_outside_load(Method::GET, &path, Bytes::new()).await
    }

    /// Sends a request outside of the load, and returns status and body. A kept connection may have
    /// been closed meanwhile; then a new one is tried. The body is foreign text as it came: a
    /// caller that keeps words of it scrubs them.
    pub(crate) async fn send_outside_load(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(u16, Vec<u8>), Failure> {
        self.try_send_outside_load(method, path, body).await.map_err(scrub_failure)
    }

    async fn try_send_outside_load(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(u16, Vec<u8>), Failure> {
        let mut lease = self.pool.lease_connection().await?;
        loop {
            let was_reused = lease.opened.is_none();
            let endpoint = self.pool.endpoint();
            let (method, body) = (method.clone(), body.clone());
            let (id, session, trace) = (None, None, None);
            let request = OutgoingRequest { endpoint, method, path, body, id, session, trace };
            let asked = lease.connection.request(request, &mut Stamps::default()).await;
            match asked.map_err(|trouble| trouble.into_failure(FailureStage::Headers)) {
                Ok(head) => {
                    let bytes = read_bounded(&mut lease.connection, PAGE_LIMIT)
                        .await
                        .map_err(|trouble| trouble.into_failure(FailureStage::Stream))?;
                    self.pool.return_connection(lease.connection);
                    return Ok((head.status, bytes));
                }
                Err(failure) if failure.class == ErrorClass::Closed && was_reused => {
                    lease = self.pool.open().await?;
                }
                Err(failure) => return Err(failure),
            }
        }
    }
}

fn shape_of_content_type(kind: &str) -> AnswerShape {
    if kind.starts_with("text/html") {
        AnswerShape::Html
    } else if kind.starts_with("text/event-stream") {
        AnswerShape::Stream
    } else {
        AnswerShape::Unsaid
    }
}

/// An answer in one piece is a JSON object; no event stream begins like one.
fn shape_of(bytes: &[u8]) -> AnswerShape {
    match bytes.trim_ascii_start().first() {
        None => AnswerShape::Unsaid,
        Some(b'{' | b'[') => AnswerShape::Whole,
        Some(_) => AnswerShape::Stream,
    }
}

/// How the body of an answer is read.
struct Intake {
    shape: AnswerShape,
    allowance: AnswerLimits,
    reader: AnswerReader,
    /// What it holds of the memory of all answers.
    room: AnswerMemoryShare,
}

/// Reads the body of an answer to its end.
async fn read_body(
    connection: &mut HttpConnection,
    intake: Intake,
    exchange: &mut Exchange,
) -> Result<(), Failure> {
    let Intake { mut shape, allowance, mut reader, mut room } = intake;
    let stamps = Rc::clone(&connection.stamps);
    let last_read = || {
        let arrival = stamps.last_read.get();
        Read { at: arrival.at, sequence: stamps.reads.get(), lag_us: arrival.lag_us() }
    };
    let mut whole = Vec::new();
    let mut came = 0;
    while !reader.is_done() {
        let Some(bytes) = connection
            .next_data()
            .await
            .map_err(|trouble| trouble.into_failure(exchange.stamps.stage()))?
        else {
            break;
        };
        let read = last_read();
        exchange.stamps.first_byte.get_or_insert(read.at);
        if shape == AnswerShape::Unsaid {
            shape = shape_of(&bytes);
        }
        came += bytes.len() as u64;
        let outcome = allowance.check_bytes(came).and_then(|()| match shape {
            AnswerShape::Whole => append_bounded(&mut whole, &bytes),
            _ => reader.push(&bytes, read, exchange),
        });
        outcome
            .and_then(|()| room.reserve(whole.capacity() + reader.held_bytes(), exchange))
            .map_err(|fault| answer_failure(fault, exchange))?;
    }
    let read = last_read();
    if reader.is_done() {
        // Everything that matters has come. Only the end of the body is missing, without which the
        // connection is of no further use, and some servers never send it.
        let _ = timeout(DONE_GRACE, read_bounded(connection, ERROR_LIMIT)).await;
    }
    match shape {
        AnswerShape::Whole => reader.read_whole(&whole, read, exchange),
        _ => reader.finish(read, exchange),
    }
    .map_err(|fault| answer_failure(fault, exchange))
}

/// An answer in one piece is kept until it is all there, within a limit.
fn append_bounded(whole: &mut Vec<u8>, bytes: &[u8]) -> Result<(), AnswerError> {
    if whole.len() + bytes.len() > WHOLE_LIMIT {
        return Err(AnswerError::new(
            ErrorClass::AnswerTooLarge,
            "the answer is larger than 64 MiB",
        ));
    }
    whole.extend_from_slice(bytes);
    Ok(())
}

fn answer_failure(fault: AnswerError, exchange: &Exchange) -> Failure {
    Failure { class: fault.class, stage: exchange.stamps.stage(), message: fault.message }
}

/// A status other than success, with the server's message.
async fn refusal_failure(connection: &mut HttpConnection, head: AnswerHead) -> Failure {
    // What it says about it may never come; the status is known.
    let body = timeout(REFUSAL_PATIENCE, read_bounded(connection, ERROR_LIMIT)).await;
    let bytes = body.ok().and_then(Result::ok).unwrap_or_default();
    let said = crate::json::parse_body(&bytes).ok().and_then(|body| body.error);
    let message = match head.location {
        Some(to) => format!("the server redirects to {to}"),
        None => said.map_or_else(|| error_detail(&bytes), |error| crate::json::error_text(&error)),
    };
    let message = clip_bytes(message.as_bytes());
    Failure { class: ErrorClass::Http(head.status), stage: FailureStage::Headers, message }
}

/// `{"detail": …}`, or the text as it is.
fn error_detail(bytes: &[u8]) -> String {
    serde_json::from_slice::<serde_json::Value>(bytes)
        .map_or_else(|_| clip_bytes(bytes), |value| crate::json::error_text(&value))
}

async fn web_page_failure(connection: &mut HttpConnection) -> Failure {
    let body = timeout(REFUSAL_PATIENCE, read_bounded(connection, ERROR_LIMIT)).await;
    let bytes = body.ok().and_then(Result::ok).unwrap_or_default();
    Failure {
        class: ErrorClass::Html,
        stage: FailureStage::FirstToken,
        message: clip_bytes(&bytes),
    }
}

/// The body up to a limit; the rest is left unread.
async fn read_bounded(
    connection: &mut HttpConnection,
    limit: usize,
) -> Result<Vec<u8>, TransportError> {
    let mut bytes = Vec::new();
    while let Some(data) = connection.next_data().await? {
        bytes.extend_from_slice(&data);
        if bytes.len() >= limit {
            break;
        }
    }
    Ok(bytes)
}
