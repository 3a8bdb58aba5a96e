//! The same number under way, made by open and by closed loops.

use goodput_campaign::sweep::SweepSummary;

use crate::number::cell;
use crate::svg::{Axis, Chart, Dot, Series, Shape};
use crate::sweep::{Pair, loops, pairs};

pub(crate) fn charts(summary: &SweepSummary) -> Vec<Chart> {
    let pairs = pairs(summary);
    let Some(says) = loops(&pairs) else { return Vec::new() };
    let series = |name: &str, tone, of: fn(&Pair) -> (f64, f64)| {
        let dot = |pair: &Pair| {
            let (x, y) = of(pair);
            Dot { note: format!("{} under way, {} ms", cell(x), cell(y)), ..Dot::new(x, y) }
        };
        let dots = pairs.iter().map(dot).collect();
        Series::new(name, Shape::Points, tone, dots)
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
