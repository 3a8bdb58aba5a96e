//! The run over time: requests in flight, arrivals, and latencies, bin by bin.
//!
//! Steadiness and saturation are judged on these series and nothing else.

use std::collections::BTreeMap;

use goodput_model::{ErrorClass, Nanos, ReportedRequest, RequestRecord};

use crate::request::Pace;

/// The bins of a span that is long enough.
const SECOND: Nanos = Nanos::from_millis(1_000);
/// The grain in which the arrivals of tokens are kept, and so the shortest bin.
const GRAIN: Nanos = Nanos::from_millis(100);
/// Shorter spans are divided into this many bins.
const FEWEST: u64 = 60;
/// Longer spans (more than a day) get longer bins.
const MOST: u64 = 100_000;

/// What the series need to know of a request.
#[derive(Debug, Clone, Copy)]
struct Passage {
    scheduled: Nanos,
    dispatched: Nanos,
    end: Nanos,
    /// In milliseconds; not a number where there is none.
    ttft: f32,
    tpot: f32,
    /// Its first token was not seen: it waited longer than that.
    is_unanswered: bool,
    is_refused: bool,
}

/// Collects requests of every phase, in any order. It keeps a few numbers of each request, and the
/// arrivals of tokens in bins of 100 ms.
#[derive(Debug, Clone, Default)]
pub struct SeriesTally {
    passages: Vec<Passage>,
    tokens: BTreeMap<u64, f64>,
}

fn multiply_nanos(length: Nanos, count: u64) -> Nanos {
    Nanos(length.0.saturating_mul(count))
}

/// A series of medians. A bin without a request has the value of the bin before it, the first ones
/// that of the first bin with a request. Empty without any value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Medians {
    /// In milliseconds, one for each bin.
    pub values: Vec<f64>,
    /// Requests in each bin.
    pub counts: Vec<u32>,
}

impl Medians {
    /// Bins with a value of their own.
    pub fn filled_bins(&self) -> usize {
        self.counts.iter().filter(|count| **count > 0).count()
    }

    fn from_bins(bins: Vec<Vec<f32>>) -> Self {
        let counts = bins.iter().map(|bin| u32::try_from(bin.len()).unwrap_or(u32::MAX)).collect();
        Self::hold_last(bins.into_iter().map(median_of).collect(), counts)
    }

    /// Means of medians, each counted as often as it has requests.
    fn merge_bins(&self, factor: usize) -> Self {
        let parts = self.values.chunks_exact(factor).zip(self.counts.chunks_exact(factor));
        let merge = |(values, counts): (&[f64], &[u32])| {
            let count = counts.iter().fold(0u32, |sum, count| sum.saturating_add(*count));
            let pairs = values.iter().zip(counts);
            let sum: f64 = pairs.map(|(value, count)| value * f64::from(*count)).sum();
            ((count > 0).then(|| sum / f64::from(count)), count)
        };
        let (values, counts) = parts.map(merge).unzip();
        Self::hold_last(values, counts)
    }

    fn hold_last(medians: Vec<Option<f64>>, counts: Vec<u32>) -> Self {
        let Some(mut last) = medians.iter().flatten().next().copied() else {
            return Self { values: Vec::new(), counts };
        };
        let values = medians.into_iter().map(|median| {
            last = median.unwrap_or(last);
            last
        });
        Self { values: values.collect(), counts }
    }
}

/// The middle value, or the mean of the two middle ones.
fn median_of(mut values: Vec<f32>) -> Option<f64> {
    values.sort_unstable_by(f32::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(f64::from(lower), f64::from(upper)))
}

/// A span of the run in bins of equal length. What is left of the span beyond its last whole bin is
/// not in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// Where the first bin begins.
    pub start: Nanos,
    /// The length of a bin.
    pub bin: Nanos,
    /// Requests in flight (dispatched and not over), averaged over the bin.
    pub in_flight: Vec<f64>,
    /// Output tokens by arrival.
    pub tokens_per_s: Vec<f64>,
    /// Median time to first token from schedule, of the requests due in the bin. One that ran into
    /// a time limit waited for all of its time.
    pub ttft: Medians,
    /// Median time per output token, of the requests due in the bin.
    pub tpot: Medians,
    /// Requests that were due.
    pub arrivals: Vec<u32>,
    /// Requests that were over, completed or not.
    pub completions: Vec<u32>,
    /// Requests that the server turned away (429, 503), by the instant they were due.
    pub refused: Vec<u32>,
}

impl Series {
    /// Number of bins.
    pub fn len(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether the span was shorter than a bin.
    pub fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// The same with this many bins in one; what is left over at the end is not in it.
    pub(crate) fn merge_bins(&self, factor: usize) -> Self {
        let mean = |values: &Vec<f64>| {
            values
                .chunks_exact(factor)
                .map(|part| part.iter().sum::<f64>() / factor as f64)
                .collect()
        };
        let sum = |counts: &Vec<u32>| {
            let sum = |part: &[u32]| part.iter().fold(0u32, |sum, n| sum.saturating_add(*n));
            counts.chunks_exact(factor).map(sum).collect()
        };
        Self {
            start: self.start,
            bin: multiply_nanos(self.bin, factor as u64),
            in_flight: mean(&self.in_flight),
            tokens_per_s: mean(&self.tokens_per_s),
            ttft: self.ttft.merge_bins(factor),
            tpot: self.tpot.merge_bins(factor),
            arrivals: sum(&self.arrivals),
            completions: sum(&self.completions),
            refused: sum(&self.refused),
        }
    }

    /// From the first bin to the end of the last, in seconds.
    pub fn seconds(&self) -> f64 {
        self.bin.as_secs() * self.len() as f64
    }
}

impl SeriesTally {
    /// Takes a request.
    pub fn add(&mut self, record: &RequestRecord) {
        let exchange = &record.exchange;
        let class = exchange.failure.as_ref().map(|failure| failure.class);
        let refusal = |class| matches!(class, ErrorClass::Http(429 | 503));
        self.passages.push(Passage {
            scheduled: record.scheduled,
            dispatched: exchange.stamps.dispatched,
            end: record.end(),
            ttft: wait_ms(record).unwrap_or(f64::NAN) as f32,
            tpot: pace_ms(record).unwrap_or(f64::NAN) as f32,
            is_unanswered: !record.is_ok() && exchange.stamps.first_token.is_none(),
            is_refused: class.is_some_and(refusal),
        });
        self.add_tokens(record);
    }

    /// Takes a completed request from another tool's file, sent at this instant. When its
    /// tokens came is left out: latencies are judged, not throughput.
    pub(crate) fn add_reported(&mut self, sent: Nanos, request: &ReportedRequest) {
        let (ttft, e2e) = (request.ttft_ms, request.total_ms());
        let later = request.output_tokens.filter(|tokens| *tokens > 1).map(|tokens| tokens - 1);
        let decode = e2e.zip(ttft).map(|(e2e, ttft)| e2e - ttft);
        let tpot = decode.zip(later).map(|(decode, later)| decode / later as f64);
        let seconds = e2e.or(ttft).unwrap_or(0.0).max(0.0) / 1e3;
        self.passages.push(Passage {
            scheduled: sent,
            dispatched: sent,
            end: sent + Nanos::from_secs_f64(seconds),
            ttft: ttft.unwrap_or(f64::NAN) as f32,
            tpot: tpot.unwrap_or(f64::NAN) as f32,
            is_unanswered: false,
            is_refused: false,
        });
    }

    /// Number of requests taken.
    pub fn len(&self) -> usize {
        self.passages.len()
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.passages.is_empty()
    }

    /// Where chunks do not say how many tokens they hold, the total is spread over them evenly.
    fn add_tokens(&mut self, record: &RequestRecord) {
        let exchange = &record.exchange;
        let total = exchange.output_tokens.map(|count| f64::from(count.n));
        let chunks = &exchange.chunks;
        if chunks.is_empty() {
            if let (Some(total), Some(at)) = (total, exchange.stamps.last_token) {
                *self.tokens.entry(at.0 / GRAIN.0).or_default() += total;
            }
            return;
        }
        let listed: Option<u64> = chunks.iter().map(|chunk| chunk.tokens.map(u64::from)).sum();
        let listed = listed.map(|listed| listed as f64).filter(|listed| *listed > 0.0);
        let even = total.unwrap_or(chunks.len() as f64) / chunks.len() as f64;
        let weight = |tokens: Option<u32>| match (listed, tokens) {
            (Some(listed), Some(tokens)) => f64::from(tokens) * (total.unwrap_or(listed) / listed),
            _ => even,
        };
        // Neighboors mostly share their bin: one look-up for all of them.
        let (mut bin, mut sum) = (0, 0.0);
        for chunk in chunks {
            let at = chunk.at.0 / GRAIN.0;
            if at != bin && sum > 0.0 {
                *self.tokens.entry(bin).or_default() += std::mem::take(&mut sum);
            }
            bin = at;
            sum += weight(chunk.tokens);
        }
        *self.tokens.entry(bin).or_default() += sum;
    }

    /// The series between two instants: bins of a second, or a sixtieth of a span below a minute,
    /// but at least 100 ms.
    pub fn series_between(&self, from: Nanos, to: Nanos) -> Series {
        let span = to - from;
        let bin = if span < multiply_nanos(SECOND, FEWEST) {
            Nanos(span.0 / FEWEST).max(GRAIN)
        } else {
            SECOND.max(Nanos(span.0 / MOST))
        };
        self.series_in_bins(from, bin, (span.0 / bin.0) as usize)
    }

    /// The series in this many bins of a length that is at least 100 ms.
    pub(crate) fn series_in_bins(&self, from: Nanos, bin: Nanos, bins: usize) -> Series {
        let end = from + multiply_nanos(bin, bins as u64);
        let place = |at: Nanos| {
            (from <= at && at < end)
                .then(|| ((at - from).0 / bin.0) as usize)
                .filter(|at| *at < bins)
        };
        let mut series = Series {
            start: from,
            bin,
            in_flight: self.in_flight_by_bin(from, bin, bins),
            tokens_per_s: self.token_rate_by_bin(from, bin, bins),
            arrivals: vec![0; bins],
            completions: vec![0; bins],
            refused: vec![0; bins],
            ..Series::default()
        };
        let (mut waits, mut paces) = (vec![Vec::new(); bins], vec![Vec::new(); bins]);
        for passage in &self.passages {
            if let Some(count) = place(passage.end).and_then(|at| series.completions.get_mut(at)) {
                *count = count.saturating_add(1);
            }
            let Some(at) = place(passage.scheduled) else { continue };
            series.arrivals[at] = series.arrivals[at].saturating_add(1);
            let refused = u32::from(passage.is_refused);
            series.refused[at] = series.refused[at].saturating_add(refused);
            if !passage.ttft.is_nan() {
                waits[at].push((passage.ttft, passage.is_unanswered));
            }
            if !passage.tpot.is_nan() {
                paces[at].push(passage.tpot);
            }
        }
        series.ttft = Medians::from_bins(waits_at_least(waits));
        series.tpot = Medians::from_bins(paces);
        series
    }

    /// Each request adds its time in the first and the last bin it touches, and one to all between.
    fn in_flight_by_bin(&self, from: Nanos, bin: Nanos, bins: usize) -> Vec<f64> {
        let end = from + multiply_nanos(bin, bins as u64);
        let mut partial = vec![0.0; bins];
        // How many requests begin (or end) to fill whole bins at this one.
        let mut whole = vec![0i64; bins + 1];
        for passage in &self.passages {
            let (begin, over) = (passage.dispatched.max(from), passage.end.min(end));
            if begin >= over {
                continue;
            }
            let (begin, over) = ((begin - from).0, (over - from).0);
            let (first, last) = ((begin / bin.0) as usize, (over / bin.0) as usize);
            if first == last {
                partial[first] += (over - begin) as f64;
                continue;
            }
            partial[first] += ((first as u64 + 1) * bin.0 - begin) as f64;
            whole[first + 1] += 1;
            whole[last] -= 1;
            if last < bins {
                partial[last] += (over - last as u64 * bin.0) as f64;
            }
        }
        let mut there = 0;
        let average = |(partial, change): (&f64, &i64)| {
            there += change;
            partial / bin.0 as f64 + there as f64
        };
        partial.iter().zip(&whole).map(average).collect()
    }

    /// Tokens of a grain that lies across the edge of a bin are divided in proportion.
    fn token_rate_by_bin(&self, from: Nanos, bin: Nanos, bins: usize) -> Vec<f64> {
        let end = from + multiply_nanos(bin, bins as u64);
        let mut rates = vec![0.0; bins];
        if bins == 0 {
            return rates;
        }
        for (grain, tokens) in self.tokens.range(from.0 / GRAIN.0..=end.0 / GRAIN.0) {
            let (begin, over) = (Nanos(grain * GRAIN.0), Nanos(grain * GRAIN.0) + GRAIN);
            let (mut at, over) = (begin.max(from), over.min(end));
            while at < over {
                let place = (at - from).0 / bin.0;
                let edge = (from + multiply_nanos(bin, place + 1)).min(over);
                rates[place as usize] += tokens * (edge - at).0 as f64 / GRAIN.0 as f64;
                at = edge;
            }
        }
        rates.iter().map(|tokens| tokens / bin.as_secs()).collect()
    }
}

/// Waits in bins. One whose end was not seen was at least as long as the longest median before
/// it: at the end of a run all are cut off at once, and the latest after the shortest time.
fn waits_at_least(bins: Vec<Vec<(f32, bool)>>) -> Vec<Vec<f32>> {
    let mut longest = 0.0f32;
    let bins = bins.into_iter().map(|bin| {
        let wait = |(wait, is_open): (f32, bool)| if is_open { wait.max(longest) } else { wait };
        let bin: Vec<f32> = bin.into_iter().map(wait).collect();
        longest = median_of(bin.clone()).map_or(longest, |median| longest.max(median as f32));
        bin
    });
    bins.collect()
}

/// Time to first token from schedule. What ran into a time limit before it waited at least that
/// long; what failed otherwise says nothing.
fn wait_ms(record: &RequestRecord) -> Option<f64> {
    let stamps = &record.exchange.stamps;
    let failure = record.exchange.failure.as_ref();
    let is_censored = failure.is_some_and(|failure| failure.class.is_censored());
    if failure.is_some() && !is_censored {
        return None;
    }
    let answered = stamps.first_token.or(stamps.last_token.filter(|_| !is_censored));
    let until = answered.or(is_censored.then(|| record.end()))?;
    Some((until - record.scheduled).as_ms())
}

/// Time per output token, as the metric of that name has it; of an answer that was given up on, by
/// the chunks that came.
fn pace_ms(record: &RequestRecord) -> Option<f64> {
    let exchange = &record.exchange;
    let first = exchange.stamps.first_token?;
    if let Some(failure) = &exchange.failure {
        let after_first = exchange.chunks.len().saturating_sub(1).max(1);
        let is_censored = failure.class.is_censored();
        return is_censored.then(|| (record.end() - first).as_ms() / after_first as f64);
    }
    Pace::from_record(record)?.tpot_ms
}

#[cfg(test)]
mod tests;
