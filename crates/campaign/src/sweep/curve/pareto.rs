//! The front of throughput against latency, and the peak of goodput.

use goodput_model::EndedBy;

use super::{is_on_curve, knee::is_lost};
use crate::sweep::{Figures, PointSummary};

/// Places of the points that no other beats in both output tokens per second and latency: the median
/// TPOT, or the median E2E where fewer have a TPOT. Points under which the server falls behind are no
/// offer to anybody: their latencies are those of the minute at which they were stopped.
pub(super) fn front(points: &[PointSummary]) -> Vec<usize> {
    let is_offer = |point: &PointSummary| {
        is_on_curve(point)
            && !is_lost(point)
            && point.point.figures.ended_by != Some(EndedBy::Hopeless)
    };
    let offers = |latency: fn(&Figures) -> Option<f64>| -> Vec<(usize, f64, f64)> {
        let offer = |(place, point): (usize, &PointSummary)| {
            let figures = &point.point.figures;
            let throughput = figures.output_tps.filter(|v| v.is_finite() && *v > 0.0)?;
            let latency = latency(figures).filter(|v| v.is_finite())?;
            Some((place, throughput, latency))
        };
        points.iter().enumerate().filter(|(_, point)| is_offer(point)).filter_map(offer).collect()
    };
    let tpot = offers(|figures| figures.tpot_ms.p50.map(|p50| p50.value));
    let e2e = offers(|figures| figures.e2e_ms.p50.map(|p50| p50.value));
    let offers = if tpot.len() >= e2e.len() { tpot } else { e2e };
    let is_beaten = |of: &(usize, f64, f64)| {
        offers.iter().any(|by| by.1 >= of.1 && by.2 <= of.2 && (by.1 > of.1 || by.2 < of.2))
    };
    offers.iter().filter(|offer| !is_beaten(offer)).map(|offer| offer.0).collect()
}

/// Place of the point with the most good requests per second.
pub(super) fn peak(points: &[PointSummary]) -> Option<usize> {
    points
        .iter()
        .enumerate()
        .filter(|(_, point)| is_on_curve(point))
        .filter_map(|(place, point)| Some((place, point.point.figures.goodput_rps?.value)))
        .filter(|(_, rate)| rate.is_finite() && *rate > 0.0)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(place, _)| place)
}
