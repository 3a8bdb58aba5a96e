//! The short page of a run: load, latencies, throughput, the SLO, errors, and caveats, in 25 lines.

use goodput_document::{Block, Fact, Formats, Section};
use goodput_stats::Summary;

use super::{error, facts, latency, ranks, slo};
use goodput_document::number::{count, plural};

/// Requests, failures, target, and model of the run.
pub(super) fn headline(summary: &Summary) -> String {
    let (run, requests) = (&summary.run, &summary.requests);
    format!(
        "{}, {} failed · {} · {} · {}",
        plural(requests.scheduled, "request"),
        count(requests.failed),
        run.target,
        run.model,
        run.api
    )
}

pub(super) fn sections(summary: &Summary) -> Vec<Section> {
    let fact = |label, text| Fact::new(label, text).in_short();
    let mut all = vec![fact("Throughput", facts::rates_in_window(summary))];
    all.extend(slo::in_lines(summary).into_iter().map(Fact::in_short));
    let errors = summary.requests.error_details.iter().map(error);
    all.extend(Fact::several("Errors", errors).into_iter().map(Fact::in_short));
    let mut load = vec![fact("Load", facts::load_in_short(summary))];
    load.extend(ranks::shard(&summary.run).map(Fact::in_short));
    vec![
        Section::bare().with_on(Formats::SHORT, Block::Facts(load)),
        Section::bare().with_on(Formats::SHORT, latency::in_short(summary)),
        Section::bare()
            .with_on(Formats::SHORT, Block::Facts(all))
            .with_on(Formats::SHORT, Block::judgement(summary.verdict, &summary.caveats)),
    ]
}
