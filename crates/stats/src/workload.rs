//! The workload as it was asked for, and as the server saw it.

mod answers;
mod breakdown;
mod cache;
mod judgements;
mod lengths;
mod minutes;
mod replay;
mod sessions;

use std::collections::BTreeMap;

use goodput_model::{Phase, Plan, RequestRecord, WorkloadPlan};

use crate::cuts::Cuts;
use crate::summary::{
    Breakdown, CacheSummary, Lengths, RecountSummary, ReplaySummary, RunFacts, SessionsSummary,
    StructuredSummary,
};
use crate::window::Window;
use answers::{RecountTally, StructuredTally};
use breakdown::BreakdownTally;
use cache::CacheTally;
use lengths::LengthTally;
use replay::ReplayTally;

pub(crate) use breakdown::Differences;
pub(crate) use judgements::Judgements;
pub(crate) use minutes::Minutes;
pub(crate) use sessions::SessionTally;

/// Everything about the workload that a pass over the records adds up.
#[derive(Debug)]
pub(crate) struct WorkloadTally {
    pub(crate) window: Window,
    judgements: Judgements,
    lengths: LengthTally,
    breakdown: BreakdownTally,
    cache: CacheTally,
    replay: ReplayTally,
    structured: StructuredTally,
    recount: RecountTally,
    pub(crate) sessions: SessionTally,
}

/// What a summary says about the workload.
#[derive(Debug, Default)]
pub(crate) struct WorkloadFigures {
    pub(crate) lengths: Lengths,
    pub(crate) breakdown: Breakdown,
    pub(crate) cache: Option<CacheSummary>,
    pub(crate) replay: Option<ReplaySummary>,
    pub(crate) structured: BTreeMap<String, StructuredSummary>,
    pub(crate) recount: Option<RecountSummary>,
    pub(crate) sessions: Option<SessionsSummary>,
}

impl WorkloadTally {
    pub(crate) fn new(
        plan: &Plan,
        window: Window,
        differences: &Differences,
        judgements: Judgements,
    ) -> Self {
        Self {
            window,
            judgements,
            lengths: LengthTally::default(),
            breakdown: BreakdownTally::new(plan, differences, window),
            cache: CacheTally::default(),
            replay: ReplayTally::default(),
            structured: StructuredTally::default(),
            recount: RecountTally::default(),
            sessions: SessionTally::default(),
        }
    }

    /// Gives a record our own count, where the server gave none.
    pub(crate) fn complete(&self, record: &mut RequestRecord) {
        self.judgements.complete(record);
    }

    /// Takes a request of any phase; `counts` is whether what arrives of it belongs to the window.
    pub(crate) fn add(&mut self, record: &RequestRecord, counts: bool, cuts: &Cuts) {
        let judgement = self.judgements.get(record.index);
        self.breakdown.add(record, counts, cuts);
        self.sessions.add(record, self.window);
        if let Some(judgement) = judgement {
            self.recount.add(record, judgement, self.window, counts);
        }
        if record.phase != Phase::Measured {
            return;
        }
        self.replay.add(record);
        self.structured.add(record, judgement);
        if record.is_ok() {
            self.lengths.add(record);
        }
        self.cache.add(record);
    }

    pub(crate) fn finish(self, plan: &Plan, run: &RunFacts) -> WorkloadFigures {
        let WorkloadPlan { count_with, tokenizer, .. } = &plan.workload;
        let counted_with = count_with.as_deref().or(tokenizer.as_deref());
        let window = self.window;
        WorkloadFigures {
            lengths: self.lengths.finish(),
            breakdown: self.breakdown.finish(),
            cache: self.cache.finish(&plan.workload, run.cache_counters),
            replay: self.replay.finish(&plan.load.mode),
            structured: self.structured.finish(),
            recount: self.recount.finish(counted_with, window),
            sessions: self.sessions.finish(window, run.cut_requests),
        }
    }
}
