//! Charts of several configurations: the curve of each.

use goodput_campaign::sweep::{Configuration, PointSummary, SweepSummary};

use super::name;
use crate::sweep::browser::{capitalised, dots, named_level, over};
use crate::sweep::{Latency, level_axis, on_curve, per_gpu, user_speeds};
use goodput_document::TextPlot;
use goodput_document::clip::clip;
use goodput_document::number::cell;
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Rule, Shape, TONES};

/// Configurations that were measured, by their names.
fn swept(all: &[Configuration]) -> Vec<(String, &SweepSummary)> {
    all.iter().filter_map(|one| Some((name(one), one.sweep.as_ref()?))).collect()
}

/// One curve for each configuration, on a terminal.
pub(super) fn curves(all: &[Configuration]) -> Option<TextPlot> {
    let sweeps = drawn(all);
    let (_, first) = sweeps.first()?;
    let points: Vec<&PointSummary> =
        swept(all).iter().flat_map(|(_, sweep)| on_curve(&sweep.points)).collect();
    let latency = Latency::choose(first.plan.slo.as_ref(), &points);
    let over = level_axis(first.plan.axis, &points);
    let mut chart = over_load(all, &sweeps, latency)?;
    chart.x.is_log = over.1;
    for series in &mut chart.series {
        series.name = clip(&series.name, 40);
        // Intervals of several curves would hide each other.
        series.dots.iter_mut().for_each(|dot| (dot.low, dot.high) = (None, None));
    }
    let title = format!("p99 {} in ms (logarithmic) over {}", latency.name(), over.0);
    Some(TextPlot { title, rows: 14, chart })
}

/// Sweeps that are drawn: as many as can be told apart.
fn drawn(all: &[Configuration]) -> Vec<(String, &SweepSummary)> {
    swept(all).into_iter().take(TONES).collect()
}

/// What stands below each chart.
fn says(all: &[Configuration], text: &str) -> String {
    let swept = all.iter().filter(|one| one.sweep.is_some()).count();
    if swept > TONES {
        format!("{text} Of the first {TONES} configurations only.")
    } else {
        text.to_owned()
    }
}

fn points_of<'a>(sweeps: &[(String, &'a SweepSummary)]) -> Vec<&'a PointSummary> {
    sweeps.iter().flat_map(|(_, sweep)| on_curve(&sweep.points)).collect()
}

fn series(
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
pub(super) fn latencies(all: &[Configuration]) -> Vec<Chart> {
    let sweeps = drawn(all);
    let charts = Latency::ALL.into_iter().filter_map(|of| over_load(all, &sweeps, of));
    charts.filter(|chart| !chart.is_empty()).collect()
}

fn over_load(
    all: &[Configuration],
    sweeps: &[(String, &SweepSummary)],
    latency: Latency,
) -> Option<Chart> {
    let (_, first) = sweeps.first()?;
    let rules = latency.line(first.plan.slo.as_ref());
    Some(
        Chart::new(latency.chart(), format!("p99 {} of each configuration", latency.name()))
            .says(says(all, "Lower and further to the right is better. Bars are 95 % intervals."))
            .over(over(first.plan.axis, &points_of(sweeps)), ChartAxis::log("ms"))
            .series(series(sweeps, Shape::Points, |sweep| {
                let used = on_curve(&sweep.points);
                dots(sweep.plan.axis, &used, |figures| latency.spread(figures).p99, "ms")
            }))
            .rules(rules.map(|(limit, text)| Rule::Height(limit, text))),
    )
}

/// The front of each configuration.
pub(super) fn fronts(all: &[Configuration]) -> Vec<Chart> {
    let sweeps = drawn(all);
    let latency = sweeps.first().map(|(_, sweep)| sweep.curve.front).unwrap_or_default();
    let front = |sweep: &SweepSummary| {
        let dot = |place: &usize| {
            let point = &sweep.points.get(*place)?.point;
            let (x, y) = (point.figures.output_tps?, latency.figure(&point.figures)?.value);
            let at = named_level(point.ask.level);
            Some(Dot::noted(x, y, format!("{at}, {} tok/s, {} ms", cell(x), cell(y))))
        };
        let places = sweep.curve.fronts.get(&latency).unwrap_or(&sweep.curve.pareto);
        let mut dots: Vec<Dot> = places.iter().filter_map(dot).collect();
        dots.sort_by(|a, b| a.x.total_cmp(&b.x));
        dots
    };
    vec![
        Chart::new(
            "throughput-latency",
            capitalised(&format!("{} over output tok/s: the front of each", latency.name())),
        )
        .says(says(all, "Lower and further to the right is better."))
        .over("output tok/s of the server", "ms")
        .series(series(&sweeps, Shape::Points, front)),
    ]
}

pub(super) fn goodputs(all: &[Configuration]) -> Vec<Chart> {
    let sweeps = drawn(all);
    let Some((_, first)) = sweeps.first() else { return Vec::new() };
    vec![
        Chart::new("goodput-over-load", "Good requests per second of each configuration")
            .says(says(all, "Higher is better. Bars are 95 % intervals."))
            .over(over(first.plan.axis, &points_of(&sweeps)), "good requests per second")
            .series(series(&sweeps, Shape::Points, |sweep| {
                let used = on_curve(&sweep.points);
                dots(sweep.plan.axis, &used, |figures| figures.goodput_rps, "good req/s")
            })),
    ]
}

pub(super) fn users(all: &[Configuration]) -> Vec<Chart> {
    let sweeps = drawn(all);
    let Some((_, first)) = sweeps.first() else { return Vec::new() };
    let (_, per) = per_gpu(first);
    let speeds = |sweep: &SweepSummary| {
        let (gpus, _) = per_gpu(sweep);
        let mut all = user_speeds(&on_curve(&sweep.points), gpus);
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let dot = |(user, each, point): (f64, f64, &PointSummary)| {
            let at = named_level(point.point.ask.level);
            let note = format!("{at}, {} tok/s per user, {} tok/s", cell(user), cell(each));
            Dot::noted(user, each, note)
        };
        all.into_iter().map(dot).collect()
    };
    vec![
        Chart::new("user-against-gpu", format!("Output tok/s {per} over tok/s per user (median)"))
            .says(says(all, "Up is cheaper, to the right is faster for each user."))
            .over("tok/s per user (median)", format!("output tok/s {per}"))
            .series(series(&sweeps, Shape::Marks, speeds)),
    ]
}
