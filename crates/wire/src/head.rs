//! What both protocols say before the body, and how they fail.

use std::io;

use goodput_model::{ErrorClass, Failure, FailureStage};

/// The head of an answer, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct AnswerHead {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) content_encoding: Option<String>,
    pub(crate) location: Option<String>,
    pub(crate) content_length: Option<u64>,
}

impl AnswerHead {
    pub(crate) fn new(status: u16, headers: &[httparse::Header<'_>]) -> Self {
        let pairs = headers.iter().map(|header| (header.name, header.value));
        Self::from_pairs(status, pairs)
    }

    pub(crate) fn from_pairs<'a>(
        status: u16,
        headers: impl Iterator<Item = (&'a str, &'a [u8])>,
    ) -> Self {
        let mut head = Self { status, ..Self::default() };
        for (name, value) in headers {
            let text = || String::from_utf8_lossy(value).trim().to_owned();
            if name.eq_ignore_ascii_case("content-type") {
                head.content_type = text().to_ascii_lowercase();
            } else if name.eq_ignore_ascii_case("content-encoding") {
                head.content_encoding = Some(text()).filter(|coding| coding != "identity");
            } else if name.eq_ignore_ascii_case("location") {
                head.location = Some(text());
            } else if name.eq_ignore_ascii_case("content-length") {
                head.content_length = text().parse().ok();
            }
        }
        head
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// What ended an exchange on the connection's side.
#[derive(Debug)]
pub(crate) struct TransportError {
    class: ErrorClass,
    message: String,
}

impl TransportError {
    /// The connection ended before a byte of the answer.
    pub(crate) fn closed_early() -> Self {
        let message = "connection closed before the answer".to_owned();
        Self { class: ErrorClass::Closed, message }
    }

    /// The connection ended within the answer.
    pub(crate) fn cut_off() -> Self {
        let message = "connection closed in the middle of the answer".to_owned();
        Self { class: ErrorClass::Cut, message }
    }

    /// The answer is not HTTP.
    pub(crate) fn not_http(message: &str) -> Self {
        Self { class: ErrorClass::BadHttp, message: message.to_owned() }
    }

    /// The socket failed, before or after the answer began.
    pub(crate) fn from_io(error: &io::Error, began: bool) -> Self {
        let class = if began { ErrorClass::Cut } else { ErrorClass::Closed };
        Self { class, message: error.to_string() }
    }

    /// HTTP/2 failed.
    pub(crate) fn from_http2(error: &hyper::Error, began: bool) -> Self {
        let failure = crate::fault::http2_failure(error, began);
        Self { class: failure.0, message: failure.1 }
    }

    /// As a failure at this stage. Past the headers a close is a cut.
    pub(crate) fn into_failure(self, stage: FailureStage) -> Failure {
        let is_within = stage >= FailureStage::FirstToken && self.class == ErrorClass::Closed;
        let class = if is_within { ErrorClass::Cut } else { self.class };
        Failure { class, stage, message: self.message }
    }
}
