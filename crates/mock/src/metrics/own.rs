//! What the simulated engine says of itself in every dialect: `mock_…`.

use super::bounds::LATENESS;
use super::page::MetricsWriter;
use super::{Gauges, MockMetrics};

pub(super) fn write_own_metrics(
    page: &mut MetricsWriter<'_>,
    metrics: &MockMetrics,
    gauges: &Gauges,
) {
    page.set_labels(&[]);
    page.counter(
        "mock_requests_total",
        "Answers that the engine began: each choice of a request is one.",
        metrics.arrived as f64,
    );
    page.counter("mock_steps_total", "Steps of the engine.", gauges.steps as f64);
    page.counter("mock_events_total", "Token events written.", metrics.events as f64);
    page.counter(
        "mock_late_events_total",
        "Token events written more than 1 ms after the instant the model gave them.",
        metrics.late_events as f64,
    );
    page.histogram(
        "mock_event_lateness_seconds",
        "From the instant the model gave a token event to the write.",
        (&metrics.lateness, &LATENESS),
    );
    page.gauge("mock_connections", "Open connections.", metrics.connections_open as f64);
    page.counter(
        "mock_connections_opened_total",
        "Connections accepted.",
        metrics.connections as f64,
    );
    let faults: Vec<(String, u64)> =
        metrics.faults.iter().map(|(label, count)| (label.to_string(), count)).collect();
    write_labeled(
        page,
        ("mock_faults_total", "Faults injected on purpose, by kind.", "kind"),
        &faults,
    );
    let refused: Vec<(String, u64)> =
        metrics.refused.iter().map(|(status, count)| (status.to_string(), *count)).collect();
    let family = ("mock_refused_total", "Requests answered with an error status.", "status");
    write_labeled(page, family, &refused);
}

/// A counter by one label; none at all while it has no rows.
fn write_labeled(page: &mut MetricsWriter<'_>, family: (&str, &str, &str), rows: &[(String, u64)]) {
    let (name, help, label) = family;
    if !rows.is_empty() {
        page.family(name, "counter", help);
    }
    for (value, count) in rows {
        page.sample(name, &[(label, value)], *count as f64);
    }
}
