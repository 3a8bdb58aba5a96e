//! `goodput capacity`, through the binary and real files.

#[path = "../../../campaign/src/capacity/tests/fixture.rs"]
mod fixture;

use crate::support::{Outcome, Session, number};
use goodput_campaign as campaign;
use goodput_campaign::sweep::{Configuration, GoodputState, SweepSummary, Sweeps};
use goodput_sim::Profile;
use serde::Serialize;
use serde_json::Value;

const SEED: [&str; 7] =
    ["capacity", "--goodput-rps", "22", "--gpus-per-replica", "8", "--target-rps", "100"];

fn json(session: &Session, args: &[&str]) -> Value {
    let mut all = args.to_vec();
    all.push("--json");
    let outcome = session.run(&all);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap()
}

fn write(session: &Session, name: &str, value: &impl Serialize) {
    let path = session.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, serde_json::to_vec(value).unwrap()).unwrap();
}

/// The small engine of the fixture: 66 requests/s are confirmed, 68 rejected.
fn sweep() -> SweepSummary {
    let profile = Profile::parse(fixture::ENGINE).unwrap();
    let rates = [5.0, 20.0, 40.0, 60.0, 66.0, 68.0];
    let mut sweep = fixture::simulated(&profile, &rates, 66.0, 68.0);
    for point in &mut sweep.points {
        point.point.figures.gpu_power_w = Some(5000.0);
    }
    sweep
}

/// Ended with a usage error that says this, and with advice.
fn refused(outcome: &Outcome, what: &str) {
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(what), "{what}: {}", outcome.stderr);
    assert!(outcome.stderr.contains("hint: "), "{}", outcome.stderr);
    assert!(outcome.stdout.is_empty());
}

#[test]
fn the_seed_s_example() {
    let session = Session::new();
    let plan = json(&session, &SEED);
    assert_eq!(plan["schema"], "goodput.capacity/1");
    let fleet = |name: &str| {
        let fleet = &plan["fleets"][name];
        (fleet["replicas"].as_u64().unwrap(), fleet["gpus"].as_u64().unwrap())
    };
    assert_eq!(
        [fleet("bare"), fleet("with_headroom"), fleet("with_spare")],
        [(5, 40), (6, 48), (6, 48)]
    );
    let page = session.run(&SEED).stdout;
    let row = |name: &str| {
        let line = page.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("just enough"), ["5", "40"]);
    assert_eq!(row("with 20 % headroom"), ["6", "48"]);
}

#[test]
fn a_sweep_against_a_day_of_traffic() {
    let session = Session::new();
    write(&session, "swept/summary.json", &sweep());
    let rows = "hour,rps\n0,50\n1,132\n2,135\n3,140\n";
    std::fs::write(session.path("day.csv"), rows).unwrap();
    let args = [
        "capacity",
        "swept",
        "--traffic",
        "day.csv",
        "--replicas",
        "2",
        "--price-per-gpu-hour",
        "2.5",
        "--fan-out",
        "10",
    ];
    let plan = json(&session, &args);
    // The sweep says that it was eight GPUs; the target is the peak of the traffic.
    assert_eq!(number(&plan, "question.gpus_per_replica"), 8.0);
    assert_eq!(number(&plan, "question.target_rps"), 140.0);
    let hours = plan["traffic"]["hours"].as_array().unwrap();
    let states: Vec<_> = hours.iter().map(|hour| hour["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["fine", "fine", "at_risk", "misses"]);
    let chances: Vec<f64> = hours.iter().map(|hour| number(hour, "p_miss")).collect();
    // A quarter of the confirmed rate never misses; above the rejected rate it always does.
    assert_eq!((chances[0], chances[3]), (0.0, 1.0));
    assert!(chances.is_sorted(), "{chances:?}");
    assert_eq!(plan["traffic"]["simulation"]["refused"], Value::Null);
    // 140 / 66: three for four hours, or 1 + 2 + 3 + 3.
    assert_eq!(number(&plan, "traffic.enough.fixed_replica_hours"), 12.0);
    assert_eq!(number(&plan, "traffic.enough.scaled_replica_hours"), 9.0);
    assert_eq!(number(&plan, "traffic.enough.scaled_cost"), 9.0 * 8.0 * 2.5);
    // Three replicas of 5 kW with headroom.
    assert_eq!(number(&plan, "energy.at_target.kwh_per_day"), 360.0);
    let page = session.run(&args);
    let row = page.stdout.lines().skip_while(|line| !line.starts_with("Energy of GPUs"));
    let row: Vec<&str> = row.skip(2).flat_map(str::split_whitespace).take(6).collect();
    assert_eq!((row[0], row[4], row[5]), ("target,", "360.0", "15,000"), "{}", page.stdout);
    assert!(page.stdout.contains("WILL MISS") && page.stdout.contains("A step of 10 calls"));
    assert!(page.stdout.contains("Assumed"), "{}", page.stdout);
    // The same by the name of the file, and the same again.
    let file = json(&session, &["capacity", "swept/summary.json", "--target-rps", "140"]);
    assert_eq!(file["fleets"]["bare"]["replicas"], 3);
}

/// The page is there whole, with the numbers of the plan and without a way out of itself.
#[test]
fn a_plan_is_a_page_too() {
    let session = Session::new();
    let mut evil = sweep();
    evil.sweep.model = "<img src=x onerror=alert(1)>".to_owned();
    write(&session, "swept/summary.json", &evil);
    std::fs::write(session.path("day.csv"), "hour,rps\n0,50\n1,132\n2,140\n").unwrap();
    let args =
        ["capacity", "swept", "--traffic", "day.csv", "--replicas", "2", "--price-per-gpu-hour"];
    let args = [&args[..], &["2.5", "--html", "plan.html"]].concat();
    let outcome = session.run(&args);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    // What is printed stays what it was.
    assert!(outcome.stdout.starts_with("Replica "), "{}", outcome.stdout);
    let page = std::fs::read_to_string(session.path("plan.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    // 140 × 1.2 / 66: three replicas of eight GPUs at 2.5, and 15 kW for a day.
    let said = "3 replicas (24 GPUs) carry 140 req/s with 20 % headroom: 60.00 per hour, 43,800 \
                per month, 360.0 kWh per day; of 3 hours 1 is at risk on 2 replicas";
    assert!(page.contains(said), "{page}");
    assert!(page.contains("<td class=\"bad\">WILL MISS</td>") && page.contains("id=\"hours\""));
    assert!(page.contains("&lt;img src=x") && !page.contains("<img"), "{page}");
    // No other files are left.
    let left = std::fs::read_dir(session.path("")).unwrap();
    let left = left
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".new"));
    assert_eq!(left.count(), 0);
    let nowhere = [&SEED[..], &["--html", "nowhere/plan.html"]].concat();
    refused(&session.run(&nowhere), "nowhere/plan.html");
}

#[test]
fn of_several_configurations_one_counts() {
    let session = Session::new();
    let configuration = |value: &str, confirmed: f64| Configuration {
        values: [("batch".to_owned(), value.to_owned())].into(),
        folder: value.to_owned(),
        start: None,
        failed: None,
        sweep: Some(fixture::sweep(Vec::new(), confirmed, confirmed + 1.0)),
    };
    let mut failed = configuration("8", 1.0);
    (failed.sweep, failed.failed) = (None, Some("it crashed".to_owned()));
    let sweeps = Sweeps {
        schema: Sweeps::SCHEMA.to_owned(),
        verdict: goodput_model::Verdict::Valid,
        configurations: vec![configuration("2", 10.0), configuration("4", 20.0), failed],
        best: Some(1),
        because: String::new(),
    };
    write(&session, "all/summary.json", &sweeps);
    let replicas = |extra: &[&str]| {
        let mut args = vec!["capacity", "all", "--target-rps", "60"];
        args.extend(extra);
        session.run(&[&args[..], &["--json"]].concat())
    };
    let count = |outcome: &Outcome| {
        let plan: Value = serde_json::from_str(&outcome.stdout).unwrap();
        plan["fleets"]["bare"]["replicas"].as_u64().unwrap()
    };
    assert_eq!(count(&replicas(&[])), 3);
    assert_eq!(count(&replicas(&["--configuration", "batch=2"])), 6);
    refused(&replicas(&["--configuration", "batch=16"]), "no such configuration");
    refused(&replicas(&["--configuration", "batch=8"]), "it crashed");
}

#[test]
fn a_run_that_kept_its_slo() {
    let session = Session::new();
    let load = ["--rate", "20", "--duration", "4s", "--max-tokens", "4", "--no-probe"];
    let kept = ["--slo", "errors < 50%"];
    let (outcome, _) = session.measure("mock:fast", &[&load[..], &kept].concat());
    outcome.assert_finished("kept");
    // Its other pages: of a run as of any other folder.
    let report = |format: &str| session.run(&["report", "out", "--format", format]).stdout;
    assert!(report("markdown").starts_with("## Run: "), "{}", report("markdown"));
    assert!(report("junit").contains("<testcase name=\"errors &lt; 50%\""), "{}", report("junit"));
    let plan = session.run(&["capacity", "out", "--target-rps", "100", "--json", "--fan-out", "2"]);
    if outcome.code == Some(5) {
        // A crowded machine: nothing may rest on such a run.
        return refused(&plan, "void");
    }
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    assert_eq!(number(&plan, "basis.confirmed_rps"), 20.0);
    assert_eq!(plan["basis"]["rejected_rps"], Value::Null);
    assert_eq!(plan["fleets"]["bare"]["replicas"], 5);
    let step = &plan["fan_out"]["metrics"][0];
    // The median of two calls is p70.7 of one: more than the median of one.
    assert!(number(&step["p50"], "single_percentile") > 70.0);
    assert!(number(&step["p50"], "ms") >= number(step, "single_p50_ms"));
    assert_eq!(step["p50"]["interpolated"], false);
}

#[test]
fn bad_results_are_refused() {
    let session = Session::new();
    let plan = |file: &str| session.run(&["capacity", file, "--target-rps", "100"]);
    let mut unclear = fixture::sweep(Vec::new(), 20.0, 25.0);
    let goodput = unclear.goodput.as_mut().unwrap();
    (goodput.state, goodput.because) =
        (GoodputState::Unclear, "the points \u{1b}[2J disagree".to_owned());
    write(&session, "unclear.json", &unclear);
    let outcome = plan("unclear.json");
    refused(&outcome, "disagree");
    assert!(!outcome.stderr.contains('\u{1b}'));
    let whole = serde_json::to_string(&fixture::sweep(Vec::new(), 20.0, 25.0)).unwrap();
    let cases = [
        ("cut.json", whole[..whole.len() / 2].to_owned(), "is not valid JSON"),
        ("other.json", "{\"schema\": \"goodput.repeats/1\"}".to_owned(), "goodput.repeats/1"),
        ("foreign.json", "{\"a\": 1}".to_owned(), "no `schema`"),
        ("field.json", whole.replace("\"points\"", "\"dots\""), "cannot be used"),
        ("empty.json", String::new(), "is not valid JSON"),
    ];
    for (name, text, what) in cases {
        std::fs::write(session.path(name), text).unwrap();
        refused(&plan(name), what);
    }
    refused(&plan("nowhere.json"), "cannot be read");
    std::fs::create_dir(session.path("folder")).unwrap();
    refused(&plan("folder"), "folder");
}

#[test]
fn bad_traffic_is_refused() {
    let session = Session::new();
    let cases = [
        ("empty.csv", "", "is empty"),
        ("header.csv", "time_s,rps\n", "only a header"),
        ("unsorted.csv", "time_s,rps\n10,1\n5,1\n", "row 2"),
        ("negative.csv", "hour,rps\n0,-1\n", "row 1"),
        ("words.csv", "hour,rps\n0,many\n", "is not a number"),
        ("endless.csv", "hour,rps\n0,inf\n", "row 1"),
        ("column.csv", "minute,rps\n0,1\n", "time_s"),
        (
            "short.jsonl",
            "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1, \"hash_ids\": []}\n",
            "too short",
        ),
    ];
    for (name, text, what) in cases {
        std::fs::write(session.path(name), text).unwrap();
        refused(&session.run(&["capacity", "--goodput-rps", "22", "--traffic", name]), what);
    }
    refused(
        &session.run(&["capacity", "--goodput-rps", "22", "--traffic", "nowhere.csv"]),
        "nowhere.csv",
    );
    refused(&session.run(&["capacity", "--goodput-rps", "22", "--diurnal", "10:20"]), "peak");
}

#[test]
fn a_trace_is_counted_and_its_lengths_are_held_against_the_measured_ones() {
    let session = Session::new();
    let profile = Profile::parse(fixture::ENGINE).unwrap();
    let swept = fixture::simulated(&profile, &[60.0, 66.0], 66.0, 68.0);
    write(&session, "swept/summary.json", &swept);
    // Two requests a second for ten minutes, with long prompts.
    let line = |n: u32| {
        format!(
            "{{\"timestamp\": {}, \"input_length\": 9000, \"output_length\": 50, \"hash_ids\": []}}\n",
            n * 500
        )
    };
    let trace: String = (0..=1200).map(line).collect();
    std::fs::write(session.path("trace.jsonl"), trace).unwrap();
    let plan = json(&session, &["capacity", "swept", "--traffic", "trace.jsonl"]);
    assert!((number(&plan, "traffic.mean_rps") - 2.0).abs() < 0.01);
    let notes = plan["notes"].as_array().unwrap();
    let lengths = "average 9000 input and 50 output tokens";
    let is_said = |note: &Value| {
        note["kind"] == "extrapolated" && note["text"].as_str().unwrap().contains(lengths)
    };
    assert!(notes.iter().any(is_said), "{notes:?}");
}

#[test]
fn bad_arguments_are_refused() {
    let session = Session::new();
    for (flag, value) in [
        ("--target-rps", "nan"),
        ("--target-rps", "0"),
        ("--target-rps", "-5"),
        ("--headroom", "1000%"),
        ("--headroom", "-1%"),
        ("--gpus-per-replica", "0"),
        ("--price-per-gpu-hour", "-1"),
        ("--replicas", "0"),
        ("--fan-out", "1"),
        ("--diurnal", "many"),
        ("--rejected-rps", "inf"),
    ] {
        let mut args = vec!["capacity", "--goodput-rps", "22", flag, value];
        if flag != "--target-rps" {
            args.extend(["--target-rps", "100"]);
        }
        let outcome = session.run(&args);
        assert_eq!(outcome.code, Some(2), "{flag} {value}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(flag), "{flag} {value}: {}", outcome.stderr);
    }
    for args in [
        &["capacity"][..],
        &["capacity", "--goodput-rps", "22"],
        &["capacity", "x", "--goodput-rps", "2"],
    ] {
        assert_eq!(session.run(args).code, Some(2));
    }
    let priced =
        ["capacity", "--goodput-rps", "22", "--target-rps", "9", "--price-per-gpu-hour", "1"];
    refused(&session.run(&priced), "the number of GPUs per replica");
    let below = ["capacity", "--goodput-rps", "22", "--rejected-rps", "21", "--target-rps", "9"];
    assert_eq!(session.run(&below).code, Some(2));
    let help = session.run(&["capacity", "--help"]);
    assert!(help.stdout.contains("goodput capacity --goodput-rps 22"));
}
