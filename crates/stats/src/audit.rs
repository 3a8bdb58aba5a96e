//! *The audit*: what a result states, what it leaves out, and what of it cannot be true.
//!
//! One list of checks for every tool. Each looks at a [`Reported`], says nothing if it does not
//! apply, and otherwise gives evidence and advice. A run of ours is first put into the same form;
//! its verdict and caveats come before the list.

mod arithmetic;
mod details;
mod flow;
mod load;
mod ours;
mod phases;
mod sample;
mod setup;
mod shape;
#[cfg(test)]
mod study;
mod system;
#[cfg(test)]
mod tests;
mod tool;
mod words;

use goodput_model::{Reported, Severity, Verdict};
use serde::{Deserialize, Serialize};

pub use ours::{audit_run, own_items};

/// The findings about one result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    /// Which result: a file or folder, and the run in it. Set by the caller.
    pub subject: String,
    /// Who wrote it.
    pub tool: String,
    /// The run in one line.
    pub run: String,
    /// The worst item decides.
    pub verdict: Verdict,
    /// Every check that applies, worst first.
    pub items: Vec<Item>,
}

/// One check on one result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Stable name for scripts.
    pub check: String,
    /// The name for people.
    pub title: String,
    /// The outcome.
    pub status: Status,
    /// How much that matters.
    pub severity: Severity,
    /// What the result states.
    pub evidence: String,
    /// What to do; empty if nothing can be done.
    pub advice: String,
    /// Why the check is made.
    pub source: Source,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Stated, and nothing contradicts it.
    Ok,
    /// Not stated.
    Missing,
    /// Stated, but not to be taken at face value.
    Doubtful,
    /// It cannot be true, or means nothing.
    Wrong,
}

impl Status {
    /// The word in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Missing => "missing",
            Self::Doubtful => "doubtful",
            Self::Wrong => "wrong",
        }
    }
}

/// Why a check is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// What every benchmark should do.
    Checklist,
    /// Common mistakes in reports.
    CommonMistakes,
    /// What a reader needs to repeat the run.
    ReportContents,
    /// Known errors of tools.
    MeasurementTraps,
    /// Figures of one file that must agree.
    Arithmetic,
    /// The run's own verdict.
    OwnVerdict,
}

impl Source {
    /// The words in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Checklist => "checklist",
            Self::CommonMistakes => "common mistakes",
            Self::ReportContents => "report contents",
            Self::MeasurementTraps => "measurement traps",
            Self::Arithmetic => "arithmetic",
            Self::OwnVerdict => "own verdict",
        }
    }
}

/// A check of the list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    /// Stable name for scripts.
    pub code: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// Why it is made.
    pub source: Source,
    run: Look,
}

/// Looks at a result; says nothing if the check does not apply.
type Look = fn(&Reported) -> Option<CheckFinding>;

/// What a check says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CheckFinding {
    status: Status,
    severity: Severity,
    evidence: String,
    advice: String,
}

impl CheckFinding {
    fn new(
        status: Status,
        severity: Severity,
        evidence: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { status, severity, evidence: evidence.into(), advice: advice.into() }
    }

    fn ok(evidence: impl Into<String>) -> Self {
        Self::new(Status::Ok, Severity::Info, evidence, "")
    }

    fn missing(evidence: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Status::Missing, Severity::Info, evidence, advice)
    }

    /// To know, though it need not have distorted this result.
    fn note(evidence: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Status::Doubtful, Severity::Info, evidence, advice)
    }

    fn doubtful(evidence: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Status::Doubtful, Severity::Warn, evidence, advice)
    }

    fn wrong(evidence: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Status::Wrong, Severity::Void, evidence, advice)
    }
}

/// Every check, in the order of the documentation.
pub(crate) fn all_checks() -> Vec<Check> {
    let rooms: [&[Check]; 9] = [
        &load::CHECKS,
        &sample::CHECKS,
        &setup::CHECKS,
        &tool::CHECKS,
        &arithmetic::CHECKS,
        &phases::CHECKS,
        &flow::CHECKS,
        &details::CHECKS,
        &shape::CHECKS,
    ];
    rooms.concat()
}

/// What a result of any tool is worth.
pub fn audit_reported(run: &Reported) -> Audit {
    let items = all_checks().iter().filter_map(|check| check.audit_item(run)).collect();
    Audit::new(run, items)
}

impl Check {
    const fn new(source: Source, code: &'static str, title: &'static str, run: Look) -> Self {
        Self { code, title, source, run }
    }

    fn audit_item(&self, run: &Reported) -> Option<Item> {
        let CheckFinding { status, severity, evidence, advice } = (self.run)(run)?;
        Some(Item {
            check: self.code.to_owned(),
            title: self.title.to_owned(),
            status,
            severity,
            evidence,
            advice,
            source: self.source,
        })
    }
}

impl Audit {
    fn new(run: &Reported, items: Vec<Item>) -> Self {
        let tool = match &run.version {
            Some(version) => format!("{} {version}", run.tool.name()),
            None => run.tool.name().to_owned(),
        };
        let mut audit = Self {
            subject: String::new(),
            tool,
            run: words::run_line(run),
            verdict: Verdict::Valid,
            items,
        };
        audit.settle_verdict();
        audit
    }

    /// The same with every missing fact taken for a reason to doubt.
    #[must_use]
    pub fn with_missing_doubtful(mut self) -> Self {
        for item in &mut self.items {
            if item.status == Status::Missing {
                item.severity = item.severity.max(Severity::Warn);
            }
        }
        self.settle_verdict();
        self
    }

    /// The same after its items were changed: in their order, with the verdict that follows.
    #[must_use]
    pub fn with_settled_verdict(mut self) -> Self {
        self.settle_verdict();
        self
    }

    /// How many items have this status.
    pub fn count(&self, status: Status) -> usize {
        self.items.iter().filter(|item| item.status == status).count()
    }

    fn settle_verdict(&mut self) {
        // Stable: equals stay in the order of the list.
        self.items.sort_by_key(|item| std::cmp::Reverse((item.severity, item.status)));
        self.verdict = match self.items.iter().map(|item| item.severity).max() {
            None | Some(Severity::Info) => Verdict::Valid,
            Some(Severity::Warn) => Verdict::Suspect,
            Some(Severity::Void) => Verdict::Void,
        };
    }
}
