//! Whether a request is good.

use goodput_model::{
    ErrorClass, MetricName, Plan, RequestRecord, SloLimit, SloMetric, SloStatistic, SloTerm,
    TokenSource,
};

use super::fluidity::Pacing;
use crate::cuts::Cuts;
use crate::flow::input_tokens;
use crate::request::{Latencies, LatencyValue};

/// What a good request keeps.
#[derive(Debug)]
pub(crate) struct Judge {
    pub(super) by: JudgedBy,
    /// Those that it has to keep.
    terms: Vec<SloTerm>,
    stream: bool,
    ttft_limit: Option<SloLimit>,
    /// Time from one token to the next.
    pub(super) token_limit_ms: Option<f64>,
    /// The run gave up what was in flight: that says nothing about the server.
    gave_up: bool,
}

/// Which terms a good request has to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JudgedBy {
    RequestTerms,
    PercentileLimits,
    Success,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RequestEnding {
    Whole,
    Failed,
    TimedOut,
    Empty,
    Truncated,
    /// By us, after this many milliseconds.
    GivenUp(f64),
}

/// A request as its terms see it.
#[derive(Debug)]
pub(crate) struct Judged<'a> {
    pub(super) latencies: Latencies<'a>,
    pub(super) prompt_tokens: u32,
    pub(super) ending: RequestEnding,
    /// A stall of the client spoiled what it rests on.
    pub(super) is_spoiled: bool,
    /// How its tokens came, where that is asked and there are any.
    pub(super) pacing: Option<Pacing>,
    /// Its fluidity index; that of a failure is 0.
    pub(super) index: Option<f64>,
}

impl Judge {
    /// None if nothing was promised.
    pub(crate) fn new(plan: &Plan) -> Option<Self> {
        let slo = plan.measure.slo.as_ref()?;
        let counts = |by: JudgedBy, term: &SloTerm| match by {
            JudgedBy::RequestTerms => term.is_per_request(),
            JudgedBy::PercentileLimits => {
                !term.metric.is_run_wide() && matches!(term.statistic, SloStatistic::Percentile(_))
            }
            JudgedBy::Success => false,
        };
        let has = |by: &JudgedBy| slo.terms.iter().any(|term| counts(*by, term));
        let ways = [JudgedBy::RequestTerms, JudgedBy::PercentileLimits];
        let by = ways.into_iter().find(has).unwrap_or(JudgedBy::Success);
        let stream = plan.target.stream;
        Some(Self {
            by,
            terms: slo.terms.iter().filter(|term| counts(by, term)).copied().collect(),
            stream,
            ttft_limit: slo.limit_on(MetricName::Ttft),
            token_limit_ms: slo.token_limit_ms().filter(|_| stream),
            gave_up: false,
        })
    }

    /// The same for a run that gave up what was in flight.
    pub(crate) fn after_giving_up(self, gave_up: bool) -> Self {
        Self { gave_up, ..self }
    }

    /// The terms that a good request keeps.
    pub(crate) fn slo_terms(&self) -> &[SloTerm] {
        &self.terms
    }

    /// Whether it judges single requests by limits that were promised for them.
    pub(crate) fn is_per_request(&self) -> bool {
        self.by == JudgedBy::RequestTerms
    }

    /// Whether a measured request is good; none if a stall of the client spoiled it.
    pub(crate) fn is_good(&self, record: &RequestRecord, cuts: &Cuts) -> Option<bool> {
        let has_index = |term: &SloTerm| term.metric == SloMetric::Fluidity;
        let is_paced = self.terms.iter().any(has_index);
        self.judge_request(&if is_paced {
            self.look_at_all(record, cuts)
        } else {
            self.look_at_latencies(record, cuts)
        })
    }

    pub(crate) fn judge_request(&self, judged: &Judged<'_>) -> Option<bool> {
        if judged.is_spoiled {
            return None;
        }
        if matches!(judged.ending, RequestEnding::GivenUp(_)) {
            let known = || self.terms.iter().map(|term| judged.keeps_if_known(term));
            return if known().any(|kept| kept == Some(false)) {
                Some(false)
            } else {
                (!self.terms.is_empty() && known().all(|kept| kept == Some(true))).then_some(true)
            };
        }
        Some(
            judged.ending == RequestEnding::Whole
                && self.terms.iter().all(|term| judged.is_kept(term)),
        )
    }

    /// Without how its tokens came.
    fn look_at_latencies<'a>(&self, record: &'a RequestRecord, cuts: &'a Cuts) -> Judged<'a> {
        let ending = match RequestEnding::from_record(record) {
            RequestEnding::TimedOut if self.gave_up && is_cut_off(record) => {
                RequestEnding::GivenUp((record.end() - record.scheduled).as_ms())
            }
            ending => ending,
        };
        Judged {
            latencies: Latencies::new(record, self.stream, cuts),
            prompt_tokens: input_tokens(record).n,
            ending,
            // How a failure ended rests on no instant that a stall could have moved.
            is_spoiled: ending.rests_on_time() && cuts.affects(record),
            pacing: None,
            index: None,
        }
    }

    pub(crate) fn look_at_all<'a>(&self, record: &'a RequestRecord, cuts: &'a Cuts) -> Judged<'a> {
        let mut judged = self.look_at_latencies(record, cuts);
        let ending = judged.ending;
        if let Some(each) = self.token_limit_ms.filter(|_| !judged.is_spoiled) {
            if matches!(ending, RequestEnding::GivenUp(_)) {
                return judged;
            }
            if matches!(ending, RequestEnding::Whole | RequestEnding::Truncated) {
                let pacing = Pacing::from_record(record, self.first_token_deadline(&judged));
                judged.index = pacing.fluidity_index(each);
                judged.pacing = Some(pacing);
            } else {
                judged.index = Some(0.0);
            }
        }
        judged
    }

    /// The wait for the first token and its deadline.
    fn first_token_deadline(&self, judged: &Judged<'_>) -> Option<(f64, f64)> {
        match (judged.latencies.get(MetricName::Ttft), self.ttft_limit) {
            (LatencyValue::Value(ttft), Some(limit)) => {
                Some((ttft, limit.limit_for(judged.prompt_tokens)))
            }
            _ => None,
        }
    }
}

/// Whether a request completed and came whole, whatever the limits. None if that says nothing: a
/// stall of the client spoiled it, or the run gave it up.
pub(crate) fn is_whole(record: &RequestRecord, cuts: &Cuts, gave_up: bool) -> Option<bool> {
    let ending = RequestEnding::from_record(record);
    let is_given_up = gave_up && ending == RequestEnding::TimedOut && is_cut_off(record);
    let is_unknown = is_given_up || (ending.rests_on_time() && cuts.affects(record));
    (!is_unknown).then_some(ending == RequestEnding::Whole)
}

impl Judged<'_> {
    pub(super) fn value_of(&self, metric: SloMetric) -> LatencyValue {
        match metric {
            SloMetric::Request(metric) => self.latencies.get(metric),
            SloMetric::Fluidity => self.index.map_or(LatencyValue::Nothing, LatencyValue::Value),
            SloMetric::Errors | SloMetric::Rps | SloMetric::OutputTps => LatencyValue::Nothing,
        }
    }

    /// Whether it is inside the limit; none if it was given up before that was known.
    pub(super) fn keeps_if_known(&self, term: &SloTerm) -> Option<bool> {
        let RequestEnding::GivenUp(waited) = self.ending else { return Some(self.is_kept(term)) };
        let is_wait = matches!(
            term.metric,
            SloMetric::Request(MetricName::Ttft | MetricName::Ttfa | MetricName::E2e)
        );
        match self.value_of(term.metric) {
            LatencyValue::Value(value) if is_wait => Some(term.holds(value, self.prompt_tokens)),
            // It had waited too long already.
            LatencyValue::Beyond if is_wait && !term.holds(waited, self.prompt_tokens) => {
                Some(false)
            }
            _ => None,
        }
    }

    /// How near it came to the limit, in proportion to it; 1 where that cannot be said.
    pub(super) fn nearness(&self, term: &SloTerm) -> f64 {
        let limit = term.limit.limit_for(self.prompt_tokens);
        match self.value_of(term.metric) {
            LatencyValue::Value(value) if limit > 0.0 && value > 0.0 => {
                if term.relation.is_floor() { limit / value } else { value / limit }
            }
            LatencyValue::Nothing if self.ending == RequestEnding::Whole => 0.0,
            _ => 1.0,
        }
    }

    /// Whether it is inside the limit. Where the term says nothing about a completed request,
    /// it is.
    pub(crate) fn is_kept(&self, term: &SloTerm) -> bool {
        self.ending == RequestEnding::Whole
            && match self.value_of(term.metric) {
                LatencyValue::Value(value) => term.holds(value, self.prompt_tokens),
                LatencyValue::Beyond | LatencyValue::FailedAfter(_) => false,
                LatencyValue::Nothing => true,
            }
    }
}

impl RequestEnding {
    fn from_record(record: &RequestRecord) -> Self {
        let exchange = &record.exchange;
        match exchange.failure.as_ref().map(|failure| failure.class) {
            Some(class) if class.is_censored() => Self::TimedOut,
            Some(ErrorClass::Empty) => Self::Empty,
            Some(_) => Self::Failed,
            None if is_truncated(record) => Self::Truncated,
            None => Self::Whole,
        }
    }

    /// What failed by itself did so whatever the client was doing.
    pub(super) fn rests_on_time(self) -> bool {
        !matches!(self, Self::Failed | Self::Empty)
    }
}

fn is_cut_off(record: &RequestRecord) -> bool {
    let failure = record.exchange.failure.as_ref();
    failure.is_some_and(|failure| failure.class == ErrorClass::CutOff)
}

/// An answer that ended at a length that was not requested.
fn is_truncated(record: &RequestRecord) -> bool {
    if record.exchange.finish.as_deref() != Some("length") {
        return false;
    }
    let Some(asked) = record.planned.output_tokens else { return true };
    // Only the server's own count can be compared with it.
    let is_its_own =
        |source: TokenSource| matches!(source, TokenSource::Usage | TokenSource::Chunks);
    let counted = record.exchange.output_tokens.filter(|count| is_its_own(count.source));
    counted.is_some_and(|count| count.n < asked)
}
