//! What a user gets: over load, and against what a GPU gives.

use goodput_campaign::sweep::{PointSummary, SweepSummary};

use super::load::{dots, over};
use super::named_level;
use crate::sweep::{level_axis, level_number, on_curve, per_gpu, unit, user_speeds};
use goodput_document::number::cell;
use goodput_document::svg::{Chart, ChartSeries, Dot, Shape};

pub(crate) fn charts(summary: &SweepSummary) -> Vec<Chart> {
    let points = on_curve(&summary.points);
    let axis = summary.plan.axis;
    let median = dots(axis, &points, |figures| figures.user_tps.p50, "tok/s");
    let ends = median.first().zip(median.last()).map_or(String::new(), |(first, last)| {
        let at = |dot: &Dot| {
            format!("{} tok/s at {} {}", cell(dot.y), level_number(axis, dot.x), unit(axis))
        };
        format!("The median goes from {} to {}: ", at(first), at(last))
    });
    let speed = Chart::new(
        "user-speed",
        format!("Output tok/s of one user (median) over {}", level_axis(axis, &points).0),
    )
    .says(ends + "output tokens of an answer over the time that it takes. Bars are 95 % intervals.")
    .over(over(axis, &points), "tok/s of a user")
    .series([ChartSeries::new("median", Shape::Points, 4, median)]);
    [speed, against(summary)].into_iter().filter(|chart| !chart.is_empty()).collect()
}

/// A user's speed against what a GPU gives.
pub(crate) fn against(summary: &SweepSummary) -> Chart {
    let (gpus, per) = per_gpu(summary);
    let mut all = user_speeds(&on_curve(&summary.points), gpus);
    if all.len() < 2 {
        all.clear();
    }
    let dot = |(user, each, point): (f64, f64, &PointSummary)| {
        let level = named_level(point.point.ask.level);
        let note = format!("{level}, {} tok/s per user, {} tok/s {per}", cell(user), cell(each));
        Dot::noted(user, each, note)
    };
    Chart::new("user-against-gpu", format!("Output tok/s {per} over tok/s per user (median)"))
        .says(
            "Up is cheaper, to the right is faster for each user; each mark is a point of the \
             sweep.",
        )
        .over("tok/s per user (median)", format!("output tok/s {per}"))
        .series([ChartSeries::new("a point", Shape::Marks, 0, all.into_iter().map(dot).collect())])
}
