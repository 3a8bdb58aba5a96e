//! From a folder to what the index says about it. Files are read as plain values: a result of
//! another version, or an incomplete one, gives what it has.

mod curves;

use std::path::Path;

use goodput_files::{MOST_SMALL, MOST_SUMMARY, read_inside};
use goodput_record::{ArtifactKind, read_toml_inside};
use serde::Deserialize;
use serde_json::Value;

use crate::entry::{Entry, ResultFigures, Shown};
use crate::notes::Notes;
use crate::walk::ResultsRoot;

/// Letters of a text that is shown in a list.
const LONGEST: usize = 300;

/// Parts of a `summary.json`, of whatever kind; the others are passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SummaryParts {
    verdict: Value,
    run: Value,
    sweep: Value,
    comparison: Value,
    load: Value,
    requests: Value,
    throughput: Value,
    metrics: Value,
    slo: Value,
    goodput: Value,
    plan: Value,
    points: Vec<Value>,
    configurations: Vec<Value>,
    best: Value,
    because: Value,
    runs: Vec<Value>,
    headlines: Value,
    sides: Vec<Value>,
    design: Value,
    outcome: Value,
}

/// What lies at a place.
pub(crate) fn read_entry(root: &Path, place: &ResultsRoot) -> Entry {
    let folder = root.join(&place.path);
    let summary = read_summary(&folder);
    let mut entry = Entry {
        id: place.id.clone(),
        path: place.path.clone(),
        name: clip_text(&if place.path.as_os_str().is_empty() {
            root.file_name().unwrap_or_default().to_string_lossy()
        } else {
            place.path.to_string_lossy()
        }),
        kind: place.kind,
        started: String::new(),
        state: String::new(),
        target: String::new(),
        model: String::new(),
        workload: String::new(),
        load: String::new(),
        verdict: clean_text(&summary.verdict),
        says: String::new(),
        figures: ResultFigures::default(),
        notes: Notes::read(&folder),
        curves: curves::curves_from_summary(place.kind, &folder, &summary),
    };
    match place.kind {
        ArtifactKind::Run => read_run(&mut entry, &folder, &summary),
        ArtifactKind::Repeats => read_repeats(&mut entry, &folder, &summary),
        ArtifactKind::Sweep => read_sweep(&mut entry, &folder, &summary),
        ArtifactKind::Sweeps => read_sweeps(&mut entry, &folder, &summary),
        ArtifactKind::Comparison => read_comparison(&mut entry, &summary),
        ArtifactKind::Shadow => read_shadow(&mut entry, &folder, &summary),
    }
    // A result of a campaign that goes on is written now and then.
    if entry.state == "unfinished" || (entry.state.is_empty() && entry.verdict.is_empty()) {
        "running".clone_into(&mut entry.state);
    }
    entry
}

/// Whether a run's manifest says that it goes on; it may have been killed.
pub(crate) fn is_running(folder: &Path) -> bool {
    read_manifest(folder)["state"] == "running"
}

fn read_summary(folder: &Path) -> SummaryParts {
    let bytes = read_inside(&folder.join("summary.json"), MOST_SUMMARY).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

fn read_manifest(folder: &Path) -> Value {
    let bytes = read_inside(&folder.join("manifest.json"), MOST_SMALL).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

fn read_toml(path: &Path) -> Value {
    read_toml_inside(path).unwrap_or_default()
}

fn read_run(entry: &mut Entry, folder: &Path, summary: &SummaryParts) {
    let (manifest, facts) = (read_manifest(folder), &summary.run);
    entry.started = clean_text(&manifest["started"]);
    entry.state = clean_text(&manifest["state"]);
    let asked = |name: &str| {
        first_non_empty([clean_text(&facts[name]), clean_text(&manifest["target"][name])])
    };
    entry.target =
        first_non_empty([clean_text(&facts["target"]), clean_text(&manifest["target"]["url"])]);
    entry.model = asked("model");
    entry.workload = clean_text(&facts["workload"]);
    entry.load = load_text(&summary.load);
    if entry.workload.is_empty() || entry.load.is_empty() {
        let plan = read_toml(&folder.join("plan.toml"));
        let words = [entry.workload.clone(), clean_text(&plan["workload"]["name"])];
        entry.workload = first_non_empty(words);
        entry.load =
            first_non_empty([entry.load.clone(), planned_load_text(&plan["load"]["mode"])]);
    }
    read_figures(&mut entry.figures, summary);
    let state = clean_text(&summary.slo["state"]);
    if !state.is_empty() {
        entry.says = format!("SLO {}", state.replace('_', " "));
    }
}

fn read_figures(figures: &mut ResultFigures, summary: &SummaryParts) {
    let percentile = |metric: &str, which: &str| {
        shown_percentile(&summary.metrics[metric]["percentiles"][which])
    };
    figures.rps = summary.throughput["requests_per_s"].as_f64();
    figures.output_tps = summary.throughput["output_tokens_per_s"].as_f64();
    figures.ttft_p50_ms = percentile("ttft", "50");
    figures.ttft_p99_ms = percentile("ttft", "99");
    figures.tpot_p99_ms = percentile("tpot", "99");
    figures.goodput_rps = summary.slo["goodput_rps"].as_f64();
    let (all, failed) =
        (summary.requests["scheduled"].as_f64(), summary.requests["failed"].as_f64());
    figures.failed = all.zip(failed).filter(|(all, _)| *all > 0.0).map(|(all, some)| some / all);
}

/// A percentile as far as the page of its run shows it, by its quality. Files from before there were
/// qualities have none, and their figures stand; one that is not known here does not.
fn shown_percentile(percentile: &Value) -> Option<Shown> {
    let is_rough = match &percentile["quality"] {
        Value::Null => false,
        quality if quality == "ok" || quality == "few" => false,
        quality if quality == "rough" => true,
        _ => return None,
    };
    // Beyond the time limit a value does not count.
    let is_censored = percentile["is_censored"] == true;
    let value = percentile["value"].as_f64().filter(|_| !is_censored)?;
    Some(Shown { value, is_rough })
}

fn read_repeats(entry: &mut Entry, folder: &Path, summary: &SummaryParts) {
    let facts = &summary.run;
    let begun = read_manifest(&folder.join("repeat-1"));
    entry.started = first_non_empty([clean_text(&facts["started"]), clean_text(&begun["started"])]);
    entry.state = state_of_runs(entry);
    entry.target =
        first_non_empty([clean_text(&facts["target"]), clean_text(&begun["target"]["url"])]);
    entry.model =
        first_non_empty([clean_text(&facts["model"]), clean_text(&begun["target"]["model"])]);
    entry.workload = clean_text(&facts["workload"]);
    let runs = summary.runs.len();
    let load = clean_text(&summary.load);
    entry.load = if runs > 0 { clip_text(&format!("{load} × {runs}")) } else { load };
    let mean = |name: &str| summary.headlines[name]["mean"].as_f64();
    let time = |name: &str| mean(name).map(|value| Shown { value, is_rough: false });
    entry.figures = ResultFigures {
        rps: mean("requests_per_s"),
        output_tps: mean("output_tokens_per_s"),
        ttft_p50_ms: time("ttft_p50"),
        ttft_p99_ms: time("ttft_p99"),
        tpot_p99_ms: time("tpot_p99"),
        goodput_rps: mean("goodput_rps"),
        failed: mean("error_share"),
    };
}

fn read_sweep(entry: &mut Entry, folder: &Path, summary: &SummaryParts) {
    read_sweep_facts(entry, &summary.sweep);
    if entry.target.is_empty() {
        read_request(entry, &read_toml(&folder.join("sweep.toml")));
    }
    entry.load = levels_text(&summary.plan, &summary.points);
    entry.figures = figures_at_answer(&summary.points, &summary.goodput);
    let (state, slo) = (clean_text(&summary.goodput["state"]), clean_text(&summary.goodput["slo"]));
    entry.says = match state.as_str() {
        "" => String::new(),
        "found" => format!("keeps {slo}"),
        "at_least" => format!("at least, with {slo}"),
        "unreachable" => format!("no load meets {slo}"),
        _ => format!("undecided whether {slo} is met"),
    };
    entry.says = clip_text(&entry.says);
}

fn read_sweeps(entry: &mut Entry, folder: &Path, summary: &SummaryParts) {
    let best = summary.best.as_u64().and_then(|at| summary.configurations.get(at as usize));
    let any = best.or_else(|| summary.configurations.iter().find(|one| one["sweep"].is_object()));
    if let Some(one) = any {
        let sweep = &one["sweep"];
        read_sweep_facts(entry, &sweep["sweep"]);
        let points = sweep["points"].as_array().cloned().unwrap_or_default();
        entry.figures = figures_at_answer(&points, &sweep["goodput"]);
        entry.says = match best {
            Some(one) => clip_text(&format!("best: {}", curves::values_text(&one["values"]))),
            None => clean_text(&summary.because),
        };
    }
    if entry.target.is_empty() {
        read_request(entry, &read_toml(&folder.join("sweep.toml")));
    }
    let count = summary.configurations.len();
    entry.load = if count > 0 { format!("{count} configurations") } else { String::new() };
    entry.state = state_of_runs(entry);
}

fn read_comparison(entry: &mut Entry, summary: &SummaryParts) {
    let facts = &summary.comparison;
    entry.started = clean_text(&facts["started"]);
    entry.state = clean_text(&facts["state"]);
    entry.workload = clean_text(&facts["workload"]);
    let all = |name: &str| {
        let mut some: Vec<String> = Vec::new();
        for side in &summary.sides {
            let one = clean_text(&side[name]);
            if !one.is_empty() && !some.contains(&one) {
                some.push(one);
            }
        }
        clip_text(&some.join(" against "))
    };
    entry.target = first_non_empty([all("target"), all("name")]);
    entry.model = all("model");
    let words: Vec<String> = summary.design["levels"]
        .as_array()
        .map(|levels| levels.iter().map(curves::level_text).collect())
        .unwrap_or_default();
    entry.load = clip_text(&words.join(", "));
    entry.says = clean_text(&summary.outcome).replace('_', " ");
}

fn read_shadow(entry: &mut Entry, folder: &Path, summary: &SummaryParts) {
    read_comparison(entry, summary);
    let asked = read_toml(&folder.join("shadow.toml"));
    entry.started = first_non_empty([entry.started.clone(), clean_text(&asked["started"])]);
    if entry.target.is_empty() {
        let targets = [0, 1].map(|side| clean_text(&asked["sides"][side]["target"]));
        entry.target = clip_text(&targets.join(" against "));
    }
    let share =
        asked["share"].as_f64().map(|share| format!("{} % of live", number_text(share * 100.0)));
    entry.load = share.unwrap_or_default();
    entry.workload = first_non_empty([entry.workload.clone(), "live traffic".to_owned()]);
}

/// The state of many runs that do not say it: what has a verdict is over.
fn state_of_runs(entry: &Entry) -> String {
    let state = if entry.verdict.is_empty() { "running" } else { "complete" };
    state.to_owned()
}

fn read_sweep_facts(entry: &mut Entry, facts: &Value) {
    entry.started = clean_text(&facts["started"]);
    entry.state = clean_text(&facts["state"]);
    entry.target = clean_text(&facts["target"]);
    entry.model = clean_text(&facts["model"]);
    entry.workload = clean_text(&facts["workload"]);
}

/// What is known of a campaign before there is a result.
fn read_request(entry: &mut Entry, asked: &Value) {
    let plan = &asked["plan"];
    entry.target = clean_text(&plan["target"]["url"]);
    entry.model = clean_text(&plan["target"]["model"]);
    entry.workload = clean_text(&plan["workload"]["name"]);
}

/// What a sweep says at its answer; what was beyond that does not count. Without an SLO: the
/// most that points of the curve reached.
fn figures_at_answer(points: &[Value], goodput: &Value) -> ResultFigures {
    let level = |point: &&Value| curves::level_number(&point["ask"]["level"]);
    // Levels pass through files, so the last digit does not make another level.
    let is_at = |point: &&Value, at: f64| {
        level(point).is_some_and(|own| (own - at).abs() <= 1e-9 * at.abs())
    };
    let (is_asked, confirmed) = (goodput.is_object(), goodput["confirmed"].as_f64());
    let is_meant =
        |point: &&Value| !is_asked || confirmed.is_some_and(|confirmed| is_at(point, confirmed));
    let most = |name: &str| {
        let own = points.iter().filter(|point| curves::is_on_curve(point)).filter(is_meant);
        own.filter_map(|point| point["figures"][name].as_f64()).reduce(f64::max)
    };
    let confirmed_rps = goodput["confirmed_rps"].as_f64();
    ResultFigures {
        rps: if is_asked { confirmed_rps } else { most("requests_per_s") },
        output_tps: most("output_tps"),
        goodput_rps: confirmed_rps,
        ..ResultFigures::default()
    }
}

/// The levels of a sweep in a few words, by the points that its page counts.
fn levels_text(plan: &Value, points: &[Value]) -> String {
    let level = |point: &Value| curves::level_number(&point["ask"]["level"]);
    let measured: Vec<f64> =
        points.iter().filter(|point| curves::is_on_curve(point)).filter_map(level).collect();
    let low = measured.iter().copied().reduce(f64::min);
    let high = measured.iter().copied().reduce(f64::max);
    let unit = if plan["axis"] == "rate" { "/s" } else { " users" };
    match low.zip(high) {
        Some((low, high)) => {
            format!("{}–{}{unit}, {} points", number_text(low), number_text(high), measured.len())
        }
        None => String::new(),
    }
}

/// The load of a run that is over.
fn load_text(load: &Value) -> String {
    let arrivals = clean_text(&load["arrivals"]);
    let rate = load["offered_rps"].as_f64();
    let words = match (clean_text(&load["mode"]).as_str(), rate, load["concurrency"].as_u64()) {
        ("", ..) => String::new(),
        (_, _, Some(users)) => format!("{users} users"),
        (_, Some(rate), _) => format!("{}/s {arrivals}", number_text(rate)),
        (mode, ..) => format!("{mode} {}", clean_text(&load["shape"])),
    };
    clip_text(words.trim_end())
}

/// The load of a plan.
fn planned_load_text(mode: &Value) -> String {
    let arrivals = clean_text(&mode["arrivals"]);
    let words = match (clean_text(&mode["kind"]).as_str(), mode["concurrency"].as_u64()) {
        (_, Some(users)) => format!("{users} users"),
        ("open", _) => format!("{} {arrivals}", clean_text(&mode["rate"])),
        (kind, _) => kind.to_owned(),
    };
    clip_text(words.trim_end())
}

/// With at most two digits behind the point, and none that say nothing.
fn number_text(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn clean_text(value: &Value) -> String {
    clip_text(value.as_str().unwrap_or_default())
}

fn first_non_empty(texts: [String; 2]) -> String {
    let [one, other] = texts;
    if one.is_empty() { other } else { one }
}

fn clip_text(text: &str) -> String {
    if text.chars().nth(LONGEST).is_none() {
        return text.to_owned();
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}
