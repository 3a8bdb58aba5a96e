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
    pub(crate) fn add_number(&mut self, value: u64) {
        self.0.update(value.to_le_bytes());
    }

    pub(crate) fn add_text(&mut self, text: &str) {
        self.add_number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn add_option(&mut self, value: Option<u64>) {
        self.add_number(u64::from(value.is_some()));
        self.add_number(value.unwrap_or(0));
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

    pub(crate) fn add_session(&mut self, session: &Session) {
        self.add_number(match session.history {
            History::Server => 0,
            History::Dataset => 1,
        });
        self.add_number(session.steps.len() as u64);
        for step in &session.steps {
            self.add_number(step.after.0);
            self.add_number(step.requests.len() as u64);
            step.requests.iter().for_each(|request| self.add_request(request));
            self.add_number(u64::from(step.reply.is_some()));
            step.reply.iter().for_each(|reply| self.add_message(reply));
        }
    }

    fn add_request(&mut self, request: &Request) {
        self.add_number(request.messages.len() as u64);
        request.messages.iter().for_each(|message| self.add_message(message));
        self.add_number(request.fields.len() as u64);
        for (key, json) in request.fields.iter() {
            self.add_text(key);
            self.add_text(json);
        }
        self.add_number(u64::from(request.model.is_some()));
        self.add_text(request.model.as_deref().unwrap_or(""));
        self.add_constraint(request.constraint.as_deref());
        self.add_planned(&request.planned);
    }

    fn add_message(&mut self, message: &Message) {
        let Message::Plain { role, parts } = message else {
            self.add_number(9);
            if let Message::Raw(json) = message {
                self.add_text(json);
            }
            return;
        };
        self.add_number(match role {
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
                    self.add_number(1);
                    self.add_text(&joined);
                    joined.clear();
                    self.add_number(2);
                    self.add_text(url);
                }
            }
        }
        self.add_number(1);
        self.add_text(&joined);
        self.add_number(0);
    }

    fn add_constraint(&mut self, constraint: Option<&Constraint>) {
        let (kind, texts) = match constraint {
            None => (0, &[][..]),
            Some(Constraint::Json(text)) => (1, std::slice::from_ref(text)),
            Some(Constraint::Regex(text)) => (2, std::slice::from_ref(text)),
            Some(Constraint::Choice(texts)) => (3, texts.as_slice()),
            Some(Constraint::Grammar(text)) => (4, std::slice::from_ref(text)),
        };
        self.add_number(kind);
        self.add_number(texts.len() as u64);
        for text in texts {
            self.add_text(text);
        }
    }

    fn add_planned(&mut self, planned: &Planned) {
        self.add_text(&planned.class);
        self.add_number(planned.input_tokens.into());
        self.add_option(planned.output_tokens.map(u64::from));
        self.add_option(planned.session);
        self.add_number(planned.turn.into());
        self.add_number(planned.images.into());
        self.add_option(planned.cached_tokens.map(u64::from));
        self.add_option(planned.trace_at.map(|at| at.0));
    }
}

/// A class without the place of its file: another machine keeps it elsewhere.
pub(crate) fn class_identity(class: &ClassPlan, sha256: Option<&str>) -> String {
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
