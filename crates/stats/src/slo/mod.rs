//! What users were promised, and what they got: attainment, goodput, and each term of the SLO.
//!
//! A request is good when it ended well, came whole, and kept every term about single requests. All
//! other requests that were due are misses, however they went wrong (METHOD 3.3); only those that a
//! stall of the client spoilt count neither way.

mod fit;
mod fluidity;
mod interval;
mod judge;
mod summary;
mod term;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use goodput_model::{MetricName, Plan, RequestRecord, Slo, SloLimit, SloMetric};

use crate::cuts::Cuts;
use crate::request::Seen;
use crate::summary::{Metric, RunFacts, Throughput};
use crate::window::Window;
use fit::FitTally;
use fluidity::FluidityTally;
use interval::{BATCHES, Estimate, attainment_interval};
use judge::{Ending, JudgedBy};
pub(crate) use judge::{Judge, is_whole};
pub use summary::{FluiditySummary, SloMisses, SloState, SloSummary, SloTermSummary, TtftFit};
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
    /// Good ones and all that count, by time.
    batches: [(u64, u64); BATCHES],
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
    /// Rate of the due instants; none where all are due at once.
    pub(crate) scheduled_rps: Option<f64>,
    pub(crate) max_gap_p99_ms: Option<f64>,
}

impl SloTally {
    /// None where nothing was promised.
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
            batches: [(0, 0); BATCHES],
            output_tokens: 0,
            fluidity: judge.token_limit_ms.map(FluidityTally::new),
            fit: FitTally::default(),
            judge,
            slo,
        })
    }

    /// Takes a measured request.
    pub(crate) fn add(&mut self, record: &RequestRecord, cuts: &Cuts) {
        let batch = self.window.batch(record.scheduled);
        let judged = self.judge.look(record, cuts);
        let ttft = judged.latencies.get(MetricName::Ttft);
        if let (Ending::Whole, Seen::Value(ttft)) = (judged.ending, ttft) {
            self.fit.add(judged.prompt_tokens, ttft);
        }
        self.terms.iter_mut().for_each(|term| term.add(&judged, batch));
        self.scheduled += 1;
        let Some(is_good) = self.judge.verdict(&judged) else {
            self.undetermined += 1;
            return;
        };
        if let Some((tally, index)) = self.fluidity.as_mut().zip(judged.index) {
            tally.add(judged.pacing.as_ref(), index);
        }
        match judged.ending {
            Ending::Failed => self.misses.failed += 1,
            Ending::TimedOut => self.misses.timed_out += 1,
            Ending::Empty => self.misses.empty += 1,
            Ending::Truncated => self.misses.truncated += 1,
            Ending::Whole | Ending::GivenUp(_) if !is_good => self.misses.limits += 1,
            Ending::GivenUp(_) => {}
            Ending::Whole => {
                let tokens = record.exchange.output_tokens.map_or(0, |count| count.n);
                self.output_tokens += u64::from(tokens);
            }
        }
        if let Some(place) = self.batches.get_mut(usize::from(batch)) {
            place.0 += u64::from(is_good);
            place.1 += 1;
        }
    }

    /// The numbers.
    pub(crate) fn finish(self, run: &RunFigures<'_>) -> SloSummary {
        let Estimate { value: attainment, low, high, n_eff } = attainment_interval(&self.batches);
        let attainment_state = match self.target {
            None => SloState::Reported,
            Some(target) => against_target(target, attainment, low.zip(high)),
        };
        let terms: Vec<SloTermSummary> =
            self.terms.into_iter().map(|term| term.finish(run)).collect();
        let reached = self.target.zip(attainment).map(|(target, share)| share >= target - 1e-9);
        let kept: Vec<bool> = terms.iter().filter_map(|term| term.kept).chain(reached).collect();
        let kept = (!kept.is_empty()).then(|| kept.iter().all(|kept| *kept));
        let states: Vec<SloState> =
            terms.iter().map(|term| term.state).chain([attainment_state]).collect();
        let seconds = self.window.seconds();
        let over_all = (seconds > 0.0).then(|| self.scheduled as f64 / seconds);
        let rate = run.scheduled_rps.or(over_all);
        let goodput = |share: Option<f64>| share.zip(rate).map(|(share, rate)| share * rate);
        let good: u64 = self.batches.iter().map(|batch| batch.0).sum();
        let counted: u64 = self.batches.iter().map(|batch| batch.1).sum();
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

/// Whether so many were good. All of them cannot be proven by a sample: that is judged as it is.
fn against_target(target: f64, share: Option<f64>, ends: Option<(f64, f64)>) -> SloState {
    match (share, ends) {
        (Some(1.0), _) if target >= 1.0 => SloState::Met,
        (Some(_), Some((low, _))) if low >= target => SloState::Met,
        (Some(_), Some((_, high))) if high < target => SloState::Missed,
        (Some(share), _) if target >= 1.0 && share < 1.0 => SloState::Missed,
        _ => SloState::Undecided,
    }
}

/// Whether a term is judged by the table of metrics rather than by values kept for it.
fn is_in_table(metric: SloMetric, limit: SloLimit) -> bool {
    matches!(metric, SloMetric::Request(_)) && !limit.is_linear()
}
