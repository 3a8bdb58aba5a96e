//! From what the system, rustls or hyper report to the classes of [`ErrorClass`], and what is wrong
//! with an answer.

use std::error::Error;
use std::io;

use goodput_model::{ErrorClass, Failure, FailureStage};

/// The message of a TLS handshake with a port that speaks plain HTTP.
pub const PLAIN_HTTP: &str = "this port speaks plain HTTP: use http:// in the URL";

/// What ended an answer badly.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AnswerError {
    pub(crate) class: ErrorClass,
    pub(crate) message: String,
}

impl AnswerError {
    pub(crate) fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }
}

/// A failure while opening a connection.
pub(crate) fn connect_failure(error: &io::Error) -> Failure {
    let class = if is_local_limit(error) { ErrorClass::LocalLimit } else { ErrorClass::Connect };
    Failure { class, stage: FailureStage::Connect, message: error.to_string() }
}

/// A TLS handshake that failed, with what the user can do about it.
pub(crate) fn handshake_failure(error: &io::Error) -> Failure {
    let of_tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let message = match of_tls {
        // The first bytes of the peer are not a TLS record: almost always an HTTP/1.1 status line.
        Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => {
            PLAIN_HTTP.to_owned()
        }
        Some(rustls::Error::InvalidCertificate(_)) => {
            format!("{error}; trust it with --cacert FILE, or skip the check with --insecure")
        }
        _ => error.to_string(),
    };
    Failure { class: ErrorClass::Tls, stage: FailureStage::Connect, message }
}

/// A failure of HTTP/2, before or after the answer began. Other than a broken connection it is a
/// protocol that was not kept: a server that does not speak HTTP/2 sends no valid frame.
pub(crate) fn http2_failure(error: &hyper::Error, began: bool) -> (ErrorClass, String) {
    let message = innermost_cause(error);
    let class = if is_violation(&message) {
        ErrorClass::BadHttp
    } else if began {
        ErrorClass::Cut
    } else {
        ErrorClass::Closed
    };
    (class, message)
}

/// Whether the server broke the protocol: what the HTTP/2 library has "detected" itself, while a broken
/// connection is an error of the system and what the server says of us is "received".
fn is_violation(message: &str) -> bool {
    message.starts_with("connection error detected") || message.starts_with("stream error detected")
}

/// Whether the server gave up on this stream alone. Then the connection is not dead, and the request
/// was taken: a failure to count, not one to try again. A refused stream was never looked at.
pub(crate) fn is_stream_reset(message: &str) -> bool {
    message.starts_with("stream error received") && !message.contains("refused stream")
}

/// The innermost cause says most: "connection reset by peer" rather than "error reading a body".
fn innermost_cause(error: &hyper::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message = cause.to_string();
        source = cause.source();
    }
    message
}

/// Out of descriptors or local ports: EMFILE, ENFILE, EADDRNOTAVAIL, ENOBUFS.
fn is_local_limit(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(24 | 23 | 99 | 105))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_handshake_says_what_to_do() {
        let message = |error: rustls::Error| handshake_failure(&io::Error::other(error)).message;
        let plain = rustls::InvalidMessage::InvalidContentType;
        assert_eq!(message(plain.into()), PLAIN_HTTP);
        let untrusted = message(rustls::CertificateError::UnknownIssuer.into());
        assert!(untrusted.contains("UnknownIssuer"), "{untrusted}");
        assert!(untrusted.contains("--cacert FILE"), "{untrusted}");
        assert!(untrusted.contains("--insecure"), "{untrusted}");
    }

    #[test]
    fn what_is_detected_is_a_broken_protocol() {
        assert!(is_violation("connection error detected: frame with invalid size"));
        assert!(is_violation("stream error detected: unspecific protocol error detected"));
        assert!(!is_violation("connection error received: unspecific protocol error detected"));
        assert!(!is_violation("Connection reset by peer (os error 104)"));
    }

    #[test]
    fn a_reset_stream_does_not_end_the_connection() {
        let resets = [
            "stream error received: unexpected internal error encountered",
            "stream error received: stream no longer needed",
        ];
        for message in resets {
            assert!(is_stream_reset(message), "{message}");
        }
        let others = [
            "stream error received: refused stream before processing any application logic",
            "connection error received: not a result of an error",
            "Connection reset by peer (os error 104)",
        ];
        for message in others {
            assert!(!is_stream_reset(message), "{message}");
        }
    }
}
