//! What is found out about answers after the last request: their tokens by one tokenizer, and
//! whether they keep their constraints. Never between the first request and the last.

use std::collections::HashMap;
use std::path::Path;

use goodput_clock::now;
use goodput_model::{AnswerJudgement, ConstraintKind, Nanos, Plan};
use goodput_record::{JudgementLog, Spool};
use goodput_tokens::Tokenizer;
use goodput_workload::{Checker, Workload};

use crate::hub::Hub;
use crate::{Failed, Observer};

/// How often a long judgement is heard of.
const WORD: Nanos = Nanos::from_millis(5_000);

/// Looks at answers.
pub struct AnswerJudge {
    tokenizer: Option<Tokenizer>,
    checkers: HashMap<(String, ConstraintKind), Checker>,
}

impl AnswerJudge {
    /// The judge that this plan needs; none if there is nothing to judge.
    pub fn new(
        plan: &Plan,
        workload: &Workload,
        own: Option<&Tokenizer>,
        hub: &Hub,
    ) -> Result<Option<Self>, Failed> {
        let tokenizer = match &plan.workload.count_with {
            Some(name) => Some(hub.tokenizer(name)?),
            // A server that counts is believed; one that does not is counted for.
            None if plan.target.stream && !plan.target.usage => own.cloned(),
            None => None,
        };
        let mut checkers = HashMap::new();
        for (class, constraint) in workload.constraints() {
            let checker = Checker::new(&constraint).map_err(|error| {
                let hint = error.hint.clone();
                Failed::usage(error.to_string()).hint(hint)
            })?;
            checkers.insert((class.to_string(), constraint.kind()), checker);
        }
        let is_needed = tokenizer.is_some() || !checkers.is_empty();
        Ok(is_needed.then_some(Self { tokenizer, checkers }))
    }

    /// The checker of this class; rows with labels of their own have the constraint of their class.
    fn checker_of_class(&self, class: &str, kind: ConstraintKind) -> Option<&Checker> {
        let mut of_kind = self.checkers.iter().filter(|((_, known), _)| *known == kind);
        self.checkers.get(&(class.to_owned(), kind)).or_else(|| {
            of_kind.next().map(|(_, checker)| checker).filter(|_| of_kind.next().is_none())
        })
    }

    /// Judges every answer, and writes what it finds into the run folder.
    pub fn judge_answers(
        &self,
        answers: Spool,
        folder: &Path,
        observer: &dyn Observer,
    ) -> Result<(), Failed> {
        let lost = answers.lost_answers();
        let broken = |error: &dyn std::fmt::Display| {
            Failed::internal(format!("cannot check the answers: {error}"))
        };
        let mut log = JudgementLog::create(folder).map_err(|error| broken(&error))?;
        let mut next = now() + WORD;
        for (count, answer) in answers.drain().map_err(|error| broken(&error))?.enumerate() {
            let checker =
                answer.constraint.and_then(|kind| self.checker_of_class(&answer.class, kind));
            log.append(&AnswerJudgement {
                index: answer.index,
                output_tokens: self.tokenizer.as_ref().and_then(|t| t.count(&answer.text).ok()),
                characters: u32::try_from(answer.text.chars().count()).unwrap_or(u32::MAX),
                valid: checker.and_then(|checker| checker.check(&answer.text)),
            });
            if now() >= next {
                next = now() + WORD;
                observer.note(format!("judged {count} answers"));
            }
        }
        let unwritten = log.finish();
        if let Some(error) = unwritten.error {
            observer
                .warn(format!("part of the checks of the answers could not be written: {error}"));
        }
        if lost > 0 {
            observer.warn(format!("{lost} answers were not kept, so they were not checked"));
        }
        Ok(())
    }
}
