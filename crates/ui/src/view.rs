//! From the index to what pages are made of.

use std::path::Path;
use std::time::SystemTime;

use crate::entry::{CurvePoint, Entry, Shown, Spread};
use crate::live::live_folder;
use crate::pages::{UiCurve, UiFigure, UiPoint, UiRow};

/// What was not touched for so long is not going on.
const QUIET_S: f64 = 20.0;

/// Letters of a name in a legend.
const LEGEND: usize = 44;

/// A row; the folder tells whether something goes on in it.
pub(crate) fn row(entry: &Entry, folder: Option<&Path>) -> UiRow {
    let figures = &entry.figures;
    let is_live = entry.state == "running" && folder.is_some_and(|it| quiet_s(it) < QUIET_S);
    UiRow {
        id: entry.id.clone(),
        name: entry.name.clone(),
        kind: entry.kind.name().to_owned(),
        started: entry.started.clone(),
        state: entry.state.clone(),
        target: entry.target.clone(),
        model: entry.model.clone(),
        workload: entry.workload.clone(),
        load: entry.load.clone(),
        verdict: entry.verdict.clone(),
        says: entry.says.clone(),
        figures: [
            figures.rps.map(UiFigure::from),
            figures.output_tps.map(UiFigure::from),
            figures.ttft_p50_ms.map(shown),
            figures.ttft_p99_ms.map(shown),
            figures.tpot_p99_ms.map(shown),
            figures.goodput_rps.map(UiFigure::from),
            figures.failed.map(UiFigure::from),
        ],
        tags: entry.notes.tags.clone(),
        is_live,
    }
}

fn shown(figure: Shown) -> UiFigure {
    UiFigure { value: figure.value, is_rough: figure.is_rough }
}

/// Seconds since something was written in a folder where something may go on.
pub(crate) fn quiet_s(folder: &Path) -> f64 {
    let run = live_folder(folder).unwrap_or_else(|| folder.to_owned());
    let logs = ["requests.log", "server.log", "manifest.json"].map(|name| run.join(name));
    let own = ["asks.jsonl", "points", "summary.json"].map(|name| folder.join(name));
    let age = |path: &std::path::PathBuf| {
        let changed = std::fs::symlink_metadata(path).and_then(|facts| facts.modified()).ok()?;
        // What is written in the future is written now.
        Some(SystemTime::now().duration_since(changed).unwrap_or_default().as_secs_f64())
    };
    logs.iter().chain(&own).filter_map(age).fold(f64::INFINITY, f64::min)
}

/// The curves of an entry, as the chart of this metric and percentile needs them. The letter tells
/// results apart.
pub(crate) fn curves(
    entry: &Entry,
    letter: char,
    (metric, percentile): (&str, &str),
) -> Vec<UiCurve> {
    let target = entry.target.split(" (").next().unwrap_or_default();
    let about =
        format!("{} · {} · {} · {}", entry.kind.name(), entry.started, entry.target, entry.load);
    let name = |own: &str| {
        let words = if own.is_empty() { target } else { own };
        let short: String = words.chars().take(LEGEND).collect();
        format!("{letter} · {short}")
    };
    let curve = |curve: &crate::entry::Curve| UiCurve {
        id: entry.id.clone(),
        name: name(&curve.name),
        about: about.clone(),
        points: curve.points.iter().map(|one| point(one, metric, percentile)).collect(),
    };
    entry.curves.iter().map(curve).collect()
}

fn point(point: &CurvePoint, metric: &str, percentile: &str) -> UiPoint {
    let spread: &Spread = match metric {
        "tpot" => &point.tpot,
        "e2e" => &point.e2e,
        _ => &point.ttft,
    };
    let bounded = match percentile {
        "p50" => spread.p50,
        "p90" => spread.p90,
        _ => spread.p99,
    };
    UiPoint {
        level: point.level.clone(),
        at: point.at,
        rps: point.rps,
        output_tps: point.output_tps,
        goodput_rps: point.goodput_rps,
        verdict: point.verdict.clone(),
        latency: bounded.map(|bounded| (bounded.value, bounded.low, bounded.high)),
    }
}
