//! A workload's name for machines: the same plan has the same hash everywhere.
//!
//! Sessions are written in a form of our own that holds everything that is sent and what was
//! planned of it. Model and dialect are the target's, and not in it.

use std::fmt::Write;

use goodput_model::{
    ClassPlan, Constraint, History, Message, MessagePart, Planned, Request, Role, Session,
    SourcePlan,
};
use sha2::{Digest, Sha256};

/// Hashes values with their lengths, so that no two sequences of values are the same bytes.
#[derive(Default)]
pub(crate) struct Canon(Sha256);

impl Canon {
    pub(crate) fn number(&mut self, value: u64) {
        self.0.update(value.to_le_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn option(&mut self, value: Option<u64>) {
        self.number(u64::from(value.is_some()));
        self.number(value.unwrap_or(0));
    }

    /// In hexadecimal.
    pub(crate) fn finish(self) -> String {
        let mut hex = String::with_capacity(64);
        for byte in self.0.finalize() {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }

    pub(crate) fn session(&mut self, session: &Session) {
        self.number(match session.history {
            History::Server => 0,
            History::Dataset => 1,
        });
        self.number(session.steps.len() as u64);
        for step in &session.steps {
            self.number(step.after.0);
            self.number(step.requests.len() as u64);
            step.requests.iter().for_each(|request| self.request(request));
            self.number(u64::from(step.reply.is_some()));
            step.reply.iter().for_each(|reply| self.message(reply));
        }
    }

    fn request(&mut self, request: &Request) {
        self.number(request.messages.len() as u64);
        request.messages.iter().for_each(|message| self.message(message));
        self.number(request.fields.len() as u64);
        for (key, json) in request.fields.iter() {
            self.text(key);
            self.text(json);
        }
        self.number(u64::from(request.model.is_some()));
        self.text(request.model.as_deref().unwrap_or(""));
        self.constraint(request.constraint.as_deref());
        self.planned(&request.planned);
    }

    fn message(&mut self, message: &Message) {
        let Message::Plain { role, parts } = message else {
            self.number(9);
            if let Message::Raw(json) = message {
                self.text(json);
            }
            return;
        };
        self.number(match role {
            Role::System => 1,
            Role::User => 2,
            Role::Assistant => 3,
            Role::Tool => 4,
        });
        // Texts that follow one another are one text, however they are kept.
        let mut joined = String::new();
        for part in parts {
            match part {
                MessagePart::Text(text) => joined.push_str(text),
                MessagePart::Image(url) => {
                    self.number(1);
                    self.text(&joined);
                    joined.clear();
                    self.number(2);
                    self.text(url);
                }
            }
        }
        self.number(1);
        self.text(&joined);
        self.number(0);
    }

    fn constraint(&mut self, constraint: Option<&Constraint>) {
        let (kind, texts) = match constraint {
            None => (0, &[][..]),
            Some(Constraint::Json(text)) => (1, std::slice::from_ref(text)),
            Some(Constraint::Regex(text)) => (2, std::slice::from_ref(text)),
            Some(Constraint::Choice(texts)) => (3, texts.as_slice()),
            Some(Constraint::Grammar(text)) => (4, std::slice::from_ref(text)),
        };
        self.number(kind);
        self.number(texts.len() as u64);
        for text in texts {
            self.text(text);
        }
    }

    fn planned(&mut self, planned: &Planned) {
        self.text(&planned.class);
        self.number(planned.input_tokens.into());
        self.option(planned.output_tokens.map(u64::from));
        self.option(planned.session);
        self.number(planned.turn.into());
        self.number(planned.images.into());
        self.option(planned.cached_tokens.map(u64::from));
        self.option(planned.trace_at.map(|at| at.0));
    }
}

/// A class without the place of its file: another machine keeps it elsewhere.
pub(crate) fn identity(class: &ClassPlan, sha256: Option<&str>) -> String {
    let mut class = class.clone();
    match &mut class.source {
        SourcePlan::Synthetic { .. } => {}
        SourcePlan::Pairs { file } => file.clear(),
        SourcePlan::Dataset(data) => {
            data.file.clear();
            data.sha256 = None;
        }
        SourcePlan::Trace(trace) => {
            trace.file.clear();
            trace.sha256 = None;
        }
        SourcePlan::Frozen { file, sha256 } => {
            file.clear();
            *sha256 = None;
        }
    }
    if let Some(folder) = class.images.as_mut().and_then(|images| images.folder.as_mut()) {
        folder.clear();
    }
    let plan = serde_json::to_string(&class).unwrap_or_default();
    format!("{} {plan}", sha256.unwrap_or("-"))
}
