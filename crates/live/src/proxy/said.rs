//! Answers of our own: small, fixed, and in the shape of the API's errors.

use bytes::Bytes;
use goodput_model::ErrorClass;
use http::{HeaderValue, Response, StatusCode, header};

/// Where the proxy itself says whether it takes requests. Nothing else of it has a path.
pub const HEALTH: &str = "/goodput/health";

/// An error in the API's shape.
macro_rules! error {
    ($message:literal, $kind:literal, $code:literal) => {
        concat!(
            r#"{"error":{"message":""#,
            $message,
            r#"","type":""#,
            $kind,
            r#"","param":null,"code":""#,
            $code,
            r#""}}"#
        )
    };
}

/// Why a request is answered here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    BadRequest,
    Connect,
    Upgrade,
    Coding,
    Expectation,
    Loop,
    SlowBody,
    BrokenBody,
    Unreachable,
    Broken,
    Exhausted,
    Full,
    TimedOut,
}

impl Own {
    /// What an upstream that failed this way is answered with.
    pub(crate) fn from_class(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Timeout => Self::TimedOut,
            ErrorClass::LocalLimit => Self::Exhausted,
            ErrorClass::Connect | ErrorClass::Dns | ErrorClass::Tls => Self::Unreachable,
            _ => Self::Broken,
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Self::BadRequest | Self::BrokenBody => StatusCode::BAD_REQUEST,
            Self::Connect => StatusCode::METHOD_NOT_ALLOWED,
            Self::Upgrade | Self::Coding => StatusCode::NOT_IMPLEMENTED,
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::Loop => StatusCode::LOOP_DETECTED,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::Unreachable | Self::Broken => StatusCode::BAD_GATEWAY,
            Self::Exhausted | Self::Full => StatusCode::SERVICE_UNAVAILABLE,
            Self::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// Body text: what is wrong, whose fault it is, and a word for programs.
    fn body(self) -> &'static str {
        match self {
            Self::BadRequest => {
                error!("the request cannot be forwarded", "invalid_request_error", "bad_request")
            }
            Self::Connect => {
                error!("CONNECT is not supported", "invalid_request_error", "connect_refused")
            }
            Self::Upgrade => {
                error!("upgrades are not supported", "invalid_request_error", "upgrade_refused")
            }
            Self::Coding => error!(
                "this transfer coding is not supported",
                "invalid_request_error", "coding_refused"
            ),
            Self::Expectation => error!(
                "this expectation is not supported",
                "invalid_request_error", "expectation_failed"
            ),
            Self::Loop => error!("the proxy is its own upstream", "proxy_error", "loop_detected"),
            Self::SlowBody => {
                error!("the request body took too long", "invalid_request_error", "request_timeout")
            }
            Self::BrokenBody => {
                error!("the request body is malformed", "invalid_request_error", "bad_body")
            }
            Self::Unreachable => {
                error!("the upstream cannot be reached", "upstream_error", "upstream_unreachable")
            }
            Self::Broken => error!(
                "the upstream closed the connection before it answered",
                "upstream_error", "upstream_broken"
            ),
            Self::Exhausted => {
                error!("the proxy is out of sockets", "proxy_error", "proxy_exhausted")
            }
            Self::Full => {
                error!("the proxy has too many requests in flight", "proxy_error", "proxy_full")
            }
            Self::TimedOut => {
                error!("the upstream took too long", "upstream_error", "upstream_timeout")
            }
        }
    }

    pub(crate) fn to_response(self) -> Response<Bytes> {
        let kind = HeaderValue::from_static("application/json");
        let mut answer = text_response(self.status(), kind, self.body());
        // What is left of a request that was not read must not be taken for the next one.
        let leaves_rest = [Self::SlowBody, Self::BrokenBody, Self::BadRequest, Self::Coding];
        // One that was turned away leaves room for others.
        if leaves_rest.contains(&self) || self == Self::Full {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(header::CONNECTION, close);
        }
        answer
    }
}

/// Whether the proxy takes requests.
pub(crate) fn health_response(is_draining: bool) -> Response<Bytes> {
    let kind = HeaderValue::from_static("text/plain");
    if is_draining {
        text_response(StatusCode::SERVICE_UNAVAILABLE, kind, "draining\n")
    } else {
        text_response(StatusCode::OK, kind, "ok\n")
    }
}

fn text_response(status: StatusCode, kind: HeaderValue, body: &'static str) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::from_static(body.as_bytes()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}
