//! How the client fared: what of the figures may be its own doing.

use goodput_stats::{Quick, Summary};

use super::HTML;
use super::facts::three;
use crate::document::{Block, Cell, Column, Fact, Section, Table};
use crate::number::{amount, count, known, percent};

pub(super) fn section(summary: &Summary) -> Section {
    let section = Section::named("client", "Client", "Client health and instrument error");
    let columns = ["ms", "p50", "p99", "max"].map(|head| Column::right(head, 0)).to_vec();
    let rows = errors(summary).iter().map(|(name, quick)| row(name, quick)).collect();
    let times = Table::new("", "The instrument's own times", columns).with_rows(rows);
    let canary = summary.client.canary.map(|canary| {
        Block::remark(format!(
            "The canary is a server of known timing inside the process, asked by the same code beside \
             the load: {} answers, {} without one. What it is off by, latencies above may be off by.",
            count(canary.n),
            count(canary.unanswered)
        ))
    });
    let mut all = Fact::several("Client", health(summary));
    all.extend(stalls(summary).map(|text| Fact::new("Stood still", text)));
    all.extend(host(summary).map(|text| Fact::new("Host", text)));
    all.extend(summary.client.littles_law.as_ref().map(|law| {
        let text = format!(
            "{} under way on average, {} arrivals per second times {:.3} s each: {} apart, {} \
             explained by the ends of the window",
            amount(law.in_flight),
            amount(law.arrivals_per_s),
            law.residence_s,
            percent(law.residual.abs()),
            percent(law.limit.abs())
        );
        Fact::new("Little's law", text)
    }));
    section
        .with_some(HTML, times.filled())
        .with_some(HTML, canary)
        .with_on(HTML, Block::Facts(all))
        .with_some(HTML, threads(summary).filled())
}

/// How the client fared, in the order in which a doubter would ask.
pub(super) fn facts(summary: &Summary) -> Vec<Fact> {
    let slip = format!("schedule slip {}", three(&summary.load.slip_ms));
    Fact::several("Client", std::iter::once(slip).chain(health(summary)))
}

/// Beyond its own slip.
fn health(summary: &Summary) -> Vec<String> {
    let (client, load) = (&summary.client, &summary.load);
    let stamps = match client.stamps.as_str() {
        "kernel" => "arrivals stamped by the kernel; read later by",
        "mixed" => "arrivals stamped by the kernel where it does; read later by",
        _ => "arrivals stamped when read; the kernel does not say how much later:",
    };
    let mut all = vec![format!("{stamps} {}", three(&client.lag_ms))];
    let whole = |share: f64| format!("{:.0} %", share * 100.0);
    let workers = || client.threads.iter().filter(|(name, _)| name.starts_with("worker-"));
    let busiest = workers().map(|(_, thread)| thread.cpu_share).max_by(f64::total_cmp);
    let waited = workers().map(|(_, thread)| thread.waited_share).max_by(f64::total_cmp);
    if let (Some(busiest), Some(waited)) = (busiest, waited) {
        all.push(format!(
            "busiest worker {} of a core, {} waiting for one; loop called late by {}",
            whole(busiest),
            whole(waited),
            three(&client.loop_lag_ms)
        ));
    }
    let tcp = &client.tcp;
    all.push(format!(
        "{} connections opened on demand, {} reused, {} reopened; {} segments sent again; in flight {} on \
         average, {} at the end",
        count(tcp.opened),
        count(tcp.reused),
        count(summary.requests.reconnects),
        count(tcp.retransmits),
        known(load.in_flight_mean, amount),
        count(load.in_flight_end)
    ));
    if let Some(test) = load.sent_gaps {
        all.push(format!(
            "gaps between sends against Poisson: Kolmogorov–Smirnov distance {:.3}, p {:.2}",
            test.distance, test.p
        ));
    }
    all
}

/// Times that are the client's own.
fn errors(summary: &Summary) -> Vec<(&'static str, Quick)> {
    let client = &summary.client;
    let mut all = vec![
        ("schedule slip", summary.load.slip_ms),
        ("bytes waited to be read", client.lag_ms),
        ("pacer woke late", client.pacer_lag_ms),
        ("loops called late", client.loop_lag_ms),
    ];
    if let Some(canary) = &client.canary {
        all.push(("canary: error of TTFT", canary.ttft_error_ms));
        all.push(("canary: error of ITL", canary.itl_error_ms));
    }
    all.retain(|(_, quick)| quick.p50.or(quick.p99).or(quick.max).is_some());
    all
}

fn row(name: &str, quick: &Quick) -> Vec<Cell> {
    let ms = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
    vec![name.into(), ms(quick.p50).into(), ms(quick.p99).into(), ms(quick.max).into()]
}

fn stalls(summary: &Summary) -> Option<String> {
    let stalls = &summary.client.stalls;
    Some(match (stalls.count, stalls.longest_ms, stalls.longest_at_s) {
        (0, ..) if summary.client.observed_until_s <= 0.0 => return None,
        (0, ..) => "none: no worker stood still".to_owned(),
        (n, longest, at) => format!(
            "{} on the worker that had most, {:.1} ms in all; the longest {} ms{}; {} measured requests \
             touched, their latencies cut",
            count(n),
            stalls.total_ms,
            longest.map_or("–".to_owned(), |ms| format!("{ms:.1}")),
            at.map_or(String::new(), |at| format!(" at {at:.1} s")),
            count(stalls.requests)
        ),
    })
}

fn host(summary: &Summary) -> Option<String> {
    let client = &summary.client;
    let shares = [
        (client.used_share, "used by this client"),
        (client.idle_share, "idle"),
        (client.steal_share, "taken by the hypervisor"),
    ];
    let mut parts: Vec<String> = Vec::new();
    if client.cpus > 0 {
        parts.push(format!("{} processors", client.cpus));
    }
    let shares = shares
        .into_iter()
        .filter_map(|(share, what)| share.map(|share| format!("{} {what}", percent(share))));
    parts.extend(shares);
    parts.extend(client.throttled_ms.map(|ms| format!("held back by a limit for {ms:.0} ms")));
    if let Some(host) = &client.host {
        let memory = host.memory_available_min_gb.zip(host.memory_total_gb);
        parts.extend(memory.map(|(least, all)| {
            format!("{} of {} GB of memory free at least", amount(least), amount(all))
        }));
        let network = host.network_received_mb_s.zip(host.network_sent_mb_s);
        parts.extend(network.map(|(received, sent)| {
            format!("{} MB/s received, {} MB/s sent", amount(received), amount(sent))
        }));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn threads(summary: &Summary) -> Table {
    let row = |(name, thread): (&String, &goodput_stats::ThreadSummary)| {
        let share = |share: f64| format!("{:.1}", share * 100.0);
        let cells = [
            name.clone(),
            share(thread.cpu_share),
            share(thread.cpu_share_max),
            share(thread.waited_share),
            amount(thread.preempted_per_s),
        ];
        cells.map(Cell::from).to_vec()
    };
    let rows = summary.client.threads.iter().map(row).collect();
    let heads = ["thread", "busy, %", "busiest second, %", "waiting for a core, %", "preempted/s"];
    let columns = heads.map(|head| Column::right(head, 0)).to_vec();
    Table::new("", "Threads, in shares of one processor", columns).with_rows(rows)
}
