//! The short page of a run: load, latencies, throughput, the SLO, errors, and caveats, in 25 lines.

use goodput_document::{Block, Fact, Formats, Section};
use goodput_stats::Summary;

use super::{error, facts, latency, ranks, slo};
use goodput_document::number::{count, plural};

/// The load, the share of the requests that completed, and how long users wait.
pub(super) fn headline(summary: &Summary) -> String {
    let requests = &summary.requests;
    let completed = match requests.scheduled {
        all if all == requests.ok => format!("all {} completed", plural(all, "request")),
        all => format!("{} of {} completed", count(requests.ok), plural(all, "request")),
    };
    let latency = [("ttft", "TTFT"), ("e2e", "E2E")].into_iter().find_map(|(name, label)| {
        let p90 = summary.metrics.get(name)?.percentiles.get("90")?;
        p90.value.map(|_| format!(", p90 {label} {} ms", latency::figure(p90)))
    });
    format!("{}: {completed}{}", facts::offered(summary), latency.unwrap_or_default())
}

pub(super) fn sections(summary: &Summary) -> Vec<Section> {
    let fact = |label, text| Fact::new(label, text).in_short();
    let mut all = vec![fact("Throughput", facts::rates_in_window(summary))];
    all.extend(slo::in_lines(summary).into_iter().map(Fact::in_short));
    let errors = summary.requests.error_details.iter().map(error);
    all.extend(Fact::several("Errors", errors).into_iter().map(Fact::in_short));
    let run = &summary.run;
    let target = format!("{} · {} · {}", run.target, run.model, run.api);
    let mut load = vec![fact("Target", target), fact("Load", facts::load_in_short(summary))];
    load.extend(ranks::shard(&summary.run).map(Fact::in_short));
    vec![
        Section::bare().with_on(Formats::SHORT, Block::Facts(load)),
        Section::bare().with_on(Formats::SHORT, latency::in_short(summary)),
        Section::bare()
            .with_on(Formats::SHORT, Block::Facts(all))
            .with_on(Formats::SHORT, Block::judgement(summary.verdict, &summary.caveats)),
    ]
}
