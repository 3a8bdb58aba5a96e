//! [`RequestTally`]: what the requests of a run say, added up one by one while it runs.

use std::collections::BTreeMap;

use goodput_model::{BoundedHistogram, ErrorClass, LogHistogram, Nanos, RequestRecord};

use crate::request::tpot_ms;

/// The most answers of one request that are followed.
const MOST_ANSWERS: usize = 1024;

/// Where times are added up.
pub trait TimeTally {
    /// A time that was complete at this instant of the run.
    fn add(&mut self, at: Nanos, time: Nanos);

    /// One that had grown so far when it was given up at this instant: longer than anything.
    fn add_unfinished(&mut self, at: Nanos, so_far: Nanos);
}

impl TimeTally for LogHistogram {
    fn add(&mut self, _: Nanos, time: Nanos) {
        self.add(time);
    }

    fn add_unfinished(&mut self, _: Nanos, _: Nanos) {
        self.add_unfinished();
    }
}

impl TimeTally for BoundedHistogram {
    fn add(&mut self, _: Nanos, time: Nanos) {
        self.add_time(time);
    }

    fn add_unfinished(&mut self, _: Nanos, so_far: Nanos) {
        self.add_unfinished(so_far);
    }
}

/// Sums over all requests that have ended, whatever their phase. Bounded, however long a run is.
#[derive(Debug, Clone)]
pub struct RequestTally<T> {
    /// Whether answers come in pieces.
    pub stream: bool,
    /// Requests of which a byte was written.
    pub sent: u64,
    /// Tokens of prompts as the server counts them, or as planned.
    pub prompt_tokens: u64,
    /// By class of error.
    pub failed: BTreeMap<ErrorClass, u64>,
    /// Times to the first token.
    pub ttft: T,
    /// Gaps between the chunks of an answer.
    pub itl: T,
    /// Times for each token after the first.
    pub tpot: T,
    /// Times from the scheduled instant to the last token.
    pub e2e: T,
    /// Sends after their instant.
    pub slip: T,
}

impl<T: TimeTally + Default> RequestTally<T> {
    /// Of no request.
    pub fn new(stream: bool) -> Self {
        let of = T::default;
        Self::from_times(stream, [of(), of(), of(), of(), of()])
    }
}

impl<T: TimeTally> RequestTally<T> {
    /// Of no request, with the times in the order of the fields.
    pub fn from_times(stream: bool, [ttft, itl, tpot, e2e, slip]: [T; 5]) -> Self {
        let failed = BTreeMap::new();
        Self { stream, sent: 0, prompt_tokens: 0, failed, ttft, itl, tpot, e2e, slip }
    }

    /// A request has ended. By the definitions of the report: failed requests have no latency, and
    /// those that ran into a limit have one that is longer than anything.
    pub fn add(&mut self, record: &RequestRecord) {
        let exchange = &record.exchange;
        let stamps = &exchange.stamps;
        let at = stamps.ended;
        self.sent += u64::from(stamps.sent_first.is_some());
        if let Some(slip) = record.slip() {
            self.slip.add(at, slip);
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
        let given_up = at - record.scheduled;
        if self.stream {
            match stamps.first_token {
                Some(first) => self.ttft.add(at, first - record.scheduled),
                None if is_unfinished => self.ttft.add_unfinished(at, given_up),
                None => {}
            }
            if let Some(tpot) = tpot_ms(record) {
                self.tpot.add(at, Nanos::from_secs_f64(tpot / 1e3));
            }
            self.add_gaps(record);
        }
        match stamps.last_token {
            _ if is_unfinished => self.e2e.add_unfinished(at, given_up),
            Some(last) => self.e2e.add(at, last - record.scheduled),
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
                self.itl.add(chunk.at, chunk.at - last);
            }
        }
    }
}
