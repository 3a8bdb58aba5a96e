//! What a proxy is told before it begins.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use goodput_model::Http;
use goodput_wire::BaseUrl;

/// Everything about a proxy.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Certificate and key, where it speaks TLS.
    pub tls: Option<TlsFiles>,
    /// To whom everything goes.
    pub upstream: Upstream,
    /// Threads that pass on.
    pub workers: usize,
    /// The header that names a request's session, in small letters.
    pub session_header: Option<String>,
    /// Whether the witness gets the text of answers.
    pub keep_text: bool,
    /// What is too much.
    pub limits: Limits,
}

/// Certificate and key in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// Certificate chain.
    pub certificate: PathBuf,
    /// Private key.
    pub key: PathBuf,
}

/// A server behind the proxy.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// Its base; the path of a request is put behind the base's path.
    pub url: BaseUrl,
    /// The version of HTTP spoken with it.
    pub http: Http,
    /// PEM text with additional trusted certificates.
    pub cacert: Option<Vec<u8>>,
    /// Whether certificates go unchecked.
    pub insecure: bool,
}

/// What is too much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections of clients at once: beyond them idle ones make way, and requests wait.
    pub connections: usize,
    /// Bytes of a request's head, and of an answer's.
    pub head_bytes: usize,
    /// How long a client may take for a head.
    pub head_time: Duration,
    /// How long nothing may pass in a request's body, and a client may take nothing of an answer.
    pub body_time: Duration,
    /// Bytes of a request's body that are kept for the witness; a longer one is passed on all the same.
    pub kept_bytes: usize,
    /// Bytes of all bodies together that are kept while they come in.
    pub kept_total: usize,
    /// For connecting to the upstream.
    pub connect_time: Duration,
    /// How long an upstream may say nothing.
    pub answer_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            head_bytes: 32 * 1024,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            kept_bytes: 16 << 20,
            kept_total: 256 << 20,
            connect_time: Duration::from_secs(5),
            answer_time: Duration::from_mins(10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_are_those_of_the_manual() {
        let secs = Duration::from_secs;
        let stated = Limits {
            connections: 4096,
            head_bytes: 32 * 1024,
            head_time: secs(10),
            body_time: secs(30),
            kept_bytes: 16 * 1024 * 1024,
            kept_total: 256 * 1024 * 1024,
            connect_time: secs(5),
            answer_time: secs(600),
        };
        assert_eq!(Limits::default(), stated, "docs/proxy.md says so");
    }
}
