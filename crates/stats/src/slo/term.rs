//! One term of an SLO.

use goodput_model::{MetricName, RequestRecord, SloMetric, SloStatistic, SloTerm};

use super::interval::{BATCHES, Estimate, attainment_interval, mean_interval, percentile_interval};
use super::summary::{SloState, SloTermSummary};
use super::{RunFigures, failed_share, is_in_table};
use crate::cuts::Cuts;
use crate::request::{Latencies, Seen, gaps};

/// A request as its terms see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judged<'a> {
    pub(super) record: &'a RequestRecord,
    pub(super) latencies: Latencies<'a>,
    pub(super) cuts: &'a Cuts,
    pub(super) prompt_tokens: u32,
    /// The part of the window that it was due in.
    pub(super) batch: usize,
    /// Its fluidity index.
    pub(super) index: Option<f64>,
}

impl Judged<'_> {
    fn value(&self, metric: SloMetric) -> Seen {
        match metric {
            SloMetric::Request(metric) => self.latencies.get(metric),
            SloMetric::Fluidity => self.index.map_or(Seen::Nothing, Seen::Value),
            SloMetric::Errors | SloMetric::Rps | SloMetric::OutputTps => Seen::Nothing,
        }
    }
}

/// What a pass over the requests finds out about a term.
#[derive(Debug)]
pub(super) struct TermTally {
    pub(super) term: SloTerm,
    /// Requests inside the limit and all that count, by time.
    batches: [(u64, u64); BATCHES],
    /// Good answers, and those of them that it says nothing about.
    whole: u64,
    vacuous: u64,
    /// Values with their batch, for a percentile that the table of metrics does not have.
    values: Vec<(u8, f64)>,
    /// Weights and sums by time, for a mean.
    sums: [(f64, f64); BATCHES],
    /// A value is known only to be larger: there is no mean.
    is_censored: bool,
}

impl TermTally {
    pub(super) fn new(term: SloTerm) -> Self {
        Self {
            term,
            batches: [(0, 0); BATCHES],
            whole: 0,
            vacuous: 0,
            values: Vec::new(),
            sums: [(0.0, 0.0); BATCHES],
            is_censored: false,
        }
    }

    pub(super) fn is_of_percentile(&self) -> bool {
        matches!(self.term.statistic, SloStatistic::Percentile(_))
    }

    /// Keeps what a statistic needs. What a stall spoilt has no value.
    pub(super) fn gather(&mut self, judged: &Judged<'_>) {
        let SloTerm { metric, statistic, limit, .. } = self.term;
        let allowed = limit.per_token * f64::from(judged.prompt_tokens);
        match statistic {
            SloStatistic::Plain => {}
            SloStatistic::Percentile(_) if is_in_table(metric, limit) => {}
            SloStatistic::Percentile(_) => {
                let batch = u8::try_from(judged.batch).unwrap_or_default();
                match judged.value(metric) {
                    Seen::Value(value) => self.values.push((batch, value - allowed)),
                    Seen::Beyond => self.values.push((batch, f64::INFINITY)),
                    Seen::Nothing => {}
                }
            }
            SloStatistic::Mean if metric == SloMetric::Request(MetricName::Itl) => {
                for (gap, _) in gaps(judged.record, judged.cuts) {
                    self.add_to_mean(judged.batch, gap.as_ms());
                }
            }
            SloStatistic::Mean => match judged.value(metric) {
                Seen::Value(value) => self.add_to_mean(judged.batch, value - allowed),
                Seen::Beyond => self.is_censored = true,
                Seen::Nothing => {}
            },
        }
    }

    fn add_to_mean(&mut self, batch: usize, value: f64) {
        if let Some(place) = self.sums.get_mut(batch) {
            place.0 += 1.0;
            place.1 += value;
        }
    }

    /// Counts a request, and says whether it is inside the limit. Where the term says nothing about
    /// an answer that ended well, it is.
    pub(super) fn judge(&mut self, judged: &Judged<'_>, is_whole: bool) -> bool {
        self.whole += u64::from(is_whole);
        let is_kept = is_whole
            && match judged.value(self.term.metric) {
                Seen::Value(value) => self.term.holds(value, judged.prompt_tokens),
                Seen::Beyond => false,
                Seen::Nothing => {
                    self.vacuous += 1;
                    true
                }
            };
        if let Some(place) = self.batches.get_mut(judged.batch) {
            place.0 += u64::from(is_kept);
            place.1 += 1;
        }
        is_kept
    }

    pub(super) fn finish(mut self, run: &RunFigures<'_>) -> SloTermSummary {
        let SloTerm { metric, statistic, limit, .. } = self.term;
        let has_share = !metric.is_of_run() && statistic != SloStatistic::Mean;
        let share =
            if has_share { attainment_interval(&self.batches) } else { Estimate::default() };
        let (kind, figure) = match statistic {
            _ if metric.is_of_run() => ("run", of_run(metric, run)),
            SloStatistic::Plain => ("request", Estimate::default()),
            SloStatistic::Mean if self.is_censored => ("mean", Estimate::default()),
            SloStatistic::Mean => ("mean", mean_interval(&self.sums)),
            SloStatistic::Percentile(percent) if is_in_table(metric, limit) => {
                ("percentile", from_table(metric, percent, run))
            }
            SloStatistic::Percentile(percent) => {
                ("percentile", percentile_interval(&mut self.values, percent))
            }
        };
        let state = self.state(kind, figure);
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        SloTermSummary {
            term: self.term.to_string(),
            kind: kind.to_owned(),
            unit: metric.unit().to_owned(),
            limit: limit.base,
            attainment: share.value,
            attainment_low: share.low,
            attainment_high: share.high,
            value: finite(figure.value),
            low: finite(figure.low),
            high: finite(figure.high),
            state,
            vacuous: if metric.is_of_run() { 0 } else { self.vacuous },
        }
    }

    /// A figure of the run as it is; a statistic when its whole interval lies on one side.
    fn state(&self, kind: &str, figure: Estimate) -> SloState {
        let SloTerm { relation, limit, .. } = self.term;
        let (best, worst) = match kind {
            // It would be kept by every answer, and say nothing about any.
            "request" if self.whole > 0 && self.vacuous == self.whole => {
                return SloState::Undecided;
            }
            "request" => return SloState::Reported,
            "run" => (figure.value, figure.value),
            _ if relation.is_floor() => (figure.high, figure.low),
            _ => (figure.low, figure.high),
        };
        if worst.is_some_and(|end| relation.holds(end, limit.base)) {
            SloState::Met
        } else if best.is_some_and(|end| !relation.holds(end, limit.base)) {
            SloState::Missed
        } else {
            SloState::Undecided
        }
    }
}

fn of_run(metric: SloMetric, run: &RunFigures<'_>) -> Estimate {
    let value = match metric {
        SloMetric::Errors => failed_share(run.requests).map(|share| share * 100.0),
        SloMetric::Rps => run.throughput.requests_per_s,
        SloMetric::OutputTps => run.throughput.output_tokens_per_s,
        SloMetric::Request(_) | SloMetric::Fluidity => None,
    };
    Estimate { value, ..Estimate::default() }
}

/// The percentile as the table of metrics has it, with its interval.
fn from_table(metric: SloMetric, percent: f64, run: &RunFigures<'_>) -> Estimate {
    let metric = run.metrics.get(metric.name());
    let found = metric.and_then(|metric| metric.percentiles.get(&percent.to_string()));
    found.map_or_else(Estimate::default, |found| Estimate {
        value: found.value,
        low: found.low,
        high: found.high,
        n_eff: None,
    })
}
