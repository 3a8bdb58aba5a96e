//! The page of a server whose every figure is written down here.

use serde_json::{Value, json};

use crate::tests::page;

fn level(mean: f64, p50: f64, p99: f64, max: f64) -> Value {
    json!({"n": 60, "mean": mean, "min": 0.0, "p50": p50, "p99": p99, "max": max})
}

fn pair(client: f64, server: f64) -> Value {
    let difference = client - server;
    json!({"client": client, "server": server, "difference": difference,
        "share": difference / server})
}

pub(crate) fn full() -> Value {
    let points = (0..6).map(|n| {
        let share = f64::from(n) / 5.0;
        json!({"at_s": n * 10, "running": 64.0 * share, "waiting": if n == 3 { 12.0 } else { 0.0 },
            "kv_usage": share, "generation_per_s": null, "power_w": null})
    });
    json!({
        "endpoints": [{"url": "http://x/metrics", "engine": "vllm", "answers": 61, "failures": 2,
            "last_failure": "no answer\u{1b}[2J in 1 s", "longest_gap_s": 2.0,
            "took_ms": level(3.0, 3.0, 8.0, 9.0), "resets": 0, "malformed": 0}],
        "running": level(32.5, 40.0, 64.0, 64.0), "waiting": level(1.25, 0.0, 12.0, 12.0),
        "kv_usage": level(0.5, 0.5, 0.99, 1.0), "prefix_hit_rate": level(0.1, 0.1, 0.1, 0.1),
        "counters": {"preemptions": {"total": 1234.0, "per_s": 20.6},
            "rejections": {"total": 3.0, "per_s": 0.05}},
        "queue": {"waiting_max": 12.0, "waiting_max_at_s": 30.0, "waiting_share": 0.2,
            "batch_limit": 64.0, "at_limit_share": 0.25, "wait_mean_ms": 120.5,
            "wait_share_of_ttft": 0.4},
        "prefix_hit_rate_counted": 0.72, "speculative_acceptance_counted": 0.81,
        "against_client": {"output_tokens": pair(17_488_967.0, 17_502_061.0),
            "prompt_tokens": pair(500_000.0, 17_988_967.0), "output_tokens_per_s": null,
            "ttft_mean_ms": pair(55.5, 50.0), "e2e_mean_ms": null},
        "ttft_by_queue": {"source": "server", "rank_correlation": 0.5, "bands": [
            {"from": 0.0, "to": 0.0, "n": 1000, "ttft_p50_ms": 50.0, "ttft_p99_ms": 80.0},
            {"from": 1.0, "to": 12.0, "n": 60, "ttft_p50_ms": 250.0, "ttft_p99_ms": null}]},
        "marks": [
            {"kind": "kv_pressure", "start_s": 28.0, "end_s": 33.5, "value": 0.97},
            {"kind": "queue", "start_s": 29.0, "end_s": 31.0, "value": 12.0},
            {"kind": "restart", "start_s": 40.0, "end_s": 40.0, "value": 1.0},
            {"kind": "no_answer", "start_s": 41.0, "end_s": 43.0, "value": 2.0},
            {"kind": "od\u{1b}d", "start_s": 1.0, "end_s": 2.0, "value": 3.0},
            {"kind": "preemptions", "start_s": 39.0, "end_s": 40.0, "value": 1.0},
            {"kind": "queue", "start_s": 50.0, "end_s": 51.0, "value": 1.0}],
        "scaling": {"first": 1.0, "most": 3.0, "last": 2.0, "changes": [
            {"at_s": 41.0, "after_s": 40.0, "from": 1.0, "to": 3.0, "load_rise_s": 10.0,
                "lag_s": 31.0},
            {"at_s": 55.0, "after_s": 54.0, "from": 3.0, "to": 2.0, "load_rise_s": null,
                "lag_s": null}]},
        "timeline": points.collect::<Vec<_>>(),
    })
}

/// From the server's first line to the rates.
fn section(page: &str) -> Vec<&str> {
    let from = page.lines().skip_while(|line| !line.starts_with("Server"));
    let mut section: Vec<_> = from.take_while(|line| !line.starts_with("Throughput")).collect();
    section.pop();
    section
}

#[test]
fn everything_that_a_server_says() {
    let page = page(|summary| {
        summary["run"]["target"] = json!("mock");
        summary["server"] = full();
    });
    let expected = "\
Server      http://x/metrics, the names of vllm: 61 answers, 2 failures (the
            last: no answer\\u{1b}[2J in 1 s), 3.00 ms each, 9.00 ms at most;
            2.0 s between answers at most

server, by its page       scrapes       mean        p50        p99        max
running                        60      32.50      40.00      64.00      64.00
waiting                        60       1.25       0.00      12.00      12.00
KV cache in use, %             60      50.00      50.00      99.00      100.0

running   ▁▂▄▅▇█ ≤ 64
waiting   ▁▁▁█▁▁ ≤ 12
KV cache  ▁▂▄▅▇█ ≤ 100 %
            0 s to 50 s since the first instant
Queue       12 waiting at most, 30.0 s after the first instant; some were
            waiting in 20.0 % of the scrapes; the batch seems to be limited to
            64, which it reached in 25.0 % of the scrapes; requests that left
            the queue had waited 120.5 ms on average by the server's count,
            40.0 % of its TTFT
Work        72.0 % of the prompt tokens from the prefix cache; 81.0 % of the
            drafted tokens accepted; 1,234 preemptions; 3 rejected
Replicas    1 at first, 2 at last; 3 at most; 3 at 41.0 s (not yet at 40.0 s),
            31.0 s after the load rose at 10.0 s; 2 at 55.0 s (not yet at
            54.0 s)

counted by both               client        server    difference
output tokens             17,488,967    17,502,061       -13,094       -0.07 %
prompt tokens                500,000    17,988,967   -17,488,967      -97.22 %
TTFT, mean ms                  55.50         50.00         +5.50      +11.00 %
            times are from the send; the difference is outside what the server
            counts: network, gateway, reading and tokenizing the prompt

TTFT by queue, ms               n        p50        p99
0 waiting                   1,000      50.00      80.00
1–12 waiting                   60      250.0          –
            waiting by the server's page when the request was sent; rank
            correlation with TTFT +0.50

Marks       1.0 s to 2.0 s: od\\u{1b}d (3)
            28.0 s to 33.5 s: the KV cache was up to 97.0 % full
            39.0 s to 40.0 s: 1 request had to leave the batch
            40.0 s to 40.0 s: the server restarted
            41.0 s to 43.0 s: its page did not answer (2 times)
            and 2 more in summary.json";
    assert_eq!(section(&page), expected.lines().collect::<Vec<_>>(), "{page}");
}

#[test]
fn a_server_that_says_little_takes_little_room() {
    let page = page(|summary| {
        summary["run"]["target"] = json!("mock");
        summary["server"] = json!({
            "endpoints": [{"url": "http://x/metrics", "engine": "", "answers": 3, "failures": 0,
                "longest_gap_s": 0.0, "took_ms": {"n": 0, "mean": 0.0, "min": 0.0, "p50": 0.0,
                "p99": 0.0, "max": 0.0}, "resets": 1, "malformed": 7}],
            "queue": {"waiting_max": 0.0, "waiting_max_at_s": 0.0, "waiting_share": 0.0,
                "batch_limit": null, "at_limit_share": null, "wait_mean_ms": null,
                "wait_share_of_ttft": null},
            "prefix_hit_rate": level(0.1, 0.1, 0.1, 0.1),
            "marks": [{"kind": "queue", "start_s": 5.0, "end_s": 6.0, "value": 1.0}],
        });
    });
    let expected = "\
Server      http://x/metrics, unrecognized metric names (map them with
            --metrics-map): 3 answers, 0 failures; the server restarted once,
            which reset its totals; 7 lines could not be read
Queue       no request was seen waiting
Work        10.0 % of the prompt tokens from the prefix cache (as the server
            averages it)

Marks       5.0 s to 6.0 s: up to 1 request waited";
    assert_eq!(section(&page), expected.lines().collect::<Vec<_>>(), "{page}");
}

#[test]
fn what_a_page_cannot_tell_is_not_said() {
    let page = page(|summary| {
        summary["run"]["target"] = json!("mock");
        let mut server = full();
        server["endpoints"][0]["several_servers"] = json!(true);
        server["endpoints"][0]["resets"] = json!(40);
        server["kv_usage_max"] = level(0.8, 0.8, 1.0, 1.0);
        summary["server"] = server;
        summary["saturation"] = json!({"over_saturated": true, "queue_limited": false,
            "backlog_growth_per_s": 1.0, "balance": 0.5, "balance_all": 0.5, "refused_share": 0.0,
            "in_flight_slope": {"value": 1.0, "low": 0.5, "high": 2.0}, "ttft_slope": null});
    });
    let text = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("; several servers take turns at this address, so totals are unknown"),
        "{page}"
    );
    assert!(!text.contains("which reset its totals"), "{page}");
    assert!(text.contains("its fullest engine, % 60 80.00"), "{page}");
    // The mean of those that left a queue that grows is not that of all.
    assert!(text.contains("had waited 120.5 ms by the server's count"), "{page}");
    assert!(text.contains("the queue grew, and later requests"), "{page}");
}

#[test]
fn the_system_is_shown_by_both_words() {
    let shown = |change: &dyn Fn(&mut Value)| {
        let page = page(|summary| change(summary));
        let from = page.lines().skip_while(|line| !line.starts_with("System"));
        from.take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let hint = "hardware unknown; state it with --meta gpu=… --meta gpu_count=…";
    assert_eq!(shown(&|_| {}), [format!("System      {hint}")]);
    let both = shown(&|summary| {
        summary["run"]["system"] = json!({
            "found": {"engine": "vllm", "engine_version": "0.32.0", "dtype": "bfloat16",
                "tensor_parallel": "2", "owned_by": "vllm", "max_model_len": "4096"},
            "said": {"gpu": "H200", "note": "\u{1b}[2J"}});
    });
    assert_eq!(
        both,
        [
            "System      vllm 0.32.0, bfloat16, TP 2, sequences of 4096 (as it reports)",
            "            gpu H200, note \\u{1b}[2J (as stated by the user)",
        ]
    );
    // GPUs that were seen are known, and a simulated engine has none.
    let seen = json!({"gpus": [{"name": "NVIDIA H200"}]});
    assert!(shown(&|summary| summary["run"]["system"] = seen.clone()).is_empty());
    assert!(shown(&|summary| summary["run"]["target"] = json!("mock:ttft=5ms")).is_empty());
}
