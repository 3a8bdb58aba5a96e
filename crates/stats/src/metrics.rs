//! The distributions: each metric from the stamps of its requests.

use std::collections::BTreeMap;

use goodput_model::{MetricName, RequestRecord};

use crate::cuts::Cuts;
use crate::estimate::{Contention, Memory, Visit, lag1_correlation};
use crate::modes::{self, TwoModes};
use crate::request::{Latencies, LatencyValue, token_gaps};
use crate::runs::{Micros, ValueRuns};
use crate::sample::{Sample, Wanted};
use crate::summary::{Metric, Spread};
use crate::window::Window;

/// The most tokens that one chunk is believed to hold: a server may claim anything.
const MOST_TOKENS: u32 = 4096;

/// Values that show the shape of a distribution; more would not change it.
const ENOUGH: usize = 100_000;

/// What the checks want to know about latencies.
#[derive(Debug, Default)]
pub(crate) struct KeyFigures {
    /// Requests that have a latency, those beyond a time limit included.
    pub(crate) n: u64,
    pub(crate) max_gap_p99_ms: Option<f64>,
    pub(crate) ttft_p50_ms: Option<f64>,
    /// Of chunks of one token, or an unknown number.
    pub(crate) itl_p50_ms: Option<f64>,
    pub(crate) e2e_p99_ms: Option<f64>,
    pub(crate) ttft_p90_ms: Option<f64>,
    /// Correlation of the TTFT of neighbors in order of scheduled instants.
    pub(crate) ttft_lag1: Option<f64>,
    /// Share of gaps of 40 ms, where they stand out.
    pub(crate) delayed_ack_share: Option<f64>,
    /// Metrics with two groups of values.
    pub(crate) modes: Vec<(&'static str, TwoModes)>,
}

/// Gaps of one batch of time in microseconds.
#[derive(Debug, Default)]
struct BatchGaps {
    /// Before chunks of one token, or an unknown number.
    short_us: Micros,
    /// Before chunks of several tokens, and how many.
    long_us: ValueRuns<(u32, u32)>,
}

/// Samples of every metric, filled request by request.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Where samples are told apart by time, for their intervals.
    window: Option<Window>,
    visits: Vec<Visit>,
    ttft: Sample,
    ttft_sent: Sample,
    ttfa: Sample,
    tpot: Sample,
    /// By batch: by far the most numerous samples, so kept small.
    gaps: Vec<BatchGaps>,
    max_gap: Sample,
    e2e: Sample,
    e2e_sent: Sample,
    normalized: Sample,
    tokens_per_s: Sample,
}

impl Metrics {
    /// Samples that know their batch of this window, by scheduled instant.
    pub(crate) fn new(window: Window) -> Self {
        let tokens_per_s = Sample::default().into_speed();
        Self { window: Some(window), tokens_per_s, ..Self::default() }
    }

    /// Takes a measured request. Failures leave the latency samples, except those that ran into a
    /// time limit: they are known to be longer. What a stall of the client spoiled is left out.
    pub(crate) fn add(&mut self, record: &RequestRecord, stream: bool, cuts: &Cuts) {
        let latencies = Latencies::new(record, stream, cuts);
        let slice = self.window.map(|window| window.slice_of(record.scheduled));
        let ttft = latencies.get(MetricName::Ttft);
        if let (LatencyValue::Value(ttft), Some(_)) = (ttft, slice) {
            let (scheduled, end) = (record.scheduled, record.end());
            self.visits.push(Visit { scheduled, end, ttft_ms: ttft });
        }
        self.ttft.push_value(slice, ttft);
        self.e2e.push_value(slice, latencies.get(MetricName::E2e));
        self.tpot.push_value(slice, latencies.get(MetricName::Tpot));
        self.ttfa.push_value(slice, latencies.get(MetricName::Ttfa));
        self.ttft_sent.push_value(slice, latencies.ttft_sent());
        self.e2e_sent.push_value(slice, latencies.e2e_sent());
        self.max_gap.push_value(slice, latencies.get(MetricName::MaxGap));
        self.normalized.push_value(slice, latencies.get(MetricName::NormalizedLatency));
        self.tokens_per_s.push_value(slice, latencies.get(MetricName::TokensPerS));
        if stream && latencies.has_any() {
            self.add_gaps(
                record,
                self.window.map_or(0, |window| window.batch_of(record.scheduled)).into(),
                cuts,
            );
        }
    }

    fn add_gaps(&mut self, record: &RequestRecord, batch: usize, cuts: &Cuts) {
        if self.gaps.len() <= batch {
            self.gaps.resize_with(batch + 1, BatchGaps::default);
        }
        let kept = &mut self.gaps[batch];
        for (gap, tokens) in token_gaps(record, cuts) {
            let gap_us = u32::try_from(gap.as_micros_rounded()).unwrap_or(u32::MAX);
            match tokens {
                Some(tokens) if tokens > 1 => kept.long_us.push((gap_us, tokens)),
                _ => kept.short_us.push(gap_us),
            }
        }
    }

    /// What the checks ask for, whatever percentiles the plan names, of requests of which this many per
    /// second were asked for.
    pub(crate) fn key_figures(&mut self, offered_rps: Option<f64>) -> KeyFigures {
        self.visits.sort_unstable_by(|one, other| {
            one.scheduled.cmp(&other.scheduled).then(one.ttft_ms.total_cmp(&other.ttft_ms))
        });
        let contention = Contention::find(&self.visits, offered_rps);
        for wait in [&mut self.ttft, &mut self.ttft_sent, &mut self.ttfa] {
            wait.set_contention(contention);
        }
        let gaps = self.sample_gaps();
        let middle = gaps.len().checked_sub(1).map(|last| last / 2);
        self.ttft.sort();
        for whole in [&mut self.e2e, &mut self.e2e_sent, &mut self.normalized] {
            whole.add_wait_memory(&self.ttft);
        }
        let others = [&mut self.ttfa, &mut self.tpot, &mut self.max_gap, &mut self.e2e];
        others.into_iter().for_each(Sample::sort);
        self.normalized.sort();
        self.tokens_per_s.sort();
        let kinds = [("TTFT", &self.ttft), ("TPOT", &self.tpot), ("E2E", &self.e2e)];
        let modes = |(name, sample): (&'static str, &Sample)| {
            Some((name, modes::find_two_modes(&sample.some_sorted(ENOUGH))?))
        };
        KeyFigures {
            n: self.ttft.len().max(self.e2e.len()),
            max_gap_p99_ms: self.max_gap.percentile(99.0),
            ttft_p50_ms: self.ttft.percentile(50.0),
            itl_p50_ms: middle.and_then(|middle| gaps.get(middle).copied()),
            e2e_p99_ms: self.e2e.percentile(99.0),
            ttft_p90_ms: self.ttft.percentile(90.0),
            ttft_lag1: lag1_correlation(self.visits.iter().map(|visit| visit.ttft_ms)),
            delayed_ack_share: modes::delayed_ack_share(&gaps),
            modes: kinds.into_iter().filter_map(modes).collect(),
        }
    }

    /// How much requests remember of each other, by metric; once the key figures are known.
    pub(crate) fn memory_by_metric(&self) -> BTreeMap<&'static str, Memory> {
        let samples = [
            (MetricName::Ttft, &self.ttft),
            (MetricName::Ttfa, &self.ttfa),
            (MetricName::Tpot, &self.tpot),
            (MetricName::Itl, &self.max_gap),
            (MetricName::MaxGap, &self.max_gap),
            (MetricName::E2e, &self.e2e),
            (MetricName::NormalizedLatency, &self.normalized),
            (MetricName::TokensPerS, &self.tokens_per_s),
        ];
        samples.into_iter().map(|(metric, sample)| (metric.name(), sample.memory())).collect()
    }

    /// Gaps before chunks of one token (or an unknown number) in milliseconds, sorted; every so
    /// manieth of very many.
    fn sample_gaps(&mut self) -> Vec<f64> {
        let runs = self.gaps.iter_mut().flat_map(|gaps| gaps.short_us.sorted());
        let mut all: Vec<(u32, u32)> = runs.collect();
        all.sort_unstable();
        let number: u64 = all.iter().map(|run| u64::from(run.1)).sum();
        let step = number.div_ceil(ENOUGH as u64).max(1);
        let (mut some, mut next, mut seen) = (Vec::new(), 0, 0);
        for (us, count) in all {
            seen += u64::from(count);
            while next < seen {
                some.push(f64::from(us) / 1e3);
                next += step;
            }
        }
        some
    }

    /// The gaps in milliseconds. What one before several tokens stands for, and how often, is for
    /// the caller to say.
    fn itl_sample(&mut self, long: fn(f64, u32) -> (f64, u32)) -> Sample {
        let mut itl = Sample::default();
        for (batch, gaps) in self.gaps.iter_mut().enumerate() {
            let batch = self.window.map(|_| batch as u8);
            let ms = |us: u32| f64::from(us) / 1e3;
            let short = gaps.short_us.sorted();
            let short = short.map(|(us, count)| (ms(us), u64::from(count)));
            let several = gaps.long_us.sorted().iter();
            let several = several.map(|((us, tokens), count)| {
                let (ms, times) = long(ms(*us), (*tokens).min(MOST_TOKENS));
                (ms, u64::from(times) * u64::from(*count))
            });
            itl.push_counted(batch, short.chain(several).collect());
        }
        itl
    }

    /// TTFT, TPOT, ITL and E2E in few numbers.
    pub(crate) fn into_spreads(mut self) -> [Spread; 4] {
        let itl = self.itl_sample(|ms, _| (ms, 1));
        [self.ttft, self.tpot, itl, self.e2e].map(Sample::into_spread)
    }

    /// ITL by chunk, and with gaps before several tokens shared out among them.
    fn itl_metrics(&mut self, wanted: Wanted<'_>) -> [Metric; 2] {
        let itl = self.itl_sample(|ms, _| (ms, 1)).into_metric("ms", wanted);
        let itl_token = if self.gaps.iter().all(|gaps| gaps.long_us.is_empty()) {
            itl.clone()
        } else {
            let shared = self.itl_sample(|ms, tokens| (ms / f64::from(tokens), tokens));
            shared.into_metric("ms", wanted)
        };
        self.gaps.clear();
        [itl, itl_token]
    }

    pub(crate) fn finish(
        mut self,
        wanted: Wanted<'_>,
        key: &KeyFigures,
    ) -> BTreeMap<String, Metric> {
        let [itl, itl_token] = self.itl_metrics(wanted);
        let measured = [
            ("ttft", "ms", self.ttft),
            ("ttft_sent", "ms", self.ttft_sent),
            ("ttfa", "ms", self.ttfa),
            ("tpot", "ms", self.tpot),
            ("max_gap", "ms", self.max_gap),
            ("e2e", "ms", self.e2e),
            ("e2e_sent", "ms", self.e2e_sent),
            ("normalized_latency", "ms/token", self.normalized),
            ("request_tokens_per_s", "tokens/s", self.tokens_per_s),
        ];
        let mut metrics: BTreeMap<_, _> = measured
            .into_iter()
            .map(|(name, unit, sample)| {
                // Its bound lies on the side of slow answers; of a speed those are the small ones.
                let is_speed = name == MetricName::TokensPerS.name();
                let early_stopping = wanted.early_stopping && !is_speed;
                (name.to_owned(), sample.into_metric(unit, Wanted { early_stopping, ..wanted }))
            })
            .collect();
        metrics.insert("itl".to_owned(), itl);
        metrics.insert("itl_token".to_owned(), itl_token);
        if let Some(ttft) = metrics.get_mut("ttft") {
            ttft.lag1 = key.ttft_lag1;
        }
        metrics
    }
}
