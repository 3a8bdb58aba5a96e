//! The model's types as they stand in a file. Apart from them, so that a change of the vocabulary
//! is not a change of the format.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use goodput_model::{
    Constraint, ConstraintKind, History, Message, MessagePart, Nanos, Planned, Request, Role,
    Session, SessionStep,
};
use serde::{Deserialize, Serialize};

use crate::error::EntryError;

/// Texts that were read before: those that many requests share are held once.
#[derive(Default)]
pub(super) struct SharedTexts(HashSet<Arc<str>>);

impl SharedTexts {
    fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.0.insert(Arc::clone(&new));
        new
    }
}

/// A session.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionMirror<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Nanos>,
    #[serde(default)]
    history: History,
    #[serde(borrow)]
    steps: Vec<StepLine<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepLine<'a> {
    after: Nanos,
    #[serde(borrow)]
    requests: Vec<RequestLine<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    reply: Option<MessageLine<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestLine<'a> {
    #[serde(borrow)]
    messages: Vec<MessageLine<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    fields: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    model: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    constraint: Option<ConstraintMirror>,
    #[serde(borrow)]
    planned: PlannedLine<'a>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum MessageLine<'a> {
    #[serde(borrow)]
    Raw(Cow<'a, str>),
    #[serde(borrow)]
    System(Vec<PartLine<'a>>),
    #[serde(borrow)]
    User(Vec<PartLine<'a>>),
    #[serde(borrow)]
    Assistant(Vec<PartLine<'a>>),
    #[serde(borrow)]
    Tool(Vec<PartLine<'a>>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum PartLine<'a> {
    #[serde(borrow)]
    Text(Cow<'a, str>),
    #[serde(borrow)]
    Image(Cow<'a, str>),
}

/// A constraint.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum ConstraintMirror {
    Json(String),
    Regex(String),
    Choice(Vec<String>),
    Grammar(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum MessageMirror {
    Json,
    Regex,
    Choice,
    Grammar,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlannedLine<'a> {
    #[serde(borrow)]
    class: Cow<'a, str>,
    input_tokens: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<u64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    turn: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    constraint: Option<MessageMirror>,
    #[serde(default, skip_serializing_if = "is_zero")]
    images: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace_at: Option<Nanos>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl<'a> SessionMirror<'a> {
    pub(super) fn new(at: Option<Nanos>, session: &'a Session) -> Self {
        let step = |step: &'a SessionStep| StepLine {
            after: step.after,
            requests: step.requests.iter().map(RequestLine::new).collect(),
            reply: step.reply.as_ref().map(MessageLine::new),
        };
        Self { at, history: session.history, steps: session.steps.iter().map(step).collect() }
    }

    pub(super) fn into_session(
        self,
        pool: &mut SharedTexts,
    ) -> Result<(Option<Nanos>, Session), EntryError> {
        if self.steps.is_empty() || self.steps.iter().any(|step| step.requests.is_empty()) {
            return Err(EntryError::from("a session without steps or a step without requests"));
        }
        let mut step = |line: StepLine<'_>| SessionStep {
            after: line.after,
            requests: line.requests.into_iter().map(|request| request.into_request(pool)).collect(),
            reply: line.reply.map(|message| message.into_message(pool)),
        };
        let steps = self.steps.into_iter().map(&mut step).collect();
        Ok((self.at, Session { steps, history: self.history }))
    }
}

impl<'a> RequestLine<'a> {
    fn new(request: &'a Request) -> Self {
        let field = |(key, json): &'a (String, String)| (key.into(), json.into());
        Self {
            messages: request.messages.iter().map(MessageLine::new).collect(),
            fields: request.fields.iter().map(field).collect(),
            model: request.model.as_deref().map(Cow::Borrowed),
            constraint: request.constraint.as_deref().map(ConstraintMirror::new),
            planned: PlannedLine::new(&request.planned),
        }
    }

    fn into_request(self, pool: &mut SharedTexts) -> Request {
        let field =
            |(key, json): (Cow<'_, str>, Cow<'_, str>)| (key.into_owned(), json.into_owned());
        Request {
            messages: self.messages.into_iter().map(|message| message.into_message(pool)).collect(),
            fields: self.fields.into_iter().map(field).collect(),
            model: self.model.map(|model| pool.get(&model)),
            constraint: self.constraint.map(|limit| Arc::new(limit.into_constraint())),
            planned: self.planned.into_planned(pool),
        }
    }
}

impl<'a> MessageLine<'a> {
    fn new(message: &'a Message) -> Self {
        let part = |part: &'a MessagePart| match part {
            MessagePart::Text(text) => PartLine::Text(Cow::Borrowed(text)),
            MessagePart::Image(url) => PartLine::Image(Cow::Borrowed(url)),
        };
        match message {
            Message::Raw(json) => Self::Raw(Cow::Borrowed(json)),
            Message::Plain { role, parts } => {
                let parts = parts.iter().map(part).collect();
                match role {
                    Role::System => Self::System(parts),
                    Role::User => Self::User(parts),
                    Role::Assistant => Self::Assistant(parts),
                    Role::Tool => Self::Tool(parts),
                }
            }
        }
    }

    fn into_message(self, pool: &mut SharedTexts) -> Message {
        let (role, parts) = match self {
            Self::Raw(json) => return Message::Raw(pool.get(&json)),
            Self::System(parts) => (Role::System, parts),
            Self::User(parts) => (Role::User, parts),
            Self::Assistant(parts) => (Role::Assistant, parts),
            Self::Tool(parts) => (Role::Tool, parts),
        };
        let part = |part: PartLine<'_>| match part {
            PartLine::Text(text) => MessagePart::Text(pool.get(&text)),
            PartLine::Image(url) => MessagePart::Image(pool.get(&url)),
        };
        Message::Plain { role, parts: parts.into_iter().map(part).collect() }
    }
}

impl ConstraintMirror {
    fn new(constraint: &Constraint) -> Self {
        match constraint {
            Constraint::Json(text) => Self::Json(text.clone()),
            Constraint::Regex(text) => Self::Regex(text.clone()),
            Constraint::Choice(texts) => Self::Choice(texts.clone()),
            Constraint::Grammar(text) => Self::Grammar(text.clone()),
        }
    }

    fn into_constraint(self) -> Constraint {
        match self {
            Self::Json(text) => Constraint::Json(text),
            Self::Regex(text) => Constraint::Regex(text),
            Self::Choice(texts) => Constraint::Choice(texts),
            Self::Grammar(text) => Constraint::Grammar(text),
        }
    }
}

impl<'a> PlannedLine<'a> {
    fn new(planned: &'a Planned) -> Self {
        let kind = |kind| match kind {
            ConstraintKind::Json => MessageMirror::Json,
            ConstraintKind::Regex => MessageMirror::Regex,
            ConstraintKind::Choice => MessageMirror::Choice,
            ConstraintKind::Grammar => MessageMirror::Grammar,
        };
        Self {
            class: Cow::Borrowed(&planned.class),
            input_tokens: planned.input_tokens,
            output_tokens: planned.output_tokens,
            session: planned.session,
            turn: planned.turn,
            constraint: planned.constraint.map(kind),
            images: planned.images,
            cached_tokens: planned.cached_tokens,
            trace_at: planned.trace_at,
        }
    }

    fn into_planned(self, pool: &mut SharedTexts) -> Planned {
        let kind = |kind| match kind {
            MessageMirror::Json => ConstraintKind::Json,
            MessageMirror::Regex => ConstraintKind::Regex,
            MessageMirror::Choice => ConstraintKind::Choice,
            MessageMirror::Grammar => ConstraintKind::Grammar,
        };
        Planned {
            class: pool.get(&self.class),
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            session: self.session,
            turn: self.turn,
            constraint: self.constraint.map(kind),
            images: self.images,
            cached_tokens: self.cached_tokens,
            trace_at: self.trace_at,
        }
    }
}
