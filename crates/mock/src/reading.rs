//! Reading the body of a request, within bounds of size and time.

use std::cell::Cell;
use std::time::Duration;

use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use crate::api::ApiRefusal;

/// Largest body.
const LIMIT: usize = 64 << 20;

/// Largest sum of all bodies being read.
const TOTAL_LIMIT: usize = 512 << 20;

/// Bytes of an unwanted body that are read and dropped, and how long that may take.
const FORGOTTEN: usize = 1 << 20;
const FORGETTING: Duration = Duration::from_millis(500);

/// Bytes of all bodies being read.
#[derive(Default)]
pub(crate) struct Bodies(Cell<usize>);

/// What one body holds of them.
struct BodyMemory<'a> {
    bodies: &'a Bodies,
    bytes: usize,
}

impl BodyMemory<'_> {
    fn reserve(&mut self, bytes: usize) -> Result<(), ApiRefusal> {
        self.bytes += bytes;
        self.bodies.0.set(self.bodies.0.get() + bytes);
        if self.bytes > LIMIT {
            return Err(ApiRefusal::body_too_large(LIMIT));
        }
        if self.bodies.0.get() > TOTAL_LIMIT {
            return Err(ApiRefusal::overloaded("too many large bodies at once", Some(1)));
        }
        Ok(())
    }
}

impl Drop for BodyMemory<'_> {
    fn drop(&mut self) {
        self.bodies.0.set(self.bodies.0.get() - self.bytes);
    }
}

/// The whole body if it comes in time, or why there is none.
pub(crate) async fn read_body(
    request: Request<Incoming>,
    bodies: &Bodies,
    patience: Duration,
) -> Result<Vec<u8>, ApiRefusal> {
    let coding = request.headers().get(header::CONTENT_ENCODING);
    if coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        drain_unwanted(request).await;
        let message = "compressed bodies are not supported";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(ApiRefusal { status, ..ApiRefusal::bad_request(message) });
    }
    let collecting = collect_body(request.into_body(), bodies);
    tokio::time::timeout(patience, collecting).await.unwrap_or_else(|_| {
        let message = "the body did not arrive in time";
        Err(ApiRefusal { status: StatusCode::REQUEST_TIMEOUT, ..ApiRefusal::bad_request(message) })
    })
}

/// Drains an unwanted body if it is short and on its way: a client may take an answer that
/// overtakes its request for an error, over HTTP/2 above all. Says whether it came to its end.
pub(crate) async fn drain_unwanted(request: Request<Incoming>) -> bool {
    // A client that waits for `100 Continue` learns from the answer not to send the body.
    let is_waiting = request.headers().contains_key(header::EXPECT);
    let mut body = request.into_body();
    if body.is_end_stream() || is_waiting {
        return body.is_end_stream();
    }
    let reading = async {
        let mut left = FORGOTTEN;
        while let Some(frame) = body.frame().await {
            let length = frame.ok().and_then(|frame| frame.into_data().ok()).map(|data| data.len());
            left = length.and_then(|length| left.checked_sub(length))?;
        }
        Some(())
    };
    tokio::time::timeout(FORGETTING, reading).await.is_ok_and(|end| end.is_some())
}

async fn collect_body(mut body: Incoming, bodies: &Bodies) -> Result<Vec<u8>, ApiRefusal> {
    let mut share = BodyMemory { bodies, bytes: 0 };
    // A body that says it is too large need not be read to know.
    if body.size_hint().lower() > LIMIT as u64 {
        return Err(ApiRefusal::body_too_large(LIMIT));
    }
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|error| ApiRefusal::bad_request(format!("the body is broken: {error}")))?;
        if let Some(data) = frame.data_ref() {
            share.reserve(data.len())?;
            bytes.extend_from_slice(data);
        }
    }
    Ok(bytes)
}
