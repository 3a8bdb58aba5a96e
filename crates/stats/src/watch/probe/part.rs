//! The measured part of a point as it goes on: since when, how many, and how many more at most.

use goodput_model::{Load, LoadExtent, Mode, Nanos, Phase, Rate};

use super::decide::{EndedRequest, Prefix};

/// By this many standard deviations of a Poisson count there may be more to come than expected.
const BEYOND: f64 = 3.0;

/// Requests that had been let go at some instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReleaseMark {
    pub(super) at: Nanos,
    pub(super) started: u64,
}

/// The measured part of a point.
#[derive(Debug)]
pub(super) struct Part {
    warmup: LoadExtent,
    duration: Option<Nanos>,
    requests: Option<u64>,
    /// As planned; none in a closed loop.
    rate: Option<f64>,
    /// Whether arrivals do not depend on the server, so that a queue can grow.
    pub(super) is_open: bool,
    /// Whether requests that were due may wait here.
    pub(super) is_capped: bool,
    /// Requests that had been let go before it, at most.
    before: u64,
    /// Requests of the burn-in that have ended.
    warm: u64,
    /// One about each second of it.
    marks: Vec<ReleaseMark>,
}

impl Part {
    pub(super) fn from_load(load: &Load) -> Self {
        let rate = match load.mode {
            Mode::Open { rate: Rate::PerSecond(rate), .. } => Some(rate),
            _ => None,
        };
        Self {
            warmup: load.warmup,
            // With a changing rate, the number still to come is unknown here.
            duration: load.duration.map(Nanos::from),
            requests: load.num_requests,
            rate,
            is_open: rate.is_some() && load.mode.most_in_flight().is_none(),
            is_capped: load.mode.most_in_flight().is_some(),
            before: 0,
            warm: 0,
            marks: Vec::new(),
        }
    }

    /// A request of another phase has ended.
    pub(super) fn ended_outside(&mut self, phase: Phase) {
        self.warm += u64::from(phase == Phase::Warmup);
    }

    /// The number of requests sent; whether the measured part has begun.
    pub(super) fn tick(&mut self, at: Nanos, started: u64) -> bool {
        let has_begun = match self.warmup {
            LoadExtent::Auto => true,
            LoadExtent::Time(time) => at >= Nanos::from(time),
            LoadExtent::Requests(requests) => started >= requests,
        };
        if has_begun {
            self.marks.push(ReleaseMark { at, started });
        } else {
            self.before = started;
        }
        has_begun
    }

    /// When it began.
    pub(super) fn began_at(&self) -> Option<Nanos> {
        let first = self.marks.first()?.at;
        Some(match self.warmup {
            LoadExtent::Auto | LoadExtent::Requests(0) => Nanos::ZERO,
            LoadExtent::Time(time) => Nanos::from(time).min(first),
            LoadExtent::Requests(_) => first,
        })
    }

    /// Whether it has begun and is not over.
    pub(super) fn is_running(&self, at: Nanos) -> bool {
        let end = self.began_at().zip(self.duration).map(|(begin, duration)| begin + duration);
        !self.marks.is_empty() && end.is_none_or(|end| at < end)
    }

    /// Requests of it that have been let go, at most.
    pub(super) fn released_requests(&self) -> u64 {
        self.marks.last().map_or(0, |last| last.started.saturating_sub(self.before))
    }

    /// Requests that it will have had, at most; none if it cannot be known.
    pub(super) fn most_requests(&self, at: Nanos) -> Option<f64> {
        let by_count = self.requests.map(|requests| requests as f64);
        let by_time = self.duration.and_then(|duration| {
            let begin = self.began_at()?;
            let left_s = (begin + duration - at).as_secs();
            let arrived = self.released_requests() as f64;
            let so_far = arrived / (at - begin).as_secs().max(1.0);
            let more = self.rate.unwrap_or(0.0).max(so_far) * left_s;
            Some(arrived + more + BEYOND * more.sqrt())
        });
        by_count.into_iter().chain(by_time).min_by(f64::total_cmp)
    }

    /// The first instant of it and the last one up to another.
    pub(super) fn release_span(&self, until: Nanos) -> Option<(ReleaseMark, ReleaseMark)> {
        let past = self.marks.partition_point(|mark| mark.at <= until);
        Some((*self.marks.first()?, *self.marks.get(past.checked_sub(1)?)?))
    }

    /// What is known of all requests that were due up to each instant.
    pub(super) fn prefixes(&self, ended: &[EndedRequest]) -> Vec<Prefix> {
        let prefix = |mark: &ReleaseMark| {
            let n = ended.partition_point(|ended| ended.due <= mark.at);
            let unknown = mark.started.saturating_sub(self.warm).saturating_sub(n as u64);
            Prefix { n, unknown }
        };
        self.marks.iter().map(prefix).collect()
    }
}
