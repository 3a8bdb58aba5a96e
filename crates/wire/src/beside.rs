//! What servers offer beside OpenAI's API.

use std::sync::Arc;

use bytes::Bytes;
use goodput_model::{ErrorClass, Failure, Stage};
use http::Method;

use crate::answer::excerpt;
use crate::client::Client;
use crate::endpoint::Endpoint;

/// Tells the server to forget its prefix cache (vLLM's and SGLang's way); false if it knows none.
pub async fn reset_prefix_cache(endpoint: &Arc<Endpoint>) -> Result<bool, Failure> {
    let client = Client::new(Arc::clone(endpoint));
    for name in ["reset_prefix_cache", "flush_cache"] {
        for path in places(&endpoint.url.route(name)) {
            let (status, bytes) = client.ask(Method::POST, &path, Bytes::new()).await?;
            match status {
                200..=299 => return Ok(true),
                404 | 405 | 501 => {}
                _ => {
                    let message = endpoint.secrets.scrub(excerpt(&bytes));
                    let class = ErrorClass::Http(status);
                    return Err(Failure { class, stage: Stage::Headers, message });
                }
            }
        }
    }
    Ok(false)
}

/// The server's metrics page, where it has one.
pub async fn metrics_page(endpoint: &Arc<Endpoint>) -> Result<Option<String>, Failure> {
    let client = Client::new(Arc::clone(endpoint));
    for path in places(&endpoint.url.route("metrics")) {
        let (status, bytes) = client.ask(Method::GET, &path, Bytes::new()).await?;
        if status == 200 {
            return Ok(Some(String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    Ok(None)
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
