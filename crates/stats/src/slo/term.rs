//! One term of an SLO.

use goodput_model::{SloMetric, SloStatistic, SloTerm};

use super::interval::{BATCHES, Estimate, attainment_interval};
use super::judge::{Ending, Judged};
use super::summary::{SloState, SloTermSummary};
use super::{RunFigures, is_in_table};
use crate::request::Seen;
use crate::sample::{Sample, Wanted};

/// What a pass over the requests finds out about a term.
#[derive(Debug)]
pub(super) struct TermTally {
    term: SloTerm,
    /// Requests inside the limit and all that count, by time.
    batches: [(u64, u64); BATCHES],
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
            batches: [(0, 0); BATCHES],
            whole: 0,
            vacuous: 0,
            is_cut: false,
            values: Sample::default(),
        }
    }

    /// Takes a request of this part of the window.
    pub(super) fn add(&mut self, judged: &Judged<'_>, batch: u8) {
        self.gather(judged, batch);
        self.is_cut |= judged.value(self.term.metric) == Seen::Beyond;
        if judged.is_spoilt {
            return;
        }
        if judged.ending == Ending::Whole {
            self.whole += 1;
            self.vacuous += u64::from(judged.value(self.term.metric) == Seen::Nothing);
        }
        let kept = judged.kept(&self.term);
        if let Some((place, kept)) = self.batches.get_mut(usize::from(batch)).zip(kept) {
            place.0 += u64::from(kept);
            place.1 += 1;
        }
    }

    /// Keeps what a statistic needs. What a stall spoilt has no value.
    fn gather(&mut self, judged: &Judged<'_>, batch: u8) {
        let SloTerm { metric, statistic, limit, .. } = self.term;
        let allowed = limit.per_token * f64::from(judged.prompt_tokens);
        if statistic == SloStatistic::Plain || is_in_table(metric, limit) {
            return;
        }
        let seen = match judged.value(metric) {
            Seen::Value(value) => Seen::Value(value - allowed),
            other => other,
        };
        self.values.take(Some(batch), seen);
    }

    pub(super) fn finish(mut self, run: &RunFigures<'_>) -> SloTermSummary {
        let SloTerm { metric, statistic, limit, .. } = self.term;
        let has_share = !metric.is_of_run() && statistic != SloStatistic::Mean;
        let share =
            if has_share { attainment_interval(&self.batches) } else { Estimate::default() };
        let (kind, figure) = match statistic {
            _ if metric.is_of_run() => ("run", of_run(metric, run)),
            SloStatistic::Plain => ("request", Estimate::default()),
            SloStatistic::Mean if is_in_table(metric, limit) => {
                let found = run.metrics.get(metric.name());
                ("mean", found.map_or_else(Estimate::default, Estimate::of_mean))
            }
            SloStatistic::Mean => {
                let values = std::mem::take(&mut self.values);
                ("mean", Estimate::of_mean(&values.metric("", Wanted::of(&[]))))
            }
            SloStatistic::Percentile(percent) if is_in_table(metric, limit) => {
                ("percentile", from_table(metric, percent, run))
            }
            SloStatistic::Percentile(percent) => {
                ("percentile", Estimate::from(&self.values.estimate(percent)))
            }
        };
        let state = match statistic {
            SloStatistic::Percentile(percent) => {
                together(self.state(kind, figure), self.by_share(percent, share))
            }
            _ => self.state(kind, figure),
        };
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
            kept: self.kept(kind, figure, share),
            vacuous: if metric.is_of_run() { 0 } else { self.vacuous },
        }
    }

    /// What the share of requests inside the limit says about a percentile. Failures are outside, so
    /// a percentile of those that ended cannot hide them; and a share has an interval where a
    /// percentile has none.
    fn by_share(&self, percent: f64, share: Estimate) -> Option<SloState> {
        let needed = self.needed(percent);
        // A share that rounding leaves just below is not below.
        let is_below = |end: Option<f64>| end.is_some_and(|end| end < needed - 1e-9);
        match () {
            () if is_below(share.high) => Some(SloState::Missed),
            () if is_below(share.value) => Some(SloState::Undecided),
            () if share.low.is_some() && !is_below(share.low) => Some(SloState::Met),
            () => None,
        }
    }

    /// Whether the figure as measured keeps the limit. A percentile is judged by the share of requests
    /// inside it, failures among those outside.
    fn kept(&self, kind: &str, figure: Estimate, share: Estimate) -> Option<bool> {
        let SloTerm { relation, limit, statistic, .. } = self.term;
        match (kind, statistic) {
            ("request", _) => None,
            (_, SloStatistic::Percentile(percent)) => {
                share.value.map(|share| share >= self.needed(percent) - 1e-9)
            }
            // A mean of which a part never came is longer than any limit.
            ("mean", _) if self.is_cut => Some(relation.is_floor()),
            _ => figure.value.map(|value| relation.holds(value, limit.base)),
        }
    }

    /// The share of requests that must be inside the limit of a percentile.
    fn needed(&self, percent: f64) -> f64 {
        let q = percent / 100.0;
        if self.term.relation.is_floor() { 1.0 - q } else { q }
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

/// A percentile is kept when neither its interval nor the share of requests inside the limit speaks
/// against it, and one of them speaks for it.
fn together(by_value: SloState, by_share: Option<SloState>) -> SloState {
    match (by_value, by_share) {
        (SloState::Missed, _) | (_, Some(SloState::Missed)) => SloState::Missed,
        (_, Some(SloState::Undecided)) => SloState::Undecided,
        (_, Some(SloState::Met)) => SloState::Met,
        (state, _) => state,
    }
}

fn of_run(metric: SloMetric, run: &RunFigures<'_>) -> Estimate {
    let value = match metric {
        SloMetric::Errors => run.failed_share.map(|share| share * 100.0),
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
    found.map_or_else(Estimate::default, Estimate::from)
}
