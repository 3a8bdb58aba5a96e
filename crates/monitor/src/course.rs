//! Where a run stands in its plan.

use goodput_model::{Load, LoadExtent, Mode, Nanos, Rate};

/// Which part of its plan a run is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunPosition {
    Warmup,
    Measured,
    Cooldown,
    /// Everything was sent; the last answers are waited for.
    Drain,
    Ended,
}

impl RunPosition {
    /// All of them, with their names.
    pub(crate) const ALL: [(Self, &'static str); 5] = [
        (Self::Warmup, "warmup"),
        (Self::Measured, "measured"),
        (Self::Cooldown, "cooldown"),
        (Self::Drain, "drain"),
        (Self::Ended, "ended"),
    ];

    /// Whether requests become due.
    pub(crate) fn is_loaded(self) -> bool {
        matches!(self, Self::Warmup | Self::Measured | Self::Cooldown)
    }
}

/// The phases of a plan, and where one ended by a count.
#[derive(Debug)]
pub(crate) struct PlanProgress {
    warmup: LoadExtent,
    duration: Nanos,
    /// Requests of the warm-up and of the measured part, where it ends by them.
    requests: u64,
    cooldown: Nanos,
    from: Option<Nanos>,
    counted_to: Nanos,
}

impl PlanProgress {
    pub(crate) fn new(load: &Load) -> Self {
        let (from, before) = match load.warmup {
            LoadExtent::Time(time) => (Some(time.into()), 0),
            LoadExtent::Requests(requests) => (None, requests),
            // What belongs to the warm-up is found when all is over.
            LoadExtent::Auto => (Some(Nanos::ZERO), 0),
        };
        // Requests of a warm-up by time are not counted beforehand; such a run stops by itself.
        let is_counted = !matches!(load.warmup, LoadExtent::Time(time) if !time.is_zero());
        let requests = load.num_requests.filter(|_| is_counted);
        Self {
            warmup: load.warmup,
            duration: load.duration.map_or(Nanos(u64::MAX), Nanos::from),
            requests: requests.map_or(u64::MAX, |requests| requests.saturating_add(before)),
            cooldown: load.cooldown.into(),
            from,
            counted_to: Nanos(u64::MAX),
        }
    }

    /// Notes which counts are full. Seen a little late, as this is called now and then.
    pub(crate) fn update(&mut self, at: Nanos, started: u64) {
        if let LoadExtent::Requests(requests) = self.warmup
            && self.from.is_none()
            && started >= requests
        {
            self.from = Some(at);
        }
        if started >= self.requests {
            self.counted_to = self.counted_to.min(at);
        }
    }

    /// Where a run that began so long ago stands, unless it was stopped.
    pub(crate) fn position(&self, at: Nanos) -> RunPosition {
        let Some(from) = self.from.filter(|from| at >= *from) else { return RunPosition::Warmup };
        let to = (from + self.duration).min(self.counted_to);
        if at < to {
            RunPosition::Measured
        } else if at < to + self.cooldown {
            RunPosition::Cooldown
        } else {
            RunPosition::Drain
        }
    }
}

/// Requests per second that the schedule asks for, or users that ask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PlannedLoad {
    PerSecond(f64),
    Users(u32),
    /// All at once, or when a trace says.
    Otherwise,
}

pub(crate) fn planned_load(mode: &Mode, at: Nanos) -> PlannedLoad {
    const SECOND: Nanos = Nanos::from_millis(1_000);
    match mode {
        Mode::Open { rate: Rate::PerSecond(rate), .. } => PlannedLoad::PerSecond(*rate),
        Mode::Shaped { shape, .. } => {
            PlannedLoad::PerSecond(shape.expected_arrivals(at, at + SECOND))
        }
        Mode::Closed { concurrency, .. } => PlannedLoad::Users(*concurrency),
        Mode::Open { rate: Rate::Infinite, .. } | Mode::Replay { .. } => PlannedLoad::Otherwise,
    }
}
