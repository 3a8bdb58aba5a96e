//! A sweep: load raised from point to point, the curve that comes of it, and the highest load that
//! keeps the SLO. What to measure next is a pure function of what has been measured so far, so a
//! sweep that was stopped goes on where it was.

mod audit;
pub mod curve;
mod figures;
mod given;
mod judge;
mod planner;
mod stated;
mod summary;

pub use audit::{representative, sweep_audit};
pub use figures::{Bounded, Figures, PointSpread, TermFigure};
pub use given::{geometric_levels, sorted_levels};
pub use judge::{Miss, PointStanding, Unclear, judge};
pub use planner::{
    KeptLoad, KeptSupport, SweepRehearsal, SweepStep, TimeEstimate, answer, estimate_time,
    kept_loads, next_step_s, next_sweep_step, rehearse_sweep, sweep_caveats, weighted_mean,
};
pub use stated::StatedFigure;
pub use summary::{
    ColdStart, Configuration, Goodput, GoodputState, PointSummary, Sustained, SweepFacts,
    SweepState, SweepSummary, Sweeps,
};

use goodput_model::{Slo, StopEarly};
use serde::{Deserialize, Serialize};

/// What is raised from point to point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Requests per second of an open loop.
    Rate,
    /// Users of a closed loop.
    Concurrency,
}

/// How much effort a sweep makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// A first look.
    Quick,
    /// The minimum for each point: a minute, and five times p99 E2E.
    Standard,
    /// Ten minutes for each point.
    Certified,
}

/// The settings of a sweep, without the plan of its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepPlan {
    /// What is raised.
    pub axis: Axis,
    /// Levels that are always measured, ascending; empty: chosen by goodput.
    pub levels: Vec<f64>,
    /// Lowest level of the search; none if not given.
    pub least: Option<f64>,
    /// Highest level of the search.
    pub most: Option<f64>,
    /// The effort.
    pub effort: Effort,
    /// Whether to search for the highest level that keeps the SLO.
    pub search: bool,
    /// Length of the sustained run at the goodput, in seconds; none: by the effort; 0: no sustained
    /// run.
    pub sustained_s: Option<f64>,
    /// Measured seconds of each point; none: by the effort.
    pub point_s: Option<f64>,
    /// Fewest measured requests of each point; none: by the effort.
    pub point_requests: Option<u64>,
    /// Load before the measured part of each point, in seconds; none: derived from the time of
    /// answers.
    pub burn_in_s: Option<f64>,
    /// Pause between points, in seconds.
    pub settle_s: f64,
    /// Whether each open-loop point is followed by a closed-loop point with as many users as
    /// requests were in flight.
    pub twins: bool,
    /// Seed of the first point; each point has its own.
    pub seed: u64,
    /// The SLO.
    pub slo: Option<Slo>,
    /// The share of requests that must keep all terms about single requests.
    pub attainment: Option<f64>,
}

/// A search over rates with the usual effort, and nothing promised yet.
impl Default for SweepPlan {
    fn default() -> Self {
        Self {
            axis: Axis::Rate,
            levels: Vec::new(),
            least: None,
            most: None,
            effort: Effort::Standard,
            search: true,
            sustained_s: None,
            point_s: None,
            point_requests: None,
            burn_in_s: None,
            settle_s: 1.0,
            twins: false,
            seed: 1,
            slo: None,
            attainment: None,
        }
    }
}

/// A load level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// An open loop at this many requests per second.
    Rate(f64),
    /// A closed loop with this many users.
    Users(u32),
}

impl Level {
    /// As part of a folder's name.
    pub fn folder_name(self) -> String {
        match self {
            Self::Rate(rate) => format!("rate-{}", short_rate(rate)),
            Self::Users(users) => format!("users-{users}"),
        }
    }

    /// `20 req/s`, `1 user`, `8 users`.
    pub(crate) fn with_unit(self) -> String {
        match self {
            Self::Rate(rate) => format!("{} req/s", (rate * 1e3).round() / 1e3),
            Self::Users(1) => "1 user".to_owned(),
            Self::Users(users) => format!("{users} users"),
        }
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rate(rate) => write!(f, "{}/s", short_rate(*rate)),
            Self::Users(users) => write!(f, "{users} users"),
        }
    }
}

/// Four digits, as many as a level has.
fn short_rate(rate: f64) -> String {
    let rounded: f64 = format!("{rate:.3e}").parse().unwrap_or(rate);
    rounded.to_string()
}

/// Why a point is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A short closed loop of the measured workload: warms the server up, and shows how fast it is.
    WarmUp,
    /// A given level, or one that fills the curve.
    Grid,
    /// A level that was measured before, to see whether the server has changed.
    Anchor,
    /// Looking for a level over the limit, or below it.
    Bracket,
    /// Closing in.
    Bisect,
    /// Near the estimated limit, to locate it better.
    Focus,
    /// An independent run that must keep the SLO.
    Confirm,
    /// The sustained run at the goodput.
    Sustain,
    /// The closed-loop twin of an open-loop point.
    Twin,
}

/// A point to measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PointAsk {
    /// From 1; also the number of its folder.
    pub number: u32,
    /// Why.
    pub purpose: Purpose,
    /// How much load.
    pub level: Level,
    /// Load before the measured part, in seconds.
    pub burn_in_s: f64,
    /// Measured seconds at most.
    pub seconds: f64,
    /// Measured requests at most; none: as many as arrive in that time.
    pub requests: Option<u64>,
    /// Seed of its arrivals and prompts.
    pub seed: u64,
    /// When it may end early; none: it runs to its end.
    pub stops: Option<StopEarly>,
}

/// A point that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// What was asked.
    pub ask: PointAsk,
    /// Its figures.
    pub figures: Figures,
}

impl Level {
    /// On its axis.
    pub fn value(self) -> f64 {
        match self {
            Self::Rate(rate) => rate,
            Self::Users(users) => f64::from(users),
        }
    }

    /// The level of this value on an axis; at least one user.
    pub fn from_value(axis: Axis, value: f64) -> Self {
        match axis {
            Axis::Rate => Self::Rate(value),
            Axis::Concurrency => Self::Users(value.round().clamp(1.0, 1e6) as u32),
        }
    }

    /// Its axis.
    pub fn axis(self) -> Axis {
        match self {
            Self::Rate(_) => Axis::Rate,
            Self::Users(_) => Axis::Concurrency,
        }
    }
}
