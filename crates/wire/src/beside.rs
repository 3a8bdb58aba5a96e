//! What servers offer beside OpenAI's API.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use goodput_model::{ErrorClass, Failure};
use http::Method;

use crate::answer::refused;
use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::page::{PageError, PagePlace};

/// Tells the server to forget its prefix cache (vLLM's and SGLang's way); false if it knows none.
pub async fn reset_prefix_cache(endpoint: &Arc<Endpoint>) -> Result<bool, Failure> {
    tell(endpoint, &["reset_prefix_cache", "flush_cache"]).await
}

/// Posts to the first of these names that the server knows; false if it knows none.
pub(crate) async fn tell(endpoint: &Arc<Endpoint>, names: &[&str]) -> Result<bool, Failure> {
    let client = Client::new(Arc::clone(endpoint));
    for name in names {
        for path in places(&endpoint.url.route(name)) {
            let (status, bytes) = client.ask(Method::POST, &path, Bytes::new()).await?;
            match status {
                200..=299 => return Ok(true),
                404 | 405 | 501 => {}
                _ => return Err(refused(ErrorClass::Http(status), &bytes)),
            }
        }
    }
    Ok(false)
}

/// The target's page of metrics, if all of it comes within the limit; `None` where it has none.
pub async fn metrics_page(
    endpoint: &Arc<Endpoint>,
    limit: Duration,
) -> Result<Option<String>, PageError> {
    match PagePlace::beside(endpoint, "metrics").reader().read(limit).await {
        Ok(page) => Ok(Some(page.text)),
        Err(error) if error.is_absence() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where something that is not part of OpenAI's API may be, the likeliest first: beside the version
/// segment of the API's path, below it, and at the root of the server.
pub(crate) fn places(route: &str) -> Vec<String> {
    let (path, query) = route.split_once('?').map_or((route, None), |(p, q)| (p, Some(q)));
    let (versioned, name) = path.rsplit_once('/').unwrap_or_default();
    let (prefix, last) = versioned.rsplit_once('/').unwrap_or_default();
    let is_version = last.strip_prefix('v').is_some_and(|n| n.parse::<u32>().is_ok());
    let beside = is_version.then(|| format!("{prefix}/{name}"));
    let mut paths: Vec<String> = Vec::new();
    for candidate in beside.into_iter().chain([path.to_owned(), format!("/{name}")]) {
        let candidate = match query {
            Some(query) => format!("{candidate}?{query}"),
            None => candidate,
        };
        if !paths.contains(&candidate) {
            paths.push(candidate);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_tried_once() {
        let cases: [(&str, &[&str]); 4] = [
            ("/v1/tokenize", &["/tokenize", "/v1/tokenize"]),
            ("/llm/v1/tokenize", &["/llm/tokenize", "/llm/v1/tokenize", "/tokenize"]),
            ("/v1beta/openai/tokenize", &["/v1beta/openai/tokenize", "/tokenize"]),
            ("/v1/tokenize?k=1", &["/tokenize?k=1", "/v1/tokenize?k=1"]),
        ];
        for (route, expected) in cases {
            assert_eq!(places(route), expected, "{route}");
        }
    }
}
