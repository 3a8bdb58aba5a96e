//! The page of llama.cpp's llama-server: names and types as a build of 2026 gave them. It has
//! neither labels nor histograms.

use super::page::MetricsWriter;
use super::{Gauges, MockMetrics, own, ratio_or_zero};

pub(super) fn render(metrics: &MockMetrics, gauges: &Gauges) -> String {
    let mut page = MetricsWriter::new(&[], false);
    let computed = metrics.prompt_tokens.saturating_sub(metrics.cached_tokens) as f64;
    let prefill = metrics.prefill.sum();
    let predicted = metrics.generation_tokens as f64;
    let decode = metrics.gaps.sum();
    for (name, help, value) in [
        ("prompt_tokens_total", "Prompt tokens that were not in the cache.", computed),
        (
            "prompt_tokens_cached_total",
            "Prompt tokens found in the cache.",
            metrics.cached_tokens as f64,
        ),
        ("prompt_seconds_total", "Seconds spent on prompts.", prefill),
        ("tokens_predicted_total", "Generated tokens.", predicted),
        ("tokens_predicted_seconds_total", "Seconds spent on generation.", decode),
        ("n_decode_total", "Steps of the engine.", gauges.steps as f64),
        ("n_tokens_max", "The longest sequence, prompt and answer.", metrics.longest as f64),
        (
            "spec_decode_num_draft_tokens_total",
            "Tokens that the draft proposed.",
            gauges.spec_drafted as f64,
        ),
        (
            "spec_decode_num_accepted_tokens_total",
            "Proposed tokens that were accepted.",
            gauges.spec_accepted as f64,
        ),
    ] {
        page.counter(&format!("llamacpp:{name}"), help, value);
    }
    for (name, help, value) in [
        ("prompt_tokens_seconds", "Prompt tokens per second.", ratio_or_zero(computed, prefill)),
        (
            "predicted_tokens_seconds",
            "Generated tokens per second.",
            ratio_or_zero(predicted, decode),
        ),
        ("requests_processing", "Requests in the batch.", gauges.running as f64),
        ("requests_deferred", "Requests in the queue.", gauges.waiting as f64),
        (
            "n_busy_slots_per_decode",
            "Requests in the batch, mean of all steps.",
            ratio_or_zero(predicted, gauges.steps as f64),
        ),
    ] {
        page.gauge(&format!("llamacpp:{name}"), help, value);
    }
    own::write_own_metrics(&mut page, metrics, gauges);
    page.finish()
}
