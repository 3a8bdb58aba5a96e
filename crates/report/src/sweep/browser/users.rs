//! What a user gets: over load, and against what a GPU gives.

use goodput_campaign::sweep::{PointSummary, SweepSummary};

use super::load::{level_dots, load_axis};
use super::named_level;
use crate::sweep::{
    axis_unit, gpus_and_label, level_axis, level_value_text, points_on_curve, user_speeds,
};
use goodput_document::number::cell_number;
use goodput_document::svg::{Chart, ChartSeries, Dot, Shape};

pub(crate) fn user_charts(summary: &SweepSummary) -> Vec<Chart> {
    let points = points_on_curve(&summary.points);
    let axis = summary.plan.axis;
    let median = level_dots(axis, &points, |figures| figures.user_tps.p50, "tok/s");
    let ends = median.first().zip(median.last()).map_or(String::new(), |(first, last)| {
        let at = |dot: &Dot| {
            format!(
                "{} tok/s at {} {}",
                cell_number(dot.y),
                level_value_text(axis, dot.x),
                axis_unit(axis)
            )
        };
        format!("The median goes from {} to {}: ", at(first), at(last))
    });
    let speed = Chart::new(
        "user-speed",
        format!("Output tok/s of one user (median) over {}", level_axis(axis, &points).0),
    )
    .with_caption(
        ends + "output tokens of an answer over the time that it takes. Bars are 95 % intervals.",
    )
    .with_axes(load_axis(axis, &points), "tok/s of a user")
    .with_series([ChartSeries::new("median", Shape::Points, 4, median)]);
    [speed, user_speed_chart(summary)].into_iter().filter(|chart| !chart.is_empty()).collect()
}

/// A user's speed against what a GPU gives.
pub(crate) fn user_speed_chart(summary: &SweepSummary) -> Chart {
    let (gpus, per) = gpus_and_label(summary);
    let mut all = user_speeds(&points_on_curve(&summary.points), gpus);
    if all.len() < 2 {
        all.clear();
    }
    let dot = |(user, each, point): (f64, f64, &PointSummary)| {
        let level = named_level(point.point.ask.level);
        let note = format!(
            "{level}, {} tok/s per user, {} tok/s {per}",
            cell_number(user),
            cell_number(each)
        );
        Dot::with_note(user, each, note)
    };
    Chart::new("user-against-gpu", format!("Output tok/s {per} over tok/s per user (median)"))
        .with_caption(
            "Up is cheaper, to the right is faster for each user; each mark is a point of the \
             sweep.",
        )
        .with_axes("tok/s per user (median)", format!("output tok/s {per}"))
        .with_series([ChartSeries::new(
            "a point",
            Shape::Marks,
            0,
            all.into_iter().map(dot).collect(),
        )])
}
