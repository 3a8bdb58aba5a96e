//! `goodput audit` on simulated runs, written as the result files of each tool: honest ones, of whose
//! figures nothing is said, and the same with one defect, which is found.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod plants;
mod runs;

use std::collections::BTreeMap;

use goodput_model::{Api, Severity};
use goodput_stats::{Audit, Item};
use serde_json::Value;

use plants::{KINDS, Kind, Plant};
use runs::{Scene, Sent, Shape, audit};

const OPEN: Sent = Sent::Poisson(0.6);
const SEED: u64 = 6;
/// Fewer kinds of defects say little.
const LEAST: usize = 55;

fn raised(audit: &Audit) -> impl Iterator<Item = &Item> {
    audit.items.iter().filter(|item| item.severity > Severity::Info)
}

fn severity(audit: &Audit, check: &str) -> Severity {
    let of_check = raised(audit).filter(|item| item.check == check);
    of_check.map(|item| item.severity).max().unwrap_or(Severity::Info)
}

/// A clean file and what is said of it, by who wrote it and whether the loop was open.
type Clean = BTreeMap<(Shape, bool), (Audit, Value)>;

/// What to say where the check that must find a defect does not speak of it, or as loud without it.
fn not_found((kind, shape, plant, check): &Kind, clean: &Clean) -> Option<String> {
    let (before, file) = &clean[&(*shape, !matches!(plant, Plant::Closed(_)))];
    let mut file = file.clone();
    match plant {
        Plant::File(change) | Plant::Closed(change) => change(&mut file),
        Plant::Run(change) => {
            let mut scene = Scene::new(SEED, 1_000, OPEN);
            change(&mut scene);
            file = scene.files(&[*shape]).remove(0).1;
        }
    }
    let after = audit(*shape, &file);
    (severity(&after, check) <= severity(before, check)).then(|| {
        let all: Vec<_> = raised(&after).map(|item| &item.check).collect();
        format!("{kind} ({}) by {check}; raised are {all:?}", shape.name())
    })
}

#[test]
fn each_kind_of_defect_is_found_for_the_right_reason() {
    let mut clean = Clean::new();
    for sent in [OPEN, Sent::Closed(20)] {
        for (shape, file) in Scene::new(SEED, 1_000, sent).files(&Shape::EVERY) {
            clean.insert((shape, sent == OPEN), (audit(shape, &file), file));
        }
    }
    let missed: Vec<_> = KINDS.iter().filter_map(|kind| not_found(kind, &clean)).collect();
    assert!(missed.is_empty(), "{} of {} are not found: {missed:#?}", missed.len(), KINDS.len());
}

/// The rows of the table: each kind once, with the files it was planted in.
fn rows() -> Vec<String> {
    let mut rows: Vec<(&str, Vec<&str>, Vec<&str>)> = Vec::new();
    for (kind, shape, _, check) in KINDS {
        let place = rows.iter().position(|(known, ..)| known == kind).unwrap_or(rows.len());
        if place == rows.len() {
            rows.push((kind, Vec::new(), Vec::new()));
        }
        let (_, shapes, checks) = &mut rows[place];
        shapes.push(shape.name());
        if !checks.contains(check) {
            checks.push(check);
        }
    }
    let row = |(kind, shapes, checks): &(&str, Vec<&str>, Vec<&str>)| {
        format!("| {kind} | {} | `{}` |", shapes.join("; "), checks.join("`, `"))
    };
    rows.iter().map(row).collect()
}

#[test]
fn the_table_is_published() {
    let document = include_str!("../../../../docs/audit.md");
    let rows = rows();
    assert!(rows.len() >= LEAST, "{} kinds", rows.len());
    assert!(document.contains(&rows.join("\n")), "docs/audit.md needs\n{}", rows.join("\n"));
    let count = format!("{} kinds of defects in {} files", rows.len(), KINDS.len());
    assert!(document.contains(&count), "docs/audit.md needs \"{count}\"");
}

/// What is said of how a run was made, and true of it.
fn is_true(scene: &Scene, shape: Shape, check: &str) -> bool {
    let is_open = matches!(scene.sent, Sent::Poisson(_) | Sent::Evenly(_));
    match check {
        "duration" | "duration_vs_latency" | "p99_samples" | "drain" | "warmup" => true,
        "open_loop" => !is_open,
        "failures" | "own_remarks" => scene.failing > 0,
        "coalesced_chunks" => scene.per_event > 1,
        "first_token" => scene.api == Api::Chat,
        "arrivals" => matches!(shape, Shape::Guidellm | Shape::GuidellmAll),
        // A run of ours tells by itself what is wrong with it.
        _ => shape == Shape::Ours && (check == "own_verdict" || check.starts_with("caveat_")),
    }
}

/// What is asked of the course of a run has a chance to err, which docs/design/013 states.
fn is_test(check: &str) -> bool {
    matches!(check, "cold_requests" | "latency_trend")
}

#[test]
fn nothing_is_said_of_the_figures_of_honest_files() {
    let loads =
        [0.3, 0.6, 0.9].map(Sent::Poisson).into_iter().chain([Sent::Evenly(0.6), Sent::AtOnce]);
    let loads: Vec<_> = loads.chain([Sent::Closed(12)]).collect();
    let (mut files, mut by_chance, mut alarms) = (0, 0, Vec::new());
    for (place, sent) in loads.iter().enumerate() {
        for (kind, (per_event, failing)) in [(1, 0), (3, 0), (1, 25), (3, 20)].iter().enumerate() {
            let seed = (10 * place + kind) as u64;
            let scene = Scene {
                api: if kind % 2 == 1 { Api::Chat } else { Api::Completions },
                per_event: *per_event,
                failing: *failing,
                ..Scene::new(seed, [60, 120, 200, 300][seed as usize % 4], *sent)
            };
            for (shape, file) in scene.files(&Shape::EVERY) {
                files += 1;
                let audit = audit(shape, &file);
                by_chance += raised(&audit).filter(|item| is_test(&item.check)).count();
                let is_false =
                    |item: &&Item| !is_test(&item.check) && !is_true(&scene, shape, &item.check);
                alarms.extend(raised(&audit).filter(is_false).map(|item| {
                    let Item { check, evidence, .. } = item;
                    format!("{} of {scene:?}: {check}: {evidence}", shape.name())
                }));
            }
        }
    }
    assert!(files >= 200, "{files}");
    // A third of them hold their requests.
    assert!(by_chance <= files / 50, "{by_chance} of {files}");
    assert!(alarms.is_empty(), "{} in {files} files: {alarms:#?}", alarms.len());
}
