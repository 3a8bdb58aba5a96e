//! Series as shapes inside the axes.

use std::fmt::Write;

use super::{ChartSeries, Dot, Shape, TONES};
use crate::markup::push_escaped;
use crate::scale::Scale;

/// Where values lie.
pub(super) struct PlotArea {
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// Whether there is one series alone: nothing to tell it from.
    pub(super) is_alone: bool,
}

impl PlotArea {
    pub(super) fn x_of(&self, value: f64) -> Option<f64> {
        Some(self.left + self.x.position(value)? * (self.right - self.left))
    }

    pub(super) fn y_of(&self, value: f64) -> Option<f64> {
        Some(self.bottom - self.y.position(value)? * (self.bottom - self.top))
    }

    fn place_of(&self, dot: &Dot) -> Option<(f64, f64)> {
        Some((self.x_of(dot.x)?, self.y_of(dot.y)?))
    }
}

pub(super) fn draw_series(out: &mut String, series: &ChartSeries, plot: &PlotArea) {
    match series.shape {
        Shape::Points | Shape::Rings => {
            draw_line(out, series, plot, false);
            draw_marks(out, series, plot);
        }
        Shape::Marks => draw_marks(out, series, plot),
        Shape::Line => {
            draw_band(out, series, plot);
            draw_line(out, series, plot, false);
        }
        Shape::Steps => draw_line(out, series, plot, true),
        Shape::Bars => draw_interval_bars(out, series, plot),
    }
}

fn series_tone(series: &ChartSeries) -> usize {
    series.tone % TONES
}

/// From each point to the next that can be shown.
fn draw_line(out: &mut String, series: &ChartSeries, plot: &PlotArea, in_steps: bool) {
    let mut path = String::new();
    let mut is_down = false;
    for dot in &series.dots {
        let Some((x, y)) = plot.place_of(dot) else {
            is_down = false;
            continue;
        };
        let _ = match (is_down, in_steps) {
            (false, _) => write!(path, "M{x:.1} {y:.1}"),
            (true, true) => write!(path, "H{x:.1}V{y:.1}"),
            (true, false) => write!(path, "L{x:.1} {y:.1}"),
        };
        is_down = true;
    }
    if !path.is_empty() {
        let solid = if plot.is_alone { " solid" } else { "" };
        // The script reads values of a line off its path; points tell their own.
        let tells = matches!(series.shape, Shape::Points | Shape::Rings);
        let name = if tells { "" } else { &series.name };
        let _ = write!(out, "<path class=\"t{} join{}\" data-name=\"", series_tone(series), solid);
        push_escaped(out, name);
        let _ = write!(out, "\" d=\"{path}\"/>");
    }
}

/// The intervals, as an area.
fn draw_band(out: &mut String, series: &ChartSeries, plot: &PlotArea) {
    let ends = |dot: &Dot| Some((plot.x_of(dot.x)?, plot.y_of(dot.low?)?, plot.y_of(dot.high?)?));
    let known: Vec<(f64, f64, f64)> = series.dots.iter().filter_map(ends).collect();
    if known.len() < 2 {
        return;
    }
    let mut path = String::new();
    for (index, (x, _, high)) in known.iter().enumerate() {
        let _ = write!(path, "{}{x:.1} {high:.1}", if index == 0 { "M" } else { "L" });
    }
    for (x, low, _) in known.iter().rev() {
        let _ = write!(path, "L{x:.1} {low:.1}");
    }
    let _ = write!(out, "<path class=\"t{} band\" d=\"{path}Z\"/>", series_tone(series));
}

fn draw_marks(out: &mut String, series: &ChartSeries, plot: &PlotArea) {
    for dot in &series.dots {
        let Some((x, y)) = plot.place_of(dot) else { continue };
        out.push_str("<g class=\"dot\"><title>");
        let note =
            if dot.note.is_empty() { format!("{}, {}", dot.x, dot.y) } else { dot.note.clone() };
        push_escaped(out, &format!("{}: {note}", series.name));
        out.push_str("</title>");
        if let Some((low, high)) = dot.low.zip(dot.high) {
            // Beyond the axes there is nothing to see.
            let low = plot.y_of(low).unwrap_or(plot.bottom);
            let high = plot.y_of(high).unwrap_or(plot.top);
            let _ = write!(
                out,
                "<path class=\"t{} bar\" d=\"M{x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h8M{:.1} {high:.1}h8\"/>",
                series_tone(series),
                x - 4.0,
                x - 4.0
            );
        }
        out.push_str(&mark_svg(series.shape, series.tone, x, y));
        out.push_str("</g>");
    }
}

/// The mark of a series at a place.
pub(super) fn mark_svg(shape: Shape, tone: usize, x: f64, y: f64) -> String {
    let tone = tone % TONES;
    let class = if shape == Shape::Rings { "ring" } else { "mark" };
    let path = match (shape, tone % 4) {
        (Shape::Line | Shape::Steps, _) => return String::new(),
        (Shape::Bars, _) => format!("M{:.1} {:.1}h10v10h-10z", x - 5.0, y - 5.0),
        (_, 0) => {
            return format!(
                "<circle class=\"t{tone} {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>"
            );
        }
        (_, 1) => format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5),
        (_, 2) => format!("M{x:.1} {:.1}l4.5 8h-9z", y - 4.5),
        _ => format!("M{x:.1} {:.1}l5 5l-5 5l-5-5z", y - 5.0),
    };
    format!("<path class=\"t{tone} {class}\" d=\"{path}\"/>")
}

fn draw_interval_bars(out: &mut String, series: &ChartSeries, plot: &PlotArea) {
    let zero = plot.y_of(0.0).unwrap_or(plot.bottom);
    for (index, dot) in series.dots.iter().enumerate() {
        let Some((x, y)) = plot.place_of(dot).filter(|_| dot.y > 0.0) else { continue };
        let next = series.dots.get(index + 1).and_then(|next| plot.x_of(next.x));
        let width = next.unwrap_or(plot.right).min(plot.right) - x;
        let _ = write!(
            out,
            "<rect class=\"t{} mark\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>",
            series_tone(series),
            (width - 0.8).max(1.6),
            (zero - y).max(0.6)
        );
        push_escaped(out, &dot.note);
        out.push_str("</title></rect>");
    }
}
