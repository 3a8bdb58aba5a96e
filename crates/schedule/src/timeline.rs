//! Which phase a request belongs to, and when a run has sent enough.

use std::sync::atomic::{AtomicU64, Ordering};

use goodput_model::{Extent, Load, Nanos, Phase};

/// The phases of a run: warm-up, the measured part, cooldown, end.
///
/// Each request is placed once, by its due instant, in order of dispatch. The counters are atomic
/// because closed-loop workers share one timeline; they carry no other data.
#[derive(Debug)]
pub struct Timeline {
    warmup: Extent,
    duration: Option<Nanos>,
    num_requests: Option<u64>,
    cooldown: Nanos,
    warmed: AtomicU64,
    measured: AtomicU64,
    /// First measured due instant (or the end of a timed warm-up); `u64::MAX` until known.
    measured_from: AtomicU64,
    /// Where the measured part ended by count; `u64::MAX` until known.
    measured_to: AtomicU64,
}

impl Timeline {
    /// The phases that this load asks for.
    pub fn new(load: &Load) -> Self {
        let from = match load.warmup {
            Extent::Time(time) => Nanos::from(time).0,
            Extent::Requests(_) => u64::MAX,
        };
        Self {
            warmup: load.warmup,
            duration: load.duration.map(Nanos::from),
            num_requests: load.num_requests,
            cooldown: Nanos::from(load.cooldown),
            warmed: AtomicU64::new(0),
            measured: AtomicU64::new(0),
            measured_from: AtomicU64::new(from),
            measured_to: AtomicU64::new(u64::MAX),
        }
    }

    /// The phase of the next request, due at `at`; `None` when the run has sent enough.
    pub fn place(&self, at: Nanos) -> Option<Phase> {
        if self.is_warming(at) {
            return Some(Phase::Warmup);
        }
        let from = Nanos(self.measured_from.fetch_min(at.0, Ordering::Relaxed).min(at.0));
        if self.duration.is_some_and(|duration| at >= from + duration) {
            return self.cooling(at, from + self.duration?);
        }
        let place = self.measured.fetch_add(1, Ordering::Relaxed);
        if self.num_requests.is_some_and(|limit| place >= limit) {
            let to = self.measured_to.fetch_min(at.0, Ordering::Relaxed).min(at.0);
            return self.cooling(at, Nanos(to));
        }
        Some(Phase::Measured)
    }

    /// When the last request is due at the latest, as far as that is known: a measured part that
    /// ends by count ends when it ends.
    pub fn end(&self) -> Option<Nanos> {
        let from = self.measured_from.load(Ordering::Relaxed);
        (from != u64::MAX).then_some(Nanos(from) + self.duration? + self.cooldown)
    }

    fn is_warming(&self, at: Nanos) -> bool {
        match self.warmup {
            Extent::Time(time) => at < Nanos::from(time),
            Extent::Requests(limit) => self.warmed.fetch_add(1, Ordering::Relaxed) < limit,
        }
    }

    fn cooling(&self, at: Nanos, measured_to: Nanos) -> Option<Phase> {
        (at < measured_to + self.cooldown).then_some(Phase::Cooldown)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use goodput_model::{Arrivals, Mode, Rate};

    use super::*;

    fn load(warmup: Extent, duration: Option<u64>, num: Option<u64>, cooldown: u64) -> Load {
        Load {
            seed: 1,
            duration: duration.map(Duration::from_secs),
            num_requests: num,
            warmup,
            cooldown: Duration::from_secs(cooldown),
            drain: Duration::from_mins(1),
            workers: 1,
            pin: false,
            mode: Mode::Open {
                rate: Rate::PerSecond(1.0),
                arrivals: Arrivals::Constant,
                max_concurrency: None,
            },
        }
    }

    /// One request a second until the timeline ends: how many in each phase.
    fn counts(load: &Load) -> [usize; 3] {
        let timeline = Timeline::new(load);
        let phases: Vec<_> = (0..1000)
            .map_while(|second| timeline.place(Nanos::from_millis(second * 1000)))
            .collect();
        [Phase::Warmup, Phase::Measured, Phase::Cooldown]
            .map(|phase| phases.iter().filter(|p| **p == phase).count())
    }

    #[test]
    fn phases_follow_time_and_count() {
        let secs = |s| Extent::Time(Duration::from_secs(s));
        assert_eq!(counts(&load(secs(0), Some(20), None, 0)), [0, 20, 0]);
        assert_eq!(counts(&load(secs(5), Some(20), None, 3)), [5, 20, 3]);
        assert_eq!(counts(&load(Extent::Requests(7), Some(20), None, 0)), [7, 20, 0]);
        assert_eq!(counts(&load(Extent::Requests(7), None, Some(9), 0)), [7, 9, 0]);
        assert_eq!(counts(&load(secs(5), None, Some(9), 4)), [5, 9, 4]);
        // Both limits: the first to be reached ends the measured part.
        assert_eq!(counts(&load(secs(0), Some(20), Some(9), 2)), [0, 9, 2]);
        assert_eq!(counts(&load(secs(0), Some(5), Some(9), 2)), [0, 5, 2]);
    }
}
