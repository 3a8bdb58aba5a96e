//! The page of a run, in the order in which a reader asks: the answer, how far to believe it, the
//! figures, what they are made of, and how to measure them again.

mod answer;
mod breakdown;
mod client;
mod clients;
mod distributions;
mod errors;
mod gpu;
mod latency;
mod positions;
mod reproduce;
mod server;
mod slo;
mod stalls;
mod steps;
mod timeline;

use goodput_model::Verdict;
use goodput_stats::Summary;

use crate::explorer::{self, Asked};
use crate::markup::Html;
use crate::render::page::Page;
use crate::render::pieces::{caveats, section};
use crate::run::facts::{about, streaming};
use crate::svg::{Rule, standalone_stack};
use crate::view::pictures;
use crate::view::{Picture, RunView};

/// A section: its id, its name, its heading, and what fills it.
type Part = (&'static str, &'static str, &'static str, fn(&mut Html, &RunView<'_>));

/// What follows answer and caveats. A section that has nothing in it is left out.
const PARTS: [Part; 13] = [
    ("latency", "Latency", "Latency", latency::fill),
    ("distributions", "Distributions", "Latency distributions", distributions::fill),
    ("steps", "Steps", "TTFT by step", steps::fill),
    ("positions", "Positions", "ITL over the answer", positions::fill),
    ("stalls", "Stalls", "Stalls", stalls::fill),
    ("timeline", "Timeline", "The run over time", timeline::fill),
    ("breakdowns", "Breakdowns", "Breakdowns", breakdown::fill),
    ("server", "Server", "Server against client", server::fill),
    ("gpu", "GPU", "GPU and energy", gpu::fill),
    ("client", "Client", "Client health and instrument error", client::fill),
    ("clients", "Clients", "Clients", clients::fill),
    ("errors", "Errors", "Errors", errors::fill),
    ("slo", "SLO", "SLO, term by term", slo::fill),
];

/// How to repeat it, and what a result must tell.
const LAST: [Part; 2] = [
    ("reproduce", "Reproduce", "Everything needed to reproduce it", reproduce::fill),
    ("checklist", "Checklist", "Checklist", reproduce::checklist),
];

/// The page of a run.
pub fn run_html(view: &RunView<'_>) -> String {
    let summary = view.summary;
    let mut body = Html::default();
    let mut sections = vec![("answer", "Answer"), ("caveats", "Caveats")];
    answer::fill(&mut body, view);
    caveats(&mut body, &summary.caveats);
    add(&mut body, &mut sections, &PARTS, view);
    let explored = Html::of(|html| {
        // Limits that void numbers keep are kept by nobody.
        if is_void(summary) {
            return;
        }
        let grid = &view.details.slo_grid;
        let asked = Asked::of_run(summary.slo.as_ref());
        let points = [(0.0, summary.run.target.clone(), grid)];
        explorer::section(html, &points, gpus(summary), asked, None);
    });
    if !explored.is_empty() {
        sections.push(("explorer", "SLO explorer"));
        body.add(&explored);
    }
    add(&mut body, &mut sections, &LAST, view);
    let (title, about) = (title(summary), about(&summary.run, streaming(summary)));
    Page { title: &title, about: &about, sections: &sections, body }.into_string()
}

fn add(
    body: &mut Html,
    sections: &mut Vec<(&'static str, &'static str)>,
    parts: &[Part],
    view: &RunView<'_>,
) {
    for (id, name, heading, fill) in parts {
        let inside = Html::of(|html| fill(html, view));
        if inside.is_empty() {
            continue;
        }
        sections.push((id, name));
        section(body, id, heading, |html| {
            html.add(&inside);
        });
    }
}

fn title(summary: &Summary) -> String {
    format!("{} at {}", summary.run.model, summary.run.target)
}

/// Its charts as files.
pub fn run_charts(view: &RunView<'_>) -> Vec<Picture> {
    let mut charts = distributions::charts(view);
    charts.extend(positions::charts(view));
    charts.extend(stalls::charts(view));
    charts.extend(timeline::charts(view));
    let mut all = pictures(&charts);
    let stack = steps::stack(view).filter(|stack| !stack.is_empty());
    all.extend(
        stack.map(|stack| Picture { name: stack.name.to_owned(), svg: standalone_stack(&stack) }),
    );
    all
}

/// GPUs that the server runs on: as many as were seen, or as its user says.
fn gpus(summary: &Summary) -> Option<u32> {
    let system = &summary.run.system;
    let seen = summary.gpu.as_ref().map_or(0, |gpu| gpu.devices.len()).max(system.gpus.len());
    let said = || system.fact(&["gpu_count", "gpus", "num_gpus"])?.parse().ok();
    u32::try_from(seen).ok().filter(|n| *n > 0).or_else(said).filter(|n| *n > 0)
}

/// Whether figures may stand as a result.
fn is_void(summary: &Summary) -> bool {
    summary.verdict == Verdict::Void
}

/// What lies outside the window, in charts over time.
fn outside(summary: &Summary, end: f64) -> Vec<Rule> {
    let window = &summary.window;
    let parts = [
        (0.0, window.start_s, "warm-up"),
        (window.end_s, end, if summary.requests.cooldown > 0 { "cooldown" } else { "after" }),
    ];
    let parts = parts.into_iter().filter(|(from, to, _)| to - from > 1e-3);
    parts.map(|(from, to, name)| Rule::Span(from, to, name.to_owned())).collect()
}
