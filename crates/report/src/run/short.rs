//! The short page of a run: load, latencies, throughput, the SLO, errors, and caveats, in 25 lines.

use goodput_document::{Block, Fact, Formats, Section};
use goodput_stats::Summary;

use super::{error_text, facts, latency, ranks, slo};
use goodput_document::number::{count, plural};

/// The load, the share of the requests that completed, and how long users wait.
pub(super) fn short_headline(summary: &Summary) -> String {
    let requests = &summary.requests;
    let completed = match requests.scheduled {
        all if all == requests.ok => format!("all {} completed", plural(all, "request")),
        all => format!("{} of {} completed", count(requests.ok), plural(all, "request")),
    };
    let latency = [("ttft", "TTFT"), ("e2e", "E2E")].into_iter().find_map(|(name, label)| {
        let p90 = summary.metrics.get(name)?.percentiles.get("90")?;
        p90.value.map(|_| format!(", p90 {label} {} ms", latency::percentile_text(p90)))
    });
    format!("{}: {completed}{}", facts::offered_text(summary), latency.unwrap_or_default())
}

pub(super) fn short_sections(summary: &Summary) -> Vec<Section> {
    let fact = |label, text| Fact::new(label, text).also_in_short();
    let mut all = vec![fact("Throughput", facts::rates_in_window(summary))];
    all.extend(slo::slo_lines(summary).into_iter().map(Fact::also_in_short));
    let errors = summary.requests.error_details.iter().map(error_text);
    all.extend(Fact::several("Errors", errors).into_iter().map(Fact::also_in_short));
    let run = &summary.run;
    let target = format!("{} · {} · {}", run.target, run.model, run.api);
    let mut load = vec![fact("Target", target), fact("Load", facts::load_in_short(summary))];
    load.extend(ranks::shard_fact(&summary.run).map(Fact::also_in_short));
    vec![
        Section::untitled().with_on(Formats::SHORT, Block::Facts(load)),
        Section::untitled().with_on(Formats::SHORT, latency::short_latency_block(summary)),
        Section::untitled()
            .with_on(Formats::SHORT, Block::Facts(all))
            .with_on(Formats::SHORT, Block::verdict_block(summary.verdict, &summary.caveats)),
    ]
}
