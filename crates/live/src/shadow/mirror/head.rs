//! What of a request's head a candidate is sent: little, and no credentials.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Which headers go to the candidate.
#[derive(Debug, Clone, Default)]
pub struct HeadRules {
    /// Headers of the client that are forwarded in addition to the usual ones.
    pass: Vec<HeaderName>,
    /// Headers of our own; they stand in for the client's of the same name.
    own: Vec<(HeaderName, HeaderValue)>,
    /// Whether the client's credentials go along too.
    credentials: bool,
}

/// What always goes along: what the body is, what is accepted, who asks. `Accept-Encoding` does not,
/// for an answer that is packed cannot be measured.
const USUAL: [&str; 4] = ["content-type", "accept", "user-agent", "openai-beta"];

/// Headers by which OpenAI's API and those like it know who pays.
const CREDENTIALS: [&str; 6] = [
    "authorization",
    "api-key",
    "x-api-key",
    "x-goog-api-key",
    "openai-organization",
    "openai-project",
];

/// Parts of the names of headers that hold, or may hold, a credential.
const SUSPECT: [&str; 9] =
    ["auth", "key", "token", "secret", "cookie", "session", "credential", "password", "signature"];

/// Whether a header is of such a kind that its value may be a credential.
fn is_credential(name: &HeaderName) -> bool {
    let name = name.as_str();
    CREDENTIALS.contains(&name) || SUSPECT.iter().any(|part| name.contains(part))
}

/// Cookies are for one site alone: no word lets them pass.
fn is_cookie(name: &HeaderName) -> bool {
    name.as_str().contains("cookie")
}

fn parse_header_name(name: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("`{name}` is not a valid header name"))
}

/// Headers that are about one connection, or are made again for the candidate.
fn is_connection_header(name: &HeaderName) -> bool {
    const OF_ONE: [HeaderName; 10] = [
        header::CONNECTION,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::HOST,
        header::CONTENT_LENGTH,
        header::EXPECT,
        header::ACCEPT_ENCODING,
        header::PROXY_AUTHORIZATION,
    ];
    OF_ONE.contains(name) || name == "keep-alive" || name == "proxy-connection"
}

impl HeadRules {
    /// The usual headers alone, with the client's credentials or without.
    pub fn new(credentials: bool) -> Self {
        Self { credentials, ..Self::default() }
    }

    /// Adds a header of our own; where it cannot be one, says why without its value.
    pub fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = parse_header_name(name)?;
        if is_connection_header(&name) {
            return Err(format!("header `{name}` is set for each server and cannot be given"));
        }
        let why = || format!("the value of header `{name}` is not allowed");
        let mut value = HeaderValue::from_str(value).map_err(|_| why())?;
        value.set_sensitive(true);
        self.own.push((name, value));
        Ok(())
    }

    /// Lets a header of the client pass; a credential only where credentials may, and a cookie never.
    pub fn allow_header(&mut self, name: &str) -> Result<(), String> {
        let name = parse_header_name(name)?;
        if is_connection_header(&name) {
            return Err(format!("header `{name}` applies to one connection and is not forwarded"));
        }
        if is_cookie(&name) {
            return Err(format!("header `{name}`: the candidate never gets clients' cookies"));
        }
        if is_credential(&name) && !self.credentials {
            return Err(format!("header `{name}` may hold a credential of the client"));
        }
        self.pass.push(name);
        Ok(())
    }

    /// Headers for the candidate.
    pub(super) fn apply(&self, client: &HeaderMap) -> HeaderMap {
        let is_wanted = |name: &HeaderName| {
            if is_connection_header(name) || self.own.iter().any(|(own, _)| own == name) {
                return false;
            }
            let is_usual = USUAL.contains(&name.as_str());
            let is_key = self.credentials && CREDENTIALS.contains(&name.as_str());
            let is_asked = self.pass.contains(name) && (self.credentials || !is_credential(name));
            is_usual || is_key || is_asked
        };
        let wanted = client.iter().filter(|(name, _)| is_wanted(name));
        let own = self.own.iter().map(|(name, value)| (name, value));
        let mut head = HeaderMap::new();
        for (name, value) in wanted.chain(own) {
            head.append(name, value.clone());
        }
        head
    }
}
