//! The page of vLLM: names, types, labels and bounds as version 0.32.0 gave them.
//!
//! Left out: creation times (`…_created`), which need a wall clock, and what a simulated engine
//! does not have (sleep states, multi-modal and external caches, floating-point operations).

use super::bounds::{VLLM_GAP, VLLM_N, VLLM_REQUEST, VLLM_TOKENS, VLLM_TTFT};
use super::page::MetricsWriter;
use super::{Gauges, MockMetrics, own, ratio_or_zero};

pub(super) fn render(metrics: &MockMetrics, gauges: &Gauges, model: &str) -> String {
    let labels = [("engine", "0"), ("model_name", model)];
    let mut page = MetricsWriter::new(&labels, true);
    write_state(&mut page, metrics, gauges);
    write_counters(&mut page, metrics, gauges);
    write_tokens(&mut page, metrics);
    write_times(&mut page, metrics);
    own::write_own_metrics(&mut page, metrics, gauges);
    page.finish()
}

fn write_state(page: &mut MetricsWriter<'_>, metrics: &MockMetrics, gauges: &Gauges) {
    let waiting = gauges.waiting as f64;
    page.gauge("vllm:num_requests_running", "Requests in the batch.", gauges.running as f64);
    page.gauge("vllm:num_requests_waiting", "Requests in the queue.", waiting);
    let name = "vllm:num_requests_waiting_by_reason";
    page.family(name, "gauge", "Requests in the queue, by what they wait for.");
    page.sample(name, &[("reason", "capacity")], waiting);
    page.sample(name, &[("reason", "deferred")], 0.0);
    let usage = ratio_or_zero(gauges.kv_blocks_used as f64, gauges.kv_blocks_total as f64);
    page.gauge("vllm:kv_cache_usage_perc", "Share of the KV cache in use, from 0 to 1.", usage);
    let name = "vllm:cache_config_info";
    page.family(name, "gauge", "Size of the KV cache, in labels.");
    let blocks = gauges.kv_blocks_total;
    let size = [
        ("block_size", metrics.block_tokens.to_string()),
        ("kv_cache_size_tokens", blocks.saturating_mul(metrics.block_tokens).to_string()),
        ("num_gpu_blocks", blocks.to_string()),
    ];
    let size = size.each_ref().map(|(label, text)| (*label, text.as_str()));
    page.sample(name, &size, 1.0);
}

fn write_counters(page: &mut MetricsWriter<'_>, metrics: &MockMetrics, gauges: &Gauges) {
    for (name, help, value) in [
        (
            "prefix_cache_queries_total",
            "Tokens looked up in the prefix cache.",
            gauges.prefix_queries,
        ),
        ("prefix_cache_hits_total", "Tokens found in the prefix cache.", gauges.prefix_hits),
        ("num_preemptions_total", "Preempted requests.", gauges.preemptions),
        ("prompt_tokens_total", "Prompt tokens.", metrics.prompt_tokens),
        ("prompt_tokens_cached_total", "Prompt tokens found in the cache.", metrics.cached_tokens),
        ("generation_tokens_total", "Generated tokens.", metrics.generation_tokens),
    ] {
        page.counter(&format!("vllm:{name}"), help, value as f64);
    }
    let name = "vllm:request_success_total";
    page.family(name, "counter", "Requests that ended, by reason.");
    let [stop, length, abort] = metrics.finished;
    for (reason, count) in
        [("stop", stop), ("length", length), ("abort", abort), ("error", 0), ("repetition", 0)]
    {
        page.sample(name, &[("finished_reason", reason)], count as f64);
    }
    // A real one has these only when it speculates.
    if gauges.spec_drafted > 0 {
        let name = "vllm:spec_decode_num_draft_tokens_total";
        page.counter(name, "Tokens that the draft proposed.", gauges.spec_drafted as f64);
        let name = "vllm:spec_decode_num_accepted_tokens_total";
        page.counter(name, "Proposed tokens that were accepted.", gauges.spec_accepted as f64);
    }
}

fn write_tokens(page: &mut MetricsWriter<'_>, metrics: &MockMetrics) {
    let bounds: &[f64] = &VLLM_TOKENS;
    for (name, help, histogram) in [
        ("request_prompt_tokens", "Tokens of a prompt.", &metrics.request_prompt),
        ("request_generation_tokens", "Tokens of an answer.", &metrics.request_output),
        ("request_params_max_tokens", "Token limits that requests set.", &metrics.max_tokens),
        (
            "request_prefill_kv_computed_tokens",
            "Tokens of a prompt that were not in the cache.",
            &metrics.request_computed,
        ),
    ] {
        page.histogram(&format!("vllm:{name}"), help, (histogram, bounds));
    }
    page.histogram("vllm:request_params_n", "Answers per request (n).", (&metrics.n, &VLLM_N));
    // An engine without steps has no such page: better none than one of zeros.
}

fn write_times(page: &mut MetricsWriter<'_>, metrics: &MockMetrics) {
    for (name, help, histogram, bounds) in [
        (
            "time_to_first_token_seconds",
            "Time from arrival to the first token.",
            &metrics.ttft,
            &VLLM_TTFT[..],
        ),
        ("inter_token_latency_seconds", "Time between tokens.", &metrics.gaps, &VLLM_GAP),
        (
            "request_time_per_output_token_seconds",
            "Mean time between the tokens of a request.",
            &metrics.per_output_token,
            &VLLM_GAP,
        ),
        (
            "e2e_request_latency_seconds",
            "Time from arrival to the last token.",
            &metrics.e2e,
            &VLLM_REQUEST,
        ),
        ("request_queue_time_seconds", "Time in the queue.", &metrics.queue, &VLLM_REQUEST),
        ("request_inference_time_seconds", "Time in the batch.", &metrics.inference, &VLLM_REQUEST),
        (
            "request_prefill_time_seconds",
            "Time from leaving the queue to the first token.",
            &metrics.prefill,
            &VLLM_REQUEST,
        ),
        (
            "request_decode_time_seconds",
            "Time from the first token to the last.",
            &metrics.decode,
            &VLLM_REQUEST,
        ),
    ] {
        page.histogram(&format!("vllm:{name}"), help, (histogram, bounds));
    }
}
