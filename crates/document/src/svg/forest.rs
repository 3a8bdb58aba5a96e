//! The forest plot: a row for each figure with its change, the interval around it, and the band of
//! changes that do not matter.

use std::fmt::Write;
use std::ops::RangeInclusive;

use crate::clip::clip;
use crate::markup::escape_text;
use crate::scale::Scale;

/// The picture in its own units.
const WIDTH: f64 = 860.0;
/// Where the plot begins and ends, and where the words next to it stand.
const LEFT: f64 = 190.0;
const RIGHT: f64 = 500.0;
const CHANGE: f64 = 520.0;
const WORD: f64 = 732.0;
/// Height of a row, and of what stands above and below all of them.
const ROW: f64 = 28.0;
const HEAD: f64 = 26.0;
const FOOT: f64 = 44.0;
/// Columns of the texts at the left and the right.
const NAME: usize = 27;
const CHANGE_COLUMNS: usize = 30;
/// An interval longer than this many times the usual one is cut at the edge.
const LONG: f64 = 8.0;

const STYLE: &str = concat!(include_str!("standalone.css"), include_str!("forest.css"));

/// What can be said of a row: told by mark, symbol and word, and by color only then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForestMark {
    /// The interval lies on the good side.
    Better,
    /// The interval lies on the bad side.
    Worse,
    /// The interval lies within the margin.
    Same,
    /// The interval allows several answers.
    Open,
    /// It was not tested.
    None,
}

impl ForestMark {
    fn class(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Open => "open",
            Self::None => "unsaid",
        }
    }

    /// Before the word.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Better => "✓",
            Self::Worse => "✗",
            Self::Same => "=",
            Self::Open => "?",
            Self::None => "–",
        }
    }

    /// The point itself.
    fn to_svg(self, x: f64, y: f64) -> String {
        let class = self.class();
        match self {
            Self::Better => circle_svg(class, x, y),
            Self::Same => circle_svg("hollow same", x, y),
            Self::Worse => square_svg(class, x, y),
            Self::Open | Self::None => {
                let path = match self {
                    Self::Open => format!("M{x:.1} {:.1}l6 6l-6 6l-6-6z", y - 6.0),
                    _ => format!("M{:.1} {:.1}l8 8m0-8l-8 8", x - 4.0, y - 4.0),
                };
                format!("<path class=\"point hollow {class}\" d=\"{path}\"/>")
            }
        }
    }
}

fn circle_svg(class: &str, x: f64, y: f64) -> String {
    format!("<circle class=\"point {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"/>")
}

fn square_svg(class: &str, x: f64, y: f64) -> String {
    let (x, y) = (x - 5.0, y - 5.0);
    format!("<rect class=\"point {class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"10\" height=\"10\"/>")
}

/// One figure. Its texts may be foreign.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestRow {
    /// What was measured.
    pub name: String,
    /// The change in percent (points of a share), where both sides have the figure.
    pub change: Option<f64>,
    /// Its interval, where it is known.
    pub ends: Option<(f64, f64)>,
    /// Changes between these do not matter.
    pub margin: (f64, f64),
    /// The change and its interval as text.
    pub text: String,
    /// Decides the shape and color of the point.
    pub mark: ForestMark,
    /// What is said of it.
    pub word: String,
    /// The whole row in words.
    pub says: String,
}

/// Rows that belong together: one candidate at one level.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestGroup {
    /// Above the rows.
    pub title: String,
    /// From top to bottom.
    pub rows: Vec<ForestRow>,
}

/// The plot. Its texts may be foreign: they are escaped when it is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    /// Its id in a page and its name as a file.
    pub name: &'static str,
    /// Of the picture.
    pub title: String,
    /// From top to bottom.
    pub groups: Vec<ForestGroup>,
}

impl Forest {
    /// Whether it has no rows to draw.
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(|group| group.rows.is_empty())
    }

    /// Every row in words, for who cannot see it.
    pub fn rows_in_words(&self) -> String {
        let group = |group: &ForestGroup| {
            let rows: Vec<&str> = group.rows.iter().map(|row| row.says.as_str()).collect();
            format!("{}: {}.", group.title, rows.join("; "))
        };
        self.groups.iter().map(group).collect::<Vec<_>>().join(" ")
    }

    /// The picture for a page, which has the title next to it and the colors in its style sheet.
    pub fn inline_svg(&self) -> String {
        self.picture(0.0, "")
    }

    /// The picture as a file of its own.
    pub fn standalone_svg(&self) -> String {
        let before = format!(
            "<style>{STYLE}</style><rect class=\"paper\" width=\"100%\" height=\"100%\"/>\
             <text class=\"title\" x=\"8\" y=\"22\">{}</text>",
            escape_text(&self.title)
        );
        self.picture(30.0, &before)
    }

    fn picture(&self, head: f64, before: &str) -> String {
        let lines = self.groups.iter().map(|group| group.rows.len() + 1).sum::<usize>();
        let (top, bottom) = (head + HEAD, head + HEAD + ROW * lines as f64);
        let (height, name) = (bottom + FOOT, self.name);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart forest\" \
             viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-labelledby=\"{name}-t {name}-d\"><title id=\"{name}-t\">{}</title>\
             <desc id=\"{name}-d\">{}</desc>{before}",
            escape_text(&self.title),
            escape_text(&self.rows_in_words())
        );
        if let Some(plot) = self.plot_area(top, bottom) {
            self.draw(&mut out, &plot);
        }
        out.push_str("</svg>");
        out
    }

    /// Room for all intervals but the few that are much longer than the others.
    fn plot_area(&self, top: f64, bottom: f64) -> Option<ForestArea> {
        let rows = || self.groups.iter().flat_map(|group| &group.rows);
        let reach = |row: &ForestRow| {
            let (low, high) = row.ends.or(row.change.map(|change| (change, change)))?;
            let reach = low.abs().max(high.abs());
            reach.is_finite().then_some(reach)
        };
        let margins = rows().flat_map(|row| [row.margin.0, row.margin.1]);
        let margin =
            margins.clone().filter(|end| end.is_finite()).fold(0.0, |a: f64, b| a.max(b.abs()));
        let mut usual: Vec<f64> = rows().filter_map(reach).collect();
        usual.sort_by(f64::total_cmp);
        let middle = usual.get(usual.len() / 2).copied().unwrap_or(0.0);
        let most = (LONG * middle).max(2.0 * margin).max(0.1);
        let ends = rows().filter_map(|row| row.ends.or(row.change.map(|at| (at, at))));
        let values = ends.flat_map(|(low, high)| [low, high]).chain(margins);
        let cut = values.filter(|value| value.is_finite()).map(|value| value.clamp(-most, most));
        // A little room, so that no end lies on the frame.
        let (low, high) =
            cut.fold((0.0, 0.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
        let room = ((high - low) * 0.04).max(0.1);
        let x = Scale::from_values([low - room, high + room].into_iter(), false)?;
        Some(ForestArea { x, low: low - room, high: high + room, top, bottom })
    }

    fn draw(&self, out: &mut String, plot: &ForestArea) {
        plot.draw_axis(out);
        let mut y = plot.top;
        for group in &self.groups {
            let _ = write!(
                out,
                "<text class=\"group\" x=\"8\" y=\"{:.1}\">{}</text>",
                y + 19.0,
                escape_text(&clip(&group.title, 100))
            );
            y += ROW;
            for row in &group.rows {
                plot.draw_row(out, row, y + ROW / 2.0);
                y += ROW;
            }
        }
    }
}

/// Where changes lie.
struct ForestArea {
    x: Scale,
    low: f64,
    high: f64,
    top: f64,
    bottom: f64,
}

impl ForestArea {
    /// The place of a change, held inside the frame.
    fn x_of(&self, value: f64) -> Option<f64> {
        let share = self.x.position(value.clamp(self.low, self.high))?;
        Some(LEFT + share * (RIGHT - LEFT))
    }

    fn draw_axis(&self, out: &mut String) {
        let Self { top, bottom, .. } = *self;
        for (value, text) in self.x.ticks(7) {
            let Some(x) = self.x_of(value) else { continue };
            let plus = if value > 0.0 { "+" } else { "" };
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{bottom}\"/>\
                 <text class=\"tick middle\" x=\"{x:.1}\" y=\"{:.1}\">{plus}{text}</text>",
                bottom + 16.0
            );
        }
        if let Some(zero) = self.x_of(0.0) {
            let _ = write!(
                out,
                "<line class=\"zero\" x1=\"{zero:.1}\" x2=\"{zero:.1}\" y1=\"{}\" y2=\"{bottom}\"/>",
                top - 6.0
            );
        }
        let _ = write!(
            out,
            "<text class=\"label\" x=\"8\" y=\"{0:.1}\">figure</text>\
             <text class=\"label middle\" x=\"{1}\" y=\"{0:.1}\">no change: the line; margin: the band</text>\
             <text class=\"label\" x=\"{CHANGE}\" y=\"{0:.1}\">change (interval)</text>\
             <text class=\"label\" x=\"{WORD}\" y=\"{0:.1}\">verdict</text>\
             <text class=\"label middle\" x=\"{1}\" y=\"{2:.1}\">change in % (points of a share)</text>",
            top - 10.0,
            f64::midpoint(LEFT, RIGHT),
            bottom + 36.0
        );
    }

    fn draw_row(&self, out: &mut String, row: &ForestRow, y: f64) {
        let class = row.mark.class();
        let _ = write!(
            out,
            "<g class=\"row\" tabindex=\"0\"><title>{}</title>",
            escape_text(&row.says)
        );
        let _ = write!(
            out,
            "<rect class=\"lane\" x=\"2\" y=\"{:.1}\" width=\"{}\" height=\"{}\"/>",
            y - ROW / 2.0 + 1.0,
            WIDTH - 4.0,
            ROW - 2.0
        );
        let band = self.x_of(row.margin.0).zip(self.x_of(row.margin.1));
        if let Some((from, to)) = band {
            let _ = write!(
                out,
                "<rect class=\"margin\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{}\"/>",
                y - ROW / 2.0 + 3.0,
                (to - from).max(0.0),
                ROW - 6.0
            );
        }
        if let Some((low, high)) = row.ends {
            self.draw_interval(out, low..=high, class, y);
        }
        if let Some(x) = row.change.filter(|change| change.is_finite()).and_then(|at| self.x_of(at))
        {
            out.push_str(&row.mark.to_svg(x, y));
        }
        let _ = write!(
            out,
            "<text class=\"name\" x=\"8\" y=\"{0:.1}\">{1}</text>\
             <text class=\"name\" x=\"{CHANGE}\" y=\"{0:.1}\">{2}</text>\
             <text class=\"word {class}\" x=\"{WORD}\" y=\"{0:.1}\">{3} {4}</text></g>",
            y + 4.5,
            escape_text(&clip(&row.name, NAME)),
            escape_text(&clip(&row.text, CHANGE_COLUMNS)),
            row.mark.symbol(),
            escape_text(&row.word)
        );
    }

    /// The line of an interval, with a foot at each end, or an arrow where it goes on beyond the frame.
    fn draw_interval(&self, out: &mut String, ends: RangeInclusive<f64>, class: &str, y: f64) {
        let (low, high) = ends.into_inner();
        let Some((from, to)) = self.x_of(low).zip(self.x_of(high)) else { return };
        let end = |at: f64, is_cut: bool, way: f64| {
            if is_cut {
                let (x, y, way) = (at - 6.0 * way, y - 5.0, 6.0 * way);
                format!("M{x:.1} {y:.1}l{way:.1} 5l{:.1} 5", -way)
            } else {
                format!("M{at:.1} {:.1}v10", y - 5.0)
            }
        };
        let _ = write!(
            out,
            "<path class=\"interval {class}\" d=\"M{from:.1} {y:.1}H{to:.1}{}{}\"/>",
            end(from, low < self.low, -1.0),
            end(to, high > self.high, 1.0)
        );
    }
}
