//! The proxy: what it adds to a latency, how many events pass on one core, and what a stream costs.

use super::clients::floor;
use super::mock::cpu_s;
use super::process::{Bench, Core, TruthDelays, TruthProcess, at, high_water};
use super::table::{Budgets, ReportTable, number};
use crate::running::Mock;
use serde_json::Value;

/// Latencies and CPU with and without a proxy that records.
pub(super) fn proxy(bench: &Bench) -> Result<ReportTable, String> {
    let mut table = ReportTable::new(
        "The proxy",
        "`goodput record` on CPU 0, truth server and floor client together on CPU 1; each load without and \
         with it; CPU and memory are those of the proxy",
        &["load", "by", "events/s", "TTFT p50 ms", "TTFT p99 ms", "ITL p99 ms", "CPU µs/event"],
    );
    let latency = "--rate 500 --tokens 64";
    let short = TruthDelays { ttft_ms: 10, itl_ms: 5 };
    let direct = measure(bench, short, latency, false)?;
    let passed = measure(bench, short, latency, true)?;
    let added = |path: &str| (at(&passed.said, path) - at(&direct.said, path)) * 1e3;
    table.push(direct.cells("500 req/s, 64 tokens", "direct"), &Budgets::none());
    let budgets = Budgets::none()
        .at_most("added at p50", added("/ttft_ms/p50"), 150.0, " µs")
        .at_most("added at p99", added("/ttft_ms/p99"), 1_000.0, " µs");
    table.push(passed.cells("500 req/s, 64 tokens", "proxy"), &budgets);
    table.say(format!(
        "added: TTFT p50 {} µs, p99 {} µs; ITL p99 {} µs",
        number(added("/ttft_ms/p50"), 0),
        number(added("/ttft_ms/p99"), 0),
        number(added("/itl_ms/p99"), 0)
    ));
    let most = measure(
        bench,
        TruthDelays { ttft_ms: 10, itl_ms: 10 },
        "--streams 1000 --tokens 100",
        true,
    )?;
    let budgets = Budgets::none().at_least("events/s", most.rate, 60_000.0, "");
    table.push(most.cells("1,000 streams, 100,000 events/s offered", "proxy"), &budgets);
    let slow = TruthDelays { ttft_ms: 1_000, itl_ms: 1_000 };
    let one = measure(bench, slow, "--streams 1 --tokens 3", true)?;
    let many = measure(bench, slow, "--streams 2000 --tokens 3", true)?;
    let each = (many.peak_kib - one.peak_kib) / 2_000.0;
    let budgets = Budgets::none().at_most("per stream", each, 32.0, " KiB");
    table.push(many.cells("2,000 slow streams", "proxy"), &budgets);
    table.say(format!("memory: {} KiB for each of 2,000 slow streams", number(each, 1)));
    Ok(table)
}

/// One load.
struct MeasuredLoad {
    said: Value,
    rate: f64,
    cpu_us: f64,
    peak_kib: f64,
}

impl MeasuredLoad {
    fn cells(&self, load: &str, by: &str) -> Vec<String> {
        let ms = |path: &str| number(at(&self.said, path), 3);
        vec![
            load.to_owned(),
            by.to_owned(),
            number(self.rate, 0),
            ms("/ttft_ms/p50"),
            ms("/ttft_ms/p99"),
            ms("/itl_ms/p99"),
            number(self.cpu_us, 2),
        ]
    }
}

/// A load on a truth server with these delays, through a proxy where one is wanted.
fn measure(
    bench: &Bench,
    delays: TruthDelays,
    load: &str,
    is_proxied: bool,
) -> Result<MeasuredLoad, String> {
    let server = TruthProcess::start_on(bench, Core::Client, delays)?;
    let proxy = is_proxied.then(|| start(bench, server.address())).transpose()?;
    let address = proxy.as_ref().map_or(server.address(), Mock::address);
    let port = address.rsplit(':').next().unwrap_or_default();
    let ran = bench.run(&floor(&format!("{load} --port {port} --seconds {}", bench.seconds)))?;
    let used = proxy.as_ref().map(|proxy| cpu_s(proxy.id())).transpose()?;
    let status = proxy.as_ref().map(|proxy| format!("/proc/{}/status", proxy.id()));
    let peak = status.and_then(|path| std::fs::read_to_string(path).ok());
    let peak_kib = peak.and_then(|text| high_water(&text)).unwrap_or(f64::NAN);
    drop(proxy);
    let events = at(&server.stop()?, "/events");
    let said = serde_json::from_str(&ran.stdout).map_err(|error| error.to_string())?;
    let rate = events / f64::from(bench.seconds);
    let cpu_us = used.map_or(f64::NAN, |seconds| seconds * 1e6 / events);
    Ok(MeasuredLoad { said, rate, cpu_us, peak_kib })
}

/// A proxy in front of this server, on the core of servers.
fn start(bench: &Bench, upstream: &str) -> Result<Mock, String> {
    let trace = bench.fresh_path();
    let flags = format!("record --listen 127.0.0.1:0 --upstream http://{upstream} --output");
    let mut words = vec![crate::published("goodput").display().to_string()];
    words.extend(flags.split_whitespace().map(str::to_owned));
    words.push(trace.display().to_string());
    Mock::run(&mut bench.serve(&words))
}
