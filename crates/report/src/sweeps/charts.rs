//! Charts of several configurations: the curve of each.

use goodput_campaign::sweep::{Configuration, PointSummary, SweepSummary};

use super::configuration_name;
use crate::sweep::browser::{capitalize, level_dots, load_axis, named_level};
use crate::sweep::{Latency, gpus_and_label, level_axis, points_on_curve, user_speeds};
use goodput_document::TextPlot;
use goodput_document::clip::clip;
use goodput_document::number::cell_number;
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Rule, Shape, TONES};

/// Configurations that were measured, by their names.
fn measured_sweeps(all: &[Configuration]) -> Vec<(String, &SweepSummary)> {
    all.iter().filter_map(|one| Some((configuration_name(one), one.sweep.as_ref()?))).collect()
}

/// One curve for each configuration, on a terminal.
pub(super) fn curves_plot(all: &[Configuration]) -> Option<TextPlot> {
    let sweeps = drawn_sweeps(all);
    let (_, first) = sweeps.first()?;
    let points: Vec<&PointSummary> =
        measured_sweeps(all).iter().flat_map(|(_, sweep)| points_on_curve(&sweep.points)).collect();
    let latency = Latency::choose(first.plan.slo.as_ref(), &points);
    let over = level_axis(first.plan.axis, &points);
    let mut chart = latency_over_load(all, &sweeps, latency)?;
    chart.x.is_log = over.1;
    for series in &mut chart.series {
        series.name = clip(&series.name, 40);
        // Intervals of several curves would hide each other.
        series.dots.iter_mut().for_each(|dot| (dot.low, dot.high) = (None, None));
    }
    let title = format!("p99 {} in ms (logarithmic) over {}", latency.title(), over.0);
    Some(TextPlot { title, rows: 14, chart })
}

/// Sweeps that are drawn: as many as can be told apart.
fn drawn_sweeps(all: &[Configuration]) -> Vec<(String, &SweepSummary)> {
    measured_sweeps(all).into_iter().take(TONES).collect()
}

/// What stands below each chart.
fn chart_caption(all: &[Configuration], text: &str) -> String {
    let swept = all.iter().filter(|one| one.sweep.is_some()).count();
    if swept > TONES {
        format!("{text} Of the first {TONES} configurations only.")
    } else {
        text.to_owned()
    }
}

fn all_points<'a>(sweeps: &[(String, &'a SweepSummary)]) -> Vec<&'a PointSummary> {
    sweeps.iter().flat_map(|(_, sweep)| points_on_curve(&sweep.points)).collect()
}

fn sweep_series(
    sweeps: &[(String, &SweepSummary)],
    shape: Shape,
    dots: impl Fn(&SweepSummary) -> Vec<Dot>,
) -> Vec<ChartSeries> {
    let one = |(tone, (name, sweep)): (usize, &(String, &SweepSummary))| {
        ChartSeries::new(name.clone(), shape, tone, dots(sweep))
    };
    sweeps.iter().enumerate().map(one).collect()
}

/// The 99th percentile of each latency that was measured.
pub(super) fn latency_charts(all: &[Configuration]) -> Vec<Chart> {
    let sweeps = drawn_sweeps(all);
    let charts = Latency::ALL.into_iter().filter_map(|of| latency_over_load(all, &sweeps, of));
    charts.filter(|chart| !chart.is_empty()).collect()
}

fn latency_over_load(
    all: &[Configuration],
    sweeps: &[(String, &SweepSummary)],
    latency: Latency,
) -> Option<Chart> {
    let (_, first) = sweeps.first()?;
    let rules = latency.slo_line(first.plan.slo.as_ref());
    Some(
        Chart::new(latency.chart_name(), format!("p99 {} of each configuration", latency.title()))
            .with_caption(chart_caption(
                all,
                "Lower and further to the right is better. Bars are 95 % intervals.",
            ))
            .with_axes(load_axis(first.plan.axis, &all_points(sweeps)), ChartAxis::log("ms"))
            .with_series(sweep_series(sweeps, Shape::Points, |sweep| {
                let used = points_on_curve(&sweep.points);
                level_dots(sweep.plan.axis, &used, |figures| latency.spread_of(figures).p99, "ms")
            }))
            .with_rules(rules.map(|(limit, text)| Rule::Height(limit, text))),
    )
}

/// The front of each configuration.
pub(super) fn front_charts(all: &[Configuration]) -> Vec<Chart> {
    let sweeps = drawn_sweeps(all);
    let latency = sweeps.first().map(|(_, sweep)| sweep.curve.front).unwrap_or_default();
    let front = |sweep: &SweepSummary| {
        let dot = |place: &usize| {
            let point = &sweep.points.get(*place)?.point;
            let (x, y) = (point.figures.output_tps?, latency.figure_of(&point.figures)?.value);
            let at = named_level(point.ask.level);
            Some(Dot::with_note(
                x,
                y,
                format!("{at}, {} tok/s, {} ms", cell_number(x), cell_number(y)),
            ))
        };
        let places = sweep.curve.fronts.get(&latency).unwrap_or(&sweep.curve.pareto);
        let mut dots: Vec<Dot> = places.iter().filter_map(dot).collect();
        dots.sort_by(|a, b| a.x.total_cmp(&b.x));
        dots
    };
    vec![
        Chart::new(
            "throughput-latency",
            capitalize(&format!("{} over output tok/s: the front of each", latency.title())),
        )
        .with_caption(chart_caption(all, "Lower and further to the right is better."))
        .with_axes("output tok/s of the server", "ms")
        .with_series(sweep_series(&sweeps, Shape::Points, front)),
    ]
}

pub(super) fn goodput_charts(all: &[Configuration]) -> Vec<Chart> {
    let sweeps = drawn_sweeps(all);
    let Some((_, first)) = sweeps.first() else { return Vec::new() };
    vec![
        Chart::new("goodput-over-load", "Good requests per second of each configuration")
            .with_caption(chart_caption(all, "Higher is better. Bars are 95 % intervals."))
            .with_axes(load_axis(first.plan.axis, &all_points(&sweeps)), "good requests per second")
            .with_series(sweep_series(&sweeps, Shape::Points, |sweep| {
                let used = points_on_curve(&sweep.points);
                level_dots(sweep.plan.axis, &used, |figures| figures.goodput_rps, "good req/s")
            })),
    ]
}

pub(super) fn user_charts(all: &[Configuration]) -> Vec<Chart> {
    let sweeps = drawn_sweeps(all);
    let Some((_, first)) = sweeps.first() else { return Vec::new() };
    let (_, per) = gpus_and_label(first);
    let speeds = |sweep: &SweepSummary| {
        let (gpus, _) = gpus_and_label(sweep);
        let mut all = user_speeds(&points_on_curve(&sweep.points), gpus);
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let dot = |(user, each, point): (f64, f64, &PointSummary)| {
            let at = named_level(point.point.ask.level);
            let note =
                format!("{at}, {} tok/s per user, {} tok/s", cell_number(user), cell_number(each));
            Dot::with_note(user, each, note)
        };
        all.into_iter().map(dot).collect()
    };
    vec![
        Chart::new("user-against-gpu", format!("Output tok/s {per} over tok/s per user (median)"))
            .with_caption(chart_caption(
                all,
                "Up is cheaper, to the right is faster for each user.",
            ))
            .with_axes("tok/s per user (median)", format!("output tok/s {per}"))
            .with_series(sweep_series(&sweeps, Shape::Marks, speeds)),
    ]
}
