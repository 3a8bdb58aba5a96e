//! The growing curve of a sweep.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Chart, Dataset, GraphType};

use super::ink::{Ink, faint_style, framed_block};
use crate::view::{LivePointView, LiveSweepView, StatusColor};
use crate::words::{amount_text, ms_text};

/// Latency over load, logarithmic upwards, with the limit and the points so far.
pub(super) fn draw_curve(ink: Ink, sweep: &LiveSweepView, frame: &mut Frame, area: Rect) {
    let shown = || sweep.points.iter().filter(|point| point.is_on_curve);
    let is_good = |point: &&LivePointView| point.standing == StatusColor::Good;
    let is_bad = |point: &&LivePointView| point.standing == StatusColor::Bad;
    let is_open = |point: &&LivePointView| point.standing == StatusColor::Open;
    let p99 = |point: &LivePointView| point_position(point, point.p99);
    let p50: Vec<_> = shown().filter_map(|point| point_position(point, point.p50)).collect();
    let good: Vec<_> = shown().filter(is_good).filter_map(p99).collect();
    let bad: Vec<_> = shown().filter(is_bad).filter_map(p99).collect();
    let open: Vec<_> = shown().filter(is_open).filter_map(p99).collect();
    let all = || p50.iter().chain(&good).chain(&bad).chain(&open);
    let limit = sweep.limit.as_ref().filter(|limit| limit.0 > 0.0 && limit.0.is_finite());
    let heights = || all().map(|at| at.1).chain(limit.map(|limit| limit.0.log10()));
    let y = padded_bounds(heights(), 0.15);
    let x = [0.0, all().map(|at| at.0).fold(1.0, f64::max) * 1.1];
    let line: Vec<(f64, f64)> =
        limit.iter().flat_map(|limit| x.map(|x| (x, limit.0.log10()))).collect();
    let words = limit.map_or(String::new(), |limit| format!(" ┄ {} ", limit.1));
    let legend = format!("{words} · p50  p99: o kept  x missed  ? open ");
    let sets = [
        (GraphType::Line, Marker::Custom('┄'), &line, ink.doubt_style()),
        (GraphType::Scatter, Marker::Custom('·'), &p50, Style::new()),
        (GraphType::Scatter, Marker::Custom('?'), &open, Style::new()),
        (GraphType::Scatter, Marker::Custom('o'), &good, ink.good_style()),
        (GraphType::Scatter, Marker::Custom('x'), &bad, ink.bad_style()),
    ];
    let sets = sets
        .into_iter()
        .map(|(kind, marker, data, style)| {
            Dataset::default().data(data).marker(marker).style(style).graph_type(kind)
        })
        .collect();
    let value = |log: f64| ms_text(Some(10f64.powf(log)));
    let middle = f64::midpoint(y[0], y[1]);
    let chart = Chart::new(sets)
        .block(
            framed_block(format!("{} in ms (logarithmic) over {}", sweep.latency, sweep.unit))
                .title_bottom(Line::styled(legend, faint_style())),
        )
        .x_axis(
            Axis::default()
                .bounds(x)
                .labels([x[0], x[1] / 2.0, x[1]].map(|value| amount_text(Some(value)))),
        )
        .y_axis(Axis::default().bounds(y).labels([y[0], middle, y[1]].map(value)))
        .legend_position(None);
    frame.render_widget(chart, area);
}

fn point_position(point: &LivePointView, value: Option<f64>) -> Option<(f64, f64)> {
    let value = value.filter(|value| value.is_finite() && *value > 0.0)?;
    point.level.is_finite().then_some((point.level, value.log10()))
}

/// Both ends, with a little room.
fn padded_bounds(values: impl Iterator<Item = f64>, room: f64) -> [f64; 2] {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low > high { [0.0, 3.0] } else { [low - room, high + room] }
}
