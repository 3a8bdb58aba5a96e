//! The feeder: builds requests ahead of their instants, on a thread of its own.

use bytes::Bytes;
use goodput_model::{Nanos, Phase, Planned};
use goodput_wire::Dialect;
use goodput_workload::Workload;

/// Requests built ahead of the pacer. At 3,000 requests/s this is more than a second.
pub(crate) const AHEAD: usize = 4096;

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) index: u64,
    pub(crate) body: Bytes,
    pub(crate) planned: Planned,
    /// The prompt, only when text is to be kept.
    pub(crate) prompt: Option<String>,
}

/// A request that is due.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) prepared: Prepared,
    /// When it is due; a user of a closed loop asks when its turn has come.
    pub(crate) scheduled: Option<Nanos>,
    /// How late the pacer woke for it.
    pub(crate) pacer_lag: Option<Nanos>,
    pub(crate) phase: Phase,
}

/// Builds requests from a workload.
#[derive(Debug, Clone)]
pub(crate) struct Feeder {
    pub(crate) workload: Workload,
    pub(crate) dialect: Dialect,
    pub(crate) keep_text: bool,
}

impl Feeder {
    pub(crate) fn prepare(&self, index: u64) -> Option<Prepared> {
        let session = self.workload.session(index)?;
        let request = session.steps.into_iter().next()?.requests.into_iter().next()?;
        Some(Prepared {
            index,
            body: self.dialect.encode(&[], &request),
            planned: request.planned,
            prompt: None,
        })
    }
}
