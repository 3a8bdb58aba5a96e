//! The longest gaps inside answers, over time.

use super::outside;
use crate::markup::Html;
use crate::number::{cell, count};
use crate::render::pieces::{figure, remark};
use crate::svg::{Axis, Chart, Dot, Rule, Series, Shape};
use crate::view::RunView;

pub(super) fn fill(html: &mut Html, view: &RunView<'_>) {
    let stalls = &view.details.stalls;
    if stalls.threshold_ms <= 0.0 {
        return;
    }
    let text = format!(
        "{} gaps of {} ms or more (ten times the median gap, and at least 100 ms) in {} requests.",
        count(stalls.count),
        cell(stalls.threshold_ms),
        count(stalls.requests)
    );
    html.leaf("p", &[], &text);
    for chart in charts(view) {
        figure(html, &chart);
    }
    if stalls.longest.len() as u64 != stalls.count {
        remark(html, &format!("The {} longest are drawn.", count(stalls.longest.len() as u64)));
    }
}

pub(super) fn charts(view: &RunView<'_>) -> Vec<Chart> {
    let stalls = &view.details.stalls;
    let longest = stalls.longest.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((at, most)) = longest else { return Vec::new() };
    let dots = stalls.longest.iter().map(|(at, ms)| Dot {
        note: format!("{} ms from {at:.1} s on", cell(*ms)),
        ..Dot::new(*at, *ms)
    });
    let end = stalls.longest.iter().map(|(at, _)| *at).fold(view.summary.window.end_s, f64::max);
    let mut rules = outside(view.summary, end);
    rules.push(Rule::Height(stalls.threshold_ms, format!("{} ms", cell(stalls.threshold_ms))));
    vec![Chart {
        name: "stalls",
        title: "Longest gaps between tokens, when they began".to_owned(),
        says: format!("The longest, {} ms, began at {at:.1} s.", cell(most)),
        x: Axis::linear("s since the first instant"),
        y: Axis::log("ms"),
        series: vec![Series {
            name: "gap".to_owned(),
            shape: Shape::Marks,
            tone: 1,
            dots: dots.collect(),
        }],
        rules,
    }]
}
