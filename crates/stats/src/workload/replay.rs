//! How closely a replay followed its trace.

use goodput_model::{Keep, Mode, Nanos, RequestRecord};

use crate::sample::Sample;
use crate::summary::ReplaySummary;

/// Filled by measured requests.
#[derive(Debug, Default)]
pub(super) struct ReplayTally {
    due: Sample,
    sent: Sample,
}

impl ReplayTally {
    pub(super) fn add(&mut self, record: &RequestRecord) {
        let Some(trace_at) = record.planned.trace_at else { return };
        let distance = |at: Nanos| Nanos(at.0.abs_diff(trace_at.0)).as_ms();
        self.due.push(distance(record.scheduled));
        if let Some(sent) = record.exchange.stamps.sent_first {
            self.sent.push(distance(sent));
        }
    }

    pub(super) fn finish(self, mode: &Mode) -> Option<ReplaySummary> {
        let Mode::Replay { time_scale, keep, .. } = mode else { return None };
        Some(ReplaySummary {
            keep: match keep {
                Keep::Timestamps => "timestamps",
                Keep::ThinkTimes => "think-times",
            }
            .to_owned(),
            time_scale: *time_scale,
            n: self.due.len(),
            drift_ms: self.due.into_quick(),
            sent_drift_ms: self.sent.into_quick(),
        })
    }
}
