//! Requests between the limits that an SLO may have.

use std::collections::BTreeMap;

use goodput_model::{MetricName, Plan, RequestRecord, SloMetric, SloRelation};

use super::SloGrid;
use crate::cuts::Cuts;
use crate::request::{Latencies, LatencyValue};
use crate::slo::{Judge, is_whole};
use crate::summary::Summary;

/// Twelve steps of a decade, in tenths (the E12 series).
const STEPS: [u32; 12] = [10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82];

/// Decades between the first limit and the last.
const DECADES: i32 = 5;

/// Limits of the plan that become edges; a plan file may hold anything.
const MOST_ASKED: usize = 32;

/// A limit to choose.
#[derive(Debug, Clone, Copy)]
struct Edge {
    ms: f64,
    /// Whether a value that equals it keeps it.
    includes: bool,
}

/// Limits in hundredths of a millisecond times ten for each decade, and those of the plan.
fn limit_edges(first_hundredths: u32, plan: &Plan, metric: MetricName) -> Vec<Edge> {
    let round = |decade: i32| {
        let unit = f64::from(first_hundredths) * 10f64.powi(decade);
        STEPS.into_iter().map(move |step| unit * f64::from(step) / 1e3)
    };
    let last = f64::from(first_hundredths) * 10f64.powi(DECADES) / 1e2;
    let round = (0..DECADES).flat_map(round).chain([last]);
    let asked = plan.measure.slo.iter().flat_map(|slo| &slo.terms);
    let asked = asked.filter(|term| {
        let is_fixed = !term.limit.is_linear() && term.limit.base.is_finite();
        term.metric == SloMetric::Request(metric) && is_fixed && !term.relation.is_floor()
    });
    let asked = asked
        .take(MOST_ASKED)
        .map(|term| Edge { ms: term.limit.base, includes: term.relation == SloRelation::AtMost });
    // The plan's first: of equals the first is kept.
    let mut all: Vec<Edge> = asked.chain(round.map(|ms| Edge { ms, includes: false })).collect();
    all.sort_by(|one, other| one.ms.total_cmp(&other.ms));
    all.dedup_by(|next, before| next.ms.total_cmp(&before.ms).is_eq());
    all
}

/// The place of the smallest limit that a value keeps.
fn edge_index(edges: &[Edge], seen: LatencyValue) -> u16 {
    let keeps = |edge: &Edge, value: f64| {
        if edge.includes { value <= edge.ms } else { value < edge.ms }
    };
    let place = match seen {
        LatencyValue::Value(value) => edges.partition_point(|edge| !keeps(edge, value)),
        LatencyValue::Beyond => edges.len(),
        // Where a term says nothing about a completed request, it is met.
        LatencyValue::FailedAfter(_) | LatencyValue::Nothing => 0,
    };
    u16::try_from(place).unwrap_or(u16::MAX)
}

/// Requests, counted between limits.
#[derive(Debug)]
pub(super) struct Grid {
    ttft: Vec<Edge>,
    tpot: Vec<Edge>,
    stream: bool,
    gave_up: bool,
    /// What the plan promised.
    judge: Option<Judge>,
    cells: BTreeMap<(u16, u16), (u64, u64)>,
    requests: u64,
}

impl Grid {
    pub(super) fn new(plan: &Plan, summary: &Summary) -> Self {
        let gave_up = summary.run.gave_up();
        Self {
            ttft: limit_edges(100, plan, MetricName::Ttft),
            tpot: limit_edges(10, plan, MetricName::Tpot),
            stream: plan.target.stream,
            gave_up,
            judge: Judge::new(plan).map(|judge| judge.after_giving_up(gave_up)),
            cells: BTreeMap::new(),
            requests: 0,
        }
    }

    /// Takes a measured request.
    pub(super) fn add(&mut self, record: &RequestRecord, cuts: &Cuts) {
        let latencies = Latencies::new(record, self.stream, cuts);
        let lost = || (self.ttft.len() as u16, self.tpot.len() as u16);
        let cell = match is_whole(record, cuts, self.gave_up) {
            Some(true) => (
                edge_index(&self.ttft, latencies.get(MetricName::Ttft)),
                edge_index(&self.tpot, latencies.get(MetricName::Tpot)),
            ),
            Some(false) => lost(),
            // Given up, and too late already for what was promised.
            None if self.judge.as_ref().and_then(|it| it.is_good(record, cuts)) == Some(false) => {
                lost()
            }
            None => return,
        };
        let tokens = record.exchange.output_tokens.map_or(0, |count| count.n);
        let (count, sum) = self.cells.entry(cell).or_default();
        (*count, *sum) = (*count + 1, *sum + u64::from(tokens));
        self.requests += 1;
    }

    /// Leaves out as many failures as the summary does where a stall of the client spoiled answers.
    fn leave_out(&mut self, summary: &Summary) {
        let Some(slo) = &summary.slo else { return };
        let over = self.requests.saturating_sub(slo.scheduled.saturating_sub(slo.undetermined));
        let lost = (self.ttft.len() as u16, self.tpot.len() as u16);
        if let Some((count, _)) = self.cells.get_mut(&lost) {
            let over = over.min(*count);
            *count -= over;
            self.requests -= over;
        }
    }

    /// Empty if answers came in one piece: which token limits they meet is unknown.
    pub(super) fn finish(mut self, summary: &Summary) -> SloGrid {
        if !self.stream {
            return SloGrid::default();
        }
        self.leave_out(summary);
        let window = &summary.window;
        let scheduled = summary.requests.scheduled as f64;
        // As goodput is: the share of good ones times the rate at which requests were due.
        let over_all = scheduled / (window.end_s - window.start_s);
        let rate = summary.load.scheduled_rps.unwrap_or(over_all);
        let seconds = self.requests as f64 / rate;
        let ms = |edges: Vec<Edge>| edges.into_iter().map(|edge| edge.ms).collect();
        SloGrid {
            ttft_ms: ms(self.ttft),
            tpot_ms: ms(self.tpot),
            cells: self
                .cells
                .into_iter()
                .map(|((ttft, tpot), (count, tokens))| (ttft, tpot, count, tokens))
                .collect(),
            requests: self.requests,
            window_s: if seconds.is_finite() { seconds } else { 0.0 },
        }
    }
}
