//! [`InverseRate`]: when this many arrivals are expected under a rate that changes over time.
//!
//! With a rate *r(t)*, Λ(*t*) arrivals are expected up to *t*. Arrivals of a process at a rate of one
//! become arrivals of the shape by the inverse of Λ: the same process, in the shape's own time.

use std::f64::consts::TAU;
use std::time::Duration;

use crate::random::{portable_cos, portable_sin};
use crate::{LoadStage as Stage, Nanos};

/// Arrivals that are this close to the end of a stage belong to the next one: sums of rates times
/// lengths are only so exact, and 7 arrivals must not become 8 because 0.14 · 50 is above 7.
const NEAR: f64 = 1e-9;

/// The inverse of Λ for one shape. Asked in ascending order.
#[derive(Debug, Clone)]
pub(crate) enum InverseRate {
    Stages(Stages),
    Sine(Sine),
}

impl InverseRate {
    pub(crate) fn stages(stages: &[Stage]) -> Self {
        let left = stages.iter().rev().copied().collect();
        Self::Stages(Stages { left, start: Nanos::ZERO, before: 0.0 })
    }

    pub(crate) fn sine(mean: f64, amplitude: f64, period: Duration) -> Self {
        Self::Sine(Sine { mean, amplitude, period: Nanos::from(period) })
    }

    /// When `expected` arrivals are expected: the last such instant, so that an arrival on the border
    /// of a rest comes after it. `None` once the shape has ended.
    pub(crate) fn instant_of(&mut self, expected: f64) -> Option<Nanos> {
        match self {
            Self::Stages(stages) => stages.instant_of(expected),
            Self::Sine(sine) => Some(sine.instant_of(expected)),
        }
    }
}

/// Rates that are constant or change evenly, one after another.
#[derive(Debug, Clone)]
pub(crate) struct Stages {
    /// The present stage and those after it, the last one first.
    left: Vec<Stage>,
    /// When the present one begins.
    start: Nanos,
    /// What is expected before it.
    before: f64,
}

impl Stages {
    fn instant_of(&mut self, expected: f64) -> Option<Nanos> {
        while let Some(stage) = self.left.last() {
            let within = (expected - self.before).max(0.0);
            let (area, length) = (stage_arrivals(stage), Nanos::from(stage.length));
            let at = Nanos::from_secs_f64(seconds_into_stage(stage, within));
            if within < area - NEAR && at < length {
                return Some(self.start + at);
            }
            self.before += area;
            self.start += length;
            self.left.pop();
        }
        None
    }
}

/// What is expected in a stage.
fn stage_arrivals(stage: &Stage) -> f64 {
    f64::midpoint(stage.from, stage.to) * stage.length.as_secs_f64()
}

/// Seconds into a stage until `expected` arrivals are expected in it: the root of
/// *from·t + slope·t²/2*, in the form that does not cancel.
fn seconds_into_stage(stage: &Stage, expected: f64) -> f64 {
    let slope = (stage.to - stage.from) / stage.length.as_secs_f64();
    let at_end = (stage.from * stage.from + 2.0 * slope * expected).max(0.0).sqrt();
    if expected > 0.0 { 2.0 * expected / (stage.from + at_end) } else { 0.0 }
}

/// A wave that begins at its mean and rises.
#[derive(Debug, Clone)]
pub(crate) struct Sine {
    mean: f64,
    amplitude: f64,
    period: Nanos,
}

impl Sine {
    /// Seconds; a hundredth of a nanosecond.
    const CLOSE: f64 = 1e-11;

    /// Five are usual. Where a wave touches zero each step takes off a third: 91 for a day.
    const MOST_STEPS: u32 = 100;

    fn instant_of(&self, expected: f64) -> Nanos {
        let period = self.period.as_secs();
        let each = self.mean * period;
        let periods = (expected / each).floor();
        let wanted = (expected - periods * each).clamp(0.0, each);
        let whole = Nanos(self.period.0.saturating_mul(periods as u64));
        whole + Nanos::from_secs_f64(self.solve_within_period(wanted, period))
    }

    /// Newton's method, within bounds that are halved where it would leave them.
    fn solve_within_period(&self, wanted: f64, period: f64) -> f64 {
        let (mut low, mut high) = (0.0, period);
        let mut at = wanted / self.mean;
        for _ in 0..Self::MOST_STEPS {
            let phase = TAU * at / period;
            let swing = self.amplitude * period / TAU * (1.0 - portable_cos(phase));
            let excess = self.mean * at + swing - wanted;
            if excess > 0.0 {
                high = at;
            } else {
                low = at;
            }
            let newton = at - excess / (self.mean + self.amplitude * portable_sin(phase));
            if (newton - at).abs() < Self::CLOSE {
                return newton;
            }
            let is_between = low < newton && newton < high;
            at = if is_between { newton } else { f64::midpoint(low, high) };
        }
        at
    }
}

#[cfg(test)]
mod tests;
