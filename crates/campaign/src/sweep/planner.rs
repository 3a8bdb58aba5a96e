//! What to measure next.

use serde::{Deserialize, Serialize};

use super::{Ask, Goodput, Point, SweepPlan};

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Measure this.
    Measure(Ask),
    /// Everything is known that shall be.
    Done,
}

/// How long a sweep takes from here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Seconds in all, drains and pauses included.
    pub seconds: f64,
    /// Points to measure.
    pub points: u32,
    /// Its parts in words, each with its seconds.
    pub parts: Vec<(String, f64)>,
}

/// What to measure next, given what has been measured: a function of its arguments alone.
pub fn next(_plan: &SweepPlan, _points: &[Point]) -> Step {
    Step::Done
}

/// How long it takes from here; none before the warm-up has told how fast the server is.
pub fn estimate(_plan: &SweepPlan, _points: &[Point]) -> Option<Estimate> {
    None
}

/// The answer, as far as it is known; none where none was asked for.
pub fn answer(_plan: &SweepPlan, _points: &[Point]) -> Option<Goodput> {
    None
}
