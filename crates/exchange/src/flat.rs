//! What vLLM and SGLang compute from their requests, which is nearly the same: one is the other's
//! child.

use goodput_model::{Nanos, RequestRecord};

use crate::converted::{
    ConvertedRun, RequestLimits, RequestTimes, View, input_tokens, is_counted, output_tokens,
};
use crate::error::ExchangeError;
use crate::json::{Fields, Object};
use crate::numbers::{Gaps, Ranked, Values};

/// Seconds that peaks are looked for in, at most: a log may claim anything.
const MOST_SECONDS: usize = 10_000_000;

/// The figures of a run.
#[derive(Debug, Default)]
pub(crate) struct RunTotals {
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) input: u64,
    pub(crate) image: u64,
    pub(crate) output: u64,
    /// Completed requests within the limits, where there are such.
    pub(crate) good: Option<u64>,
    /// From the first request to the last answer.
    pub(crate) duration_s: f64,
    pub(crate) ttft: Values,
    pub(crate) tpot: Values,
    pub(crate) e2e: Values,
    pub(crate) itl: Gaps,
    /// Events in the fullest second.
    pub(crate) peak_events: u64,
    /// Requests that touched the same second, at most.
    pub(crate) peak_requests: u64,
}

/// When the run began, for each of the figures that need it.
#[derive(Debug, Default)]
struct RunStarts {
    due: Option<Nanos>,
    end: Nanos,
    /// First start of a completed request.
    start: Option<Nanos>,
}

impl RunTotals {
    /// `records` is called twice and must give the same records each time.
    pub(crate) fn from_records<I: Iterator<Item = RequestRecord>>(
        run: &ConvertedRun<'_>,
        view: View,
        records: &impl Fn() -> I,
    ) -> Self {
        let extremes = RunStarts::from_records(records().filter(is_counted));
        let limits = run.request_limits();
        let mut totals = Self { good: limits.map(|_| 0), ..Self::default() };
        totals.duration_s = (extremes.end - extremes.due.unwrap_or_default()).as_secs();
        let mut peaks = Peaks { start: extremes.start.unwrap_or_default(), ..Peaks::default() };
        for record in records().filter(is_counted) {
            if !record.is_ok() {
                totals.failed += 1;
                continue;
            }
            let times = RequestTimes::from_record(&record, view, run);
            totals.add(&record, times, limits);
            peaks.add(&record, times);
        }
        for values in [&mut totals.ttft, &mut totals.tpot, &mut totals.e2e] {
            values.sort();
        }
        (totals.peak_events, totals.peak_requests) = peaks.highest_counts();
        totals
    }

    fn add(&mut self, record: &RequestRecord, times: RequestTimes, limits: Option<RequestLimits>) {
        let output = output_tokens(record);
        self.completed += 1;
        self.input += u64::from(input_tokens(record));
        self.image += u64::from(record.exchange.image_tokens.unwrap_or(0));
        self.output += u64::from(output);
        self.e2e.push(times.latency.as_ms());
        let tpot = times.ttft.filter(|_| output > 1).map(|ttft| {
            let after_first = (times.latency - ttft).as_ms();
            after_first / f64::from(output - 1)
        });
        if let Some(ttft) = times.ttft {
            self.ttft.push(ttft.as_ms());
        }
        if let Some(tpot) = tpot {
            self.tpot.push(tpot);
        }
        times.gaps(record).for_each(|gap| self.itl.push(gap));
        if let (Some(good), Some(limits)) = (&mut self.good, limits) {
            let keeps = |limit: Option<f64>, value: f64| limit.is_none_or(|limit| value <= limit);
            // What has no time per token keeps every limit on it.
            let is_good = keeps(limits.ttft, times.ttft.map_or(0.0, Nanos::as_ms))
                && keeps(limits.tpot, tpot.unwrap_or(0.0))
                && keeps(limits.e2e, times.latency.as_ms());
            *good += u64::from(is_good);
        }
    }

    /// This many in each second of the run.
    pub(crate) fn per_second(&self, amount: f64) -> Option<f64> {
        (self.duration_s > 0.0).then(|| amount / self.duration_s)
    }
}

impl RunStarts {
    fn from_records(records: impl Iterator<Item = RequestRecord>) -> Self {
        let mut found = Self::default();
        let least = |old: Option<Nanos>, new: Nanos| Some(old.map_or(new, |old| old.min(new)));
        for record in records {
            found.due = least(found.due, record.scheduled);
            found.end = found.end.max(record.end());
            if record.is_ok() {
                found.start = least(found.start, record.exchange.stamps.dispatched);
            }
        }
        found
    }
}

/// What happened in each second since the first start.
#[derive(Debug, Default)]
struct Peaks {
    start: Nanos,
    events: Vec<u64>,
    /// By how much the number of requests changes.
    changes: Vec<i64>,
}

impl Peaks {
    fn add(&mut self, record: &RequestRecord, times: RequestTimes) {
        let Some(first) = times.ttft.map(|ttft| times.start + ttft) else {
            self.count_span(times);
            return;
        };
        self.count_event(first);
        let mut at = first;
        for gap in times.gaps(record) {
            at += Nanos::from_micros(gap);
            self.count_event(at);
        }
        self.count_span(times);
    }

    fn count_event(&mut self, at: Nanos) {
        if let Some(place) = second_of(at - self.start) {
            *grow_to(&mut self.events, place) += 1;
        }
    }

    fn count_span(&mut self, times: RequestTimes) {
        let end = times.start + times.latency;
        let ends = second_of(times.start - self.start).zip(second_of(end - self.start));
        if let Some((from, to)) = ends {
            *grow_to(&mut self.changes, to + 1) -= 1;
            *grow_to(&mut self.changes, from) += 1;
        }
    }

    fn highest_counts(&self) -> (u64, u64) {
        let under_way = self.changes.iter().scan(0i64, |now, change| {
            *now += change;
            Some(*now)
        });
        let requests = under_way.max().and_then(|most| u64::try_from(most).ok());
        (self.events.iter().copied().max().unwrap_or(0), requests.unwrap_or(0))
    }
}

fn second_of(since: Nanos) -> Option<usize> {
    usize::try_from(since.0 / 1_000_000_000).ok().filter(|second| *second < MOST_SECONDS)
}

fn grow_to<T: Clone + Default>(list: &mut Vec<T>, place: usize) -> &mut T {
    if list.len() <= place {
        list.resize(place + 1, T::default());
    }
    &mut list[place]
}

/// Adds `STATISTIC_NAME_ms` for each of these statistics; null without a sample.
pub(crate) fn add_metric(
    fields: &mut Fields,
    name: &str,
    sample: &impl Ranked,
    percentiles: &[f64],
) {
    fields.insert(format!("mean_{name}_ms"), sample.mean());
    fields.insert(format!("median_{name}_ms"), sample.percentile(50.0));
    fields.insert(format!("std_{name}_ms"), sample.standard_deviation());
    for percent in percentiles {
        fields.insert(format!("p{percent}_{name}_ms"), sample.percentile(*percent));
    }
}

/// The lists that both write, one place for each request, in the order of the log.
pub(crate) fn write_details<I: Iterator<Item = RequestRecord>>(
    object: &mut Object<'_>,
    run: &ConvertedRun<'_>,
    view: View,
    records: &impl Fn() -> I,
) -> Result<(), ExchangeError> {
    let all = || records().filter(is_counted);
    let times = |record: &RequestRecord| RequestTimes::from_record(record, view, run);
    let output = |record: &RequestRecord| if record.is_ok() { output_tokens(record) } else { 0 };
    object.list("input_lens", all().map(|record| input_tokens(&record)))?;
    object.list("output_lens", all().map(|record| output(&record)))?;
    let ttft = |record: &RequestRecord| times(record).ttft.map_or(0.0, Nanos::as_secs);
    object.list("ttfts", all().map(|record| ttft(&record)))?;
    let gaps = |record: &RequestRecord| -> Vec<f64> {
        let ok = record.is_ok();
        times(record).gaps(record).filter(|_| ok).map(|micros| micros as f64 / 1e6).collect()
    };
    object.list("itls", all().map(|record| gaps(&record)))?;
    if view == View::Vllm {
        object.list("start_times", all().map(|record| times(&record).start.as_secs()))?;
        let latency = |record: &RequestRecord| {
            if record.is_ok() { times(record).latency.as_secs() } else { 0.0 }
        };
        object.list("latencies", all().map(|record| latency(&record)))?;
        let queued = |record: &RequestRecord| times(record).start - record.scheduled;
        object.list("queue_times", all().map(|record| queued(&record).as_secs()))?;
    }
    object.list("generated_texts", all().map(|_| ""))?;
    object.list("errors", all().map(|record| error_text(&record)))
}

/// Class and message of a failure; empty if there is none.
fn error_text(record: &RequestRecord) -> String {
    let failure = record.exchange.failure.as_ref();
    failure.map_or_else(String::new, |failure| format!("{}: {}", failure.class, failure.message))
}
