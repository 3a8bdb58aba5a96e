//! What arrives during an interval, and whether a server keeps up with it.

use goodput_model::{Nanos, RequestRecord, TokenCount, TokenSource};

use crate::estimate::{BATCHES, Ratio};
use crate::sample::Sample;
use crate::summary::Throughput;
use crate::window::Window;

/// What passed during an interval.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    completions: u64,
    output_tokens: f64,
    input_tokens: f64,
    /// Completions and output tokens of the requests that ended in each batch of time.
    batches: [(f64, f64); BATCHES as usize],
}

/// The second half of the window: arrivals and completions, who is there at its ends, and the
/// wait for an answer in each of its halves.
#[derive(Debug, Default)]
pub(crate) struct Balance {
    pub(crate) arrivals: u64,
    pub(crate) completions: u64,
    pub(crate) in_flight_start: u64,
    pub(crate) in_flight_middle: u64,
    pub(crate) in_flight_end: u64,
    third_quarter: Sample,
    last_quarter: Sample,
}

impl Flow {
    pub(crate) fn add(&mut self, record: &RequestRecord, window: Window) {
        let exchange = &record.exchange;
        let stamps = &exchange.stamps;
        if record.is_ok() && window.contains(record.end()) {
            self.completions += 1;
        }
        // A prompt has been worked through when its first token is there. What an answer that
        // failed had for a prompt is known only if its usage came.
        let worked_through = stamps.first_token.or(stamps.last_token);
        let is_known = record.is_ok() || exchange.input_tokens.is_some();
        if is_known && worked_through.is_some_and(|at| window.contains(at)) {
            self.input_tokens += f64::from(input_tokens(record).n);
        }
        let total = exchange.output_tokens.map(|count| count.n);
        let arrived = arrived_tokens(record, total, window);
        self.output_tokens += arrived;
        let is_over = record.is_ok() && window.contains(record.end());
        if let Some(batch) = self.batches.get_mut(usize::from(window.batch_of(record.end()))) {
            batch.0 += f64::from(u8::from(is_over));
            batch.1 += arrived;
        }
    }

    /// From where to where completions and output tokens per second may lie, by how much batches of
    /// time differ.
    pub(crate) fn rate_intervals(&self, window: Window) -> [Option<(f64, f64)>; 2] {
        let seconds = window.seconds() / f64::from(BATCHES);
        let ends = |of: fn(&(f64, f64)) -> f64| {
            let found = Ratio::from_batches(self.batches.iter().map(|batch| (1, of(batch))))?;
            let (low, high) = found.confidence_interval();
            (seconds > 0.0).then(|| (low.max(0.0) / seconds, high / seconds))
        };
        [ends(|batch| batch.0), ends(|batch| batch.1)]
    }

    pub(crate) fn rates_in_window(&self, window: Window) -> Throughput {
        let seconds = window.seconds();
        let rate = |amount: f64| (seconds > 0.0).then(|| amount / seconds);
        Throughput {
            requests_per_s: rate(self.completions as f64),
            output_tokens_per_s: rate(self.output_tokens),
            total_tokens_per_s: rate(self.input_tokens + self.output_tokens),
        }
    }
}

impl Balance {
    pub(crate) fn add(&mut self, record: &RequestRecord, window: Window) {
        let (scheduled, end) = (record.scheduled, record.end());
        let dispatched = record.exchange.stamps.dispatched;
        let quarter = Nanos((window.end - window.start).0 / 4);
        let middle = window.end - quarter - quarter;
        let is_late = |at: Nanos| middle <= at && at < window.end;
        let is_there = |at: Nanos| dispatched <= at && at < end;
        self.arrivals += u64::from(is_late(scheduled));
        self.completions += u64::from(is_late(end));
        self.in_flight_start += u64::from(is_there(window.start));
        self.in_flight_middle += u64::from(is_there(middle));
        self.in_flight_end += u64::from(is_there(window.end));
        if is_late(scheduled) {
            let is_last = scheduled >= window.end - quarter;
            let sample = if is_last { &mut self.last_quarter } else { &mut self.third_quarter };
            let answered = record.exchange.stamps.first_token.or(record.exchange.stamps.last_token);
            match answered {
                Some(at) => sample.push((at - scheduled).as_ms()),
                None => sample.push_censored(),
            }
        }
    }

    /// By how much the median wait grew from the third quarter of the window to the last.
    pub(crate) fn wait_growth(&self) -> Option<f64> {
        let median = |sample: &Sample| {
            let mut sample = sample.clone();
            sample.sort();
            // Beyond every time limit, when half of them have no answer.
            (!sample.is_empty()).then(|| sample.percentile(50.0).unwrap_or(f64::INFINITY))
        };
        Some(median(&self.last_quarter)? / median(&self.third_quarter)?)
    }
}

/// Prompt tokens by the server's word, else by plan.
pub(crate) fn input_tokens(record: &RequestRecord) -> TokenCount {
    let planned = TokenCount { n: record.planned.input_tokens, source: TokenSource::Planned };
    record.exchange.input_tokens.unwrap_or(planned)
}

/// Of this many output tokens of a request, those that arrived inside the window. Where chunks do not
/// say how many tokens they hold, the total is spread over them evenly.
pub(crate) fn arrived_tokens(record: &RequestRecord, total: Option<u32>, window: Window) -> f64 {
    let exchange = &record.exchange;
    let total = total.map(f64::from);
    if exchange.chunks.is_empty() {
        let arrived = exchange.stamps.last_token.is_some_and(|at| window.contains(at));
        return if arrived { total.unwrap_or(0.0) } else { 0.0 };
    }
    let listed: Option<u64> = exchange.chunks.iter().map(|chunk| chunk.tokens.map(u64::from)).sum();
    let even = total.unwrap_or(exchange.chunks.len() as f64) / exchange.chunks.len() as f64;
    // Listed tokens may miss what carried no text (an end-of-text token): the total holds.
    let scale = match (listed, total) {
        (Some(listed), Some(total)) if listed > 0 => total / listed as f64,
        _ => 1.0,
    };
    let weight = |tokens: Option<u32>| match (listed, tokens) {
        (Some(_), Some(tokens)) => f64::from(tokens) * scale,
        _ => even,
    };
    let inside = exchange.chunks.iter().filter(|chunk| window.contains(chunk.at));
    inside.map(|chunk| weight(chunk.tokens)).sum()
}

/// Events per second inside the window; none if all happen at once.
pub(crate) fn rate_of(events: &[Nanos], window: Window) -> Option<f64> {
    let inside = events.iter().filter(|at| window.contains(**at)).count() as f64;
    (!window.is_makespan() && window.seconds() > 0.0).then(|| inside / window.seconds())
}

/// Coefficient of variation of the gaps between instants.
pub(crate) fn gap_cv(sorted: &[Nanos]) -> Option<f64> {
    let gaps: Vec<f64> = sorted.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    (gaps.len() > 1 && mean > 0.0).then(|| variance.sqrt() / mean)
}
