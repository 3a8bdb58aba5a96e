//! [`Dialect`]: how a prompt becomes the body of a request.
//!
//! Fields that some server refuses (`stream_options`, `ignore_eos`) are sent only when asked for.

use bytes::Bytes;
use goodput_model::{Api, Message, Part, Request};
use serde_json::{Map, Value, json};

/// Everything that is the same in every request body.
#[derive(Debug, Clone)]
pub struct Dialect {
    api: Api,
    fields: Map<String, Value>,
    extra: Map<String, Value>,
}

/// An `--extra-body` that cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It is no JSON.
    #[error("the extra body is not JSON: {0}")]
    NotJson(String),
    /// It is JSON, but no object.
    #[error("the extra body must be a JSON object, such as {{\"top_k\": 1}}")]
    NotAnObject,
}

impl Dialect {
    /// Bodies for this API and model.
    pub fn new(api: Api, model: &str, stream: bool) -> Self {
        let mut fields = Map::new();
        fields.insert("model".to_owned(), json!(model));
        if stream {
            fields.insert("stream".to_owned(), json!(true));
        }
        Self { api, fields, extra: Map::new() }
    }

    /// Asks for token counts at the end of the stream.
    #[must_use]
    pub fn with_usage(mut self) -> Self {
        self.fields.insert("stream_options".to_owned(), json!({"include_usage": true}));
        self
    }

    /// Asks for answers of full length.
    #[must_use]
    pub fn with_ignore_eos(mut self) -> Self {
        self.fields.insert("ignore_eos".to_owned(), json!(true));
        self
    }

    /// Merges the user's own fields, which win over ours.
    pub fn with_extra(mut self, text: &str) -> Result<Self, BodyError> {
        match serde_json::from_str(text).map_err(|error| BodyError::NotJson(error.to_string()))? {
            Value::Object(extra) => self.extra = extra,
            _ => return Err(BodyError::NotAnObject),
        }
        Ok(self)
    }

    /// The body for a request that carries on a conversation. Keys are sorted, so equal requests
    /// are equal bytes.
    pub fn encode(&self, history: &[Message], request: &Request) -> Bytes {
        let mut text = String::new();
        for message in history.iter().chain(&request.messages) {
            if let Message::Plain { parts, .. } = message {
                for part in parts {
                    if let Part::Text(piece) = part {
                        text.push_str(piece);
                    }
                }
            }
        }
        let mut body = self.fields.clone();
        match self.api {
            Api::Chat => {
                body.insert("messages".to_owned(), json!([{"role": "user", "content": text}]))
            }
            Api::Completions => body.insert("prompt".to_owned(), json!(text)),
        };
        if let Some(limit) = request.planned.output_tokens {
            body.insert("max_tokens".to_owned(), json!(limit));
        }
        body.extend(self.extra.clone());
        Bytes::from(Value::Object(body).to_string())
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::Planned;

    use super::*;

    fn prompt() -> Request {
        Request::prompt("say \"hi\"\n", Planned::new("chat", 2, Some(7)))
    }

    #[test]
    fn only_what_was_asked_for_is_sent() {
        let plain = Dialect::new(Api::Chat, "m", false).encode(&[], &prompt());
        assert_eq!(
            plain,
            r#"{"max_tokens":7,"messages":[{"content":"say \"hi\"\n","role":"user"}],"model":"m"}"#
        );
        let full = Dialect::new(Api::Completions, "m", true).with_usage().with_ignore_eos();
        assert_eq!(
            full.encode(&[], &prompt()),
            r#"{"ignore_eos":true,"max_tokens":7,"model":"m","prompt":"say \"hi\"\n","stream":true,"stream_options":{"include_usage":true}}"#
        );
    }

    #[test]
    fn the_users_fields_win() {
        let dialect = Dialect::new(Api::Chat, "m", true);
        let merged = dialect.clone().with_extra(r#"{"model":"other","top_k":1}"#).unwrap();
        let body: Value = serde_json::from_slice(&merged.encode(&[], &prompt())).unwrap();
        assert_eq!((&body["model"], &body["top_k"]), (&json!("other"), &json!(1)));
        assert_eq!(dialect.clone().with_extra("[1]").unwrap_err(), BodyError::NotAnObject);
        assert!(matches!(dialect.with_extra("{"), Err(BodyError::NotJson(_))));
    }
}
