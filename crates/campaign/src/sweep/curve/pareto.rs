//! The front of throughput against latency, and the peak of goodput.

use std::collections::BTreeMap;

use goodput_model::EndedBy;
use serde::{Deserialize, Serialize};

use super::{Knee, is_on_curve, knee::has_fallen_behind};
use crate::sweep::{Bounded, Figures, Level, PointSummary};

/// The latency of a front of throughput against latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrontLatency {
    /// Median TTFT.
    TtftP50,
    /// 99th percentile of TTFT.
    TtftP99,
    /// Median TPOT.
    #[default]
    TpotP50,
    /// 99th percentile of TPOT.
    TpotP99,
    /// Median E2E.
    E2eP50,
    /// 99th percentile of E2E.
    E2eP99,
}

impl FrontLatency {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::TtftP50, Self::TtftP99, Self::TpotP50, Self::TpotP99, Self::E2eP50, Self::E2eP99];

    /// That of a point in milliseconds; none with too few samples.
    pub fn figure_of(self, figures: &Figures) -> Option<Bounded> {
        match self {
            Self::TtftP50 => figures.ttft_ms.p50,
            Self::TtftP99 => figures.ttft_ms.p99,
            Self::TpotP50 => figures.tpot_ms.p50,
            Self::TpotP99 => figures.tpot_ms.p99,
            Self::E2eP50 => figures.e2e_ms.p50,
            Self::E2eP99 => figures.e2e_ms.p99,
        }
    }

    /// As a page says it: `p99 TTFT`.
    pub fn title(self) -> &'static str {
        match self {
            Self::TtftP50 => "median TTFT",
            Self::TtftP99 => "p99 TTFT",
            Self::TpotP50 => "median TPOT",
            Self::TpotP99 => "p99 TPOT",
            Self::E2eP50 => "median E2E",
            Self::E2eP99 => "p99 E2E",
        }
    }
}

/// The latency of the front where none is chosen: the median TPOT, or the median E2E where fewer
/// points have a TPOT.
pub(super) fn default_front_latency(points: &[PointSummary]) -> FrontLatency {
    let measured = |latency: FrontLatency| {
        let on_curve = points.iter().filter(|point| is_on_curve(point));
        on_curve.filter(|point| latency.figure_of(&point.point.figures).is_some()).count()
    };
    let is_tpot = measured(FrontLatency::TpotP50) >= measured(FrontLatency::E2eP50);
    if is_tpot { FrontLatency::TpotP50 } else { FrontLatency::E2eP50 }
}

/// For each latency that was measured the places of the points that no other beats in both output
/// tokens per second and
/// that latency. Loads that the server does not keep up with do not count: their latencies
/// are those of the minute at which they were stopped.
pub(super) fn all_fronts(
    points: &[PointSummary],
    knee: Option<Knee>,
) -> BTreeMap<FrontLatency, Vec<usize>> {
    let offers: Vec<usize> = (0..points.len())
        .filter(|place| points.get(*place).is_some_and(|point| is_delivered_load(point, knee)))
        .collect();
    let all = FrontLatency::ALL.map(|latency| (latency, pareto_front(points, &offers, latency)));
    all.into_iter().filter(|(_, places)| !places.is_empty()).collect()
}

/// Whether the server keeps up with the load of a point. An open loop above the knee is not delivered,
/// even if the point was too short to show that a queue grows.
fn is_delivered_load(point: &PointSummary, knee: Option<Knee>) -> bool {
    let ask = &point.point.ask;
    let is_above = match ask.level {
        Level::Rate(rate) => knee.is_some_and(|knee| rate > knee.level * (1.0 + 1e-9)),
        Level::Users(_) => false,
    };
    is_on_curve(point)
        && !is_above
        && !has_fallen_behind(point)
        && point.point.figures.ended_by != Some(EndedBy::Hopeless)
}

fn pareto_front(points: &[PointSummary], offers: &[usize], latency: FrontLatency) -> Vec<usize> {
    let offer = |place: &usize| {
        let figures = &points.get(*place)?.point.figures;
        let throughput = figures.output_tps.filter(|v| v.is_finite() && *v > 0.0)?;
        let latency =
            latency.figure_of(figures).map(|found| found.value).filter(|v| v.is_finite())?;
        Some((*place, throughput, latency))
    };
    let offers: Vec<(usize, f64, f64)> = offers.iter().filter_map(offer).collect();
    let is_beaten = |of: &(usize, f64, f64)| {
        offers.iter().any(|by| by.1 >= of.1 && by.2 <= of.2 && (by.1 > of.1 || by.2 < of.2))
    };
    offers.iter().filter(|offer| !is_beaten(offer)).map(|offer| offer.0).collect()
}

/// Place of the point with the most good requests per second.
pub(super) fn peak_goodput(points: &[PointSummary]) -> Option<usize> {
    points
        .iter()
        .enumerate()
        .filter(|(_, point)| is_on_curve(point))
        .filter_map(|(place, point)| Some((place, point.point.figures.goodput_rps?.value)))
        .filter(|(_, rate)| rate.is_finite() && *rate > 0.0)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(place, _)| place)
}
