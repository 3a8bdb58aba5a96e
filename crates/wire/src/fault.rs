//! From what the system, rustls or hyper report to the classes of [`ErrorClass`].

use std::error::Error;
use std::io;

use goodput_model::{ErrorClass, Failure, Stage};

/// A failure while opening a connection.
pub(crate) fn connecting(error: &io::Error) -> Failure {
    let class = if is_local_limit(error) { ErrorClass::LocalLimit } else { ErrorClass::Connect };
    Failure { class, stage: Stage::Connect, message: error.to_string() }
}

/// A TLS handshake that failed.
pub(crate) fn handshaking(error: &io::Error) -> Failure {
    Failure { class: ErrorClass::Tls, stage: Stage::Connect, message: error.to_string() }
}

/// A failure while sending a request or waiting for its status line.
pub(crate) fn before_answer(error: &hyper::Error, stage: Stage, answer_began: bool) -> Failure {
    let class = if error.is_parse() || error.is_parse_status() || is_http2_protocol(error) {
        ErrorClass::BadHttp
    } else if answer_began {
        ErrorClass::Cut
    } else {
        ErrorClass::Closed
    };
    Failure { class, stage, message: describe(error) }
}

/// A failure in the middle of an answer.
pub(crate) fn in_answer(error: &hyper::Error, stage: Stage) -> Failure {
    let class = if error.is_parse() { ErrorClass::BadHttp } else { ErrorClass::Cut };
    Failure { class, stage, message: describe(error) }
}

/// The innermost cause says most: "connection reset by peer" rather than "error reading a body".
fn describe(error: &hyper::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message = cause.to_string();
        source = cause.source();
    }
    message
}

/// The HTTP/2 layer fails a stream with an io error only when the connection broke.
fn is_http2_protocol(error: &hyper::Error) -> bool {
    let cause = error.source();
    cause.is_some_and(|cause| {
        !cause.is::<io::Error>() && cause.to_string().contains("frame with invalid size")
    })
}

/// Out of descriptors or local ports: EMFILE, ENFILE, EADDRNOTAVAIL, ENOBUFS.
fn is_local_limit(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(24 | 23 | 99 | 105))
}
