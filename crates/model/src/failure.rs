//! What went wrong with a request: its class, and how far the request had come.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The kind of failure. The text form (`http_429`, `no_finish`, …) is part of `summary.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// The host name did not resolve.
    Dns,
    /// The TCP connection was refused, unreachable or reset while opening.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// This machine ran out of file descriptors or local ports: the client's fault.
    LocalLimit,
    /// The connection was closed or reset before a byte of the answer.
    Closed,
    /// The connection was cut in the middle of an answer.
    Cut,
    /// The server does not speak HTTP as announced.
    BadHttp,
    /// An HTTP status other than success.
    Http(u16),
    /// A web page where an API answer was expected.
    Html,
    /// A whole answer that is not JSON, or not of the API's shape.
    BadJson,
    /// A stream event that is not JSON, or not of the API's shape.
    BadEvent,
    /// An event larger than the limit.
    EventTooLarge,
    /// More of an answer than can be one to what was asked, or more than there is memory for.
    AnswerTooLarge,
    /// An error reported inside a stream whose status was 200.
    StreamError,
    /// The answer ended without a finish reason.
    NoFinish,
    /// The answer finished without a single token.
    Empty,
    /// The per-request time limit passed.
    Timeout,
    /// Still unfinished when the drain limit ended the run, or the user stopped it.
    CutOff,
}

impl ErrorClass {
    const NAMES: [(Self, &'static str); 17] = [
        (Self::Dns, "dns"),
        (Self::Connect, "connect"),
        (Self::Tls, "tls"),
        (Self::LocalLimit, "local_limit"),
        (Self::Closed, "closed"),
        (Self::Cut, "cut"),
        (Self::BadHttp, "bad_http"),
        (Self::Html, "html"),
        (Self::BadJson, "bad_json"),
        (Self::BadEvent, "bad_event"),
        (Self::EventTooLarge, "event_too_large"),
        (Self::AnswerTooLarge, "answer_too_large"),
        (Self::StreamError, "stream_error"),
        (Self::NoFinish, "no_finish"),
        (Self::Empty, "empty"),
        (Self::Timeout, "timeout"),
        (Self::CutOff, "cut_off"),
    ];

    /// The user waited and the answer had not come: the latency is known only to be larger.
    pub fn is_censored(self) -> bool {
        matches!(self, Self::Timeout | Self::CutOff)
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Http(status) = self {
            return write!(f, "http_{status}");
        }
        let name = Self::NAMES.iter().find(|(class, _)| class == self);
        f.write_str(name.map_or("unknown", |(_, name)| name))
    }
}

impl FromStr for ErrorClass {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(status) = text.strip_prefix("http_").and_then(|s| s.parse().ok()) {
            return Ok(Self::Http(status));
        }
        Self::NAMES
            .iter()
            .find(|(_, name)| *name == text)
            .map(|(class, _)| *class)
            .ok_or_else(|| format!("unknown error class `{text}`"))
    }
}

impl Serialize for ErrorClass {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ErrorClass {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// How far a request had come when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureStage {
    /// Opening the connection.
    Connect,
    /// Writing the request.
    Send,
    /// Waiting for the status line.
    Headers,
    /// Waiting for the first token.
    FirstToken,
    /// Receiving tokens.
    Stream,
}

impl FailureStage {
    /// All stages, in the order a request passes them.
    pub const ALL: [Self; 5] =
        [Self::Connect, Self::Send, Self::Headers, Self::FirstToken, Self::Stream];

    /// The name in `summary.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Send => "send",
            Self::Headers => "headers",
            Self::FirstToken => "first_token",
            Self::Stream => "stream",
        }
    }
}

/// One failure: class, stage, and what the server or the system said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind.
    pub class: ErrorClass,
    /// How far the request had come.
    pub stage: FailureStage,
    /// Foreign text, shortened, secrets removed; escape it wherever it is shown.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_survives_its_text_form() {
        for (class, name) in ErrorClass::NAMES {
            assert_eq!(class.to_string(), name);
            assert_eq!(name.parse::<ErrorClass>(), Ok(class));
        }
        assert_eq!("http_429".parse::<ErrorClass>(), Ok(ErrorClass::Http(429)));
        assert!("http_".parse::<ErrorClass>().is_err());
    }
}
