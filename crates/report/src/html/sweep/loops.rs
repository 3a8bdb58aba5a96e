//! The same number under way, made by open and by closed loops.

use goodput_campaign::sweep::SweepSummary;

use super::super::markup::Html;
use super::super::pieces::{Cell, figure, table};
use crate::number::cell;
use crate::svg::{Axis, Chart, Dot, Series, Shape};
use crate::sweep::{Pair, loops, pairs};

pub(super) fn charts(summary: &SweepSummary) -> Vec<Chart> {
    let pairs = pairs(summary);
    let Some(says) = loops(&pairs) else { return Vec::new() };
    let series = |name: &str, tone, of: fn(&Pair) -> (f64, f64)| {
        let dot = |pair: &Pair| {
            let (x, y) = of(pair);
            Dot { note: format!("{} under way, {} ms", cell(x), cell(y)), ..Dot::new(x, y) }
        };
        let dots = pairs.iter().map(dot).collect();
        Series { name: name.to_owned(), shape: Shape::Points, tone, dots }
    };
    vec![Chart {
        name: "open-and-closed",
        title: "p99 TTFT over requests under way".to_owned(),
        says: says + ".",
        x: Axis::linear("requests under way"),
        y: Axis::log("ms"),
        series: vec![
            series("open loop", 0, |pair| pair.open),
            series("closed loop", 1, |pair| pair.closed),
        ],
        rules: Vec::new(),
    }]
}

pub(super) fn fill(html: &mut Html, summary: &SweepSummary) {
    let charts = charts(summary);
    if charts.is_empty() {
        return;
    }
    for chart in &charts {
        figure(html, chart);
    }
    let heads =
        ["users", "open: under way", "p99 TTFT, ms", "closed: under way", "p99 TTFT, ms", "ratio"];
    let row = |pair: &Pair| {
        let numbers = [pair.open.0, pair.open.1, pair.closed.0, pair.closed.1, pair.ratio()];
        let mut cells = vec![Cell::from(format!("{:.0}", pair.users))];
        cells.extend(numbers.map(|value| Cell::from(cell(value))));
        cells
    };
    let rows: Vec<Vec<Cell>> = pairs(summary).iter().map(row).collect();
    table(html, "Closed-loop points and the open-loop ones with as many under way", &heads, &rows);
}
