//! A plausible run: two minutes of chat on two GPUs.

use std::collections::BTreeMap;

use crate::Circumstances;
use goodput_model::{Severity, Verdict};
use goodput_stats::{
    Audit, Details, Distribution, Item, PositionBand, SloGrid, Source, StallView, Status, Summary,
    Timeline, normal_quantile,
};
use serde_json::{Value, json};

/// Where the window begins and ends, and the run.
const FROM: f64 = 30.0;
const TO: f64 = 150.0;
const END: f64 = 156.0;
/// Measured requests and gaps.
const REQUESTS: u64 = 2688;
const GAPS: u64 = 431_776;

/// Median, spread and samples of each metric: log-normal, as latencies often are.
const METRICS: [(&str, f64, f64, u64); 11] = [
    ("ttft", 118.0, 0.52, REQUESTS),
    ("ttft_sent", 117.6, 0.52, REQUESTS),
    ("ttfa", 118.0, 0.52, REQUESTS),
    ("tpot", 21.4, 0.14, REQUESTS),
    ("itl", 20.6, 0.31, GAPS),
    ("itl_token", 20.6, 0.31, GAPS),
    ("max_gap", 64.0, 0.6, REQUESTS),
    ("e2e", 3420.0, 0.55, REQUESTS),
    ("e2e_sent", 3419.0, 0.55, REQUESTS),
    ("normalized_latency", 22.3, 0.16, REQUESTS),
    ("request_tokens_per_s", 44.8, 0.16, REQUESTS),
];

fn value(median: f64, sigma: f64, share: f64) -> f64 {
    median * (sigma * normal_quantile(share.clamp(1e-6, 1.0 - 1e-6))).exp()
}

fn metric((_, median, sigma, n): (&str, f64, f64, u64)) -> Value {
    let percentile = |percent: f64| {
        let at = value(median, sigma, percent / 100.0);
        let wide = if percent > 99.0 { 0.16 } else { 0.004 * percent.max(5.0) / 5.0 };
        let quality = match (percent, n) {
            (p, n) if p > 99.0 && n < 10_000 => "few",
            _ => "ok",
        };
        json!({"value": at, "low": at * (1.0 - wide), "high": at * (1.0 + wide), "n_eff": 1900.0,
            "quality": quality})
    };
    let percents = ["50", "75", "90", "95", "99", "99.9"];
    let all: BTreeMap<_, _> =
        percents.iter().map(|p| (*p, percentile(p.parse().unwrap_or(0.0)))).collect();
    let mean = median * (sigma * sigma / 2.0).exp();
    json!({"unit": "ms", "n": n, "censored": 0, "mean": mean, "std": mean * sigma,
        "min": value(median, sigma, 1e-4), "max": value(median, sigma, 1.0 - 0.2 / n as f64),
        "percentiles": all, "mean_low": mean * 0.985, "mean_high": mean * 1.015})
}

fn waterfall() -> Value {
    let band = |n: u64, parts: [f64; 7]| {
        let names = ["slip", "dns", "connect", "tls", "send", "wait", "header_to_byte"];
        let mut all: Vec<_> =
            names.iter().zip(parts).map(|(name, ms)| json!({"name": name, "ms": ms})).collect();
        all.push(json!({"name": "byte_to_token", "ms": 1.8}));
        json!({"n": n, "ttft_ms": parts.iter().sum::<f64>() + 1.8, "parts": all})
    };
    json!({"median": band(268, [0.06, 0.0, 0.0, 0.0, 0.11, 92.4, 23.6]),
        "slowest": band(27, [0.09, 0.0, 1.4, 2.1, 0.13, 371.2, 66.9])})
}

fn slice(n: u64, tokens: (f64, f64), scale: f64) -> Value {
    let spread = |median: f64| json!({"n": n, "mean": median, "p50": median * scale, "p90": median * 1.9 * scale, "p99": null});
    json!({"scheduled": n + 2, "ok": n, "failed": 2, "input_tokens_mean": tokens.0,
        "output_tokens_mean": tokens.1, "ttft_ms": spread(118.0), "tpot_ms": spread(21.4),
        "itl_ms": spread(20.6), "e2e_ms": spread(3420.0), "output_tps": tokens.1 * n as f64 / 120.0,
        "rps": n as f64 / 120.0, "attainment": 0.985})
}

fn slo() -> Value {
    let term = |text: &str, value: f64, limit: f64, state: &str| {
        json!({"term": text, "kind": "percentile", "unit": "ms", "limit": limit,
            "attainment": 0.994, "attainment_low": 0.989, "attainment_high": 0.997, "value": value,
            "low": value * 0.93, "high": value * 1.06, "state": state, "vacuous": 0})
    };
    json!({
        "slo": "p99 ttft < 500ms, p99 tpot < 50ms", "state": "met", "target": 0.98,
        "attainment_state": "met", "judged_by": "percentile_limits", "scheduled": 2692,
        "good": 2662, "undetermined": 4,
        "misses": {"failed": 3, "timed_out": 1, "empty": 0, "truncated": 2, "limits": 20},
        "attainment": 0.9903, "attainment_low": 0.985, "attainment_high": 0.994, "n_eff": 1900.0,
        "goodput_rps": 22.2, "goodput_rps_low": 22.1, "goodput_rps_high": 22.3,
        "goodput_output_tps": 3562.0, "failed_share": 0.0015, "max_gap_p99_ms": 258.4,
        "terms": [term("p99 ttft < 500ms", 395.6, 500.0, "met"), term("p99 tpot < 50ms", 29.7, 50.0, "met")],
        "fluidity": {"n": 2688, "token_deadline_ms": 50.0, "fluid_share": 0.991, "p1": 0.91,
            "p10": 0.97, "p50": 1.0, "fluid_token_rate": 31.4},
        "ttft_fit": {"a_ms": 62.0, "b_ms_per_token": 0.11, "n": 2688},
    })
}

fn level(mean: f64, max: f64) -> Value {
    json!({"n": 120, "mean": mean, "min": mean * 0.4, "p50": mean, "p99": max * 0.98, "max": max})
}

fn pair(client: f64, server: f64) -> Value {
    json!({"client": client, "server": server, "difference": client - server,
        "share": (client - server) / server})
}

/// How the load rises at the beginning, and waves.
fn shape(at: f64) -> f64 {
    (at / 8.0).min(1.0) * (1.0 + 0.12 * (at / 9.0).sin() + 0.05 * (at * 1.7).sin())
}

fn server() -> Value {
    let timeline = (0..120).map(|n| {
        let at = f64::from(n) * 1.3;
        let waiting = (8.0 * (at / 23.0).sin().powi(9)).max(0.0).floor();
        json!({"at_s": at, "running": (74.0 * shape(at)).round(), "waiting": waiting,
            "kv_usage": (0.62 * shape(at)).min(1.0), "generation_per_s": 3560.0 * shape(at),
            "power_w": null})
    });
    json!({
        "endpoints": [{"url": "http://10.0.0.7:8000/metrics", "engine": "vllm", "answers": 156,
            "failures": 0, "longest_gap_s": 1.1, "took_ms": level(3.1, 8.4), "resets": 0,
            "malformed": 0}],
        "running": level(73.8, 92.0), "waiting": level(0.7, 8.0), "kv_usage": level(0.61, 0.74),
        "counters": {"preemptions": {"total": 2.0, "per_s": 0.0}},
        "queue": {"waiting_max": 8.0, "waiting_max_at_s": 36.0, "waiting_share": 0.12,
            "batch_limit": null, "at_limit_share": null, "wait_mean_ms": 6.4,
            "wait_share_of_ttft": 0.05},
        "prefix_hit_rate_counted": 0.31,
        "against_client": {"output_tokens": pair(431_776.0, 431_790.0),
            "prompt_tokens": pair(1_451_520.0, 1_454_208.0), "output_tokens_per_s": pair(3598.1, 3598.9),
            "ttft_mean_ms": pair(134.6, 128.2), "e2e_mean_ms": pair(3978.0, 3969.0)},
        "ttft_by_queue": {"source": "server", "rank_correlation": 0.34, "bands": [
            {"from": 0.0, "to": 0.0, "n": 2361, "ttft_p50_ms": 112.0, "ttft_p99_ms": 341.0},
            {"from": 1.0, "to": 8.0, "n": 327, "ttft_p50_ms": 187.0, "ttft_p99_ms": 502.0}]},
        "marks": [{"kind": "queue", "start_s": 33.0, "end_s": 39.0, "value": 8.0},
            {"kind": "preemptions", "start_s": 36.0, "end_s": 37.0, "value": 2.0}],
        "timeline": timeline.collect::<Vec<_>>(),
    })
}

fn gpu() -> Value {
    let device = |power: f64| {
        json!({"name": "NVIDIA H200", "energy_j": power * 120.0,
            "throttled": {"power cap": 0.02}, "levels": {"busy": level(0.93, 1.0),
            "sm_active": level(0.71, 0.88), "tensor_active": level(0.22, 0.4),
            "dram_active": level(0.58, 0.7), "memory_gb": level(131.0, 132.4),
            "power_w": level(power, 699.0), "sm_clock_mhz": level(1830.0, 1980.0),
            "temperature_c": level(61.0, 66.0)}})
    };
    json!({"source": "nvml", "devices": [device(548.0), device(561.0)],
        "energy": {"joules": 133_080.0, "by": "counter", "seconds": 120.0, "mean_w": 1109.0,
            "idle_w": 154.0, "joules_per": {"output_token": 0.308, "total_token": 0.0707,
            "good_output_token": 0.3113}, "above_idle_joules_per": {"output_token": 0.2654,
            "total_token": 0.0609, "good_output_token": 0.268}}})
}

fn client() -> Value {
    let quick = |p50: f64, p99: f64, max: f64| json!({"p50": p50, "p99": p99, "max": max});
    let thread = |cpu: f64| json!({"cpu_share": cpu, "cpu_share_max": cpu * 1.6, "waited_share": 0.01, "preempted_per_s": 1.4});
    json!({"observed_until_s": END, "stamps": "kernel", "lag_ms": quick(0.02, 0.11, 0.9),
        "pacer_lag_ms": quick(0.01, 0.05, 0.3), "loop_lag_ms": quick(0.04, 0.2, 1.1),
        "stalls": {"count": 1, "total_ms": 14.0, "longest_ms": 14.0, "longest_at_s": 71.2, "requests": 4},
        "threads": {"worker-0": thread(0.21), "worker-1": thread(0.19), "pacer": thread(0.02),
            "collector": thread(0.04)},
        "throttled_ms": 0.0, "throttled_periods": 0, "cpus": 16, "steal_share": 0.0,
        "idle_share": 0.94, "used_share": 0.03, "open_files_max": 214,
        "tcp": {"opened": 96, "reused": 2596, "retransmits": 3, "out_of_order": 0,
            "window_limited_ms": 0.0, "min_rtt_ms": 0.21},
        "littles_law": {"in_flight": 89.1, "arrivals_per_s": 22.4, "residence_s": 3.978,
            "residual": 0.001, "limit": 0.02},
        "canary": {"n": 1180, "unanswered": 0, "ttft_error_ms": quick(0.03, 0.14, 0.8),
            "ttft_error_beyond_chance_ms": 0.14, "itl_error_ms": quick(0.02, 0.09, 0.6)},
        "events_per_s": 3598.0, "host": {"memory_total_gb": 67.0, "memory_available_min_gb": 58.0,
            "network_received_mb_s": 1.9, "network_sent_mb_s": 0.4}})
}

/// Its numbers as the file has them, with something changed.
pub(crate) fn summary(change: impl FnOnce(&mut Value)) -> Summary {
    let metrics: BTreeMap<_, _> = METRICS.iter().map(|one| (one.0, metric(*one))).collect();
    let mut value = json!({
        "schema": "goodput.summary/1", "verdict": "valid",
        "caveats": [
            {"code": "connect_in_ttft", "severity": "info", "message": "96 of 2,692 requests opened a connection inside their TTFT", "advice": "add --connections 128 to open them before the load"},
            {"code": "few_samples", "severity": "info", "message": "p99.9 rests on 2,688 samples; it needs 10,000 to stand alone"}],
        "run": {"version": "0.9.0", "started": "2026-11-16T05:12:44Z", "state": "complete",
            "command": "goodput run http://10.0.0.7:8000 --rate 22.5 --slo 'p99 ttft < 500ms'",
            "target": "http://10.0.0.7:8000", "lookup": {"ms": null, "addresses": 1},
            "model": "meta-llama/Llama-3.3-70B-Instruct",
            "api": "chat", "stream": true, "workload": "chat: 540 tokens in (log-normal), 160 out",
            "seed": 7, "warmup": "30s", "lost_records": 0, "unwritten_records": 0,
            "log_damaged": false, "workload_hash": "7f3a91c2d4e5f60718293a4b5c6d7e8f",
            "ended_by": "plan",
            "system": {"found": {"engine": "vllm", "engine_version": "0.11.0", "dtype": "bfloat16",
                "tensor_parallel": "2", "max_model_len": "32768"}, "gpu_driver": "570.86.15",
                "gpus": [{"name": "NVIDIA H200", "interconnect": "PCIe 5 x16, 18 NVLinks"}, {"name": "NVIDIA H200"}]}},
        "load": {"mode": "open", "arrivals": "poisson", "offered_rps": 22.5, "scheduled_rps": 22.43,
            "delivered_rps": 22.43, "delivered_share": 1.0, "gap_cv": 1.01, "concurrency": null,
            "max_concurrency": null, "delayed": 0, "slip_ms": {"p50": 0.05, "p99": 0.11, "max": 0.42},
            "in_flight_mean": 89.1, "in_flight_end": 84,
            "sent_gaps": {"n": 2691, "distance": 0.014, "p": 0.63}},
        "requests": {"scheduled": 2692, "ok": 2688, "failed": 4, "errors": {"http_5xx": 3, "timeout": 1},
            "errors_by_stage": {"headers": 3, "body": 1}, "error_details": [
                {"class": "http_5xx", "stage": "headers", "count": 3, "message": "503 no slot free"},
                {"class": "timeout", "stage": "body", "count": 1, "message": "no byte for 30 s"}],
            "warmup": 611, "cooldown": 0, "reconnects": 0, "connects": 96,
            "finish_reasons": {"stop": 14, "length": 2674}},
        "tokens": {"input": 1_451_520, "input_source": "usage", "output": 431_776,
            "output_source": "usage", "cached": 449_971, "chunks": 431_776, "coalesced_chunks": 31},
        "throughput": {"requests_per_s": 22.4, "output_tokens_per_s": 3598.1, "total_tokens_per_s": 15694.1},
        "whole_run": {"requests_per_s": 21.1, "output_tokens_per_s": 3391.0, "total_tokens_per_s": 14790.0},
        "window": {"start_s": FROM, "end_s": TO, "kind": "steady"},
        "metrics": metrics, "waterfall": waterfall(),
        "breakdown": {
            "class": {"chat": slice(1844, (420.0, 150.0), 0.9), "summarize": slice(844, (802.0, 182.0), 1.4)},
            "input_tokens": {"128–255": slice(402, (201.0, 160.0), 0.7), "256–511": slice(1101, (380.0, 160.0), 0.9),
                "512–1023": slice(1185, (720.0, 161.0), 1.3)},
            "turn": {"1": slice(1500, (300.0, 160.0), 0.8), "2": slice(788, (600.0, 160.0), 1.1),
                "3": slice(400, (900.0, 160.0), 1.5)}},
        "server": server(), "gpu": gpu(), "client": client(), "slo": slo(),
    });
    change(&mut value);
    serde_json::from_value(value).unwrap_or_else(|error| panic!("the fixture: {error}"))
}

fn distribution(median: f64, sigma: f64, n: u64) -> Distribution {
    let share = |step: u32| f64::from(step) / 199.0;
    let quantiles: Vec<_> = (0..200)
        .map(|step| (share(step), value(median, sigma, share(step).clamp(2e-4, 1.0 - 2e-4))))
        .collect();
    let ratio = 10f64.powf(1.0 / 24.0);
    let first = value(median, sigma, 2e-4);
    let bins = ((value(median, sigma, 1.0 - 2e-4) / first).ln() / ratio.ln()).ceil() as i32 + 1;
    let mut histogram: Vec<(f64, u64)> =
        (0..=bins).map(|bin| (first * ratio.powi(bin), 0)).collect();
    for sample in 0..n.min(5000) {
        let at = value(median, sigma, (sample as f64 + 0.5) / n.min(5000) as f64);
        let bin = ((at / first).ln() / ratio.ln()).floor().clamp(0.0, f64::from(bins - 1)) as usize;
        histogram[bin].1 += (n / n.min(5000)).max(1);
    }
    Distribution { n, censored: 0, quantiles, histogram }
}

/// What its charts are drawn from.
pub(crate) fn details() -> Details {
    let distributions = METRICS
        .iter()
        .filter(|(name, ..)| ["ttft", "tpot", "itl", "e2e", "max_gap"].contains(name))
        .map(|(name, median, sigma, n)| ((*name).to_owned(), distribution(*median, *sigma, *n)))
        .collect();
    let positions = [(2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 64), (65, 128), (129, 256)];
    let positions = positions.into_iter().enumerate().map(|(place, (from, to))| {
        let p50 = 19.2 + place as f64 * 0.45;
        let n = 2688 * (to - from + 1);
        PositionBand { from, to, n, p50, p90: p50 * 1.42, p99: Some(p50 * 2.1) }
    });
    let longest = (0..60)
        .map(|n: u32| (f64::from(n) * 2.5 + 1.0, 210.0 + f64::from(n * n % 97) * 6.0))
        .collect();
    Details {
        distributions,
        positions: positions.collect(),
        stalls: StallView { threshold_ms: 206.0, count: 73, requests: 71, longest },
        timeline: timeline(),
        slo_grid: SloGrid {
            ttft_ms: vec![100.0, 200.0, 500.0],
            tpot_ms: vec![20.0, 50.0],
            cells: vec![
                (0, 0, 700, 112_000),
                (1, 1, 1600, 256_000),
                (2, 1, 380, 62_000),
                (3, 2, 8, 1200),
            ],
            requests: 2692,
            window_s: 120.0,
        },
    }
}

fn timeline() -> Timeline {
    let bins = 312;
    let at = |bin: usize| (bin as f64 + 0.5) * 0.5;
    let of =
        |scale: f64| -> Vec<f64> {
            (0..bins)
                .map(|bin| {
                    if at(bin) > TO {
                        scale * (END - at(bin)) / 6.0
                    } else {
                        scale * shape(at(bin))
                    }
                })
                .collect()
        };
    let ttft = (0..bins).map(|bin| {
        (at(bin) <= TO && bin % 40 != 7)
            .then(|| 118.0 * (2.0 - (at(bin) / 6.0).min(1.0)) * shape(at(bin) + 9.0))
    });
    Timeline {
        bin_s: 0.5,
        in_flight: of(89.0),
        tokens_per_s: of(3598.0),
        arrivals_per_s: (0..bins)
            .map(|bin| if at(bin) > TO { 0.0 } else { 18.0 + (bin * 7 % 11) as f64 })
            .collect(),
        completions_per_s: of(22.4),
        errors: (0..bins)
            .map(|bin| u64::from([130, 131, 250].contains(&bin)) + u64::from(bin == 130))
            .collect(),
        ttft_p50_ms: ttft.collect(),
        gpu: (0..156)
            .map(|n| {
                let at = f64::from(n);
                (at, Some((0.93 * shape(at)).min(1.0)), Some(154.0 + 955.0 * shape(at)))
            })
            .collect(),
    }
}

/// The checklist.
pub(crate) fn audit() -> Audit {
    let item = |title: &str, status, severity, evidence: &str, advice: &str| Item {
        check: title.replace(' ', "_"),
        title: title.to_owned(),
        status,
        severity,
        evidence: evidence.to_owned(),
        advice: advice.to_owned(),
        source: Source::Checklist,
    };
    Audit {
        subject: "run".to_owned(),
        tool: "goodput 0.9.0".to_owned(),
        run: "chat".to_owned(),
        verdict: Verdict::Valid,
        items: vec![
            item(
                "several runs",
                Status::Missing,
                Severity::Info,
                "one run: nothing is known of the spread between runs",
                "add --repeat 5",
            ),
            item(
                "open loop",
                Status::Ok,
                Severity::Info,
                "open loop, Poisson arrivals at 22.5 req/s",
                "",
            ),
            item("warm-up", Status::Ok, Severity::Info, "30 s before the window", ""),
            item("hardware", Status::Ok, Severity::Info, "2 × NVIDIA H200", ""),
            item(
                "tail rests on samples",
                Status::Doubtful,
                Severity::Info,
                "p99.9 from 2,688 samples",
                "measure 10,000 requests",
            ),
        ],
    }
}

/// How to repeat it.
pub(crate) fn circumstances() -> Circumstances {
    let facts = [
        ("Client", "16 cores AMD EPYC 9654, Linux 6.8, 67 GB"),
        ("goodput", "0.9.0 (release)"),
        ("Folder", "runs/2026-11-16-chat"),
    ];
    Circumstances {
        facts: facts.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        plan: "[target]\nurl = \"http://10.0.0.7:8000\"\napi = \"chat\"\n\n[load]\nrate = 22.5\nduration = \"2m\"\nwarmup = \"30s\"\nseed = 7\n\n[workload]\nkind = \"chat\"\n".to_owned(),
        command: "goodput run --plan plan.toml http://10.0.0.7:8000".to_owned(),
    }
}
