//! What passes a proxy, for a page of metrics.

use goodput_live::Tally;
use goodput_model::{MetricsSheet, metrics_label};

/// Adds what passes.
pub(super) fn write(sheet: &mut MetricsSheet, tally: &Tally) {
    let series = [
        ("goodput_proxy_connections_total", "Connections of clients", &tally.connections),
        ("goodput_proxy_connections_open", "Connections of clients that are open", &tally.open),
        ("goodput_proxy_requests_total", "Requests passed on, or that were to be", &tally.requests),
        ("goodput_proxy_requests_in_flight", "Requests under way", &tally.in_flight),
        ("goodput_proxy_request_bytes_total", "Bytes of requests' bodies", &tally.bytes_in),
        ("goodput_proxy_answer_bytes_total", "Bytes of answers' bodies", &tally.bytes_out),
        (
            "goodput_proxy_upstream_failures_total",
            "Requests without a whole answer because of the upstream",
            &tally.upstream_failures,
        ),
        (
            "goodput_proxy_clients_gone_total",
            "Requests whose client went away before the end",
            &tally.clients_gone,
        ),
        ("goodput_proxy_refused_total", "Requests refused by the proxy itself", &tally.refused),
        (
            "goodput_proxy_too_slow_total",
            "Connections, and streams of HTTP/2, ended because their client was too slow",
            &tally.too_slow,
        ),
        (
            "goodput_proxy_at_limit_total",
            "Connections that came when --max-connections were open",
            &tally.at_limit,
        ),
        (
            "goodput_proxy_made_way_total",
            "Idle connections closed to make way for them",
            &tally.made_way,
        ),
        (
            "goodput_proxy_turned_away_total",
            "Requests refused because too many waited for a connection to end",
            &tally.turned_away,
        ),
        (
            "goodput_proxy_resent_total",
            "Requests sent once more, as their connection had been closed when it was used",
            &tally.resent,
        ),
    ];
    for (name, help, count) in series {
        sheet.single(name, help, count.get());
    }
    let name = "goodput_proxy_answers_total";
    sheet.family(name, "counter", "Answers of the upstream that began, by class of their status");
    for (digit, count) in tally.statuses.iter().enumerate().skip(1) {
        sheet.line(name, &metrics_label("class", &format!("{digit}xx")), count.get());
    }
}
