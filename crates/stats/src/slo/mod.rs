//! What users were promised, and what they got: attainment, goodput, and each term of the SLO.
//!
//! A request is good when it ended well, came whole, and kept every term about single requests. All
//! other requests that were due are misses, however they went wrong (METHOD 3.3); only those that a
//! stall of the client spoilt count neither way.

mod fit;
mod fluidity;
mod interval;
mod summary;
mod term;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use goodput_model::{
    ErrorClass, MetricName, Nanos, Plan, RequestRecord, Slo, SloLimit, SloMetric, SloStatistic,
    TokenSource,
};

use crate::cuts::Cuts;
use crate::flow::input_tokens;
use crate::request::{Latencies, Seen};
use crate::summary::{Metric, Requests, Throughput};
use crate::window::Window;
use fit::FitTally;
use fluidity::FluidityTally;
use interval::{BATCHES, Estimate, attainment_interval};
pub use summary::{FluiditySummary, SloMisses, SloState, SloSummary, SloTermSummary, TtftFit};
use term::{Judged, TermTally};

/// Everything that a pass over the measured requests adds up about the SLO.
#[derive(Debug)]
pub(crate) struct SloTally {
    slo: Slo,
    target: Option<f64>,
    window: Window,
    stream: bool,
    terms: Vec<TermTally>,
    judged_by: JudgedBy,
    scheduled: u64,
    undetermined: u64,
    misses: SloMisses,
    /// Good ones and all that count, by time.
    batches: [(u64, u64); BATCHES],
    /// Output tokens of good ones.
    output_tokens: u64,
    ttft_limit: Option<SloLimit>,
    fluidity: Option<FluidityTally>,
    fit: FitTally,
}

/// What a good request has to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JudgedBy {
    RequestTerms,
    PercentileLimits,
    Success,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Whole,
    Failed,
    TimedOut,
    Empty,
    Truncated,
}

/// The figures of the run that terms are about.
#[derive(Debug)]
pub(crate) struct RunFigures<'a> {
    pub(crate) metrics: &'a BTreeMap<String, Metric>,
    pub(crate) requests: &'a Requests,
    pub(crate) throughput: Throughput,
    /// Rate of the due instants; none where all are due at once.
    pub(crate) scheduled_rps: Option<f64>,
}

impl SloTally {
    /// None where nothing was promised.
    pub(crate) fn new(plan: &Plan, window: Window) -> Option<Self> {
        let slo = plan.measure.slo.clone()?;
        let stream = plan.target.stream;
        let each = slo.token_limit_ms().filter(|_| stream);
        let has = |statistic: fn(&SloStatistic) -> bool| {
            slo.terms.iter().any(|term| !term.metric.is_of_run() && statistic(&term.statistic))
        };
        let judged_by = if has(|statistic| matches!(statistic, SloStatistic::Plain)) {
            JudgedBy::RequestTerms
        } else if has(|statistic| matches!(statistic, SloStatistic::Percentile(_))) {
            JudgedBy::PercentileLimits
        } else {
            JudgedBy::Success
        };
        Some(Self {
            // A plan file may hold anything.
            target: plan.measure.attainment.filter(|share| (0.0..=1.0).contains(share)),
            window,
            stream,
            terms: slo.terms.iter().copied().map(TermTally::new).collect(),
            judged_by,
            scheduled: 0,
            undetermined: 0,
            misses: SloMisses::default(),
            batches: [(0, 0); BATCHES],
            output_tokens: 0,
            ttft_limit: slo.limit(MetricName::Ttft),
            fluidity: each.map(FluidityTally::new),
            fit: FitTally::default(),
            slo,
        })
    }

    /// Takes a measured request.
    pub(crate) fn add(&mut self, record: &RequestRecord, cuts: &Cuts) {
        let batch = self.batch(record.scheduled);
        let ending = Ending::of(record);
        let latencies = Latencies::of(record, self.stream, cuts);
        let prompt_tokens = input_tokens(record).n;
        // What failed by itself did so whatever the client was doing.
        let rests_on_time = !matches!(ending, Ending::Failed | Ending::Empty);
        let is_spoilt = rests_on_time && cuts.touches(record);
        let index = if is_spoilt { None } else { self.index(record, ending, latencies) };
        if let (Ending::Whole, Seen::Value(ttft)) = (ending, latencies.get(MetricName::Ttft)) {
            self.fit.add(prompt_tokens, ttft);
        }
        let judged = Judged { record, latencies, cuts, prompt_tokens, batch, index };
        let mut is_inside = true;
        for term in &mut self.terms {
            term.gather(&judged);
            if is_spoilt {
                continue;
            }
            let is_kept = term.judge(&judged, ending == Ending::Whole);
            let counts = match self.judged_by {
                JudgedBy::RequestTerms => term.term.is_of_each_request(),
                JudgedBy::PercentileLimits => term.is_of_percentile(),
                JudgedBy::Success => false,
            };
            is_inside &= is_kept || !counts;
        }
        self.scheduled += 1;
        if is_spoilt {
            self.undetermined += 1;
            return;
        }
        match ending {
            Ending::Failed => self.misses.failed += 1,
            Ending::TimedOut => self.misses.timed_out += 1,
            Ending::Empty => self.misses.empty += 1,
            Ending::Truncated => self.misses.truncated += 1,
            Ending::Whole if !is_inside => self.misses.limits += 1,
            Ending::Whole => {
                let tokens = record.exchange.output_tokens.map_or(0, |count| count.n);
                self.output_tokens += u64::from(tokens);
            }
        }
        if let Some(place) = self.batches.get_mut(batch) {
            place.0 += u64::from(ending == Ending::Whole && is_inside);
            place.1 += 1;
        }
    }

    /// Which of the equal parts of the window a request was due in.
    fn batch(&self, due: Nanos) -> usize {
        let share = (due - self.window.start).as_secs() / self.window.seconds().max(1e-9);
        ((share * BATCHES as f64) as usize).min(BATCHES - 1)
    }

    /// The fluidity index of a request; that of a failure is 0.
    fn index(
        &mut self,
        record: &RequestRecord,
        ending: Ending,
        latencies: Latencies<'_>,
    ) -> Option<f64> {
        let tally = self.fluidity.as_mut()?;
        if !matches!(ending, Ending::Whole | Ending::Truncated) {
            tally.add_failed();
            return Some(0.0);
        }
        let tokens = input_tokens(record).n;
        let first = match (latencies.get(MetricName::Ttft), self.ttft_limit) {
            (Seen::Value(ttft), Some(limit)) => Some((ttft, limit.at(tokens))),
            _ => None,
        };
        tally.add(record, first)
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
        let states: Vec<SloState> =
            terms.iter().map(|term| term.state).chain([attainment_state]).collect();
        let seconds = self.window.seconds();
        let over_all = (seconds > 0.0).then(|| self.scheduled as f64 / seconds);
        let rate = run.scheduled_rps.or(over_all);
        let goodput = |share: Option<f64>| share.zip(rate).map(|(share, rate)| share * rate);
        let good: u64 = self.batches.iter().map(|batch| batch.0).sum();
        let counted: u64 = self.batches.iter().map(|batch| batch.1).sum();
        let tokens_each = (counted > 0).then(|| self.output_tokens as f64 / counted as f64);
        let gaps = run.metrics.get(MetricName::MaxGap.name());
        let gap_p99 = gaps.and_then(|gaps| gaps.percentiles.get("99")?.value);
        SloSummary {
            slo: self.slo.to_string(),
            state: SloState::worst(&states),
            target: self.target,
            attainment_state,
            judged_by: match self.judged_by {
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
            failed_share: failed_share(run.requests),
            max_gap_p99_ms: gap_p99,
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

fn failed_share(requests: &Requests) -> Option<f64> {
    (requests.scheduled > 0).then(|| requests.failed as f64 / requests.scheduled as f64)
}

impl Ending {
    fn of(record: &RequestRecord) -> Self {
        let exchange = &record.exchange;
        match exchange.failure.as_ref().map(|failure| failure.class) {
            Some(class) if class.is_censored() => Self::TimedOut,
            Some(ErrorClass::Empty) => Self::Empty,
            Some(_) => Self::Failed,
            None if is_truncated(record) => Self::Truncated,
            None => Self::Whole,
        }
    }
}

/// An answer that ended at a length which nobody asked for.
fn is_truncated(record: &RequestRecord) -> bool {
    if record.exchange.finish.as_deref() != Some("length") {
        return false;
    }
    let Some(asked) = record.planned.output_tokens else { return true };
    // Only the server's own count can be held against it.
    let is_its_own =
        |source: TokenSource| matches!(source, TokenSource::Usage | TokenSource::Chunks);
    let counted = record.exchange.output_tokens.filter(|count| is_its_own(count.source));
    counted.is_some_and(|count| count.n < asked)
}

/// Whether a term is judged by the table of metrics rather than by values kept for it.
fn is_in_table(metric: SloMetric, limit: SloLimit) -> bool {
    matches!(metric, SloMetric::Request(_)) && !limit.is_linear()
}
