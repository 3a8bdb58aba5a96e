//! What is passed on of a head, and which heads are not passed on at all.

use goodput_model::{Api, Http};
use goodput_wire::{BaseUrl, EndpointError};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{Method, Version};

use crate::proxy::said::Own;

/// Where requests go, as it stands in their heads.
#[derive(Debug, Clone)]
pub(crate) struct RequestTarget {
    http: Http,
    scheme: Scheme,
    authority: Authority,
    host: HeaderValue,
    /// Put before every path that does not begin with it.
    prefix: String,
    /// Put behind every query.
    query: Option<String>,
}

/// Routes that a base may name in full.
const ROUTES: [&str; 2] = ["/chat/completions", "/completions"];

impl RequestTarget {
    pub(crate) fn new(url: &BaseUrl, http: Http) -> Result<Self, EndpointError> {
        let wrong = |reason: String| EndpointError::Header { name: "host".to_owned(), reason };
        let (path, query) = url.path_and_query();
        let prefix = ROUTES.iter().find_map(|route| path.strip_suffix(route)).unwrap_or(path);
        Ok(Self {
            http,
            scheme: if url.is_https() { Scheme::HTTPS } else { Scheme::HTTP },
            authority: url.authority().parse().map_err(|error| wrong(format!("{error}")))?,
            host: url.authority().parse().map_err(|error| wrong(format!("{error}")))?,
            prefix: prefix.to_owned(),
            query: query.map(str::to_owned),
        })
    }

    /// The path of a request at the upstream, in the form that its version of HTTP wants.
    fn upstream_uri(&self, uri: &Uri) -> Option<Uri> {
        let path = uri.path();
        if !path.starts_with('/') {
            return None;
        }
        let begins = path.strip_prefix(self.prefix.as_str());
        let has_prefix = begins.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let asked = if has_prefix && self.query.is_none() {
            uri.path_and_query().cloned()?
        } else {
            let prefix = if has_prefix { "" } else { self.prefix.as_str() };
            let queries = [uri.query(), self.query.as_deref()];
            let query = queries.into_iter().flatten().collect::<Vec<_>>().join("&");
            let mark = if query.is_empty() && uri.query().is_none() { "" } else { "?" };
            PathAndQuery::try_from(format!("{prefix}{path}{mark}{query}")).ok()?
        };
        let mut parts = http::uri::Parts::default();
        parts.path_and_query = Some(asked);
        if self.http == Http::Http2 {
            parts.scheme = Some(self.scheme.clone());
            parts.authority = Some(self.authority.clone());
        }
        Uri::from_parts(parts).ok()
    }

    /// The head of a request as the upstream gets it. The framing of its body is not in it: that is
    /// said by the body. `via` is added where there is one.
    pub(crate) fn upstream_head(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        via: Option<&HeaderValue>,
    ) -> Option<http::Request<()>> {
        let mut request = http::Request::new(());
        *request.uri_mut() = self.upstream_uri(uri)?;
        *request.method_mut() = method.clone();
        *request.version_mut() = match self.http {
            Http::Http1 => Version::HTTP_11,
            Http::Http2 => Version::HTTP_2,
        };
        let out = request.headers_mut();
        out.reserve(headers.len() + 2);
        if self.http == Http::Http1 {
            out.insert(header::HOST, self.host.clone());
        }
        let named = ConnectionHeaderNames::from_headers(headers);
        for (name, value) in headers {
            let is_ours = [header::HOST, header::CONTENT_LENGTH, header::EXPECT].contains(name);
            if !is_ours && !is_hop_by_hop(name) && !named.contains(name) {
                out.append(name.clone(), value.clone());
            }
        }
        if has_token(headers, &header::TE, "trailers") {
            out.insert(header::TE, HeaderValue::from_static("trailers"));
        }
        if self.http == Http::Http1 {
            join_cookies(out);
        }
        if let Some(via) = via {
            out.append(header::VIA, via.clone());
        }
        Some(request)
    }
}

/// Whether the body of a message is in no transfer coding but `chunked`, once.
pub(crate) fn has_plain_coding(headers: &HeaderMap) -> bool {
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    codings.next().is_none_or(is_chunked) && codings.next().is_none()
}

/// Takes out of an answer's head what belongs to the connection that it came on.
pub(crate) fn strip_answer(headers: &mut HeaderMap) {
    // A length next to a transfer coding is not that of the body, and was not used.
    if headers.contains_key(header::TRANSFER_ENCODING) {
        headers.remove(header::CONTENT_LENGTH);
    }
    let named = ConnectionHeaderNames::from_headers(headers);
    let gone: Vec<_> = headers
        .keys()
        .filter(|name| is_hop_by_hop(name) || named.contains(name))
        .cloned()
        .collect();
    for name in gone {
        headers.remove(name);
    }
}

/// The names that `Connection` names.
struct ConnectionHeaderNames(Vec<HeaderName>);

impl ConnectionHeaderNames {
    fn from_headers(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::CONNECTION).iter();
        let names = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        Self(names.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok()).collect())
    }

    fn contains(&self, name: &HeaderName) -> bool {
        // What a connection is about to carry is not the connection's.
        name != header::CONTENT_LENGTH && self.0.contains(name)
    }
}

/// Whether a header belongs to one connection and not to the message. `Trailer` is passed on: without
/// it no trailer would be.
fn is_hop_by_hop(name: &HeaderName) -> bool {
    [header::CONNECTION, header::TE, header::TRANSFER_ENCODING, header::UPGRADE].contains(name)
        || ["keep-alive", "http2-settings"].contains(&name.as_str())
        || name.as_str().starts_with("proxy-")
}

/// HTTP/2 may carry a cookie in pieces, which HTTP/1.1 may not.
fn join_cookies(headers: &mut HeaderMap) {
    let mut cookies = headers.get_all(header::COOKIE).iter();
    let Some(first) = cookies.next() else { return };
    let mut joined = first.as_bytes().to_vec();
    let mut is_split = false;
    for piece in cookies {
        is_split = true;
        joined.extend_from_slice(b"; ");
        joined.extend_from_slice(piece.as_bytes());
    }
    if is_split && let Ok(whole) = HeaderValue::from_bytes(&joined) {
        headers.insert(header::COOKIE, whole);
    }
}

/// Whether a list of words has this one.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let words =
        headers.get_all(name).iter().flat_map(|value| value.as_bytes().split(|b| *b == b','));
    words.into_iter().any(|word| {
        // `trailers;q=0.5` is `trailers` as well.
        let word = word.split(|byte| *byte == b';').next().unwrap_or_default();
        word.trim_ascii().eq_ignore_ascii_case(token.as_bytes())
    })
}

/// Why a request is not passed on, where it is not.
pub(crate) fn refusal_reason(parts: &Parts, via: &HeaderValue) -> Option<Own> {
    let headers = &parts.headers;
    if parts.method == Method::CONNECT {
        return Some(Own::Connect);
    }
    if !parts.uri.path().starts_with('/') {
        return Some(Own::BadRequest);
    }
    // `Upgrade: h2c` is an offer that a server may leave unanswered, and some clients always make it.
    let is_h2c = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"h2c");
    if headers.get_all(header::UPGRADE).iter().any(|value| !is_h2c(value)) {
        return Some(Own::Upgrade);
    }
    if !has_plain_coding(headers) {
        return Some(Own::Coding);
    }
    let is_continue = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if headers.get_all(header::EXPECT).iter().any(|value| !is_continue(value)) {
        return Some(Own::Expectation);
    }
    let hosts = headers.get_all(header::HOST).iter().count();
    if hosts > 1 || (parts.version == Version::HTTP_11 && hosts == 0) {
        return Some(Own::BadRequest);
    }
    let is_ours = |value: &HeaderValue| {
        value.as_bytes().split(|b| *b == b',').any(|word| word.trim_ascii() == via.as_bytes())
    };
    headers.get_all(header::VIA).iter().any(is_ours).then_some(Own::Loop)
}

/// Which API a request asks, by method and path; none for everything else.
pub fn api_of_request(method: &Method, path: &str) -> Option<Api> {
    if *method != Method::POST {
        return None;
    }
    let path = path.trim_end_matches('/');
    if path.ends_with("/chat/completions") {
        Some(Api::Chat)
    } else if path.ends_with("/completions") {
        Some(Api::Completions)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
