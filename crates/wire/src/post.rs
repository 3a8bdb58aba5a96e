//! Sends documents to a collector, during and after a run.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use goodput_model::{ErrorClass, Failure, FailureStage};
use http::Method;
use tokio::time::timeout;

use crate::answer::refusal_failure;
use crate::client::Client;
use crate::endpoint::{BaseUrl, Endpoint, EndpointError, EndpointSettings};
use crate::secrets::scrub_secrets;

/// Posts JSON to one URL, over one connection while that lives.
///
/// Runs on a current-thread runtime with a local task set.
pub struct Poster {
    client: Client,
    path: String,
    limit: Duration,
}

impl Poster {
    /// To this URL, or to `path` of it where it has none; each answer must come within `limit`.
    pub fn new(url: &BaseUrl, path: &str, limit: Duration) -> Result<Self, EndpointError> {
        let endpoint = Arc::new(Endpoint::new(&EndpointSettings {
            stream: false,
            ..EndpointSettings::new(url.clone())
        })?);
        let client = Client::new(endpoint);
        Ok(Self { client, path: url.path_or(path), limit })
    }

    /// What the server says to a document that it takes.
    pub async fn post(&self, document: Vec<u8>) -> Result<String, Failure> {
        let asking = self.client.send_outside_load(Method::POST, &self.path, Bytes::from(document));
        let failed = |class, message| Failure { class, stage: FailureStage::Headers, message };
        let answer = timeout(self.limit, asking).await.map_err(|_| {
            let seconds = self.limit.as_secs_f64();
            failed(ErrorClass::Timeout, format!("no answer within {seconds} s"))
        })?;
        match answer? {
            (200..=299, bytes) => Ok(scrub_secrets(String::from_utf8_lossy(&bytes).into_owned())),
            (status, bytes) => Err(refusal_failure(ErrorClass::Http(status), &bytes)),
        }
    }
}
