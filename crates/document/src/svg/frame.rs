//! What is around a drawing: the picture's own element, its title, and the legend.

use std::fmt::Write;

use super::{ChartSeries, Shape, TONES, shape};
use crate::markup::escape_text;

/// The picture in its own units; a page scales it to its column.
pub(super) const WIDTH: f64 = 600.0;
/// A line of the legend, and a character's average width.
const LINE: f64 = 18.0;
pub(super) const CHARACTER: f64 = 7.0;
/// Room for the title of a picture that stands alone.
const TITLE: f64 = 30.0;
const LEFT: f64 = 12.0;

/// The colors of a picture that stands alone: those of the page in light.
const STYLE: &str = include_str!("standalone.css");

/// What stands in a legend for one thing.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    /// What the legend calls it.
    pub name: &'a str,
    shape: Shape,
    tone: usize,
}

impl<'a> Key<'a> {
    pub(super) fn from_series(series: &'a ChartSeries) -> Self {
        Self { name: &series.name, shape: series.shape, tone: series.tone }
    }

    /// A part of a bar.
    pub(super) fn from_part(name: &'a str, tone: usize) -> Self {
        Self { name, shape: Shape::Bars, tone }
    }
}

/// The sign of one thing, 26 by 14, as it is drawn in the chart.
pub fn key_svg(key: &Key<'_>) -> String {
    let tone = key.tone % TONES;
    let line = match key.shape {
        Shape::Points | Shape::Rings | Shape::Line | Shape::Steps => {
            format!("<path class=\"t{tone} join\" d=\"M1 7H25\"/>")
        }
        Shape::Marks | Shape::Bars => String::new(),
    };
    line + &shape::mark_svg(key.shape, key.tone, 13.0, 7.0)
}

/// Texts of a picture: all of them may be foreign.
pub(super) struct ChartFrame<'a> {
    pub(super) name: &'a str,
    pub(super) title: &'a str,
    pub(super) says: &'a str,
    /// What the script of a page needs to know of the axes.
    pub(super) data: String,
}

impl ChartFrame<'_> {
    /// For a page, which has title, legend and colors around it.
    pub(super) fn inline_svg(&self, drawing: &str, height: f64) -> String {
        self.svg_element(drawing, height)
    }

    /// A file of its own.
    pub(super) fn standalone_svg(&self, keys: &[Key<'_>], drawing: &str, height: f64) -> String {
        let (legend, rows) = legend_svg(keys);
        let head = TITLE + LINE * rows as f64 + if rows > 0 { 6.0 } else { 0.0 };
        let title: String = self.title.chars().take(80).collect();
        let whole = format!(
            "<style>{STYLE}</style><rect class=\"paper\" width=\"100%\" height=\"100%\"/>\
             <text class=\"title\" x=\"{LEFT}\" y=\"20\">{}</text>\
             <g transform=\"translate({LEFT} {TITLE})\">{legend}</g>\
             <g transform=\"translate(0 {head})\">{drawing}</g>",
            escape_text(&title)
        );
        self.svg_element(&whole, height + head)
    }

    fn svg_element(&self, inside: &str, height: f64) -> String {
        let Self { name, title, says, data } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" \
             role=\"img\" aria-labelledby=\"{name}-t {name}-d\"{data}><title id=\"{name}-t\">{}</title>\
             <desc id=\"{name}-d\">{}</desc>{inside}</svg>",
            escape_text(title),
            escape_text(says)
        )
    }
}

/// Names in as many lines as they take.
fn legend_svg(keys: &[Key<'_>]) -> (String, usize) {
    let (mut markup, mut rows, mut x) = (String::new(), usize::from(!keys.is_empty()), 0.0);
    for one in keys {
        let name: String = one.name.chars().take(60).collect();
        let width = 32.0 + name.chars().count() as f64 * CHARACTER + 12.0;
        if x > 0.0 && x + width > WIDTH - 2.0 * LEFT {
            (x, rows) = (0.0, rows + 1);
        }
        let y = LINE * (rows as f64 - 1.0);
        let _ = write!(
            markup,
            "<g transform=\"translate({x:.1} {y})\">{}<text class=\"tick\" x=\"32\" y=\"11\">{}</text></g>",
            key_svg(one),
            escape_text(&name)
        );
        x += width;
    }
    (markup, rows)
}
