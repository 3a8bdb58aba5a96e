//! How the client fared: what of the figures may be its own doing.

use goodput_stats::{Quick, Summary, ThreadSummary};

use super::HTML;
use super::facts::three_figures;
use goodput_document::number::{amount, count, known_or_dash, percent, plural};
use goodput_document::{Block, Fact, Section, Table};

pub(super) fn client_section(summary: &Summary) -> Section {
    let section = Section::with_name("client", "Client", "Client health and instrument error");
    let ms = |of: fn(&Quick) -> Option<f64>| {
        move |(_, quick): &(&str, Quick)| known_or_dash(of(quick), |value| format!("{value:.3}"))
    };
    let times = Table::from_subjects("", "The instrument's own times", instrument_errors(summary))
        .right("ms", 0, |(name, _)| *name)
        .right("p50", 0, ms(|quick| quick.p50))
        .right("p99", 0, ms(|quick| quick.p99))
        .right("max", 0, ms(|quick| quick.max))
        .table;
    let canary = summary.client.canary.map(|canary| {
        Block::remark_note(format!(
            "The canary is a server of known timing inside the process, measured by the same code \
             during the load: {} answers, {} without one. Latencies above may be off by as much as \
             the canary's.",
            count(canary.n),
            count(canary.unanswered)
        ))
    });
    let mut all = Fact::several("Client", health_lines(summary));
    all.extend(stalls_text(summary).map(|text| Fact::new("Stalls", text)));
    all.extend(host_text(summary).map(|text| Fact::new("Host", text)));
    all.extend(summary.client.littles_law.as_ref().map(|law| {
        let text = format!(
            "{} in flight on average, {} arrivals per second times {:.3} s each: they differ by \
             {}; the ends of the window explain up to {}",
            amount(law.in_flight),
            amount(law.arrivals_per_s),
            law.residence_s,
            percent(law.residual.abs()),
            percent(law.limit.abs())
        );
        Fact::new("Little's law", text)
    }));
    section
        .with_some(HTML, times.into_block())
        .with_some(HTML, canary)
        .with_on(HTML, Block::Facts(all))
        .with_some(HTML, threads_table(summary).into_block())
}

/// How the client fared, in the order in which a doubter would ask.
pub(super) fn client_facts(summary: &Summary) -> Vec<Fact> {
    let slip = format!("schedule slip {}", three_figures(&summary.load.slip_ms));
    Fact::several("Client", std::iter::once(slip).chain(health_lines(summary)))
}

/// Beyond its own slip.
fn health_lines(summary: &Summary) -> Vec<String> {
    let (client, load) = (&summary.client, &summary.load);
    let stamps = match client.stamps.as_str() {
        "kernel" => "arrivals stamped by the kernel; read later by",
        "mixed" => "arrivals stamped by the kernel where possible; read later by",
        _ => "arrivals stamped when read; the kernel does not report the delay before that:",
    };
    let mut all = vec![format!("{stamps} {}", three_figures(&client.lag_ms))];
    let whole = |share: f64| format!("{:.0} %", share * 100.0);
    let workers = || client.threads.iter().filter(|(name, _)| name.starts_with("worker-"));
    let busiest = workers().map(|(_, thread)| thread.cpu_share).max_by(f64::total_cmp);
    let waited = workers().map(|(_, thread)| thread.waited_share).max_by(f64::total_cmp);
    if let (Some(busiest), Some(waited)) = (busiest, waited) {
        all.push(format!(
            "busiest worker {} of a core, {} waiting for one; loop called late by {}",
            whole(busiest),
            whole(waited),
            three_figures(&client.loop_lag_ms)
        ));
    }
    let tcp = &client.tcp;
    all.push(format!(
        "{} opened on demand, {} reused, {} reopened; {} segments retransmitted; in flight {} on \
         average, {} at the end",
        plural(tcp.opened, "connection"),
        count(tcp.reused),
        count(summary.requests.reconnects),
        count(tcp.retransmits),
        known_or_dash(load.in_flight_mean, amount),
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
fn instrument_errors(summary: &Summary) -> Vec<(&'static str, Quick)> {
    let client = &summary.client;
    let mut all = vec![
        ("schedule slip", summary.load.slip_ms),
        ("bytes waited to be read", client.lag_ms),
        ("woke late", client.pacer_lag_ms),
        ("loops called late", client.loop_lag_ms),
    ];
    if let Some(canary) = &client.canary {
        all.push(("canary: error of TTFT", canary.ttft_error_ms));
        all.push(("canary: error of ITL", canary.itl_error_ms));
    }
    all.retain(|(_, quick)| quick.p50.or(quick.p99).or(quick.max).is_some());
    all
}

fn stalls_text(summary: &Summary) -> Option<String> {
    let stalls = &summary.client.stalls;
    Some(match (stalls.count, stalls.longest_ms, stalls.longest_at_s) {
        (0, ..) => return None,
        (n, longest, at) => format!(
            "{} on the worker with the most, {:.1} ms in total; the longest {} ms{}; {} measured \
             requests affected, their latencies cut",
            count(n),
            stalls.total_ms,
            longest.map_or("–".to_owned(), |ms| format!("{ms:.1}")),
            at.map_or(String::new(), |at| format!(" at {at:.1} s")),
            count(stalls.requests)
        ),
    })
}

fn host_text(summary: &Summary) -> Option<String> {
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
    parts.extend(client.throttled_ms.map(|ms| format!("throttled by a limit for {ms:.0} ms")));
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

fn threads_table(summary: &Summary) -> Table {
    let share = |of: fn(&ThreadSummary) -> f64| {
        move |(_, thread): &(&String, &ThreadSummary)| format!("{:.1}", of(thread) * 100.0)
    };
    Table::from_subjects("", "Threads, in shares of one processor", &summary.client.threads)
        .right("thread", 0, |(name, _)| name.as_str().to_owned())
        .right("busy, %", 0, share(|thread| thread.cpu_share))
        .right("busiest second, %", 0, share(|thread| thread.cpu_share_max))
        .right("waiting for a core, %", 0, share(|thread| thread.waited_share))
        .right("preempted/s", 0, |(_, thread)| amount(thread.preempted_per_s))
        .table
}
