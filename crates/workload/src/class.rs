//! A class of traffic, ready to make sessions.

use std::sync::Arc;

use goodput_model::{ClassPlan, Nanos, Session, SourcePlan};

use crate::author::Author;
use crate::check::MOST_TOKENS;
use crate::entries::Entries;
use crate::images::Images;
use crate::maker::{SessionMaker, Traits};
use crate::sizes::LengthSource;
use crate::trace::{TraceArrivals, scale_time};
use crate::{Material, Setting, WorkloadError, constraint, entries, images, synthetic, trace};

pub(crate) struct RequestClass {
    pub(crate) traits: Traits,
    pub(crate) source: ClassSource,
}

pub(crate) enum ClassSource {
    /// Generated text of these sizes.
    Generated(LengthSource),
    Entries(Entries),
    Trace(TraceArrivals),
    Frozen {
        sessions: Vec<(Option<Nanos>, Session)>,
        time_scale: f64,
    },
}

impl RequestClass {
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
                ClassSource::Generated(LengthSource::Drawn { input: *input, output: *output })
            }
            (SourcePlan::Pairs { file }, Material::Pairs(pairs)) => {
                let pairs = require_entries(pairs, name, file)?;
                let is_sound = |tokens: u32| (1..=MOST_TOKENS).contains(&tokens);
                let wrong = pairs.iter().find(|(i, o)| !(is_sound(*i) && is_sound(*o)));
                if let Some((input, output)) = wrong {
                    return Err(WorkloadError::new(
                        format!(
                            "class `{name}`: {file}: the pair {input},{output}: expected lengths \
                             of 1 to {MOST_TOKENS}"
                        ),
                        "correct the row or remove it",
                    ));
                }
                ClassSource::Generated(LengthSource::Pairs(pairs))
            }
            (SourcePlan::Dataset(data), Material::Entries(loaded)) => {
                let entries = require_entries(loaded.entries, name, &data.file)?;
                ClassSource::Entries(Entries::new(data, entries))
            }
            (SourcePlan::Trace(trace), Material::Entries(mut loaded)) => {
                loaded.entries = require_entries(loaded.entries, name, &trace.file)?;
                ClassSource::Trace(TraceArrivals::new(trace, loaded, setting)?)
            }
            (SourcePlan::Frozen { file, .. }, Material::Frozen(sessions)) => ClassSource::Frozen {
                sessions: require_entries(sessions, name, file)?,
                time_scale: setting.time_scale,
            },
            _ => {
                return Err(WorkloadError::new(
                    format!("class `{name}`: the loaded material does not fit its source"),
                    "load each class by its own source",
                ));
            }
        };
        let pool = match &plan.images {
            Some(wanted) => images::load_image_pool(wanted, setting.seed, skip_invalid)?,
            None => Images::default(),
        };
        let constraint = match &plan.structured {
            Some(wanted) => Some((wanted.share, constraint::build_constraint(wanted)?)),
            None => None,
        };
        let traits = Traits {
            index,
            name: name.as_str().into(),
            model: plan.model.as_deref().map(Arc::from),
            prefix: plan.prefix.clone(),
            session: plan.session.clone(),
            per_request: plan.images.as_ref().map_or(0, |images| images.count),
            pool,
            constraint,
        };
        Ok(Self { traits, source })
    }

    /// The session; `None` past the end of a source that ends.
    pub(crate) fn session(&self, author: &Author, number: u64, local: u64) -> Option<Session> {
        let mut maker = SessionMaker::new(author, &self.traits, number, local);
        match &self.source {
            ClassSource::Generated(sizes) => Some(synthetic::synthetic_session(&mut maker, sizes)),
            ClassSource::Entries(entries) => entries::session_from_entry(&mut maker, entries),
            ClassSource::Trace(trace) => trace::session_from_trace(&mut maker, trace),
            ClassSource::Frozen { sessions, time_scale } => {
                let (_, session) = sessions.get(usize::try_from(local).ok()?)?;
                Some(scale_pauses(session.clone(), *time_scale))
            }
        }
    }

    /// Requests of a session.
    pub(crate) fn request_count(&self, author: &Author, number: u64, local: u64) -> Option<u64> {
        match &self.source {
            ClassSource::Generated(_) => {
                let plan = self.traits.session.as_ref();
                let maker = || SessionMaker::new(author, &self.traits, number, local);
                let draws = |plan| synthetic::session_request_count(&mut maker(), plan);
                Some(plan.map_or(1, draws))
            }
            ClassSource::Entries(entries) => entries.request_count(local),
            ClassSource::Trace(trace) => trace.request_count(local),
            ClassSource::Frozen { sessions, .. } => sessions
                .get(usize::try_from(local).ok()?)
                .map(|(_, session)| session.request_count()),
        }
    }

    /// In whose turn a session of a trace is dealt out. A class of a trace is alone.
    pub(crate) fn deal_turn(&self, local: u64) -> Option<u64> {
        match &self.source {
            ClassSource::Trace(trace) => trace.deal_turn(local),
            _ => None,
        }
    }

    /// When a session arrives, in sources that say so.
    pub(crate) fn arrival(&self, local: u64) -> Option<Nanos> {
        match &self.source {
            ClassSource::Trace(trace) => trace.arrival(local),
            ClassSource::Frozen { sessions, time_scale } => {
                let (at, _) = sessions.get(usize::try_from(local).ok()?)?;
                at.map(|at| scale_time(at, *time_scale))
            }
            _ => None,
        }
    }
}

/// The list, unless there is nothing in it.
fn require_entries<T>(list: Vec<T>, class: &str, file: &str) -> Result<Vec<T>, WorkloadError> {
    if list.is_empty() {
        return Err(WorkloadError::new(
            format!("class `{class}`: {file} has no entry that can be used"),
            "`goodput workload show` says what was left out and why",
        ));
    }
    Ok(list)
}

fn scale_pauses(mut session: Session, factor: f64) -> Session {
    for step in &mut session.steps {
        step.after = scale_time(step.after, factor);
    }
    for request in session.steps.iter_mut().flat_map(|step| &mut step.requests) {
        request.planned.trace_at = request.planned.trace_at.map(|at| scale_time(at, factor));
    }
    session
}
