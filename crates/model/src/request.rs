//! What is sent: a session of one or more steps, each of one or more requests.
//!
//! A plain prompt is a session of one step with one request. Text is shared, not copied: a system
//! prompt or a context that many requests have in common is one allocation.

use std::sync::Arc;

use crate::Nanos;

/// A user's visit: its steps are asked one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// At least one.
    pub steps: Vec<SessionStep>,
    /// What stands for the assistant's side in later steps.
    pub history: History,
}

/// What stands for the assistant's side in the steps that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// What the server really answered.
    #[default]
    Server,
    /// What the dataset says was answered.
    Dataset,
}

/// What is asked at one instant of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStep {
    /// Pause between the end of the step before and this one: think time, or a tool at work. The
    /// first step has none: it is due when the session arrives.
    pub after: Nanos,
    /// At least one. The first carries the conversation on; the others fan out from the
    /// same history, and the step ends when all of them have ended.
    pub requests: Vec<Request>,
    /// The answer that a dataset holds for the first request.
    pub reply: Option<Message>,
}

/// One request, without what is the same in all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What is added to the conversation so far.
    pub messages: Vec<Message>,
    /// Further fields of the body as (key, JSON text), in the order of their keys. They win over
    /// ours, and lose against the user's `--extra-body`.
    pub fields: Arc<[(String, String)]>,
    /// Another model than the run's: a LoRA adapter of this class.
    pub model: Option<Arc<str>>,
    /// What the answer must look like.
    pub constraint: Option<Arc<Constraint>>,
    /// What was aimed at.
    pub planned: Planned,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Text and images in a role.
    Plain {
        /// Who says it.
        role: Role,
        /// What is said. Texts that follow one another are one text.
        parts: Vec<MessagePart>,
    },
    /// A message object as a dataset has it, as JSON text: tool calls, names, foreign parts.
    Raw(Arc<str>),
}

impl Message {
    /// A message of one text.
    pub fn text(role: Role, text: impl Into<Arc<str>>) -> Self {
        Self::Plain { role, parts: vec![MessagePart::Text(text.into())] }
    }
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The operator.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool that the model called.
    Tool,
}

impl Role {
    /// The word in a body.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessagePart {
    /// Text.
    Text(Arc<str>),
    /// An image, as the URL that goes into the body (`data:image/png;base64,…`).
    Image(Arc<str>),
}

/// What an answer must look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Constraint {
    /// JSON that fits this schema (JSON text).
    Json(String),
    /// Text that matches this regular expression as a whole.
    Regex(String),
    /// One of these texts.
    Choice(Vec<String>),
    /// Text of this grammar, in the engine's own notation.
    Grammar(String),
}

impl Constraint {
    /// The word in records and reports.
    pub fn kind(&self) -> ConstraintKind {
        match self {
            Self::Json(_) => ConstraintKind::Json,
            Self::Regex(_) => ConstraintKind::Regex,
            Self::Choice(_) => ConstraintKind::Choice,
            Self::Grammar(_) => ConstraintKind::Grammar,
        }
    }
}

/// Which kind of constraint an answer was under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConstraintKind {
    /// A JSON schema.
    Json,
    /// A regular expression.
    Regex,
    /// A list to choose from.
    Choice,
    /// A grammar.
    Grammar,
}

impl ConstraintKind {
    /// All of them, in the order of the record's numbers.
    pub const ALL: [Self; 4] = [Self::Json, Self::Regex, Self::Choice, Self::Grammar];

    /// The word on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Regex => "regex",
            Self::Choice => "choice",
            Self::Grammar => "grammar",
        }
    }
}

impl Session {
    /// A session that asks once.
    pub fn single(request: Request) -> Self {
        let step = SessionStep { after: Nanos::ZERO, requests: vec![request], reply: None };
        Self { steps: vec![step], history: History::Server }
    }

    /// Number of requests in all its steps.
    pub fn request_count(&self) -> u64 {
        self.steps.iter().map(|step| step.requests.len() as u64).sum()
    }
}

impl Request {
    /// A prompt of one user message, for checks outside of the load.
    pub fn prompt(text: &str, planned: Planned) -> Self {
        Self {
            messages: vec![Message::text(Role::User, text)],
            fields: Arc::default(),
            model: None,
            constraint: None,
            planned,
        }
    }
}

/// The shape a request was planned to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The class of traffic it belongs to (`chat`).
    pub class: Arc<str>,
    /// Prompt length aimed at, in tokens as the workload estimates them.
    pub input_tokens: u32,
    /// Answer length asked for, when one was.
    pub output_tokens: Option<u32>,
    /// The session it belongs to, in workloads that have sessions of several requests.
    pub session: Option<u64>,
    /// Which step of its session it is, from 0.
    pub turn: u32,
    /// The kind of constraint that the answer is under.
    pub constraint: Option<ConstraintKind>,
    /// Images in it, those of the history included.
    pub images: u32,
    /// Prompt tokens that a warm prefix cache of the usual block size would hold, where the
    /// workload shapes that.
    pub cached_tokens: Option<u32>,
    /// When the trace says that it was asked, on the run's clock.
    pub trace_at: Option<Nanos>,
}

impl Planned {
    /// A single prompt of this class, with nothing special about it.
    pub fn new(class: impl Into<Arc<str>>, input_tokens: u32, output_tokens: Option<u32>) -> Self {
        Self {
            class: class.into(),
            input_tokens,
            output_tokens,
            session: None,
            turn: 0,
            constraint: None,
            images: 0,
            cached_tokens: None,
            trace_at: None,
        }
    }
}
