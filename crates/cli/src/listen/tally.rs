//! What ended requests and the workers' loops say, added up.

use std::collections::{BTreeMap, VecDeque};

use goodput_model::{Beat, BoundedHistogram, ErrorClass, Nanos, RequestRecord};

use super::histogram::{E2E, ITL, LATE, TTFT};

/// How far back the largest lag is kept: longer than a scraper is usually away.
const LOOK_BACK: Nanos = Nanos::from_millis(15_000);

/// The most answers of one request that are followed.
const MOST_ANSWERS: usize = 1024;

/// Sums over all requests that have ended, whatever their phase.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    stream: bool,
    pub(super) sent: u64,
    pub(super) prompt_tokens: u64,
    pub(crate) failed: BTreeMap<ErrorClass, u64>,
    pub(crate) ttft: BoundedHistogram,
    pub(crate) itl: BoundedHistogram,
    pub(crate) e2e: BoundedHistogram,
    pub(super) slip: BoundedHistogram,
    pub(super) lag: BoundedHistogram,
    /// The largest of each look.
    lags: VecDeque<(Nanos, Nanos)>,
}

impl Tally {
    pub(crate) fn new(stream: bool) -> Self {
        Self {
            stream,
            sent: 0,
            prompt_tokens: 0,
            // A family is on the page before its first sample; this class every target knows.
            failed: BTreeMap::from([(ErrorClass::Timeout, 0)]),
            ttft: BoundedHistogram::from_time_bounds(&[TTFT]),
            itl: BoundedHistogram::from_time_bounds(&[ITL]),
            e2e: BoundedHistogram::from_time_bounds(&[E2E]),
            slip: BoundedHistogram::from_time_bounds(&[LATE]),
            lag: BoundedHistogram::from_time_bounds(&[LATE]),
            lags: VecDeque::new(),
        }
    }

    /// By the definitions of the report: failed requests have no latency, and those that ran into a
    /// limit have one that is longer than anything.
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        let exchange = &record.exchange;
        let stamps = &exchange.stamps;
        self.sent += u64::from(stamps.sent_first.is_some());
        if let Some(slip) = record.slip() {
            self.slip.add_time(slip);
        }
        // Of a failed answer they count where its usage came.
        let planned = record.is_ok().then_some(record.planned.input_tokens);
        let prompt = exchange.input_tokens.map(|count| count.n).or(planned);
        self.prompt_tokens += prompt.map_or(0, u64::from);
        let class = exchange.failure.as_ref().map(|failure| failure.class);
        if let Some(class) = class {
            *self.failed.entry(class).or_default() += 1;
        }
        let is_unfinished = class.is_some_and(ErrorClass::is_censored);
        if class.is_some() && !is_unfinished {
            return;
        }
        let given_up = stamps.ended - record.scheduled;
        if self.stream {
            match stamps.first_token {
                Some(first) => self.ttft.add_time(first - record.scheduled),
                None if is_unfinished => self.ttft.add_unfinished(given_up),
                None => {}
            }
            self.add_gaps(record);
        }
        match stamps.last_token {
            _ if is_unfinished => self.e2e.add_unfinished(given_up),
            Some(last) => self.e2e.add_time(last - record.scheduled),
            None => {}
        }
    }

    /// Between the chunks of each answer.
    fn add_gaps(&mut self, record: &RequestRecord) {
        let mut latest: Vec<Option<Nanos>> = Vec::new();
        for chunk in &record.exchange.chunks {
            let answer = chunk.choice as usize;
            if latest.len() <= answer && answer < MOST_ANSWERS {
                latest.resize(answer + 1, None);
            }
            let last = latest.get_mut(answer).and_then(|last| last.replace(chunk.at));
            if let Some(last) = last {
                self.itl.add_time(chunk.at - last);
            }
        }
    }

    /// Loops were called so late since the last time.
    pub(super) fn observe(&mut self, at: Nanos, beats: &[Beat]) {
        for beat in beats {
            self.lag.add_time(beat.lag);
        }
        let largest = beats.iter().map(|beat| beat.lag).max().unwrap_or(Nanos::ZERO);
        self.lags.push_back((at, largest));
        while self.lags.front().is_some_and(|(old, _)| *old + LOOK_BACK < at) {
            self.lags.pop_front();
        }
    }

    pub(super) fn largest_lag(&self) -> Nanos {
        self.lags.iter().map(|(_, lag)| *lag).max().unwrap_or(Nanos::ZERO)
    }
}
