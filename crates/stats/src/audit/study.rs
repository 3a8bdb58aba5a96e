//! Runs of a simulated queue, of whose course is known that nothing is wrong with it, or what.

use goodput_model::random::{Domain, RandomStream};
use goodput_model::{Reported, ReportedMode, ReportedRequest, SourceTool};

use super::*;
use crate::column::NumberColumn;

/// The rules were chosen with a look at seeds below this; what the tables say is said by others.
const FRESH: u64 = 2_000_000;

/// A Poisson stream of requests to a server with slots. The first token takes 200 ms, each other one
/// 190 ms; answers have 21 tokens on average, so the time of service is 4 s.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queue {
    pub(super) seed: u64,
    pub(super) slots: usize,
    /// Offered load as a share of the capacity.
    pub(super) load: f64,
    /// Lengths of answers are log-normal with a CV of 1, else exponential.
    pub(super) is_log_normal: bool,
    pub(super) n: usize,
    pub(super) change: Change,
}

/// What is wrong with the first tenth of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    /// TTFT is three times itself.
    SlowFirst,
    /// TPOT is 1.5 times itself.
    SlowTokens,
}

const SERVICE_S: f64 = 4.0;
/// Requests before those of the file: the queue has forgotten that it was empty.
const BEFORE: usize = 2_000;

impl Queue {
    pub(super) fn new(seed: u64, load: f64, n: usize) -> Self {
        Self { seed, slots: 32, load, is_log_normal: false, n, change: Change::Nothing }
    }

    /// The requests in the order of arrival, first come first served.
    pub(super) fn requests(&self) -> Vec<ReportedRequest> {
        let mut random = RandomStream::new(self.seed, Domain::Arrivals, 0);
        let rate = self.load * self.slots as f64 / SERVICE_S;
        let mut free = vec![0.0_f64; self.slots];
        let mut requests = Vec::with_capacity(self.n);
        let mut at = 0.0;
        for place in 0..BEFORE + self.n {
            at += random.draw_exponential() / rate;
            // A log-normal CV of 1 is σ² = ln 2.
            let later = if self.is_log_normal {
                random.draw_log_normal(20.0 / 2f64.sqrt(), 2f64.ln().sqrt())
            } else {
                random.draw_exponential() * 20.0
            };
            let first = random.draw_log_normal(0.196, 0.2);
            let tokens = 1 + later.round() as u64;
            let gaps: Vec<f64> = (1..tokens).map(|_| random.draw_log_normal(0.186, 0.2)).collect();
            let slot = free.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
            let begin = slot.max(at);
            *slot = begin + first + gaps.iter().sum::<f64>();
            let Some(place) = place.checked_sub(BEFORE) else { continue };
            let is_early = place < self.n / 10;
            let slower = |change, by| if is_early && self.change == change { by } else { 1.0 };
            let ttft_ms = (begin + first - at) * slower(Change::SlowFirst, 3.0) * 1e3;
            let ms = slower(Change::SlowTokens, 1.5) * 1e3;
            let gaps_ms: Vec<f64> = gaps.iter().map(|gap| gap * ms).collect();
            requests.push(ReportedRequest {
                start_s: Some(at),
                ttft_ms: Some(ttft_ms),
                e2e_ms: Some(ttft_ms + gaps_ms.iter().sum::<f64>()),
                gaps_ms: Some(gaps_ms),
                input_tokens: Some(100 + random.next_below(400)),
                output_tokens: Some(tokens),
                is_failed: false,
            });
        }
        requests
    }

    /// What the checks of its course need.
    fn reported(&self) -> Reported {
        let mut run = Reported::new(SourceTool::VllmPython);
        let requests = self.requests();
        run.duration_s = Some(span_s(&requests));
        run.load.mode = ReportedMode::Open;
        run.details = Some(requests);
        run
    }
}

fn span_s(requests: &[ReportedRequest]) -> f64 {
    let first = requests[0].start_s.unwrap();
    let end = |r: &ReportedRequest| r.start_s.unwrap() + r.e2e_ms.unwrap() / 1e3;
    requests.iter().map(end).fold(first, f64::max) - first
}

/// What is asked of one kind of queue, in percent of the seeds.
#[derive(Debug, Default, Clone, Copy)]
struct StudyRates {
    cold: f64,
    trend: f64,
    /// The same files without the instants of sending.
    cold_by_order: f64,
    trend_by_order: f64,
    /// A line about a shift or a trend on the page of a column, of TTFT and of E2E.
    column_ttft: f64,
    column_e2e: f64,
}

fn speaks(run: &Reported, check: &str) -> bool {
    let check = all_checks().into_iter().find(|one| one.code == check).unwrap();
    check.audit_item(run).is_some_and(|item| item.severity > Severity::Info)
}

fn moves(values: &[f64]) -> bool {
    let column = NumberColumn::from_values(values, &[50.0], false);
    column.shift.is_some_and(|shift| shift.is_clear)
        || column.trend.is_some_and(|trend| trend.is_clear)
}

fn rates(queue: Queue, seeds: u64) -> StudyRates {
    let mut rates = StudyRates::default();
    let share = 100.0 / seeds as f64;
    for seed in FRESH..FRESH + seeds {
        let mut run = Queue { seed, ..queue }.reported();
        let all = |value: fn(&ReportedRequest) -> Option<f64>| -> Vec<f64> {
            run.details.iter().flatten().filter_map(value).collect()
        };
        let (ttft, e2e) = (all(|r| r.ttft_ms), all(|r| r.e2e_ms));
        let count = |is: bool| f64::from(u8::from(is)) * share;
        rates.column_ttft += count(moves(&ttft));
        rates.column_e2e += count(moves(&e2e));
        rates.cold += count(speaks(&run, "cold_requests"));
        rates.trend += count(speaks(&run, "latency_trend"));
        run.details.iter_mut().flatten().for_each(|request| request.start_s = None);
        rates.cold_by_order += count(speaks(&run, "cold_requests"));
        rates.trend_by_order += count(speaks(&run, "latency_trend"));
    }
    rates
}

/// Values that follow the ones before them, around 1 with a standard deviation of 0.2, and a step in
/// the middle.
fn correlated(seed: u64, n: usize, rho: f64, step: f64) -> Vec<f64> {
    let mut random = RandomStream::new(seed, Domain::Arrivals, 1);
    let mut last = random.draw_normal();
    let value = |place: usize| {
        last = rho * last + (1.0 - rho * rho).sqrt() * random.draw_normal();
        (0.2 * last).exp() * if place < n / 2 { 1.0 } else { 1.0 + step }
    };
    (0..n).map(value).collect()
}

/// Of 40 seeds each; the table has more.
#[test]
fn dependence_is_no_shift_and_a_shift_is_one() {
    let found =
        |n, rho, step| (0..40).filter(|seed| moves(&correlated(*seed, n, rho, step))).count();
    assert!(found(2_000, 0.9, 0.0) <= 2);
    assert!(found(1_000, 0.0, 0.0) <= 2);
    assert!(found(2_000, 0.0, 0.1) >= 36);
    assert!(found(2_000, 0.5, 0.2) >= 36);
}

/// Of 20 seeds each; the table has more.
#[test]
fn a_queue_is_no_cold_start_and_a_cold_start_is_one() {
    let found = |load, change| {
        let run = |seed| Queue { change, ..Queue::new(seed, load, 1_000) }.reported();
        (0..20).filter(|seed| speaks(&run(*seed), "cold_requests")).count()
    };
    assert!(found(0.6, Change::Nothing) <= 1);
    assert!(found(0.8, Change::Nothing) <= 2);
    assert!(found(0.6, Change::SlowFirst) >= 17);
    assert!(found(0.6, Change::SlowTokens) >= 18);
}

/// The table of docs/design/013.
#[test]
#[ignore = "minutes; SEEDS=300 cargo test --release -p goodput-stats audit::study -- --ignored --nocapture"]
fn tables() {
    let seeds: u64 = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    for load in [0.6, 0.8, 0.9] {
        for slots in [16, 32] {
            for is_log_normal in [false, true] {
                for n in [1_000, 4_000] {
                    let queue = Queue { slots, is_log_normal, ..Queue::new(0, load, n) };
                    println!("{load} {slots} {is_log_normal} {n}: {:.1?}", rates(queue, seeds));
                }
            }
        }
    }
    for change in [Change::SlowFirst, Change::SlowTokens] {
        for (load, n) in [(0.6, 1_000), (0.6, 4_000), (0.8, 1_000), (0.8, 4_000)] {
            let queue = Queue { change, ..Queue::new(0, load, n) };
            println!("{change:?} {load} {n}: {:.1?}", rates(queue, seeds));
        }
    }
    for (n, rho, step) in [
        (1_000, 0.0, 0.0),
        (10_000, 0.0, 0.0),
        (2_000, 0.5, 0.0),
        (2_000, 0.9, 0.0),
        (10_000, 0.9, 0.0),
        (2_000, 0.98, 0.0),
        (2_000, 0.0, 0.1),
        (2_000, 0.5, 0.2),
    ] {
        let found =
            (0..seeds).filter(|seed| moves(&correlated(FRESH + seed, n, rho, step))).count();
        println!("AR(1) {n} {rho} step {step}: {:.1}", found as f64 * 100.0 / seeds as f64);
    }
}
