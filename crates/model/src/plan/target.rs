//! The endpoint of a run, and how to speak to it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::text::duration_text;

/// The endpoint and how to speak to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Base URL, or `mock[:…]` for the engine inside the process.
    pub url: String,
    /// Which API.
    pub api: Api,
    /// Whether answers are streamed.
    pub stream: bool,
    /// Whether to ask for token counts in the stream (`stream_options.include_usage`).
    pub usage: bool,
    /// Model name; asked from the server when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Protocol version.
    pub http: Http,
    /// Whether connections are kept.
    pub connections: ConnectionPolicy,
    /// Limit for one request, from the instant it is let go.
    #[serde(with = "duration_text")]
    pub timeout: Duration,
    /// Whether one small request is sent ahead, to see that the server answers.
    pub probe: bool,
    /// How long to wait for the server to become ready.
    #[serde(with = "duration_text")]
    pub wait_ready: Duration,
    /// Environment variable that holds the API key.
    pub api_key_env: String,
    /// Extra headers. Values are never written to disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
    /// JSON object merged into every request body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_body: Option<String>,
    /// PEM file with additional trusted certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cacert: Option<String>,
    /// Whether certificates go unchecked.
    pub insecure: bool,
}

impl Target {
    /// The variable that holds the API key where no other is named.
    pub const KEY_ENV: &'static str = "OPENAI_API_KEY";

    /// A streaming chat endpoint, with everything else as usual.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            api: Api::Chat,
            stream: true,
            usage: true,
            model: None,
            http: Http::Http1,
            connections: ConnectionPolicy::Reuse,
            timeout: Duration::from_mins(10),
            probe: true,
            wait_ready: Duration::ZERO,
            api_key_env: Self::KEY_ENV.to_owned(),
            headers: Vec::new(),
            extra_body: None,
            cacert: None,
            insecure: false,
        }
    }
}

/// One extra request header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value, or [`REDACTED`](crate::REDACTED) in a plan that came from disk.
    pub value: String,
}

/// The API spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// `/v1/chat/completions`
    Chat,
    /// `/v1/completions`
    Completions,
}

impl Api {
    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
        }
    }
}

/// The HTTP version spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Http {
    /// HTTP/1.1
    Http1,
    /// HTTP/2: by ALPN on `https`, with prior knowledge on `http`.
    Http2,
}

/// What happens to a connection after its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionPolicy {
    /// Kept for a later request.
    Reuse,
    /// Closed: every request opens its own.
    PerRequest,
}

impl ConnectionPolicy {
    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reuse => "reuse",
            Self::PerRequest => "per-request",
        }
    }
}
