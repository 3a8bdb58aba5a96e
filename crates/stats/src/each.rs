//! Requests one by one, as the summary counts them: for tables that have a line for each.

use goodput_model::{
    AnswerJudgement, HealthSample as Observed, MetricName, Nanos, Phase, Plan, RequestRecord,
};

use crate::cuts::Cuts;
use crate::request::{Latencies, LatencyValue};
use crate::slo::Judge;
use crate::summary::Summary;
use crate::workload::Judgements;

/// Looks at single requests of a run in the way of its [`Summary`].
#[derive(Debug)]
pub struct Each {
    cuts: Cuts,
    judge: Option<Judge>,
    judgements: Judgements,
    stream: bool,
    /// An automatic warm-up ends here, where it left something out.
    warm_from: Option<Nanos>,
}

/// What the summary takes from one request; times in milliseconds. A time is missing where the
/// request never came that far, ran into a time limit, or was spoiled by a stall of the client.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestFigures {
    /// From the scheduled instant to the first token.
    pub ttft_ms: Option<f64>,
    /// From the scheduled instant to the first token of the answer itself.
    pub ttfa_ms: Option<f64>,
    /// From the first byte sent to the first token.
    pub ttft_sent_ms: Option<f64>,
    /// From the scheduled instant to the last token.
    pub e2e_ms: Option<f64>,
    /// From the first byte sent to the last token.
    pub e2e_sent_ms: Option<f64>,
    /// Time for each output token after the first.
    pub tpot_ms: Option<f64>,
    /// The longest gap between chunks.
    pub max_gap_ms: Option<f64>,
    /// E2E for each output token.
    pub normalized_latency_ms: Option<f64>,
    /// Output tokens per second of E2E.
    pub tokens_per_s: Option<f64>,
    /// It ran into a time limit: its missing times are longer than that.
    pub timed_out: bool,
    /// A stall of the client touched it.
    pub spoiled: bool,
    /// Whether it is good by the run's SLO; none without one, outside the measured part, and where
    /// that cannot be told.
    pub slo_kept: Option<bool>,
}

impl Each {
    /// For the run of this summary, with what was observed during it and found out about its answers.
    pub fn new(
        plan: &Plan,
        summary: &Summary,
        samples: &[Observed],
        judgements: impl IntoIterator<Item = AnswerJudgement>,
    ) -> Self {
        let has_cut = summary.window.cut.as_ref().is_some_and(|cut| cut.cut_s > 0.0);
        Self {
            cuts: Cuts::new(samples),
            judge: Judge::new(plan).map(|judge| judge.after_giving_up(summary.run.gave_up())),
            judgements: Judgements::new(judgements),
            stream: plan.target.stream,
            warm_from: has_cut.then(|| Nanos::from_secs_f64(summary.window.start_s)),
        }
    }

    /// Gives a record what was found out after the run: its phase where an automatic warm-up moved
    /// the window, and our own count of tokens where the server gave none.
    pub fn complete(&self, record: &mut RequestRecord) {
        if self.warm_from.is_some_and(|from| record.scheduled < from) {
            record.phase = Phase::Warmup;
        }
        self.judgements.complete(record);
    }

    /// The figures of a complete record.
    pub fn figures(&self, record: &RequestRecord) -> RequestFigures {
        let latencies = Latencies::new(record, self.stream, &self.cuts);
        let value = |seen: LatencyValue| match seen {
            LatencyValue::Value(value) => Some(value),
            LatencyValue::Beyond | LatencyValue::FailedAfter(_) | LatencyValue::Nothing => None,
        };
        let get = |metric| value(latencies.get(metric));
        let failure = record.exchange.failure.as_ref();
        let timed_out = failure.is_some_and(|failure| failure.class.is_censored());
        let judge = self.judge.as_ref().filter(|_| record.phase == Phase::Measured);
        RequestFigures {
            ttft_ms: get(MetricName::Ttft),
            ttfa_ms: get(MetricName::Ttfa),
            ttft_sent_ms: value(latencies.ttft_sent()),
            e2e_ms: get(MetricName::E2e),
            e2e_sent_ms: value(latencies.e2e_sent()),
            tpot_ms: get(MetricName::Tpot),
            max_gap_ms: get(MetricName::MaxGap),
            normalized_latency_ms: get(MetricName::NormalizedLatency),
            // That of an answer that was given up on is not known, though it ranks as the slowest.
            tokens_per_s: get(MetricName::TokensPerS).filter(|_| !timed_out),
            timed_out,
            spoiled: self.cuts.affects(record),
            slo_kept: judge.and_then(|judge| judge.is_good(record, &self.cuts)),
        }
    }
}
