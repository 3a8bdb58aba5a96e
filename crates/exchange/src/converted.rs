//! A request as other tools see it. They start the clock when they let a request go, not when it was
//! due, and each has its own idea of the first and of the last event of an answer.

use goodput_model::{
    Api, MetricName, Mode, Nanos, Phase, Plan, Rate, RequestRecord, Severity, Slo, SloMetric,
    SloStatistic, SloTerm, Verdict,
};
use goodput_stats::{RunState, Summary};

/// The run that is written in another shape.
#[derive(Debug, Clone, Copy)]
pub struct ConvertedRun<'a> {
    /// What was asked.
    pub plan: &'a Plan,
    /// Its summary.
    pub summary: &'a Summary,
}

/// Whose eyes are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Vllm,
    Sglang,
    Aiperf,
}

/// The times of one request by another tool's definitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RequestTimes {
    /// When the tool's clock started.
    pub(crate) start: Nanos,
    /// To the first event that it counts as a token; none if the answer was not streamed, or
    /// nothing came.
    pub(crate) ttft: Option<Nanos>,
    /// To the event that it counts as the end.
    pub(crate) latency: Nanos,
    /// The first event, where it is none of the chunks: the role alone.
    role: Option<Nanos>,
}

impl RequestTimes {
    /// Opening a connection is inside the time of all of them.
    pub(crate) fn from_record(record: &RequestRecord, view: View, run: &ConvertedRun<'_>) -> Self {
        let stamps = &record.exchange.stamps;
        let start = stamps.dispatched;
        let is_chat = run.plan.target.api == Api::Chat;
        let stream = run.plan.target.stream;
        let first = match view {
            // Its chat client takes the first event with `choices`, which is the role alone.
            View::Vllm if is_chat => stamps.first_byte.or(stamps.first_token),
            View::Vllm | View::Sglang | View::Aiperf => stamps.first_token,
        };
        let last = match view {
            // The event with the usage ends the clock too.
            View::Vllm if is_chat => stamps.done.or(stamps.last_token),
            View::Sglang => stamps.done.or(stamps.last_token),
            View::Vllm | View::Aiperf => stamps.last_token,
        };
        let latency = last.unwrap_or(stamps.ended) - start;
        let ttft = match view {
            _ if stream => first.map(|first| first - start),
            // What is not streamed has its first token with its last.
            View::Sglang => Some(latency),
            View::Vllm | View::Aiperf => None,
        };
        let role = first.filter(|first| stamps.first_token.is_some_and(|token| *first < token));
        Self { start, ttft, latency, role: role.filter(|_| stream) }
    }

    /// Gaps between the events of an answer in microseconds, the wait for the first left out. Events
    /// of several answers are one stream to these tools.
    pub(crate) fn gaps(self, record: &RequestRecord) -> impl Iterator<Item = u64> + '_ {
        let mut before = self.role;
        record.exchange.chunks.iter().filter_map(move |chunk| {
            let gap = before.map(|before| (chunk.at - before).as_micros_rounded());
            before = Some(chunk.at);
            gap
        })
    }
}

/// Prompt tokens by the server's word, else by plan.
pub(crate) fn input_tokens(record: &RequestRecord) -> u32 {
    record.exchange.input_tokens.map_or(record.planned.input_tokens, |count| count.n)
}

/// Output tokens; one for each chunk where they were not counted.
pub(crate) fn output_tokens(record: &RequestRecord) -> u32 {
    let chunks = || u32::try_from(record.exchange.chunks.len()).unwrap_or(u32::MAX);
    record.exchange.output_tokens.map_or_else(chunks, |count| count.n)
}

/// Whether it is part of what another tool would have sent: they keep warm-up out, and have no
/// cooldown.
pub(crate) fn is_counted(record: &RequestRecord) -> bool {
    record.phase == Phase::Measured
}

/// Limits on single requests in milliseconds, as other tools know them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct RequestLimits {
    pub(crate) ttft: Option<f64>,
    pub(crate) tpot: Option<f64>,
    pub(crate) e2e: Option<f64>,
}

impl RequestLimits {
    /// Of an SLO; none if its terms about requests say more than these tools can.
    pub(crate) fn from_slo(slo: &Slo) -> Option<Self> {
        let is_of_each = |term: &&SloTerm| term.is_per_request();
        let is_percentile = |term: &&SloTerm| {
            !term.metric.is_run_wide() && matches!(term.statistic, SloStatistic::Percentile(_))
        };
        let each: Vec<&SloTerm> = slo.terms.iter().filter(is_of_each).collect();
        let percentiles = || slo.terms.iter().filter(is_percentile).collect();
        let terms: Vec<&SloTerm> = if each.is_empty() { percentiles() } else { each };
        let mut limits = Self::default();
        for term in &terms {
            let place = match term.metric {
                SloMetric::Request(MetricName::Ttft) => &mut limits.ttft,
                SloMetric::Request(MetricName::Tpot) => &mut limits.tpot,
                SloMetric::Request(MetricName::E2e) => &mut limits.e2e,
                _ => return None,
            };
            if term.limit.is_linear() || term.relation.is_floor() {
                return None;
            }
            // Several percentiles of one metric: the strictest holds for all.
            let limit = term.limit.base;
            *place = Some(place.map_or(limit, |known: f64| known.min(limit)));
        }
        (!terms.is_empty()).then_some(limits)
    }
}

/// The load in the words of tools that know a rate and a cap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoadWords {
    pub(crate) rate: RateWord,
    pub(crate) cap: Option<u32>,
}

/// A rate, in those words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RateWord {
    PerSecond(f64),
    Infinite,
    Trace,
}

impl ConvertedRun<'_> {
    /// The load. A closed loop is everything at once, held to the number of users.
    pub(crate) fn load_words(&self) -> LoadWords {
        let mode = &self.plan.load.mode;
        let mean = self.summary.load.offered_rps.or(self.summary.load.scheduled_rps);
        let rate = match mode {
            Mode::Open { rate: Rate::PerSecond(rate), .. } => RateWord::PerSecond(*rate),
            Mode::Shaped { .. } => mean.map_or(RateWord::Infinite, RateWord::PerSecond),
            Mode::Replay { .. } => RateWord::Trace,
            Mode::Open { .. } | Mode::Closed { .. } => RateWord::Infinite,
        };
        let cap = match mode {
            Mode::Closed { concurrency, .. } => Some(*concurrency),
            _ => mode.most_in_flight(),
        };
        LoadWords { rate, cap }
    }

    /// Limits that another tool could have been given.
    pub(crate) fn request_limits(&self) -> Option<RequestLimits> {
        self.plan.measure.slo.as_ref().and_then(RequestLimits::from_slo)
    }

    /// What speaks against every figure of the run, whatever its shape.
    pub fn warnings(&self) -> Vec<String> {
        let (run, caveats) = (&self.summary.run, &self.summary.caveats);
        let mut warnings = Vec::new();
        if self.summary.verdict == Verdict::Void {
            let first = caveats.iter().find(|caveat| caveat.severity == Severity::Void);
            let why = first.map_or("its numbers must not be used", |first| first.message.as_str());
            warnings.push(format!("the run is void: {why}"));
        }
        // Of a run that was killed the last frame is damaged by nature.
        let whole = "the file holds only the logged requests";
        if run.state == RunState::Unfinished {
            warnings.push(format!("the run was killed: {whole}"));
        } else if run.log_damaged {
            warnings.push(format!("the log is damaged: {whole} before the damage"));
        }
        warnings
    }

    /// What a reader of the other shape should know and cannot see in it.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.plan.measure.slo.is_some() && self.request_limits().is_none() {
            notes.push(
                "the SLO has terms other than limits on TTFT, TPOT, and E2E: the file has no \
                 goodput",
            );
        }
        if matches!(self.plan.load.mode, Mode::Shaped { .. }) {
            notes.push("the rate changed during the run: the file has its mean");
        }
        if self.summary.sessions.is_some() && matches!(self.plan.load.mode, Mode::Open { .. }) {
            notes.push("the rate in the file is the rate of sessions");
        }
        let notes = notes.into_iter().map(str::to_owned);
        self.warnings().into_iter().chain(notes).collect()
    }

    /// Facts for the metadata of files that hold nothing but a table.
    pub(crate) fn metadata(&self, schema: &'static str) -> Vec<(&'static str, String)> {
        let run = &self.summary.run;
        vec![
            ("goodput.schema", schema.to_owned()),
            ("goodput.version", run.version.clone()),
            ("goodput.started", run.started.clone()),
            ("goodput.target", run.target.clone()),
            ("goodput.model", run.model.clone()),
            ("goodput.workload", run.workload.clone()),
            ("goodput.load", self.summary.load.mode.clone()),
            ("goodput.seed", run.seed.to_string()),
            ("goodput.verdict", self.summary.verdict.name().to_owned()),
            ("goodput.slo", self.plan.measure.slo.as_ref().map(Slo::to_string).unwrap_or_default()),
        ]
    }
}
