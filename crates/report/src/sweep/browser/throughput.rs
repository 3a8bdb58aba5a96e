//! Throughput against latency: the front, the knee, and what each load gives.

use goodput_campaign::curve::{FrontLatency, is_on_curve};
use goodput_campaign::sweep::{Bounded, PointSpread, PointSummary, SweepSummary};

use super::answer::capitalize;
use super::named_level;
use crate::sweep::{
    Latency, axis_unit, front_text, gpus_and_label, level_value_text, points_on_curve,
    pool_by_level, without_interval,
};
use goodput_document::number::cell_number;
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Shape};

pub(crate) fn throughput_charts(summary: &SweepSummary) -> Vec<Chart> {
    let latency = summary.curve.front;
    let (gpus, _) = gpus_and_label(summary);
    let dot = |point: &PointSummary| {
        let figures = &point.point.figures;
        let (x, found) = (figures.output_tps?, latency.figure_of(figures)?);
        let each = if gpus > 1.0 {
            format!(" ({} per GPU)", cell_number(x / gpus))
        } else {
            String::new()
        };
        let note = format!(
            "{}, {} tok/s{each}, {} {} ms",
            named_level(point.point.ask.level),
            cell_number(x),
            latency.title(),
            cell_number(found.value)
        );
        Some(Dot { x, y: found.value, low: found.low, high: found.high, note })
    };
    let is_front = |place: usize| summary.curve.pareto.contains(&place);
    let some = |of: &dyn Fn(usize, &PointSummary) -> bool| -> Vec<Dot> {
        let all = summary.points.iter().enumerate().filter(|(_, point)| is_on_curve(point));
        let mut dots: Vec<Dot> =
            all.filter(|(place, point)| of(*place, point)).filter_map(|(_, p)| dot(p)).collect();
        dots.sort_by(|a, b| a.x.total_cmp(&b.x));
        dots
    };
    let knee = summary.curve.knee.map(|knee| knee.level);
    let is_knee = |point: &PointSummary| {
        let level = point.point.ask.level.value();
        knee.is_some_and(|knee| (level - knee).abs() <= 1e-9 * knee)
    };
    let on_front = some(&|place, _| is_front(place));
    let others = some(&|place, point| !is_front(place) && !is_knee(point));
    let at_knee = some(&|_, point| is_knee(point));
    let says = front_chart_text(summary, &on_front, latency);
    let series = |name: &str, shape, tone, dots| ChartSeries::new(name, shape, tone, dots);
    let knee_name = knee.map_or("knee".to_owned(), |knee| {
        format!(
            "knee {} {}",
            level_value_text(summary.plan.axis, knee),
            axis_unit(summary.plan.axis)
        )
    });
    vec![
        Chart::new(
            "throughput-latency",
            capitalize(&format!("{} over output tok/s", latency.title())),
        )
        .with_caption(says)
        .with_axes("output tok/s of the server", "ms")
        .with_series([
            series("Pareto front", Shape::Points, 0, on_front),
            series("beaten, or falling behind", Shape::Marks, 5, others),
            series(&knee_name, Shape::Marks, 3, at_knee),
        ]),
    ]
}

/// The percentiles of TTFT, TPOT and ITL over output tokens per second, each curve in the order of the
/// load: it turns back where more load gives less.
pub(crate) fn percentile_charts(summary: &SweepSummary) -> Vec<Chart> {
    let points = points_on_curve(&summary.points);
    let axis = summary.plan.axis;
    let tps = pool_by_level(&points, |point| without_interval(point.point.figures.output_tps));
    let at = |level: f64| tps.iter().find(|(at, _)| *at == level).map(|(_, tps)| tps.value);
    let chart = |latency: Latency| {
        let series = |name: &str, tone, of: fn(PointSpread) -> Option<Bounded>| {
            let found = pool_by_level(&points, |point| of(latency.spread_of(&point.point.figures)));
            let dot = |(level, found): (f64, Bounded)| {
                let x = at(level)?;
                let load = format!("{} {}", level_value_text(axis, level), axis_unit(axis));
                let note =
                    format!("{load}, {} tok/s, {} ms", cell_number(x), cell_number(found.value));
                Some(Dot::with_note(x, found.value, note).with_interval(found.low, found.high))
            };
            let dots = found.into_iter().filter_map(dot).collect();
            ChartSeries::new(name, Shape::Points, tone, dots)
        };
        let title = format!("{} over output tok/s", latency.title());
        Chart::new(latency.throughput_chart_name(), title)
            .with_caption(
                "Each mark is a load; bars are 95 % intervals, and runs at one load are combined.",
            )
            .with_axes("output tok/s of the server", ChartAxis::log("ms"))
            .with_series([
                series("p50", 0, |spread| spread.p50),
                series("p90", 1, |spread| spread.p90),
                series("p99", 2, |spread| spread.p99),
            ])
    };
    let all = [Latency::Ttft, Latency::Tpot, Latency::Itl].into_iter().map(chart);
    all.filter(|chart| !chart.is_empty()).collect()
}

fn front_chart_text(summary: &SweepSummary, on_front: &[Dot], latency: FrontLatency) -> String {
    let ends = on_front.first().zip(on_front.last()).map(|(first, last)| {
        let at = |dot: &Dot| format!("{} tok/s at {} ms", cell_number(dot.x), cell_number(dot.y));
        format!("The front goes from {} to {} ({}). ", at(first), at(last), latency.title())
    });
    let all = points_on_curve(&summary.points).len();
    let ends = ends.unwrap_or_default();
    format!("{ends}{} of {all} points are {}.", on_front.len(), front_text(summary))
}
