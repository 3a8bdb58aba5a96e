//! A chart in characters: series by their marks, joined by braille dots, on linear or logarithmic
//! axes with round ticks.

#[cfg(test)]
mod tests;

use goodput_model::escape_control;

use crate::clip::{align_left, align_right, clip};
use crate::scale::Scale;
use crate::svg::{Chart, ChartSeries, Dot, Rule, Shape, TONES};

/// Columns of the whole, of the labels at its left, and of the plot.
const WIDTH: usize = 79;
const GUTTER: usize = 8;
const COLUMNS: usize = WIDTH - GUTTER - 1;
/// Braille dots of a cell, across and down.
const ACROSS: usize = 2;
const DOWN: usize = 4;

/// Marks by which series are told apart without color.
const MARKS: [char; TONES] = ['x', 'o', '*', '+', '#', '@', '%', '&'];

/// How a terminal shows a chart: it has no room for names of axes, so the title has them.
#[derive(Debug, Clone, PartialEq)]
pub struct TextPlot {
    /// Says what is shown over what.
    pub title: String,
    /// Rows of the plot.
    pub rows: usize,
    /// Of its rules a terminal shows one height and one place.
    pub chart: Chart,
}

impl TextPlot {
    fn highest_value(&self) -> Option<(f64, &str)> {
        self.chart.rules.iter().find_map(|rule| match rule {
            Rule::Height(at, name) => Some((*at, name.as_str())),
            _ => None,
        })
    }

    fn marked_place(&self) -> Option<(f64, &str)> {
        self.chart.rules.iter().find_map(|rule| match rule {
            Rule::Place(at, name) => Some((*at, name.as_str())),
            _ => None,
        })
    }
}

fn series_mark(series: &ChartSeries) -> char {
    // Rings share the tone of the points that they belong to, and a terminal has no other mark for it.
    let shift = if series.shape == Shape::Rings { TONES / 2 } else { 0 };
    MARKS[(series.tone + shift) % TONES]
}

/// A cell of the plot; what stands higher here covers the rest.
#[derive(Debug, Clone, Copy, Default)]
struct Character {
    mark: Option<char>,
    bar: bool,
    braille: u8,
    line: bool,
    place: bool,
}

impl Character {
    fn glyph(self) -> char {
        match self {
            Self { mark: Some(mark), .. } => mark,
            Self { bar: true, .. } => '│',
            Self { braille: 1.., .. } => {
                char::from_u32(0x2800 + u32::from(self.braille)).unwrap_or('.')
            }
            Self { line: true, place: true, .. } => '┼',
            Self { line: true, .. } => '╌',
            Self { place: true, .. } => '┊',
            _ => ' ',
        }
    }
}

/// The chart in lines of at most 79 columns: title, plot, ticks, legend.
pub fn draw_text_plot(plot: &TextPlot) -> String {
    let chart = &plot.chart;
    let mut out = format!("{}\n", clip(&escape_control(&plot.title), WIDTH));
    let dots = || chart.series.iter().flat_map(|series| &series.dots);
    let whole = |dot: &&Dot| dot.x.is_finite() && dot.y.is_finite();
    let x = dots().filter(whole).map(|dot| dot.x);
    let y = dots().filter(whole).flat_map(|dot| [Some(dot.y), dot.low, dot.high]).flatten();
    let x = Scale::from_values(x.chain(plot.marked_place().map(|place| place.0)), chart.x.is_log);
    let y = Scale::from_values(y.chain(plot.highest_value().map(|line| line.0)), chart.y.is_log);
    let y = y.map(Scale::with_room);
    let (Some(x), Some(y), Some(_)) = (x, y, dots().find(whole)) else {
        out.push_str("        nothing to draw\n");
        return out;
    };
    let mut canvas = CharGrid::new(x, y, plot.rows);
    canvas.draw_series(plot);
    canvas.write(&mut out);
    push_legend(&mut out, plot);
    out
}

fn push_legend(out: &mut String, plot: &TextPlot) {
    let drawn = plot.chart.series.iter().filter(|series| !series.dots.is_empty());
    let series =
        drawn.map(|series| format!("{} {}", series_mark(series), escape_control(&series.name)));
    let line = plot.highest_value().map(|(_, name)| format!("╌ {}", escape_control(name)));
    let place = plot.marked_place().map(|(_, name)| format!("┊ {}", escape_control(name)));
    let parts = series.chain(line).chain(place);
    let flush = |out: &mut String, line: &str| {
        if !line.is_empty() {
            out.push_str(&" ".repeat(GUTTER + 1));
            out.push_str(line);
            out.push('\n');
        }
    };
    let mut line = String::new();
    for part in parts {
        let longer = if line.is_empty() { part.clone() } else { format!("{line}   {part}") };
        if unicode_width::UnicodeWidthStr::width(longer.as_str()) <= COLUMNS {
            line = longer;
        } else {
            flush(out, &line);
            line = clip(&part, COLUMNS);
        }
    }
    flush(out, &line);
}

struct CharGrid {
    x: Scale,
    y: Scale,
    cells: Vec<[Character; COLUMNS]>,
}

impl CharGrid {
    fn new(x: Scale, y: Scale, rows: usize) -> Self {
        Self { x, y, cells: vec![[Character::default(); COLUMNS]; rows.clamp(2, 40)] }
    }

    fn draw_series(&mut self, plot: &TextPlot) {
        if let Some(row) = plot.highest_value().and_then(|line| self.cell_row(line.0)) {
            self.cells[row].iter_mut().for_each(|cell| cell.line = true);
        }
        if let Some(column) = plot.marked_place().and_then(|place| self.cell_column(place.0)) {
            self.cells.iter_mut().for_each(|row| row[column].place = true);
        }
        for series in &plot.chart.series {
            self.draw_lines(series);
        }
        for series in &plot.chart.series {
            for dot in &series.dots {
                self.draw_interval(dot);
                if let (Some(row), Some(column)) = (self.cell_row(dot.y), self.cell_column(dot.x)) {
                    self.cells[row][column].mark = Some(series_mark(series));
                }
            }
        }
    }

    /// Dots from the left edge and from the top.
    fn dot_column(&self, x: f64) -> Option<usize> {
        Some((self.x.position(x)? * (COLUMNS * ACROSS - 1) as f64).round() as usize)
    }

    fn dot_row(&self, y: f64) -> Option<usize> {
        let last = self.cells.len() * DOWN - 1;
        Some(last - ((self.y.position(y)? * last as f64).round() as usize).min(last))
    }

    fn cell_column(&self, x: f64) -> Option<usize> {
        self.dot_column(x).map(|across| (across / ACROSS).min(COLUMNS - 1))
    }

    fn cell_row(&self, y: f64) -> Option<usize> {
        self.dot_row(y).map(|down| down / DOWN)
    }

    /// From each point to the next, by braille dots.
    fn draw_lines(&mut self, series: &ChartSeries) {
        let mut places: Vec<(usize, usize)> = series
            .dots
            .iter()
            .filter_map(|dot| Some((self.dot_column(dot.x)?, self.dot_row(dot.y)?)))
            .collect();
        places.sort_unstable();
        for pair in places.windows(2) {
            let &[from, to] = pair else { continue };
            let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
            for step in 0..=steps {
                let share = step as f64 / steps as f64;
                let between = |from: usize, to: usize| {
                    (from as f64 + share * (to as f64 - from as f64)).round() as usize
                };
                self.set_dot(between(from.0, to.0), between(from.1, to.1));
            }
        }
    }

    fn set_dot(&mut self, across: usize, down: usize) {
        // Bits of a braille cell: three rows of two, then the fourth row.
        const BITS: [[u8; ACROSS]; DOWN] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        let cell = self.cells.get_mut(down / DOWN).and_then(|row| row.get_mut(across / ACROSS));
        if let Some(cell) = cell {
            cell.braille |= BITS[down % DOWN][across % ACROSS];
        }
    }

    /// The interval of a point, where it is longer than a row.
    fn draw_interval(&mut self, dot: &Dot) {
        let end = |value: Option<f64>| self.cell_row(value.unwrap_or(dot.y));
        let (Some(top), Some(bottom), Some(column)) =
            (end(dot.high), end(dot.low), self.cell_column(dot.x))
        else {
            return;
        };
        if bottom > top {
            for row in self.cells.iter_mut().take(bottom + 1).skip(top) {
                row[column].bar = true;
            }
        }
    }

    fn write(&self, out: &mut String) {
        let mut labels = vec![String::new(); self.cells.len()];
        for (value, text) in self.y.ticks(self.cells.len().div_ceil(3)) {
            if let Some(label) = self.cell_row(value).and_then(|row| labels.get_mut(row))
                && label.is_empty()
            {
                *label = text;
            }
        }
        for (row, label) in self.cells.iter().zip(&labels) {
            let axis = if label.is_empty() { '│' } else { '┤' };
            let cells: String = row.iter().map(|cell| cell.glyph()).collect();
            let line = format!("{}{axis}{cells}", align_right(label, GUTTER));
            out.push_str(line.trim_end());
            out.push('\n');
        }
        let (mut axis, mut ticks) = (vec!['─'; COLUMNS], String::new());
        for (value, text) in self.x.ticks(8) {
            let Some(column) = self.cell_column(value) else { continue };
            let start = (GUTTER + 1 + column).saturating_sub(text.len() / 2);
            let start = start.min(WIDTH.saturating_sub(text.len()));
            if ticks.is_empty() || start > ticks.len() {
                ticks = align_left(&ticks, start) + &text;
                axis[column] = '┬';
            }
        }
        let axis: String = axis.into_iter().collect();
        out.extend([align_right("└", GUTTER + 1), axis, "\n".to_owned(), ticks, "\n".to_owned()]);
    }
}
