//! The server's side: its own figures over the window, next to those of the client.

mod against;
mod looks;
mod marks;
mod points;
mod queue;
mod scaling;
mod totals;

#[cfg(test)]
mod tests;

pub(crate) use marks::KV_FULL;

use goodput_model::{
    HealthSample, MetricName, Mode, Nanos, Plan, RequestRecord, Scrape, SystemFacts,
};

use crate::cuts::Cuts;
use crate::request::Latencies;
use crate::summary::{EndpointSummary, ServerSummary};
use crate::window::{Window, WindowKind};
use against::ClientSide;
use looks::{Between, ServerLooks};
use points::{CombinedPoint, combined_points};
use queue::Arrivals;

/// Filled by all requests of a run.
#[derive(Debug)]
pub(crate) struct ServerTally {
    window: Window,
    /// How often pages are read.
    interval: Nanos,
    stream: bool,
    /// Those of a closed loop.
    users: Option<u32>,
    /// When the load rises, in seconds.
    rises: Vec<f64>,
    client: ClientSide,
    arrivals: Arrivals,
}

impl Default for ServerTally {
    fn default() -> Self {
        Self {
            window: Window { start: Nanos::ZERO, end: Nanos::ZERO, kind: WindowKind::Time },
            interval: Nanos::ZERO,
            stream: true,
            users: None,
            rises: Vec::new(),
            client: ClientSide::default(),
            arrivals: Arrivals::default(),
        }
    }
}

impl ServerTally {
    /// With what was looked at, if anything was.
    pub(crate) fn new(plan: &Plan, samples: &[HealthSample], window: Window) -> Self {
        Self {
            window,
            interval: plan.observe.interval.into(),
            stream: plan.target.stream,
            users: match plan.load.mode {
                Mode::Closed { concurrency, .. } => Some(concurrency),
                Mode::Open { .. } | Mode::Shaped { .. } | Mode::Replay { .. } => None,
            },
            rises: scaling::load_rises(&plan.load.mode),
            client: ClientSide::new(&ServerLooks::from_samples(samples), window),
            arrivals: Arrivals::default(),
        }
    }

    pub(crate) fn add(&mut self, record: &RequestRecord, cuts: &Cuts) {
        let latencies = Latencies::new(record, self.stream, cuts);
        self.arrivals.add(record, latencies.get(MetricName::Ttft));
        self.client.add(record, cuts);
    }

    /// None if no page was read, and requests never queued as far as can be seen.
    pub(crate) fn finish(
        self,
        samples: &[HealthSample],
        facts: &SystemFacts,
    ) -> Option<ServerSummary> {
        let Self { window, interval, users, rises, client, arrivals, .. } = self;
        let looks = ServerLooks::from_samples(samples);
        let endpoints = endpoint_summaries(&looks, facts, window, interval);
        let points = combined_points(&looks, interval);
        let ttft_by_queue = arrivals.ttft_by_queue(&points, interval);
        if endpoints.is_empty() {
            let queued = ttft_by_queue.filter(|found| found.bands.len() > 1)?;
            return Some(ServerSummary { ttft_by_queue: Some(queued), ..ServerSummary::default() });
        }
        let inside: Vec<&CombinedPoint> =
            points.iter().filter(|point| window.contains(point.at)).collect();
        let between = looks.between_looks(|at| window.contains(at));
        let between: Vec<&Between<'_>> = between.iter().flatten().collect();
        let counters = totals::counter_growth(&between);
        let histograms = totals::histogram_growth(&between);
        let share = |part: &str, whole: &str| {
            let whole = counters.get(whole)?.total;
            (whole > 0.0).then_some(counters.get(part)?.total / whole)
        };
        let queue = queue::queue_summary(&inside, users).map(|queue| {
            queue.with_server_waits(histograms.get("queue_time"), histograms.get("ttft"))
        });
        Some(ServerSummary {
            levels: points::level_summaries(inside.iter().copied()),
            queue,
            against_client: client.compare_counts(&looks, window),
            ttft_by_queue,
            prefix_hit_rate_counted: share("prefix_hits", "prefix_queries"),
            speculative_acceptance_counted: share("accepted_tokens", "drafted_tokens"),
            scaling: scaling::scaling(&points, &rises),
            marks: marks::find_marks(&looks, &points),
            timeline: marks::level_timeline(&points, samples),
            endpoints,
            counters,
            histograms,
        })
    }
}

/// Those that answered, and those that should have.
fn endpoint_summaries(
    looks: &ServerLooks<'_>,
    facts: &SystemFacts,
    window: Window,
    interval: Nanos,
) -> Vec<EndpointSummary> {
    let mut all: Vec<u32> = (0..).zip(&facts.metrics).map(|(endpoint, _)| endpoint).collect();
    all.extend(looks.answering_endpoints());
    all.sort_unstable();
    all.dedup();
    let are_several = all.len() > 1;
    let summary = |endpoint: u32| {
        let source = facts.metrics.get(endpoint as usize).cloned().unwrap_or_default();
        let mut summary = EndpointSummary {
            url: source.url,
            engine: source.engine,
            ..endpoint_summary(looks.scrapes_of(endpoint), window)
        };
        if are_several {
            let only = looks.of_endpoint(endpoint);
            let points = combined_points(&only, interval);
            let inside = points.iter().filter(|point| window.contains(point.at));
            summary.levels = points::level_summaries(inside);
            let between = only.between_looks(|at| window.contains(at));
            summary.counters =
                totals::counter_growth(&between.iter().flatten().collect::<Vec<_>>());
        }
        summary
    };
    all.into_iter().map(summary).collect()
}

fn endpoint_summary(asked: &[&Scrape], window: Window) -> EndpointSummary {
    let mut summary = EndpointSummary::default();
    let mut took = crate::sample::Sample::default();
    let (mut last, mut longest) = (None, Nanos::ZERO);
    let gap = |last: Option<Nanos>, to| window.overlap(last.unwrap_or(window.start), to);
    for scrape in asked {
        match &scrape.outcome {
            Ok(reading) => {
                summary.answers += 1;
                summary.resets += u64::from(reading.resets);
                summary.several_servers |= reading.of_several;
                summary.malformed = summary.malformed.max(u64::from(reading.malformed));
                took.push(scrape.took.as_ms());
                longest = longest.max(gap(last, scrape.at));
                // Looks before the first request, all at zero, are as good as one.
                let is_other = last != Some(scrape.at) && window.contains(scrape.at);
                summary.looks += u64::from(is_other);
                last = Some(scrape.at);
            }
            Err(reason) => {
                summary.failures += 1;
                summary.last_failure = Some(reason.clone());
            }
        }
    }
    longest = longest.max(gap(last, window.end));
    summary.longest_gap_s = longest.as_secs();
    summary.took_ms = took.into_level().unwrap_or_default();
    summary
}
