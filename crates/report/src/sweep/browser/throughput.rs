//! Throughput against latency: the front, the knee, and what each load gives.

use goodput_campaign::curve::{FrontLatency, is_on_curve};
use goodput_campaign::sweep::{Bounded, PointSpread, PointSummary, SweepSummary};

use super::answer::capitalised;
use super::named_level;
use crate::sweep::{Latency, bare, front, level_number, on_curve, per_gpu, pooled, unit};
use goodput_document::number::cell;
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Shape};

pub(crate) fn charts(summary: &SweepSummary) -> Vec<Chart> {
    let latency = summary.curve.front;
    let (gpus, _) = per_gpu(summary);
    let dot = |point: &PointSummary| {
        let figures = &point.point.figures;
        let (x, found) = (figures.output_tps?, latency.figure(figures)?);
        let each =
            if gpus > 1.0 { format!(" ({} per GPU)", cell(x / gpus)) } else { String::new() };
        let note = format!(
            "{}, {} tok/s{each}, {} {} ms",
            named_level(point.point.ask.level),
            cell(x),
            latency.name(),
            cell(found.value)
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
    let says = words(summary, &on_front, latency);
    let series = |name: &str, shape, tone, dots| ChartSeries::new(name, shape, tone, dots);
    let knee_name = knee.map_or("knee".to_owned(), |knee| {
        format!("knee {} {}", level_number(summary.plan.axis, knee), unit(summary.plan.axis))
    });
    vec![
        Chart::new(
            "throughput-latency",
            capitalised(&format!("{} over output tok/s", latency.name())),
        )
        .says(says)
        .over("output tok/s of the server", "ms")
        .series([
            series("Pareto front", Shape::Points, 0, on_front),
            series("beaten, or falling behind", Shape::Marks, 5, others),
            series(&knee_name, Shape::Marks, 3, at_knee),
        ]),
    ]
}

/// The percentiles of TTFT, TPOT and ITL over output tokens per second, each curve in the order of the
/// load: it turns back where more load gives less.
pub(crate) fn percentiles(summary: &SweepSummary) -> Vec<Chart> {
    let points = on_curve(&summary.points);
    let axis = summary.plan.axis;
    let tps = pooled(&points, |point| bare(point.point.figures.output_tps));
    let at = |level: f64| tps.iter().find(|(at, _)| *at == level).map(|(_, tps)| tps.value);
    let chart = |latency: Latency| {
        let series = |name: &str, tone, of: fn(PointSpread) -> Option<Bounded>| {
            let found = pooled(&points, |point| of(latency.spread(&point.point.figures)));
            let dot = |(level, found): (f64, Bounded)| {
                let x = at(level)?;
                let load = format!("{} {}", level_number(axis, level), unit(axis));
                let note = format!("{load}, {} tok/s, {} ms", cell(x), cell(found.value));
                Some(Dot::noted(x, found.value, note).within(found.low, found.high))
            };
            let dots = found.into_iter().filter_map(dot).collect();
            ChartSeries::new(name, Shape::Points, tone, dots)
        };
        let title = format!("{} over output tok/s", latency.name());
        Chart::new(latency.throughput_chart(), title)
            .says(
                "Each mark is a load; bars are 95 % intervals, and runs at one load are combined.",
            )
            .over("output tok/s of the server", ChartAxis::log("ms"))
            .series([
                series("p50", 0, |spread| spread.p50),
                series("p90", 1, |spread| spread.p90),
                series("p99", 2, |spread| spread.p99),
            ])
    };
    let all = [Latency::Ttft, Latency::Tpot, Latency::Itl].into_iter().map(chart);
    all.filter(|chart| !chart.is_empty()).collect()
}

fn words(summary: &SweepSummary, on_front: &[Dot], latency: FrontLatency) -> String {
    let ends = on_front.first().zip(on_front.last()).map(|(first, last)| {
        let at = |dot: &Dot| format!("{} tok/s at {} ms", cell(dot.x), cell(dot.y));
        format!("The front goes from {} to {} ({}). ", at(first), at(last), latency.name())
    });
    let all = on_curve(&summary.points).len();
    let ends = ends.unwrap_or_default();
    format!("{ends}{} of {all} points are {}.", on_front.len(), front(summary))
}
