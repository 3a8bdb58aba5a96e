//! `goodput compare` on folders: saved runs, a saved baseline on a server, and what a CI takes.

use std::fs;
use std::sync::OnceLock;

use crate::support::{Outcome, Session, about_time, alone, at, number, percentile, undisturbed};
use serde_json::Value;

/// The engine that the baseline was measured on, and one that takes twice as long.
const ENGINE: &str = "mock:ttft=50ms,itl=10ms";
const SLOW: &str = "mock:ttft=100ms,itl=20ms";

/// A third of a second on the first of them.
const LOAD: [&str; 8] =
    ["--concurrency", "4", "--num-requests", "16", "--max-tokens", "4", "--warmup", "0s"];

/// Series that all tests share: `long` has another workload, the answers of `short` break off, and
/// the server of `other` counts more tokens in the same text.
fn lab() -> &'static Session {
    static LAB: OnceLock<Session> = OnceLock::new();
    LAB.get_or_init(|| {
        let _alone = alone();
        let session = Session::new();
        let series = [("base", ENGINE, "7", 3), ("again", ENGINE, "70", 2), ("slow", SLOW, "7", 3)];
        for (out, target, seed, repeats) in series {
            let args = ["--seed", seed, "--slo", "ttft < 75ms"];
            measure(&session, (out, repeats), target, &[&LOAD[..], &args].concat());
        }
        let other = ["--concurrency", "4", "--num-requests", "16", "--max-tokens", "8"];
        measure(&session, ("long", 2), ENGINE, &other);
        let same = [&LOAD[..], &["--seed", "7"]].concat();
        measure(&session, ("short", 2), &format!("{ENGINE},fault=early-eos"), &same);
        measure(&session, ("other", 2), &format!("{ENGINE},token_factor=1.15"), &same);
        session
    })
}

/// On a busy machine the client may have been late, and a run is rightly void: then it is measured
/// again, so often at most.
const TRIES: usize = 12;

/// A series of this many runs.
fn measure(session: &Session, (out, repeats): (&str, u32), target: &str, args: &[&str]) {
    let count = repeats.to_string();
    for _ in 0..TRIES {
        let _ = fs::remove_dir_all(session.path(out));
        let all = ["run", target, "--quiet", "--repeat", &count, "--out", out];
        let all = [&all[..], args].concat();
        let outcome = session.run(&all);
        // A missed SLO (4) is expected here.
        assert!(matches!(outcome.code, Some(0 | 4 | 5)), "{out}: {}", outcome.stderr);
        if (1..=repeats).all(|number| saved(session, out, number)["verdict"] != "void") {
            return;
        }
    }
    panic!("{out}: {TRIES} times in a row a run was void");
}

/// The summary of a run of a series.
fn saved(session: &Session, series: &str, number: u32) -> Value {
    let path = session.path(&format!("{series}/repeat-{number}/summary.json"));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A comparison in the lab, with its summary.
fn compare(args: &[&str]) -> (Outcome, Value) {
    compared(lab(), args)
}

fn compared(session: &Session, args: &[&str]) -> (Outcome, Value) {
    let outcome = session.run(&[&["compare", "--json", "--quiet"][..], args].concat());
    let found = serde_json::from_str(&outcome.stdout).unwrap_or(Value::Null);
    assert!(!found.is_null(), "no summary: {:?} {}", outcome.code, outcome.stderr);
    (outcome, found)
}

/// A comparison that must not come about.
fn refused(session: &Session, args: &[&str], expected: &str) {
    let outcome = session.run(&[&["compare"][..], args].concat());
    assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.stderr);
    assert!(outcome.stderr.contains(expected), "{args:?}: {}", outcome.stderr);
    assert!(outcome.stderr.contains("hint:"), "{args:?}: {}", outcome.stderr);
}

fn finding<'a>(found: &'a Value, metric: &str) -> &'a Value {
    let all = found["findings"].as_array().unwrap();
    all.iter().find(|finding| finding["metric"] == metric).unwrap_or_else(|| panic!("no {metric}"))
}

fn codes(found: &Value) -> Vec<&str> {
    let all = found["differences"].as_array().unwrap();
    let refusing = all.iter().filter(|difference| difference["matter"] == "refuse");
    refusing.map(|difference| difference["code"].as_str().unwrap()).collect()
}

/// The geometric mean of a percentile over the runs of a series.
fn mean_of(series: &str, metric: &str, percent: &str) -> f64 {
    let logs =
        (1..=3).map(|number| percentile(&saved(lab(), series, number), metric, percent).ln());
    (logs.sum::<f64>() / 3.0).exp()
}

#[test]
fn two_series_say_which_is_slower() {
    let (outcome, found) = compare(&["base", "slow"]);
    assert_eq!(found["schema"], "goodput.comparison/1");
    assert_eq!((&found["is_paired"], codes(&found)), (&Value::Bool(false), vec![]));
    let names: Vec<&Value> =
        found["sides"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["base", "slow"]);
    let ttft = finding(&found, "ttft_p50");
    let change = mean_of("slow", "ttft", "50") / mean_of("base", "ttft", "50") - 1.0;
    assert!((number(ttft, "change") - change).abs() < 1e-9, "{ttft}");
    assert_eq!((number(ttft, "n"), ttft["outcome"].as_str()), (3.0, Some("worse")), "{ttft}");
    assert!(number(ttft, "low") < change && change < number(ttft, "high"), "{ttft}");
    assert_eq!((outcome.code, found["outcome"].as_str()), (Some(4), Some("worse")), "{found}");
    // The same server the other way round.
    let (outcome, found) = compare(&["base", "slow", "--reference", "slow"]);
    assert_eq!(finding(&found, "ttft_p50")["outcome"], "better", "{found}");
    assert!(matches!(outcome.code, Some(0 | 5)), "{:?}", outcome.code);
}

#[test]
fn what_is_the_same_is_equivalent_within_a_wide_margin() {
    let (outcome, found) =
        compare(&["base", "again", "--gate", "p50 ttft < +50%, p50 tpot < +60%"]);
    assert_eq!(codes(&found), [""; 0], "{found}");
    assert_eq!(outcome.code, Some(0), "{found}");
    // Runs of one name are one side.
    let sides = ["a=base", "a=again", "b=slow", "--gate", "p50 ttft < +50%"];
    let (outcome, found) = compare(&sides);
    assert_eq!(found["runs"].as_array().unwrap().len(), 8);
    assert_eq!(outcome.code, Some(4), "{found}");
}

#[test]
fn single_runs_have_no_verdict_and_nothing_is_written() {
    let (outcome, found) = compare(&["base/repeat-1", "slow/repeat-1"]);
    assert_eq!((outcome.code, found["outcome"].as_str()), (Some(5), Some("no_verdict")), "{found}");
    assert!(!lab().path("runs").exists());
    let ttft = finding(&found, "ttft_p50");
    assert_eq!((number(ttft, "n"), &ttft["outcome"]), (1.0, &Value::from("no_verdict")), "{ttft}");
}

#[test]
fn another_workload_and_broken_answers_are_refused() {
    for (other, code, metric) in [
        ("long", "workload_hash", "ttft_p50"),
        // Times of tokens are what they were; rates are not.
        ("short", "output_length", "output_tokens_per_s"),
        ("other", "tokenizer", "output_tokens_per_s"),
    ] {
        let (outcome, found) = compare(&["base", other]);
        assert!(codes(&found).contains(&code), "{other}: {found}");
        assert_eq!(finding(&found, metric)["outcome"], "no_verdict", "{other}: {found}");
        assert_ne!(outcome.code, Some(0), "{other}: {found}");
        // Who insists is told all the same.
        let (_, found) = compare(&["base", other, "--anyway"]);
        assert!(codes(&found).contains(&code), "{other}: {found}");
        assert_ne!(finding(&found, metric)["outcome"], "no_verdict", "{other}: {found}");
    }
}

#[test]
fn an_slo_of_today_is_held_against_runs_of_yesterday() {
    let compare = |args: &[&str]| compare(&[&["base", "slow"][..], args].concat()).1;
    let (then, now) = (compare(&[]), compare(&["--slo", "ttft < 10s"]));
    refused(lab(), &["base", "long", "--gate", "goodput > -3%"], "needs an SLO");
    let of = |found: &Value| {
        let attainment = finding(found, "attainment");
        (number(attainment, "reference"), number(attainment, "candidate"))
    };
    // The slow server has no first token within 75 ms.
    assert_eq!((of(&then).1, of(&now)), (0.0, (1.0, 1.0)));
}

#[test]
fn a_kept_comparison_can_be_shown_again() {
    let (_, found) = compare(&["base", "slow", "--out", "kept"]);
    let written = fs::read_to_string(lab().path("kept/summary.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), found);
    let page = fs::read_to_string(lab().path("kept/report.txt")).unwrap();
    let shown = |format: &str| lab().run(&["report", "kept", "-v", "--format", format]).stdout;
    assert_eq!((shown("text"), shown("json")), (page, written));
    assert!(shown("junit").contains("<testsuite"), "{}", shown("junit"));
    assert!(shown("markdown").contains("slow"), "{}", shown("markdown"));
    let browser = fs::read_to_string(lab().path("kept/report.html")).unwrap();
    assert_eq!(shown("html"), browser);
    assert!(browser.contains("id=\"forest\""), "{browser}");
    refused(lab(), &["base", "slow", "--out", "kept"], "not empty");
    refused(lab(), &["base", "kept"], "is a comparison");
}

/// The baseline on its own engine and on the slow one, each a comparison with its gate.
fn on_both_engines() -> (Session, [(Outcome, Value); 2]) {
    let session = Session::new();
    let base = lab().path("base").display().to_string();
    fs::write(session.path("summary.md"), "what stood there").unwrap();
    let _alone = alone();
    let measured = |args: &[&str]| {
        let gate = ["--gate", "p50 ttft < +50%", "--markdown", "summary.md", "--junit"];
        compared(&session, &[&[&*base][..], &args[..1], &gate, &args[1..]].concat())
    };
    let both = [measured(&[ENGINE, "same.xml", "--out", "first"]), measured(&[SLOW, "slow.xml"])];
    (session, both)
}

#[test]
fn a_baseline_holds_or_does_not() {
    undisturbed(|| {
        let is_sound = |(_, both): &(_, [(Outcome, Value); 2])| {
            let mut runs = both.iter().flat_map(|(_, found)| found["runs"].as_array().unwrap());
            runs.all(|run| run["verdict"] != "void")
        };
        let (session, [(outcome, found), (slow_outcome, slow)]) =
            std::iter::repeat_with(on_both_engines)
                .take(TRIES)
                .find(is_sound)
                .expect("void each time");
        let runs = found["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 6);
        // The same requests, by what the plan says and by what was sent.
        let hashes = |side: u64| -> Vec<&Value> {
            let own = runs.iter().filter(|run| at(run, "ask.side").as_u64() == Some(side));
            own.map(|run| at(run, "facts.workload_hash")).collect()
        };
        assert_eq!(hashes(0), hashes(1));
        assert!(session.path("first/side-2/repeat-3/summary.json").is_file());
        assert_eq!(codes(&found), [""; 0], "{found}");
        about_time(|| assert_eq!(outcome.code, Some(0), "{found}"));
        let junit = fs::read_to_string(session.path("same.xml")).unwrap();
        about_time(|| {
            assert!(junit.contains("<testcase") && !junit.contains("<failure"), "{junit}");
        });
        about_time(|| assert_eq!(slow_outcome.code, Some(4), "{slow}"));
        let junit = fs::read_to_string(session.path("slow.xml")).unwrap();
        assert_eq!(junit.matches("<failure").count(), 1, "{junit}");
        assert_eq!(junit.matches("<testsuites").count(), 1, "{junit}");
        let pages = fs::read_to_string(session.path("summary.md")).unwrap();
        assert!(pages.starts_with("what stood there\n"), "{pages}");
        assert_eq!(pages.matches("\n# ").count() + pages.matches("\n## ").count(), 2, "{pages}");
        // Without --out what was measured has a folder of its own.
        let kept: Vec<_> = fs::read_dir(session.path("runs")).unwrap().flatten().collect();
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert!(kept[0].path().join("report.txt").is_file());
    });
}

#[test]
fn what_cannot_be_compared_is_said_before_anything_is_measured() {
    let session = lab();
    refused(session, &["base", ENGINE, "--rate", "5"], "--rate comes from the baseline's plan");
    refused(
        session,
        &["base", "slow", "--duration", "5s"],
        "--duration does not apply to saved results",
    );
    refused(session, &["base", "slow", "--count-with", "approximate"], "--count-with");
    refused(session, &[ENGINE, "base"], "the reference is a server");
    refused(session, &["base", "bsae"], "neither a folder nor a URL");
    refused(session, &["base", "base/."], "named twice");
    refused(session, &["base"], "two targets");
    refused(session, &["base", "slow", "--gpus", "1,2,3"], "--gpus");
    // Of a baseline too, and before its runs are measured again.
    refused(session, &["base", ENGINE, "--gpus", "1,2,3", "--out", "lost"], "--gpus");
    let gate = "recounted_tokens_per_s > -3%";
    refused(session, &["base", ENGINE, "--gate", gate, "--out", "lost"], "counted");
    assert!(!session.path("lost").exists());
    refused(session, &["base", "slow", "--junit", "nowhere/gate.xml"], "does not exist");
    refused(session, &["base", "slow", "--markdown", "base"], "folder");
    fs::create_dir_all(session.path("empty")).unwrap();
    refused(session, &["base", "empty"], "not a run folder");
    // Nothing listens there, and nothing is left behind.
    let gone = session.run(&["compare", "base", "http://127.0.0.1:9", "--quiet", "--out", "gone"]);
    assert_eq!(gone.code, Some(3), "{}", gone.stderr);
    assert!(!session.path("gone").exists());
}
