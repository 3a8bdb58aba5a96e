//! A session on its way: the step that is ready to be sent, and the steps still to come.

use bytes::Bytes;
use goodput_model::schedule::PlacedSession;
use goodput_model::{
    History, Message, MessagePart, Nanos, Phase, Planned, Request, Role, Session, SessionStep,
};
use goodput_wire::{AnswerLimits, RequestFormat};

use crate::fingerprint::body_hash;
use crate::senders::{Sender, Senders};

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct PreparedRequest {
    pub(crate) index: u64,
    /// Number of its session.
    pub(crate) session: u64,
    pub(crate) phase: Phase,
    pub(crate) body: Bytes,
    /// Of the body, where it is asked for and no answer of the server is in it.
    pub(crate) body_hash: Option<u64>,
    /// What its answer may amount to.
    pub(crate) allowance: AnswerLimits,
    pub(crate) planned: Planned,
    /// What is new in it, only when text is to be kept.
    pub(crate) prompt: Option<String>,
}

/// What is asked at one instant, ready to be sent.
#[derive(Debug)]
pub(crate) struct PreparedStep {
    /// Carries the conversation on.
    pub(crate) main: PreparedRequest,
    /// Sent at the same instant.
    pub(crate) others: Vec<PreparedRequest>,
}

impl PreparedStep {
    pub(crate) fn len(&self) -> u64 {
        1 + self.others.len() as u64
    }

    /// Gives each request its phase, in order. Those from the first without one on are left out.
    pub(crate) fn assign_phases(&mut self, mut phase: impl FnMut() -> Option<Phase>) -> bool {
        let Some(main) = phase() else { return false };
        self.main.phase = main;
        let mut placed = 0;
        for prepared in &mut self.others {
            let Some(phase) = phase() else { break };
            prepared.phase = phase;
            placed += 1;
        }
        self.others.truncate(placed);
        true
    }

    fn body_bytes(&self) -> u64 {
        self.others.iter().fold(self.main.body.len(), |sum, one| sum + one.body.len()) as u64
    }
}

/// A session that is ready to begin.
#[derive(Debug)]
pub(crate) struct PreparedSession {
    pub(crate) first: PreparedStep,
    /// `None` in a session of one step, which costs nothing more than its request.
    pub(crate) rest: Option<Box<RemainingSteps>>,
    /// Memory that it takes, about.
    pub(crate) bytes: u64,
}

impl PreparedSession {
    /// Builds the first step. `index` is the number of the session's first request, `number` its
    /// own. `None` for a session that asks nothing.
    pub(crate) fn new(
        session: Session,
        number: u64,
        index: u64,
        scribe: &BodyEncoder,
        senders: &Senders,
    ) -> Option<Self> {
        let requests = session.request_count();
        let history = session.history;
        let mut steps = session.steps.into_iter();
        let first = steps.next()?;
        let is_alone = requests == 1;
        let mut cursor =
            SessionCursor { session: number, index, turn: 0, is_alone, is_planned: true };
        let mut said = Vec::new();
        let reply = first.reply;
        let first = scribe.write_step(&mut said, first.requests, &mut cursor)?;
        let left = requests - first.len();
        let rest = (left > 0).then(|| {
            let sender = senders.add_sender();
            Box::new(RemainingSteps { history, said, reply, steps, cursor, left, _sender: sender })
        });
        let bytes = first.body_bytes() + rest.as_ref().map_or(0, |rest| rest.text_bytes());
        Some(Self { first, rest, bytes })
    }

    /// Puts the first step into its phase, and leaves out what the run does not ask for.
    pub(crate) fn assign_first_phase(&mut self, PlacedSession { phase, allowed }: PlacedSession) {
        let mut allowed = allowed;
        self.first.assign_phases(|| {
            allowed = allowed.checked_sub(1)?;
            Some(phase)
        });
        if let Some(rest) = &mut self.rest {
            rest.left = rest.left.min(allowed);
        }
        self.rest.take_if(|rest| rest.left == 0);
    }
}

/// The steps of a session that are still to come.
#[derive(Debug)]
pub(crate) struct RemainingSteps {
    history: History,
    /// The conversation so far.
    said: Vec<Message>,
    /// The answer that the dataset has for the current step.
    reply: Option<Message>,
    steps: std::vec::IntoIter<SessionStep>,
    cursor: SessionCursor,
    /// Requests to come.
    pub(crate) left: u64,
    /// The run has not sent everything while this is there.
    _sender: Sender,
}

impl RemainingSteps {
    /// Takes the server's answer to the step that has ended, or the dataset's in its place.
    pub(crate) fn add_answer(&mut self, answer: Option<String>) {
        let answer = answer.filter(|text| !text.is_empty());
        let answer = answer.map(|text| Message::text(Role::Assistant, text));
        let reply = self.reply.take().filter(|_| self.history == History::Dataset);
        self.cursor.is_planned &= reply.is_some();
        self.said.extend(reply.or(answer));
    }

    /// How long after the end of the step before the next one is due.
    pub(crate) fn pause_before_next(&self) -> Nanos {
        self.steps.as_slice().first().map_or(Nanos::ZERO, |step| step.after)
    }

    /// Builds the next step.
    pub(crate) fn next(&mut self, scribe: &BodyEncoder) -> Option<PreparedStep> {
        let mut step = self.steps.next().filter(|_| self.left > 0)?;
        step.requests.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.reply = step.reply;
        let asking = scribe.write_step(&mut self.said, step.requests, &mut self.cursor)?;
        self.left -= asking.len();
        Some(asking)
    }

    /// Bytes of text in the steps to come. Images are shared by all sessions.
    fn text_bytes(&self) -> u64 {
        let requests = self.steps.as_slice().iter().flat_map(|step| &step.requests);
        let messages = requests.flat_map(|request| &request.messages);
        let bytes = messages.map(|message| match message {
            Message::Plain { parts, .. } => parts.iter().map(text_length).sum(),
            Message::Raw(json) => json.len(),
        });
        bytes.sum::<usize>() as u64
    }
}

fn text_length(part: &MessagePart) -> usize {
    match part {
        MessagePart::Text(text) => text.len(),
        MessagePart::Image(_) => 0,
    }
}

/// Where a session is.
#[derive(Debug)]
struct SessionCursor {
    session: u64,
    /// Number of the next request.
    index: u64,
    /// Number of the next step.
    turn: u32,
    /// Whether the session has but one request.
    is_alone: bool,
    /// Whether all that was said so far is the plan's, and nothing the server's.
    is_planned: bool,
}

/// Writes bodies.
#[derive(Debug, Clone)]
pub(crate) struct BodyEncoder {
    pub(crate) dialect: RequestFormat,
    /// Whether prompts are kept.
    pub(crate) keep_text: bool,
    /// Whether bodies are hashed.
    pub(crate) hash_bodies: bool,
}

impl BodyEncoder {
    /// Writes the requests of a step, all from the same history, and adds what the first one says
    /// to it.
    fn write_step(
        &self,
        said: &mut Vec<Message>,
        requests: Vec<Request>,
        cursor: &mut SessionCursor,
    ) -> Option<PreparedStep> {
        let mut requests = requests.into_iter();
        let (main, messages) = self.write_request(said, requests.next()?, cursor);
        let others = requests.map(|request| self.write_request(said, request, cursor).0).collect();
        cursor.turn += 1;
        said.extend(messages);
        Some(PreparedStep { main, others })
    }

    /// Writes one request; the messages that are new in it come back.
    fn write_request(
        &self,
        said: &[Message],
        request: Request,
        cursor: &mut SessionCursor,
    ) -> (PreparedRequest, Vec<Message>) {
        let (body, model) = self.dialect.encode_marked(said, &request);
        let allowance = self.dialect.answer_limits(&request);
        let is_hashed = self.hash_bodies && cursor.is_planned;
        let body_hash = is_hashed.then(|| body_hash(&body, model));
        let prompt = self.keep_text.then(|| messages_text(&request.messages));
        let Request { messages, mut planned, .. } = request;
        // A request that is alone may be part of a session that only its workload knows.
        if !cursor.is_alone {
            planned.session = Some(cursor.session);
            planned.turn = cursor.turn;
        }
        let (index, session) = (cursor.index, cursor.session);
        cursor.index += 1;
        let phase = Phase::Measured;
        let prepared =
            PreparedRequest { index, session, phase, body, body_hash, allowance, planned, prompt };
        (prepared, messages)
    }
}

/// The text of messages, for people.
fn messages_text(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        match message {
            Message::Plain { parts, .. } => text.extend(parts.iter().map(|part| match part {
                MessagePart::Text(text) => text,
                MessagePart::Image(_) => "[image]",
            })),
            Message::Raw(json) => text.push_str(json),
        }
    }
    text
}
