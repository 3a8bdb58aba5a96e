//! What the checks count for themselves in the pass over the records.

use goodput_model::{Connect, Nanos, Phase, Plan, RequestRecord};

use super::clocks::Contradictions;
use super::minutes::{MinuteTally, Unlike};
use super::stream::Overstated;
use crate::cuts::Cuts;
use crate::sample::Sample;
use crate::summary::Quick;
use crate::window::Window;

/// Filled by requests of all phases.
#[derive(Debug)]
pub(crate) struct CaveatTally {
    minutes: Option<MinuteTally>,
    contradictions: Contradictions,
    connect: Sample,
    last_good: Option<Nanos>,
    failed_due: Vec<Nanos>,
    /// `None` where it cannot be told.
    overstated: Option<Overstated>,
}

/// The same, added up.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) contradictions: Contradictions,
    /// How long measured requests opened their connections.
    pub(crate) connect_ms: Quick,
    /// When the last good answer ended.
    pub(crate) last_good: Option<Nanos>,
    /// Scheduled instants of measured requests that failed.
    pub(crate) failed_due: Vec<Nanos>,
    /// Good measured answers with more tokens than they can have.
    pub(crate) overstated: Overstated,
    /// Minutes that differ.
    pub(crate) unlike: Option<Unlike>,
}

impl CaveatTally {
    pub(crate) fn new(plan: &Plan, window: Window) -> Self {
        Self {
            minutes: MinuteTally::new(plan, window),
            contradictions: Contradictions::default(),
            connect: Sample::default(),
            last_good: None,
            failed_due: Vec::new(),
            overstated: Overstated::is_checkable(plan).then(Overstated::default),
        }
    }

    pub(crate) fn add(&mut self, record: &RequestRecord, cuts: &Cuts) {
        self.contradictions.add(record);
        if let Some(minutes) = &mut self.minutes {
            minutes.add(record, cuts);
        }
        if record.is_ok() {
            self.last_good = self.last_good.max(Some(record.end()));
        }
        if record.phase != Phase::Measured {
            return;
        }
        if let Some(connect) = record.exchange.stamps.connect {
            self.connect.push(Connect::length(connect).as_ms());
        }
        if !record.is_ok() {
            self.failed_due.push(record.scheduled);
        } else if let Some(overstated) = &mut self.overstated {
            overstated.add(record);
        }
    }

    pub(crate) fn finish(self) -> Counted {
        Counted {
            contradictions: self.contradictions,
            connect_ms: self.connect.into_quick(),
            last_good: self.last_good,
            failed_due: self.failed_due,
            overstated: self.overstated.unwrap_or_default(),
            unlike: self.minutes.and_then(MinuteTally::finish),
        }
    }
}
