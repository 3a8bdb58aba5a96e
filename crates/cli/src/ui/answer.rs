//! Answers: a status, a kind, a body, and what a browser may do with it.

use std::fmt::Write;

/// What our own pages may do: use our own files, and send forms to us.
const OWN: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
                   img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: &'static str,
    kind: &'static str,
    policy: String,
    /// Further headers, each with its line end.
    more: String,
    body: Vec<u8>,
}

impl Answer {
    pub(super) fn page(status: &'static str, page: String) -> Self {
        Self::new(status, "text/html; charset=utf-8", page.into_bytes())
    }

    pub(super) fn text(status: &'static str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", format!("{status}\n").into_bytes())
    }

    /// One of our own files.
    pub(super) fn file(kind: &'static str, text: &str) -> Self {
        Self::new("200 OK", kind, text.as_bytes().to_vec())
    }

    /// Go there.
    pub(super) fn go(place: &str) -> Self {
        let mut answer = Self::text("303 See Other");
        answer.more = format!("Location: {place}\r\n");
        answer
    }

    fn new(status: &'static str, kind: &'static str, body: Vec<u8>) -> Self {
        Self { status, kind, policy: OWN.to_owned(), more: String::new(), body }
    }

    /// With another policy: of a page that is not ours to trust.
    pub(super) fn policy(mut self, policy: String) -> Self {
        self.policy = policy;
        self
    }

    /// With a further header.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        // Writing to a string cannot fail.
        let _ = write!(self.more, "{name}: {value}\r\n");
        self
    }

    /// As it is sent.
    pub(super) fn bytes(&self, only_head: bool) -> Vec<u8> {
        let Self { status, kind, policy, more, body } = self;
        let length = body.len();
        let mut bytes = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{more}{COMMON}\
             Content-Security-Policy: {policy}\r\n\r\n"
        )
        .into_bytes();
        if !only_head {
            bytes.extend_from_slice(body);
        }
        bytes
    }
}

/// Headers of every answer.
const COMMON: &str = "Cache-Control: no-store\r\nConnection: close\r\n\
                      X-Content-Type-Options: nosniff\r\nReferrer-Policy: same-origin\r\n\
                      Cross-Origin-Resource-Policy: same-origin\r\nX-Frame-Options: DENY\r\n";

/// The head of a stream of events.
pub(super) fn events() -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{COMMON}\
         Content-Security-Policy: {OWN}\r\n\r\nretry: 2000\n\n"
    )
}
