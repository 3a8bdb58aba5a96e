//! Queue, batch, caches, GPUs and energy, as far as anybody told.

use goodput_campaign::sweep::{Axis, Figures, PointSummary, SweepSummary};
use goodput_stats::{LevelSummary, ServerSummary, Summary};

use super::load::{dots, over};
use super::{found, named_level};
use crate::sweep::{Latency, bare, batch_medians, level_number, on_curve, unit};
use crate::view::SweepView;
use goodput_document::number::{cell, percent};
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Shape};
use goodput_document::{Block, Cell, Column, Table};

pub(crate) fn charts(view: &SweepView<'_>) -> Vec<Chart> {
    let summary = view.summary;
    let all = [queue(view), batches(summary), energy(summary)];
    all.into_iter().filter(|chart| !chart.is_empty()).collect()
}

/// A level of the server at each load: mean of its runs.
fn levels(view: &SweepView<'_>, points: &[&PointSummary], name: &str, axis: Axis) -> Vec<Dot> {
    let mean = |point: &PointSummary| {
        let server = found(view, point)?.summary.server.as_ref()?;
        let level: &LevelSummary = server.levels.get(name)?;
        bare(Some(level.mean))
    };
    let all = crate::sweep::pooled(points, mean);
    all.into_iter()
        .map(|(x, found)| {
            let at = format!("{} {}", level_number(axis, x), unit(axis));
            Dot::noted(x, found.value, format!("{at}, {} {name}", cell(found.value)))
        })
        .collect()
}

const MEANS: &str =
    "Means over the window; in flight is counted by the client, the rest by the server.";

/// Requests in flight, in the batch and in the queue; nothing if the server does not tell.
fn queue(view: &SweepView<'_>) -> Chart {
    let axis = view.summary.plan.axis;
    let points = on_curve(&view.summary.points);
    let [running, waiting] = ["running", "waiting"].map(|name| levels(view, &points, name, axis));
    let in_flight = if running.is_empty() && waiting.is_empty() {
        Vec::new()
    } else {
        dots(axis, &points, |figures| bare(figures.in_flight), "in flight")
    };
    let last = running.last().zip(waiting.last()).map_or(String::new(), |(running, waiting)| {
        format!(
            "At the highest load, {} run and {} wait on average. ",
            cell(running.y),
            cell(waiting.y)
        )
    });
    let series = |name: &str, tone, dots| ChartSeries::new(name, Shape::Points, tone, dots);
    Chart::new("queue-over-load", "Requests in flight, in the batch, and in the queue")
        .says(last + MEANS)
        .over(over(axis, &points), "requests")
        .series([
            series("in flight", 0, in_flight),
            series("in the batch", 2, running),
            series("waiting", 1, waiting),
        ])
}

/// Medians over the batch.
pub(crate) fn batches(summary: &SweepSummary) -> Chart {
    let points = on_curve(&summary.points);
    let series = |latency: Latency, tone| {
        let mut all = batch_medians(&points, latency);
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let dot = |(x, y): (f64, f64)| {
            let note = format!("batch of {}, {} ms", cell(x), cell(y));
            Dot::noted(x, y, note)
        };
        let dots = if all.len() < 2 { Vec::new() } else { all.into_iter().map(dot).collect() };
        ChartSeries::new(latency.name(), Shape::Marks, tone, dots)
    };
    Chart::new("latency-over-batch", "Medians over the server's batch size")
        .says("What a larger batch costs each request. Each mark is a point of the sweep.")
        .over("requests in the batch (mean)", ChartAxis::log("ms"))
        .series([series(Latency::Ttft, 0), series(Latency::Tpot, 1)])
}

fn energy(summary: &SweepSummary) -> Chart {
    let points = on_curve(&summary.points);
    let axis = summary.plan.axis;
    let joules = |figures: &Figures| bare(figures.joules_per_output_token);
    let dots = dots(axis, &points, joules, "J for each output token");
    let least = dots
        .iter()
        .min_by(|a, b| a.y.total_cmp(&b.y))
        .map_or(String::new(), |least| format!("The lowest is {}. ", least.note));
    Chart::new("energy-over-load", "Energy of the GPUs for each output token")
        .says(least + "GPUs only, without the rest of the node; idle power is included.")
        .over(over(axis, &points), "joules")
        .series([ChartSeries::new("energy", Shape::Points, 6, dots)])
}

/// A figure of the table: its name, and its text for a run that tells.
type ServerColumn = (&'static str, fn(&Summary) -> Option<String>);

const TOLD: [ServerColumn; 13] = [
    ("batch, mean", |run| level(run, "running", |level| cell(level.mean))),
    ("batch, max", |run| level(run, "running", |level| cell(level.max))),
    ("waiting, mean", |run| level(run, "waiting", |level| cell(level.mean))),
    ("waiting, max", |run| level(run, "waiting", |level| cell(level.max))),
    ("queue wait, mean ms", |run| server(run)?.queue.as_ref()?.wait_mean_ms.map(cell)),
    ("KV in use, mean", |run| level(run, "kv_usage", |level| percent(level.mean))),
    ("KV in use, max", |run| level(run, "kv_usage", |level| percent(level.max))),
    ("preemptions", |run| Some(format!("{:.0}", server(run)?.counters.get("preemptions")?.total))),
    ("prefix hits", |run| server(run)?.prefix_hit_rate_counted.map(percent)),
    ("drafts accepted", |run| server(run)?.speculative_acceptance_counted.map(percent)),
    ("GPU busy, mean", |run| {
        let devices = &run.gpu.as_ref()?.devices;
        let busy: Vec<f64> =
            devices.iter().filter_map(|gpu| Some(gpu.levels.get("busy")?.mean)).collect();
        (!busy.is_empty()).then(|| percent(busy.iter().sum::<f64>() / busy.len() as f64))
    }),
    ("GPU power, W", |run| Some(cell(run.gpu.as_ref()?.energy.as_ref()?.mean_w))),
    ("J per output token", |run| {
        run.gpu.as_ref()?.energy.as_ref()?.joules_per.output_token.map(cell)
    }),
];

fn server(run: &Summary) -> Option<&ServerSummary> {
    run.server.as_ref()
}

fn level(run: &Summary, name: &str, text: fn(&LevelSummary) -> String) -> Option<String> {
    server(run)?.levels.get(name).map(text)
}

/// What the server and its GPUs said at each point; columns without values are left out.
pub(crate) fn table(view: &SweepView<'_>) -> Option<Block> {
    let mut points = on_curve(&view.summary.points);
    points.sort_by(|a, b| a.point.ask.level.value().total_cmp(&b.point.ask.level.value()));
    let runs: Vec<(&PointSummary, &Summary)> =
        points.iter().filter_map(|point| Some((*point, &found(view, point)?.summary))).collect();
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
        .filled()
}
