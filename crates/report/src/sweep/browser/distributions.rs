//! Latency distributions of the loads over each other.

use goodput_campaign::curve::by_level;
use goodput_campaign::sweep::{PointSummary, Purpose};
use goodput_model::SloTerm;
use goodput_stats::Distribution;

use super::{named_level, view_of_point};
use crate::sweep::{Latency, points_on_curve};
use crate::view::{PointView, SweepView};
use goodput_document::number::cell_number;
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Rule, Shape, TONES};
use goodput_model::escape_control;

/// A load and the run that stands for it.
struct LoadCurve<'a> {
    name: String,
    run: &'a PointView,
}

pub(crate) fn distribution_charts(view: &SweepView<'_>) -> Vec<Chart> {
    let points = points_on_curve(&view.summary.points);
    let (shown, left_out) = shown_loads(view, &points);
    let kinds = [
        ("cdf-ttft", "ttft", "TTFT", Some(Latency::Ttft)),
        ("cdf-tpot", "tpot", "TPOT", Some(Latency::Tpot)),
        ("cdf-e2e", "e2e", "E2E", Some(Latency::E2e)),
        ("cdf-itl", "itl", "Gaps between tokens (ITL)", None),
    ];
    let chart = |(name, metric, title, latency): (&'static str, &str, &str, Option<Latency>)| {
        let unit = if metric == "itl" { "gaps, %" } else { "requests, %" };
        let limits = latency.map_or(Vec::new(), |it| it.slo_terms(view.summary.plan.slo.as_ref()));
        let rule = |term: &&SloTerm| {
            Rule::Place(term.limit.base, format!("SLO {}", escape_control(&term.to_string())))
        };
        Chart::new(name, format!("{title}: share of requests completed by then"))
            .with_caption(chart_text(&shown, metric, left_out))
            .with_axes(ChartAxis::log("ms"), unit)
            .with_series(load_series(&shown, metric))
            .with_rules(limits.iter().map(rule))
    };
    kinds.map(chart).into_iter().filter(|chart| !chart.is_empty()).collect()
}

/// As many loads as can be told apart: those next to the answer, the least and the most first, the
/// others evenly. A run that confirmed stands for its load before others.
fn shown_loads<'a>(view: &SweepView<'a>, points: &[&PointSummary]) -> (Vec<LoadCurve<'a>>, usize) {
    let one = |(_, runs): (f64, Vec<&PointSummary>)| {
        let is_best = |point: &&&PointSummary| {
            matches!(point.point.ask.purpose, Purpose::Confirm | Purpose::Sustain)
        };
        let mut ordered = runs.iter().filter(is_best).chain(&runs);
        let (point, run) = ordered.find_map(|point| Some((point, view_of_point(view, point)?)))?;
        let name = named_level(point.point.ask.level);
        Some((point.point.ask.level.value(), LoadCurve { name, run }))
    };
    let all: Vec<(f64, LoadCurve<'a>)> = by_level(points).into_iter().filter_map(one).collect();
    let goodput = view.summary.goodput.as_ref();
    let ends = goodput.map_or([None; 2], |goodput| [goodput.level(), goodput.rejected]);
    let is_end =
        |level: f64| ends.iter().flatten().any(|end| (level - end).abs() <= 1e-6 * end.abs());
    let n = all.len();
    let mut chosen: Vec<usize> = (0..n).filter(|at| is_end(all[*at].0)).collect();
    let evenly = (0..TONES).map(|step| step * n.saturating_sub(1) / (TONES - 1));
    for at in [0, n.saturating_sub(1)].into_iter().chain(evenly).chain(0..n) {
        if chosen.len() < TONES.min(n) && !chosen.contains(&at) {
            chosen.push(at);
        }
    }
    let keep =
        |(at, (_, shown)): (usize, (f64, LoadCurve<'a>))| chosen.contains(&at).then_some(shown);
    (all.into_iter().enumerate().filter_map(keep).collect(), n - chosen.len())
}

fn load_series(shown: &[LoadCurve<'_>], metric: &str) -> Vec<ChartSeries> {
    let one = |(tone, shown): (usize, &LoadCurve<'_>)| {
        let found = shown.run.details.distributions.get(metric);
        let dots = found.map_or(Vec::new(), cdf_dots);
        ChartSeries::new(shown.name.clone(), Shape::Line, tone, dots)
    };
    shown.iter().enumerate().map(one).filter(|series| !series.dots.is_empty()).collect()
}

/// Shares of all over the values that they do not exceed.
fn cdf_dots(of: &Distribution) -> Vec<Dot> {
    let known = of.quantiles.iter().filter(|(_, value)| value.is_finite() && *value > 0.0);
    known.map(|(share, value)| Dot::new(*value, share * 100.0)).collect()
}

fn chart_text(shown: &[LoadCurve<'_>], metric: &str, left_out: usize) -> String {
    let median = |shown: &LoadCurve<'_>| {
        let quantiles = &shown.run.details.distributions.get(metric)?.quantiles;
        let (_, value) = quantiles.iter().find(|(share, _)| *share >= 0.5)?;
        Some(format!("{} ms at {}", cell_number(*value), shown.name))
    };
    let ends = shown.first().and_then(median).zip(shown.last().and_then(median));
    let mut says = ends
        .map_or(String::new(), |(first, last)| format!("The median goes from {first} to {last}. "));
    says.push_str(
        "One run for each load; requests beyond the time limit keep a curve below 100 %.",
    );
    if left_out == 0 { says } else { format!("{says} {left_out} loads in between are not shown.") }
}
