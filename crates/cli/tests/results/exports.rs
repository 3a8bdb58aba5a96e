//! Exports of runs and points, and files of other tools as pages and side by side.

use std::fs;
use std::path::Path;

use crate::support::{Outcome, Session, about_time, undisturbed};
use serde_json::Value;

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../exchange/tests/results");
    folder.join(name).display().to_string()
}

/// Twelve requests of eight tokens, three more to warm up; every fourth request fails.
fn measured() -> Session {
    let session = Session::new();
    let target = "mock:ttft=5ms,itl=1ms,fault=500:1/4";
    let length = ["--input-tokens", "20", "--output-tokens", "8", "--warmup", "3"];
    let load = ["--concurrency", "2", "--num-requests", "12", "--slo", "ttft < 1m, e2e < 2m"];
    session.measure(target, &[&length[..], &load[..]].concat()).0.assert_finished("run");
    session
}

fn lines(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split(',').collect()).collect()
}

fn said(outcome: &Outcome, code: i32, words: &[&str]) {
    assert_eq!(outcome.code, Some(code), "{}", outcome.stderr);
    for word in words {
        assert!(outcome.stderr.contains(word), "`{word}` is not in: {}", outcome.stderr);
    }
}

#[test]
fn a_run_is_written_in_every_shape() {
    undisturbed(every_shape);
}

fn every_shape() {
    let session = measured();
    let report = |args: &[&str]| session.run(&[&["report", "out"], args].concat());
    let csv = report(&["--format", "csv"]);
    said(&csv, 0, &[]);
    let table = lines(&csv.stdout);
    assert_eq!(table.len(), 1 + 15);
    let place = |name: &str| table[0].iter().position(|column| *column == name).unwrap();
    let of = |column: &str, value: &str| {
        table
            .iter()
            .filter(|line| line.get(place(column)).is_some_and(|cell| *cell == value))
            .count()
    };
    assert_eq!((of("phase", "measured"), of("phase", "warmup")), (12, 3));
    let failed = of("error_class", "http_500");
    assert_eq!((of("ok", "false"), of("status", "500")), (failed, failed));
    assert!(failed > 0);
    // The same in a file, which is then all there is.
    let file = report(&["--format", "csv", "--output", "requests.csv"]);
    assert_eq!((file.code, file.stdout.as_str()), (Some(0), ""));
    assert_eq!(fs::read_to_string(session.path("requests.csv")).unwrap(), csv.stdout);

    linked_and_piped(&session, &csv.stdout);

    said(&report(&["--format", "parquet", "--output", "tables"]), 0, &[]);
    for name in ["requests", "chunks", "server"] {
        let bytes = fs::read(session.path(&format!("tables/{name}.parquet"))).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{name}");
    }

    for format in ["vllm", "sglang", "aiperf"] {
        let shape = report(&["--format", format]);
        said(&shape, 0, &[]);
        fs::write(session.path(format), &shape.stdout).unwrap();
        // Our own readers take it for what it looks like.
        let page = session.run(&["report", format, "--json"]);
        said(&page, 0, &[]);
        let page: Value = serde_json::from_str(&page.stdout).unwrap();
        assert_eq!(page[0]["reported"]["model"], "mock", "{format}");
        assert_eq!(page[0]["reported"]["load"]["concurrency"], 2, "{format}");
        assert!(page[0]["audit"]["items"].as_array().unwrap().len() > 5, "{format}");
    }
    let vllm: Value =
        serde_json::from_str(&report(&["--format", "vllm", "--detailed"]).stdout).unwrap();
    assert_eq!(vllm["num_prompts"], 12);
    assert_eq!(vllm["errors"].as_array().unwrap().len(), 12);
    let seconds = vllm["duration"].as_f64().unwrap();
    let rate = vllm["request_goodput"].as_f64().unwrap();
    about_time(|| {
        assert!((rate * seconds - vllm["completed"].as_f64().unwrap()).abs() < 1e-6, "{vllm}");
    });
}

/// A link stays one and so does a FIFO: what they lead to has the table of requests.
fn linked_and_piped(session: &Session, csv: &str) {
    let to = |name: &str| {
        let args = ["report", "out", "--format", "csv", "--output", name];
        said(&session.run(&args), 0, &[]);
    };
    fs::create_dir(session.path("elsewhere")).unwrap();
    let [link, file] = ["link.csv", "elsewhere/file.csv"].map(|name| session.path(name));
    fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    to("link.csv");
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), csv);

    let fifo = session.path("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read_to_string(fifo).unwrap()
    });
    to("fifo");
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&fs::metadata(&fifo).unwrap().file_type()));
    assert_eq!(reader.join().unwrap(), csv);
}

#[test]
fn a_log_that_was_cut_off_is_exported_too() {
    let session = measured();
    let log = session.path("out/requests.log");
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() / 2]).unwrap();
    let manifest = session.path("out/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap().replace("\"complete\"", "\"running\"");
    fs::write(&manifest, text).unwrap();
    let csv = session.run(&["report", "out", "--format", "csv"]);
    said(&csv, 0, &[]);
    assert!((2..16).contains(&lines(&csv.stdout).len()), "{}", csv.stdout);
    said(&session.run(&["report", "out", "--format", "vllm"]), 0, &["the run was killed"]);
    let aiperf = session.run(&["report", "out", "--format", "aiperf"]);
    let file: Value = serde_json::from_str(&aiperf.stdout).unwrap();
    assert_eq!(file["is_complete"], false);
}

#[test]
fn what_cannot_be_exported_is_said() {
    let session = measured();
    fs::write(session.path("out/blocked"), "").unwrap();
    for (args, words) in [
        (&["out", "--format", "csv", "--detailed"][..], &["--detailed needs"][..]),
        (&["out", "--format", "vllm", "--output", "no/such/x.json"], &["cannot write", "hint:"]),
        (&["out", "--format", "parquet", "--output", "out/blocked"], &["cannot create the folder"]),
        (&[&fixture("aiperf-closed.json"), "--format", "csv"], &["request log"]),
        (
            &[&fixture("aiperf-closed.json"), "--format", "junit"],
            &["cannot be shown in this format"],
        ),
        (&[&fixture("README.md")], &["is not JSON", "supported: "]),
    ] {
        said(&session.run(&[&["report"], args].concat()), 2, words);
    }
    // Nothing half written is left behind.
    let names = fs::read_dir(session.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().ends_with(".new")));
}

#[test]
fn files_are_shown_and_compared_without_a_verdict() {
    undisturbed(files_side_by_side);
}

fn files_side_by_side() {
    let session = measured();
    let text = session.run(&["report", &fixture("vllm-python-open-detailed.json")]);
    said(&text, 0, &[]);
    assert!(text.stdout.contains("30 completed, 0 failed"), "{}", text.stdout);
    assert!(text.stdout.contains("SUSPECT"), "{}", text.stdout);
    let page = session.run(&["report", &fixture("aiperf-closed.json"), "--format", "md"]);
    assert!(page.stdout.contains("| ttft | 51.40 |"), "{}", page.stdout);

    // A run of ours against its own export: nothing differs.
    let shape = session.run(&["report", "out", "--format", "vllm", "--output", "ours.json"]);
    said(&shape, 0, &[]);
    let same = session.run(&["compare", "out", "ours.json", "--json"]);
    said(&same, 0, &[]);
    let same: Value = serde_json::from_str(&same.stdout).unwrap();
    assert_eq!(same["sides"][0]["is_converted"], true);
    let figures = same["figures"].as_array().unwrap();
    assert!(figures.len() > 10, "{figures:?}");
    about_time(|| {
        for figure in figures.iter().filter(|figure| figure["because"] == "") {
            let change = figure["change_percent"][1].as_f64();
            assert!(change.is_none_or(|percent| percent.abs() < 1e-9), "{figure}");
        }
    });
    let other = session.run(&["compare", "out", &fixture("aiperf-closed.json")]);
    assert!(other.stdout.contains("not comparable"), "{}", other.stdout);

    let gate = ["compare", "out", "ours.json", "--gate", "ttft p99 <= +5%"];
    said(&session.run(&gate), 2, &["each holds one run"]);
    said(&session.run(&["compare", "out", &fixture("sglang.jsonl")]), 2, &["holds 2 results"]);
    said(&session.run(&["compare", "ours.json", "http://x"]), 2, &["neither a file nor a folder"]);
}
