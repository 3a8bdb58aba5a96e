//! What charts are drawn from, beyond the [`Summary`]: distributions, the course of the run, and
//! where every request lies between the limits that an SLO may have.
//!
//! Long series are thinned here, for drawing alone: no figure is computed from them. Counts between
//! the edges of [`SloGrid`] are exact.

mod counts;
mod distribution;
mod positions;
mod slo_counts;
mod slo_grid;
mod stalls;
#[cfg(test)]
mod tests;
mod timeline;

use std::collections::BTreeMap;

pub use slo_counts::{
    LimitTally, LoadGrid, SloAnswer, SloCounts, SloLimits, SloLoad, SloStart, StatedAnswer,
};

use goodput_model::{AnswerJudgement, HealthSample, MetricName, Nanos, Phase, Plan, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::cuts::Cuts;
use crate::request::{Latencies, placed_gaps};
use crate::sample::Sample;
use crate::summary::Summary;
use crate::workload::Judgements;
use counts::NumberCounts;
use distribution::{distribution_from_counts, distribution_from_sample};
use positions::Positions;
use slo_grid::Grid;
use stalls::StallCandidates;
use timeline::TimelineTally;

/// What charts are drawn from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Details {
    /// Distributions of the measured requests by the name of their metric, as in the summary:
    /// `ttft`, `tpot`, `itl`, `e2e`, `max_gap`; those without a sample are not there.
    pub distributions: BTreeMap<String, Distribution>,
    /// Gaps between tokens by their place in the answer.
    pub positions: Vec<PositionBand>,
    /// The longest gaps.
    pub stalls: StallView,
    /// The run over time.
    pub timeline: Timeline,
    /// Requests between the limits that an SLO may have.
    pub slo_grid: SloGrid,
}

/// A distribution to be drawn.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of samples, those beyond the time limit included.
    pub n: u64,
    /// Samples that are only known to be larger.
    pub censored: u64,
    /// Shares of all samples (0 to 1) and the values that they do not exceed, ascending: exact order
    /// statistics at no more than 200 shares, the extremes among them. Gaps (`itl`) above 131 ms are
    /// exact to one part in 65,536. Shares beyond the time limit have no value.
    pub quantiles: Vec<(f64, f64)>,
    /// Bins of equal ratio: where one begins, and how many samples it has, the first with what is
    /// smaller than a hundredth of the median. The last one has none and says where the one before
    /// ends. Samples beyond the time limit are in none.
    pub histogram: Vec<(f64, u64)>,
}

/// Gaps before the tokens of these places. Drawn from bins that are at most 2 % wide.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PositionBand {
    /// First place, counted from 2: the first token has no gap before it.
    pub from: u64,
    /// Last place.
    pub to: u64,
    /// Gaps.
    pub n: u64,
    /// Median in milliseconds.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile; none below 100 gaps.
    pub p99: Option<f64>,
}

/// The longest gaps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StallView {
    /// A gap counts from here, in milliseconds: ten times the median gap, and at least 100 ms.
    pub threshold_ms: f64,
    /// Gaps that long.
    pub count: u64,
    /// Requests with one.
    pub requests: u64,
    /// The longest of them, at most 200: when they began in seconds since the first instant, and how
    /// long they lasted in milliseconds; in order of time.
    pub longest: Vec<(f64, f64)>,
}

/// The run over time, in bins of equal length: at most 600.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// Length of a bin in seconds. The first one begins at the first instant.
    pub bin_s: f64,
    /// Requests in flight, averaged over the bin.
    pub in_flight: Vec<f64>,
    /// Output tokens per second, by their arrival.
    pub tokens_per_s: Vec<f64>,
    /// Requests due, per second.
    pub arrivals_per_s: Vec<f64>,
    /// Completed requests per second.
    pub completions_per_s: Vec<f64>,
    /// Failures in the bin.
    pub errors: Vec<u64>,
    /// Median TTFT of the requests due in the bin, in milliseconds; none without a request.
    pub ttft_p50_ms: Vec<Option<f64>>,
    /// GPUs: mean utilization (0 to 1) and power of all in watts, in bins with a look at least:
    /// seconds, share, watts.
    pub gpu: Vec<(f64, Option<f64>, Option<f64>)>,
}

/// Requests between the limits that an SLO may have. Every edge is a limit to choose, and counts
/// between edges are exact, so what is counted for a chosen limit is exact too.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SloGrid {
    /// Limits of TTFT in milliseconds, ascending: twelve a decade, and those of the plan's SLO.
    pub ttft_ms: Vec<f64>,
    /// Limits of TPOT likewise.
    pub tpot_ms: Vec<f64>,
    /// Cells that are not empty: the place of the smallest TTFT limit that the requests keep, the same
    /// of TPOT, how many they are, and their output tokens. Requests that keep no limit have the place
    /// after the last. An answer without TPOT (of one token, or not streamed) keeps all of TPOT's.
    pub cells: Vec<(u16, u16, u64, u64)>,
    /// Measured requests, those that failed (and so keep nothing) included, those that a stall of the
    /// client spoiled not.
    pub requests: u64,
    /// The time that they stand for in seconds: their number over the rate at which requests were due.
    /// Good ones over it are goodput as the summary has it. Zero where nothing was measured.
    pub window_s: f64,
}

/// Gaps are counted in microseconds: exactly up to 131 ms, longer ones to one part in 65,536.
const GAP_BITS: u32 = 16;

/// What charts are drawn from: one more pass over the records of a run, completed by
/// [`complete_records`] where its answers were judged.
pub fn chart_details(
    plan: &Plan,
    summary: &Summary,
    records: impl Iterator<Item = RequestRecord>,
    samples: &[HealthSample],
) -> Details {
    let start = Nanos::from_secs_f64(summary.window.start_s);
    let has_cut = summary.window.cut.as_ref().is_some_and(|cut| cut.cut_s > 0.0);
    let mut tally = DetailsTally::new(plan, summary, samples);
    for record in records {
        let is_cut = has_cut && record.scheduled < start;
        tally.timeline.add(&record);
        if record.phase == Phase::Measured && !is_cut {
            tally.add(&record);
        }
    }
    tally.finish(plan, summary, samples)
}

/// Records with our own counts of their tokens, where the server gave none, as the summary has them.
pub fn complete_records(
    records: impl Iterator<Item = RequestRecord>,
    judgements: impl IntoIterator<Item = AnswerJudgement>,
) -> impl Iterator<Item = RequestRecord> {
    let judgements = Judgements::new(judgements);
    records.map(move |mut record| {
        judgements.complete(&mut record);
        record
    })
}

/// Metrics of which every value is kept.
const KEPT: [(&str, MetricName); 4] = [
    ("ttft", MetricName::Ttft),
    ("tpot", MetricName::Tpot),
    ("e2e", MetricName::E2e),
    ("max_gap", MetricName::MaxGap),
];

/// Everything that the pass adds up.
struct DetailsTally {
    cuts: Cuts,
    stream: bool,
    kept: [Sample; KEPT.len()],
    gaps: NumberCounts,
    positions: Positions,
    stalls: StallCandidates,
    timeline: TimelineTally,
    grid: Grid,
}

impl DetailsTally {
    fn new(plan: &Plan, summary: &Summary, samples: &[HealthSample]) -> Self {
        Self {
            cuts: Cuts::new(samples),
            stream: plan.target.stream,
            kept: Default::default(),
            gaps: NumberCounts::new(GAP_BITS),
            positions: Positions::default(),
            stalls: StallCandidates::new(),
            timeline: TimelineTally::default(),
            grid: Grid::new(plan, summary),
        }
    }

    /// Takes a measured request.
    fn add(&mut self, record: &RequestRecord) {
        let latencies = Latencies::new(record, self.stream, &self.cuts);
        for ((_, metric), sample) in KEPT.into_iter().zip(&mut self.kept) {
            sample.push_value(None, latencies.get(metric));
        }
        self.grid.add(record, &self.cuts);
        if !self.stream || !latencies.has_any() {
            return;
        }
        let mut longest = None;
        for gap in placed_gaps(record, &self.cuts) {
            let us = u32::try_from(gap.length.as_micros_rounded()).unwrap_or(u32::MAX);
            self.gaps.add(us);
            self.positions.add(&gap, us);
            self.stalls.add(&gap, us);
            longest = longest.max(Some(us));
        }
        if let Some(longest) = longest {
            self.stalls.end_request(longest);
        }
    }

    fn finish(self, plan: &Plan, summary: &Summary, samples: &[HealthSample]) -> Details {
        let kept = KEPT.into_iter().zip(self.kept);
        let kept = kept.map(|((name, _), sample)| (name, distribution_from_sample(sample, plan)));
        let all = kept.chain([("itl", distribution_from_counts(&self.gaps, plan))]);
        Details {
            distributions: all
                .filter(|(_, drawn)| drawn.n > 0)
                .map(|(name, drawn)| (name.to_owned(), drawn))
                .collect(),
            positions: self.positions.finish(),
            stalls: self.stalls.finish(&self.gaps),
            timeline: self.timeline.finish(self.stream, samples),
            slo_grid: self.grid.finish(summary),
        }
    }
}
