//! One term of an SLO.

use goodput_model::{SloMetric, SloStatistic, SloTerm};

use super::interval::{IntervalEstimate, ShareTally};
use super::judge::{Judged, RequestEnding};
use super::{RunFigures, against_target, is_in_table, reaches_target};
use crate::request::LatencyValue;
use crate::sample::{Sample, Wanted};
use crate::summary::{Percentile, SloState, SloTermSummary};

/// What a pass over the requests finds out about a term.
#[derive(Debug)]
pub(super) struct TermTally {
    term: SloTerm,
    /// Requests inside the limit.
    inside: ShareTally,
    /// Good answers, and those of them that it says nothing about.
    whole: u64,
    vacuous: u64,
    /// Whether a value lies beyond the time limit.
    is_cut: bool,
    /// For a statistic that the table of metrics does not have.
    values: Sample,
}

impl TermTally {
    pub(super) fn new(term: SloTerm) -> Self {
        Self {
            term,
            inside: ShareTally::default(),
            whole: 0,
            vacuous: 0,
            is_cut: false,
            values: Sample::default(),
        }
    }

    /// Takes a request of this part of the window.
    pub(super) fn add(&mut self, judged: &Judged<'_>, slice: u16) {
        self.add_value(judged, slice);
        self.is_cut |= judged.value_of(self.term.metric) == LatencyValue::Beyond;
        if judged.is_spoiled {
            self.inside.add_spoiled();
            return;
        }
        self.inside.note_near_limit(judged.nearness(&self.term));
        if judged.ending == RequestEnding::Whole {
            self.whole += 1;
            self.vacuous += u64::from(judged.value_of(self.term.metric) == LatencyValue::Nothing);
        }
        let kept = judged.keeps_if_known(&self.term);
        if let Some(kept) = kept {
            self.inside.add(slice, kept, !judged.ending.rests_on_time());
        }
    }

    /// Keeps what a statistic needs. What a stall spoiled has no value.
    fn add_value(&mut self, judged: &Judged<'_>, slice: u16) {
        let SloTerm { metric, statistic, limit, .. } = self.term;
        let allowed = limit.per_token * f64::from(judged.prompt_tokens);
        if statistic == SloStatistic::Plain || is_in_table(metric, limit) {
            return;
        }
        let seen = match judged.value_of(metric) {
            LatencyValue::Value(value) => LatencyValue::Value(value - allowed),
            other => other,
        };
        self.values.push_value(Some(slice), seen);
    }

    /// `answered` is the share of requests that did not fail, `target` the required share of good ones.
    pub(super) fn finish(
        mut self,
        run: &RunFigures<'_>,
        answered: IntervalEstimate,
        target: Option<f64>,
    ) -> SloTermSummary {
        let SloTerm { metric, statistic, limit, .. } = self.term;
        let has_share = !metric.is_run_wide() && statistic != SloStatistic::Mean;
        let needed = match statistic {
            SloStatistic::Percentile(percent) => Some(self.needed_share(percent)),
            SloStatistic::Plain | SloStatistic::Mean => None,
        };
        let share = if has_share {
            self.inside.estimate(run.memory_of(metric), needed)
        } else {
            IntervalEstimate::default()
        };
        let (kind, figure) = match statistic {
            _ if metric.is_run_wide() => ("run", run_figure(metric, run, answered)),
            SloStatistic::Plain => ("request", IntervalEstimate::default()),
            SloStatistic::Mean if is_in_table(metric, limit) => {
                let found = run.metrics.get(metric.name());
                ("mean", found.map_or_else(IntervalEstimate::default, IntervalEstimate::from_mean))
            }
            SloStatistic::Mean => {
                let values = std::mem::take(&mut self.values);
                ("mean", IntervalEstimate::from_mean(&values.into_metric("", Wanted::new(&[]))))
            }
            SloStatistic::Percentile(percent) if is_in_table(metric, limit) => {
                ("percentile", percentile_from_metrics(metric, percent, run))
            }
            SloStatistic::Percentile(percent) => {
                ("percentile", from_percentile(&self.values.estimate(percent)))
            }
        };
        let state = match statistic {
            // Failures are outside the limit, so a percentile of those that ended cannot hide them.
            SloStatistic::Percentile(percent) if !metric.is_run_wide() => {
                against_target(self.needed_share(percent), share)
            }
            _ => self.judge_figure(kind, figure),
        };
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        let alone = target.filter(|_| self.term.is_per_request()).map(|target| {
            let share = self.inside.estimate(run.memory_of(metric), Some(target));
            (against_target(target, share), reaches_target(target, share.value))
        });
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
            kept: self.is_kept(kind, figure, share),
            target_state: alone.map(|(state, _)| state),
            target_kept: alone.and_then(|(_, kept)| kept),
            vacuous: if metric.is_run_wide() { 0 } else { self.vacuous },
        }
    }

    /// Whether the figure as measured keeps the limit. A percentile is judged by the share of requests
    /// inside it, failures among those outside.
    fn is_kept(
        &self,
        kind: &str,
        figure: IntervalEstimate,
        share: IntervalEstimate,
    ) -> Option<bool> {
        let SloTerm { relation, limit, statistic, .. } = self.term;
        match (kind, statistic) {
            ("request", _) => None,
            (_, SloStatistic::Percentile(percent)) => {
                reaches_target(self.needed_share(percent), share.value)
            }
            // A mean of which a part never came is longer than any limit.
            ("mean", _) if self.is_cut => Some(relation.is_floor()),
            _ => figure.value.map(|value| relation.holds(value, limit.base)),
        }
    }

    /// The share of requests that must be inside the limit of a percentile.
    fn needed_share(&self, percent: f64) -> f64 {
        let q = percent / 100.0;
        if self.term.relation.is_floor() { 1.0 - q } else { q }
    }

    /// A statistic is kept or broken when its whole interval lies on one side.
    fn judge_figure(&self, kind: &str, figure: IntervalEstimate) -> SloState {
        let SloTerm { relation, limit, .. } = self.term;
        let (best, worst) = match kind {
            // It would be kept by every answer, and say nothing about any.
            "request" if self.whole > 0 && self.vacuous == self.whole => {
                return SloState::Undecided;
            }
            "request" => return SloState::Reported,
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

fn run_figure(
    metric: SloMetric,
    run: &RunFigures<'_>,
    answered: IntervalEstimate,
) -> IntervalEstimate {
    let [requests, tokens] = run.throughput_ends;
    let throughput = |value: Option<f64>, ends: Option<(f64, f64)>| IntervalEstimate {
        value,
        low: ends.map(|ends| ends.0),
        high: ends.map(|ends| ends.1),
        n_eff: None,
    };
    match metric {
        SloMetric::Errors => {
            let value = run.failed_share.map(|share| share * 100.0);
            IntervalEstimate { value, ..answered.complement_percent() }
        }
        SloMetric::Rps => throughput(run.throughput.requests_per_s, requests),
        SloMetric::OutputTps => throughput(run.throughput.output_tokens_per_s, tokens),
        SloMetric::Request(_) | SloMetric::Fluidity => IntervalEstimate::default(),
    }
}

/// The percentile as the table of metrics has it, with its interval.
fn percentile_from_metrics(
    metric: SloMetric,
    percent: f64,
    run: &RunFigures<'_>,
) -> IntervalEstimate {
    let metric = run.metrics.get(metric.name());
    let found = metric.and_then(|metric| metric.percentiles.get(&percent.to_string()));
    found.map_or_else(IntervalEstimate::default, from_percentile)
}

fn from_percentile(found: &Percentile) -> IntervalEstimate {
    IntervalEstimate { value: found.value, low: found.low, high: found.high, n_eff: found.n_eff }
}
