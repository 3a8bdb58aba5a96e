//! Reading a request body, and answering one that cannot be read.

use bytes::Bytes;
use http::{Response, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};

/// The fields of a request that the engine acts on. Others are accepted and ignored.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Ask {
    pub(crate) model: Option<String>,
    messages: Option<Value>,
    prompt: Option<Value>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    #[serde(default)]
    pub(crate) stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

#[derive(Debug, Default, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// Which kind of answer is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Chat,
    Completion,
}

impl Ask {
    /// Reads and checks a body.
    pub(crate) fn read(kind: Kind, body: &[u8]) -> Result<Self, Refusal> {
        let ask: Self = serde_json::from_slice(body)
            .map_err(|error| Refusal::bad(format!("the body cannot be read: {error}")))?;
        let is_there = match kind {
            Kind::Chat => ask.messages.as_ref().is_some_and(Value::is_array),
            Kind::Completion => ask.prompt.is_some(),
        };
        if !is_there {
            let field = if kind == Kind::Chat { "messages" } else { "prompt" };
            return Err(Refusal::bad(format!("`{field}` is missing or of the wrong type")));
        }
        if ask.limit() == Some(0) {
            return Err(Refusal::bad("max_tokens must be at least 1".to_owned()));
        }
        Ok(ask)
    }

    /// Tokens of the answer, when the request sets a limit.
    pub(crate) fn limit(&self) -> Option<u32> {
        self.max_completion_tokens.or(self.max_tokens)
    }

    pub(crate) fn wants_usage(&self) -> bool {
        self.stream_options.as_ref().and_then(|options| options.include_usage).unwrap_or(false)
    }

    /// Words and full stops of the prompt: what a tokenizer makes of common words.
    pub(crate) fn prompt_tokens(&self) -> u32 {
        fn words(value: &Value) -> usize {
            match value {
                Value::String(text) => text.split_whitespace().count() + text.matches('.').count(),
                Value::Array(items) => items.iter().map(words).sum(),
                Value::Object(fields) => {
                    fields.get("content").or(fields.get("text")).map_or(0, words)
                }
                _ => 0,
            }
        }
        let prompt = self.messages.as_ref().or(self.prompt.as_ref());
        u32::try_from(prompt.map_or(0, words).max(1)).unwrap_or(u32::MAX)
    }
}

/// An answer that refuses, in OpenAI's shape.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    message: String,
}

impl Refusal {
    pub(crate) fn bad(message: String) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message }
    }

    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn into_response<B: From<Bytes>>(self) -> Response<B> {
        let body = json!({"error": {
            "message": self.message,
            "type": "invalid_request_error",
            "param": null,
            "code": self.status.as_u16(),
        }});
        json_response(self.status, &body)
    }
}

pub(crate) fn json_response<B: From<Bytes>>(status: StatusCode, body: &Value) -> Response<B> {
    let mut response = Response::new(B::from(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_counted_in_words() {
        let chat = br#"{"messages":[{"role":"user","content":"One two. Three"},{"role":"user","content":[{"type":"text","text":"four"}]}],"max_tokens":5}"#;
        let ask = Ask::read(Kind::Chat, chat).unwrap();
        assert_eq!((ask.prompt_tokens(), ask.limit()), (5, Some(5)));
        let text = Ask::read(Kind::Completion, br#"{"prompt":"a b"}"#).unwrap();
        assert_eq!((text.prompt_tokens(), text.limit()), (2, None));
    }

    #[test]
    fn bad_bodies_are_refused() {
        for body in ["", "[]", "{}", r#"{"messages":5}"#, r#"{"messages":[],"max_tokens":0}"#] {
            assert!(Ask::read(Kind::Chat, body.as_bytes()).is_err(), "{body}");
        }
    }
}
