//! [`PageReader`]: one page of a server, such as its metrics, fetched again and again over a
//! connection of its own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use goodput_clock::now;
use goodput_model::{ConnectionPolicy, ErrorClass, Failure, FailureStage, Http, Nanos, Stamps};
use http::{HeaderValue, Method, Uri, header};
use tokio::time::timeout;

use crate::connection::{HttpConnection, OutgoingRequest};
use crate::endpoint::{BaseUrl, Endpoint, EndpointError, EndpointSettings};
use crate::head::AnswerHead;
use crate::places::candidate_paths;
use crate::pool::{ConnectionPool, Lease};
use crate::secrets::{scrub_failure, scrub_secret_lines};

/// Most bytes of a page.
pub(crate) const PAGE_LIMIT: usize = 16 << 20;

/// Most bytes of an answer other than a page that are read to keep the connection.
const REFUSAL_LIMIT: usize = 64 << 10;

/// The forms of a page of metrics that are understood.
const ACCEPT: &str =
    "text/plain;version=0.0.4, application/openmetrics-text;version=1.0.0;q=0.9, */*;q=0.1";

/// A page as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedPage {
    /// Its text; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// When it was asked for.
    pub asked: Nanos,
    /// When its last byte arrived.
    pub answered: Nanos,
}

/// Why a page is missing. It quotes nothing that the server says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The connection failed.
    #[error("{}: {}", .0.class, .0.message)]
    Failed(Failure),
    /// It took too long.
    #[error("no complete answer within {} s", .0.as_secs_f64())]
    Late(Duration),
    /// Another status than 200.
    #[error("HTTP {0}")]
    Status(u16),
    /// There is more of it than anybody should read.
    #[error("larger than {} MiB", PAGE_LIMIT >> 20)]
    TooLarge,
    /// It is meant for people.
    #[error("a web page, not metrics")]
    WebPage,
    /// The request did not allow that.
    #[error("compressed, although the request did not allow it")]
    Compressed,
}

impl PageError {
    /// Whether the server says that the page does not exist, or not for us.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Status(401 | 403 | 404 | 405 | 410 | 501))
    }
}

/// Fetches one page. Follows no redirect. Lives on a current-thread runtime with a local task set,
/// like [`crate::Client`].
pub struct PageReader {
    pool: ConnectionPool,
    /// Where it may be, the likeliest first; only one once it was found.
    paths: Vec<String>,
}

/// A page that can be fetched; may be sent to the thread that does.
#[derive(Debug, Clone)]
pub struct PagePlace {
    endpoint: Arc<Endpoint>,
    paths: Vec<String>,
}

impl PagePlace {
    /// A page with this name next to the API of the target, requested with the same headers.
    pub fn next_to(target: &Endpoint, name: &str) -> Self {
        let paths = candidate_paths(&target.url.route(name));
        Self { endpoint: Arc::new(endpoint_for_pages(target.clone())), paths }
    }

    /// The page at the URL of `settings`. What these hold for the target goes to the target's own
    /// scheme, host and port, and to no other.
    pub fn from_url(
        url: &str,
        mut settings: EndpointSettings,
        target: &BaseUrl,
    ) -> Result<Self, EndpointError> {
        if settings.url.origin() != target.origin() {
            settings.api_key = None;
            settings.headers = Vec::new();
            settings.http = Http::Http1;
        }
        let endpoint = Endpoint::new(&settings)?;
        // What was a base URL is a URI. Its path is taken as it is.
        let uri: Uri = url.parse().unwrap_or_default();
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { endpoint: Arc::new(endpoint_for_pages(endpoint)), paths: vec![path] })
    }

    /// Where it is, or the first place where it may be, without secrets.
    pub fn display_url(&self) -> String {
        shown_urls(&self.endpoint, &self.paths)
    }

    /// Ready to ask.
    pub fn to_reader(&self) -> PageReader {
        PageReader {
            pool: ConnectionPool::new(Arc::clone(&self.endpoint)),
            paths: self.paths.clone(),
        }
    }
}

impl PageReader {
    /// Where it was found, or may be, without secrets.
    pub fn display_url(&self) -> String {
        shown_urls(self.pool.endpoint(), &self.paths)
    }

    /// The page as it is now, if all of it comes within the limit.
    pub async fn read(&mut self, limit: Duration) -> Result<FetchedPage, PageError> {
        let found = timeout(limit, self.find_place()).await;
        let (page, path) = found.map_err(|_| PageError::Late(limit))??;
        if let Some(path) = path {
            self.paths = vec![path];
        }
        Ok(page)
    }

    /// Tries the places; the error is that of the first. Which path it was, where that was open.
    async fn find_place(&self) -> Result<(FetchedPage, Option<String>), PageError> {
        let mut first = None;
        for path in &self.paths {
            let is_open = self.paths.len() > 1;
            match self.fetch(path).await {
                Ok(page) => return Ok((page, is_open.then(|| path.clone()))),
                Err(error) if error.is_absence() => drop(first.get_or_insert(error)),
                // Some servers have it as a folder. This is a place of our own, not one we are sent to.
                Err(error @ PageError::Status(301 | 302 | 307 | 308)) => {
                    let folder = as_folder(path);
                    match self.fetch(&folder).await {
                        Ok(page) => return Ok((page, Some(folder))),
                        Err(_) => drop(first.get_or_insert(error)),
                    }
                }
                Err(error) => return Err(first.unwrap_or(error)),
            }
        }
        Err(first.unwrap_or(PageError::Status(404)))
    }

    /// One place. A connection that was kept may have been closed meanwhile; then a new one is tried.
    async fn fetch(&self, path: &str) -> Result<FetchedPage, PageError> {
        let asked = now();
        let mut lease = self.pool.lease_connection().await.map_err(page_error)?;
        loop {
            let was_reused = lease.opened.is_none();
            let endpoint = self.pool.endpoint();
            let (method, body) = (Method::GET, Bytes::new());
            let request = OutgoingRequest {
                endpoint,
                method,
                path,
                body,
                id: None,
                session: None,
                trace: None,
            };
            let head = lease.connection.request(request, &mut Stamps::default()).await;
            match head.map_err(|trouble| trouble.into_failure(FailureStage::Headers)) {
                Ok(head) => return self.receive_page(lease, &head, asked).await,
                Err(failure) if failure.class == ErrorClass::Closed && was_reused => {
                    lease = self.pool.open().await.map_err(page_error)?;
                }
                Err(failure) => return Err(page_error(failure)),
            }
        }
    }

    async fn receive_page(
        &self,
        mut lease: Lease,
        head: &AnswerHead,
        asked: Nanos,
    ) -> Result<FetchedPage, PageError> {
        let is_web_page = head.content_type.starts_with("text/html");
        let refusal = match head.status {
            200 if head.content_encoding.is_some() => Some(PageError::Compressed),
            200 if is_web_page => Some(PageError::WebPage),
            200 if head.content_length.is_some_and(|length| length > PAGE_LIMIT as u64) => {
                return Err(PageError::TooLarge);
            }
            200 => None,
            status => Some(PageError::Status(status)),
        };
        let limit = if refusal.is_some() { REFUSAL_LIMIT } else { PAGE_LIMIT };
        let body = read_bounded(&mut lease.connection, limit).await;
        let answered = lease.connection.stamps.last_read.get().at.max(asked);
        if matches!(body, Ok(Some(_))) {
            self.pool.return_connection(lease.connection);
        }
        match (refusal, body) {
            (Some(refusal), _) => Err(refusal),
            (None, Err(failure)) => Err(page_error(failure)),
            (None, Ok(None)) => Err(PageError::TooLarge),
            (None, Ok(Some(bytes))) => {
                let text = String::from_utf8(bytes)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                Ok(FetchedPage { text: scrub_secret_lines(text), asked, answered })
            }
        }
    }
}

fn page_error(failure: Failure) -> PageError {
    PageError::Failed(scrub_failure(failure))
}

/// The whole body; `None` where it is larger than the limit, and then the rest is left unread.
async fn read_bounded(
    connection: &mut HttpConnection,
    limit: usize,
) -> Result<Option<Vec<u8>>, Failure> {
    let mut bytes = Vec::new();
    loop {
        let data = connection
            .next_data()
            .await
            .map_err(|trouble| trouble.into_failure(FailureStage::Stream))?;
        let Some(data) = data else { return Ok(Some(bytes)) };
        if bytes.len() + data.len() > limit {
            return Ok(None);
        }
        bytes.extend_from_slice(&data);
    }
}

/// The same endpoint for pages: one connection that is kept.
fn endpoint_for_pages(mut endpoint: Endpoint) -> Endpoint {
    endpoint.connections = ConnectionPolicy::Reuse;
    endpoint.headers.remove(header::CONTENT_TYPE);
    endpoint.headers.insert(header::ACCEPT, HeaderValue::from_static(ACCEPT));
    endpoint
}

fn as_folder(path: &str) -> String {
    match path.split_once('?') {
        Some((path, query)) => format!("{}/?{query}", path.trim_end_matches('/')),
        None => format!("{}/", path.trim_end_matches('/')),
    }
}

fn shown_urls(endpoint: &Endpoint, paths: &[String]) -> String {
    let path = paths.first().map_or("/", String::as_str);
    endpoint.url.shown_at(path)
}

#[cfg(test)]
mod tests {
    use goodput_model::Header;

    use super::*;

    fn settings(url: &str) -> EndpointSettings {
        EndpointSettings {
            http: Http::Http2,
            connections: ConnectionPolicy::PerRequest,
            api_key: Some("sesame-sesame".to_owned()),
            headers: vec![Header { name: "x-team".into(), value: "secret-team".into() }],
            ..EndpointSettings::new(url.parse().unwrap())
        }
    }

    #[test]
    fn secrets_go_to_the_target_alone() {
        let target: BaseUrl = "http://127.0.0.1:8000/v1".parse().unwrap();
        let cases = [
            ("http://127.0.0.1:8000/metrics/", true),
            ("http://127.0.0.1:8001/metrics", false),
            ("https://127.0.0.1:8000/metrics", false),
            ("http://127.0.0.2:8000/metrics", false),
        ];
        for (url, is_known) in cases {
            let place = PagePlace::from_url(url, settings(url), &target).unwrap();
            let headers = &place.endpoint.headers;
            assert_eq!(headers.contains_key(header::AUTHORIZATION), is_known, "{url}");
            assert_eq!(headers.contains_key("x-team"), is_known, "{url}");
            assert_eq!(place.endpoint.http == Http::Http2, is_known, "{url}");
            assert_eq!(headers[header::ACCEPT], ACCEPT);
            assert_eq!(place.endpoint.connections, ConnectionPolicy::Reuse);
        }
        let url = "http://127.0.0.1:9/a/metrics/?token=hunter22&b";
        let place = PagePlace::from_url(url, settings(url), &target).unwrap();
        assert_eq!(place.paths, ["/a/metrics/?token=hunter22&b"]);
        assert_eq!(
            place.display_url(),
            "http://127.0.0.1:9/a/metrics/?token=[redacted]&[redacted]"
        );
        let endpoint = Endpoint::new(&settings("http://127.0.0.1:8000/v1?k=hunter22")).unwrap();
        let place = PagePlace::next_to(&endpoint, "metrics");
        assert_eq!(place.display_url(), "http://127.0.0.1:8000/metrics?k=[redacted]");
        assert_eq!(as_folder("/metrics?k=1"), "/metrics/?k=1");
    }
}
