//! Pages of runs that are written down here.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

pub(crate) mod fixture;
pub(crate) mod repeats;
mod run;

use goodput_campaign::compare::Comparison;
use goodput_campaign::sweep::Configuration;

use crate::compare::browser as compare;
use crate::sweep::browser as sweep;

/// A comparison of which everything is known.
pub(crate) fn comparison() -> Comparison {
    compare::tests::fixtures::full()
}

/// A sweep of which everything is known.
pub(crate) fn sweep() -> sweep::tests::fixture::Sweep {
    sweep::tests::fixture::sweep().unwrap()
}

/// One of several configurations.
pub(crate) fn configuration(value: &str, speed: f64) -> Configuration {
    sweep::tests::fixture::configuration(value, speed).unwrap()
}
