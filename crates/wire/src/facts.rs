//! Small JSON pages next to the API, on which servers state what they are.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use goodput_model::Stamps;
use http::Method;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::connection::{HttpConnection, OutgoingRequest};
use crate::endpoint::Endpoint;
use crate::places::candidate_paths;
use crate::secrets;

/// How long one page is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Most bytes of a page.
const MOST_BYTES: usize = 1 << 20;

/// What is asked for: a name for each page, and the paths at which it may be, the first that answers
/// wins. They are read only: some engines do things on a GET of other paths.
const PAGES: [(&str, &[&str]); 6] = [
    // vLLM, TensorRT-LLM, the mock.
    ("version", &["version"]),
    // SGLang under both names; vLLM in its development mode, in words of ours only as JSON.
    ("server_info", &["server_info?config_format=json", "get_server_info"]),
    // SGLang.
    ("model_info", &["get_model_info"]),
    // TGI.
    ("info", &["info"]),
    // llama.cpp.
    ("props", &["props"]),
    ("models", &["models"]),
];

/// A page on which a server speaks of itself. Foreign text.
#[derive(Debug, Clone, PartialEq)]
pub struct FactsPage {
    /// `version`, `server_info`, `model_info`, `info`, `props` or `models`.
    pub name: &'static str,
    /// What stands there, without what we have sent as a secret.
    pub body: Value,
}

/// Asks for all of them at once. What does not answer in a second, with status 200, with JSON, or is
/// larger than a mebibyte is not there.
///
/// Runs on a current-thread runtime with a local task set.
pub async fn fetch_facts_pages(endpoint: &Arc<Endpoint>) -> Vec<FactsPage> {
    let mut asking = JoinSet::new();
    for (place, (name, routes)) in PAGES.into_iter().enumerate() {
        let endpoint = Arc::clone(endpoint);
        asking.spawn_local(async move {
            for route in routes {
                let path = page_path(&endpoint, route);
                // A server that is silent once is not asked again.
                let body = timeout(PATIENCE, fetch_json(&endpoint, &path)).await.ok()?;
                if let Some(mut body) = body {
                    scrub_secrets(&mut body);
                    return Some((place, FactsPage { name, body }));
                }
            }
            None
        });
    }
    let mut pages = Vec::new();
    while let Some(asked) = asking.join_next().await {
        pages.extend(asked.ok().flatten());
    }
    pages.sort_by_key(|(place, _)| *place);
    pages.into_iter().map(|(_, page)| page).collect()
}

/// Where a page is: the list of models below the version segment, the others next to it.
fn page_path(endpoint: &Endpoint, route: &str) -> String {
    let (name, query) = route.split_once('?').unwrap_or((route, ""));
    let route = endpoint.url.route(name);
    let sibling = (name != "models").then(|| candidate_paths(&route).into_iter().next()).flatten();
    let path = sibling.unwrap_or(route);
    match query {
        "" => path,
        query if path.contains('?') => format!("{path}&{query}"),
        query => format!("{path}?{query}"),
    }
}

async fn fetch_json(endpoint: &Endpoint, path: &str) -> Option<Value> {
    let (mut connection, _) = HttpConnection::open(endpoint, 0).await.ok()?;
    let body = Bytes::new();
    let request = OutgoingRequest {
        endpoint,
        method: Method::GET,
        path,
        body,
        id: None,
        session: None,
        trace: None,
    };
    let head = connection.request(request, &mut Stamps::default()).await.ok()?;
    if head.status != 200 || head.content_encoding.is_some() {
        return None;
    }
    let mut bytes = Vec::new();
    while let Some(piece) = connection.next_data().await.ok()? {
        if bytes.len() + piece.len() > MOST_BYTES {
            return None;
        }
        bytes.extend_from_slice(&piece);
    }
    serde_json::from_slice(&bytes).ok()
}

/// Takes our own secrets out of every text.
fn scrub_secrets(value: &mut Value) {
    match value {
        Value::String(text) => *text = secrets::scrub_secrets(std::mem::take(text)),
        Value::Array(all) => all.iter_mut().for_each(scrub_secrets),
        Value::Object(all) => {
            all.retain(|name, _| secrets::scrub_secrets(name.clone()) == *name);
            all.values_mut().for_each(scrub_secrets);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
