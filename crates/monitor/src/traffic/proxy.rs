//! What passes a proxy, for a page of metrics.

use goodput_live::Tally;
use goodput_model::{MetricsSheet, metrics_label};

/// Adds what passes.
pub(super) fn write_proxy_metrics(sheet: &mut MetricsSheet, tally: &Tally) {
    let series = [
        ("goodput_proxy_connections_total", "Connections of clients", &tally.connections),
        ("goodput_proxy_connections_open", "Open connections of clients", &tally.open),
        (
            "goodput_proxy_requests_total",
            "Requests forwarded, or accepted for forwarding",
            &tally.requests,
        ),
        ("goodput_proxy_requests_in_flight", "Requests in flight", &tally.in_flight),
        ("goodput_proxy_request_bytes_total", "Bytes of request bodies", &tally.bytes_in),
        ("goodput_proxy_answer_bytes_total", "Bytes of answer bodies", &tally.bytes_out),
        (
            "goodput_proxy_upstream_failures_total",
            "Requests without a complete answer because of the upstream",
            &tally.upstream_failures,
        ),
        (
            "goodput_proxy_clients_gone_total",
            "Requests whose client disconnected before the end",
            &tally.clients_gone,
        ),
        ("goodput_proxy_refused_total", "Requests refused by the proxy itself", &tally.refused),
        (
            "goodput_proxy_too_slow_total",
            "Connections and HTTP/2 streams closed because the client was too slow",
            &tally.too_slow,
        ),
        (
            "goodput_proxy_at_limit_total",
            "Connections that arrived while --max-connections were open",
            &tally.at_limit,
        ),
        (
            "goodput_proxy_made_way_total",
            "Idle connections closed to make room for new ones",
            &tally.made_way,
        ),
        (
            "goodput_proxy_turned_away_total",
            "Requests refused because too many waited for a connection to end",
            &tally.turned_away,
        ),
        (
            "goodput_proxy_resent_total",
            "Requests sent again because their connection was already closed",
            &tally.resent,
        ),
    ];
    for (name, help, count) in series {
        sheet.single(name, help, count.get());
    }
    let name = "goodput_proxy_answers_total";
    sheet.family(name, "counter", "Upstream answers that started, by status class");
    for (digit, count) in tally.statuses.iter().enumerate().skip(1) {
        sheet.line(name, &metrics_label("class", &format!("{digit}xx")), count.get());
    }
}
