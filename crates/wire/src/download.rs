//! Fetching a file over HTTP: tokenizers and datasets, before a run.

use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use goodput_model::{ConnectionPolicy, Failure, FailureStage, Stamps};
use http::{HeaderValue, Method, Uri, header};
use tokio::time::timeout;

use crate::answer::clip_bytes;
use crate::connection::{HttpConnection, OutgoingRequest};
use crate::endpoint::{BaseUrl, Endpoint, EndpointError, EndpointSettings, UrlError};
use crate::head::{AnswerHead, TransportError};
use crate::secrets::scrub_secrets;

/// Redirects that are followed.
const MOST_REDIRECTS: usize = 5;

/// How long a connection may take to open.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How long nothing may come.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);

/// Most bytes of a refusal that are looked at.
const REFUSAL_BYTES: usize = 4 << 10;

/// Most characters of foreign text that are shown.
const SHOWN: usize = 80;

/// Why a file could not be fetched. URLs are shown without the values of their queries.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// It cannot be fetched from there.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The name has no address, or TLS cannot be used.
    #[error("{url}: {error}")]
    Endpoint {
        /// From where.
        url: String,
        /// Why.
        error: EndpointError,
    },
    /// The connection failed, or the file is not whole.
    #[error("{url}: {}: {}", failure.class, failure.message)]
    Failed {
        /// From where.
        url: String,
        /// How.
        failure: Failure,
    },
    /// The server was silent for too long.
    #[error("{url}: no data for {} s", waited.as_secs())]
    Silent {
        /// From where.
        url: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// Another status than 200.
    #[error("{url}: HTTP {status}: {excerpt}")]
    Status {
        /// From where.
        url: String,
        /// The status.
        status: u16,
        /// What the server says about it.
        excerpt: String,
    },
    /// A redirect that is not followed.
    #[error("{url}: redirected {reason}")]
    Redirect {
        /// From where.
        url: String,
        /// Why not.
        reason: String,
    },
    /// The file is larger than wanted.
    #[error("{url}: larger than {limit} bytes")]
    TooLarge {
        /// From where.
        url: String,
        /// The limit.
        limit: u64,
    },
    /// It came, but could not be written.
    #[error("cannot write the download from {url}: {error}")]
    Write {
        /// From where.
        url: String,
        /// Why.
        error: std::io::Error,
    },
}

/// Fetches a file of at most `limit` bytes and writes it as it comes: how many bytes it has. The
/// token goes to the host that the URL names, and to no other that it redirects to.
///
/// Runs on a current-thread runtime with a local task set.
pub async fn download(
    url: &str,
    token: Option<&str>,
    to: &mut dyn Write,
    limit: u64,
) -> Result<u64, DownloadError> {
    let mut place = DownloadUrl::new(url, token)?;
    for _ in 0..=MOST_REDIRECTS {
        let mut connection = place.connect().await?;
        let head = place.send_request(&mut connection).await?;
        match (head.status, head.location.as_deref()) {
            (301 | 302 | 303 | 307 | 308, Some(location)) => {
                place = place.follow_redirect(location)?;
            }
            (200, _) => return place.receive_body(&mut connection, &head, to, limit).await,
            (status, _) => return Err(place.refusal_error(&mut connection, status).await),
        }
    }
    Err(place.redirect_error(format!("more than {MOST_REDIRECTS} times")))
}

/// Where a file, or a redirect to it, is.
struct DownloadUrl {
    uri: Uri,
    base: BaseUrl,
    endpoint: Endpoint,
    token: Option<String>,
}

impl DownloadUrl {
    fn new(url: &str, token: Option<&str>) -> Result<Self, DownloadError> {
        let base: BaseUrl = url.parse()?;
        // What was a base URL above is a URI.
        let uri: Uri = url.parse().unwrap_or_default();
        let settings = EndpointSettings {
            stream: false,
            connections: ConnectionPolicy::PerRequest,
            api_key: token.map(str::to_owned),
            ..EndpointSettings::new(base.clone())
        };
        let mut endpoint = Endpoint::new(&settings)
            .map_err(|error| DownloadError::Endpoint { url: base.shown(), error })?;
        endpoint.headers.remove(header::CONTENT_TYPE);
        endpoint.headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        Ok(Self { uri, base, endpoint, token: token.map(str::to_owned) })
    }

    async fn connect(&self) -> Result<HttpConnection, DownloadError> {
        let opening = HttpConnection::open(&self.endpoint, 0);
        let opened = timeout(CONNECT_LIMIT, opening).await;
        let (connection, _) = opened
            .map_err(|_| self.silence_error(CONNECT_LIMIT))?
            .map_err(|failure| self.failure_error(failure))?;
        Ok(connection)
    }

    async fn send_request(
        &self,
        connection: &mut HttpConnection,
    ) -> Result<AnswerHead, DownloadError> {
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let (endpoint, method, body) = (&self.endpoint, Method::GET, Bytes::new());
        let (id, session, trace) = (None, None, None);
        let request = OutgoingRequest { endpoint, method, path, body, id, session, trace };
        let mut stamps = Stamps::default();
        let asking = connection.request(request, &mut stamps);
        let head =
            timeout(SILENCE_LIMIT, asking).await.map_err(|_| self.silence_error(SILENCE_LIMIT))?;
        head.map_err(|trouble| self.failure_error(trouble.into_failure(FailureStage::Headers)))
    }

    async fn receive_body(
        &self,
        connection: &mut HttpConnection,
        head: &AnswerHead,
        to: &mut dyn Write,
        limit: u64,
    ) -> Result<u64, DownloadError> {
        if let Some(coding) = &head.content_encoding {
            let trouble = TransportError::not_http(&format!(
                "compressed ({coding}), although the request did not allow it"
            ));
            return Err(self.failure_error(trouble.into_failure(FailureStage::Stream)));
        }
        let mut length = 0;
        loop {
            let data = timeout(SILENCE_LIMIT, connection.next_data());
            let data = data.await.map_err(|_| self.silence_error(SILENCE_LIMIT))?;
            let data = data.map_err(|trouble| {
                self.failure_error(trouble.into_failure(FailureStage::Stream))
            })?;
            let Some(bytes) = data else { return Ok(length) };
            length += bytes.len() as u64;
            if length > limit {
                return Err(DownloadError::TooLarge { url: self.base.shown(), limit });
            }
            let written = to.write_all(&bytes);
            written.map_err(|error| DownloadError::Write { url: self.base.shown(), error })?;
        }
    }

    /// Where a redirect leads. The token stays behind when the host, the port or the scheme changes.
    fn follow_redirect(&self, location: &str) -> Result<Self, DownloadError> {
        let url = resolve_location(&self.uri, location);
        let base: BaseUrl = url.parse()?;
        if self.base.is_https && !base.is_https {
            return Err(self.redirect_error("from https to http".to_owned()));
        }
        let origin = |base: &BaseUrl| (base.is_https, base.host.to_ascii_lowercase(), base.port);
        let token = self.token.as_deref().filter(|_| origin(&base) == origin(&self.base));
        Self::new(&url, token)
    }

    /// A status that is neither a file nor a redirect, with what the server says about it.
    async fn refusal_error(&self, connection: &mut HttpConnection, status: u16) -> DownloadError {
        let mut body = Vec::new();
        while body.len() < REFUSAL_BYTES {
            let data = timeout(SILENCE_LIMIT, connection.next_data());
            let Ok(Ok(Some(bytes))) = data.await else { break };
            body.extend_from_slice(&bytes);
        }
        let excerpt = safe_excerpt(clip_bytes(&body));
        DownloadError::Status { url: self.base.shown(), status, excerpt }
    }

    fn failure_error(&self, failure: Failure) -> DownloadError {
        let failure = Failure { message: safe_excerpt(failure.message), ..failure };
        DownloadError::Failed { url: self.base.shown(), failure }
    }

    fn silence_error(&self, waited: Duration) -> DownloadError {
        DownloadError::Silent { url: self.base.shown(), waited }
    }

    fn redirect_error(&self, reason: String) -> DownloadError {
        DownloadError::Redirect { url: self.base.shown(), reason }
    }
}

/// The beginning of foreign text, without secrets and control characters.
fn safe_excerpt(text: String) -> String {
    scrub_secrets(text).chars().take(SHOWN).flat_map(char::escape_debug).collect()
}

/// What a `Location` means where it was found.
fn resolve_location(from: &Uri, location: &str) -> String {
    let is_absolute = location.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    if is_absolute {
        return location.to_owned();
    }
    let scheme = from.scheme_str().unwrap_or("http");
    let authority = from.authority().map_or("", |authority| authority.as_str());
    if let Some(other) = location.strip_prefix("//") {
        return format!("{scheme}://{other}");
    }
    let (path, query) = location.find('?').map_or((location, ""), |at| location.split_at(at));
    let path = match path.as_bytes().first() {
        None => from.path().to_owned(),
        Some(b'/') => path.to_owned(),
        Some(_) => {
            let folder = from.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{path}")
        }
    };
    format!("{scheme}://{authority}{}{query}", remove_dot_segments(&path))
}

/// A path whose `.` and `..` have been followed.
fn remove_dot_segments(path: &str) -> String {
    let mut kept = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            other => kept.push(other),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_relative_to_where_they_were_found() {
        let from: Uri = "https://hub.test:8443/a/b/file?x=1".parse().unwrap();
        for (location, url) in [
            ("https://cdn.test/f?sig=1", "https://cdn.test/f?sig=1"),
            ("//cdn.test/f", "https://cdn.test/f"),
            ("/f", "https://hub.test:8443/f"),
            ("/f?next=http://x", "https://hub.test:8443/f?next=http://x"),
            ("f", "https://hub.test:8443/a/b/f"),
            ("../f?a=../b", "https://hub.test:8443/a/f?a=../b"),
            ("./../../../c/", "https://hub.test:8443/c/"),
            ("?y=2", "https://hub.test:8443/a/b/file?y=2"),
        ] {
            assert_eq!(resolve_location(&from, location), url);
        }
    }
}
