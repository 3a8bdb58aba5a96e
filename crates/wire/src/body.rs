//! [`RequestFormat`]: how a request becomes a body.
//!
//! Fields that some server refuses (`stream_options`, `ignore_eos`) are sent only when asked for.
//! What is the same in every body is serialized once; the rest is written straight into the buffer
//! that is sent, for a body may hold megabytes of images.

mod constraint;
mod message;
mod text;

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use goodput_model::{Api, ConstraintDialect, ConstraintKind, Message, Request};
use serde_json::{Map, Value};

use crate::allowance::AnswerLimits;
use message::{text_length, write_messages, write_prompt};
use text::write_text;

/// How requests are written for one server, API and model.
#[derive(Debug, Clone)]
pub struct RequestFormat {
    api: Api,
    /// JSON text by key.
    fields: BTreeMap<String, String>,
    extra: BTreeMap<String, String>,
    constraints: ConstraintDialect,
    is_exact: bool,
}

/// An `--extra-body` that cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It is not JSON.
    #[error("the extra body is not JSON: {0}")]
    NotJson(String),
    /// It is JSON, but no object.
    #[error("the extra body must be a JSON object, such as {{\"top_k\": 1}}")]
    NotAnObject,
}

/// What stands behind a key.
#[derive(Clone, Copy)]
enum BodyField<'a> {
    /// JSON text.
    Json(&'a str),
    Text(&'a str),
    Number(u32),
    /// The conversation, in the API's form.
    Conversation,
    Constraint,
}

/// The names of a limit to the answer's length. Where the user or a dataset says one of them, ours
/// stays out: two limits contradict each other.
const LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

impl RequestFormat {
    /// Bodies for this API and model.
    pub fn new(api: Api, model: &str, stream: bool) -> Self {
        let mut fields = BTreeMap::new();
        fields.insert("model".to_owned(), Value::from(model).to_string());
        if stream {
            fields.insert("stream".to_owned(), "true".to_owned());
        }
        let constraints = ConstraintDialect::default();
        Self { api, fields, extra: BTreeMap::new(), constraints, is_exact: false }
    }

    /// Asks for token counts at the end of the stream.
    #[must_use]
    pub fn with_usage(mut self) -> Self {
        self.fields.insert("stream_options".to_owned(), r#"{"include_usage":true}"#.to_owned());
        self
    }

    /// Asks for answers of exactly the planned length, where there is one. An answer under a
    /// constraint ends by itself, so it is only limited.
    #[must_use]
    pub fn with_exact_output(mut self) -> Self {
        self.is_exact = true;
        self
    }

    /// How constraints on answers are written.
    #[must_use]
    pub fn with_constraints(mut self, dialect: ConstraintDialect) -> Self {
        self.constraints = dialect;
        self
    }

    /// Merges the user's own fields, which win over all others.
    pub fn with_extra(mut self, text: &str) -> Result<Self, BodyError> {
        let extra: Map<String, Value> =
            match serde_json::from_str(text).map_err(|e| BodyError::NotJson(e.to_string()))? {
                Value::Object(extra) => extra,
                _ => return Err(BodyError::NotAnObject),
            };
        self.extra = extra.into_iter().map(|(key, value)| (key, value.to_string())).collect();
        Ok(self)
    }

    /// Whether this kind of constraint can be written at all. One that cannot is left out of the
    /// body, so ask before the run.
    pub fn can_express(&self, kind: ConstraintKind) -> bool {
        constraint::can_express(self.constraints, kind)
    }

    /// The body for a request that carries on a conversation. Keys are sorted, so equal requests
    /// are equal bytes. The completions API takes text alone: roles are dropped, messages stand on
    /// lines of their own, and images are left out.
    pub fn encode(&self, history: &[Message], request: &Request) -> Bytes {
        self.encode_marked(history, request).0
    }

    /// The same, and where in it the value of `model` stands.
    pub fn encode_marked(&self, history: &[Message], request: &Request) -> (Bytes, Range<usize>) {
        let mut fields = self.fields_of(request);
        // Stable: of equal keys the last one wins.
        fields.sort_by_key(|(key, _)| *key);
        let conversation = || history.iter().chain(&request.messages);
        let fixed: usize =
            fields.iter().map(|(key, field)| key.len() + field.estimated_bytes()).sum();
        let mut out = Vec::with_capacity(fixed + text_length(conversation()));
        let mut model = 0..0;
        out.push(b'{');
        for (place, (key, field)) in fields.iter().enumerate() {
            if fields.get(place + 1).is_some_and(|(next, _)| next == key) {
                continue;
            }
            if out.len() > 1 {
                out.push(b',');
            }
            write_text(&mut out, key);
            out.push(b':');
            let begin = out.len();
            match *field {
                BodyField::Json(json) => out.extend_from_slice(json.as_bytes()),
                BodyField::Text(text) => write_text(&mut out, text),
                BodyField::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
                BodyField::Conversation => match self.api {
                    Api::Chat => write_messages(&mut out, conversation()),
                    Api::Completions => write_prompt(&mut out, conversation()),
                },
                BodyField::Constraint => {
                    if let Some(constraint) = &request.constraint {
                        constraint::write_constraint(&mut out, self.constraints, constraint);
                    }
                }
            }
            if *key == "model" {
                model = begin..out.len();
            }
        }
        out.push(b'}');
        (Bytes::from(out), model)
    }

    /// What an answer to this request may amount to, by the limit and the number of answers that its
    /// body asks for.
    pub fn answer_limits(&self, request: &Request) -> AnswerLimits {
        let said = |name: &str| {
            let of_request = || request.fields.iter().find(|(key, _)| key == name);
            self.extra.get(name).or_else(|| Some(&of_request()?.1))
        };
        let number = |json: &String| json.parse().ok();
        let mut limits = LIMITS.into_iter().filter_map(said).peekable();
        let tokens = match limits.peek() {
            // Where it cannot be parsed, the limit is unknown.
            Some(_) => limits.map(number).max().flatten(),
            None => request.planned.output_tokens,
        };
        AnswerLimits::new(tokens, said("n").and_then(number).unwrap_or(1))
    }

    /// All fields, in the order in which they win over one another.
    fn fields_of<'a>(&'a self, request: &'a Request) -> Vec<(&'a str, BodyField<'a>)> {
        let of_user = self.extra.iter().map(|(key, json)| (key.as_str(), BodyField::Json(json)));
        let of_request = request.fields.iter().map(|(key, json)| (&**key, BodyField::Json(json)));
        let mut fields = Vec::with_capacity(8 + self.fields.len() + request.fields.len());
        fields.extend(self.fields.iter().map(|(key, json)| (key.as_str(), BodyField::Json(json))));
        let conversation = match self.api {
            Api::Chat => "messages",
            Api::Completions => "prompt",
        };
        fields.push((conversation, BodyField::Conversation));
        if let Some(model) = &request.model {
            fields.push(("model", BodyField::Text(model)));
        }
        if let Some(limit) = request.planned.output_tokens {
            let is_exact = self.is_exact && request.constraint.is_none();
            let mut others = of_user.clone().chain(of_request.clone());
            if !others.any(|(key, _)| LIMITS.contains(&key)) {
                fields.push(("max_tokens", BodyField::Number(limit)));
                fields.extend(is_exact.then_some(("min_tokens", BodyField::Number(limit))));
            }
            fields.extend(is_exact.then_some(("ignore_eos", BodyField::Json("true"))));
        }
        if let Some(constraint) = &request.constraint {
            let key = constraint::field_name(self.constraints, constraint.kind());
            fields.extend(key.map(|key| (key, BodyField::Constraint)));
        }
        fields.extend(of_request);
        fields.extend(of_user);
        fields
    }
}

impl BodyField<'_> {
    /// Bytes to keep free for it and what stands around it.
    fn estimated_bytes(&self) -> usize {
        8 + match self {
            Self::Json(text) | Self::Text(text) => text.len(),
            Self::Number(_) => 10,
            Self::Conversation => 0,
            Self::Constraint => 256,
        }
    }
}

#[cfg(test)]
mod tests;
