//! A client that others keep disturbing: from when on points are not repeated, and what spoilt ones
//! still say.

use super::super::judge::{is_late_client, judge_despite_client, judge_load};
use super::super::{Figures, Point, PointStanding, Purpose, SweepPlan, Unclear};

/// With this many spoilt points, what spoils them is not about to pass,
const SPOILT: usize = 3;
/// if they are more than this share of all.
const SHARE: f64 = 1.0 / 3.0;

/// Other programs that use this share of the processors are the cause.
pub(super) const MUCH_CPU: f64 = 0.2;

/// The points that the client spoilt, of all that count.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct SpoiltPoints {
    pub(super) spoilt: usize,
    pub(super) measured: usize,
    /// Share of the processors that other programs used during the spoilt points, on average.
    pub(super) others_cpu: Option<f64>,
}

impl SpoiltPoints {
    pub(super) fn new(plan: &SweepPlan, points: &[Point]) -> Self {
        let counts = |point: &&Point| !matches!(point.ask.purpose, Purpose::WarmUp | Purpose::Twin);
        let is_spoilt = |point: &&Point| {
            judge_load(&point.figures, plan) == PointStanding::Unclear(Unclear::Client)
        };
        let spoilt: Vec<_> = points.iter().filter(counts).filter(is_spoilt).collect();
        let shares: Vec<f64> = spoilt.iter().filter_map(|point| point.figures.others_cpu).collect();
        Self {
            spoilt: spoilt.len(),
            measured: points.iter().filter(counts).count(),
            others_cpu: (!shares.is_empty())
                .then(|| shares.iter().sum::<f64>() / shares.len() as f64),
        }
    }

    /// Whether it goes on like this: nothing is measured again.
    pub(super) fn is_lasting(self) -> bool {
        self.spoilt >= SPOILT && self.spoilt as f64 > SHARE * self.measured as f64
    }

    /// The share of the points to come that is likely to be spoilt; none if none was so far.
    pub(super) fn expected(self) -> Option<f64> {
        (self.spoilt > 0).then(|| (self.spoilt + 1) as f64 / (self.measured + 4) as f64)
    }
}

/// Whether a point keeps the SLO although other programs made the client late: without them, it would
/// keep it too. A client that is at its own limit may not have sent the load.
pub(super) fn is_met_all_the_same(figures: &Figures, plan: &SweepPlan) -> bool {
    let is_only_late = figures.doubts.first().is_some_and(|cause| is_late_client(cause));
    let is_of_others = figures.others_cpu.is_some_and(|share| share > MUCH_CPU);
    is_only_late && is_of_others && judge_despite_client(figures, plan) == PointStanding::Met
}
