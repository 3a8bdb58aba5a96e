//! What users were promised, and what they got: attainment, goodput, and each term of the SLO.
//!
//! A request is good when it completed, came whole, and met every per-request term. All
//! other requests that were due are misses, however they went wrong; only those that a stall of the
//! client spoiled count neither way.

mod fit;
mod fluidity;
mod interval;
mod judge;
mod term;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use goodput_model::{MetricName, Plan, RequestRecord, Slo, SloLimit, SloMetric, SloTerm};

use crate::cuts::Cuts;
use crate::estimate::Memory;
use crate::request::LatencyValue;
use crate::summary::{
    Metric, RunFacts, SloMisses, SloState, SloSummary, SloTermSummary, Throughput,
};
use crate::window::Window;
use fit::FitTally;
use fluidity::FluidityTally;
use interval::{IntervalEstimate, ShareTally};
pub(crate) use judge::{Judge, is_whole};
use judge::{JudgedBy, RequestEnding};
use term::TermTally;

/// Everything that a pass over the measured requests adds up about the SLO.
#[derive(Debug)]
pub(crate) struct SloTally {
    slo: Slo,
    target: Option<f64>,
    window: Window,
    judge: Judge,
    terms: Vec<TermTally>,
    scheduled: u64,
    undetermined: u64,
    misses: SloMisses,
    /// Good ones among all that count.
    good: ShareTally,
    /// Those that did not fail.
    answered: ShareTally,
    /// Output tokens of good ones.
    output_tokens: u64,
    fluidity: Option<FluidityTally>,
    fit: FitTally,
}

/// The figures of the run that terms are about.
#[derive(Debug)]
pub(crate) struct RunFigures<'a> {
    pub(crate) metrics: &'a BTreeMap<String, Metric>,
    /// Share of requests that failed by themselves; none without any.
    pub(crate) failed_share: Option<f64>,
    pub(crate) throughput: Throughput,
    /// From where to where completions and output tokens per second may lie.
    pub(crate) throughput_ends: [Option<(f64, f64)>; 2],
    /// How much requests remember of each other, by metric.
    pub(crate) memories: &'a BTreeMap<&'static str, Memory>,
    /// Rate of the scheduled instants; none if all are due at once.
    pub(crate) scheduled_rps: Option<f64>,
    pub(crate) max_gap_p99_ms: Option<f64>,
}

impl SloTally {
    /// None if nothing was promised.
    pub(crate) fn new(plan: &Plan, window: Window, run: &RunFacts) -> Option<Self> {
        let slo = plan.measure.slo.clone()?;
        let judge = Judge::new(plan)?.after_giving_up(run.gave_up());
        Some(Self {
            // A plan file may hold anything.
            target: plan.measure.attainment.filter(|share| (0.0..=1.0).contains(share)),
            window,
            terms: slo.terms.iter().copied().map(TermTally::new).collect(),
            scheduled: 0,
            undetermined: 0,
            misses: SloMisses::default(),
            good: ShareTally::default(),
            answered: ShareTally::default(),
            output_tokens: 0,
            fluidity: judge.token_limit_ms.map(FluidityTally::new),
            fit: FitTally::default(),
            judge,
            slo,
        })
    }

    /// Takes a measured request.
    pub(crate) fn add(&mut self, record: &RequestRecord, cuts: &Cuts) {
        let slice = self.window.slice_of(record.scheduled);
        let judged = self.judge.look_at_all(record, cuts);
        let ttft = judged.latencies.get(MetricName::Ttft);
        if let (RequestEnding::Whole, LatencyValue::Value(ttft)) = (judged.ending, ttft) {
            self.fit.add(judged.prompt_tokens, ttft);
        }
        self.terms.iter_mut().for_each(|term| term.add(&judged, slice));
        self.scheduled += 1;
        let is_given_up = matches!(judged.ending, RequestEnding::GivenUp(_));
        self.answered.add(slice, record.is_ok() || is_given_up, false);
        let Some(is_good) = self.judge.judge_request(&judged) else {
            self.undetermined += 1;
            if judged.is_spoiled {
                self.good.add_spoiled();
            }
            return;
        };
        if let Some((tally, index)) = self.fluidity.as_mut().zip(judged.index) {
            tally.add(judged.pacing.as_ref(), index);
        }
        match judged.ending {
            RequestEnding::Failed => self.misses.failed += 1,
            RequestEnding::TimedOut => self.misses.timed_out += 1,
            RequestEnding::Empty => self.misses.empty += 1,
            RequestEnding::Truncated => self.misses.truncated += 1,
            RequestEnding::Whole | RequestEnding::GivenUp(_) if !is_good => self.misses.limits += 1,
            RequestEnding::GivenUp(_) => {}
            RequestEnding::Whole => {
                let tokens = record.exchange.output_tokens.map_or(0, |count| count.n);
                self.output_tokens += u64::from(tokens);
            }
        }
        self.good.add(slice, is_good, !judged.ending.rests_on_time());
        for term in self.judge.slo_terms() {
            self.good.note_near_limit(judged.nearness(term));
        }
    }

    /// Leaves failures out as often as answers had to be: they leave the misses, too.
    fn leave_out(&mut self) {
        let out = self.good.left_out();
        let SloMisses { failed, empty, .. } = &mut self.misses;
        let of_failed = (out * *failed).checked_div(*failed + *empty).unwrap_or(0);
        *failed -= of_failed;
        *empty -= out - of_failed;
        self.undetermined += out;
    }

    /// The numbers.
    pub(crate) fn finish(mut self, run: &RunFigures<'_>) -> SloSummary {
        self.leave_out();
        let strongest = |sum: Memory, term: &SloTerm| sum.longer_of(run.memory_of(term.metric));
        let memory = self.judge.slo_terms().iter().fold(Memory::none(0), strongest);
        let share = self.good.estimate(memory, self.target);
        let IntervalEstimate { value: attainment, low, high, n_eff } = share;
        let attainment_state = match self.target {
            None => SloState::Reported,
            Some(target) => against_target(target, share),
        };
        let answered = self.answered.estimate(Memory::none(0), None);
        let terms: Vec<SloTermSummary> =
            self.terms.into_iter().map(|term| term.finish(run, answered, self.target)).collect();
        let reached = self.target.and_then(|target| reaches_target(target, attainment));
        let kept: Vec<bool> = terms.iter().filter_map(|term| term.kept).chain(reached).collect();
        let kept = (!kept.is_empty()).then(|| kept.iter().all(|kept| *kept));
        let states: Vec<SloState> =
            terms.iter().map(|term| term.state).chain([attainment_state]).collect();
        let seconds = self.window.seconds();
        let over_all = (seconds > 0.0).then(|| self.scheduled as f64 / seconds);
        let rate = run.scheduled_rps.or(over_all);
        let goodput = |share: Option<f64>| share.zip(rate).map(|(share, rate)| share * rate);
        let (good, counted) = (self.good.kept_count(), self.good.total_count());
        let tokens_each = (counted > 0).then(|| self.output_tokens as f64 / counted as f64);
        SloSummary {
            slo: self.slo.to_string(),
            state: SloState::worst(&states),
            kept,
            target: self.target,
            attainment_state,
            judged_by: match self.judge.by {
                JudgedBy::RequestTerms => "request_terms",
                JudgedBy::PercentileLimits => "percentile_limits",
                JudgedBy::Success => "success",
            }
            .to_owned(),
            scheduled: self.scheduled,
            good,
            misses: self.misses,
            undetermined: self.undetermined,
            attainment,
            attainment_low: low,
            attainment_high: high,
            n_eff,
            goodput_rps: goodput(attainment),
            goodput_rps_low: goodput(low),
            goodput_rps_high: goodput(high),
            goodput_output_tps: goodput(tokens_each),
            failed_share: run.failed_share,
            max_gap_p99_ms: run.max_gap_p99_ms,
            fluidity: self.fluidity.and_then(FluidityTally::finish),
            ttft_fit: self.fit.finish(),
            terms,
        }
    }
}

/// Whether a share as measured is large enough; none without one. What rounding leaves just below is
/// not below.
fn reaches_target(target: f64, share: Option<f64>) -> Option<bool> {
    share.map(|share| share >= target - 1e-9)
}

/// Whether this many were good. All of them cannot be proven by a sample: that is judged as it is.
fn against_target(target: f64, share: IntervalEstimate) -> SloState {
    // A share that rounding leaves just below is not below.
    let is_below = |end: Option<f64>| end.map(|end| end < target - 1e-9);
    match share.value {
        Some(1.0..) if target >= 1.0 => SloState::Met,
        Some(_) if target >= 1.0 || is_below(share.high) == Some(true) => SloState::Missed,
        Some(_) if is_below(share.low) == Some(false) => SloState::Met,
        _ => SloState::Undecided,
    }
}

impl RunFigures<'_> {
    /// How much requests remember of each other, by what a term is about.
    fn memory_of(&self, metric: SloMetric) -> Memory {
        let get = |name: &str| self.memories.get(name).copied().unwrap_or(Memory::none(0));
        match metric {
            SloMetric::Request(metric) => get(metric.name()),
            // Its deadlines are for the first token and for those after it.
            SloMetric::Fluidity => {
                get(MetricName::Ttft.name()).longer_of(get(MetricName::Tpot.name()))
            }
            SloMetric::Errors | SloMetric::Rps | SloMetric::OutputTps => Memory::none(0),
        }
    }
}

/// Whether a term is judged by the table of metrics rather than by values kept for it.
fn is_in_table(metric: SloMetric, limit: SloLimit) -> bool {
    matches!(metric, SloMetric::Request(_)) && !limit.is_linear()
}
