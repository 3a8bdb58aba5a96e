//! What a screen knows of a run, added up on the collector's thread. Bounded, however long a run is.

use std::collections::{BTreeMap, VecDeque};

use goodput_engine::Snapshot;
use goodput_fleet::Totals;
use goodput_model::{GpuSample, LoopLag, Nanos, RequestRecord, Scrape, Signal, SignalValue};
use goodput_stats::{RequestTally, TimeTally};

use super::series::LatencySeries;
use crate::view::{ClientView, LatencyView, ServerView};

/// Seconds that sparklines reach back.
const HISTORY: usize = 300;
/// Rates are over this time.
const RECENT: Nanos = Nanos::from_millis(5_000);

/// The counters of the engine at an instant of the run.
pub(super) type Tick = (Nanos, Snapshot);

/// Rates of the last seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RecentRates {
    pub(super) sent: f64,
    pub(super) ok: f64,
    pub(super) tokens: f64,
}

/// What a run has said so far.
#[derive(Debug)]
pub struct RunTally {
    requests: RequestTally<LatencySeries>,
    lag: LatencySeries,
    /// One a second.
    ticks: VecDeque<Tick>,
    /// The last answer of each page of metrics.
    pages: BTreeMap<u32, Option<LastScrape>>,
    gpus: BTreeMap<u32, (Option<f64>, Option<f64>)>,
    /// Queue and KV cache in percent, one a second.
    queue: VecDeque<(u64, u64)>,
}

/// What one page said last.
#[derive(Debug, Clone, Copy, Default)]
struct LastScrape {
    running: Option<f64>,
    waiting: Option<f64>,
    kv: Option<f64>,
}

impl RunTally {
    /// Of no request.
    pub fn new(stream: bool) -> Self {
        Self {
            requests: RequestTally::new(stream),
            lag: LatencySeries::default(),
            ticks: VecDeque::from([(Nanos::ZERO, Snapshot::default())]),
            pages: BTreeMap::new(),
            gpus: BTreeMap::new(),
            queue: VecDeque::new(),
        }
    }

    /// A request has ended.
    pub fn add(&mut self, record: &RequestRecord) {
        self.requests.add(record);
    }

    /// What all other clients have counted so far.
    pub(super) fn set_others(&mut self, at: Nanos, others: &Totals) {
        self.requests.ttft.set_others(at, &others.ttft);
        self.requests.itl.set_others(at, &others.itl);
        self.requests.tpot.set_others(at, &others.tpot);
        self.requests.e2e.set_others(at, &others.e2e);
    }

    /// A second has passed: so late loops were called in it, and so far the run is.
    pub(super) fn tick(&mut self, at: Nanos, beats: &[LoopLag], seen: Snapshot) {
        for beat in beats {
            self.lag.add(at, beat.lag);
        }
        push_bounded(&mut self.ticks, (at, seen));
        let (queue, kv) = (self.waiting_requests(), self.kv_usage());
        if queue.is_some() || kv.is_some() {
            let percent = kv.unwrap_or(0.0) * 100.0;
            push_bounded(&mut self.queue, (queue.unwrap_or(0.0) as u64, percent as u64));
        }
    }

    /// What was seen of the server's side since the last time.
    pub(super) fn add_server_samples(&mut self, scrapes: &[Scrape], gpus: &[GpuSample]) {
        for scrape in scrapes {
            let page = scrape.outcome.as_ref().ok().map(|reading| {
                let number = |signal| match reading.values.get(&signal) {
                    Some(SignalValue::Number(number)) if number.is_finite() => Some(*number),
                    _ => None,
                };
                let kv = number(Signal::KvUsageMax).or_else(|| number(Signal::KvUsage));
                LastScrape {
                    running: number(Signal::Running),
                    waiting: number(Signal::Waiting),
                    kv,
                }
            });
            self.pages.insert(scrape.endpoint, page);
        }
        for sample in gpus {
            self.gpus.insert(sample.gpu, (sample.busy, sample.power_w));
        }
    }

    fn waiting_requests(&self) -> Option<f64> {
        self.pages.values().flatten().filter_map(|page| page.waiting).reduce(|sum, one| sum + one)
    }

    fn kv_usage(&self) -> Option<f64> {
        self.pages.values().flatten().filter_map(|page| page.kv).reduce(f64::max)
    }

    /// Every latency that this run has.
    pub fn latency_views(&self, at: Nanos) -> Vec<LatencyView> {
        let RequestTally { ttft, itl, tpot, e2e, .. } = &self.requests;
        let all = [("TTFT", ttft), ("ITL", itl), ("TPOT", tpot), ("E2E", e2e)];
        let own = all.into_iter().skip(if self.requests.stream { 0 } else { 3 });
        own.map(|(name, series)| {
            let (now, so_far) = series.recent_and_total(at);
            LatencyView { name: name.to_owned(), now, so_far }
        })
        .collect()
    }

    pub(super) fn client_view(&self, at: Nanos, lost: u64) -> ClientView {
        let (slip_now, slip) = self.requests.slip.recent_and_total(at);
        let (lag_now, lag) = self.lag.recent_and_total(at);
        ClientView { slip, slip_now, lag, lag_now, lost }
    }

    /// The most frequent first.
    pub(super) fn frequent_errors(&self) -> Vec<(String, u64)> {
        let mut all: Vec<_> =
            self.requests.failed.iter().map(|(class, n)| (class.to_string(), *n)).collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all
    }

    /// `None` without any reading.
    pub(super) fn server_view(&self) -> Option<ServerView> {
        if self.pages.values().all(Option::is_none) && self.gpus.is_empty() {
            return None;
        }
        let told = || self.pages.values().flatten();
        let busy: Vec<f64> = self.gpus.values().filter_map(|gpu| gpu.0).collect();
        Some(ServerView {
            running: told().filter_map(|page| page.running).reduce(|sum, one| sum + one),
            waiting: self.waiting_requests(),
            kv: self.kv_usage(),
            queue: self.queue.iter().map(|one| one.0).collect(),
            kvs: self.queue.iter().map(|one| one.1).collect(),
            gpu: (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64),
            watts: self.gpus.values().filter_map(|gpu| gpu.1).reduce(|sum, one| sum + one),
            silent: (self.pages.values().filter(|page| page.is_none()).count(), self.pages.len()),
        })
    }

    /// Output tokens and requests in flight, second by second.
    pub(super) fn recent_history(&self) -> (Vec<u64>, Vec<u64>) {
        let pairs = self.ticks.iter().zip(self.ticks.iter().skip(1));
        let tokens = pairs
            .map(|(before, after)| {
                let took = (after.0 - before.0).as_secs().max(0.001);
                (after.1.tokens.saturating_sub(before.1.tokens) as f64 / took) as u64
            })
            .collect();
        (tokens, self.ticks.iter().map(|tick| tick.1.in_flight()).collect())
    }

    /// Over the last seconds up to this tick; none of a run that has hardly begun.
    pub(super) fn recent_rates(&self, (at, seen): Tick) -> Option<RecentRates> {
        let from = self.ticks.iter().find(|tick| tick.0 + RECENT >= at).or(self.ticks.back())?;
        let took = (at - from.0).as_secs();
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / took;
        (took > 0.5).then(|| RecentRates {
            sent: rate(seen.started, from.1.started),
            ok: rate(seen.ok, from.1.ok),
            tokens: rate(seen.tokens, from.1.tokens),
        })
    }
}

fn push_bounded<T>(into: &mut VecDeque<T>, item: T) {
    if into.len() >= HISTORY {
        into.pop_front();
    }
    into.push_back(item);
}

#[cfg(test)]
mod tests {
    use goodput_model::ServerReading;

    use super::*;

    fn seen(started: u64, ok: u64, tokens: u64) -> Snapshot {
        Snapshot { started, ok, tokens, ..Snapshot::default() }
    }

    #[test]
    fn rates_are_of_the_last_seconds() {
        let mut tally = RunTally::new(true);
        let s = |s: u64| Nanos::from_millis(s * 1_000);
        assert_eq!(tally.recent_rates((Nanos::from_millis(100), seen(9, 0, 0))), None);
        for n in 1..=20 {
            // Ten a second at first, then thirty.
            let sent = if n <= 10 { 10 * n } else { 100 + 30 * (n - 10) };
            tally.tick(s(n), &[], seen(sent, sent, 100 * n));
        }
        let rates = tally.recent_rates((s(21), seen(430, 400, 2_100))).unwrap();
        assert_eq!((rates.sent, rates.ok, rates.tokens), (30.0, 24.0, 100.0));
        let (tokens, under_way) = tally.recent_history();
        assert_eq!((tokens.len(), under_way.len()), (20, 21));
        assert!(tokens.iter().all(|n| *n == 100));
        (0..1000).for_each(|n| tally.tick(s(30 + n), &[], seen(0, 0, 0)));
        assert_eq!(tally.recent_history().1.len(), HISTORY);
    }

    #[test]
    fn servers_are_added_up_and_silence_is_said() {
        let mut tally = RunTally::new(true);
        assert_eq!(tally.server_view(), None);
        let scrape = |endpoint, numbers: Option<[f64; 3]>| {
            let signals = [Signal::Running, Signal::Waiting, Signal::KvUsage];
            let outcome = numbers.map(|numbers| ServerReading {
                values: signals.into_iter().zip(numbers.map(SignalValue::Number)).collect(),
                ..ServerReading::default()
            });
            let outcome = outcome.ok_or_else(|| "late".to_owned());
            Scrape { at: Nanos::ZERO, took: Nanos::ZERO, endpoint, outcome }
        };
        tally.add_server_samples(
            &[scrape(0, Some([4.0, 2.0, 0.5])), scrape(1, Some([3.0, 1.0, 0.75]))],
            &[],
        );
        tally.tick(Nanos::from_millis(1_000), &[], Snapshot::default());
        let server = tally.server_view().unwrap();
        assert_eq!((server.running, server.waiting, server.kv), (Some(7.0), Some(3.0), Some(0.75)));
        assert_eq!((server.queue, server.kvs, server.silent), (vec![3], vec![75], (0, 2)));
        tally.add_server_samples(&[scrape(1, None)], &[]);
        let server = tally.server_view().unwrap();
        assert_eq!((server.running, server.silent), (Some(4.0), (1, 2)));
    }
}
