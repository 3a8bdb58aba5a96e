//! The measured window of a run.
//!
//! It begins where the warm-up ends and ends where sending ended by plan, not at the last answer:
//! a drain inside the window would understate every rate.

use goodput_model::{Extent, Load, Mode, Nanos, Phase, Rate, RequestRecord};

use crate::summary::RunState;

/// An interval of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) is_makespan: bool,
}

impl Window {
    pub(crate) fn seconds(self) -> f64 {
        (self.end - self.start).as_secs()
    }

    pub(crate) fn contains(self, at: Nanos) -> bool {
        self.start <= at && (at < self.end || self.is_makespan && at == self.end)
    }

    /// How much of `[from, to]` lies inside.
    pub(crate) fn overlap(self, from: Nanos, to: Nanos) -> Nanos {
        to.min(self.end) - from.max(self.start)
    }
}

/// What a first pass over the records has to find out.
#[derive(Debug, Default)]
pub(crate) struct Extremes {
    first_measured: Option<Nanos>,
    last_measured: Option<Nanos>,
    measured: u64,
    /// First due instant and last sign of life, over all phases.
    pub(crate) first: Option<Nanos>,
    pub(crate) last: Option<Nanos>,
    last_measured_end: Option<Nanos>,
    /// Earliest end of a measured request.
    first_measured_end: Option<Nanos>,
}

impl Extremes {
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        let min =
            |old: &mut Option<Nanos>, new: Nanos| *old = Some(old.map_or(new, |o| o.min(new)));
        let max =
            |old: &mut Option<Nanos>, new: Nanos| *old = Some(old.map_or(new, |o| o.max(new)));
        let end = end_of(record);
        min(&mut self.first, record.scheduled);
        max(&mut self.last, end);
        if record.phase == Phase::Measured {
            min(&mut self.first_measured, record.scheduled);
            max(&mut self.last_measured, record.scheduled);
            min(&mut self.first_measured_end, end);
            max(&mut self.last_measured_end, end);
            self.measured += 1;
        }
    }

    /// The window that plan and records make.
    pub(crate) fn window(&self, load: &Load, state: RunState) -> Window {
        let start = match load.warmup {
            Extent::Time(time) => Nanos::from(time),
            Extent::Requests(0) => Nanos::ZERO,
            Extent::Requests(_) => self.first_measured.unwrap_or_default(),
        };
        let last = self.last_measured.unwrap_or(start);
        let ended_by_time = state == RunState::Complete
            && load.num_requests.is_none_or(|limit| self.measured < limit);
        let end = match load.duration {
            Some(duration) if ended_by_time => start + Nanos::from(duration),
            _ => last,
        };
        let is_burst = matches!(load.mode, Mode::Open { rate: Rate::Infinite, .. });
        // Nothing ended inside: rates over such a window would all be zero.
        let is_hollow = self.first_measured_end.is_none_or(|first| first >= end);
        if is_burst || is_hollow {
            let end = self.last_measured_end.unwrap_or(end).max(end);
            return Window { start, end, is_makespan: true };
        }
        Window { start, end, is_makespan: false }
    }
}

/// The last sign of life of a request.
pub(crate) fn end_of(record: &RequestRecord) -> Nanos {
    let stamps = &record.exchange.stamps;
    [
        stamps.done,
        stamps.last_token,
        stamps.first_byte,
        stamps.headers,
        stamps.sent_last,
        stamps.sent_first,
    ]
    .into_iter()
    .flatten()
    .next()
    .unwrap_or(stamps.dispatched)
    .max(record.scheduled)
}
