//! A class of traffic, ready to make sessions.

use std::sync::Arc;

use goodput_model::{
    ClassPlan, Constraint, Lengths, Message, Nanos, Part, Planned, PrefixPlan, Request, Role,
    Session, SessionPlan, SourcePlan,
};
use goodput_random::{Domain, Stream};

use crate::author::Author;
use crate::check::MOST_TOKENS;
use crate::entries::Entries;
use crate::images::{Image, Images};
use crate::trace::Trace;
use crate::{Material, Setting, WorkloadError, constraint, entries, images, synthetic, trace};

pub(crate) struct Class {
    /// Its place in the plan.
    pub(crate) index: u64,
    pub(crate) name: Arc<str>,
    model: Option<Arc<str>>,
    pub(crate) prefix: Option<PrefixPlan>,
    pub(crate) session: Option<SessionPlan>,
    pub(crate) pool: Images,
    per_request: u32,
    pub(crate) constraint: Option<(f64, Arc<Constraint>)>,
    pub(crate) source: Source,
}

pub(crate) enum Source {
    /// Lengths drawn one by one.
    Lengths {
        input: Lengths,
        output: Lengths,
    },
    /// Lengths drawn together.
    Pairs(Vec<(u32, u32)>),
    Entries(Entries),
    Trace(Trace),
    Frozen {
        sessions: Vec<(Option<Nanos>, Session)>,
        time_scale: f64,
    },
}

impl Class {
    pub(crate) fn new(
        index: u64,
        plan: &ClassPlan,
        setting: &Setting,
        material: Material,
        skip_invalid: bool,
    ) -> Result<Self, WorkloadError> {
        let name = &plan.name;
        let source = match (&plan.source, material) {
            (SourcePlan::Synthetic { input, output }, _) => {
                Source::Lengths { input: *input, output: *output }
            }
            (SourcePlan::Pairs { file }, Material::Pairs(pairs)) => {
                let pairs = some(pairs, name, file)?;
                let is_sound = |tokens: u32| (1..=MOST_TOKENS).contains(&tokens);
                let wrong = pairs.iter().find(|(i, o)| !(is_sound(*i) && is_sound(*o)));
                if let Some((input, output)) = wrong {
                    return Err(WorkloadError::new(
                        format!(
                            "class `{name}`: {file}: the pair {input},{output}: expected lengths \
                             of 1 to {MOST_TOKENS}"
                        ),
                        "correct the row or leave it out",
                    ));
                }
                Source::Pairs(pairs)
            }
            (SourcePlan::Dataset(data), Material::Entries(loaded)) => {
                let entries = some(loaded.entries, name, &data.file)?;
                Source::Entries(Entries::new(data, entries))
            }
            (SourcePlan::Trace(trace), Material::Entries(mut loaded)) => {
                loaded.entries = some(loaded.entries, name, &trace.file)?;
                Source::Trace(Trace::new(trace, loaded, setting)?)
            }
            (SourcePlan::Frozen { file, .. }, Material::Frozen(sessions)) => Source::Frozen {
                sessions: some(sessions, name, file)?,
                time_scale: setting.time_scale,
            },
            _ => {
                return Err(WorkloadError::new(
                    format!("class `{name}`: what was loaded is not what its source needs"),
                    "load each class by its own source",
                ));
            }
        };
        let pool = match &plan.images {
            Some(wanted) => images::pool(wanted, setting.seed, skip_invalid)?,
            None => Images::default(),
        };
        let constraint = match &plan.structured {
            Some(wanted) => Some((wanted.share, constraint::build(wanted)?)),
            None => None,
        };
        Ok(Self {
            index,
            name: name.as_str().into(),
            model: plan.model.as_deref().map(Arc::from),
            prefix: plan.prefix.clone(),
            session: plan.session.clone(),
            per_request: plan.images.as_ref().map_or(0, |images| images.count),
            pool,
            constraint,
            source,
        })
    }

    /// The session; `None` past the end of a source that ends.
    pub(crate) fn session(&self, author: &Author, number: u64, local: u64) -> Option<Session> {
        let mut maker = Maker::new(author, self, number, local);
        match &self.source {
            Source::Lengths { .. } | Source::Pairs(_) => Some(synthetic::session(&mut maker)),
            Source::Entries(entries) => entries::session(&mut maker, entries),
            Source::Trace(trace) => trace::session(&mut maker, trace),
            Source::Frozen { sessions, time_scale } => {
                let (_, session) = sessions.get(usize::try_from(local).ok()?)?;
                Some(scaled(session.clone(), *time_scale))
            }
        }
    }

    /// Requests of a session.
    pub(crate) fn requests(&self, author: &Author, number: u64, local: u64) -> Option<u64> {
        match &self.source {
            Source::Lengths { .. } | Source::Pairs(_) => {
                let plan = self.session.as_ref();
                let draws =
                    |plan| synthetic::requests(&mut Maker::new(author, self, number, local), plan);
                Some(plan.map_or(1, draws))
            }
            Source::Entries(entries) => entries.requests(local),
            Source::Trace(trace) => trace.requests(local),
            Source::Frozen { sessions, .. } => {
                sessions.get(usize::try_from(local).ok()?).map(|(_, session)| session.requests())
            }
        }
    }

    /// In whose turn a session of a trace is dealt out. A class of a trace is alone.
    pub(crate) fn turn(&self, local: u64) -> Option<u64> {
        match &self.source {
            Source::Trace(trace) => trace.turn(local),
            _ => None,
        }
    }

    /// When a session arrives, in sources that say so.
    pub(crate) fn arrival(&self, local: u64) -> Option<Nanos> {
        match &self.source {
            Source::Trace(trace) => trace.arrival(local),
            Source::Frozen { sessions, time_scale } => {
                let (at, _) = sessions.get(usize::try_from(local).ok()?)?;
                at.map(|at| scale(at, *time_scale))
            }
            _ => None,
        }
    }
}

/// The list, unless there is nothing in it.
fn some<T>(list: Vec<T>, class: &str, file: &str) -> Result<Vec<T>, WorkloadError> {
    if list.is_empty() {
        return Err(WorkloadError::new(
            format!("class `{class}`: {file} has no entry that can be used"),
            "`goodput workload show` says what was left out and why",
        ));
    }
    Ok(list)
}

/// Trace time on the run's clock.
pub(crate) fn scale(time: Nanos, factor: f64) -> Nanos {
    if factor == 1.0 { time } else { Nanos::from_secs_f64(time.as_secs() * factor) }
}

fn scaled(mut session: Session, factor: f64) -> Session {
    for step in &mut session.steps {
        step.after = scale(step.after, factor);
    }
    for request in session.steps.iter_mut().flat_map(|step| &mut step.requests) {
        request.planned.trace_at = request.planned.trace_at.map(|at| scale(at, factor));
    }
    session
}

/// One session in the making: its numbers and its streams.
pub(crate) struct Maker<'a> {
    pub(crate) author: &'a Author,
    pub(crate) class: &'a Class,
    /// Among all sessions.
    pub(crate) number: u64,
    /// Among those of the class.
    pub(crate) local: u64,
    pub(crate) lengths: Stream,
    pub(crate) text: Stream,
    pub(crate) pauses: Stream,
    constraints: Stream,
}

impl<'a> Maker<'a> {
    fn new(author: &'a Author, class: &'a Class, number: u64, local: u64) -> Self {
        let stream = |domain| Stream::new(author.seed, domain, number);
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
        self.author.nonces.of(self.number, 0)
    }

    /// What is planned for a request of the session.
    pub(crate) fn planned(&self, input_tokens: u32, output_tokens: Option<u32>) -> Planned {
        Planned::new(Arc::clone(&self.class.name), input_tokens, output_tokens)
    }

    /// Images of the session, each with its caption. They walk through the pool.
    pub(crate) fn images(&self) -> impl Iterator<Item = &'a Image> {
        let (pool, count) = (&self.class.pool.images, u64::from(self.class.per_request));
        let first = self.number.wrapping_mul(count);
        let places = (0..count).map(move |n| first.wrapping_add(n));
        places.filter_map(|place| {
            let place = place.checked_rem(pool.len() as u64)?;
            pool.get(place as usize)
        })
    }

    /// Whether the session's images were all shown before.
    pub(crate) fn shows_again(&self) -> bool {
        let (pool, count) =
            (self.class.pool.images.len() as u64, u64::from(self.class.per_request));
        self.number.saturating_mul(count) >= pool
    }

    /// Puts the session's images behind the text of its last user message; returns how many.
    pub(crate) fn illustrate(&self, messages: &mut [Message]) -> u32 {
        let last = messages.iter_mut().rev().find_map(|message| match message {
            Message::Plain { role: Role::User, parts } => Some(parts),
            _ => None,
        });
        let Some(parts) = last else { return 0 };
        let before = parts.len();
        parts.extend(self.images().map(|image| Part::Image(Arc::clone(&image.url))));
        (parts.len() - before) as u32
    }

    /// A request of the class. Every request draws whether it is under the constraint, so that the
    /// share is one of requests.
    pub(crate) fn request(&mut self, messages: Vec<Message>, mut planned: Planned) -> Request {
        let constraint = self
            .class
            .constraint
            .as_ref()
            .filter(|(share, _)| self.constraints.unit() < *share)
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
