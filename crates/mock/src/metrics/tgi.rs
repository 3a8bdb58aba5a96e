//! The page of Text Generation Inference: names, types and bounds as in its `router/src/server.rs`
//! (the multi-backend router of versions 2.4 and later). It has no labels for the model, and its
//! counters have no `_total`.

use super::bounds::{tgi_durations, tgi_tokens};
use super::page::MetricsWriter;
use super::{Gauges, MockMetrics, own};

pub(super) fn render(metrics: &MockMetrics, gauges: &Gauges) -> String {
    let mut page = MetricsWriter::new(&[], false);
    let [stop, length, abort] = metrics.finished;
    let refused: u64 = metrics.refused.values().sum();
    let arrived = metrics.arrived.saturating_add(refused);
    page.counter("tgi_request_count", "Requests.", arrived as f64);
    page.counter("tgi_request_success", "Requests that were answered.", (stop + length) as f64);
    let name = "tgi_request_failure";
    page.family(name, "counter", "Requests that were not answered, by cause.");
    let mut causes = [("dropped", abort), ("generation", 0), ("overloaded", 0), ("validation", 0)];
    for (status, count) in &metrics.refused {
        let cause = match status {
            429 | 503 => 2,
            400..500 => 3,
            _ => 1,
        };
        causes[cause].1 += count;
    }
    for (cause, count) in causes {
        page.sample(name, &[("err", cause)], count as f64);
    }
    page.gauge("tgi_queue_size", "Requests in the queue.", gauges.waiting as f64);
    page.gauge("tgi_batch_current_size", "Requests in the batch.", gauges.running as f64);
    let places = gauges.kv_blocks_total.saturating_mul(metrics.block_tokens);
    page.gauge("tgi_batch_current_max_tokens", "Most tokens in the batch.", places as f64);
    let durations = tgi_durations();
    for (name, help, histogram) in [
        ("tgi_request_duration", "Time from arrival to the last token.", &metrics.e2e),
        ("tgi_request_queue_duration", "Time in the queue.", &metrics.queue),
        ("tgi_request_inference_duration", "Time in the batch.", &metrics.inference),
        (
            "tgi_request_mean_time_per_token_duration",
            "Time in the batch by tokens of the answer.",
            &metrics.mean_per_token,
        ),
    ] {
        page.histogram(name, help, (histogram, &durations));
    }
    let tokens = tgi_tokens();
    for (name, help, histogram) in [
        ("tgi_request_input_length", "Tokens of a prompt.", &metrics.request_prompt),
        ("tgi_request_generated_tokens", "Tokens of an answer.", &metrics.request_output),
        ("tgi_request_max_new_tokens", "Token limits that requests set.", &metrics.max_tokens),
    ] {
        page.histogram(name, help, (histogram, &tokens));
    }
    own::write_own_metrics(&mut page, metrics, gauges);
    page.finish()
}
