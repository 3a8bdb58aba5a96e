//! [`SessionMaker`]: one session of a class in the making.

use std::sync::Arc;

use goodput_model::random::{Domain, RandomStream};
use goodput_model::{
    Constraint, Message, MessagePart, Planned, PrefixPlan, Request, Role, SessionPlan,
};

use crate::author::Author;
use crate::images::{Image, Images};

/// What the sessions of a class have in common, whatever its source.
pub(crate) struct Traits {
    /// Its place in the plan.
    pub(crate) index: u64,
    pub(crate) name: Arc<str>,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) prefix: Option<PrefixPlan>,
    pub(crate) session: Option<SessionPlan>,
    pub(crate) pool: Images,
    pub(crate) per_request: u32,
    pub(crate) constraint: Option<(f64, Arc<Constraint>)>,
}

/// One session in the making: its numbers and its streams.
pub(crate) struct SessionMaker<'a> {
    pub(crate) author: &'a Author,
    pub(crate) class: &'a Traits,
    /// Among all sessions.
    pub(crate) number: u64,
    /// Among those of the class.
    pub(crate) local: u64,
    pub(crate) lengths: RandomStream,
    pub(crate) text: RandomStream,
    pub(crate) pauses: RandomStream,
    constraints: RandomStream,
}

impl<'a> SessionMaker<'a> {
    pub(crate) fn new(author: &'a Author, class: &'a Traits, number: u64, local: u64) -> Self {
        let stream = |domain| RandomStream::new(author.seed, domain, number);
        Self {
            author,
            class,
            number,
            local,
            lengths: stream(Domain::Lengths),
            text: stream(Domain::Text),
            pauses: stream(Domain::Sessions),
            constraints: stream(Domain::Constraints),
        }
    }

    /// The nonce of the session's first prompt. Later prompts carry it in their history.
    pub(crate) fn nonce(&self) -> u64 {
        self.author.nonces.value(self.number, 0)
    }

    /// What is planned for a request of the session.
    pub(crate) fn planned_lengths(&self, input_tokens: u32, output_tokens: Option<u32>) -> Planned {
        Planned::new(Arc::clone(&self.class.name), input_tokens, output_tokens)
    }

    /// Images of the session, each with its caption. They walk through the pool.
    pub(crate) fn session_images(&self) -> impl Iterator<Item = &'a Image> {
        let (pool, count) = (&self.class.pool.images, u64::from(self.class.per_request));
        let first = self.number.wrapping_mul(count);
        let places = (0..count).map(move |n| first.wrapping_add(n));
        places.filter_map(|place| {
            let place = place.checked_rem(pool.len() as u64)?;
            pool.get(place as usize)
        })
    }

    /// Whether the session's images were all shown before.
    pub(crate) fn repeats_images(&self) -> bool {
        let (pool, count) =
            (self.class.pool.images.len() as u64, u64::from(self.class.per_request));
        self.number.saturating_mul(count) >= pool
    }

    /// Puts the session's images behind the text of its last user message; returns how many.
    pub(crate) fn add_images(&self, messages: &mut [Message]) -> u32 {
        let last = messages.iter_mut().rev().find_map(|message| match message {
            Message::Plain { role: Role::User, parts } => Some(parts),
            _ => None,
        });
        let Some(parts) = last else { return 0 };
        let before = parts.len();
        parts.extend(self.session_images().map(|image| MessagePart::Image(Arc::clone(&image.url))));
        (parts.len() - before) as u32
    }

    /// A request of the class. Every request draws whether it is under the constraint, so that the
    /// share is one of requests.
    pub(crate) fn new_request(&mut self, messages: Vec<Message>, mut planned: Planned) -> Request {
        let constraint = self
            .class
            .constraint
            .as_ref()
            .filter(|(share, _)| self.constraints.next_unit() < *share)
            .map(|(_, constraint)| Arc::clone(constraint));
        planned.constraint = constraint.as_deref().map(Constraint::kind);
        Request {
            messages,
            fields: Arc::default(),
            model: self.class.model.clone(),
            constraint,
            planned,
        }
    }
}
