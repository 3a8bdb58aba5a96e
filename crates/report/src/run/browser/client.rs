//! How the client fared: what of the figures may be its own doing.

use goodput_stats::{Quick, Summary};

use crate::document::Cell;
use crate::markup::Html;
use crate::number::{amount, count, percent};
use crate::render::pieces::{fields, remark, table};
use crate::render::text::Fields;
use crate::run::facts::client_rest;
use crate::view::RunView;

pub(super) fn fill(html: &mut Html, view: &RunView<'_>) {
    let summary = view.summary;
    let rows = errors(summary);
    if !rows.is_empty() {
        let rows: Vec<_> = rows.iter().map(|(name, quick)| row(name, quick)).collect();
        let head = ["ms", "p50", "p99", "max"];
        table(html, "The instrument's own times", &head, &rows);
    }
    if let Some(canary) = &summary.client.canary {
        let text = format!(
            "The canary is a server of known timing inside the process, asked by the same code beside \
             the load: {} answers, {} without one. What it is off by, latencies above may be off by.",
            count(canary.n),
            count(canary.unanswered)
        );
        remark(html, &text);
    }
    fields(html, |found| {
        client_rest(found, summary);
        if let Some((label, _)) = found.first_mut() {
            "Client".clone_into(label);
        }
        stalls(found, summary);
        host(found, summary);
        if let Some(law) = &summary.client.littles_law {
            let text = format!(
                "{} under way on average, {} arrivals per second times {:.3} s each: {} apart, {} \
                 explained by the ends of the window",
                amount(law.in_flight),
                amount(law.arrivals_per_s),
                law.residence_s,
                percent(law.residual.abs()),
                percent(law.limit.abs())
            );
            found.field("Little's law", &text);
        }
    });
    threads(html, summary);
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

fn stalls(found: &mut impl Fields, summary: &Summary) {
    let stalls = &summary.client.stalls;
    let text = match (stalls.count, stalls.longest_ms, stalls.longest_at_s) {
        (0, ..) if summary.client.observed_until_s <= 0.0 => return,
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
    };
    found.field("Stood still", &text);
}

fn host(found: &mut impl Fields, summary: &Summary) {
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
    if !parts.is_empty() {
        found.field("Host", &parts.join("; "));
    }
}

fn threads(html: &mut Html, summary: &Summary) {
    let threads = &summary.client.threads;
    if threads.is_empty() {
        return;
    }
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
    let rows: Vec<_> = threads.iter().map(row).collect();
    let head = ["thread", "busy, %", "busiest second, %", "waiting for a core, %", "preempted/s"];
    table(html, "Threads, in shares of one processor", &head, &rows);
}
