//! From a chart to its picture: axes, rules, series.

use std::fmt::Write;

use super::frame::{CHARACTER, ChartFrame, WIDTH};
use super::shape::{self, PlotArea};
use super::{Chart, ChartAxis, Rule, Shape};
use crate::markup::escape_text;
use crate::scale::Scale;

const HEIGHT: f64 = 290.0;
const RIGHT: f64 = 16.0;
/// Above the axes: the name of the vertical one.
const TOP: f64 = 28.0;
/// Below them: ticks and name of the horizontal one.
const BOTTOM: f64 = 48.0;
/// A character of a tick, as wide as it is on a narrow page.
const WIDE: f64 = 9.6;
/// A line of names above the axes.
const ROW: f64 = 17.0;

/// The picture for a page, which has the title next to it and the colors in its style sheet.
pub fn inline_chart(chart: &Chart) -> String {
    let (drawing, frame) = draw_chart(chart);
    frame.inline_svg(&drawing, chart_height(chart))
}

/// The picture as a file of its own.
pub fn standalone_chart(chart: &Chart) -> String {
    let (drawing, frame) = draw_chart(chart);
    frame.standalone_svg(&chart.legend_keys(), &drawing, chart_height(chart))
}

/// Places have their names above the axes, one below the other.
fn place_count(chart: &Chart) -> usize {
    chart.rules.iter().filter(|rule| matches!(rule, Rule::Place(..))).count()
}

fn chart_height(chart: &Chart) -> f64 {
    HEIGHT + place_count(chart) as f64 * ROW
}

fn draw_chart(chart: &Chart) -> (String, ChartFrame<'_>) {
    let mut frame = ChartFrame {
        name: chart.name,
        title: &chart.title,
        says: &chart.says,
        data: String::new(),
    };
    let scales = axis_scale(chart, true).zip(axis_scale(chart, false));
    let mut out = String::new();
    let Some((x, y)) = scales.filter(|_| !chart.is_empty()) else {
        let _ = write!(
            out,
            "<text class=\"none\" x=\"{}\" y=\"{}\">nothing to draw</text>",
            WIDTH / 2.0,
            HEIGHT / 2.0
        );
        return (out, frame);
    };
    let digits = y.ticks(5).iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
    let left = 12.0 + digits as f64 * WIDE;
    let (right, bottom) = (WIDTH - RIGHT, chart_height(chart) - BOTTOM);
    let top = TOP + place_count(chart) as f64 * ROW;
    let is_alone = chart.legend_keys().is_empty();
    let plot = PlotArea { x, y, left, right, top, bottom, is_alone };
    frame.data = axes_data(chart, &plot);
    draw_axes(&mut out, chart, &plot);
    draw_spans(&mut out, chart, &plot);
    for series in &chart.series {
        shape::draw_series(&mut out, series, &plot);
    }
    draw_rules(&mut out, chart, &plot);
    (out, frame)
}

/// The axes for the script, which says what is under the pointer.
fn axes_data(chart: &Chart, plot: &PlotArea) -> String {
    let ends = |scale: &Scale| {
        let (low, high, is_log) = scale.ends();
        format!("{low:e} {high:e} {}", u8::from(is_log))
    };
    let PlotArea { left, right, top, bottom, .. } = plot;
    format!(
        " data-plot=\"{left:.1} {right:.1} {top:.1} {bottom:.1}\" data-x=\"{}\" data-y=\"{}\" \
         data-xname=\"{}\" data-yname=\"{}\"",
        ends(&plot.x),
        ends(&plot.y),
        escape_text(&chart.x.label),
        escape_text(&chart.y.label)
    )
}

/// Room along one axis for everything that is drawn.
fn axis_scale(chart: &Chart, horizontal: bool) -> Option<Scale> {
    let axis = if horizontal { &chart.x } else { &chart.y };
    let dots = chart.series.iter().flat_map(|series| series.dots.iter());
    let is_shown = |dot: &&super::Dot| dot.x.is_finite() && dot.y.is_finite();
    let of_dots = dots.filter(is_shown).flat_map(|dot| {
        if horizontal { [Some(dot.x), None, None] } else { [Some(dot.y), dot.low, dot.high] }
    });
    let of_rules = chart.rules.iter().flat_map(|rule| match (rule, horizontal) {
        (Rule::Height(value, _), false) | (Rule::Place(value, _), true) => {
            [Some(*value), None, None]
        }
        (Rule::Span(from, to, _), true) => [Some(*from), Some(*to), None],
        _ => [None; 3],
    });
    let has_bars = chart.series.iter().any(|series| series.shape == Shape::Bars);
    let zero = (!axis.is_log && (axis.from_zero || (has_bars && !horizontal))).then_some(0.0);
    let scale = Scale::from_values(of_dots.chain(of_rules).flatten().chain(zero), axis.is_log)?;
    Some(if horizontal { scale } else { scale.with_room() })
}

fn draw_axes(out: &mut String, chart: &Chart, plot: &PlotArea) {
    let PlotArea { left, right, bottom, .. } = *plot;
    // Bars are counts, and whole.
    let has_bars = chart.series.iter().any(|series| series.shape == Shape::Bars);
    for (value, text) in plot.y.ticks(5) {
        let Some(y) = plot.y_of(value).filter(|_| !has_bars || value.fract() == 0.0) else {
            continue;
        };
        let text = if has_bars { text.split('.').next().unwrap_or_default() } else { &text };
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>\
             <text class=\"tick end\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>",
            left - 7.0,
            y + 4.5
        );
    }
    draw_x_ticks(out, plot, bottom);
    let _ = write!(
        out,
        "<path class=\"axis\" d=\"M{left:.1} {bottom:.1}H{right:.1}\"/>\
         <text class=\"label end\" x=\"{right:.1}\" y=\"{:.1}\">{}</text>\
         <text class=\"label\" x=\"4\" y=\"{:.1}\">{}</text>",
        bottom + 42.0,
        axis_label(&chart.x),
        TOP - 12.0,
        axis_label(&chart.y)
    );
}

/// Ticks below a drawing. Every other one is left out where the page is narrow.
pub(super) fn draw_x_ticks(out: &mut String, plot: &PlotArea, bottom: f64) {
    let mut free = 0.0;
    let mut is_odd = false;
    for (value, text) in plot.x.ticks(9) {
        let Some(x) = plot.x_of(value) else { continue };
        let half = text.chars().count() as f64 * CHARACTER / 2.0;
        if x - half < free {
            continue;
        }
        free = x + half + 8.0;
        // At the end, the whole of it does not fit.
        let anchor = if x + half > WIDTH - 2.0 { "end" } else { "middle" };
        let odd = if is_odd { " odd" } else { "" };
        is_odd = !is_odd;
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {bottom:.1}v5\"/>\
             <text class=\"tick {anchor}{odd}\" x=\"{x:.1}\" y=\"{:.1}\">{text}</text>",
            bottom + 20.0
        );
    }
}

fn axis_label(axis: &ChartAxis) -> String {
    escape_text(&axis.label) + if axis.is_log { " (log)" } else { "" }
}

/// Parts of the horizontal axis, below everything else.
fn draw_spans(out: &mut String, chart: &Chart, plot: &PlotArea) {
    let PlotArea { top, bottom, .. } = *plot;
    for rule in &chart.rules {
        let Rule::Span(from, to, name) = rule else { continue };
        let Some((from, to)) = plot.x_of(*from).zip(plot.x_of(*to)) else { continue };
        let width = (to - from).max(0.0);
        let _ = write!(
            out,
            "<rect class=\"span\" x=\"{from:.1}\" y=\"{top}\" width=\"{width:.1}\" \
             height=\"{:.1}\"><title>{}</title></rect>",
            bottom - top,
            escape_text(name)
        );
    }
}

/// Limits and places. Names of places stand below each other.
fn draw_rules(out: &mut String, chart: &Chart, plot: &PlotArea) {
    let PlotArea { left, right, top, bottom, .. } = *plot;
    let mut row = 0.0;
    for rule in &chart.rules {
        match rule {
            Rule::Height(value, name) => {
                let Some(y) = plot.y_of(*value) else { continue };
                // Above the line, or below it if it does not fit.
                let text = if y - top < 16.0 { y + 15.0 } else { y - 6.0 };
                let _ = write!(
                    out,
                    "<path class=\"limit\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>\
                     <text class=\"rule end halo\" x=\"{:.1}\" y=\"{text:.1}\">{}</text>",
                    right - 4.0,
                    escape_text(name)
                );
            }
            Rule::Place(value, name) => {
                let Some(x) = plot.x_of(*value) else { continue };
                let is_right = x > f64::midpoint(left, right);
                let (anchor, at) = if is_right { ("end", x - 6.0) } else { ("start", x + 6.0) };
                let _ = write!(
                    out,
                    "<path class=\"place\" d=\"M{x:.1} {:.1}V{bottom:.1}\"/>\
                     <text class=\"place {anchor} halo\" x=\"{at:.1}\" y=\"{:.1}\">{}</text>",
                    TOP - 4.0 + row * ROW,
                    TOP + 8.0 + row * ROW,
                    escape_text(name)
                );
                row += 1.0;
            }
            Rule::Span(from, to, name) => {
                let Some((from, to)) = plot.x_of(*from).zip(plot.x_of(*to)) else { continue };
                if to - from > name.chars().count() as f64 * CHARACTER + 8.0 {
                    let _ = write!(
                        out,
                        "<text class=\"note halo\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                        from + 5.0,
                        top + 14.0,
                        escape_text(name)
                    );
                }
            }
        }
    }
}
