//! How sure a figure is: intervals of quantiles and means, and what they need.
//!
//! Everything here works on counts and ranks; the values themselves stay in [`crate::Sample`].
//! `docs/design/012-intervals.md` says why these intervals and how often they hold the truth.

mod batches;
mod binomial;
mod contention;
mod early_stopping;
mod interval;
mod memory;
mod needed;
mod quality;
mod student;

#[cfg(test)]
mod tests;

pub(crate) use batches::{BATCHES, Effective, Ratio, lag1_correlation};
pub(crate) use binomial::binomial_cdf;
pub use binomial::{minimum_for_bound, minimum_for_interval};
pub(crate) use contention::{Contention, Visit};
pub(crate) use early_stopping::early_stopping_rank;
pub(crate) use interval::{interval_ranks, lower_rank};
pub(crate) use memory::{Inflation, Memory, SLICES};
pub(crate) use needed::sample_size_factor;
pub use needed::{DEFAULT_SIGMA, requests_before, requests_before_mean, requests_needed};
pub use quality::minimum_for_figure;
pub(crate) use quality::{MINIMUM_FOR_MEAN, minimum_for_estimate};
pub(crate) use student::normal_chance;
pub use student::{normal_quantile, student_quantile};

/// Every interval holds the truth with this probability, as far as its assumptions go.
pub(crate) const LEVEL: f64 = 0.95;

/// The chance that the truth lies beyond one end.
pub(crate) const TAIL: f64 = (1.0 - LEVEL) / 2.0;
