//! The page of a sweep: the answer, whether to believe it, the curves, every point, and what it takes
//! to measure the same again.

mod answer;
mod distributions;
mod load;
mod loops;
mod points;
mod reproduce;
mod server;
mod throughput;
mod users;

#[cfg(test)]
pub(super) mod fixture;
#[cfg(test)]
mod tests;

pub(super) use answer::{confirmed, promise};
pub(super) use load::{dots, over};
pub(super) use points::{Row, linked};
pub(super) use throughput::front_latency;

use goodput_campaign::sweep::{Level, PointSummary};
use goodput_stats::SloGrid;

use super::explorer::{self, Asked};
use super::markup::Html;
use super::page::{Page, pictures};
use super::pieces::{caveats, facts, figures, section};
#[cfg(test)]
use super::view::Circumstances;
use super::view::{Picture, PointView, SweepView};
use crate::plain::plain;
use crate::svg::Chart;
use crate::sweep::{level, on_curve, shape_words, unit, words};

/// The page of a sweep.
pub fn sweep_html(view: &SweepView<'_>) -> String {
    let summary = view.summary;
    let mut body = Body::default();
    answer::section(&mut body.html, summary);
    caveats(&mut body.html, &summary.caveats);
    body.sections.extend([("answer", "Answer"), ("caveats", "Caveats")]);
    body.drawn("latency", ("Latency", "Latency over load"), &load::latencies(summary));
    body.section("throughput", ("Throughput", "Throughput against latency"), |html| {
        throughput::fill(html, summary);
    });
    body.drawn("goodput", ("Goodput", "Goodput over load"), &load::goodputs(summary));
    body.section("points", ("Points", "All points"), |html| points::fill(html, view));
    body.drawn("distributions", ("Distributions", "Distributions"), &distributions::charts(view));
    body.drawn("users", ("Users", "Speed for each user"), &users::charts(summary));
    body.section("loops", ("Loops", "Open and closed loops"), |html| loops::fill(html, summary));
    body.section("server", ("Server", "The server's side"), |html| server::fill(html, view));
    body.section("shape", ("Shape", "Shape and long run"), |html| shape(html, view));
    explore(&mut body, view);
    body.section("reproduce", ("Reproduce", "How to measure it again"), |html| {
        reproduce::fill(html, view);
    });
    let facts = &summary.sweep;
    let about = format!("model {} · {} · goodput {}", facts.model, facts.started, facts.version);
    let title = format!("Sweep of {}", plain(&facts.target));
    Page { title: &title, about: &about, sections: &body.sections, body: body.html }.into_string()
}

/// Its charts as files.
pub fn sweep_charts(view: &SweepView<'_>) -> Vec<Picture> {
    pictures(&charts(view))
}

/// Every chart, in the order of the page.
fn charts(view: &SweepView<'_>) -> Vec<Chart> {
    let summary = view.summary;
    let parts = [
        load::latencies(summary),
        throughput::charts(summary),
        load::goodputs(summary),
        distributions::charts(view),
        users::charts(summary),
        loops::charts(summary),
        server::charts(view),
    ];
    parts.into_iter().flatten().collect()
}

/// A page that grows, and what its navigation leads to.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) html: Html,
    pub(super) sections: Vec<(&'static str, &'static str)>,
}

impl Body {
    /// A section with its name in the navigation and its title, where there is anything to say in it.
    pub(super) fn section(
        &mut self,
        id: &'static str,
        (name, title): (&'static str, &'static str),
        fill: impl FnOnce(&mut Html),
    ) {
        let inside = Html::of(fill);
        if inside == Html::default() {
            return;
        }
        section(&mut self.html, id, title, |html| {
            html.add(&inside);
        });
        self.sections.push((id, name));
    }

    /// A section of charts that belong together.
    pub(super) fn drawn(
        &mut self,
        id: &'static str,
        names: (&'static str, &'static str),
        charts: &[Chart],
    ) {
        self.section(id, names, |html| figures(html, charts));
    }
}

/// What the points say together beside the answer.
fn shape(html: &mut Html, view: &SweepView<'_>) {
    let summary = view.summary;
    let named = |(name, text): (&str, String)| (name.to_owned(), text);
    let beside =
        words(summary).into_iter().filter(|(name, _)| matches!(*name, "Knee" | "Sustained"));
    let all: Vec<(String, String)> = beside.chain(shape_words(summary)).map(named).collect();
    facts(html, &all);
}

/// The explorer, of the points on the curve.
fn explore(body: &mut Body, view: &SweepView<'_>) {
    let summary = view.summary;
    let mut points = on_curve(&summary.points);
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
        let name = name(point.point.ask.level, is_lost(point));
        Some((level_of(point), name, grid(view, point)?))
    };
    let grids: Vec<(f64, String, &SloGrid)> = points.iter().filter_map(of).collect();
    let asked = Asked::of(summary.plan.slo.as_ref(), summary.plan.attainment);
    let answer = summary.goodput.as_ref().map(|goodput| explorer::Answer {
        level: goodput.confirmed,
        text: answer::told(summary, goodput),
    });
    let inside = Html::of(|html| {
        explorer::section(html, &grids, summary.sweep.gpus, asked, answer.as_ref());
    });
    if inside != Html::default() {
        body.html.add(&inside);
        body.sections.push(("explorer", "SLO explorer"));
    }
}

fn grid<'a>(view: &SweepView<'a>, point: &PointSummary) -> Option<&'a SloGrid> {
    found(view, point).map(|found| &found.details.slo_grid)
}

fn level_of(point: &PointSummary) -> f64 {
    point.point.ask.level.value()
}

/// A level with its unit.
pub(super) fn named_level(of: Level) -> String {
    format!("{} {}", level(of), unit(of.axis()))
}

/// The run of a point, where its folder could be read.
fn found<'a>(view: &SweepView<'a>, point: &PointSummary) -> Option<&'a PointView> {
    view.points.iter().find(|view| view.folder == point.folder)
}
