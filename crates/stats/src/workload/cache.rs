//! The share of prompts that came from the server's cache: asked for, and seen.

use goodput_model::{RequestRecord, WorkloadPlan};

use crate::flow::input_tokens;
use crate::summary::{CacheRotation, CacheSummary};

/// Filled by measured requests; all but their number by those that completed.
#[derive(Debug, Default)]
pub(super) struct CacheTally {
    measured: u64,
    good: u64,
    planned_cached: u64,
    planned_input: u64,
    states: bool,
    reported: u64,
    cached: u64,
    /// Prompt tokens of requests whose prompt the server counted.
    counted_input: u64,
}

impl CacheTally {
    pub(super) fn add(&mut self, record: &RequestRecord) {
        self.measured += 1;
        if !record.is_ok() {
            return;
        }
        let input = u64::from(input_tokens(record).n);
        self.good += 1;
        if let Some(cached) = record.planned.cached_tokens {
            self.states = true;
            self.planned_cached += u64::from(cached);
            self.planned_input += input;
        }
        // Some servers leave the field out where nothing was cached: once one answer has it, an
        // answer with a count of its prompt and without it had none.
        let says = record.exchange.cached_tokens;
        if record.exchange.input_tokens.is_some() || says.is_some() {
            self.counted_input += input;
        }
        self.reported += u64::from(says.is_some());
        self.cached += u64::from(says.unwrap_or(0));
    }

    /// Where answers say nothing, the server's counters do, for the run as a whole.
    pub(super) fn finish(
        self,
        workload: &WorkloadPlan,
        counters: Option<(u64, u64)>,
    ) -> Option<CacheSummary> {
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let requested = share(self.planned_cached, self.planned_input).filter(|_| self.states);
        let by_usage = share(self.cached, self.counted_input).filter(|_| self.reported > 0);
        let by_counters = counters.and_then(|(queries, hits)| share(hits, queries));
        let observed = by_usage.or(by_counters);
        let source = match (by_usage, by_counters) {
            (Some(_), _) => "usage",
            (None, Some(_)) => "counters",
            (None, None) => "none",
        };
        (requested.is_some() || observed.is_some()).then(|| CacheSummary {
            requested,
            observed,
            reported_by: self.reported as f64 / self.good.max(1) as f64,
            source: source.to_owned(),
            rotation: workload.rotation().map(|contexts| CacheRotation {
                contexts,
                measured: self.measured as f64 / contexts as f64,
            }),
        })
    }
}
