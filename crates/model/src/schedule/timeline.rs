//! Which phase a request belongs to, and when a run has sent enough.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Load, LoadExtent, Nanos, Phase};

/// The phases of a run: warm-up, the measured part, cooldown, end.
///
/// Each request is placed once, by its scheduled instant, in order of dispatch. The counters are
/// atomic because closed-loop workers share one timeline; they carry no other data.
#[derive(Debug)]
pub struct RunTimeline {
    warmup: LoadExtent,
    duration: Option<Nanos>,
    num_requests: Option<u64>,
    cooldown: Nanos,
    warmed: AtomicU64,
    measured: AtomicU64,
    /// First measured scheduled instant (or the end of a timed warm-up); `u64::MAX` until known.
    measured_from: AtomicU64,
    /// Where the measured part ended by count; `u64::MAX` until known.
    measured_to: AtomicU64,
}

/// Where a session stands in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedSession {
    /// The phase of its first request, and of the others unless [`RunTimeline::later_phase`] moves them.
    pub phase: Phase,
    /// How many of its requests may be sent; the count ends behind the last of them.
    pub allowed: u64,
}

impl RunTimeline {
    /// The phases that this load asks for.
    pub fn new(load: &Load) -> Self {
        let from = match load.warmup {
            LoadExtent::Time(time) => Nanos::from(time).0,
            LoadExtent::Requests(_) => u64::MAX,
            // What belongs to the warm-up is found when all is over.
            LoadExtent::Auto => 0,
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
    pub fn next_phase(&self, at: Nanos) -> Option<Phase> {
        self.place_session(at, 1).map(|placed| placed.phase)
    }

    /// Places a session of this many requests that arrives at `at`; `None` when the run has sent
    /// enough.
    ///
    /// Its requests use up the counts in order. One that begins in the warm-up stays there as a whole;
    /// one that is longer than what is left of the measured count is cut off there.
    pub fn place_session(&self, at: Nanos, requests: u64) -> Option<PlacedSession> {
        let requests = requests.max(1);
        if self.is_warming(at, requests) {
            return Some(PlacedSession { phase: Phase::Warmup, allowed: requests });
        }
        let from = Nanos(self.measured_from.fetch_min(at.0, Ordering::Relaxed).min(at.0));
        if let Some(duration) = self.duration.filter(|duration| at >= from + *duration) {
            return self.place_in_cooldown(at, from + duration, requests);
        }
        let allowed = self.take_measured(at, requests);
        if allowed == 0 {
            let to = Nanos(self.measured_to.load(Ordering::Relaxed));
            return self.place_in_cooldown(at, to, requests);
        }
        Some(PlacedSession { phase: Phase::Measured, allowed })
    }

    /// The phase of a later step, due at `at`, of a session in this phase; `None` when it comes too
    /// late to be sent. Time decides in a run with a duration. A run by count alone has counted the
    /// session as a whole, so it keeps its phase.
    pub fn later_phase(&self, at: Nanos, phase: Phase) -> Option<Phase> {
        let Some(duration) = self.duration else { return Some(phase) };
        let from = Nanos(self.measured_from.load(Ordering::Relaxed));
        if at < from {
            return Some(Phase::Warmup);
        }
        let counted_to = Nanos(self.measured_to.load(Ordering::Relaxed));
        let to = match phase {
            // It is among those that were counted, however late it comes.
            Phase::Measured => from + duration,
            Phase::Warmup | Phase::Cooldown => counted_to.min(from + duration),
        };
        if at < to {
            return Some(Phase::Measured);
        }
        (at < to + self.cooldown).then_some(Phase::Cooldown)
    }

    /// When the last request is due at the latest, as far as that is known: a measured part that
    /// ends by count ends when it ends.
    pub fn end(&self) -> Option<Nanos> {
        let from = self.measured_from.load(Ordering::Relaxed);
        (from != u64::MAX).then_some(Nanos(from) + self.duration? + self.cooldown)
    }

    /// Whether the warm-up takes a session of this many requests.
    fn is_warming(&self, at: Nanos, requests: u64) -> bool {
        match self.warmup {
            LoadExtent::Time(time) => at < Nanos::from(time),
            LoadExtent::Requests(limit) => take_up_to(&self.warmed, limit, requests) > 0,
            LoadExtent::Auto => false,
        }
    }

    /// How many of this many requests the measured count takes. Notes where it ends.
    fn take_measured(&self, at: Nanos, requests: u64) -> u64 {
        let limit = self.num_requests.unwrap_or(u64::MAX);
        let taken = take_up_to(&self.measured, limit, requests);
        if taken < requests {
            self.measured_to.fetch_min(at.0, Ordering::Relaxed);
        }
        taken
    }

    fn place_in_cooldown(
        &self,
        at: Nanos,
        measured_to: Nanos,
        requests: u64,
    ) -> Option<PlacedSession> {
        let is_within = at < measured_to + self.cooldown;
        is_within.then_some(PlacedSession { phase: Phase::Cooldown, allowed: requests })
    }
}

/// Takes up to `wanted` of what is left below the limit: how many.
fn take_up_to(counter: &AtomicU64, limit: u64, wanted: u64) -> u64 {
    let before = counter.fetch_add(wanted, Ordering::Relaxed);
    limit.saturating_sub(before).min(wanted)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::{ArrivalProcess, Mode, Rate};

    fn load(warmup: LoadExtent, duration: Option<u64>, num: Option<u64>, cooldown: u64) -> Load {
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
                arrivals: ArrivalProcess::Constant,
                max_concurrency: None,
            },
        }
    }

    /// One request a second until the timeline ends: how many in each phase.
    fn counts(load: &Load) -> [usize; 3] {
        let timeline = RunTimeline::new(load);
        let phases: Vec<_> = (0..1000)
            .map_while(|second| timeline.next_phase(Nanos::from_millis(second * 1000)))
            .collect();
        [Phase::Warmup, Phase::Measured, Phase::Cooldown]
            .map(|phase| phases.iter().filter(|p| **p == phase).count())
    }

    #[test]
    fn phases_follow_time_and_count() {
        assert_eq!(counts(&load(secs(0), Some(20), None, 0)), [0, 20, 0]);
        assert_eq!(counts(&load(secs(5), Some(20), None, 3)), [5, 20, 3]);
        assert_eq!(counts(&load(LoadExtent::Requests(7), Some(20), None, 0)), [7, 20, 0]);
        assert_eq!(counts(&load(LoadExtent::Requests(7), None, Some(9), 0)), [7, 9, 0]);
        assert_eq!(counts(&load(secs(5), None, Some(9), 4)), [5, 9, 4]);
        // Both limits: the first to be reached ends the measured part.
        assert_eq!(counts(&load(secs(0), Some(20), Some(9), 2)), [0, 9, 2]);
        assert_eq!(counts(&load(secs(0), Some(5), Some(9), 2)), [0, 5, 2]);
    }

    fn secs(seconds: u64) -> LoadExtent {
        LoadExtent::Time(Duration::from_secs(seconds))
    }

    /// Sessions of this many requests, one per second: the phase of each.
    fn sessions(load: &Load, requests: &[u64]) -> Vec<Option<(Phase, u64)>> {
        let timeline = RunTimeline::new(load);
        let at = |second: usize| Nanos::from_millis(second as u64 * 1000);
        let place = |(second, n): (usize, &u64)| timeline.place_session(at(second), *n);
        let placed = requests.iter().enumerate().map(place);
        placed.map(|placed| placed.map(|placed| (placed.phase, placed.allowed))).collect()
    }

    #[test]
    fn sessions_use_up_the_counts() {
        use Phase::{Cooldown, Measured, Warmup};
        let by_count = load(LoadExtent::Requests(5), None, Some(10), 0);
        assert_eq!(
            sessions(&by_count, &[4, 3, 6, 1, 4, 1]),
            // The second begins in the warm-up and stays there; 10 are left for the others.
            [
                Some((Warmup, 4)),
                Some((Warmup, 3)),
                Some((Measured, 6)),
                Some((Measured, 1)),
                Some((Measured, 3)),
                None
            ]
        );
        assert_eq!(
            sessions(&load(LoadExtent::Requests(2), None, Some(3), 0), &[9, 1]),
            [Some((Warmup, 9)), Some((Measured, 1))],
            "a long session of the warm-up takes nothing from the measured count"
        );
        assert_eq!(
            sessions(&load(secs(2), None, Some(3), 2), &[9, 9, 2, 2, 7, 7, 7]),
            [
                Some((Warmup, 9)),
                Some((Warmup, 9)),
                Some((Measured, 2)),
                Some((Measured, 1)),
                Some((Cooldown, 7)),
                None,
                None
            ],
            "the measured part ends at second 3, where it was cut"
        );
        assert_eq!(
            sessions(&load(secs(1), Some(2), None, 1), &[3, 3, 3, 3, 3]),
            [
                Some((Warmup, 3)),
                Some((Measured, 3)),
                Some((Measured, 3)),
                Some((Cooldown, 3)),
                None
            ]
        );
    }

    #[test]
    fn later_steps_follow_the_time() {
        use Phase::{Cooldown, Measured, Warmup};
        let at = |seconds: u64| Nanos::from_millis(seconds * 1000);
        let timed = RunTimeline::new(&load(secs(5), Some(20), None, 3));
        for (phase, seconds, expected) in [
            (Warmup, 4, Some(Warmup)),
            (Warmup, 5, Some(Measured)),
            (Measured, 24, Some(Measured)),
            (Warmup, 25, Some(Cooldown)),
            (Measured, 27, Some(Cooldown)),
            (Cooldown, 27, Some(Cooldown)),
            (Measured, 28, None),
            (Cooldown, 28, None),
        ] {
            assert_eq!(timed.later_phase(at(seconds), phase), expected, "{phase:?} at {seconds}");
        }
        // Until the warm-up's count is used up, the start of the measured part is unknown.
        let counted = RunTimeline::new(&load(LoadExtent::Requests(1), Some(20), None, 0));
        assert_eq!(counted.place_session(at(3), 1).unwrap().phase, Warmup);
        assert_eq!(counted.later_phase(at(100), Warmup), Some(Warmup));
        assert_eq!(counted.place_session(at(101), 1).unwrap().phase, Measured);
        assert_eq!(counted.later_phase(at(120), Warmup), Some(Measured));
        assert_eq!(counted.later_phase(at(121), Measured), None);
        // By count alone, the phase stays whatever the time.
        let counted = RunTimeline::new(&load(LoadExtent::Requests(1), None, Some(9), 0));
        for phase in [Warmup, Measured, Cooldown] {
            assert_eq!(counted.later_phase(at(9999), phase), Some(phase));
        }
        // The count ended the measured part early: what was counted stays, the rest cools down.
        let both = RunTimeline::new(&load(secs(0), Some(20), Some(4), 5));
        assert_eq!(
            both.place_session(at(2), 4),
            Some(PlacedSession { phase: Measured, allowed: 4 })
        );
        assert_eq!(both.place_session(at(6), 1).unwrap().phase, Cooldown);
        assert_eq!(both.later_phase(at(7), Measured), Some(Measured));
        assert_eq!(both.later_phase(at(7), Cooldown), Some(Cooldown));
        assert_eq!(both.later_phase(at(11), Cooldown), None);
    }

    fn extent() -> impl Strategy<Value = LoadExtent> {
        prop_oneof![(0u64..9).prop_map(secs), (0u64..9).prop_map(LoadExtent::Requests)]
    }

    proptest! {
        #[test]
        fn a_session_of_one_is_a_request(
            warmup in extent(),
            duration in prop::option::of(1u64..20),
            num in prop::option::of(1u64..20),
            cooldown in 0u64..5,
            gaps in prop::collection::vec((0u64..3, 1u64..5), 1..40),
        ) {
            let load = load(warmup, duration, num, cooldown);
            let [single, session, several] = [0; 3].map(|_| RunTimeline::new(&load));
            let mut seconds = 0;
            for (gap, requests) in gaps {
                seconds += gap;
                let at = Nanos::from_millis(seconds * 1000);
                let placed = session.place_session(at, 1);
                prop_assert!(placed.is_none_or(|placed| placed.allowed == 1));
                prop_assert_eq!(placed.map(|placed| placed.phase), single.next_phase(at));
                prop_assert_eq!(session.end(), single.end());
                let placed = several.place_session(at, requests);
                prop_assert!(placed.is_none_or(|p| (1..=requests).contains(&p.allowed)));
            }
        }
    }
}
