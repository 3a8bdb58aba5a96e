//! Charts as SVG: in a page, where the style sheet gives them their colors, or as files of their
//! own. Series differ by mark and dash as well as by color, and every chart says in words what it
//! shows.

mod draw;
pub mod forest;
mod frame;
mod shape;
mod stack;
#[cfg(test)]
mod tests;

pub use draw::{inline_chart, standalone_chart};
pub use frame::{Key, key_svg};
pub use stack::{Stack, inline_stack, standalone_stack};

/// Series are told apart by these, in the order of their use.
pub const TONES: usize = 8;

/// What stands along an axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChartAxis {
    /// What stands next to it.
    pub label: String,
    /// Whether it is logarithmic.
    pub is_log: bool,
    /// Whether it begins at zero whatever is on it; not of logarithmic ones.
    pub from_zero: bool,
}

impl ChartAxis {
    /// A linear one that begins at zero.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), is_log: false, from_zero: true }
    }

    /// A linear one from the least value to the most.
    pub fn between(label: impl Into<String>) -> Self {
        Self { label: label.into(), is_log: false, from_zero: false }
    }

    /// A logarithmic one.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), is_log: true, from_zero: false }
    }
}

impl<T: Into<String>> From<T> for ChartAxis {
    fn from(label: T) -> Self {
        Self::linear(label)
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Marks joined by a line; intervals as bars.
    Points,
    /// The same with marks that are not filled: a second figure of the same thing, in its tone.
    Rings,
    /// Marks alone; intervals as bars.
    Marks,
    /// A line without marks; intervals as a band.
    Line,
    /// Constant until the next.
    Steps,
    /// From zero up, as wide as the way to the next.
    Bars,
}

/// A point of a series, with its interval where that is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dot {
    /// Its place on the horizontal axis.
    pub x: f64,
    /// Its height.
    pub y: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// What it is, for a tooltip; empty says its place alone.
    pub note: String,
}

impl Dot {
    /// One without an interval.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, ..Self::default() }
    }

    /// One that says what it is.
    pub fn with_note(x: f64, y: f64, note: impl Into<String>) -> Self {
        Self { x, y, note: note.into(), ..Self::default() }
    }

    /// With an interval.
    #[must_use]
    pub fn with_interval(self, low: Option<f64>, high: Option<f64>) -> Self {
        Self { low, high, ..self }
    }
}

/// What belongs together.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartSeries {
    /// What the legend calls it.
    pub name: String,
    /// How it is drawn.
    pub shape: Shape,
    /// One of [`TONES`]: the same thing has the same tone in all charts of a page.
    pub tone: usize,
    /// Its points.
    pub dots: Vec<Dot>,
}

impl ChartSeries {
    /// A series of these points.
    pub fn new(name: impl Into<String>, shape: Shape, tone: usize, dots: Vec<Dot>) -> Self {
        Self { name: name.into(), shape, tone, dots }
    }
}

/// A value to be compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// A height, such as a limit.
    Height(f64, String),
    /// A place on the horizontal axis, such as the answer.
    Place(f64, String),
    /// From here to there along the horizontal axis, such as the warm-up.
    Span(f64, f64, String),
}

/// A chart. Its texts may be foreign: they are escaped when it is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Its id in a page and its name as a file: letters, digits and dashes.
    pub name: &'static str,
    /// What stands above it.
    pub title: String,
    /// What it shows, in a sentence or two, for who cannot see it.
    pub says: String,
    /// The horizontal axis.
    pub x: ChartAxis,
    /// The vertical axis.
    pub y: ChartAxis,
    /// What is drawn.
    pub series: Vec<ChartSeries>,
    /// What it is compared with.
    pub rules: Vec<Rule>,
}

impl Chart {
    /// One without anything to draw.
    pub fn new(name: &'static str, title: impl Into<String>) -> Self {
        let (title, says, x, y) =
            (title.into(), String::new(), ChartAxis::default(), ChartAxis::default());
        Self { name, title, says, x, y, series: Vec::new(), rules: Vec::new() }
    }

    /// With this caption.
    #[must_use]
    pub fn with_caption(self, says: impl Into<String>) -> Self {
        Self { says: says.into(), ..self }
    }

    /// Over these axes; those that are given by their label alone are linear and begin at zero.
    #[must_use]
    pub fn with_axes(self, x: impl Into<ChartAxis>, y: impl Into<ChartAxis>) -> Self {
        Self { x: x.into(), y: y.into(), ..self }
    }

    /// With these series.
    #[must_use]
    pub fn with_series(self, series: impl IntoIterator<Item = ChartSeries>) -> Self {
        Self { series: series.into_iter().collect(), ..self }
    }

    /// With these lines and bands.
    #[must_use]
    pub fn with_rules(self, rules: impl IntoIterator<Item = Rule>) -> Self {
        Self { rules: rules.into_iter().collect(), ..self }
    }

    /// Its series in the legend; none if there is one alone.
    pub fn legend_keys(&self) -> Vec<Key<'_>> {
        let drawn = self.series.iter().filter(|series| !series.dots.is_empty());
        let keys: Vec<_> = drawn.map(Key::from_series).collect();
        if keys.len() < 2 { Vec::new() } else { keys }
    }

    /// Whether nothing can be drawn: a logarithmic axis has no place for zero.
    pub fn is_empty(&self) -> bool {
        let fits =
            |axis: &ChartAxis, value: f64| value.is_finite() && (!axis.is_log || value > 0.0);
        let mut dots = self.series.iter().flat_map(|series| &series.dots);
        !dots.any(|dot| fits(&self.x, dot.x) && fits(&self.y, dot.y))
    }
}
