//! Queue, batch, caches, GPUs and energy, as far as anybody told.

use goodput_campaign::sweep::{Axis, Figures, PointSummary, SweepSummary};
use goodput_stats::{LevelSummary, ServerSummary, Summary};

use super::load::{level_dots, load_axis};
use super::{named_level, view_of_point};
use crate::sweep::{
    Latency, axis_unit, batch_medians, level_value_text, points_on_curve, without_interval,
};
use crate::view::SweepView;
use goodput_document::number::{cell_number, percent};
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Shape};
use goodput_document::{Block, Cell, Column, Table};

pub(crate) fn server_charts(view: &SweepView<'_>) -> Vec<Chart> {
    let summary = view.summary;
    let all = [queue_chart(view), batch_chart(summary), energy_chart(summary)];
    all.into_iter().filter(|chart| !chart.is_empty()).collect()
}

/// A level of the server at each load: mean of its runs.
fn server_level_dots(
    view: &SweepView<'_>,
    points: &[&PointSummary],
    name: &str,
    axis: Axis,
) -> Vec<Dot> {
    let mean = |point: &PointSummary| {
        let server = view_of_point(view, point)?.summary.server.as_ref()?;
        let level: &LevelSummary = server.levels.get(name)?;
        without_interval(Some(level.mean))
    };
    let all = crate::sweep::pool_by_level(points, mean);
    all.into_iter()
        .map(|(x, found)| {
            let at = format!("{} {}", level_value_text(axis, x), axis_unit(axis));
            Dot::with_note(x, found.value, format!("{at}, {} {name}", cell_number(found.value)))
        })
        .collect()
}

const MEANS: &str =
    "Means over the window; in flight is counted by the client, the rest by the server.";

/// Requests in flight, in the batch and in the queue; nothing if the server does not tell.
fn queue_chart(view: &SweepView<'_>) -> Chart {
    let axis = view.summary.plan.axis;
    let points = points_on_curve(&view.summary.points);
    let [running, waiting] =
        ["running", "waiting"].map(|name| server_level_dots(view, &points, name, axis));
    let in_flight = if running.is_empty() && waiting.is_empty() {
        Vec::new()
    } else {
        level_dots(axis, &points, |figures| without_interval(figures.in_flight), "in flight")
    };
    let last = running.last().zip(waiting.last()).map_or(String::new(), |(running, waiting)| {
        format!(
            "At the highest load, {} run and {} wait on average. ",
            cell_number(running.y),
            cell_number(waiting.y)
        )
    });
    let series = |name: &str, tone, dots| ChartSeries::new(name, Shape::Points, tone, dots);
    Chart::new("queue-over-load", "Requests in flight, in the batch, and in the queue")
        .with_caption(last + MEANS)
        .with_axes(load_axis(axis, &points), "requests")
        .with_series([
            series("in flight", 0, in_flight),
            series("in the batch", 2, running),
            series("waiting", 1, waiting),
        ])
}

/// Medians over the batch.
pub(crate) fn batch_chart(summary: &SweepSummary) -> Chart {
    let points = points_on_curve(&summary.points);
    let series = |latency: Latency, tone| {
        let mut all = batch_medians(&points, latency);
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let dot = |(x, y): (f64, f64)| {
            let note = format!("batch of {}, {} ms", cell_number(x), cell_number(y));
            Dot::with_note(x, y, note)
        };
        let dots = if all.len() < 2 { Vec::new() } else { all.into_iter().map(dot).collect() };
        ChartSeries::new(latency.title(), Shape::Marks, tone, dots)
    };
    Chart::new("latency-over-batch", "Medians over the server's batch size")
        .with_caption("What a larger batch costs each request. Each mark is a point of the sweep.")
        .with_axes("requests in the batch (mean)", ChartAxis::log("ms"))
        .with_series([series(Latency::Ttft, 0), series(Latency::Tpot, 1)])
}

fn energy_chart(summary: &SweepSummary) -> Chart {
    let points = points_on_curve(&summary.points);
    let axis = summary.plan.axis;
    let joules = |figures: &Figures| without_interval(figures.joules_per_output_token);
    let dots = level_dots(axis, &points, joules, "J for each output token");
    let least = dots
        .iter()
        .min_by(|a, b| a.y.total_cmp(&b.y))
        .map_or(String::new(), |least| format!("The lowest is {}. ", least.note));
    Chart::new("energy-over-load", "Energy of the GPUs for each output token")
        .with_caption(least + "GPUs only, without the rest of the node; idle power is included.")
        .with_axes(load_axis(axis, &points), "joules")
        .with_series([ChartSeries::new("energy", Shape::Points, 6, dots)])
}

/// A figure of the table: its name, and its text for a run that tells.
type ServerColumn = (&'static str, fn(&Summary) -> Option<String>);

const TOLD: [ServerColumn; 13] = [
    ("batch, mean", |run| server_level_text(run, "running", |level| cell_number(level.mean))),
    ("batch, max", |run| server_level_text(run, "running", |level| cell_number(level.max))),
    ("waiting, mean", |run| server_level_text(run, "waiting", |level| cell_number(level.mean))),
    ("waiting, max", |run| server_level_text(run, "waiting", |level| cell_number(level.max))),
    ("queue wait, mean ms", |run| {
        server_summary(run)?.queue.as_ref()?.wait_mean_ms.map(cell_number)
    }),
    ("KV in use, mean", |run| server_level_text(run, "kv_usage", |level| percent(level.mean))),
    ("KV in use, max", |run| server_level_text(run, "kv_usage", |level| percent(level.max))),
    ("preemptions", |run| {
        Some(format!("{:.0}", server_summary(run)?.counters.get("preemptions")?.total))
    }),
    ("prefix hits", |run| server_summary(run)?.prefix_hit_rate_counted.map(percent)),
    ("drafts accepted", |run| server_summary(run)?.speculative_acceptance_counted.map(percent)),
    ("GPU busy, mean", |run| {
        let devices = &run.gpu.as_ref()?.devices;
        let busy: Vec<f64> =
            devices.iter().filter_map(|gpu| Some(gpu.levels.get("busy")?.mean)).collect();
        (!busy.is_empty()).then(|| percent(busy.iter().sum::<f64>() / busy.len() as f64))
    }),
    ("GPU power, W", |run| Some(cell_number(run.gpu.as_ref()?.energy.as_ref()?.mean_w))),
    ("J per output token", |run| {
        run.gpu.as_ref()?.energy.as_ref()?.joules_per.output_token.map(cell_number)
    }),
];

fn server_summary(run: &Summary) -> Option<&ServerSummary> {
    run.server.as_ref()
}

fn server_level_text(
    run: &Summary,
    name: &str,
    text: fn(&LevelSummary) -> String,
) -> Option<String> {
    server_summary(run)?.levels.get(name).map(text)
}

/// What the server and its GPUs said at each point; columns without values are left out.
pub(crate) fn server_table(view: &SweepView<'_>) -> Option<Block> {
    let mut points = points_on_curve(&view.summary.points);
    points.sort_by(|a, b| a.point.ask.level.value().total_cmp(&b.point.ask.level.value()));
    let runs: Vec<(&PointSummary, &Summary)> = points
        .iter()
        .filter_map(|point| Some((*point, &view_of_point(view, point)?.summary)))
        .collect();
    let is_told = |told: &&ServerColumn| runs.iter().any(|(_, run)| told.1(run).is_some());
    let told: Vec<&ServerColumn> = TOLD.iter().filter(is_told).collect();
    if told.is_empty() {
        return None;
    }
    let caption = "What the server and its GPUs reported, over the window of each point";
    Table::from_subjects("The server", caption, runs)
        .left("load", 0, |(point, _)| named_level(point.point.ask.level))
        .each(
            told,
            |(head, _)| Column::right(*head, 0),
            |(_, run), (_, told)| Cell::number(told(run), |text| text),
        )
        .table
        .into_block()
}
