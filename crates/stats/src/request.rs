//! The latencies of one request, each with what is known about it.

use goodput_model::{ErrorClass, MetricName, Nanos, RequestRecord, TokenSource};

use crate::cuts::Cuts;

/// What a request says about a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LatencyValue {
    /// This value.
    Value(f64),
    /// It ran into a time limit: longer than that, however long.
    Beyond,
    /// It failed after this many milliseconds, and would have taken longer.
    FailedAfter(f64),
    /// Nothing: the request failed before, the metric is not defined for it, or a stall of the
    /// client spoiled it.
    Nothing,
}

/// One request, ready to be asked for its latencies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Latencies<'a> {
    record: &'a RequestRecord,
    cuts: &'a Cuts,
    stream: bool,
    /// It was given up at a time limit.
    is_censored: bool,
    /// It failed in another way, and has no latency.
    is_failed: bool,
}

impl<'a> Latencies<'a> {
    pub(crate) fn new(record: &'a RequestRecord, stream: bool, cuts: &'a Cuts) -> Self {
        let failure = record.exchange.failure.as_ref();
        let is_censored = failure.is_some_and(|failure| failure.class.is_censored());
        Self { record, cuts, stream, is_censored, is_failed: failure.is_some() && !is_censored }
    }

    /// One value per request: of gaps, the largest.
    pub(crate) fn get(&self, metric: MetricName) -> LatencyValue {
        let stamps = &self.record.exchange.stamps;
        let is_of_streams = matches!(
            metric,
            MetricName::Ttft
                | MetricName::Ttfa
                | MetricName::Tpot
                | MetricName::Itl
                | MetricName::MaxGap
        );
        if is_of_streams && !self.stream {
            return LatencyValue::Nothing;
        }
        if self.is_failed {
            return match metric {
                MetricName::Ttft if stamps.first_token.is_none() => self.time_to_failure(),
                MetricName::Ttfa if stamps.first_answer.is_none() => self.time_to_failure(),
                MetricName::E2e => self.time_to_failure(),
                _ => LatencyValue::Nothing,
            };
        }
        match metric {
            MetricName::Ttft => self.since_due(stamps.first_token),
            MetricName::Ttfa => self.since_due(stamps.first_answer),
            MetricName::E2e => self.since_due(stamps.last_token.filter(|_| !self.is_censored)),
            MetricName::Tpot => self.pace_figure(|pace| pace.tpot_ms),
            MetricName::NormalizedLatency => self.pace_figure(|pace| pace.normalized_ms),
            // An answer that was given up on is the slowest, not the fastest.
            MetricName::TokensPerS => match self.pace_figure(|pace| pace.tokens_per_s) {
                LatencyValue::Beyond => LatencyValue::Value(0.0),
                seen => seen,
            },
            MetricName::Itl | MetricName::MaxGap => self.max_gap(),
        }
    }

    /// From the first byte sent.
    pub(crate) fn ttft_sent(&self) -> LatencyValue {
        let first = self.record.exchange.stamps.first_token;
        if self.stream { self.since_sent(first) } else { LatencyValue::Nothing }
    }

    /// From the first byte sent.
    pub(crate) fn e2e_sent(&self) -> LatencyValue {
        let last = self.record.exchange.stamps.last_token;
        self.since_sent(last.filter(|_| !self.is_censored))
    }

    /// Whether it has any latency at all.
    pub(crate) fn has_any(&self) -> bool {
        !self.is_failed
    }

    /// How long it took to fail, since it was due.
    fn time_to_failure(&self) -> LatencyValue {
        let (start, end) = (self.record.scheduled, self.record.end());
        let class = self.record.exchange.failure.as_ref().map(|failure| &failure.class);
        // What this client could not send says nothing about the server.
        let is_ours = class == Some(&ErrorClass::LocalLimit);
        let is_spoiled = self.is_doubtful(start) || self.is_doubtful(end);
        if is_ours || is_spoiled {
            LatencyValue::Nothing
        } else {
            LatencyValue::FailedAfter((end - start).as_ms())
        }
    }

    fn is_doubtful(&self, at: Nanos) -> bool {
        self.cuts.is_doubtful(self.record, at)
    }

    fn since_due(&self, end: Option<Nanos>) -> LatencyValue {
        self.between(Some(self.record.scheduled), end)
    }

    fn since_sent(&self, end: Option<Nanos>) -> LatencyValue {
        self.between(self.record.exchange.stamps.sent_first, end)
    }

    fn between(&self, start: Option<Nanos>, end: Option<Nanos>) -> LatencyValue {
        let is_spoiled = [start, end].into_iter().flatten().any(|at| self.is_doubtful(at));
        match (start, end) {
            _ if self.is_failed || is_spoiled => LatencyValue::Nothing,
            (Some(start), Some(end)) => LatencyValue::Value((end - start).as_ms()),
            // Without an end in time: longer than the limit.
            _ if self.is_censored => LatencyValue::Beyond,
            _ => LatencyValue::Nothing,
        }
    }

    fn pace_figure(&self, get: impl Fn(Pace) -> Option<f64>) -> LatencyValue {
        let stamps = &self.record.exchange.stamps;
        let ends = [Some(self.record.scheduled), stamps.first_token, stamps.last_token];
        if ends.into_iter().flatten().any(|at| self.is_doubtful(at)) {
            return LatencyValue::Nothing;
        }
        if self.is_censored {
            // It had begun and was given up on: slower than any that ended.
            return if stamps.first_token.is_some() {
                LatencyValue::Beyond
            } else {
                LatencyValue::Nothing
            };
        }
        Pace::from_record(self.record)
            .and_then(get)
            .map_or(LatencyValue::Nothing, LatencyValue::Value)
    }

    /// An abandoned answer ended inside an interval whose end is unknown.
    fn max_gap(&self) -> LatencyValue {
        let chunks = &self.record.exchange.chunks;
        if self.is_censored {
            return if chunks.is_empty() { LatencyValue::Nothing } else { LatencyValue::Beyond };
        }
        let largest = token_gaps(self.record, self.cuts).map(|(gap, _)| gap).max();
        largest.map_or(LatencyValue::Nothing, |gap| {
            LatencyValue::Value(gap.as_micros_rounded() as f64 / 1e3)
        })
    }
}

/// Servers count the end-of-text token in their usage though no chunk carries it: seen when every
/// chunk holds one token and the count is one more. It took no time between first and last token.
fn hidden_end_tokens(record: &RequestRecord) -> f64 {
    let exchange = &record.exchange;
    let is_stop = exchange.finish.as_deref() == Some("stop");
    // A tokenizer of ours counts text, and so no token without any.
    let counted = exchange.output_tokens.filter(|count| count.source != TokenSource::Tokenizer);
    let tokens = counted.map_or(0, |count| count.n as usize);
    if is_stop && tokens == exchange.chunks.len() + 1 { 1.0 } else { 0.0 }
}

/// How many answers a request asked for, as far as its chunks show it.
pub(crate) fn answer_count(record: &RequestRecord) -> u32 {
    let chunks = record.exchange.chunks.iter();
    chunks.map(|chunk| chunk.choice.saturating_add(1)).max().unwrap_or(1)
}

/// The speed of an answer that ended.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Pace {
    pub(crate) tpot_ms: Option<f64>,
    pub(crate) normalized_ms: Option<f64>,
    pub(crate) tokens_per_s: Option<f64>,
}

impl Pace {
    /// None if its tokens were not counted, or none came.
    pub(crate) fn from_record(record: &RequestRecord) -> Option<Self> {
        let exchange = &record.exchange;
        let tokens = exchange.output_tokens.map(|count| f64::from(count.n))?;
        let tokens = tokens / f64::from(answer_count(record));
        let last = exchange.stamps.last_token?;
        let e2e = last - record.scheduled;
        let mut pace = Self::default();
        if tokens > 0.0 {
            pace.normalized_ms = Some(e2e.as_ms() / tokens);
            pace.tokens_per_s = Some(tokens / e2e.as_secs().max(1e-9));
        }
        let Some(first) = exchange.stamps.first_token else { return Some(pace) };
        let in_first = exchange.chunks.first().and_then(|chunk| chunk.tokens).unwrap_or(1);
        let after_first = tokens - hidden_end_tokens(record) - f64::from(in_first);
        // Undefined, not zero: an answer of one token, or one whose tokens all came in one read.
        if after_first > 0.0 && last > first {
            pace.tpot_ms = Some((last - first).as_ms() / after_first);
        }
        Some(pace)
    }
}

/// Time per output token of one answer in milliseconds, where it has such.
pub fn tpot_ms(record: &RequestRecord) -> Option<f64> {
    Pace::from_record(record).filter(|_| record.is_ok()).and_then(|pace| pace.tpot_ms)
}

/// Gaps between the chunks of each answer in milliseconds; the wait for the first is not one of them.
pub fn gaps_ms(record: &RequestRecord) -> Vec<f64> {
    let ms = |(gap, _): (Nanos, Option<u32>)| gap.as_micros_rounded() as f64 / 1e3;
    token_gaps(record, &Cuts::default()).map(ms).collect()
}

/// The most answers of one request that are followed: a log may claim anything.
const MOST_ANSWERS: usize = 1024;

/// A gap between two chunks of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    /// When it began.
    pub(crate) from: Nanos,
    pub(crate) length: Nanos,
    /// Tokens of the chunk that ended it, where the server says.
    pub(crate) tokens: Option<u32>,
    /// The place of the first of them in its answer, from 1.
    pub(crate) place: u64,
}

/// Gaps between the chunks of each answer, with the tokens of the chunk that ended them; the wait
/// for the first is TTFT, not a gap. Gaps at a stall of the client are left out.
pub(crate) fn token_gaps<'a>(
    record: &'a RequestRecord,
    cuts: &'a Cuts,
) -> impl Iterator<Item = (Nanos, Option<u32>)> + 'a {
    placed_gaps(record, cuts).map(|gap| (gap.length, gap.tokens))
}

/// The same, each with its place in time and in its answer.
pub(crate) fn placed_gaps<'a>(
    record: &'a RequestRecord,
    cuts: &'a Cuts,
) -> impl Iterator<Item = Gap> + 'a {
    // The latest chunk of each answer, and the tokens so far.
    let mut latest: Vec<(Option<Nanos>, u64)> = Vec::new();
    record.exchange.chunks.iter().filter_map(move |chunk| {
        let answer = chunk.choice as usize;
        if answer >= MOST_ANSWERS {
            return None;
        }
        if latest.len() <= answer {
            latest.resize(answer + 1, (None, 0));
        }
        let (before, tokens) = &mut latest[answer];
        let place = *tokens + 1;
        *tokens = tokens.saturating_add(u64::from(chunk.tokens.unwrap_or(1)));
        let from = before.replace(chunk.at)?;
        let is_spoiled = cuts.is_doubtful(record, from) || cuts.is_doubtful(record, chunk.at);
        let gap = Gap { from, length: chunk.at - from, tokens: chunk.tokens, place };
        (!is_spoiled).then_some(gap)
    })
}
