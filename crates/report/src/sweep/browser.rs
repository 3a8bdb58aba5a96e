//! What a browser shows of a sweep: its charts, the explorer, and what it takes to measure the same
//! again.

mod answer;
pub(super) mod distributions;
pub(super) mod load;
pub(super) mod reproduce;
pub(super) mod server;
pub(super) mod throughput;
pub(super) mod users;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use answer::{
    answer_sentence, capitalize, confirmed_level_text, slo_text, speeds_at_answer,
};
pub(crate) use load::{level_dots, load_axis};

use goodput_campaign::sweep::{Level, PointSummary};
use goodput_stats::{LoadGrid, SloGrid, SloLimits, StatedAnswer};

use crate::explorer;
use crate::sweep::{axis_unit, level_text, points_on_curve};
use crate::view::to_pictures;
use crate::view::{Picture, PointView, SweepView};
use goodput_document::Block;
use goodput_document::markup::Html;
use goodput_document::svg::Chart;

/// Its charts as files.
pub fn sweep_charts(view: &SweepView<'_>) -> Vec<Picture> {
    to_pictures(&all_charts(view))
}

/// Every chart, in the order of the page.
fn all_charts(view: &SweepView<'_>) -> Vec<Chart> {
    let summary = view.summary;
    let parts = [
        load::latency_charts(summary),
        throughput::throughput_charts(summary),
        throughput::percentile_charts(summary),
        load::goodput_charts(summary),
        distributions::distribution_charts(view),
        users::user_charts(summary),
        crate::sweep::loops::charts(summary),
        server::server_charts(view),
    ];
    parts.into_iter().flatten().collect()
}

/// The explorer, of the points on the curve.
pub(super) fn explorer_block(view: &SweepView<'_>) -> Option<Block> {
    let summary = view.summary;
    let mut points = points_on_curve(&summary.points);
    points.sort_by(|a, b| level_of(a).total_cmp(&level_of(b)));
    // A load under which the queue grows has no latency of its own: its name says so.
    let name = |level: Level, is_lost: bool| {
        let behind = if is_lost { " (falls behind)" } else { "" };
        format!("{}{behind}", named_level(level))
    };
    let is_lost = |point: &PointSummary| {
        let at = level_of(point);
        let mut runs = points.iter().filter(|other| level_of(other) == at);
        runs.any(|run| run.point.figures.over_saturated == Some(true))
    };
    let of = |point: &&PointSummary| {
        let label = name(point.point.ask.level, is_lost(point));
        Some(LoadGrid { level: level_of(point), label, grid: grid_of_point(view, point)? })
    };
    let grids: Vec<LoadGrid<'_>> = points.iter().filter_map(of).collect();
    let asked = SloLimits::from_slo(summary.plan.slo.as_ref(), summary.plan.attainment);
    let answer = summary.goodput.as_ref().map(|goodput| StatedAnswer {
        level: goodput.level(),
        text: answer::answer_in_sentence(summary, goodput),
    });
    let inside = Html::from_fn(|html| {
        explorer::write_explorer(html, &grids, summary.sweep.gpus, asked, answer.as_ref());
    });
    (!inside.is_empty()).then_some(Block::Widget(inside))
}

fn grid_of_point<'a>(view: &SweepView<'a>, point: &PointSummary) -> Option<&'a SloGrid> {
    view_of_point(view, point).map(|found| &found.details.slo_grid)
}

fn level_of(point: &PointSummary) -> f64 {
    point.point.ask.level.value()
}

/// A level with its unit.
pub(crate) fn named_level(of: Level) -> String {
    format!("{} {}", level_text(of), axis_unit(of.axis()))
}

/// The run of a point, where its folder could be read.
pub(super) fn view_of_point<'a>(
    view: &SweepView<'a>,
    point: &PointSummary,
) -> Option<&'a PointView> {
    view.points.iter().find(|view| view.folder == point.folder)
}
