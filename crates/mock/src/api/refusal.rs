//! An answer that refuses, in OpenAI's shape.

use std::borrow::Cow;

use http::StatusCode;
use serde::Serialize;

/// Why a request is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiRefusal {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) param: Option<Cow<'static, str>>,
    pub(crate) code: Option<&'static str>,
    /// Seconds for a `Retry-After` header.
    pub(crate) retry_after: Option<u32>,
}

impl ApiRefusal {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, kind, message, param: None, code: None, retry_after: None }
    }

    /// The request as a whole cannot be served as it is.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// A field has a value that cannot be served.
    pub(crate) fn bad_field(
        name: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self { param: Some(name.into()), ..Self::bad_request(message) }
    }

    /// More tokens than the model's context holds.
    pub(crate) fn too_long(param: &'static str, message: impl Into<String>) -> Self {
        Self { code: Some("context_length_exceeded"), ..Self::bad_field(param, message) }
    }

    /// Another model than the one that is served.
    pub(crate) fn model_not_found(asked: &str, served: &str) -> Self {
        let message = format!("the model `{asked}` does not exist; this server has `{served}`");
        Self {
            status: StatusCode::NOT_FOUND,
            code: Some("model_not_found"),
            ..Self::bad_field("model", message)
        }
    }

    /// No such path.
    pub(crate) fn not_found(path: &str) -> Self {
        let message = format!("no endpoint at `{path}`");
        Self {
            status: StatusCode::NOT_FOUND,
            code: Some("not_found"),
            ..Self::bad_request(message)
        }
    }

    /// The path exists, but not for this method.
    pub(crate) fn wrong_method(method: &str, path: &str) -> Self {
        let message = format!("`{path}` does not accept {method}");
        let status = StatusCode::METHOD_NOT_ALLOWED;
        Self { status, code: Some("method_not_allowed"), ..Self::bad_request(message) }
    }

    /// A key is needed and was not given, or is not the right one.
    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        let refusal = Self::new(StatusCode::UNAUTHORIZED, "authentication_error", message);
        Self { code: Some("invalid_api_key"), ..refusal }
    }

    /// The body is larger than the server reads.
    pub(crate) fn body_too_large(limit: usize) -> Self {
        let message = format!("the body is larger than {limit} bytes");
        Self { status: StatusCode::PAYLOAD_TOO_LARGE, ..Self::bad_request(message) }
    }

    /// Too many requests: 429.
    pub(crate) fn rate_limited(retry_after: Option<u32>) -> Self {
        let message = "too many requests; slow down";
        let refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        Self { code: Some("rate_limit_exceeded"), retry_after, ..refusal }
    }

    /// The queue is full, or the server is not ready: 503.
    pub(crate) fn overloaded(message: impl Into<String>, retry_after: Option<u32>) -> Self {
        let refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded_error", message);
        Self { code: Some("overloaded"), retry_after, ..refusal }
    }

    /// The engine failed: any status, 500 for most.
    pub(crate) fn engine_failed(status: StatusCode, message: impl Into<String>) -> Self {
        Self { code: Some("engine_error"), ..Self::new(status, "server_error", message) }
    }

    /// The body of the answer.
    pub(crate) fn body(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct RefusalBody<'a> {
            error: RefusalDetails<'a>,
        }
        #[derive(Serialize)]
        struct RefusalDetails<'a> {
            message: &'a str,
            #[serde(rename = "type")]
            kind: &'a str,
            param: Option<&'a str>,
            code: Option<&'a str>,
        }
        let error = RefusalDetails {
            message: &self.message,
            kind: self.kind,
            param: self.param.as_deref(),
            code: self.code,
        };
        // Strings and nulls always serialize.
        serde_json::to_vec(&RefusalBody { error }).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(refusal: &ApiRefusal) -> String {
        String::from_utf8(refusal.body()).unwrap()
    }

    #[test]
    fn bodies_have_openai_s_shape() {
        let refusal = ApiRefusal::bad_field("n", "`n` is \"odd\"");
        assert_eq!(
            body(&refusal),
            r#"{"error":{"message":"`n` is \"odd\"","type":"invalid_request_error","param":"n","code":null}}"#
        );
        let refusal = ApiRefusal::model_not_found("nope", "mock");
        assert_eq!(refusal.status, 404);
        assert_eq!(
            body(&refusal),
            r#"{"error":{"message":"the model `nope` does not exist; this server has `mock`","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#
        );
    }

    #[test]
    fn statuses_are_those_that_clients_act_on() {
        let cases = [
            (ApiRefusal::bad_request("x"), 400, None),
            (ApiRefusal::unauthorized("x"), 401, Some("invalid_api_key")),
            (ApiRefusal::not_found("/x"), 404, Some("not_found")),
            (ApiRefusal::wrong_method("GET", "/x"), 405, Some("method_not_allowed")),
            (ApiRefusal::body_too_large(5), 413, None),
            (ApiRefusal::rate_limited(Some(3)), 429, Some("rate_limit_exceeded")),
            (
                ApiRefusal::engine_failed(StatusCode::INTERNAL_SERVER_ERROR, "x"),
                500,
                Some("engine_error"),
            ),
            (ApiRefusal::overloaded("x", None), 503, Some("overloaded")),
        ];
        for (refusal, status, code) in cases {
            assert_eq!((refusal.status.as_u16(), refusal.code), (status, code));
        }
        assert_eq!(ApiRefusal::rate_limited(Some(3)).retry_after, Some(3));
    }
}
