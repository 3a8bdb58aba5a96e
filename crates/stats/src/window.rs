//! The measured window of a run.
//!
//! It begins where the warm-up ends and ends where sending ended by plan, not at the last answer:
//! a drain inside the window would understate every rate.

use goodput_model::{Load, LoadExtent, Mode, Nanos, Phase, Rate, RequestRecord};

use crate::estimate::{BATCHES, SLICES};
use crate::summary::{Cut, RunFacts, RunState, WindowSummary};

/// An interval of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) kind: WindowKind,
}

/// What made the window, and so which of its edges belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowKind {
    /// A time that was asked for: its first instant belongs to it, its last does not.
    Time,
    /// A number of requests: it begins just after an event and ends with one.
    Count,
    /// From first request to last answer of the measured requests; both belong to it.
    Makespan,
}

impl Window {
    pub(crate) fn seconds(self) -> f64 {
        (self.end - self.start).as_secs()
    }

    pub(crate) fn contains(self, at: Nanos) -> bool {
        match self.kind {
            WindowKind::Time => self.start <= at && at < self.end,
            WindowKind::Count => self.start < at && at <= self.end,
            WindowKind::Makespan => self.start <= at && at <= self.end,
        }
    }

    pub(crate) fn is_makespan(self) -> bool {
        self.kind == WindowKind::Makespan
    }

    /// In which of the equal parts of the window an instant lies; the first and the last hold what
    /// is outside.
    pub(crate) fn batch_of(self, at: Nanos) -> u8 {
        (self.slice_of(at) / (SLICES / u16::from(BATCHES))) as u8
    }

    /// In which of the equal slices of the window an instant lies, likewise.
    pub(crate) fn slice_of(self, at: Nanos) -> u16 {
        let (into, whole) = (u128::from((at - self.start).0), (self.end - self.start).0);
        let slice = into * u128::from(SLICES) / u128::from(whole.max(1));
        u16::try_from(slice).unwrap_or(SLICES).min(SLICES - 1)
    }

    /// How much of `[from, to]` lies inside.
    pub(crate) fn overlap(self, from: Nanos, to: Nanos) -> Nanos {
        to.min(self.end) - from.max(self.start)
    }

    /// The window as a summary states it, with what an automatic warm-up cut.
    pub(crate) fn to_summary(self, cut: Option<Cut>) -> WindowSummary {
        let kind = if self.is_makespan() { "makespan" } else { "steady" };
        WindowSummary {
            start_s: self.start.as_secs(),
            end_s: self.end.as_secs(),
            kind: kind.to_owned(),
            cut,
        }
    }
}

/// What a first pass over the records has to find out.
#[derive(Debug, Default)]
pub(crate) struct Extremes {
    first_measured: Option<Nanos>,
    last_measured: Option<Nanos>,
    measured: u64,
    /// First scheduled instant and last sign of life, over all phases.
    pub(crate) first: Option<Nanos>,
    pub(crate) last: Option<Nanos>,
    /// When each measured request was over.
    measured_ends: Vec<Nanos>,
}

impl Extremes {
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        let min =
            |old: &mut Option<Nanos>, new: Nanos| *old = Some(old.map_or(new, |o| o.min(new)));
        let max =
            |old: &mut Option<Nanos>, new: Nanos| *old = Some(old.map_or(new, |o| o.max(new)));
        let end = record.end();
        min(&mut self.first, record.scheduled);
        max(&mut self.last, end);
        if record.phase == Phase::Measured {
            min(&mut self.first_measured, record.scheduled);
            max(&mut self.last_measured, record.scheduled);
            self.measured_ends.push(end);
            self.measured += 1;
        }
    }

    /// The window that plan and records make.
    pub(crate) fn find_window(&mut self, load: &Load, run: &RunFacts) -> Window {
        self.measured_ends.sort_unstable();
        let start = match load.warmup {
            LoadExtent::Time(time) => Nanos::from(time),
            LoadExtent::Requests(0) | LoadExtent::Auto => Nanos::ZERO,
            LoadExtent::Requests(_) => self.first_measured.unwrap_or_default(),
        };
        let is_all_sent = load.num_requests.is_some_and(|limit| self.measured >= limit);
        let stopped = run.stopped_s.filter(|_| !is_all_sent).map(Nanos::from_secs_f64);
        let ended_by_time = run.state == RunState::Complete
            && !run.workload_ended
            && load.num_requests.is_none_or(|limit| self.measured < limit);
        let window = match (load.duration, &load.mode) {
            (_, Mode::Open { rate: Rate::Infinite, .. }) => None,
            // Until then everything went on as planned, in an open loop and in a closed one.
            (duration, _) if let Some(stopped) = stopped => {
                let planned = duration.map(|duration| start + Nanos::from(duration));
                let end = planned.map_or(stopped, |planned| planned.min(stopped));
                Some(Window { start, end: end.max(start), kind: WindowKind::Time })
            }
            (Some(duration), _) if ended_by_time => {
                Some(Window { start, end: start + Nanos::from(duration), kind: WindowKind::Time })
            }
            (None, Mode::Shaped { shape, .. }) if ended_by_time && shape.length().is_some() => {
                let end = Nanos::from(shape.length().unwrap_or_default());
                Some(Window { start, end, kind: WindowKind::Time })
            }
            (_, Mode::Closed { concurrency, .. }) => self.between_cohorts(*concurrency as usize),
            (_, Mode::Open { .. } | Mode::Shaped { .. } | Mode::Replay { .. }) => {
                let end = self.last_measured.unwrap_or(start);
                Some(Window { start, end, kind: WindowKind::Count })
            }
        };
        // Where nothing ended inside, rates over the window would all be zero.
        let first_end = self.measured_ends.first().copied();
        window.filter(|window| first_end.is_some_and(|end| end < window.end)).unwrap_or(Window {
            start: self.first_measured.unwrap_or(start),
            end: self.measured_ends.last().copied().unwrap_or(start),
            kind: WindowKind::Makespan,
        })
    }

    /// A closed loop that ends by count: from the end of the first `users` requests to the end of
    /// the last but `users`. Users who started together end together; a window that begins and ends
    /// with such a cohort counts one of the two, and the tail, when users leave, stays out.
    fn between_cohorts(&self, users: usize) -> Option<Window> {
        let last = self.measured_ends.len().checked_sub(users + 1)?;
        let (start, end) = (*self.measured_ends.get(users - 1)?, *self.measured_ends.get(last)?);
        (start < end).then_some(Window { start, end, kind: WindowKind::Count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_fall_into_twenty_parts() {
        let window = Window { start: Nanos(100), end: Nanos(300), kind: WindowKind::Time };
        let instants = [0, 100, 109, 110, 199, 200, 299, 300, 9_000, u64::MAX];
        let batches = instants.map(|at| window.batch_of(Nanos(at)));
        assert_eq!(batches, [0, 0, 0, 1, 9, 10, 19, 19, 19, 19]);
        // A burst: all at one instant.
        let instant = Window { start: Nanos(100), end: Nanos(100), kind: WindowKind::Makespan };
        assert_eq!(instant.batch_of(Nanos(100)), 0);
    }
}
