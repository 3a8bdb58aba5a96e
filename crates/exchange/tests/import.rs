//! Result files of other tools. Those in `results/` were written by the tools themselves against a
//! simulated engine, and trimmed; `results/README.md` says how, and which two are made by hand.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use goodput_exchange::{ImportError, parse_results, read_results};
use goodput_model::{Reported, ReportedMode, SourceTool};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results").join(name)
}

fn only(name: &str) -> Reported {
    let mut runs = read_results(&fixture(name)).unwrap();
    assert_eq!(runs.len(), 1, "{name}");
    runs.remove(0)
}

fn near(value: Option<f64>, expected: f64) -> bool {
    value.is_some_and(|value| (value - expected).abs() < 0.01)
}

#[test]
fn vllm_in_python_with_details() {
    let run = only("vllm-python-open-detailed.json");
    assert_eq!(run.tool, SourceTool::VllmPython);
    assert_eq!(run.load.mode, ReportedMode::Open);
    assert_eq!((run.load.rate_rps, run.load.burstiness), (Some(20.0), Some(1.0)));
    assert_eq!(run.load.arrivals.as_deref(), Some("poisson"));
    assert_eq!((run.asked, run.ok, run.failed), (Some(30), Some(30), Some(0)));
    assert_eq!(run.output_tokens, Some(360));
    assert_eq!(run.output_lengths.map(|range| (range.min, range.max)), Some((12.0, 12.0)));
    // Metadata that the user gave.
    assert_eq!((run.setup.gpus, run.setup.hardware.as_deref()), (Some(1), Some("simulated")));
    let percents: Vec<f64> = run.metrics["e2e"].percentiles.iter().map(|(p, _)| *p).collect();
    assert_eq!(percents, [50.0, 90.0, 99.0]);
    let details = run.details.as_ref().unwrap();
    assert_eq!(details.len(), 30);
    // The first event names the role: one gap more than tokens, less the first.
    assert_eq!(details[0].gaps_ms.as_ref().unwrap().len(), 13);
    assert!(details.iter().all(|request| request.start_s.is_some() && !request.is_failed));
}

#[test]
fn vllm_in_python_without_details() {
    let run = only("vllm-python-burst.json");
    assert_eq!(run.tool, SourceTool::VllmPython);
    assert_eq!(run.load.mode, ReportedMode::Burst);
    assert_eq!((run.asked, run.ok, run.load.rate_rps), (Some(40), Some(40), None));
    assert!(run.details.is_none() && !run.metrics.contains_key("e2e"));
    assert!(run.goodput.is_none() && run.input_lengths.is_none());
}

#[test]
fn vllm_with_failures_and_a_cap() {
    let run = only("vllm-python-faults.json");
    assert_eq!(run.load.mode, ReportedMode::Capped);
    assert_eq!(run.load.concurrency, Some(2));
    assert_eq!((run.asked, run.ok, run.failed), (Some(40), Some(35), Some(5)));
    let details = run.details.unwrap();
    assert_eq!(details.iter().filter(|request| request.is_failed).count(), 5);
    let empty = |request: &&goodput_model::ReportedRequest| {
        !request.is_failed && request.output_tokens == Some(0)
    };
    assert_eq!(details.iter().filter(empty).count(), 3);
}

#[test]
fn vllm_in_rust() {
    let run = only("vllm-rust-closed.json");
    assert_eq!(run.tool, SourceTool::VllmRust);
    assert_eq!((run.load.mode, run.load.concurrency), (ReportedMode::Closed, Some(8)));
    assert_eq!(run.goodput.as_ref().unwrap().requests_per_s, run.requests_per_s);
    assert!(run.metrics["e2e"].percentile(99.0).is_some());
    let detailed = only("vllm-rust-open-detailed.json");
    assert_eq!(detailed.tool, SourceTool::VllmRust);
    let lengths = detailed.output_lengths.unwrap();
    assert!(lengths.min >= 6.0 && lengths.max <= 18.0 && lengths.min < lengths.max);
}

#[test]
fn sglang_has_one_line_for_each_run() {
    let runs = read_results(&fixture("sglang.jsonl")).unwrap();
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| run.tool == SourceTool::Sglang && run.siblings == 1));
    assert_eq!(runs[0].load.mode, ReportedMode::Open);
    // `Infinity` is not JSON, and SGLang writes it.
    assert_eq!(runs[1].load.mode, ReportedMode::Closed);
    assert_eq!((runs[1].label.as_str(), runs[1].not_finite), ("2 of 2", 0));
    assert_eq!((runs[0].failed, runs[1].failed), (Some(0), None));
    assert_eq!(runs[0].setup.precision.as_deref(), Some("fp8"));
    assert_eq!(runs[0].setup.engine.as_deref(), Some("0.5.3"));
    assert_eq!(runs[0].model.as_deref(), Some("example/model-8b"));
    assert_eq!(runs[0].details.as_ref().map(Vec::len), Some(24));
    assert_eq!(runs[1].input_lengths.map(|range| range.max), Some(64.0));
    assert!(runs[0].recounted_tokens.unwrap() + 3 == runs[0].output_tokens.unwrap());
}

#[test]
fn aiperf() {
    let run = only("aiperf-closed.json");
    assert_eq!((run.tool, run.version.as_deref()), (SourceTool::Aiperf, Some("0.13.0")));
    assert_eq!((run.load.mode, run.load.concurrency), (ReportedMode::Closed, Some(4)));
    assert_eq!((run.warmup.requests, run.asked, run.ok), (Some(5), Some(60), Some(60)));
    assert_eq!((run.input_tokens, run.output_tokens), (Some(573), Some(960)));
    // Its rates are over the phase, not over `benchmark_duration`.
    assert!(near(run.duration_s, 60.0 / run.requests_per_s.unwrap()));
    assert_eq!(run.streaming, Some(true));
    assert_eq!((run.metrics["itl"].n, run.metrics["tpot"].n), (Some(900), Some(60)));
    assert_eq!(run.token_source.as_deref(), Some("usage"));
    let open = only("aiperf-poisson-goodput.json");
    assert_eq!((open.load.mode, open.load.rate_rps), (ReportedMode::Open, Some(10.0)));
    assert_eq!(open.load.arrivals.as_deref(), Some("poisson"));
    assert_eq!(open.goodput.unwrap().terms, "time_to_first_token:200.0");
    let faults = only("aiperf-faults.json");
    assert_eq!((faults.asked, faults.ok, faults.failed), (Some(40), Some(32), Some(8)));
    assert_eq!(faults.remarks.len(), 2);
}

#[test]
fn genai_perf() {
    let run = only("genai-perf.json");
    assert_eq!((run.tool, run.model.as_deref()), (SourceTool::GenaiPerf, Some("example/model-8b")));
    assert_eq!((run.load.mode, run.load.concurrency), (ReportedMode::Closed, Some(4)));
    assert_eq!((run.asked, run.ok, run.warmup.requests), (Some(50), Some(50), Some(5)));
    assert_eq!(run.input_lengths.map(|range| (range.min, range.max)), Some((550.0, 550.0)));
    assert_eq!((run.duration_s, run.seed), (None, Some(0)));
}

#[test]
fn guidellm_has_several_runs() {
    let runs = read_results(&fixture("guidellm-concurrent.json")).unwrap();
    let labels: Vec<_> = runs.iter().map(|run| run.label.as_str()).collect();
    assert_eq!(labels, ["concurrent 2", "concurrent 4"]);
    assert_eq!(runs[0].version.as_deref(), Some("0.8.1"));
    assert_eq!((runs[0].siblings, runs[0].seed), (1, Some(42)));
    assert_eq!((runs[1].load.mode, runs[1].load.concurrency), (ReportedMode::Closed, Some(4)));
    assert_eq!((runs[0].asked, runs[0].ok, runs[0].failed), (Some(12), Some(12), Some(0)));
    // Written as 138.00000000000003.
    assert_eq!(runs[0].input_tokens, Some(138));
    // Seconds there, milliseconds here.
    let e2e = &runs[0].metrics["e2e"];
    assert!(e2e.min.unwrap() > 120.0 && e2e.max.unwrap() < 1000.0);
    assert_eq!(e2e.percentiles.last().map(|(percent, _)| *percent), Some(99.9));
    let open = only("guidellm-poisson.json");
    assert_eq!((open.load.mode, open.load.rate_rps), (ReportedMode::Open, Some(10.0)));
    assert!(open.metrics.contains_key("e2e_sched"));
    assert_eq!(open.details.unwrap().len(), 24);
}

fn parse(text: &str) -> Result<Vec<Reported>, ImportError> {
    parse_results(Path::new("x.json"), text.as_bytes())
}

fn refused(text: &str) -> String {
    let error = parse(text).unwrap_err().to_string();
    assert!(error.contains("x.json"), "{error}");
    assert!(error.chars().all(|c| !c.is_control()), "{error:?}");
    assert!(error.chars().count() < 400, "{error}");
    error
}

const LEAST: &str = r#""model_id": "m", "completed": 1, "request_throughput": 1.0"#;

#[test]
fn hostile_input_is_refused_with_its_place() {
    assert!(refused("").contains("empty"));
    assert!(refused("  \n").contains("empty"));
    assert!(refused(r#"{"a": "#).contains("line 1"));
    assert!(refused("nonsense").contains("not JSON"));
    assert!(refused("[]").contains("empty"));
    assert!(refused("[1, 2]").contains("result 1"));
    assert!(refused(r#"{"a\u001b[2J": 1, "b": 2}"#).contains("`b`"));
    assert!(refused(&format!("{{{LEAST}, \"duration\": \"long\"}}")).contains("`duration`"));
    assert!(refused(&format!("{{{LEAST}, \"duration\": 1e999}}")).contains("`duration`"));
    assert!(refused(&format!("{{{LEAST}, \"failed\": -1}}")).contains("`failed`"));
    assert!(refused(&format!("{{{LEAST}, \"failed\": 1.5}}")).contains("`failed`"));
    assert!(refused(&format!("{{{LEAST}, \"ttfts\": [\"\\u001b\"]}}")).contains("`ttfts`"));
    assert!(refused(&format!("{{{LEAST}, \"ttfts\": {}}}", "9".repeat(4000))).contains("`ttfts`"));
    assert!(refused(r#"{"benchmarks": 3, "metadata": {}}"#).contains("`benchmarks`"));
    assert!(refused(r#"{"benchmarks": [{"metrics": 7}], "metadata": {}}"#).contains("metrics"));
    let aiperf = r#"{"aiperf_version": "1", "request_count": 5}"#;
    assert!(refused(aiperf).contains("`request_count` is not an object"));
    // Deep nesting is neither followed nor fatal.
    let deep = format!("{{{LEAST}, \"x\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(parse(&deep).unwrap().len(), 1);
    let deep =
        format!("{{{LEAST}, \"itls\": {}1{}, \"ttfts\": []}}", "[".repeat(5000), "]".repeat(5000));
    assert!(refused(&deep).contains("`itls`"));
}

#[test]
fn every_cut_of_every_file_is_read_or_refused() {
    for entry in std::fs::read_dir(fixture("")).unwrap().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "md") {
            continue;
        }
        let bytes = std::fs::read(entry.path()).unwrap();
        for cut in (0..bytes.len()).step_by(97) {
            let _ = parse_results(&entry.path(), &bytes[..cut]);
        }
    }
}

#[test]
fn units_are_read() {
    let text = r#"{"aiperf_version": "1", "time_to_first_token": {"unit": "s", "avg": 0.05, "p50": 0.04}}"#;
    let ttft = parse(text).unwrap()[0].metrics["ttft"].clone();
    assert_eq!((ttft.mean, ttft.percentile(50.0)), (Some(50.0), Some(40.0)));
}

#[test]
fn numbers_that_are_none_are_missing_and_counted() {
    let run =
        parse(&format!("{{{LEAST}, \"duration\": NaN, \"mean_ttft_ms\": -Infinity}}")).unwrap();
    assert_eq!((run[0].duration_s, run[0].not_finite), (None, 2));
    assert!(run[0].metrics.is_empty());
    let run =
        parse(&format!("{{{LEAST}, \"duration\": \"nan\", \"request_rate\": \"inf\"}}")).unwrap();
    assert_eq!((run[0].duration_s, run[0].load.mode), (None, ReportedMode::Burst));
}

#[test]
fn a_sweep_is_a_list_and_appended_results_follow_each_other() {
    let one = format!("{{{LEAST}}}");
    assert_eq!(parse(&format!("[{one}, {one}, {one}]")).unwrap().len(), 3);
    assert_eq!(parse(&format!("{one}\n{one}\n")).unwrap()[1].label, "2 of 2");
    assert!(matches!(
        read_results(Path::new("/does/not/exist")).unwrap_err(),
        ImportError::Io { .. }
    ));
}
