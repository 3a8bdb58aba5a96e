//! What a stall of the client has spoiled.
//!
//! While a client stands still, packets that wait for it are merged and share the stamp of the last,
//! and requests that were due leave late. Samples that rest on such instants are cut, by the
//! client's own signal and never by their value, and counted.

use std::collections::BTreeMap;

use goodput_model::{HealthSample, Nanos, RequestRecord};

/// A loop that is called this late has stood still.
pub(crate) const STALL: Nanos = Nanos::from_millis(50);
/// Around a stall: a loop is looked at this often, and reads its backlog in this time.
const MARGIN: Nanos = Nanos::from_millis(20);

/// The stalls of every worker.
#[derive(Debug, Default)]
pub(crate) struct Cuts {
    /// Start and end, in order of time.
    stalls: BTreeMap<u32, Vec<(Nanos, Nanos)>>,
}

impl Cuts {
    pub(crate) fn new(samples: &[HealthSample]) -> Self {
        let mut cuts = Self::default();
        for beat in samples.iter().flat_map(|sample| &sample.beats) {
            if beat.lag >= STALL {
                let stall = (beat.due - MARGIN, beat.due + beat.lag + MARGIN);
                cuts.stalls.entry(beat.worker).or_default().push(stall);
            }
        }
        cuts.stalls.values_mut().for_each(|stalls| stalls.sort_unstable());
        cuts
    }

    /// Whether an instant of this request lies in a stall of its worker.
    pub(crate) fn is_doubtful(&self, record: &RequestRecord, at: Nanos) -> bool {
        let Some(stalls) = self.stalls.get(&record.worker) else { return false };
        let next = stalls.partition_point(|stall| stall.0 <= at);
        stalls[..next].last().is_some_and(|stall| at <= stall.1)
    }

    /// Whether any instant that its latencies rest on does.
    pub(crate) fn affects(&self, record: &RequestRecord) -> bool {
        if self.stalls.is_empty() {
            return false;
        }
        let stamps = &record.exchange.stamps;
        let mut instants = [Some(record.scheduled), stamps.first_token, stamps.last_token]
            .into_iter()
            .flatten()
            .chain(record.exchange.chunks.iter().map(|chunk| chunk.at));
        instants.any(|at| self.is_doubtful(record, at))
    }
}
