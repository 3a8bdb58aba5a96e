//! `--repeat`: several runs of one plan, what they say together, and what is left when they are
//! stopped or killed.

use crate::support::{Session, about_time, at, number, outcome, percentile, signal, timed};
use goodput_clock::{now, pause};
use goodput_model::{CaveatCode, Nanos};
use serde_json::Value;

const SHORT: [&str; 9] = [
    "run",
    "mock:ttft=20ms,itl=2ms",
    "--rate",
    "40",
    "--max-tokens",
    "5",
    "--quiet",
    "--out",
    "out",
];

/// A figure of one run.
type Figure = fn(&Value) -> f64;

fn read(session: &Session, file: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(session.path(file)).unwrap()).unwrap()
}

/// Waits until the log of this run has grown past its mark.
fn wait_for_records(session: &Session, run: &str) {
    let deadline = now() + Nanos::from_millis(30_000);
    let log = session.path(&format!("out/{run}/requests.log"));
    while std::fs::metadata(&log).map_or(0, |meta| meta.len()) < 1000 {
        assert!(now() < deadline, "no records in {run} after 30 s");
        pause(Nanos::from_millis(20));
    }
}

#[test]
fn what_runs_say_together_follows_from_each() {
    timed(|| {
        let session = Session::new();
        let args = ["--duration", "1500ms", "--seed", "7", "--repeat", "3", "--json"];
        let all = session.run(&[&SHORT[..], &args].concat());
        all.assert_finished_despite(&[CaveatCode::NothingMeasured], "three runs");
        let found: Value = serde_json::from_str(&all.stdout).unwrap();
        assert_eq!(found["schema"], "goodput.repeats/1");
        about_time(|| assert_eq!((number(&found, "asked"), number(&found, "used")), (3.0, 3.0)));
        let children: Vec<Value> =
            (1..=3).map(|n| read(&session, &format!("out/repeat-{n}/summary.json"))).collect();
        let seeds: Vec<f64> = children.iter().map(|child| number(child, "run.seed")).collect();
        assert_eq!(seeds, [7.0, 8.0, 9.0]);
        let hash = |n: usize| at(&children[n], "run.workload_hash");
        assert!(hash(0) != hash(1) && hash(1) != hash(2), "each has prompts of its own");
        let figures: [(&str, Figure); 3] = [
            ("requests_per_s", |child| number(child, "throughput.requests_per_s")),
            ("ttft_p50", |child| percentile(child, "ttft", "50")),
            ("e2e_p50", |child| percentile(child, "e2e", "50")),
        ];
        // A run that was kept from its processor may leave a figure out.
        about_time(|| {
            for (name, _) in figures {
                assert!(found["headlines"][name]["mean"].is_number(), "{name}: {found}");
            }
        });
        for (name, of) in figures {
            let values: Vec<f64> = children.iter().map(of).collect();
            let mean = values.iter().sum::<f64>() / 3.0;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 2.0;
            let headline = &found["headlines"][name];
            let close = |key: &str, expected: f64| {
                let actual = number(headline, key);
                assert!((actual - expected).abs() < 1e-6 * expected.abs().max(1.0), "{name} {key}");
            };
            close("mean", mean);
            close("sd", variance.sqrt());
            // t(2) is 4.302653 in every table.
            close("high", mean + 4.302_653 * (variance / 3.0).sqrt());
            close("max", values.iter().copied().fold(f64::MIN, f64::max));
        }
        // What was printed is on disk, and follows from the folders alone.
        assert_eq!(std::fs::read_to_string(session.path("out/summary.json")).unwrap(), all.stdout);
        assert_eq!(session.run(&["report", "out", "--json"]).stdout, all.stdout);
        let second = std::fs::read_to_string(session.path("out/repeat-2/summary.json")).unwrap();
        assert_eq!(session.run(&["report", "out/repeat-2", "--json"]).stdout, second);
        let page = session.run(&["report", "out", "-v"]).stdout;
        assert!(page.contains("3 of 3 requested runs") && page.contains("repeat-3"), "{page}");
        let again = session.run(&[&SHORT[..], &["--repeat", "2"]].concat());
        assert_eq!(again.code, Some(2), "the folder is taken: {}", again.stderr);
    });
}

#[test]
fn kill_9_leaves_what_there_is() {
    let session = Session::new();
    let mut child = session.spawn(&[&SHORT[..], &["--duration", "2s", "--repeat", "3"]].concat());
    wait_for_records(&session, "repeat-2");
    child.kill().unwrap();
    child.wait().unwrap();
    // The parent was written when the first run was over.
    assert_eq!(number(&read(&session, "out/summary.json"), "used"), 1.0);
    let report = session.run(&["report", "out", "--json"]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    let found: Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!((number(&found, "asked"), number(&found, "used")), (3.0, 1.0));
    let states: Vec<&Value> =
        found["runs"].as_array().unwrap().iter().map(|run| &run["state"]).collect();
    assert_eq!(states, ["complete", "unfinished"]);
    let first = read(&session, "out/repeat-1/summary.json");
    let rate = number(&first, "throughput.requests_per_s");
    assert!((number(&found, "headlines.requests_per_s.mean") - rate).abs() < 1e-9);
}

#[test]
fn ctrl_c_ends_the_series_with_a_report() {
    let session = Session::new();
    let args = ["--duration", "2s", "--repeat", "3", "--json"];
    let child = session.spawn(&[&SHORT[..], &args].concat());
    wait_for_records(&session, "repeat-2");
    signal(&child, "-INT");
    let outcome = outcome(child.wait_with_output().unwrap());
    assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
    let found: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((number(&found, "asked"), number(&found, "used")), (3.0, 1.0));
    assert_eq!(found["runs"][1]["state"], "interrupted");
    assert!(!session.path("out/repeat-3").exists());
    // Stopped is measured to the instant of the stop.
    let second = read(&session, "out/repeat-2/summary.json");
    assert_eq!(at(&second, "run.ended_by"), "user");
    assert_eq!(at(&second, "run.stopped_s"), at(&second, "window.end_s"));
    assert_eq!(session.run(&["report", "out", "--json"]).stdout, outcome.stdout);
}

#[test]
fn once_is_no_repeat() {
    let session = Session::new();
    for times in ["0", "1", "101"] {
        assert_eq!(session.run(&[&SHORT[..], &["--repeat", times]].concat()).code, Some(2));
    }
    // A target that is not there: no runs, and no report about them.
    let args = ["run", "http://127.0.0.1:9", "--rate", "5", "--repeat", "2", "--out", "gone"];
    let outcome = session.run(&args);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""), "{}", outcome.stderr);
}
