//! Figures run by run, drawn.

use goodput_stats::Repeats;

use super::{ROWS, ends, signed, state};
use crate::number::cell;
use crate::svg::{Axis, Chart, Dot, Series, Shape};

/// Figures that are drawn run by run, and the names of their charts.
const DRAWN: [(&str, &str); 6] = [
    ("requests_per_s", "runs-requests"),
    ("output_tokens_per_s", "runs-tokens"),
    ("ttft_p50", "runs-ttft-p50"),
    ("ttft_p99", "runs-ttft-p99"),
    ("tpot_p99", "runs-tpot-p99"),
    ("goodput_rps", "runs-goodput"),
];

/// A chart for each figure that is drawn.
pub(super) fn charts(repeats: &Repeats) -> Vec<Chart> {
    let label = |name: &str| ROWS.iter().find(|(row, _, _)| *row == name).map_or("", |row| row.1);
    let chart = |(name, file): (&str, &'static str)| {
        let found = repeats.headlines.get(name)?;
        let dots: Vec<Dot> = repeats
            .runs
            .iter()
            .filter_map(|run| {
                let value = *run.figures.get(name)?;
                let note = format!("{} in run {}{}", cell(value), run.number, state(run));
                Some(Dot { note, ..Dot::new(f64::from(run.number), value) })
            })
            .collect();
        let (first, last) = (dots.first()?.x, dots.last()?.x);
        let (from, to) = if last > first { (first, last) } else { (first - 0.5, first + 0.5) };
        let mean = |x| Dot { low: found.low, high: found.high, ..Dot::new(x, found.mean) };
        let label = label(name);
        Some(Chart {
            name: file,
            title: format!("{label}, run by run"),
            says: format!(
                "Mean {}{}, from {} to {}.",
                signed(found.mean),
                ends(found, 1.0),
                signed(found.min),
                signed(found.max)
            ),
            x: Axis { from_zero: false, ..Axis::linear("run") },
            y: Axis::linear(label),
            series: vec![
                Series::new("mean over runs, 95 %", Shape::Line, 1, vec![mean(from), mean(to)]),
                Series::new("run", Shape::Marks, 0, dots),
            ],
            rules: Vec::new(),
        })
    };
    DRAWN.into_iter().filter_map(chart).collect()
}
