//! Asking the target, before the run, whether it is there and answers requests like ours.
//!
//! The check is real: one small request of the kind that will be measured. Paths that the user did
//! not name are left alone, except `/v1/models`, and that only when no model was given.

use std::net::SocketAddr;
use std::sync::Arc;

use goodput_clock::now;
use goodput_model::{ErrorClass, Exchange, Failure, Nanos, Planned, Request};

use crate::answer::refusal_failure;
use crate::body::RequestFormat;
use crate::client::{Client, Tagged};
use crate::connection::{WAITS, connect_any};
use crate::endpoint::Endpoint;
use crate::secrets::scrub_secrets;

/// What one check found.
#[derive(Debug, Clone)]
pub struct ProbeResult {
    /// How long the small request took.
    pub took: Nanos,
    /// Until its first token, where the answer came as a stream.
    pub first_token: Option<Nanos>,
    /// What happened to it.
    pub exchange: Exchange,
}

/// Why a target cannot be measured at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// No connection, or no answer.
    #[error("{}", .0.message)]
    Unreachable(Failure),
    /// An answer that will be the same for every request.
    #[error("{}: {}", .0.class, .0.message)]
    Refused(Failure),
}

/// Answers that will not change while the run lasts: wrong key, path, model or fields, a redirect,
/// a web page.
fn is_final(class: ErrorClass) -> bool {
    match class {
        ErrorClass::Http(status) => {
            matches!(status, 300..=399 | 400 | 401 | 403 | 404 | 405 | 422)
        }
        class => class == ErrorClass::Html,
    }
}

/// Sends one request outside of the load, and reads its answer to the end.
pub async fn send_outside_load(
    endpoint: &Arc<Endpoint>,
    dialect: &RequestFormat,
    request: &Request,
) -> Exchange {
    let client = Client::new(Arc::clone(endpoint));
    let mut exchange = Exchange::default();
    let (body, allowance) = (dialect.encode(&[], request), dialect.answer_limits(request));
    client.send_tagged(Tagged { body, session: None, trace: None, allowance }, &mut exchange).await;
    exchange
}

/// Sends one small request. Other failures (429, 5xx, odd bodies) are the run's to count.
pub async fn probe_endpoint(
    endpoint: &Arc<Endpoint>,
    dialect: &RequestFormat,
) -> Result<ProbeResult, ProbeError> {
    let request = Request::prompt("Hi", Planned::new("probe", 2, Some(1)));
    let begin = now();
    let exchange = send_outside_load(endpoint, dialect, &request).await;
    match &exchange.failure {
        Some(failure) if exchange.status.is_none() => Err(ProbeError::Unreachable(failure.clone())),
        Some(failure) if is_final(failure.class) => Err(ProbeError::Refused(failure.clone())),
        _ => {
            let first_token = exchange.stamps.first_token.map(|at| at - begin);
            Ok(ProbeResult { took: now() - begin, first_token, exchange })
        }
    }
}

impl Endpoint {
    /// The first address that takes a connection. `localhost` may stand for two families, of which
    /// the server listens on one.
    pub async fn first_reachable(&self) -> Result<SocketAddr, Failure> {
        let failed = |error| crate::fault::connect_failure(&error);
        connect_any(&self.addresses, WAITS)
            .await
            .and_then(|stream| stream.peer_addr())
            .map_err(failed)
    }
}

/// The models that the server offers, by `/v1/models`. A name that quotes a secret holds
/// [`goodput_model::REDACTED`] in its place.
pub async fn list_models(endpoint: &Arc<Endpoint>) -> Result<Vec<String>, ProbeError> {
    #[derive(serde::Deserialize)]
    struct Models {
        data: Vec<ModelEntry>,
    }
    #[derive(serde::Deserialize)]
    struct ModelEntry {
        id: String,
    }
    let client = Client::new(Arc::clone(endpoint));
    let (status, bytes) = client.get("models").await.map_err(ProbeError::Unreachable)?;
    if status != 200 {
        return Err(ProbeError::Refused(refusal_failure(ErrorClass::Http(status), &bytes)));
    }
    let models: Models = serde_json::from_slice(&bytes).map_err(|error| {
        ProbeError::Refused(refusal_failure(ErrorClass::BadJson, error.to_string().as_bytes()))
    })?;
    Ok(models.data.into_iter().map(|model| scrub_secrets(model.id)).collect())
}
