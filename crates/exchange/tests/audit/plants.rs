//! What is done to a file, and the check that must find it.

use serde_json::{Value, json};

use crate::runs::Sent;
use crate::runs::Shape::{
    self, Aiperf, GenaiPerf, Guidellm, GuidellmAll, Ours, Sglang, SglangAll, Vllm, VllmAll,
};
use crate::runs::{Answer, Scene};

/// How a defect comes into a file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plant {
    /// Into the file of an open loop.
    File(fn(&mut Value)),
    /// Into the file of a closed loop.
    Closed(fn(&mut Value)),
    /// Into what was measured: every figure follows from it.
    Run(fn(&mut Scene)),
}
use Plant::{Closed, File, Run};

/// Kind of defect, file, plant, check.
pub(crate) type Kind = (&'static str, Shape, Plant, &'static str);

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn scale(file: &mut Value, names: &[&str], by: f64) {
    for name in names {
        file[*name] = json!(number(&file[*name]) * by);
    }
}

/// Every statistic of a metric of vLLM or SGLang.
fn flat(file: &mut Value, metric: &str, by: f64) {
    let suffix = format!("_{metric}_ms");
    let fields = file.as_object_mut().unwrap().iter_mut();
    for (_, value) in fields.filter(|(name, _)| name.ends_with(&suffix)) {
        *value = json!(number(value) * by);
    }
}

/// Every statistic of a metric that is an object; the count stays.
fn nested(metric: &mut Value, by: f64) {
    for (name, value) in metric.as_object_mut().unwrap() {
        match value {
            Value::Object(_) => nested(value, by),
            Value::Number(n) if n.is_f64() && name != "count" => {
                *value = json!(n.as_f64().unwrap() * by);
            }
            _ => {}
        }
    }
}

fn guidellm<'a>(file: &'a mut Value, metric: &str) -> &'a mut Value {
    &mut file["benchmarks"][0]["metrics"][metric]["successful"]
}

fn each(file: &mut Value, list: &str, change: impl Fn(usize, &Value) -> Value) {
    let list = file[list].as_array_mut().unwrap();
    list.iter_mut().enumerate().for_each(|(place, value)| *value = change(place, value));
}

fn swap(file: &mut Value, a: &str, b: &str) {
    let (first, second) = (file[a].clone(), file[b].clone());
    (file[a], file[b]) = (second, first);
}

const RATES: [&str; 3] = ["request_throughput", "output_throughput", "total_token_throughput"];

fn slower(answer: &mut Answer, by: f64) {
    answer.gaps.iter_mut().for_each(|gap| *gap *= by);
}

#[rustfmt::skip]
pub(crate) const KINDS: &[Kind] = &[
    // Arithmetic.
    ("request rate is not requests / duration", Vllm, File(|f| scale(f, &RATES[..1], 1.1)), "request_rate"),
    ("request rate is not requests / duration", Sglang, File(|f| scale(f, &RATES[..1], 1.01)), "request_rate"),
    ("output rate is not tokens / duration", Vllm, File(|f| scale(f, &RATES[1..2], 1.15)), "token_rate"),
    ("total rate is the output rate", Sglang, File(|f| f["total_throughput"] = f["output_throughput"].clone()), "token_rate"),
    ("total rate is not input and output rate", Sglang, File(|f| scale(f, &["input_throughput"], 1.2)), "stated_twice"),
    ("tokens/s of one user for all", Aiperf, File(|f| { f["output_token_throughput"]["avg"] = f["output_token_throughput_per_user"]["avg"].clone() }), "token_rate"),
    ("tokens/s of one user for all", GenaiPerf, File(|f| { f["output_token_throughput"]["avg"] = f["output_token_throughput_per_user"]["avg"].clone() }), "token_rate"),
    ("output rate is not tokens / duration", Guidellm, File(|f| nested(guidellm(f, "output_tokens_per_second"), 1.2)), "token_rate"),
    ("TPOT × 0.4", Vllm, File(|f| flat(f, "tpot", 0.4)), "phases_add_up"),
    ("TPOT = 3 × ITL", Vllm, File(|f| flat(f, "tpot", 3.0)), "phases_add_up"),
    ("ITL × 3", Vllm, File(|f| flat(f, "itl", 3.0)), "coalesced_chunks"),
    ("ITL / 3", Sglang, File(|f| flat(f, "itl", 1.0 / 3.0)), "phases_add_up"),
    ("ITL × 1.1, gaps counted", Aiperf, File(|f| nested(&mut f["inter_chunk_latency"], 1.1)), "phases_add_up"),
    ("ITL × 1.1, gaps counted", Guidellm, File(|f| nested(guidellm(f, "inter_token_latency_ms"), 1.1)), "phases_add_up"),
    ("E2E × 1.2", Aiperf, File(|f| nested(&mut f["request_latency"], 1.2)), "phases_add_up"),
    ("E2E × 2", GenaiPerf, File(|f| nested(&mut f["request_latency"], 2.0)), "phases_add_up"),
    ("goodput above throughput", Vllm, File(|f| f["request_goodput"] = json!(number(&f["request_throughput"]) * 1.2)), "latency_bound"),
    ("mean is not sum / count", Aiperf, File(|f| scale(&mut f["time_to_first_token"], &["avg"], 1.02)), "stated_twice"),
    ("mean is not sum / count", Guidellm, File(|f| scale(guidellm(f, "time_to_first_token_ms"), &["mean"], 0.98)), "stated_twice"),
    // Little's law.
    ("concurrency is not throughput × E2E", Sglang, File(|f| scale(f, &["concurrency"], 1.5)), "littles_law"),
    ("concurrency is not throughput × E2E", Guidellm, File(|f| scale(guidellm(f, "request_concurrency"), &["mean"], 0.8)), "littles_law"),
    ("peak below the mean", Vllm, File(|f| f["max_concurrent_requests"] = json!(3)), "littles_law"),
    ("more in flight than requests", Vllm, File(|f| f["max_concurrent_requests"] = json!(1001)), "littles_law"),
    ("peak is not that of the requests", VllmAll, File(|f| f["max_concurrent_requests"] = json!(60)), "littles_law"),
    ("open loop, latencies × 20", Vllm, File(|f| ["ttft", "tpot", "itl", "e2el"].iter().for_each(|m| flat(f, m, 20.0))), "littles_law"),
    ("cap below the requests in flight", Vllm, File(|f| f["max_concurrency"] = json!(3)), "littles_law"),
    ("closed loop, fewer users than are waiting", Vllm, Closed(|f| f["max_concurrency"] = json!(8)), "littles_law"),
    ("closed loop, more users than are waiting", Aiperf, Closed(|f| f["input_config"]["phases"][0]["concurrency"] = json!(40)), "littles_law"),
    (
        "closed loop, duration / 2 and rates × 2",
        Vllm,
        Closed(|f| {
            scale(f, &["duration"], 0.5);
            scale(f, &RATES, 2.0);
            f["max_concurrent_requests"] = Value::Null;
        }),
        "littles_law",
    ),
    // Counts.
    ("ok and failed are more than asked", Vllm, File(|f| f["failed"] = json!(3)), "request_sum"),
    ("ok and failed are fewer than asked", Vllm, File(|f| f["num_prompts"] = json!(1040)), "request_sum"),
    ("the parts are not the total", GuidellmAll, File(|f| f["benchmarks"][0]["metrics"]["request_totals"]["total"] = json!(1050)), "request_sum"),
    ("made and counted requests differ", Guidellm, File(|f| f["benchmarks"][0]["scheduler_metrics"]["requests_made"]["errored"] = json!(40)), "stated_twice"),
    (
        "TTFT of three quarters of the requests",
        Aiperf,
        File(|f| {
            let m = &mut f["time_to_first_token"];
            let by = 0.75;
            scale(m, &["count", "sum"], by);
        }),
        "sample_counts",
    ),
    ("E2E of more requests than ended", Aiperf, File(|f| scale(&mut f["request_latency"], &["count", "sum"], 1.1)), "sample_counts"),
    ("lists of unlike length", VllmAll, File(|f| f["latencies"].as_array_mut().unwrap().truncate(950)), "stated_twice"),
    ("lists of unlike length", SglangAll, File(|f| f["itls"].as_array_mut().unwrap().truncate(990)), "stated_twice"),
    ("requests left out of the list", GuidellmAll, File(|f| f["benchmarks"][0]["metrics"]["request_totals"]["successful"] = json!(990)), "request_sum"),
    ("successes are not those of the list", SglangAll, File(|f| f["completed"] = json!(1010)), "recomputed_totals"),
    ("negative latency", Vllm, File(|f| f["mean_ttft_ms"] = json!(-40.0)), "latency_sign"),
    ("negative gap", SglangAll, File(|f| f["itls"][5][0] = json!(-0.04)), "request_latencies"),
    ("NaN", Vllm, File(|f| f["p99_tpot_ms"] = json!("@NaN")), "not_finite"),
    ("infinite", Sglang, File(|f| f["mean_tpot_ms"] = json!("@Infinity")), "not_finite"),
    ("duration of zero", Vllm, File(|f| f["duration"] = json!(0.0)), "latency_sign"),
    ("no request at all", Vllm, File(|f| { f["completed"] = json!(0); f["num_prompts"] = json!(0); }), "request_count"),
    // Order.
    ("p90 above p99", Vllm, File(|f| swap(f, "p90_ttft_ms", "p99_ttft_ms")), "percentile_order"),
    ("p50 above p90", GenaiPerf, File(|f| swap(&mut f["request_latency"], "p50", "p90")), "percentile_order"),
    ("median is not p50", Vllm, File(|f| scale(f, &["median_e2el_ms"], 1.01)), "percentile_order"),
    (
        "median above max",
        Guidellm,
        File(|f| {
            let m = guidellm(f, "request_latency");
            m["max"] = json!(number(&m["median"]) * 0.9);
        }),
        "percentile_order",
    ),
    (
        "p99 above max",
        Aiperf,
        File(|f| {
            let m = &mut f["request_latency"];
            m["max"] = json!(number(&m["p99"]) * 0.9);
        }),
        "percentile_order",
    ),
    (
        "mean above max",
        GenaiPerf,
        File(|f| {
            let m = &mut f["time_to_first_token"];
            m["avg"] = json!(number(&m["max"]) * 1.1);
        }),
        "mean_in_range",
    ),
    (
        "mean below min",
        Ours,
        File(|f| {
            let m = &mut f["metrics"]["ttft"];
            m["mean"] = json!(number(&m["min"]) * 0.9);
        }),
        "mean_in_range",
    ),
    ("mean is 1.5 × p99", Vllm, File(|f| f["mean_ttft_ms"] = json!(number(&f["p99_ttft_ms"]) * 1.5)), "mean_in_range"),
    ("mean below what percentiles allow", GenaiPerf, File(|f| scale(&mut f["inter_token_latency"], &["avg"], 0.9)), "mean_in_range"),
    ("mean above what percentiles allow", GenaiPerf, File(|f| scale(&mut f["inter_token_latency"], &["avg"], 1.1)), "mean_in_range"),
    ("deviation of zero although percentiles differ", Vllm, File(|f| f["std_ttft_ms"] = json!(0.0)), "mean_in_range"),
    ("deviation below zero", Sglang, File(|f| scale(f, &["std_ttft_ms"], -1.0)), "mean_in_range"),
    ("p99 too far above for the deviation", Vllm, File(|f| scale(f, &["std_e2el_ms"], 0.3)), "mean_in_range"),
    (
        "p10 too far below for the deviation",
        GenaiPerf,
        File(|f| {
            let m = &mut f["request_latency"];
            scale(m, &["std"], 0.25);
            for p in ["p75", "p90", "p95", "p99"] {
                m[p] = m["avg"].clone();
            }
        }),
        "mean_in_range",
    ),
    ("deviation above what min and max allow", GenaiPerf, File(|f| scale(&mut f["time_to_first_token"], &["std"], 9.0)), "mean_in_range"),
    (
        "deviation below what min and max allow",
        Guidellm,
        File(|f| {
            let m = guidellm(f, "time_to_first_token_ms");
            m["max"] = json!(number(&m["mean"]) + 60.0 * number(&m["std_dev"]));
        }),
        "mean_in_range",
    ),
    ("TTFT above E2E", Vllm, File(|f| f["p99_ttft_ms"] = json!(number(&f["p99_e2el_ms"]) * 1.1)), "ttft_below_e2e"),
    (
        "TTFT above E2E in the mean",
        Ours,
        File(|f| {
            let e2e = f["metrics"]["e2e"]["mean"].clone();
            f["metrics"]["ttft"]["mean"] = json!(number(&e2e) * 1.01);
        }),
        "ttft_below_e2e",
    ),
    ("figures are not those of the requests", VllmAll, File(|f| scale(f, &["p99_e2el_ms"], 0.9)), "recomputed_statistics"),
    ("mean is not that of the requests", GuidellmAll, File(|f| scale(guidellm(f, "request_latency"), &["mean", "total_sum"], 0.97)), "recomputed_statistics"),
    ("deviation is not that of the requests", SglangAll, File(|f| scale(f, &["std_ttft_ms"], 0.8)), "recomputed_statistics"),
    ("p90 is not that of the requests", VllmAll, File(|f| scale(f, &["p90_ttft_ms"], 0.97)), "recomputed_statistics"),
    // Time.
    (
        "duration / 2 and rates × 2",
        VllmAll,
        File(|f| {
            scale(f, &["duration"], 0.5);
            scale(f, &RATES, 2.0);
        }),
        "within_duration",
    ),
    (
        "duration / 2 and rates × 2",
        GuidellmAll,
        File(|f| {
            let b = &mut f["benchmarks"][0];
            scale(b, &["duration"], 0.5);
            b["end_time"] = json!(number(&b["start_time"]) + number(&b["duration"]));
            for m in [
                "requests_per_second",
                "output_tokens_per_second",
                "tokens_per_second",
                "request_concurrency",
            ] {
                nested(&mut b["metrics"][m], 2.0);
            }
        }),
        "within_duration",
    ),
    (
        "duration × 2 and rates / 2",
        VllmAll,
        File(|f| {
            scale(f, &["duration"], 2.0);
            scale(f, &RATES, 0.5);
        }),
        "within_duration",
    ),
    (
        "requests that start after the end",
        VllmAll,
        File(|f| {
            let duration = number(&f["duration"]);
            each(f, "start_times", |i, s| {
                if i % 100 == 7 { json!(number(s) + duration) } else { s.clone() }
            });
        }),
        "within_duration",
    ),
    (
        "run shorter than its longest request",
        Vllm,
        File(|f| {
            let by = number(&f["p99_e2el_ms"]) * 0.8e-3 / number(&f["duration"]);
            scale(f, &["duration"], by);
            scale(f, &RATES, 1.0 / by);
            f["max_concurrent_requests"] = Value::Null;
        }),
        "within_duration",
    ),
    ("end before start", Aiperf, File(|f| swap(f, "start_time", "end_time")), "stated_twice"),
    (
        "duration is not from start to end",
        Guidellm,
        File(|f| {
            let b = &mut f["benchmarks"][0];
            b["end_time"] = json!(number(&b["start_time"]) + 2.0 * number(&b["duration"]));
        }),
        "stated_twice",
    ),
    ("duration longer than from start to end", Aiperf, File(|f| scale(&mut f["benchmark_duration"], &["avg"], 1.5)), "stated_twice"),
    (
        "request ends before it starts",
        GuidellmAll,
        File(|f| {
            let r = &mut f["benchmarks"][0]["requests"]["successful"][3];
            swap(r, "request_start_time", "request_end_time");
        }),
        "stated_twice",
    ),
    // Units.
    ("E2E in seconds", Vllm, File(|f| flat(f, "e2el", 1e-3)), "ttft_below_e2e"),
    ("TPOT in seconds", Sglang, File(|f| flat(f, "tpot", 1e-3)), "phases_add_up"),
    ("TTFT in seconds", Aiperf, File(|f| nested(&mut f["time_to_first_token"], 1e-3)), "phases_add_up"),
    ("E2E in milliseconds for seconds", Guidellm, File(|f| nested(guidellm(f, "request_latency"), 1e3)), "littles_law"),
    ("lists in milliseconds for seconds", SglangAll, File(|f| each(f, "ttfts", |_, t| json!(number(t) * 1e3))), "recomputed_statistics"),
    // Load.
    ("rate `inf` called Poisson", Aiperf, File(|f| f["input_config"]["phases"][0]["rate"] = json!("inf")), "open_loop"),
    ("equal gaps called Poisson", VllmAll, Run(|s| (s.sent, s.said) = (Sent::Evenly(0.6), Some(Sent::Poisson(0.6)))), "arrival_gaps"),
    ("groups called Poisson", GuidellmAll, Run(|s| (s.sent, s.said) = (Sent::InGroups(0.6), Some(Sent::Poisson(0.6)))), "arrival_gaps"),
    ("closed loop called open", VllmAll, Run(|s| (s.sent, s.said) = (Sent::Closed(20), Some(Sent::Poisson(0.6)))), "open_loop"),
    ("closed loop called open", GuidellmAll, Run(|s| (s.sent, s.said) = (Sent::Closed(20), Some(Sent::Poisson(0.6)))), "open_loop"),
    ("all at once called Poisson", VllmAll, Run(|s| (s.sent, s.said) = (Sent::AtOnce, Some(Sent::Poisson(0.6)))), "delivered_rate"),
    ("rate not kept", Vllm, File(|f| scale(f, &["request_rate"], 1.5)), "delivered_rate"),
    ("more sent than asked", Aiperf, File(|f| scale(&mut f["input_config"]["phases"][0], &["rate"], 0.7)), "delivered_rate"),
    // Samples.
    ("p99 of 50 requests", Vllm, Run(|s| s.n = 50), "p99_samples"),
    ("p99.9 of 1,000 requests", Vllm, Run(|s| s.percentiles.push(99.9)), "p999_samples"),
    (
        "copied requests",
        SglangAll,
        File(|f| {
            for list in ["ttfts", "itls", "input_lens", "output_lens"] {
                for place in 700..720 {
                    f[list][place] = f[list][place - 700].clone();
                }
            }
        }),
        "copied_requests",
    ),
    ("all requests identical", VllmAll, File(|f| each(f, "ttfts", |_, _| json!(0.04))), "identical_latencies"),
    (
        "all figures identical",
        Vllm,
        File(|f| {
            for stat in ["mean", "median", "p50", "p90", "p99"] {
                f[format!("{stat}_ttft_ms")] = json!(40.0);
            }
            f["std_ttft_ms"] = json!(0.0);
        }),
        "identical_latencies",
    ),
    ("slow answers cut at a value", VllmAll, File(|f| each(f, "latencies", |_, l| json!(number(l).min(1.3)))), "clipped_tail"),
    (
        "slow answers cut at a value",
        GenaiPerf,
        File(|f| {
            let m = &mut f["request_latency"];
            for p in ["p99", "max"] {
                m[p] = m["p95"].clone();
            }
        }),
        "clipped_tail",
    ),
    ("one request in twenty failed", Vllm, Run(|s| s.failing = 20), "failures"),
    ("errors dropped", Aiperf, File(|f| f["completed_request_count"]["avg"] = json!(1050)), "stated_twice"),
    ("every request failed", Vllm, File(|f| { f["completed"] = json!(0); f["failed"] = json!(1000); }), "failures"),
    ("run canceled", Aiperf, File(|f| f["was_cancelled"] = json!(true)), "own_remarks"),
    // Tokens.
    (
        "output tokens + 15 %",
        Vllm,
        File(|f| {
            let n = number(&f["total_output_tokens"]);
            f["total_output_tokens"] = json!((n * 1.15).round());
            scale(f, &["output_throughput"], 1.15);
            f["total_token_throughput"] = json!(
                (number(&f["total_output_tokens"]) + number(&f["total_input_tokens"]))
                    / number(&f["duration"])
            );
        }),
        "phases_add_up",
    ),
    (
        "output tokens are not those of the list",
        SglangAll,
        File(|f| {
            f["total_output_tokens"] = json!((number(&f["total_output_tokens"]) * 1.02).round());
        }),
        "recomputed_totals",
    ),
    (
        "prompts counted by another tokenizer",
        VllmAll,
        File(|f| {
            f["total_input_tokens"] = json!((number(&f["total_input_tokens"]) * 1.3).round());
            f["total_token_throughput"] = json!(
                (number(&f["total_output_tokens"]) + number(&f["total_input_tokens"]))
                    / number(&f["duration"])
            );
        }),
        "recomputed_totals",
    ),
    (
        "prompts counted by another tokenizer",
        Aiperf,
        File(|f| {
            let more = number(&f["total_isl"]["avg"]) * 0.3;
            f["total_isl"]["avg"] = json!((number(&f["total_isl"]["avg"]) + more).round());
            let rate = (number(&f["total_isl"]["avg"]) + number(&f["total_osl"]["avg"]))
                / number(&f["benchmark_duration"]["avg"]);
            f["total_token_throughput"]["avg"] = json!(rate);
        }),
        "stated_twice",
    ),
    ("success without a token", VllmAll, File(|f| f["output_lens"][4] = json!(0)), "empty_answers"),
    ("success without a token", GenaiPerf, File(|f| f["output_sequence_length"]["min"] = json!(0)), "empty_answers"),
    ("one event called a token", Sglang, File(|f| { f["total_output_tokens_retokenized"] = json!((number(&f["total_output_tokens"]) * 2.0).round()) }), "token_counts"),
    ("ITL of several tokens", VllmAll, Run(|s| s.per_event = 3), "coalesced_chunks"),
    (
        "TTFT in ITL",
        VllmAll,
        File(|f| {
            let firsts = f["ttfts"].clone();
            each(f, "itls", |i, gaps| {
                let mut gaps = gaps.as_array().unwrap().clone();
                gaps.insert(0, firsts[i].clone());
                json!(gaps)
            });
        }),
        "request_latencies",
    ),
    ("first token at the role, mean ITL", VllmAll, Run(|s| s.api = goodput_model::Api::Chat), "first_token"),
    (
        "first token at the role, TTFT near zero",
        VllmAll,
        Run(|s| {
            s.api = goodput_model::Api::Chat;
            s.change = |_, a| (a.first, a.role) = (0.12, 0.001);
        }),
        "first_token",
    ),
    ("TTFT without streaming", Aiperf, File(|f| f["input_config"]["endpoint"]["streaming"] = json!(false)), "streaming"),
    ("TTFT of zero", Aiperf, File(|f| f["time_to_first_token"]["min"] = json!(0.0)), "empty_answers"),
    // Course.
    (
        "cold start, first tokens",
        VllmAll,
        Run(|s| {
            s.change = |share, a| {
                if share < 0.1 {
                    a.first *= 10.0;
                    a.role = a.first;
                }
            }
        }),
        "cold_requests",
    ),
    ("cold start, pace", SglangAll, Run(|s| { s.change = |share, a| { if share < 0.1 { slower(a, 1.5); } } }), "cold_requests"),
    ("trend", VllmAll, Run(|s| s.change = |share, a| slower(a, 1.0 + 0.4 * share)), "latency_trend"),
    ("step", GuidellmAll, Run(|s| s.change = |share, a| slower(a, if share < 0.5 { 1.0 } else { 1.2 })), "latency_trend"),
    (
        "warm-up counted",
        Aiperf,
        File(|f| {
            let warm = json!({ "kind": "warmup", "requests": 100 });
            f["input_config"]["phases"].as_array_mut().unwrap().insert(0, warm);
            f["input_config"]["phases"][1]["requests"] = json!(900);
        }),
        "request_sum",
    ),
    // Our own.
    (
        "p99 below p50",
        Ours,
        File(|f| {
            let p = &mut f["metrics"]["e2e"]["percentiles"];
            p["99"]["value"] = json!(number(&p["50"]["value"]) * 0.9);
        }),
        "percentile_order",
    ),
    ("more ok than scheduled", Ours, File(|f| f["requests"]["ok"] = json!(1050)), "request_sum"),
    ("negative latency", Ours, File(|f| f["metrics"]["ttft"]["min"] = json!(-1.0)), "latency_sign"),
    ("TPOT × 3", Ours, File(|f| nested(&mut f["metrics"]["tpot"], 3.0)), "phases_add_up"),
    (
        "valid with a void caveat",
        Ours,
        File(|f| {
            f["caveats"] = json!([{ "code": "not_delivered", "severity": "void", "message": "x" }]);
            f["verdict"] = json!("valid");
        }),
        "own_verdict",
    ),
];
