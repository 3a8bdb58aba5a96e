//! The distributions: each metric from the stamps of METHOD 3.3.

use std::collections::BTreeMap;

use goodput_model::{Nanos, RequestRecord, TokenSource};

use crate::cuts::Cuts;
use crate::estimate::lag1;
use crate::sample::Sample;
use crate::summary::Metric;
use crate::window::Window;
use crate::workload::Spread;

/// Gaps of one batch of time in microseconds.
#[derive(Debug, Default)]
struct Gaps {
    /// Before chunks of one token, or an unknown number.
    short_us: Vec<u32>,
    /// Before chunks of several tokens, and how many.
    long_us: Vec<(u32, u32)>,
}

/// Samples of every metric, filled request by request.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Where samples are told apart by time, for their intervals.
    window: Option<Window>,
    /// TTFT by due instant.
    ttft_due: Vec<(Nanos, f64)>,
    ttft: Sample,
    ttft_sent: Sample,
    ttfa: Sample,
    tpot: Sample,
    /// By batch: by far the most numerous samples, so kept small.
    gaps: Vec<Gaps>,
    max_gap: Sample,
    e2e: Sample,
    e2e_sent: Sample,
    normalized: Sample,
    tokens_per_s: Sample,
}

/// Servers count the end-of-text token in their usage though no chunk carries it: seen when every
/// chunk holds one token and the count is one more. It took no time between first and last token.
pub(crate) fn hidden_end(record: &RequestRecord) -> f64 {
    let exchange = &record.exchange;
    let is_stop = exchange.finish.as_deref() == Some("stop");
    // A tokenizer of ours counts text, and so no token without any.
    let counted = exchange.output_tokens.filter(|count| count.source != TokenSource::Tokenizer);
    let tokens = counted.map_or(0, |count| count.n as usize);
    if is_stop && tokens == exchange.chunks.len() + 1 { 1.0 } else { 0.0 }
}

/// How many answers a request asked for, as far as its chunks show it.
pub(crate) fn answers(record: &RequestRecord) -> u32 {
    let chunks = record.exchange.chunks.iter();
    chunks.map(|chunk| chunk.choice.saturating_add(1)).max().unwrap_or(1)
}

impl Metrics {
    /// Samples that know their batch of this window, by due instant.
    pub(crate) fn new(window: Window) -> Self {
        Self { window: Some(window), ..Self::default() }
    }

    /// Takes a measured request. Failures leave the latency samples, except those that ran into a
    /// time limit: they are known to be longer. What a stall of the client spoilt is left out.
    pub(crate) fn add(&mut self, record: &RequestRecord, stream: bool, cuts: &Cuts) {
        let failure = record.exchange.failure.as_ref();
        let censored = failure.is_some_and(|failure| failure.class.is_censored());
        if failure.is_some() && !censored {
            return;
        }
        let stamps = &record.exchange.stamps;
        let (scheduled, sent) = (record.scheduled, stamps.sent_first);
        let is_doubtful = |at: &Option<Nanos>| at.is_some_and(|at| cuts.is_doubtful(record, at));
        let batch = self.window.map(|window| window.batch(scheduled));
        let put = |sample: &mut Sample, start: Option<Nanos>, end: Option<Nanos>| {
            match (start, end) {
                (start, end) if is_doubtful(&start) || is_doubtful(&end) => {}
                (Some(start), Some(end)) => sample.put(batch, (end - start).as_ms()),
                // Without an end in time: longer than the limit.
                _ if censored => sample.put_censored(batch),
                _ => {}
            }
        };
        let due = Some(scheduled);
        if stream {
            put(&mut self.ttft, due, stamps.first_token);
            put(&mut self.ttft_sent, sent, stamps.first_token);
            put(&mut self.ttfa, due, stamps.first_answer);
            self.add_gaps(record, censored, cuts);
            let first = stamps.first_token.filter(|_| batch.is_some());
            if let Some(first) = first.filter(|at| !is_doubtful(&Some(*at)) && !is_doubtful(&due)) {
                self.ttft_due.push((scheduled, (first - scheduled).as_ms()));
            }
        }
        let last = stamps.last_token.filter(|_| !censored);
        put(&mut self.e2e, due, last);
        put(&mut self.e2e_sent, sent, last);
        let ends = [due, stamps.first_token, stamps.last_token];
        if ends.iter().any(is_doubtful) {
            // Its pace is as doubtful as its ends.
        } else if !censored {
            self.add_pace(record, stream);
        } else if stamps.first_token.is_some() {
            // It had begun and was given up on: slower than any that ended.
            self.tpot.put_censored(batch);
            self.normalized.put_censored(batch);
        }
    }

    /// Gaps between the chunks of each answer; the wait for the first is TTFT, not a gap. An answer
    /// that was given up on was in a gap whose end nobody saw.
    fn add_gaps(&mut self, record: &RequestRecord, given_up: bool, cuts: &Cuts) {
        let chunks = &record.exchange.chunks;
        let batch = self.window.map(|window| window.batch(record.scheduled));
        let place = usize::from(batch.unwrap_or(0));
        if self.gaps.len() <= place {
            self.gaps.resize_with(place + 1, Gaps::default);
        }
        let gaps = &mut self.gaps[place];
        let mut largest = None;
        let mut latest: Vec<Option<Nanos>> = Vec::new();
        for chunk in chunks {
            let answer = chunk.choice as usize;
            if latest.len() <= answer {
                latest.resize(answer + 1, None);
            }
            let Some(earlier) = latest[answer].replace(chunk.at) else { continue };
            if cuts.is_doubtful(record, earlier) || cuts.is_doubtful(record, chunk.at) {
                continue;
            }
            let gap_us = (chunk.at - earlier).as_micros_rounded();
            let gap_us = u32::try_from(gap_us).unwrap_or(u32::MAX);
            largest = largest.max(Some(gap_us));
            match chunk.tokens {
                Some(tokens) if tokens > 1 => gaps.long_us.push((gap_us, tokens)),
                _ => gaps.short_us.push(gap_us),
            }
        }
        if given_up && !chunks.is_empty() {
            self.max_gap.put_censored(batch);
        } else if let Some(largest) = largest {
            self.max_gap.put(batch, f64::from(largest) / 1e3);
        }
    }

    /// Time per output token, normalised latency, and speed as one user sees it.
    fn add_pace(&mut self, record: &RequestRecord, stream: bool) {
        let exchange = &record.exchange;
        let Some(tokens) = exchange.output_tokens.map(|count| f64::from(count.n)) else { return };
        let tokens = tokens / f64::from(answers(record));
        let Some(last) = exchange.stamps.last_token else { return };
        let batch = self.window.map(|window| window.batch(record.scheduled));
        let e2e = last - record.scheduled;
        if tokens > 0.0 {
            self.normalized.put(batch, e2e.as_ms() / tokens);
            self.tokens_per_s.put(batch, tokens / e2e.as_secs().max(1e-9));
        }
        if !stream {
            return;
        }
        let Some(first) = exchange.stamps.first_token else { return };
        let in_first = exchange.chunks.first().and_then(|chunk| chunk.tokens).unwrap_or(1);
        let after_first = tokens - hidden_end(record) - f64::from(in_first);
        // Undefined, not zero: an answer of one token, or one whose tokens all came in one read.
        if after_first > 0.0 && last > first {
            self.tpot.put(batch, (last - first).as_ms() / after_first);
        }
    }

    pub(crate) fn ttft_p50(&self) -> Option<f64> {
        let mut ttft = self.ttft.clone();
        ttft.sort();
        ttft.percentile(50.0)
    }

    /// Of chunks of one token, or an unknown number.
    pub(crate) fn itl_p50(&self) -> Option<f64> {
        let mut gaps: Vec<u32> =
            self.gaps.iter().flat_map(|gaps| &gaps.short_us).copied().collect();
        let middle = gaps.len().checked_sub(1)? / 2;
        Some(f64::from(*gaps.select_nth_unstable(middle).1) / 1e3)
    }

    /// The gaps in milliseconds. What one before several tokens stands for, and how often, is for
    /// the caller to say.
    fn itl(&self, long: fn(f64, u32) -> (f64, u32)) -> Sample {
        let mut itl = Sample::default();
        for (batch, gaps) in self.gaps.iter().enumerate() {
            let batch = self.window.map(|_| batch as u8);
            itl.put_all(batch, gaps.short_us.iter().map(|us| f64::from(*us) / 1e3));
            for (us, tokens) in &gaps.long_us {
                let (ms, times) = long(f64::from(*us) / 1e3, *tokens);
                itl.put_all(batch, std::iter::repeat_n(ms, times as usize));
            }
        }
        itl
    }

    /// TTFT, TPOT, ITL and E2E in few numbers.
    pub(crate) fn spreads(self) -> [Spread; 4] {
        let itl = self.itl(|ms, _| (ms, 1));
        [self.ttft, self.tpot, itl, self.e2e].map(Sample::spread)
    }

    /// ITL by chunk, and with gaps before several tokens shared out among them.
    fn itl_metrics(&mut self, percentiles: &[f64]) -> [Metric; 2] {
        // Sorting whole numbers is cheaper, and these are most of all samples.
        self.gaps.iter_mut().for_each(|gaps| gaps.short_us.sort_unstable());
        let itl = self.itl(|ms, _| (ms, 1)).metric("ms", percentiles);
        let itl_token = if self.gaps.iter().all(|gaps| gaps.long_us.is_empty()) {
            itl.clone()
        } else {
            let shared = self.itl(|ms, tokens| (ms / f64::from(tokens), tokens));
            shared.metric("ms", percentiles)
        };
        self.gaps.clear();
        [itl, itl_token]
    }

    pub(crate) fn finish(mut self, percentiles: &[f64]) -> BTreeMap<String, Metric> {
        let [itl, itl_token] = self.itl_metrics(percentiles);
        self.ttft_due
            .sort_unstable_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let lag1 = lag1(self.ttft_due.iter().map(|ttft| ttft.1));
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
            .map(|(name, unit, sample)| (name.to_owned(), sample.metric(unit, percentiles)))
            .collect();
        metrics.insert("itl".to_owned(), itl);
        metrics.insert("itl_token".to_owned(), itl_token);
        if let Some(ttft) = metrics.get_mut("ttft") {
            ttft.lag1 = lag1;
        }
        metrics
    }
}
