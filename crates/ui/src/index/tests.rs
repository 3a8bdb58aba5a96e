//! An index says what lies in the folders, whatever happened to them or to it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use goodput_files::read_inside;
use goodput_record::ArtifactKind;
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::{FILE, Index, Query};
use crate::entry::{Entry, Shown};
use crate::files::folder_fingerprint;
use crate::live::live_folder;
use crate::notes::Notes;

const MANIFEST: &str = r#"{"state": "complete", "started": "2026-11-16T10:00:00Z",
    "target": {"url": "http://host", "model": "llama"}}"#;

/// A run with a result that holds this rate; the longer the padding, the larger its file.
fn run(folder: &Path, rate: u32, padding: usize) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("manifest.json"), MANIFEST).unwrap();
    fs::write(folder.join("plan.toml"), "[load.mode]\nkind = \"open\"\nrate = \"5/s\"\n").unwrap();
    fs::write(folder.join("requests.log"), "").unwrap();
    let summary = json!({
        "verdict": "valid",
        "run": {"target": "http://host", "model": "llama", "workload": "chat"},
        "load": {"mode": "open", "arrivals": "poisson", "offered_rps": rate},
        "throughput": {"requests_per_s": rate, "output_tokens_per_s": 10 * rate},
        "requests": {"scheduled": 200, "failed": 3},
        "metrics": {"ttft": {"percentiles": {"50": {"value": 20.5, "low": 19.0, "high": 22.0},
                                             "99": {"value": 90.0}}}},
        "padding": "x".repeat(padding),
    });
    fs::write(folder.join("summary.json"), summary.to_string()).unwrap();
}

fn all(index: &Index) -> Vec<Entry> {
    let found = index.find(&Query { most: 1000, ..Query::default() });
    assert_eq!(found.total, found.entries.len());
    found.entries.iter().map(|entry| index.get(&entry.id).unwrap()).collect()
}

fn names(index: &Index) -> Vec<String> {
    let mut names: Vec<String> = all(index).into_iter().map(|entry| entry.name).collect();
    names.sort();
    names
}

/// Something that happens to a folder of runs.
#[derive(Debug, Clone)]
enum Change {
    Write(usize),
    Delete(usize),
    Rename(usize, usize),
    Note(usize),
    Refresh,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0..5_usize).prop_map(Change::Write),
        1 => (0..5_usize).prop_map(Change::Delete),
        1 => (0..5_usize, 0..5_usize).prop_map(|(from, to)| Change::Rename(from, to)),
        2 => (0..5_usize).prop_map(Change::Note),
        2 => Just(Change::Refresh),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn what_was_taken_in_bit_by_bit_is_what_a_new_index_says(
        changes in prop::collection::vec(change(), 1..30)
    ) {
        let root = tempfile::tempdir().unwrap();
        let mut index = Index::in_memory(root.path());
        let place = |number: usize| root.path().join(format!("group-{}/run-{number}", number % 2));
        for (step, change) in changes.iter().enumerate() {
            match change {
                // Of another length each time, as two writes may have one time stamp.
                Change::Write(number) => run(&place(*number), step as u32, step),
                Change::Delete(number) => drop(fs::remove_dir_all(place(*number))),
                Change::Rename(from, to) => drop(fs::rename(place(*from), place(*to))),
                Change::Note(number) => {
                    let notes = Notes::parse("a, b", &"y".repeat(step + 1)).unwrap();
                    let was = Notes::read(&place(*number)).version_mark();
                    let _ = notes.write(&place(*number), &was);
                }
                Change::Refresh => {
                    index.refresh();
                }
            }
        }
        index.refresh();
        let mut anew = Index::in_memory(root.path());
        anew.refresh();
        prop_assert_eq!(all(&index), all(&anew));
        // Nothing is read twice without need.
        prop_assert_eq!(index.refresh(), 0);
    }
}

#[test]
fn an_index_that_is_missing_damaged_or_of_another_version_is_made_again() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..3 {
        run(&root.path().join(format!("run-{number}")), number, 0);
    }
    let file = root.path().join(FILE);
    let opened = || {
        let mut index = Index::open(root.path(), false).unwrap();
        assert!(!index.is_in_memory());
        index.refresh();
        assert_eq!(names(&index), ["run-0", "run-1", "run-2"]);
        index
    };
    drop(opened());
    let whole = fs::read(&file).unwrap();
    for damage in [&b"something else"[..], b"", &whole[..whole.len() / 2], &vec![7; 40_000]] {
        fs::write(&file, damage).unwrap();
        drop(opened());
    }
    let text = String::from_utf8(whole).unwrap();
    let format = "\"format\":5,";
    assert!(text.contains(format), "{text}");
    fs::write(&file, text.replace(format, "\"format\":6,").replace("run-0", "other")).unwrap();
    drop(opened());
    assert!(fs::read_to_string(&file).unwrap().contains(format));
    // While it is in use.
    let mut index = opened();
    fs::write(&file, vec![9; 30_000]).unwrap();
    index.refresh();
    assert_eq!(names(&index), ["run-0", "run-1", "run-2"]);
    drop(index);
    // A link is replaced and not followed.
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    fs::remove_file(&file).unwrap();
    symlink(elsewhere.path(), &file).unwrap();
    drop(opened());
    assert_eq!(fs::read(elsewhere.path()).unwrap(), b"");
    // What cannot be written is kept in memory.
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let mut index = Index::open(root.path(), false).unwrap();
    index.refresh();
    assert!(index.is_in_memory());
    assert_eq!(names(&index), ["run-0", "run-1", "run-2"]);
    assert!(Index::open(&root.path().join("nowhere"), false).is_err());
}

#[test]
fn any_name_is_listed_and_found_and_nothing_is_followed_out() {
    let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let odd: [&[u8]; 6] = [
        b"<script>alert(1)",
        b"'; DROP TABLE entries; --",
        b"line\nend",
        b"no\xfftext",
        b"%2e%2e%2f..",
        "\u{202e}turned %_".as_bytes(),
    ];
    for name in odd {
        run(&root.path().join(OsStr::from_bytes(name)), 7, 0);
    }
    run(&outside.path().join("secret"), 1, 0);
    symlink(outside.path().join("secret"), root.path().join("linked")).unwrap();
    symlink(outside.path(), root.path().join("group")).unwrap();
    run(&root.path().join("borrowed"), 1, 0);
    let borrowed = root.path().join("borrowed/summary.json");
    fs::remove_file(&borrowed).unwrap();
    symlink(outside.path().join("secret/summary.json"), &borrowed).unwrap();
    let mut index = Index::in_memory(root.path());
    index.refresh();
    let entries = all(&index);
    assert_eq!(entries.len(), odd.len() + 1, "{entries:?}");
    for entry in &entries {
        let folder = index.folder(entry).unwrap();
        assert_eq!(folder, index.root().join(&entry.path));
        let is_whole = entry.name != "borrowed";
        assert_eq!(entry.verdict == "valid", is_whole, "{entry:?}");
        assert_eq!(folder_fingerprint(&folder).is_some(), is_whole);
    }
    let found = |words: &str| {
        let query = Query { words: words.to_owned(), most: 10, ..Query::default() };
        index.find(&query).total
    };
    assert_eq!((found("'; drop"), found("%_"), found("%"), found("LLAMA host")), (1, 1, 2, 7));
    assert_eq!(found("\" OR 1=1 --"), 0);
    for id in ["..", "../..", "/etc/passwd", "%2e%2e", "\0", "' OR '1'='1", ""] {
        assert_eq!(index.get(id), None, "{id}");
    }
    // What is a link by now leads nowhere.
    let gone = entries.iter().find(|entry| entry.name == "line\nend").unwrap();
    fs::remove_dir_all(root.path().join("line\nend")).unwrap();
    symlink(outside.path().join("secret"), root.path().join("line\nend")).unwrap();
    assert_eq!(index.folder(gone), None);
    assert!(read_inside(&borrowed, 1 << 20).is_err());
}

#[test]
fn notes_are_kept_whole_in_the_folder_of_the_run() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("run");
    run(&folder, 1, 0);
    let none = Notes::read(&folder);
    assert_eq!(none, Notes::default());
    let notes = Notes::parse(" a , b\n c,,a", "one\r\ntwo\n\n").unwrap();
    assert_eq!(notes.tags, ["a", "b c"]);
    assert_eq!(notes.text, "one\ntwo");
    notes.write(&folder, &none.version_mark()).unwrap();
    assert_eq!(Notes::read(&folder), notes);
    // Who saw other notes does not write over these.
    assert!(Notes::default().write(&folder, &none.version_mark()).is_err());
    assert_eq!(Notes::read(&folder), notes);
    // A link in its place, or in that of the new file, is not followed.
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::remove_file(folder.join("notes.json")).unwrap();
    symlink(outside.path(), folder.join("notes.json")).unwrap();
    symlink(outside.path(), folder.join(".notes.json.new")).unwrap();
    assert!(notes.write(&folder, &none.version_mark()).is_err());
    fs::remove_file(folder.join("notes.json")).unwrap();
    notes.write(&folder, &none.version_mark()).unwrap();
    assert_eq!(fs::read(outside.path()).unwrap(), b"");
    assert_eq!(Notes::read(&folder), notes);
    // What cannot be read may be notes of a user: it is not overwritten.
    fs::write(folder.join("notes.json"), "{\"text\": \"mine\"").unwrap();
    assert_eq!(Notes::read(&folder), none);
    let refused = notes.write(&folder, &none.version_mark()).unwrap_err();
    assert!(refused.to_string().contains("cannot be read"), "{refused}");
    assert_eq!(fs::read(folder.join("notes.json")).unwrap(), b"{\"text\": \"mine\"");
    fs::write(folder.join("notes.json"), "").unwrap();
    notes.write(&folder, &none.version_mark()).unwrap();
    assert!(Notes::parse("", &"x".repeat(64 * 1024 + 1)).is_err());
    assert!(Notes::parse(&"x".repeat(41), "").is_err());
    let many: Vec<String> = (0..21).map(|tag| tag.to_string()).collect();
    assert!(Notes::parse(&many.join(","), "").is_err());
}

/// A folder with one sweep of two points and one that only warms up.
fn sweep() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("sweep");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("sweep.toml"), "[plan.target]\nurl = \"http://host\"\n").unwrap();
    let point = |purpose: &str, rate: f64| {
        json!({"ask": {"purpose": purpose, "level": {"rate": rate}},
               "figures": {"verdict": "valid", "offered_rps": rate, "requests_per_s": rate - 0.5,
                           "output_tps": 100.0 * rate,
                           "ttft_ms": {"p99": {"value": 10.0 * rate, "low": 1.0, "high": null}}}})
    };
    let summary = json!({
        "verdict": "suspect",
        "sweep": {"started": "2026-11-16T11:00:00Z", "state": "complete", "target": "http://host",
                  "model": "m", "workload": "chat"},
        "plan": {"axis": "rate"},
        "goodput": {"state": "found", "slo": "p99 ttft < 1s", "confirmed": 20.0,
                    "confirmed_rps": 20.0},
        "points": [point("warm_up", 99.0), point("level", 20.0), point("level", 10.0)],
    });
    fs::write(folder.join("summary.json"), summary.to_string()).unwrap();
    root
}

#[test]
fn a_result_is_told_by_its_figures_and_its_curve() {
    let root = sweep();
    run(&root.path().join("run"), 8, 0);
    let mut index = Index::in_memory(root.path());
    index.refresh();
    let entries = all(&index);
    let [sweep, run] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((sweep.kind, sweep.load.as_str()), (ArtifactKind::Sweep, "10–20/s, 2 points"));
    assert_eq!((sweep.figures.rps, sweep.figures.output_tps), (Some(20.0), Some(2000.0)));
    assert_eq!(sweep.says, "keeps p99 ttft < 1s");
    let [curve] = sweep.curves.as_slice() else { panic!("{:?}", sweep.curves) };
    let points: Vec<_> =
        curve.points.iter().map(|point| (point.rps, point.ttft.p99.unwrap().value)).collect();
    assert_eq!(points, [(Some(10.0), 100.0), (Some(20.0), 200.0)]);
    assert_eq!((run.kind, run.load.as_str()), (ArtifactKind::Run, "8/s poisson"));
    let ttft = Shown { value: 20.5, is_rough: false };
    assert_eq!((run.figures.ttft_p50_ms, run.figures.failed), (Some(ttft), Some(0.015)));
    let of = |kind, verdict: Option<&str>| {
        let verdict = verdict.map(str::to_owned);
        index.find(&Query { kind, verdict, most: 9, ..Query::default() }).total
    };
    assert_eq!((of(Some(ArtifactKind::Sweep), None), of(None, Some("valid"))), (1, 1));
    assert_eq!(of(Some(ArtifactKind::Sweep), Some("valid")), 0);
    let page = index.find(&Query { skip: 1, most: 1, ..Query::default() });
    assert_eq!((page.total, page.entries[0].kind), (2, ArtifactKind::Run));
}

#[test]
fn a_shadow_is_told_by_what_was_asked_and_found() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("shadow");
    fs::create_dir_all(&folder).unwrap();
    let asked = "share = 0.05\nstarted = \"2026-11-16T09:00:00Z\"\n[[sides]]\ntarget = \"http://a\"\n\
                 [[sides]]\ntarget = \"http://b\"\n";
    fs::write(folder.join("shadow.toml"), asked).unwrap();
    let read = || {
        let mut index = Index::in_memory(root.path());
        index.refresh();
        all(&index).remove(0)
    };
    let begun = read();
    assert_eq!((begun.kind, begun.state.as_str()), (ArtifactKind::Shadow, "running"));
    assert_eq!(
        (begun.load.as_str(), begun.target.as_str()),
        ("5 % of live", "http://a against http://b")
    );
    assert_eq!((begun.started.as_str(), begun.says.as_str()), ("2026-11-16T09:00:00Z", ""));
    let summary = json!({
        "verdict": "valid", "outcome": "worse", "comparison": {"state": "interrupted"},
        "sides": [{"target": "http://a", "model": "m"}, {"target": "http://b", "model": "m"}],
    });
    fs::write(folder.join("summary.json"), summary.to_string()).unwrap();
    let over = read();
    // Before the end that was asked for: one without an end is complete when it is stopped.
    assert_eq!((over.state.as_str(), over.says.as_str()), ("interrupted", "worse"));
    assert_eq!((over.workload.as_str(), over.model.as_str()), ("live traffic", "m"));
    assert!(over.curves.is_empty());
}

#[test]
fn what_goes_on_is_found_within_a_sweep() {
    let root = sweep();
    let folder = root.path().join("sweep");
    let point = folder.join("points/002-rate-20");
    run(&point, 20, 0);
    assert_eq!(live_folder(&folder), None);
    fs::write(point.join("manifest.json"), r#"{"state": "running"}"#).unwrap();
    assert_eq!(live_folder(&folder), Some(point.clone()));
    assert_eq!(live_folder(&point), Some(point.clone()));
    // Without a result it goes on, or was killed.
    fs::remove_file(folder.join("summary.json")).unwrap();
    let mut index = Index::in_memory(root.path());
    index.refresh();
    assert_eq!(all(&index)[0].state, "running");
    assert_eq!(all(&index)[0].target, "http://host");
}

#[test]
fn nonsense_in_every_file_is_listed_with_less_to_say() {
    let root = tempfile::tempdir().unwrap();
    let all_nonsense = ["", "[]", "{\"verdict\": {}}", "null", "{\"points\": 3}", "\u{0}"];
    for (number, nonsense) in all_nonsense.iter().enumerate() {
        let folder = root.path().join(format!("run-{number}"));
        fs::create_dir(&folder).unwrap();
        for name in ["manifest.json", "plan.toml", "requests.log", "summary.json", "notes.json"] {
            fs::write(folder.join(name), nonsense).unwrap();
        }
    }
    let mut index = Index::in_memory(root.path());
    index.refresh();
    assert_eq!(all(&index).len(), 6);
}

#[test]
fn a_curve_is_of_sound_points_by_their_level() {
    let root = sweep();
    let path = root.path().join("sweep/summary.json");
    let point = |purpose: &str, users: u32, rps: f64| {
        json!({"ask": {"purpose": purpose, "level": {"users": users}},
               "figures": {"verdict": "valid", "requests_per_s": rps, "window_s": 10.0},
               "standing": {"state": "unclear", "because": "nothing"}})
    };
    let spoiled = |part: &str, name: &str, value: serde_json::Value| {
        let mut point = point("grid", 99, 99.0);
        point[part][name] = value;
        point
    };
    let mut summary: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    summary["plan"]["axis"] = json!("users");
    // With eight users the server answers less than with four, at times.
    summary["points"] = json!([
        point("grid", 8, 20.0),
        point("grid", 4, 19.0),
        point("anchor", 4, 21.0),
        point("twin", 99, 99.0),
        spoiled("figures", "verdict", json!("void")),
        spoiled("figures", "ended_by", json!("user")),
        spoiled("figures", "window_s", json!(0.0)),
        spoiled("standing", "because", json!("client")),
        spoiled("standing", "because", json!("server_gone")),
        spoiled("standing", "because", json!("interrupted")),
    ]);
    fs::write(&path, summary.to_string()).unwrap();
    let mut index = Index::in_memory(root.path());
    index.refresh();
    let entries = all(&index);
    let points: Vec<_> =
        entries[0].curves[0].points.iter().map(|point| (point.at, point.rps)).collect();
    let known = [(4.0, 19.0), (4.0, 21.0), (8.0, 20.0)];
    assert_eq!(points, known.map(|(at, rps)| (Some(at), Some(rps))));
    // The page of the sweep counts the same.
    assert_eq!(entries[0].load, "4–8 users, 3 points");
}

/// What was offered beyond the answer is not what the server carries.
#[test]
fn a_sweep_shows_its_answer_and_not_the_most_that_was_tried() {
    let root = sweep();
    let path = root.path().join("sweep/summary.json");
    let summary: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let figures = |goodput: serde_json::Value| {
        let mut changed = summary.clone();
        changed["goodput"] = goodput;
        fs::write(&path, changed.to_string()).unwrap();
        let mut index = Index::in_memory(root.path());
        index.refresh();
        let figures = all(&index)[0].figures.clone();
        (figures.rps, figures.output_tps, figures.goodput_rps)
    };
    let found = json!({"state": "found", "confirmed": 10.0, "confirmed_rps": 9.75});
    assert_eq!(figures(found), (Some(9.75), Some(1000.0), Some(9.75)));
    assert_eq!(figures(json!({"state": "unreachable", "confirmed": null})), (None, None, None));
    // Without an SLO.
    assert_eq!(figures(json!(null)), (Some(19.5), Some(2000.0), None));
}

/// The list shows no percentile that the page of its run refuses.
#[test]
fn percentiles_stand_by_their_quality() {
    let root = tempfile::tempdir().unwrap();
    run(&root.path().join("run"), 8, 0);
    let path = root.path().join("run/summary.json");
    let summary: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let p99 = |percentile: serde_json::Value| {
        let mut changed = summary.clone();
        changed["metrics"]["ttft"]["percentiles"]["99"] = percentile;
        fs::write(&path, changed.to_string()).unwrap();
        let mut index = Index::in_memory(root.path());
        index.refresh();
        let entry = all(&index).remove(0);
        let drawn = entry.curves[0].points[0].ttft.p99.map(|p99| p99.value);
        assert_eq!(entry.figures.ttft_p99_ms.map(|shown| shown.value), drawn);
        entry.figures.ttft_p99_ms
    };
    let plain = Some(Shown { value: 51.5, is_rough: false });
    assert_eq!(p99(json!({"value": 51.5})), plain, "a file from before there were qualities");
    for (quality, shown) in [
        ("ok", plain),
        ("few", plain),
        ("rough", Some(Shown { value: 51.5, is_rough: true })),
        ("not_estimable", None),
        ("unheard_of", None),
    ] {
        assert_eq!(p99(json!({"value": 51.5, "quality": quality})), shown, "{quality}");
    }
    assert_eq!(p99(json!({"value": 51.5, "quality": "ok", "is_censored": true})), None);
}
