//! Responses: a status, headers and a body.

use std::fmt::Write;

/// A response with a body of known length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    status: &'static str,
    content_type: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Response {
    /// A response with this status line, such as `200 OK`.
    pub fn new(status: &'static str, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type, headers: Vec::new(), body: body.into() }
    }

    /// A page.
    pub fn html(status: &'static str, page: String) -> Self {
        Self::new(status, "text/html; charset=utf-8", page)
    }

    /// The status as plain text.
    pub fn text(status: &'static str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", format!("{status}\n"))
    }

    /// A redirect to a path.
    pub fn see_other(path: &str) -> Self {
        Self::text("303 See Other").with_header("Location", path)
    }

    /// With another header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// With another header unless the response has one of this name.
    #[must_use]
    pub fn with_default_header(self, name: &'static str, value: &str) -> Self {
        let has_it = self.headers.iter().any(|(own, _)| *own == name);
        if has_it { self } else { self.with_header(name, value) }
    }

    /// As it is sent.
    pub fn to_bytes(&self, only_head: bool) -> Vec<u8> {
        let mut bytes = self.head(&format!("Content-Length: {}\r\n", self.body.len()));
        if !only_head {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }

    /// As it is sent if more follows its body until the connection ends.
    pub(crate) fn to_open_bytes(&self) -> Vec<u8> {
        let mut bytes = self.head("");
        bytes.extend_from_slice(&self.body);
        bytes
    }

    fn head(&self, length: &str) -> Vec<u8> {
        let Self { status, content_type, headers, .. } = self;
        let mut head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n{length}\
             Cache-Control: no-store\r\nConnection: close\r\n"
        );
        for (name, value) in headers {
            // Writing to a string cannot fail.
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        head.into_bytes()
    }
}
