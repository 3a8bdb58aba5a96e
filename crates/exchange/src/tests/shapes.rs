//! The shapes of other tools: figures by their definitions, and read back by our own readers.

use std::path::Path;

use goodput_model::{
    Caveat, CaveatCode, Mode, Plan, Rate, Reported, ReportedMode, Severity, SourceTool, Verdict,
};
use serde_json::Value;

use super::{plan, records, summary};
use crate::{ConvertedRun, parse_results, write_aiperf, write_sglang, write_vllm};

fn close(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap();
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

fn written(plan: &Plan, tool: SourceTool, detailed: bool) -> Vec<u8> {
    let summary = summary(plan);
    let run = ConvertedRun { plan, summary: &summary };
    let all = || records().into_iter();
    let mut out = Vec::new();
    match tool {
        SourceTool::Sglang => write_sglang(&mut out, &run, &all, detailed),
        SourceTool::Aiperf => write_aiperf(&mut out, &run, all()),
        _ => write_vllm(&mut out, &run, &all, detailed),
    }
    .unwrap();
    out
}

fn shape(tool: SourceTool, detailed: bool) -> Value {
    serde_json::from_slice(&written(&plan(), tool, detailed)).unwrap()
}

fn read_back(tool: SourceTool) -> Reported {
    let bytes = written(&plan(), tool, true);
    parse_results(Path::new("x"), &bytes).unwrap().remove(0)
}

#[test]
fn vllm_counts_from_the_send_to_the_role_and_to_the_usage() {
    let file = shape(SourceTool::VllmPython, false);
    // 51 − 1 and 200: the role's event is the first.
    close(&file["mean_ttft_ms"], 125.0);
    close(&file["std_ttft_ms"], 75.0);
    close(&file["p99_ttft_ms"], 50.0 + 0.99 * 150.0);
    // 171 − 1 and 220: to the end of the stream.
    close(&file["mean_e2el_ms"], 195.0);
    // (170 − 50) / 2 and (220 − 200) / 1.
    close(&file["mean_tpot_ms"], 40.0);
    // 50 (role to token), 20, 40 and 10.
    close(&file["mean_itl_ms"], 30.0);
    close(&file["median_itl_ms"], 30.0);
    // From the first scheduled instant to the last end, that of the failure included.
    close(&file["duration"], 1.5);
    close(&file["request_throughput"], 2.0 / 1.5);
    close(&file["output_throughput"], 5.0 / 1.5);
    close(&file["total_token_throughput"], 205.0 / 1.5);
    // 50 ms is below 90 ms, 200 ms is not.
    close(&file["request_goodput"], 1.0 / 1.5);
    for (name, expected) in [("completed", 2.0), ("failed", 1.0), ("num_prompts", 3.0)] {
        close(&file[name], expected);
    }
    // Four events of the first in its first second, and two of the other in the second after.
    close(&file["max_output_tokens_per_s"], 4.0);
    // 999 ms after the first start the other begins: both touch the first second.
    close(&file["max_concurrent_requests"], 2.0);
    assert_eq!(file["date"], "20261115-100001");
    assert!(file.get("ttfts").is_none());
}

#[test]
fn every_request_where_it_is_asked_for() {
    let file = shape(SourceTool::VllmPython, true);
    assert_eq!(file["itls"], serde_json::json!([[0.05, 0.02, 0.04], [0.01], []]));
    assert_eq!(file["output_lens"], serde_json::json!([3, 2, 0]));
    assert_eq!(file["start_times"], serde_json::json!([0.001, 1.0, 1.2]));
    assert_eq!(file["errors"][0], "");
    assert!(file["errors"][2].as_str().unwrap().starts_with("http_500: "));
    let names: Vec<_> = file.as_object().unwrap().keys().cloned().collect();
    for name in ["input_lens", "ttfts", "latencies", "queue_times", "generated_texts"] {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
}

#[test]
fn sglang_counts_text_only_and_ends_with_the_stream() {
    let file = shape(SourceTool::Sglang, false);
    close(&file["mean_ttft_ms"], 150.0);
    close(&file["mean_e2e_latency_ms"], 195.0);
    // (170 − 100) / 2 and 20 / 1.
    close(&file["mean_tpot_ms"], 27.5);
    // 20, 40 and 10.
    close(&file["mean_itl_ms"], 70.0 / 3.0);
    // 390 ms of requests in 1.5 s.
    close(&file["concurrency"], 0.26);
    assert!(file["total_output_tokens_retokenized"].is_null());
}

#[test]
fn aiperf_ends_with_the_last_token_and_counts_only_what_keeps_its_limits() {
    let file = shape(SourceTool::Aiperf, false);
    close(&file["time_to_first_token"]["avg"], 150.0);
    close(&file["request_latency"]["avg"], 185.0);
    // (160 − 100) / 2 and 10 / 1.
    close(&file["inter_token_latency"]["avg"], 20.0);
    close(&file["inter_chunk_latency"]["max"], 40.0);
    close(&file["time_to_second_token"]["min"], 10.0);
    close(&file["output_token_throughput_per_user"]["max"], 100.0);
    // 100 ms and 200 ms: no request keeps 90 ms.
    close(&file["good_request_count"]["avg"], 0.0);
    close(&file["error_request_count"]["avg"], 1.0);
    close(&file["request_error_rate"]["avg"], 100.0 / 3.0);
    // From 1 ms, when the first was let go, to the second's last token: the failure ends later.
    close(&file["benchmark_duration"]["avg"], 1.209);
    assert_eq!(file["error_summary"][0]["error_details"]["code"], 500);
    assert_eq!(file["end_time"], "2026-11-15T10:00:01.210000");
}

#[test]
fn our_own_readers_find_what_was_written() {
    for (tool, ttft, tpot, e2e) in [
        (SourceTool::VllmPython, 125.0, 40.0, 195.0),
        (SourceTool::Sglang, 150.0, 27.5, 195.0),
        (SourceTool::Aiperf, 150.0, 20.0, 185.0),
    ] {
        let run = read_back(tool);
        assert_eq!(run.tool, tool);
        let mean = |name: &str| run.metrics[name].mean.unwrap();
        for (found, expected) in [(mean("ttft"), ttft), (mean("tpot"), tpot), (mean("e2e"), e2e)] {
            assert!((found - expected).abs() < 1e-9, "{tool:?}: {found} is not {expected}");
        }
        assert_eq!((run.ok, run.failed), (Some(2), Some(1)), "{tool:?}");
        assert_eq!((run.input_tokens, run.output_tokens), (Some(200), Some(5)), "{tool:?}");
        assert_eq!(run.load.mode, ReportedMode::Open, "{tool:?}");
        assert_eq!(run.load.rate_rps, Some(10.0), "{tool:?}");
        assert_eq!(run.model.as_deref(), Some("m"), "{tool:?}");
        assert_eq!(run.not_finite, 0, "{tool:?}");
    }
}

#[test]
fn loads_keep_their_kind() {
    let burst = Rate::Infinite;
    let arrivals = goodput_model::ArrivalProcess::Poisson;
    let open = |rate, cap| Mode::Open { rate, arrivals, max_concurrency: cap };
    let closed =
        Mode::Closed { concurrency: 8, think_time: std::time::Duration::ZERO, pause_first: false };
    for (mode, expected) in [
        (open(Rate::PerSecond(10.0), Some(4)), ReportedMode::Capped),
        (open(burst, None), ReportedMode::Burst),
        (closed, ReportedMode::Closed),
    ] {
        let mut plan = plan();
        plan.load.mode = mode;
        for tool in [SourceTool::VllmPython, SourceTool::Sglang] {
            let bytes = written(&plan, tool, false);
            let run = parse_results(Path::new("x"), &bytes).unwrap().remove(0);
            assert_eq!(run.load.mode, expected, "{tool:?}");
        }
    }
}

#[test]
fn what_was_not_measured_is_not_zero() {
    let mut plan = plan();
    plan.target.stream = false;
    let file: Value =
        serde_json::from_slice(&written(&plan, SourceTool::VllmPython, false)).unwrap();
    assert!(file.get("mean_ttft_ms").is_none());
    close(&file["mean_e2el_ms"], 195.0);
    let file: Value = serde_json::from_slice(&written(&plan, SourceTool::Aiperf, false)).unwrap();
    assert!(file.get("time_to_first_token").is_none());
    // What SGLang does with answers in one piece.
    let file: Value = serde_json::from_slice(&written(&plan, SourceTool::Sglang, false)).unwrap();
    close(&file["mean_ttft_ms"], 195.0);
}

#[test]
fn an_slo_that_the_tool_cannot_say_gives_no_goodput() {
    for slo in ["ttft < 90ms, max_gap < 1s", "ttft < 90ms + 1ms/token", "errors < 1%"] {
        let mut plan = plan();
        plan.measure.slo = Some(slo.parse().unwrap());
        let file: Value =
            serde_json::from_slice(&written(&plan, SourceTool::VllmPython, false)).unwrap();
        assert!(file["request_goodput"].is_null(), "{slo}");
    }
}

#[test]
fn a_void_run_says_so_in_every_shape() {
    let plan = plan();
    let mut summary = summary(&plan);
    summary.verdict = Verdict::Void;
    summary.run.log_damaged = true;
    let caveat = |severity, text: &str| Caveat::new(CaveatCode::ScheduleSlip, severity, text);
    summary.caveats = vec![
        caveat(Severity::Warn, "a doubt"),
        caveat(Severity::Void, "goodput sent late"),
        caveat(Severity::Void, "and more"),
    ];
    let run = ConvertedRun { plan: &plan, summary: &summary };
    let all = || records().into_iter();
    let damaged = "the log is damaged: the file holds only the logged requests before the damage";
    let expected = ["the run is void: goodput sent late", damaged];
    let mut out = Vec::new();
    assert_eq!(write_vllm(&mut out, &run, &all, false).unwrap(), expected);
    let file: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(file["goodput_verdict"], "void");
    let mut out = Vec::new();
    assert_eq!(write_sglang(&mut out, &run, &all, false).unwrap(), expected);
    let file: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(file["server_info"]["goodput_verdict"], "void");
    assert_eq!(write_aiperf(&mut Vec::new(), &run, all()).unwrap(), expected);
    assert!(run.metadata("x").contains(&("goodput.verdict", "void".to_owned())));
}
