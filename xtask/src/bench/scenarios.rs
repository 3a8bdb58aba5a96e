//! The rows of the report, scenario by scenario.

use std::process::{Command, Stdio};

use goodput_clock::now;

use super::clients::{BenchClient, BenchLoad, Run, goodput};
use super::process::{Bench, TruthProcess, at};
use super::table::{Budgets, ReportTable, number, pair};

/// CPU, latencies and their error from one stream to a thousand.
pub(super) fn closed_loop(bench: &Bench) -> Result<ReportTable, String> {
    let mut table = ReportTable::new(
        "Closed loop",
        "100 tokens per answer, TTFT 50 ms, ITL 20 ms; CPU of the whole process per token",
        &[
            "streams",
            "client",
            "events",
            "CPU µs/event",
            "× floor",
            "TTFT p50",
            "TTFT p99",
            "ITL p99",
        ],
    );
    for (streams, bias_limit, ratio_limit) in [
        (1, Some(0.1), None),
        (100, Some(0.3), None),
        (256, None, None),
        (1_000, Some(1.0), Some(1.5)),
        (1_024, Some(1.0), Some(1.5)),
    ] {
        let run = Run { load: BenchLoad::Closed(streams), ttft_ms: 50, itl_ms: 20, tokens: 100 };
        let mut floor_us = f64::NAN;
        for client in BenchClient::BOTH {
            let outcome = client.measure(bench, run)?;
            let mut budgets = Budgets::none();
            if client == BenchClient::Floor {
                floor_us = outcome.cpu_us();
            } else {
                let bias = (outcome.said("ttft", 50) - outcome.truth("/ttft_ms/p50")).abs();
                if let Some(limit) = ratio_limit {
                    budgets = budgets.at_most("CPU", outcome.cpu_us() / floor_us, limit, "× floor");
                }
                if let Some(limit) = bias_limit {
                    budgets = budgets.at_most("TTFT p50 bias", bias, limit, " ms");
                }
            }
            let cells = vec![
                streams.to_string(),
                client.name().to_owned(),
                number(outcome.truth("/events"), 0),
                number(outcome.cpu_us(), 2),
                number(outcome.cpu_us() / floor_us, 2),
                pair(outcome.said("ttft", 50), outcome.truth("/ttft_ms/p50")),
                pair(outcome.said("ttft", 99), outcome.truth("/ttft_ms/p99")),
                pair(outcome.said("itl", 99), outcome.truth("/itl_ms/p99")),
            ];
            table.push(cells, &budgets.unless_stalled(outcome.worst_lateness_ms()));
        }
    }
    Ok(table)
}

/// A hundred thousand events per second: how many of them a client takes, and how exactly.
pub(super) fn ceiling(bench: &Bench) -> Result<ReportTable, String> {
    let mut table = ReportTable::new(
        "100,000 events per second and more",
        "closed loop of 1,000 streams, 100 tokens per answer, TTFT 10 ms; an ITL of 10 ms offers 100,000 \
         events/s, one of 8 ms 125,000; stamp error: the floor's stamp after its read against the \
         instant in the token",
        &[
            "ITL ms",
            "client",
            "events/s",
            "% of floor",
            "CPU µs/event",
            "ITL p99",
            "stamp error p50 / p99",
        ],
    );
    for itl_ms in [10, 8] {
        let run = Run { load: BenchLoad::Closed(1_000), ttft_ms: 10, itl_ms, tokens: 100 };
        let mut floor_rate = f64::NAN;
        for client in BenchClient::BOTH {
            let outcome = client.measure(bench, run)?;
            let rate = outcome.truth("/events_per_s");
            let error = (outcome.said("itl", 99) - outcome.truth("/itl_ms/p99")).abs();
            let budgets = match (client, itl_ms) {
                (BenchClient::Floor, _) => {
                    floor_rate = rate;
                    Budgets::none()
                }
                (_, 10) => Budgets::none().at_most("ITL p99 error", error, 0.5, " ms"),
                _ => Budgets::none().at_least("events/s", rate, 100_000.0, "").at_least(
                    "share",
                    100.0 * rate / floor_rate,
                    60.0,
                    " % of floor",
                ),
            };
            let cells = vec![
                itl_ms.to_string(),
                client.name().to_owned(),
                number(rate, 0),
                number(100.0 * rate / floor_rate, 1),
                number(outcome.cpu_us(), 2),
                pair(outcome.said("itl", 99), outcome.truth("/itl_ms/p99")),
                pair(
                    outcome.floor_said("/arrival_error_ms/p50"),
                    outcome.floor_said("/arrival_error_ms/p99"),
                ),
            ];
            table.push(cells, &budgets.unless_stalled(outcome.worst_lateness_ms()));
        }
    }
    Ok(table)
}

/// Poisson arrivals: how late they are sent, and whether they are Poisson when they arrive.
pub(super) fn open_loop(bench: &Bench) -> Result<ReportTable, String> {
    let mut table = ReportTable::new(
        "Open loop, Poisson",
        "8 tokens per answer, TTFT 50 ms, ITL 20 ms; KS: distance of the server's arrival gaps from the \
         exponential",
        &[
            "req/s",
            "client",
            "slip p50 µs",
            "p99 µs",
            "max µs",
            "arrivals/s",
            "KS",
            "TTFT p50",
            "TTFT p99",
        ],
    );
    for rate in [200, 1_000, 3_000] {
        let run = Run { load: BenchLoad::Open(rate), ttft_ms: 50, itl_ms: 20, tokens: 8 };
        for client in BenchClient::BOTH {
            let outcome = client.measure(bench, run)?;
            let (p50, p99) = (outcome.slip_us("p50"), outcome.slip_us("p99"));
            let budgets = if client == BenchClient::Goodput && rate == 1_000 {
                Budgets::none()
                    .at_most("slip p50", p50, 20.0, " µs")
                    .at_most("p99", p99, 250.0, " µs")
            } else {
                Budgets::none()
            };
            let cells = vec![
                rate.to_string(),
                client.name().to_owned(),
                number(p50, 1),
                number(p99, 1),
                number(outcome.slip_us("max"), 0),
                number(outcome.truth("/arrivals_per_s"), 1),
                number(outcome.truth("/ks_exponential"), 3),
                pair(outcome.said("ttft", 50), outcome.truth("/ttft_ms/p50")),
                pair(outcome.said("ttft", 99), outcome.truth("/ttft_ms/p99")),
            ];
            table.push(cells, &budgets.unless_stalled(outcome.worst_lateness_ms()));
        }
    }
    Ok(table)
}

/// Everything at once.
pub(super) fn burst(bench: &Bench) -> Result<ReportTable, String> {
    let mut table = ReportTable::new(
        "Burst",
        "1,024 simultaneous starts, 20 tokens per answer, TTFT 50 ms, ITL 20 ms; TTFT from sending",
        &["client", "requests", "TTFT p50", "TTFT p99", "ITL p99"],
    );
    let run = Run { load: BenchLoad::Burst(1_024), ttft_ms: 50, itl_ms: 20, tokens: 20 };
    let outcome = BenchClient::Goodput.measure(bench, run)?;
    let bias = (outcome.said("ttft_sent", 50) - outcome.truth("/ttft_ms/p50")).abs();
    let cells = vec![
        BenchClient::Goodput.name().to_owned(),
        number(outcome.truth("/requests"), 0),
        pair(outcome.said("ttft_sent", 50), outcome.truth("/ttft_ms/p50")),
        pair(outcome.said("ttft_sent", 99), outcome.truth("/ttft_ms/p99")),
        pair(outcome.said("itl", 99), outcome.truth("/itl_ms/p99")),
    ];
    let budgets = Budgets::none().at_most("TTFT p50 bias", bias, 1.0, " ms");
    table.push(cells, &budgets.unless_stalled(outcome.worst_lateness_ms()));
    Ok(table)
}

/// Memory per open stream.
pub(super) fn memory(bench: &Bench) -> Result<ReportTable, String> {
    const WANTED: u32 = 10_000;
    /// Descriptors that a process needs besides its connections.
    const RESERVED: u32 = 200;
    let fits = hard_limit()?.saturating_sub(RESERVED).min(WANTED);
    let mut table = ReportTable::new(
        "Memory",
        "closed loop, TTFT 1 s, ITL 1 s; peak of the whole process, less the peak with one stream",
        &["streams", "peak MiB", "KiB per stream"],
    );
    if fits < WANTED {
        table.say(format!("the limit on open files allows {fits} streams instead of {WANTED}"));
    }
    let seconds = bench.seconds.max(5);
    let peak = |streams: u32| {
        let server = TruthProcess::start(bench, 1_000, 1_000)?;
        let flags = format!("--concurrency {streams} --duration {seconds}s --drain 1s");
        let answer = "--input-tokens 10 --max-tokens 3 --json";
        let peak = bench.peak_kib(&goodput(bench, &server, &format!("{flags} {answer}")))?;
        let requests = at(&server.stop()?, "/requests");
        let all_came = requests >= f64::from(streams);
        if all_came { Ok(peak) } else { Err(format!("only {requests} of {streams} streams came")) }
    };
    let one = peak(1)?;
    table.push(vec!["1".to_owned(), number(one / 1024.0, 1), "–".to_owned()], &Budgets::none());
    let many = peak(fits)?;
    let each = (many - one) / f64::from(fits);
    table.push(
        vec![fits.to_string(), number(many / 1024.0, 1), number(each, 1)],
        &Budgets::none().at_most("per stream", each, 64.0, " KiB"),
    );
    Ok(table)
}

fn hard_limit() -> Result<u32, String> {
    let output = Command::new("bash")
        .args(["-c", "ulimit -Hn"])
        .output()
        .map_err(|error| format!("cannot run bash: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(said.trim().parse().unwrap_or(u32::MAX))
}

/// From the call of the program to its first request at the server.
pub(super) fn start(bench: &Bench) -> Result<ReportTable, String> {
    const TIMES: usize = 20;
    let mut table = ReportTable::new(
        "Start to first request",
        format!("{TIMES} starts, client not pinned"),
        &["p50 ms", "max ms"],
    );
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let server = TruthProcess::start(bench, 1, 1)?;
        let flags = "--num-requests 1 --concurrency 1 --max-tokens 1";
        let command = goodput(bench, &server, flags);
        let called = now();
        let status = Command::new(&command[0])
            .args(&command[1..])
            .stdout(Stdio::null())
            .status()
            .map_err(|error| format!("cannot run goodput: {error}"))?;
        let truth = server.stop()?;
        if status.success() {
            times.push((at(&truth, "/first_arrival") - called.0 as f64) / 1e6);
        }
    }
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or(f64::NAN);
    let max = times.last().copied().unwrap_or(f64::NAN);
    let budgets = Budgets::none().at_most("p50", median, 30.0, " ms");
    table.push(vec![number(median, 1), number(max, 1)], &budgets);
    Ok(table)
}
