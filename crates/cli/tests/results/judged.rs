//! Saved runs and sweeps judged by an SLO that was not asked for when they were measured: recounted
//! from the tables of single requests, to the request.

use std::collections::BTreeMap;

use crate::support::{Session, number};
use serde_json::Value;

/// A list of rates, without any SLO. Four requests at once of about 30 ms: 133 a second.
const LIST: [&str; 20] = [
    "sweep",
    "mock:ttft=22ms,itl=2ms,slots=4",
    "--rates",
    "30,90,180",
    "--no-search",
    "--isl",
    "20",
    "--osl",
    "5",
    "--duration",
    "1500ms",
    "--warmup",
    "200ms",
    "--settle",
    "0s",
    "--quick",
    "--no-length-check",
    "--out",
    "out",
    "--quiet",
];

/// What a request keeps: columns of the table and limits in milliseconds.
type Limits = &'static [(&'static str, f64)];

/// SLOs, what a good request keeps, and the share of them that is required.
const ASKED: [(&str, Limits, f64); 3] = [
    ("ttft < 40ms, tpot < 3ms", &[("ttft_ms", 40.0), ("tpot_ms", 3.0)], 0.99),
    ("p95 ttft < 60ms", &[("ttft_ms", 60.0)], 0.95),
    ("e2e < 32ms, errors < 1%", &[("e2e_ms", 32.0)], 0.99),
];

fn measured() -> Session {
    let session = Session::new();
    let done = session.run(&LIST);
    assert!(matches!(done.code, Some(0 | 5)), "{:?} {}", done.code, done.stderr);
    session
}

fn json(session: &Session, args: &[&str]) -> Value {
    let outcome = session.run(args);
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}", outcome.stderr))
}

/// The measured requests of a run that no stall of the client spoiled, by column.
fn requests(session: &Session, folder: &str, slo: &str) -> Vec<BTreeMap<String, String>> {
    let csv = session.run(&["report", folder, "--format", "csv", "--slo", slo]).stdout;
    let mut lines = csv.lines().map(|line| line.trim_end().split(','));
    let names: Vec<&str> = lines.next().unwrap().collect();
    let row = |values: std::str::Split<'_, char>| -> BTreeMap<String, String> {
        names.iter().map(|name| (*name).to_owned()).zip(values.map(str::to_owned)).collect()
    };
    let rows = lines.map(row);
    rows.filter(|row| row["phase"] == "measured" && row["spoilt"] == "false").collect()
}

fn is_good(request: &BTreeMap<String, String>, limits: Limits) -> bool {
    let keeps = |(column, limit): &(&str, f64)| {
        let value = &request[*column];
        value.is_empty() || value.parse::<f64>().unwrap() < *limit
    };
    request["ok"] == "true" && limits.iter().all(keeps)
}

/// The highest rate below the lowest that misses.
fn highest(kept: &[(f64, bool)]) -> Option<f64> {
    let over = kept.iter().filter(|(_, is_kept)| !is_kept).map(|(rate, _)| *rate);
    let over = over.fold(f64::INFINITY, f64::min);
    let below = kept.iter().map(|(rate, _)| *rate).filter(|rate| *rate < over);
    below.max_by(f64::total_cmp)
}

#[test]
fn any_slo_of_a_saved_sweep_is_what_its_requests_say() {
    let session = measured();
    let before = json(&session, &["report", "out", "--json"]);
    assert_eq!((&before["goodput"], &before["kept_loads"]), (&Value::Null, &Value::Array(vec![])));
    for (slo, limits, needed) in ASKED {
        let found = json(&session, &["report", "out", "--json", "--slo", slo]);
        assert_eq!(found["plan"]["slo"], slo);
        assert_eq!(found["measured_with"], "none");
        let points = found["points"].as_array().unwrap();
        assert!(points.len() >= 4, "{points:?}");
        let (mut kept, mut spoiled) = (Vec::<(f64, bool)>::new(), Vec::<(f64, bool)>::new());
        for point in points {
            let folder = format!("out/{}", point["folder"].as_str().unwrap());
            let all = requests(&session, &folder, slo);
            let good = all.iter().filter(|request| is_good(request, limits)).count();
            let share = good as f64 / all.len() as f64;
            assert_eq!(number(&point["figures"], "attainment.value"), share, "{folder} {slo}");
            let marked = all.iter().filter(|request| request["slo_kept"] == "true").count();
            assert_eq!(marked, good, "{folder} {slo}");
            if let Some(rate) = point["ask"]["level"]["rate"].as_f64() {
                let is_over = point["figures"]["over_saturated"] == true;
                let is_clear = point["standing"]["state"] != "unclear";
                let list = if is_clear { &mut kept } else { &mut spoiled };
                list.push((rate, share >= needed && !is_over));
            }
        }
        let clear = highest(&kept);
        // On a machine that others keep busy, points count that kept the SLO all the same.
        kept.extend(spoiled.iter().filter(|(_, is_kept)| *is_kept));
        let level = found["goodput"]["measured"].as_f64();
        assert!(level == clear || level == highest(&kept), "{slo} {level:?} {kept:?} {spoiled:?}");
        assert_eq!(found["kept_loads"][0]["level"].as_f64(), level, "{slo}");
        // One run each, unless a busy machine made the sweep repeat some.
        let runs = kept.iter().filter(|(rate, _)| Some(*rate) == level).count();
        let confirmed = &found["goodput"]["confirmed_rps"];
        assert!(confirmed.is_null() || runs > 1, "{slo} {confirmed} of {runs}");
        assert!(found["figures"].as_array().unwrap().iter().all(|row| row["condition"] != ""));
    }
    // Nothing was written.
    assert_eq!(json(&session, &["report", "out", "--json"]), before);
}

/// A list of rates, then the SLO, then the plan: two commands.
#[test]
fn a_plan_from_a_list_of_rates() {
    let session = measured();
    let slo = "p90 ttft < 2s";
    let plan = json(&session, &["capacity", "out", "--target-rps", "1000", "--slo", slo, "--json"]);
    let sweep = json(&session, &["report", "out", "--json", "--slo", slo]);
    let kept = number(&sweep["goodput"], "measured_rps");
    assert_eq!(number(&plan, "basis.confirmed_rps"), kept);
    assert_eq!(plan["basis"]["is_measured_only"], true);
    assert_eq!(number(&plan, "fleets.bare.replicas"), (1000.0 / kept).ceil());
    let page = session.run(&["capacity", "out", "--target-rps", "1000", "--slo", slo]).stdout;
    assert!(page.contains("req/s as measured") && page.contains("do not confirm it"), "{page}");
    // Without an SLO there is nothing to go by, and that is said.
    let refused = session.run(&["capacity", "out", "--target-rps", "1000"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("no SLO") && refused.stderr.contains("--slo"));
}

#[test]
fn runs_and_audits_too_and_what_cannot_be_judged_is_refused() {
    let session = measured();
    let first = |name: &str| {
        let all = std::fs::read_dir(session.path("out/points")).unwrap().flatten();
        let mut all: Vec<_> = all.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        all.sort();
        format!("out/points/{}", all.into_iter().find(|it| it.contains(name)).unwrap())
    };
    let run = first("rate-30");
    let slo = "ttft < 1ms";
    let found = json(&session, &["report", &run, "--json", "--slo", slo, "--attainment", "50%"]);
    assert_eq!((&found["slo"]["slo"], &found["slo"]["good"]), (&slo.into(), &0.into()));
    assert_eq!((&found["slo"]["state"], number(&found, "slo.target")), (&"missed".into(), 0.5));
    let audits = json(&session, &["audit", &run, "--json", "--slo", slo]);
    assert!(audits[0].to_string().contains("slo"), "{audits}");
    let refused = |args: &[&str], what: &str| {
        let outcome = session.run(args);
        assert_eq!(outcome.code, Some(2), "{args:?} {}", outcome.stderr);
        assert!(outcome.stderr.contains(what), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("hint: "), "{}", outcome.stderr);
    };
    refused(&["report", &run, "--attainment", "99%"], "--attainment needs an SLO");
    refused(&["report", "out", "--attainment", "99%"], "--attainment needs an SLO");
    refused(&["report", &run, "--slo", "p99 ttft < "], "SLO");
    std::fs::write(session.path("vllm.json"), VLLM).unwrap();
    refused(&["report", "vllm.json", "--slo", slo], "has no request log");
    refused(&["audit", "vllm.json", "--slo", slo], "has no request log");
    let capacity = ["capacity", "vllm.json", "--target-rps", "10"];
    refused(&capacity, "states no SLO");
    let asked = |slo: &'static str| [&capacity[..], &["--slo", slo]].concat();
    refused(&asked("p95 ttft < 40ms, mean ttft < 1s"), "it lacks the p95 of ttft\n");
    refused(&asked("ttft < 40ms"), "it lacks its single requests: percentiles do not say");
    refused(&asked("p99 ttft < 20ms"), "no load met the SLO");
}

/// Percentiles that a file states suffice for a term about one of them, failures counted.
#[test]
fn percentiles_of_another_tool_suffice_for_terms_about_them() {
    let session = Session::new();
    let plan = |file: &str| {
        std::fs::write(session.path("vllm.json"), file).unwrap();
        let slo = "p99 ttft < 21ms, mean ttft < 11ms, errors < 5%";
        let args = ["capacity", "vllm.json", "--target-rps", "12", "--json", "--slo", slo];
        session.run(&args)
    };
    let none_failed = VLLM.replace("\"completed\": 10", "\"completed\": 10, \"failed\": 0");
    let outcome = plan(&none_failed);
    let found: Value = serde_json::from_str(&outcome.stdout).expect(&outcome.stderr);
    assert_eq!(number(&found, "basis.confirmed_rps"), 5.0);
    assert_eq!(number(&found, "fleets.bare.replicas"), 3.0);
    assert_eq!(found["basis"]["is_measured_only"], true);
    assert!(outcome.stdout.contains("as stated by the file"), "{}", outcome.stdout);
    // 2 % of the requests failed: the p99 of all of them lies beyond any limit.
    let two_failed = VLLM.replace("\"completed\": 10", "\"completed\": 98, \"failed\": 2");
    let outcome = plan(&two_failed);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("no load met the SLO"), "{}", outcome.stderr);
}

/// A result without single requests.
const VLLM: &str = r#"{"date": "20260101-000000", "backend": "vllm", "model_id": "m",
    "num_prompts": 10, "request_rate": 5.0, "duration": 2.0, "completed": 10,
    "total_input_tokens": 100, "total_output_tokens": 50, "request_throughput": 5.0,
    "output_throughput": 25.0, "total_token_throughput": 75.0, "mean_ttft_ms": 10.0,
    "p99_ttft_ms": 20.0}"#;

/// A file of another tool that holds every request is judged like a run of ours.
#[test]
fn files_of_other_tools_with_every_request_suffice() {
    let session = Session::new();
    let n = 400;
    let list = |of: &dyn Fn(usize) -> String| {
        format!("[{}]", (0..n).map(of).collect::<Vec<_>>().join(","))
    };
    // 1 of 100 waits for a second.
    let ttft = |i: usize| if i % 100 == 50 { 1.0 } else { 0.1 };
    let details = format!(
        r#", "ttfts": {}, "itls": {}, "input_lens": {}, "output_lens": {}, "start_times": {},
        "errors": {}}}"#,
        list(&|i| ttft(i).to_string()),
        list(&|_| "[0.01, 0.01, 0.01, 0.01]".to_owned()),
        list(&|_| "10".to_owned()),
        list(&|_| "5".to_owned()),
        list(&|i| (i as f64 / 5.0).to_string()),
        list(&|_| "\"\"".to_owned()),
    );
    let whole = VLLM.replace("\"completed\": 10", "\"completed\": 400").replace('}', &details);
    std::fs::write(session.path("vllm.json"), whole).unwrap();
    let plan = |slo: &str| {
        session.run(&["capacity", "vllm.json", "--target-rps", "12", "--json", "--slo", slo])
    };
    let found: Value = serde_json::from_str(&plan("p95 ttft < 500ms, tpot < 20ms").stdout).unwrap();
    assert_eq!(number(&found, "basis.confirmed_rps"), 5.0);
    assert_eq!(number(&found, "fleets.bare.replicas"), 3.0);
    assert_eq!(number(&found, "basis.attainment"), 1.0, "of the term about single requests");
    let found: Value = serde_json::from_str(&plan("ttft < 500ms, tpot < 20ms").stdout).unwrap();
    assert_eq!(number(&found, "basis.attainment"), 0.99);
    let missed = plan("p99.9 ttft < 500ms");
    assert_eq!(missed.code, Some(2));
    assert!(missed.stderr.contains("no load met the SLO"), "{}", missed.stderr);
}
