//! The page of SGLang: names, types and bounds as in its `srt/observability/metrics_collector.py`
//! (bounds of the tokenizer's histograms from `srt/metrics/collector.py`), both read in 2026.
//!
//! A real one counts the tokens of a request when it ends; here they count as they come.

use super::bounds::{SGLANG_GAP, SGLANG_QUEUE, SGLANG_REQUEST, SGLANG_TTFT};
use super::page::MetricsWriter;
use super::{Gauges, MockMetrics, own, ratio_or_zero};

pub(super) fn render(metrics: &MockMetrics, gauges: &Gauges, model: &str) -> String {
    let scheduler =
        [("engine_type", "unified"), ("model_name", model), ("pp_rank", "0"), ("tp_rank", "0")];
    let request = [("model_name", model)];
    let mut page = MetricsWriter::new(&scheduler, true);
    write_state(&mut page, metrics, gauges);
    page.set_labels(&request);
    write_requests(&mut page, metrics);
    own::write_own_metrics(&mut page, metrics, gauges);
    page.finish()
}

fn write_state(page: &mut MetricsWriter<'_>, metrics: &MockMetrics, gauges: &Gauges) {
    let tokens = |blocks: u64| blocks.saturating_mul(metrics.block_tokens) as f64;
    let usage = ratio_or_zero(gauges.kv_blocks_used as f64, gauges.kv_blocks_total as f64);
    let hits = ratio_or_zero(gauges.prefix_hits as f64, gauges.prefix_queries as f64);
    for (name, help, value) in [
        ("num_running_reqs", "Requests in the batch.", gauges.running as f64),
        ("num_queue_reqs", "Requests in the queue.", gauges.waiting as f64),
        ("num_used_tokens", "Token slots of the KV cache in use.", tokens(gauges.kv_blocks_used)),
        ("max_total_num_tokens", "Token slots of the KV cache.", tokens(gauges.kv_blocks_total)),
        ("token_usage", "Share of the KV cache in use, from 0 to 1.", usage),
        ("cache_hit_rate", "Share of looked-up tokens found in the prefix cache.", hits),
        ("gen_throughput", "Generated tokens per second.", metrics.throughput),
    ] {
        page.gauge(&format!("sglang:{name}"), help, value);
    }
    if gauges.spec_drafted > 0 {
        let rate = ratio_or_zero(gauges.spec_accepted as f64, gauges.spec_drafted as f64);
        page.gauge("sglang:spec_accept_rate", "Share of proposed tokens that were accepted.", rate);
    }
    let name = "sglang:num_retracted_requests_total";
    page.counter(name, "Preempted requests.", gauges.preemptions as f64);
    let queue = (&metrics.queue, &SGLANG_QUEUE[..]);
    page.histogram("sglang:queue_time_seconds", "Time in the queue.", queue);
}

fn write_requests(page: &mut MetricsWriter<'_>, metrics: &MockMetrics) {
    let [stop, length, abort] = metrics.finished;
    for (name, help, value) in [
        ("prompt_tokens_total", "Prompt tokens.", metrics.prompt_tokens),
        ("generation_tokens_total", "Generated tokens.", metrics.generation_tokens),
        ("cached_tokens_total", "Prompt tokens found in the cache.", metrics.cached_tokens),
        ("num_requests_total", "Requests that finished.", stop + length),
        ("num_aborted_requests_total", "Requests whose client left.", abort),
    ] {
        page.counter(&format!("sglang:{name}"), help, value as f64);
    }
    for (name, help, histogram, bounds) in [
        (
            "time_to_first_token_seconds",
            "Time from arrival to the first token.",
            &metrics.ttft,
            &SGLANG_TTFT[..],
        ),
        (
            "inter_token_latency_seconds",
            "Time between tokens.",
            &metrics.gaps_per_token,
            &SGLANG_GAP,
        ),
        (
            "e2e_request_latency_seconds",
            "Time from arrival to the last token.",
            &metrics.e2e,
            &SGLANG_REQUEST,
        ),
    ] {
        page.histogram(&format!("sglang:{name}"), help, (histogram, bounds));
    }
}
