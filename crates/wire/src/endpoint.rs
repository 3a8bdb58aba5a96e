//! [`Endpoint`]: where requests go and with which headers, settled before the first one.
//!
//! Names are resolved here, once: resolution during a run would be a confounder.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

use goodput_model::{
    Api, ConnectionPolicy, Header, Http, NameLookup, Nanos, query_names, url_without_secrets,
};
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

use crate::allowance::AnswerMemory;
use crate::resolve::ResolvedHost;
use crate::secrets;
use crate::tls::{self, TlsError, TlsSettings};

/// Values of one query that are kept secret, at most: a URL may come from a redirect.
const MOST_VALUES: usize = 64;

/// What to know about the target before an [`Endpoint`] can be built.
#[derive(Debug, Clone)]
pub struct EndpointSettings {
    /// The base URL.
    pub url: BaseUrl,
    /// Which API.
    pub api: Api,
    /// Whether answers are streamed.
    pub stream: bool,
    /// The HTTP version.
    pub http: Http,
    /// Whether connections are kept.
    pub connections: ConnectionPolicy,
    /// The API key, if there is one.
    pub api_key: Option<String>,
    /// Extra headers.
    pub headers: Vec<Header>,
    /// PEM text with additional trusted certificates.
    pub cacert: Option<Vec<u8>>,
    /// Whether certificates go unchecked.
    pub insecure: bool,
    /// Whether the text of answers is kept.
    pub keep_text: bool,
}

impl EndpointSettings {
    /// The usual way to speak with the target at this URL: chat, streamed over HTTP/1.1 on
    /// connections that are kept, without a key.
    pub fn new(url: BaseUrl) -> Self {
        Self {
            url,
            api: Api::Chat,
            stream: true,
            http: Http::Http1,
            connections: ConnectionPolicy::Reuse,
            api_key: None,
            headers: Vec::new(),
            cacert: None,
            insecure: false,
            keep_text: false,
        }
    }
}

/// The target's base URL, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    pub(crate) is_https: bool,
    /// Without the brackets of an IPv6 literal.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// `host:port` as it stands in the URL.
    pub(crate) authority: String,
    /// Path without a trailing slash.
    path: String,
    query: Option<String>,
}

/// A URL that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{url}` is not a target: {reason}")]
pub struct UrlError {
    /// As it was written, without secrets.
    pub url: String,
    /// What is wrong with it.
    pub reason: String,
    /// What to write instead.
    pub hint: String,
}

impl FromStr for BaseUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let wrong = |reason: &str, hint: String| UrlError {
            url: url_without_secrets(text),
            reason: reason.to_owned(),
            hint,
        };
        let example = || "a target looks like http://localhost:8000 or mock".to_owned();
        let Some((scheme, _)) = text.split_once("://") else {
            let (scheme, rest) = ["http", "https"]
                .iter()
                .find_map(|scheme| Some((*scheme, text.strip_prefix(scheme)?.strip_prefix(':')?)))
                .unwrap_or(("http", text));
            let rest = url_without_secrets(rest.trim_start_matches('/'));
            let guess = format!("write {scheme}://{rest} if that is the server");
            return Err(wrong("it does not begin with http:// or https://", guess));
        };
        let uri: Uri = text.parse().map_err(|e| wrong(&format!("{e}"), example()))?;
        let is_https = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("only http and https are supported", example())),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it names no host", example()))?;
        if authority.as_str().contains('@') {
            let hint = "pass credentials with --api-key-env or --header".to_owned();
            return Err(wrong("it contains credentials", hint));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(wrong("it names no host", example()));
        }
        let has_port = authority.as_str().len() > authority.host().len();
        if has_port && authority.port_u16().is_none_or(|port| port == 0) {
            return Err(wrong("its port is not between 1 and 65535", example()));
        }
        Ok(Self {
            is_https,
            host,
            port: authority.port_u16().unwrap_or(if is_https { 443 } else { 80 }),
            authority: authority.as_str().to_owned(),
            path: uri.path().trim_end_matches('/').to_owned(),
            query: uri.query().map(str::to_owned),
        })
    }
}

impl BaseUrl {
    /// The URL for people and files: query values are hidden, for they may be keys.
    pub fn shown(&self) -> String {
        let query = self.query.as_deref().map_or_else(String::new, |query| format!("?{query}"));
        self.shown_at(&format!("{}{query}", self.path))
    }

    /// Another path (and query) of the same server, as [`BaseUrl::shown`] shows it.
    pub(crate) fn shown_at(&self, path: &str) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        let (path, query) = path.split_once('?').map_or((path, None), |(p, q)| (p, Some(q)));
        let query = query.map_or_else(String::new, |query| format!("?{}", query_names(query)));
        format!("{scheme}://{}{path}{query}", self.authority)
    }

    /// Whether it is spoken to under TLS.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// `host:port` as it stands in the URL.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Its path without a trailing slash, and its query.
    pub fn path_and_query(&self) -> (&str, Option<&str>) {
        (&self.path, self.query.as_deref())
    }

    /// The values of its query, as many as are looked for.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = String> {
        let pairs = self.query.iter().flat_map(|query| query.split('&')).take(MOST_VALUES);
        // A plus may have been a blank, which is not looked at.
        pairs.flat_map(|pair| {
            let value = pair.split_once('=').map_or(pair, |(_, value)| value);
            [value.to_owned(), value.replace('+', " ")]
        })
    }

    /// Who answers: scheme, host and port.
    pub(crate) fn origin(&self) -> (bool, String, u16) {
        (self.is_https, self.host.to_ascii_lowercase(), self.port)
    }

    /// Path (and query) of an API route such as `chat/completions`.
    ///
    /// A base with a version segment (`/v1`) is taken as it is, a full route too; any other
    /// prefix gets `/v1`.
    pub(crate) fn route(&self, route: &str) -> String {
        let last = self.path.rsplit('/').next().unwrap_or_default();
        let is_version = last.len() > 1
            && last.starts_with('v')
            && last[1..].bytes().all(|byte| byte.is_ascii_digit());
        let base = ["/chat/completions", "/completions"]
            .iter()
            .find_map(|full| self.path.strip_suffix(full));
        let path = match base {
            Some(_) if self.path.ends_with(&format!("/{route}")) => self.path.clone(),
            Some(base) => format!("{base}/{route}"),
            None if is_version => format!("{}/{route}", self.path),
            None => format!("{}/v1/{route}", self.path),
        };
        self.query.as_ref().map_or(path.clone(), |query| format!("{path}?{query}"))
    }

    /// Its own path and query, or this path where it has none.
    pub(crate) fn path_or(&self, path: &str) -> String {
        let path = if self.path.is_empty() { path } else { &self.path };
        self.query.as_ref().map_or(path.to_owned(), |query| format!("{path}?{query}"))
    }

    /// Looks up its host.
    pub(crate) fn resolve(&self) -> Result<ResolvedHost, EndpointError> {
        let dns = |error| EndpointError::Dns { host: self.host.clone(), error };
        ResolvedHost::resolve(&self.host, self.port).map_err(dns)
    }

    /// Host name or address, without brackets, and port.
    pub fn host(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// The API that a full route names, if the URL is one.
    pub fn names_api(&self) -> Option<Api> {
        if self.path.ends_with("/chat/completions") {
            Some(Api::Chat)
        } else if self.path.ends_with("/completions") {
            Some(Api::Completions)
        } else {
            None
        }
    }
}

/// What keeps an endpoint from being used at all.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The name has no address.
    #[error("cannot resolve `{host}`: {error}")]
    Dns {
        /// The name.
        host: String,
        /// What the resolver said.
        error: std::io::Error,
    },
    /// A header that HTTP does not allow.
    #[error("header `{name}` is not allowed: {reason}")]
    Header {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// The certificates could not be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Where requests go. Shared by all workers.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub(crate) url: BaseUrl,
    pub(crate) addresses: Vec<SocketAddr>,
    lookup: NameLookup,
    pub(crate) route: String,
    pub(crate) headers: HeaderMap,
    pub(crate) http: Http,
    pub(crate) connections: ConnectionPolicy,
    pub(crate) tls: Option<Arc<TlsSettings>>,
    pub(crate) keep_text: bool,
    /// Of all answers together.
    pub(crate) memory: AnswerMemory,
    /// What the ids of this run's requests and sessions begin with.
    run: String,
    /// Whether the user sets `x-request-id`.
    has_ids: bool,
}

/// A header that tells sessions apart, for gateways that keep each of them on one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionHeader(HeaderName);

impl FromStr for SessionHeader {
    type Err = EndpointError;

    fn from_str(name: &str) -> Result<Self, EndpointError> {
        let parsed = header_name(name)?;
        if [header::HOST, header::AUTHORIZATION, REQUEST_ID, TRACEPARENT].contains(&parsed) {
            let reason = "goodput sets it in every request".to_owned();
            return Err(EndpointError::Header { name: name.to_owned(), reason });
        }
        Ok(Self(parsed))
    }
}

/// A [`SessionHeader`] with the value of one session.
#[derive(Debug, Clone)]
pub struct SessionTag {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
}

/// Carries the id of a request.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Carries the ids of a request that is traced (W3C Trace Context).
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

impl Endpoint {
    /// The id of request `index`, unlike that of any other run: engines refuse an id that is in
    /// use, and logs of two runs may lie side by side.
    pub fn request_id(&self, index: u64) -> Option<String> {
        (!self.has_ids).then(|| format!("{}-{index}", self.run))
    }

    /// What marks every request of this session, unlike any session of another run.
    pub fn session_tag(&self, header: &SessionHeader, session: u64) -> Option<SessionTag> {
        let value = HeaderValue::try_from(format!("{}-s{session}", self.run)).ok()?;
        Some(SessionTag { name: header.0.clone(), value })
    }

    /// Resolves the name and prepares headers and TLS.
    pub fn new(settings: &EndpointSettings) -> Result<Self, EndpointError> {
        let url = settings.url.clone();
        let ResolvedHost { addresses, lookup } = url.resolve()?;
        let tls = url
            .is_https
            .then(|| {
                tls::tls_settings(
                    &url.host,
                    settings.http,
                    settings.cacert.as_deref(),
                    settings.insecure,
                )
            })
            .transpose()?
            .map(Arc::new);
        let route = url.route(match settings.api {
            Api::Chat => "chat/completions",
            Api::Completions => "completions",
        });
        secrets::remember_secrets(settings.api_key.iter().cloned().chain(url.secrets()));
        // The whole value and each word of it: a server may quote `Bearer KEY`, or the key alone.
        secrets::remember_secrets(settings.headers.iter().flat_map(|Header { value, .. }| {
            let words =
                value.split(|letter: char| letter.is_whitespace() || "=;,:\"".contains(letter));
            std::iter::once(value.clone()).chain(words.map(str::to_owned))
        }));
        let has_ids = settings.headers.iter().any(|h| h.name.eq_ignore_ascii_case("x-request-id"));
        let (_, Nanos(unix)) = goodput_clock::now_and_unix();
        Ok(Self {
            // Microseconds: two runs that begin in one millisecond still differ.
            run: format!("goodput-{:x}", unix / 1_000),
            has_ids,
            memory: AnswerMemory::new(),
            headers: headers(settings)?,
            addresses,
            lookup,
            route,
            tls,
            http: settings.http,
            connections: settings.connections,
            keep_text: settings.keep_text,
            url,
        })
    }

    /// The base URL.
    pub fn url(&self) -> &BaseUrl {
        &self.url
    }

    /// The addresses that the name stands for, in the order they are tried.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What it took to find them.
    pub fn lookup(&self) -> NameLookup {
        self.lookup
    }

    /// The path that requests are sent to, for people: without the query.
    pub fn route(&self) -> &str {
        self.route.split('?').next().unwrap_or_default()
    }

    /// Puts the address that answered first, so that every connection goes to one family.
    pub fn prefer(&mut self, address: SocketAddr) {
        self.addresses.sort_by_key(|candidate| *candidate != address);
    }
}

fn headers(settings: &EndpointSettings) -> Result<HeaderMap, EndpointError> {
    let mut map = HeaderMap::new();
    let json = HeaderValue::from_static("application/json");
    let accept = if settings.stream {
        HeaderValue::from_static("text/event-stream, application/json")
    } else {
        json.clone()
    };
    map.insert(header::CONTENT_TYPE, json);
    map.insert(header::ACCEPT, accept);
    map.insert(
        header::USER_AGENT,
        HeaderValue::from_static(concat!("goodput/", env!("CARGO_PKG_VERSION"))),
    );
    if settings.http == Http::Http1 {
        map.insert(header::HOST, value("host", &settings.url.authority)?);
    }
    if let Some(key) = &settings.api_key {
        let mut bearer = value("authorization", &format!("Bearer {key}"))?;
        bearer.set_sensitive(true);
        map.insert(header::AUTHORIZATION, bearer);
    }
    for Header { name, value: text } in &settings.headers {
        map.insert(header_name(name)?, value(name, text)?);
    }
    Ok(map)
}

/// The name of a header that a user may set.
fn header_name(name: &str) -> Result<HeaderName, EndpointError> {
    let refused = |reason: String| EndpointError::Header { name: name.to_owned(), reason };
    let parsed = HeaderName::from_str(name).map_err(|error| refused(error.to_string()))?;
    if [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION].contains(&parsed) {
        return Err(refused("goodput sets it for the connection".to_owned()));
    }
    Ok(parsed)
}

fn value(name: &str, text: &str) -> Result<HeaderValue, EndpointError> {
    HeaderValue::from_str(text).map_err(|_| EndpointError::Header {
        name: name.to_owned(),
        reason: "its value has characters that headers cannot carry".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_from_bases_with_and_without_version_and_prefix() {
        let cases = [
            ("http://h:8000", "/v1/chat/completions"),
            ("http://h:8000/", "/v1/chat/completions"),
            ("http://h/v1", "/v1/chat/completions"),
            ("http://h/v1/", "/v1/chat/completions"),
            ("http://h/serve/llm", "/serve/llm/v1/chat/completions"),
            ("http://h/openai/v2", "/openai/v2/chat/completions"),
            ("http://h/v1beta/openai/chat/completions", "/v1beta/openai/chat/completions"),
            ("http://h/v1/completions", "/v1/chat/completions"),
            ("http://h/v1?api-version=7", "/v1/chat/completions?api-version=7"),
        ];
        for (url, route) in cases {
            assert_eq!(url.parse::<BaseUrl>().unwrap().route("chat/completions"), route, "{url}");
        }
        for (url, path) in [
            ("http://h:4318", "/v1/traces"),
            ("http://h:4318/", "/v1/traces"),
            ("http://h/otlp/t?k=1", "/otlp/t?k=1"),
        ] {
            assert_eq!(url.parse::<BaseUrl>().unwrap().path_or("/v1/traces"), path, "{url}");
        }
        let full = "http://h/v1/chat/completions".parse::<BaseUrl>().unwrap();
        assert_eq!(full.route("models"), "/v1/models");
        assert_eq!(full.names_api(), Some(Api::Chat));
    }

    #[test]
    fn hosts_and_ports() {
        let v6 = "https://[::1]:8443/v1".parse::<BaseUrl>().unwrap();
        assert_eq!((v6.host.as_str(), v6.port, v6.is_https), ("::1", 8443, true));
        assert_eq!(v6.authority, "[::1]:8443");
        assert_eq!("https://h".parse::<BaseUrl>().unwrap().port, 443);
    }

    #[test]
    fn bad_urls_say_why() {
        let cases = [
            ("localhost:8000", "http://localhost:8000"),
            ("ftp://h", "http://localhost:8000"),
            ("http://", "http://localhost:8000"),
            ("http://h:99999", "http://localhost:8000"),
            ("http://h:0", "http://localhost:8000"),
            ("http://user:hunter22@h/", "--header"),
            ("user:hunter22@h:8000/v1?key=hunter22", "http://[redacted]@h"),
        ];
        for (url, hint) in cases {
            let error = url.parse::<BaseUrl>().unwrap_err();
            assert!(error.hint.contains(hint), "{url}: {error} / {}", error.hint);
            assert!(!format!("{error} {}", error.hint).contains("hunter22"));
        }
    }

    #[test]
    fn a_session_header_is_a_header_that_is_free() {
        assert!("x-session-id".parse::<SessionHeader>().is_ok());
        for taken in ["", "x y", "a\r\nb", "Host", "Content-Length", "X-Request-Id"] {
            assert!(taken.parse::<SessionHeader>().is_err(), "{taken}");
        }
    }

    #[test]
    fn query_values_are_hidden() {
        let url = "https://h/v1?key=sk-123&x=1".parse::<BaseUrl>().unwrap();
        assert_eq!(url.shown(), "https://h/v1?key=[redacted]&x=[redacted]");
    }
}
