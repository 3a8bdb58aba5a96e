//! The simulated engine as a server: how many events it carries, and how late they leave.

use super::clients::floor;
use super::process::Bench;
use super::table::{Budgets, ReportTable, number};
use crate::prometheus::http;
use crate::running::Mock;

/// Streams, time between tokens, and what is promised of them.
const ROWS: [(u32, u32, Promise); 5] = [
    (1, 10, Promise::OnTime),
    (8, 10, Promise::OnTime),
    (64, 10, Promise::Nothing),
    (1_000, 8, Promise::Rate),
    (10_000, 80, Promise::Rate),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Promise {
    Nothing,
    /// 99 of 100 events leave within 100 µs.
    OnTime,
    /// 100,000 events/s on one core.
    Rate,
}

/// Events per second, their lateness and the CPU they cost, from one stream to ten thousand.
pub(super) fn mock(bench: &Bench) -> Result<ReportTable, String> {
    let mut table = ReportTable::new(
        "The mock",
        "`goodput mock` with fixed delays against the floor client, 500 tokens per answer; lateness: from the scheduled instant of a token to its write",
        &["streams", "ITL ms", "events/s", "within 100 µs", "over 1 ms", "CPU µs/event"],
    );
    for (streams, itl_ms, promise) in ROWS {
        let server = start(bench, itl_ms)?;
        let port = server.address().rsplit(':').next().unwrap_or_default();
        let load = format!("--streams {streams} --tokens 500 --seconds {}", bench.seconds);
        bench.run(&floor(&format!("{load} --port {port}")))?;
        let page = http::get(server.address(), "/metrics")?;
        let cpu_s = cpu_s(server.id())?;
        let value = |name: &str| sample(&page, name);
        let events = value("mock_events_total");
        let on_time = value(r#"mock_event_lateness_seconds_bucket{le="0.0001"}"#) / events;
        let rate = events / f64::from(bench.seconds);
        let budgets = match promise {
            Promise::Nothing => Budgets::none(),
            Promise::OnTime => {
                Budgets::none().at_least("within 100 µs", 100.0 * on_time, 99.0, " %")
            }
            Promise::Rate => Budgets::none().at_least("events/s", rate, 100_000.0, ""),
        };
        let cells = vec![
            streams.to_string(),
            itl_ms.to_string(),
            number(rate, 0),
            format!("{} %", number(100.0 * on_time, 2)),
            format!("{} %", number(100.0 * value("mock_late_events_total") / events, 2)),
            number(cpu_s * 1e6 / events, 2),
        ];
        table.push(cells, &budgets);
    }
    Ok(table)
}

/// The value of a line of the page.
fn sample(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or(f64::NAN)
}

/// A server with these delays on its core.
fn start(bench: &Bench, itl_ms: u32) -> Result<Mock, String> {
    let flags = format!("mock --listen 127.0.0.1:0 --model m --ttft 5ms --itl {itl_ms}ms");
    let mut words = vec![crate::published("goodput").display().to_string()];
    words.extend(format!("{flags} --slots 100000").split_whitespace().map(str::to_owned));
    Mock::run(&mut bench.serve(&words))
}

/// User and system time of a process so far.
pub(super) fn cpu_s(id: u32) -> Result<f64, String> {
    let path = format!("/proc/{id}/stat");
    let stat = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    // The name of the program may hold anything but comes before the last parenthesis.
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
    // Hundredths of a second on every Linux that reports them here.
    Ok((ticks(11).unwrap_or(f64::NAN) + ticks(12).unwrap_or(f64::NAN)) / 100.0)
}
