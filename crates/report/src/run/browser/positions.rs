//! Gaps between tokens by their place in the answer.

use goodput_stats::PositionBand;

use crate::markup::Html;
use crate::number::{cell, count};
use crate::render::pieces::figure;
use crate::svg::{Axis, Chart, Dot, Series, Shape};
use crate::view::RunView;

/// A figure of a band, where it is known.
type Figure = fn(&PositionBand) -> Option<f64>;

pub(super) fn fill(html: &mut Html, view: &RunView<'_>) {
    for chart in charts(view) {
        figure(html, &chart);
    }
}

pub(super) fn charts(view: &RunView<'_>) -> Vec<Chart> {
    let bands = &view.details.positions;
    let (Some(first), Some(last)) = (bands.first(), bands.last()) else { return Vec::new() };
    let figures: [(&str, Figure); 3] =
        [("p50", |band| Some(band.p50)), ("p90", |band| Some(band.p90)), ("p99", |band| band.p99)];
    let series = figures.into_iter().enumerate().map(|(tone, (name, figure))| {
        let dots = bands.iter().filter_map(|band| {
            let value = figure(band)?;
            let note = format!(
                "{} ms at tokens {} to {} ({} gaps)",
                cell(value),
                count(band.from),
                count(band.to),
                count(band.n)
            );
            Some(Dot { note, ..Dot::new(middle(band), value) })
        });
        Series { name: name.to_owned(), shape: Shape::Points, tone, dots: dots.collect() }
    });
    vec![Chart {
        name: "itl-position",
        title: "Gap before a token, by its place in the answer".to_owned(),
        says: format!(
            "The median gap is {} ms at the beginning of answers and {} ms at place {}.",
            cell(first.p50),
            cell(last.p50),
            count(last.to)
        ),
        x: Axis::log("token of the answer"),
        y: Axis::linear("ms"),
        series: series.collect(),
        rules: Vec::new(),
    }]
}

fn middle(band: &PositionBand) -> f64 {
    (band.from.max(1) as f64 * band.to.max(1) as f64).sqrt()
}
