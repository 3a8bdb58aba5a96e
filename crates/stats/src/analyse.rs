//! [`analyse`]: two passes over the records. The first finds the window, the second fills it.

use std::collections::BTreeMap;

use goodput_model::{
    Arrivals, Mode, Nanos, Phase, Plan, Rate, RequestRecord, Sample as Seen, TokenCount, Verdict,
};

use crate::caveats::{self, Evidence};
use crate::client::ClientTally;
use crate::cuts::Cuts;
use crate::kolmogorov::exponential_gaps;
use crate::metrics::Metrics;
use crate::sample::Sample;
use crate::summary::{
    ClientSummary, ErrorDetail, LittlesLaw, LoadSummary, Requests, RunFacts, RunState, Summary,
    Throughput, Tokens, WindowSummary,
};
use crate::waterfall::Waterfalls;
use crate::window::{Extremes, Kind, Window};

/// The numbers of a run, from its records and from what was observed beside them. `records` is
/// called twice and must give the same records each time.
pub fn analyse<I: Iterator<Item = RequestRecord>>(
    plan: &Plan,
    run: RunFacts,
    records: impl Fn() -> I,
    samples: &[Seen],
) -> Summary {
    let mut extremes = Extremes::default();
    records().for_each(|record| extremes.add(&record));
    let window = extremes.window(&plan.load, run.state);
    let whole = Window {
        start: extremes.first.unwrap_or_default(),
        end: extremes.last.unwrap_or_default(),
        kind: Kind::Makespan,
    };
    let mut tally = Tally::new(window, whole, plan.target.stream, Cuts::new(samples));
    records().for_each(|record| tally.add(&record));
    tally.finish(plan, run, samples)
}

/// Everything that a second pass adds up.
struct Tally {
    window: Window,
    whole: Window,
    stream: bool,
    metrics: Metrics,
    requests: Requests,
    tokens: Tokens,
    input_sources: BTreeMap<&'static str, u64>,
    output_sources: BTreeMap<&'static str, u64>,
    slip: Sample,
    scheduled: Vec<Nanos>,
    sent: Vec<Nanos>,
    delayed: u64,
    in_window: Flow,
    in_whole: Flow,
    /// Time that requests spent under way inside the window.
    residence: Nanos,
    balance: Balance,
    waterfalls: Waterfalls,
    cuts: Cuts,
    /// Measured requests that a stall of the client has touched.
    touched: u64,
    client: ClientTally,
    /// Mean time under way of measured requests.
    time_under_way: Sample,
    events_in_window: u64,
}

/// What passed during an interval.
#[derive(Default)]
struct Flow {
    completions: u64,
    output_tokens: f64,
    input_tokens: f64,
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

impl Tally {
    fn new(window: Window, whole: Window, stream: bool, cuts: Cuts) -> Self {
        Self {
            window,
            whole,
            stream,
            metrics: Metrics::default(),
            requests: Requests::default(),
            tokens: Tokens::default(),
            input_sources: BTreeMap::new(),
            output_sources: BTreeMap::new(),
            slip: Sample::default(),
            scheduled: Vec::new(),
            sent: Vec::new(),
            delayed: 0,
            in_window: Flow::default(),
            in_whole: Flow::default(),
            residence: Nanos::ZERO,
            balance: Balance::default(),
            waterfalls: Waterfalls::default(),
            cuts,
            touched: 0,
            client: ClientTally::default(),
            time_under_way: Sample::default(),
            events_in_window: 0,
        }
    }

    fn add(&mut self, record: &RequestRecord) {
        // A makespan is that of the measured requests, so it counts only those.
        if record.phase == Phase::Measured || !self.window.is_makespan() {
            self.in_window.add(record, self.window);
        }
        self.in_whole.add(record, self.whole);
        // A request that a cap holds back is not yet on its way.
        self.residence += self.window.overlap(record.exchange.stamps.dispatched, record.end());
        self.balance.add(record, self.window);
        let arrivals = record.exchange.chunks.iter().filter(|chunk| self.window.contains(chunk.at));
        self.events_in_window += arrivals.count() as u64;
        match record.phase {
            Phase::Warmup => self.requests.warmup += 1,
            Phase::Cooldown => self.requests.cooldown += 1,
            Phase::Measured => self.add_measured(record),
        }
    }

    fn add_measured(&mut self, record: &RequestRecord) {
        self.metrics.add(record, self.stream, &self.cuts);
        self.client.add(record);
        if self.cuts.touches(record) {
            self.touched += 1;
        } else {
            self.waterfalls.add(record);
        }
        self.time_under_way.push((record.end() - record.exchange.stamps.dispatched).as_secs());
        self.add_outcome(record);
        self.scheduled.push(record.scheduled);
        self.delayed += u64::from(record.cap_wait > Nanos::ZERO);
        // What was due in a stall is on record as the stall.
        if let Some(slip) =
            record.slip().filter(|_| !self.cuts.is_doubtful(record, record.scheduled))
        {
            self.slip.push(slip.as_ms());
        }
        self.sent.extend(record.exchange.stamps.sent_first);
        if record.is_ok() {
            self.add_tokens(record);
        }
    }

    fn add_outcome(&mut self, record: &RequestRecord) {
        let (requests, exchange) = (&mut self.requests, &record.exchange);
        requests.scheduled += 1;
        requests.reconnects += u64::from(exchange.reconnects);
        requests.connects += u64::from(exchange.stamps.connect.is_some());
        let Some(failure) = &exchange.failure else {
            requests.ok += 1;
            let reason = exchange.finish.clone().unwrap_or_default();
            *requests.finish_reasons.entry(reason).or_default() += 1;
            return;
        };
        requests.failed += 1;
        let class = failure.class.to_string();
        let stage = failure.stage.name();
        *requests.errors.entry(class.clone()).or_default() += 1;
        *requests.errors_by_stage.entry(stage.to_owned()).or_default() += 1;
        let same = |detail: &&mut ErrorDetail| detail.class == class && detail.stage == stage;
        match requests.error_details.iter_mut().find(same) {
            Some(detail) => detail.count += 1,
            None => requests.error_details.push(ErrorDetail {
                stage: stage.to_owned(),
                class,
                count: 1,
                message: failure.message.clone(),
            }),
        }
    }

    fn add_tokens(&mut self, record: &RequestRecord) {
        let exchange = &record.exchange;
        let input = input_tokens(record);
        self.tokens.input += u64::from(input.n);
        *self.input_sources.entry(input.source.name()).or_default() += 1;
        if let Some(output) = exchange.output_tokens {
            self.tokens.output += u64::from(output.n);
            *self.output_sources.entry(output.source.name()).or_default() += 1;
        } else {
            self.tokens.uncounted += 1;
        }
        if let Some(cached) = exchange.cached_tokens {
            *self.tokens.cached.get_or_insert(0) += u64::from(cached);
        }
        self.tokens.chunks += exchange.chunks.len() as u64;
        self.tokens.coalesced_chunks +=
            exchange.chunks.iter().filter(|chunk| chunk.coalesced).count() as u64;
    }

    fn finish(mut self, plan: &Plan, run: RunFacts, samples: &[Seen]) -> Summary {
        // In order of weight, then of name: the same page whatever came first.
        self.requests.error_details.sort_by_key(|detail| {
            (std::cmp::Reverse(detail.count), detail.class.clone(), detail.stage.clone())
        });
        self.tokens.input_source = source(&self.input_sources);
        self.tokens.output_source = source(&self.output_sources);
        let load = self.load(plan);
        let client = self.client(samples, &load);
        let caveats = caveats::find(&Evidence {
            plan,
            run: &run,
            load: &load,
            requests: &self.requests,
            tokens: &self.tokens,
            window: self.window,
            balance: &self.balance,
            client: &client,
            ttft_p50_ms: self.metrics.ttft_p50(),
            itl_p50_ms: self.metrics.itl_p50(),
            run_end_s: self.whole.end.as_secs(),
            completions_per_s: self.in_window.rates(self.window).requests_per_s,
        });
        Summary {
            schema: Summary::SCHEMA.to_owned(),
            verdict: Verdict::of(&caveats),
            caveats,
            run,
            load,
            throughput: self.in_window.rates(self.window),
            whole_run: self.in_whole.rates(self.whole),
            window: WindowSummary {
                start_s: self.window.start.as_secs(),
                end_s: self.window.end.as_secs(),
                kind: if self.window.is_makespan() { "makespan" } else { "steady" }.to_owned(),
            },
            requests: self.requests,
            tokens: self.tokens,
            metrics: self.metrics.finish(&percentiles(plan)),
            waterfall: self.waterfalls.finish(),
            client,
        }
    }

    fn client(&mut self, samples: &[Seen], load: &LoadSummary) -> ClientSummary {
        let last = self.whole.end;
        let mut client = std::mem::take(&mut self.client).finish(samples, self.window, last);
        client.stalls.requests = self.touched;
        client.tcp.opened = self.requests.connects;
        client.tcp.reused = (self.sent.len() as u64).saturating_sub(self.requests.connects);
        let seconds = self.window.seconds();
        client.events_per_s = (seconds > 0.0).then(|| self.events_in_window as f64 / seconds);
        client.littles_law = self.littles_law(load);
        client
    }

    /// METHOD 3.8: L = λR within what requests at the ends of the window can explain.
    fn littles_law(&self, load: &LoadSummary) -> Option<LittlesLaw> {
        let (in_flight, arrivals_per_s) = (load.in_flight_mean?, load.scheduled_rps?);
        let residence_s = self.time_under_way.mean()?;
        let straddling = self.balance.in_flight_start + self.balance.in_flight_end;
        let arrivals = arrivals_per_s * self.window.seconds();
        (in_flight > 0.0 && arrivals > 0.0).then(|| LittlesLaw {
            in_flight,
            arrivals_per_s,
            residence_s,
            residual: (in_flight - arrivals_per_s * residence_s).abs() / in_flight,
            limit: (2.0 * straddling as f64 / arrivals).max(0.02),
        })
    }

    fn load(&mut self, plan: &Plan) -> LoadSummary {
        let (offered_rps, arrivals, max_concurrency, concurrency) = match &plan.load.mode {
            Mode::Open { rate, arrivals, max_concurrency } => {
                let rate = match rate {
                    Rate::PerSecond(rate) => Some(*rate),
                    Rate::Infinite => None,
                };
                (rate, Some(arrivals.to_string()), *max_concurrency, None)
            }
            Mode::Shaped { arrivals, max_concurrency, .. } => {
                (None, Some(arrivals.to_string()), *max_concurrency, None)
            }
            Mode::Replay { max_concurrency, .. } => (None, None, *max_concurrency, None),
            Mode::Closed { concurrency, .. } => (None, None, None, Some(*concurrency)),
        };
        self.scheduled.sort_unstable();
        self.sent.sort_unstable();
        let seconds = self.window.seconds();
        LoadSummary {
            mode: plan.load.mode.name().to_owned(),
            arrivals,
            offered_rps,
            scheduled_rps: rate_of(&self.scheduled, self.window),
            delivered_rps: rate_of(&self.sent, self.window),
            delivered_share: (!self.scheduled.is_empty())
                .then(|| self.sent.len() as f64 / self.scheduled.len() as f64),
            gap_cv: gap_cv(&self.sent),
            due_gaps: poisson_rate(plan).and_then(|rate| exponential_gaps(&self.scheduled, rate)),
            sent_gaps: poisson_rate(plan).and_then(|rate| exponential_gaps(&self.sent, rate)),
            concurrency,
            max_concurrency,
            delayed: self.delayed,
            slip_ms: std::mem::take(&mut self.slip).quick(),
            in_flight_mean: (seconds > 0.0).then(|| self.residence.as_secs() / seconds),
            in_flight_end: self.balance.in_flight_end,
        }
    }
}

impl Flow {
    fn add(&mut self, record: &RequestRecord, window: Window) {
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
        self.output_tokens += arrived_tokens(record, window);
    }

    fn rates(&self, window: Window) -> Throughput {
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
    fn add(&mut self, record: &RequestRecord, window: Window) {
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
fn input_tokens(record: &RequestRecord) -> TokenCount {
    let planned =
        TokenCount { n: record.planned.input_tokens, source: goodput_model::TokenSource::Planned };
    record.exchange.input_tokens.unwrap_or(planned)
}

/// Output tokens that arrived inside the window. Where chunks do not say how many tokens they
/// hold, the request's total is spread over them evenly.
fn arrived_tokens(record: &RequestRecord, window: Window) -> f64 {
    let exchange = &record.exchange;
    let total = exchange.output_tokens.map(|count| f64::from(count.n));
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

/// The rate of a Poisson process that nothing holds back.
fn poisson_rate(plan: &Plan) -> Option<f64> {
    match plan.load.mode {
        Mode::Open {
            rate: Rate::PerSecond(rate),
            arrivals: Arrivals::Poisson,
            max_concurrency: None,
        } => Some(rate),
        _ => None,
    }
}

/// The percentiles asked for; a plan file may hold anything.
fn percentiles(plan: &Plan) -> Vec<f64> {
    let is_one = |percent: &f64| *percent > 0.0 && *percent < 100.0;
    plan.measure.percentiles.iter().copied().filter(is_one).collect()
}

fn source(sources: &BTreeMap<&'static str, u64>) -> String {
    match sources.len() {
        0 => "none".to_owned(),
        1 => sources.keys().next().copied().unwrap_or_default().to_owned(),
        _ => "mixed".to_owned(),
    }
}

/// Events per second inside the window; there is no such rate where all happen at once.
fn rate_of(events: &[Nanos], window: Window) -> Option<f64> {
    let inside = events.iter().filter(|at| window.contains(**at)).count() as f64;
    (!window.is_makespan() && window.seconds() > 0.0).then(|| inside / window.seconds())
}

fn gap_cv(sorted: &[Nanos]) -> Option<f64> {
    let gaps: Vec<f64> = sorted.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    (gaps.len() > 1 && mean > 0.0).then(|| variance.sqrt() / mean)
}

impl RunFacts {
    /// Whether the run went as far as it was planned to.
    pub(crate) fn is_complete(&self) -> bool {
        self.state == RunState::Complete
    }
}
