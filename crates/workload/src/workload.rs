//! The sessions of a run, by number.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use goodput_model::{ClassPlan, Constraint, Nanos, Session, SharedPlan, SourcePlan, WorkloadPlan};
use goodput_tokens::Tokenizer;

use crate::author::Author;
use crate::class::{ClassSource, RequestClass};
use crate::error::WorkloadError;
use crate::hash::Canon;
use crate::material::{Material, Setting};
use crate::mix::Mix;
use crate::{check, hash, sources};

/// The sessions of a run. Cheap to clone.
#[derive(Clone)]
pub struct Workload(Arc<WorkloadParts>);

struct WorkloadParts {
    author: Author,
    mix: Mix,
    classes: Vec<RequestClass>,
    notes: Vec<String>,
    /// What the hash holds in addition to the sessions.
    identity: Vec<String>,
}

impl fmt::Debug for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workload").field("classes", &self.0.identity).finish_non_exhaustive()
    }
}

/// Sessions that enter the hash.
const HASHED: u64 = 100;

impl Workload {
    /// The workload that the plan describes; reads its files.
    pub fn new(plan: &WorkloadPlan, setting: &Setting) -> Result<Self, WorkloadError> {
        Self::build(plan, setting, Self::load_materials(plan, setting, None)?)
    }

    /// What each class needs from its files, in the order of the classes. The tokenizer chooses
    /// entries by their length; without one, an estimate does.
    pub fn load_materials(
        plan: &WorkloadPlan,
        setting: &Setting,
        tokenizer: Option<&Tokenizer>,
    ) -> Result<Vec<Material>, WorkloadError> {
        check::check_plan(plan)?;
        sources::load_materials(plan, setting, tokenizer)
    }

    /// The workload that the plan describes, from what was loaded for each class.
    pub fn build(
        plan: &WorkloadPlan,
        setting: &Setting,
        loaded: Vec<Material>,
    ) -> Result<Self, WorkloadError> {
        check::check_plan(plan)?;
        let scale = setting.time_scale;
        if !(scale.is_finite() && scale > 0.0) {
            return Err(WorkloadError::new(
                format!("the time scale is {scale}: expected a number above zero"),
                "1 replays a trace as it was recorded, 0.5 twice as fast",
            ));
        }
        let shares: Vec<(&str, f64)> =
            plan.classes.iter().map(|class| (class.name.as_str(), class.share)).collect();
        let mix = Mix::new(&shares, setting.seed)?;
        let author = Author::new(plan, setting.seed)?;
        let mut materials = loaded.into_iter();
        let (mut classes, mut notes, mut identity) = (Vec::new(), Vec::new(), Vec::new());
        let (template, message) = (author.template, author.message);
        identity.push(format!("seed {} template {template} {message}", setting.seed));
        identity.push(plan.calibration.as_ref().map_or(String::new(), |c| c.costs.clone()));
        for (index, class) in plan.classes.iter().enumerate() {
            let material = materials.next().unwrap_or_default();
            let sha256 = file_hash(class, &material)?;
            identity.push(hash::class_identity(class, sha256.as_deref()));
            notes.extend(loader_notes(&class.name, &material));
            let made =
                RequestClass::new(index as u64, class, setting, material, plan.skip_invalid)?;
            notes.extend(skipped_images_note(&made));
            notes.extend(too_long_prefix_note(class, &author));
            classes.push(made);
        }
        Ok(Self(Arc::new(WorkloadParts { author, mix, classes, notes, identity })))
    }

    /// When session `number` arrives, in a workload that brings its own instants, on the run's
    /// clock; `None` past the end, and in workloads without instants.
    pub fn arrival(&self, number: u64) -> Option<Nanos> {
        let (class, local) = self.0.mix.class_of(number);
        self.0.classes.get(class)?.arrival(local)
    }

    /// Session `number`; `None` past the end of a workload that ends.
    pub fn session(&self, number: u64) -> Option<Session> {
        let (class, local) = self.0.mix.class_of(number);
        self.0.classes.get(class)?.session(&self.0.author, number, local)
    }

    /// How many requests session `number` has, without making it where that can be.
    pub fn request_count(&self, number: u64) -> Option<u64> {
        let (class, local) = self.0.mix.class_of(number);
        self.0.classes.get(class)?.request_count(&self.0.author, number, local)
    }

    /// In whose turn a session is dealt out to one of several clients: its own, but for rows of a trace
    /// that are played one by one, which have that of the session they were taken from.
    pub fn deal_turn(&self, number: u64) -> u64 {
        let (class, local) = self.0.mix.class_of(number);
        self.0.classes.get(class).and_then(|class| class.deal_turn(local)).unwrap_or(number)
    }

    /// Sessions in all, of a workload that ends.
    pub fn session_count(&self) -> Option<u64> {
        self.0.classes.iter().find_map(|class| match &class.source {
            ClassSource::Trace(trace) => Some(trace.session_count() as u64),
            ClassSource::Frozen { sessions, .. } => Some(sessions.len() as u64),
            _ => None,
        })
    }

    /// What people should know of it: entries left out, entries repeated.
    pub fn notes(&self) -> &[String] {
        &self.0.notes
    }

    /// What people should know once this many sessions were asked for: entries that came again.
    pub fn repeat_notes(&self, sessions: u64) -> Vec<String> {
        let WorkloadParts { classes, mix, .. } = self.0.as_ref();
        let classes = classes.iter().enumerate();
        classes
            .filter_map(|(index, class)| {
                repeated_entries_note(class, mix.expected_sessions(index, sessions))
            })
            .collect()
    }

    /// The constraints that answers may be under, with their classes.
    pub fn constraints(&self) -> Vec<(Arc<str>, Arc<Constraint>)> {
        let mut found: Vec<(Arc<str>, Arc<Constraint>)> = Vec::new();
        let mut add = |class: &Arc<str>, constraint: &Arc<Constraint>| {
            let is_there = |(name, known): &(Arc<str>, Arc<Constraint>)| {
                name == class && known.kind() == constraint.kind()
            };
            if !found.iter().any(is_there) {
                found.push((Arc::clone(class), Arc::clone(constraint)));
            }
        };
        for class in &self.0.classes {
            if let Some((_, constraint)) = &class.traits.constraint {
                add(&class.traits.name, constraint);
            }
            let ClassSource::Frozen { sessions, .. } = &class.source else { continue };
            let steps = sessions.iter().flat_map(|(_, session)| &session.steps);
            for request in steps.flat_map(|step| &step.requests) {
                if let Some(constraint) = &request.constraint {
                    add(&request.planned.class, constraint);
                }
            }
        }
        found
    }

    /// SHA-256 of the plan's shapes and files and of the first hundred sessions, in hexadecimal:
    /// the same on every machine that sends the same.
    pub fn hash(&self) -> String {
        let mut canon = Canon::default();
        self.0.identity.iter().for_each(|line| canon.add_text(line));
        for session in (0..HASHED).map_while(|number| self.session(number)) {
            canon.add_session(&session);
        }
        canon.finish()
    }

    /// Share of the prompt tokens of the first `sessions` sessions that a prefix cache would hold,
    /// warm and without limits, by the plan. What sessions share by chance is not in it.
    pub fn cache_estimate(&self, sessions: u64) -> f64 {
        let (mut cached, mut all) = (0u64, 0u64);
        for session in (0..sessions).map_while(|number| self.session(number)) {
            for request in session.steps.iter().flat_map(|step| &step.requests) {
                cached += u64::from(request.planned.cached_tokens.unwrap_or(0));
                all += u64::from(request.planned.input_tokens);
            }
        }
        cached as f64 / all.max(1) as f64
    }
}

/// The hash of the class's file, which must be the plan's where the plan has one.
fn file_hash(class: &ClassPlan, material: &Material) -> Result<Option<String>, WorkloadError> {
    let (file, planned) = match &class.source {
        SourcePlan::Dataset(data) => (&data.file, data.sha256.as_ref()),
        SourcePlan::Trace(trace) => (&trace.file, trace.sha256.as_ref()),
        SourcePlan::Frozen { file, sha256 } => (file, sha256.as_ref()),
        SourcePlan::Synthetic { .. } | SourcePlan::Pairs { .. } => (&class.name, None),
    };
    let found = match material {
        Material::Synthetic => None,
        Material::Entries(loaded) => Some(loaded.sha256.clone()),
        Material::Pairs(pairs) => {
            let mut canon = Canon::default();
            for (input, output) in pairs {
                canon.add_number(u64::from(*input) << 32 | u64::from(*output));
            }
            Some(canon.finish())
        }
        Material::Frozen(sessions) => planned.cloned().or_else(|| {
            let mut canon = Canon::default();
            canon.add_number(sessions.len() as u64);
            for (_, session) in sessions {
                canon.add_session(session);
            }
            Some(canon.finish())
        }),
    };
    match (planned, &found) {
        (Some(planned), Some(found)) if planned != found => Err(WorkloadError::new(
            format!(
                "class `{}`: {file} is not the file of the plan: its hash is {found}",
                class.name
            ),
            format!("the plan was made with {planned}; remove `sha256` from the plan to continue"),
        )),
        _ => Ok(found),
    }
}

/// What the loader left out, and what else it has to say.
fn loader_notes(class: &str, material: &Material) -> Vec<String> {
    let Material::Entries(loaded) = material else { return Vec::new() };
    let left_out = skip_reasons(&loaded.skipped).map(|(total, reasons)| {
        let seen = group_thousands(loaded.seen);
        format!("{class}: {} of {seen} entries left out: {reasons}", group_thousands(total))
    });
    let notes = loaded.notes.iter().map(|note| format!("{class}: {note}"));
    left_out.into_iter().chain(notes).collect()
}

fn skipped_images_note(class: &RequestClass) -> Option<String> {
    let (total, reasons) = skip_reasons(&class.traits.pool.skipped)?;
    Some(format!("{}: {} images left out: {reasons}", class.traits.name, group_thousands(total)))
}

/// How many were left out, and why; `None` where none were.
fn skip_reasons(skipped: &BTreeMap<String, u64>) -> Option<(u64, String)> {
    let reasons: Vec<String> =
        skipped.iter().map(|(reason, count)| format!("{reason} ({count})")).collect();
    (!reasons.is_empty()).then(|| (skipped.values().sum(), reasons.join(", ")))
}

/// Whether what prompts share is longer than they were to be.
fn too_long_prefix_note(class: &ClassPlan, author: &Author) -> Option<String> {
    let SourcePlan::Synthetic { input, .. } = &class.source else { return None };
    let prefix = class.prefix.as_ref()?;
    let shared = match prefix.shared {
        Some(SharedPlan::Groups { tokens, .. } | SharedPlan::Tiling { tokens, .. }) => tokens,
        _ => 0,
    };
    let least = author.tokens_before_user(prefix.system_tokens).saturating_add(shared);
    (f64::from(least) >= input.typical_most()).then(|| {
        format!(
            "{}: prompts are longer than the requested {input} tokens: their shared part alone has \
             {}",
            class.name,
            group_thousands(least.into())
        )
    })
}

/// Whether a file's entries are asked more than once by this many sessions.
fn repeated_entries_note(class: &RequestClass, sessions: f64) -> Option<String> {
    let ClassSource::Entries(entries) = &class.source else { return None };
    let count = entries.list.len();
    let times = sessions / count as f64;
    (times > 1.0).then(|| {
        format!(
            "{}: {} entries for {} requests: repeated {} times with fresh nonces",
            class.traits.name,
            group_thousands(count as u64),
            group_thousands(sessions.ceil() as u64),
            (times * 10.0).round() / 10.0
        )
    })
}

/// A number with commas between its thousands.
fn group_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
