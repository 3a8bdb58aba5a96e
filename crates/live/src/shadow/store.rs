//! The folder of a shadow: how it is filled while it runs, and what is read from it later. Pairs
//! are counted as their logs keep them, so that `goodput report` says what the verb has printed.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use goodput_campaign::compare::{CompareFacts, CompareState, Comparison, Side};
use goodput_campaign::shadow::{Ledger, Pair, PairSettings, ShadowFacts};
use goodput_model::{Caveat, CaveatCode, Nanos, Severity, Verdict};
use goodput_record::{FolderError, PairLogs, ShadowFolder};
use serde::{Deserialize, Serialize};

use crate::observer::LiveObserver;

/// What was asked, as `shadow.toml` has it; without secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShadowPlan {
    /// `goodput.shadow/1`
    pub schema: String,
    /// Version of goodput.
    pub version: String,
    /// When it began (RFC 3339).
    pub started: String,
    /// Share of the requests that is to be mirrored.
    pub share: f64,
    /// What else was typed, flag by flag: rules, caps, addresses. No credentials.
    #[serde(default)]
    pub flags: BTreeMap<String, String>,
    /// How pairs are set against each other.
    pub pairs: PairSettings,
    /// The primary and the candidate; URLs without secrets.
    pub sides: [Side; 2],
}

impl ShadowPlan {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.shadow/1";
}

/// What `report.txt` says of a comparison.
pub type TextPage = fn(&Comparison) -> String;

/// A folder that is being filled.
pub struct PairStore {
    folder: ShadowFolder,
    logs: PairLogs,
    plan: ShadowPlan,
    page: TextPage,
    observer: Arc<dyn LiveObserver>,
    counted: PairCounts,
    /// Whether the last summary could be written.
    is_refused: Cell<bool>,
}

/// Pairs, and the models that they name.
#[derive(Debug)]
struct PairCounts {
    ledger: Ledger,
    models: BTreeSet<String>,
}

impl PairCounts {
    fn new(plan: &ShadowPlan) -> Self {
        Self { ledger: Ledger::new(plan.pairs.clone()), models: BTreeSet::new() }
    }

    fn add(&mut self, pair: &Pair) {
        if let Some((_, model)) = pair.primary.planned.class.split_once('/')
            && !self.models.contains(model)
        {
            self.models.insert(model.to_owned());
        }
        self.ledger.add(pair);
    }

    fn compare(&self, plan: &ShadowPlan, facts: CompareFacts, shadow: &ShadowFacts) -> Comparison {
        self.ledger.compare(facts, shadow, with_models(plan.sides.clone(), &self.models))
    }
}

impl PairStore {
    /// Makes the folder.
    pub fn create(
        path: &Path,
        plan: ShadowPlan,
        page: TextPage,
        observer: Arc<dyn LiveObserver>,
    ) -> Result<Self, FolderError> {
        let (folder, logs) = ShadowFolder::create(path, &plan)?;
        let counted = PairCounts::new(&plan);
        Ok(Self { folder, logs, plan, page, observer, counted, is_refused: Cell::new(false) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What was asked.
    pub(super) fn plan(&self) -> &ShadowPlan {
        &self.plan
    }

    /// Takes a pair; it is on its way to the disk after the next [`PairStore::flush`].
    pub fn append(&mut self, mut pair: Pair) {
        self.logs.append(pair.at, [&pair.primary, &pair.candidate], pair.likeness);
        for record in [&mut pair.primary, &mut pair.candidate] {
            let due = record.scheduled;
            // As logs keep them.
            for chunk in &mut record.exchange.chunks {
                chunk.at = due + Nanos::from_micros((chunk.at - due).as_micros_rounded());
            }
        }
        self.counted.add(&pair);
    }

    /// What the pairs so far say.
    pub fn comparison_so_far(&self, facts: CompareFacts, shadow: &ShadowFacts) -> Comparison {
        self.counted.compare(&self.plan, facts, shadow)
    }

    /// Hands everything to the system. To be called a few times a second.
    pub fn flush(&mut self) {
        self.logs.flush();
    }

    /// What the disk said when it last refused something.
    pub fn last_error(&self) -> Option<&str> {
        self.logs.last_error()
    }

    /// Writes the figures so far, for readers, and for the report of a shadow that is killed. A
    /// full disk must not end it.
    pub fn write_so_far(&self, comparison: &Comparison) {
        if let Some(news) = self.write_warning(write_results(&self.folder, self.page, comparison)) {
            self.observer.warn(&news);
        }
    }

    /// What to say of a summary that was written, or not: only what is new.
    fn write_warning(&self, written: Result<(), FolderError>) -> Option<String> {
        let was_refused = self.is_refused.replace(written.is_err());
        match written {
            Err(error) if !was_refused => Some(format!("warning: {error}")),
            Ok(()) if was_refused => Some("the result can be written again".to_owned()),
            _ => None,
        }
    }

    /// Ends the logs, and says what all pairs say. Leaves `summary.json` and `report.txt`.
    pub fn finish(self, facts: CompareFacts, shadow: &ShadowFacts) -> Comparison {
        let comparison = self.comparison_so_far(facts, shadow);
        let Self { folder, logs, page, observer, .. } = self;
        let unwritten = logs.finish();
        if let Some(error) = unwritten.last_error() {
            observer.warn(&format!(
                "warning: {} records could not be written: {error}",
                unwritten.unwritten_frames()
            ));
        }
        if let Err(error) = write_results(&folder, page, &comparison) {
            observer.warn(&format!("warning: {error}"));
        }
        comparison
    }
}

/// Writes both though one of them cannot be.
fn write_results(
    folder: &ShadowFolder,
    page: TextPage,
    comparison: &Comparison,
) -> Result<(), FolderError> {
    folder.write_summary(comparison).and(folder.write_report(&page(comparison)))
}

/// The numbers of a saved shadow, computed again from its logs; none if the folder holds none. Of
/// one that was killed they are of the pairs that reached the disk.
pub fn read_shadow(path: &Path) -> Option<Result<Comparison, FolderError>> {
    let folder = ShadowFolder::open(path)?;
    let read = || {
        let plan: ShadowPlan = folder.read_asked()?;
        let written: Option<Comparison> = folder.read_summary();
        let shadow = written.as_ref().and_then(|written| written.shadow.as_ref());
        let shadow = shadow.map(|shadow| shadow.facts.clone()).unwrap_or_default();
        let shadow = ShadowFacts { share: plan.share, ..shadow };
        let facts = written.map_or_else(
            || CompareFacts {
                version: plan.version.clone(),
                started: plan.started.clone(),
                state: CompareState::Unfinished,
                ..CompareFacts::default()
            },
            |written| written.comparison,
        );
        compare_pairs(&folder, &plan, facts, &shadow)
    };
    Some(read())
}

/// What the logs of a folder say.
fn compare_pairs(
    folder: &ShadowFolder,
    plan: &ShadowPlan,
    facts: CompareFacts,
    shadow: &ShadowFacts,
) -> Result<Comparison, FolderError> {
    let mut counted = PairCounts::new(plan);
    let mut pairs = folder.read_pairs()?;
    for (note, [primary, candidate]) in pairs.by_ref() {
        counted.add(&Pair { at: note.at, primary, candidate, likeness: note.likeness });
    }
    let mut comparison = counted.compare(plan, facts, shadow);
    if pairs.is_damaged() {
        let message = "a log in this folder is cut off or damaged: the figures leave out the pairs after that point";
        let caveat = Caveat::new(CaveatCode::RecordsLost, Severity::Warn, message);
        comparison.caveats.push(
            caveat.advise("a killed process or a full disk cuts logs off; a copy may be complete"),
        );
        comparison.verdict = Verdict::from_caveats(&comparison.caveats);
    }
    Ok(comparison)
}

/// Models that are named of a side at most.
const NAMED: usize = 3;

/// The sides with the models that clients asked for, where none was set for the candidate.
fn with_models(mut sides: [Side; 2], models: &BTreeSet<String>) -> [Side; 2] {
    let models: Vec<&str> =
        models.iter().map(String::as_str).filter(|one| !one.is_empty()).collect();
    let mut named = models.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    if let Some(more) = models.len().checked_sub(NAMED).filter(|more| *more > 0) {
        named = format!("{named} and {more} more");
    }
    for side in sides.iter_mut().filter(|side| side.model.is_empty()) {
        side.model.clone_from(&named);
    }
    sides
}

#[cfg(test)]
mod tests;
