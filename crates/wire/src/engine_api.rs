//! Endpoints that servers offer in addition to OpenAI's API.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use goodput_model::{ErrorClass, Failure};
use http::Method;

use crate::answer::refusal_failure;
use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::page::{PageError, PagePlace};
use crate::places::candidate_paths;

/// Tells the server to forget its prefix cache (vLLM's and SGLang's way); false if it knows none.
pub async fn reset_prefix_cache(endpoint: &Arc<Endpoint>) -> Result<bool, Failure> {
    post_to_first(endpoint, &["reset_prefix_cache", "flush_cache"]).await
}

/// Posts to the first of these names that the server knows; false if it knows none.
pub(crate) async fn post_to_first(
    endpoint: &Arc<Endpoint>,
    names: &[&str],
) -> Result<bool, Failure> {
    let client = Client::new(Arc::clone(endpoint));
    for name in names {
        for path in candidate_paths(&endpoint.url.route(name)) {
            let (status, bytes) =
                client.send_outside_load(Method::POST, &path, Bytes::new()).await?;
            match status {
                200..=299 => return Ok(true),
                404 | 405 | 501 => {}
                _ => return Err(refusal_failure(ErrorClass::Http(status), &bytes)),
            }
        }
    }
    Ok(false)
}

/// The target's page of metrics, if all of it comes within the limit; `None` where it has none.
pub async fn fetch_metrics_page(
    endpoint: &Arc<Endpoint>,
    limit: Duration,
) -> Result<Option<String>, PageError> {
    match PagePlace::next_to(endpoint, "metrics").to_reader().read(limit).await {
        Ok(page) => Ok(Some(page.text)),
        Err(error) if error.is_absence() => Ok(None),
        Err(error) => Err(error),
    }
}
