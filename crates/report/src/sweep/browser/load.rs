//! Charts over load: latency with the promise and the answer, goodput, attainment.

use goodput_campaign::sweep::{Axis, Bounded, Figures, PointSpread, PointSummary, SweepSummary};
use goodput_model::{SloStatistic, SloTerm};

use super::answer::limit_interval;
use crate::sweep::{
    Latency, axis_unit, level_axis, level_value_text, peak_goodput, points_on_curve, pool_by_level,
    without_interval,
};
use goodput_document::number::{cell_number, percent, range_in_brackets, trimmed_text};
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Rule, Shape};
use goodput_model::escape_control;

/// The horizontal axis of all these.
pub(crate) fn load_axis(axis: Axis, points: &[&PointSummary]) -> ChartAxis {
    let (label, is_log) = level_axis(axis, points);
    if is_log { ChartAxis::log(label) } else { ChartAxis::linear(label) }
}

/// A level and a figure with its interval, for a tooltip.
fn figure_tooltip(axis: Axis, x: f64, found: Bounded, of: &str) -> String {
    let ends = range_in_brackets(found.low, found.high, cell_number);
    format!(
        "{} {}, {}{ends} {of}",
        level_value_text(axis, x),
        axis_unit(axis),
        cell_number(found.value)
    )
}

/// The pooled figures of each level, in this unit.
pub(crate) fn level_dots(
    axis: Axis,
    points: &[&PointSummary],
    of: impl Fn(&Figures) -> Option<Bounded>,
    unit: &str,
) -> Vec<Dot> {
    let dot = |(x, found): (f64, Bounded)| {
        let note = figure_tooltip(axis, x, found, unit);
        Dot::with_note(x, found.value, note).with_interval(found.low, found.high)
    };
    pool_by_level(points, |point| of(&point.point.figures)).into_iter().map(dot).collect()
}

/// Each latency that was measured, those that were promised first.
pub(crate) fn latency_charts(summary: &SweepSummary) -> Vec<Chart> {
    let is_promised = |latency: &Latency| !latency.slo_terms(summary.plan.slo.as_ref()).is_empty();
    let (mut first, rest): (Vec<_>, Vec<_>) = Latency::ALL.into_iter().partition(is_promised);
    first.extend(rest);
    let points = points_on_curve(&summary.points);
    let chart = |of: Latency| {
        let chart = latency_chart(&points, summary.plan.axis, of);
        let line = |term: &&SloTerm| {
            Rule::Height(term.limit.base, format!("SLO {}", escape_control(&term.to_string())))
        };
        let limits = of.slo_terms(summary.plan.slo.as_ref());
        let rules = limits.iter().map(line).chain(answer_rules(summary)).collect();
        Chart { says: latency_chart_text(&chart.series, of, summary), rules, ..chart }
    };
    first.into_iter().map(chart).filter(|chart| !chart.is_empty()).collect()
}

/// The curves of one latency, without what they are compared with.
pub(crate) fn latency_chart(points: &[&PointSummary], axis: Axis, latency: Latency) -> Chart {
    let series = |name: &str, tone, of: fn(PointSpread) -> Option<Bounded>| {
        let dots = level_dots(axis, points, |figures| of(latency.spread_of(figures)), "ms");
        ChartSeries::new(name, Shape::Points, tone, dots)
    };
    Chart::new(
        latency.chart_name(),
        format!("{} over {}", latency.title(), level_axis(axis, points).0),
    )
    .with_axes(load_axis(axis, points), ChartAxis::log("ms"))
    .with_series([
        series("p50", 0, |spread| spread.p50),
        series("p90", 1, |spread| spread.p90),
        series("p99", 2, |spread| spread.p99),
    ])
}

/// What a chart of latency shows, in words.
fn latency_chart_text(series: &[ChartSeries], latency: Latency, summary: &SweepSummary) -> String {
    let highest = series.iter().rev().find(|series| !series.dots.is_empty());
    let ends = highest.and_then(|series| Some((series, series.dots.first()?, series.dots.last()?)));
    let Some((series, first, last)) = ends else { return String::new() };
    let axis = summary.plan.axis;
    let at = |dot: &Dot| {
        format!(
            "{} ms at {} {}",
            cell_number(dot.y),
            level_value_text(axis, dot.x),
            axis_unit(axis)
        )
    };
    let upright = confirmed_load(summary).map_or(String::new(), |(_, text)| {
        let span = known_interval(summary);
        let around = span.map_or("", |_| ", and around it the range of the limit");
        format!(" Vertical line: {text}{around}.")
    });
    let change =
        format!("{} {} goes from {} to {}. ", series.name, latency.title(), at(first), at(last));
    // One point, or the same at both ends, is not a course.
    let change = if first.y == last.y { String::new() } else { change };
    format!("{change}Bars are 95 % intervals; runs at one load are combined.{upright}")
}

fn confirmed_load(summary: &SweepSummary) -> Option<(f64, String)> {
    let goodput = summary.goodput.as_ref()?;
    let level = goodput.level()?;
    Some((
        level,
        format!("goodput {} {}", level_value_text(goodput.axis, level), axis_unit(goodput.axis)),
    ))
}

/// Where the limit lies, where both ends are known.
fn known_interval(summary: &SweepSummary) -> Option<(f64, f64)> {
    let (low, high) = summary.goodput.as_ref().and_then(limit_interval)?;
    low.zip(high)
}

/// The answer, and where the limit lies.
fn answer_rules(summary: &SweepSummary) -> Vec<Rule> {
    let span = known_interval(summary)
        .map(|(low, high)| Rule::Span(low, high, "range of the limit".to_owned()));
    let place = confirmed_load(summary).map(|(level, text)| Rule::Place(level, text));
    span.into_iter().chain(place).collect()
}

/// Good requests and those answered; the share of good ones.
pub(crate) fn goodput_charts(summary: &SweepSummary) -> Vec<Chart> {
    let points = points_on_curve(&summary.points);
    let good = level_dots(summary.plan.axis, &points, |figures| figures.goodput_rps, "good req/s");
    if good.is_empty() {
        return Vec::new();
    }
    vec![rates_chart(summary, &points, good), attainment_chart(summary, &points)]
}

fn rates_chart(summary: &SweepSummary, points: &[&PointSummary], good: Vec<Dot>) -> Chart {
    let axis = summary.plan.axis;
    let answered = level_dots(
        axis,
        points,
        |figures| without_interval(figures.requests_per_s),
        "req/s answered",
    );
    let top = peak_goodput(summary);
    let says = top.as_ref().map_or(String::new(), |(_, text)| {
        format!("The peak is {}. ", text.trim_start_matches("peak "))
    });
    // At the height of its level, which may have several runs.
    let at_peak = top.and_then(|(at, text)| {
        let dot = good.iter().find(|dot| (dot.x - at).abs() <= 1e-9 * at.abs())?;
        let dots = vec![Dot::with_note(dot.x, dot.y, dot.note.clone())];
        Some(ChartSeries::new(text, Shape::Marks, 3, dots))
    });
    let answered = ChartSeries::new("answered", Shape::Points, 1, answered);
    let good = ChartSeries::new("good", Shape::Points, 2, good);
    Chart::new("goodput-over-load", "Requests per second: those answered, and the good ones")
        .with_caption(says + "Where the curves part, requests complete too late to be good.")
        .with_axes(load_axis(axis, points), "requests per second")
        .with_series([answered, good].into_iter().chain(at_peak))
        .with_rules(answer_rules(summary))
}

fn attainment_chart(summary: &SweepSummary, points: &[&PointSummary]) -> Chart {
    let axis = summary.plan.axis;
    let in_percent = |share: Bounded| Bounded {
        value: share.value * 100.0,
        low: share.low.map(|low| low * 100.0),
        high: share.high.map(|high| high * 100.0),
    };
    let shares = level_dots(axis, points, |figures| figures.attainment.map(in_percent), "% good");
    let fit = &summary.curve.attainment;
    let fit = fit.iter().map(|(level, share)| Dot::new(*level, share * 100.0)).collect();
    let least = shares.iter().min_by(|a, b| a.y.total_cmp(&b.y));
    let least = least.map_or(String::new(), |dot| {
        let at = level_value_text(axis, dot.x);
        format!("The lowest is {} at {at} {}. ", percent(dot.y / 100.0), axis_unit(axis))
    });
    let wanted = wanted_percent(summary)
        .map(|share| Rule::Height(share, format!("{} % must be good", trimmed_text(share))));
    Chart::new("attainment-over-load", "Share of good requests")
        .with_caption(
            least + "Bars are 95 % intervals; the line never rises with load (isotonic fit).",
        )
        .with_axes(load_axis(axis, points), ChartAxis::between("good, %"))
        .with_series([
            ChartSeries::new("fit", Shape::Line, 7, fit),
            ChartSeries::new("good requests", Shape::Marks, 2, shares),
        ])
        .with_rules(wanted.into_iter().chain(answer_rules(summary)))
}

/// The share of good requests that was asked for, or the strictest percentile, in percent.
fn wanted_percent(summary: &SweepSummary) -> Option<f64> {
    let terms = summary.plan.slo.iter().flat_map(|slo| &slo.terms);
    let percents = terms.filter_map(|term| match term.statistic {
        SloStatistic::Percentile(percent) => Some(percent),
        _ => None,
    });
    let asked = summary.plan.attainment.map(|share| share * 100.0);
    asked.or_else(|| percents.max_by(f64::total_cmp))
}
