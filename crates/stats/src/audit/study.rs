//! Result files of a simulated queue, of which is known that nothing is wrong with them, or what.

use goodput_model::{Reported, ReportedMode, ReportedRequest, Tool};
use goodput_random::{Domain, Stream};

use super::tests::stated;
use super::*;
use crate::column::Column;

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
        let mut random = Stream::new(self.seed, Domain::Arrivals, 0);
        let rate = self.load * self.slots as f64 / SERVICE_S;
        let mut free = vec![0.0_f64; self.slots];
        let mut requests = Vec::with_capacity(self.n);
        let mut at = 0.0;
        for place in 0..BEFORE + self.n {
            at += random.exponential() / rate;
            // A log-normal CV of 1 is σ² = ln 2.
            let later = if self.is_log_normal {
                random.log_normal(20.0 / 2f64.sqrt(), 2f64.ln().sqrt())
            } else {
                random.exponential() * 20.0
            };
            let first = random.log_normal(0.196, 0.2);
            let tokens = 1 + later.round() as u64;
            let gaps: Vec<f64> = (1..tokens).map(|_| random.log_normal(0.186, 0.2)).collect();
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
                input_tokens: Some(100 + random.below(400)),
                output_tokens: Some(tokens),
                is_failed: false,
            });
        }
        requests
    }

    /// What the checks of its course need.
    fn reported(&self) -> Reported {
        let mut run = Reported::of(Tool::VllmPython);
        let requests = self.requests();
        run.duration_s = Some(span_s(&requests));
        run.load.mode = ReportedMode::Open;
        run.details = Some(requests);
        run
    }

    /// The whole file that a tool would write of them, in its own definitions.
    fn file(&self, tool: Tool, is_chat: bool, has_details: bool) -> Reported {
        let mut requests = self.requests();
        // In chat one event names the role, and one ends the answer.
        let has_role = is_chat && matches!(tool, Tool::VllmPython | Tool::VllmRust);
        for gaps in requests.iter_mut().filter_map(|r| r.gaps_ms.as_mut()).filter(|_| has_role) {
            let half = gaps.pop().map(|last| last / 2.0);
            gaps.extend([half, half].into_iter().flatten());
            gaps.insert(0, 0.0);
        }
        let mut run = Reported::of(tool);
        let (n, span) = (requests.len() as u64, span_s(&requests));
        let whole = |r: &ReportedRequest| r.e2e_ms.unwrap();
        let tokens = |r: &ReportedRequest| r.output_tokens.unwrap();
        let later = |r: &ReportedRequest| whole(r) - r.ttft_ms.unwrap();
        let paced = || requests.iter().filter(|r| tokens(r) > 1);
        let pace = |r: &ReportedRequest| later(r) / (tokens(r) - 1) as f64;
        let with_first =
            |r: &ReportedRequest| vec![whole(r) / tokens(r) as f64; tokens(r) as usize];
        let (tpot, itl): (Vec<f64>, Vec<f64>) = if tool == Tool::Guidellm {
            (
                requests.iter().flat_map(with_first).collect(),
                paced().flat_map(|r| vec![pace(r); tokens(r) as usize - 1]).collect(),
            )
        } else {
            (
                paced().map(pace).collect(),
                requests.iter().flat_map(|r| r.gaps_ms.clone().unwrap()).collect(),
            )
        };
        run.metrics = [
            ("ttft", requests.iter().map(|r| r.ttft_ms.unwrap()).collect()),
            ("e2e", requests.iter().map(whole).collect()),
            ("tpot", tpot),
            ("itl", itl),
        ]
        .map(|(name, samples)| (name.to_owned(), stated(samples)))
        .into();
        if !matches!(tool, Tool::Aiperf | Tool::Guidellm) {
            run.metrics.values_mut().for_each(|m| (m.n, m.min, m.max) = (None, None, None));
        }
        run.backend = Some(if is_chat { "openai-chat" } else { "openai" }.to_owned());
        run.duration_s = Some(span);
        run.load.mode = ReportedMode::Open;
        run.load.rate_rps = Some(self.load * self.slots as f64 / SERVICE_S);
        run.load.arrivals = Some("poisson".to_owned());
        (run.asked, run.ok, run.failed) = (Some(n), Some(n), Some(0));
        let sum: u64 = requests.iter().map(tokens).sum();
        let input: u64 = requests.iter().map(|r| r.input_tokens.unwrap()).sum();
        (run.input_tokens, run.output_tokens) = (Some(input), Some(sum));
        run.requests_per_s = Some(n as f64 / span);
        run.output_tokens_per_s = Some(sum as f64 / span);
        run.total_tokens_per_s = Some((sum + input) as f64 / span);
        let busy = requests.iter().map(whole).sum::<f64>() / 1e3 / span;
        match tool {
            Tool::Sglang | Tool::Guidellm => run.load.mean_concurrency = Some(busy),
            _ => {}
        }
        if tool != Tool::Aiperf {
            run.load.peak_concurrency = Some(peak(&requests));
        }
        match tool {
            Tool::Sglang => requests.iter_mut().for_each(|r| r.start_s = None),
            Tool::Guidellm => requests.iter_mut().for_each(|r| r.gaps_ms = None),
            _ => {}
        }
        run.details = (has_details && tool != Tool::Aiperf).then_some(requests);
        run
    }
}

fn span_s(requests: &[ReportedRequest]) -> f64 {
    let first = requests[0].start_s.unwrap();
    let end = |r: &ReportedRequest| r.start_s.unwrap() + r.e2e_ms.unwrap() / 1e3;
    requests.iter().map(end).fold(first, f64::max) - first
}

/// Requests that are under way in any part of the same second, as vLLM counts them.
fn peak(requests: &[ReportedRequest]) -> f64 {
    let first = requests[0].start_s.unwrap();
    let mut seconds = vec![0.0_f64; span_s(requests) as usize + 2];
    for request in requests {
        let begin = request.start_s.unwrap() - first;
        let end = begin + request.e2e_ms.unwrap() / 1e3;
        seconds[begin as usize..=end as usize].iter_mut().for_each(|second| *second += 1.0);
    }
    seconds.into_iter().fold(0.0, f64::max)
}

/// Files of every tool, by a seed: without and with details, of text and of chat.
fn files(seed: u64, load: f64) -> Vec<Reported> {
    let queue = Queue { is_log_normal: seed % 2 == 1, ..Queue::new(seed, load, 1_500) };
    let tools = [Tool::VllmPython, Tool::VllmRust, Tool::Sglang, Tool::Aiperf, Tool::Guidellm];
    let kinds = [(false, false), (false, true), (true, false), (true, true)];
    tools
        .into_iter()
        .flat_map(|tool| kinds.map(|(is_chat, details)| queue.file(tool, is_chat, details)))
        .collect()
}

/// Whether a check doubts figures: the others are about how the run was made.
fn is_about_figures(item: &Item) -> bool {
    item.source == Source::Arithmetic
        || ["coalesced_chunks", "delivered_rate", "empty_answers", "arrival_gaps"]
            .contains(&&*item.check)
}

#[test]
fn figures_of_honest_files_agree() {
    for seed in 0..4 {
        for load in [0.3, 0.6, 0.9] {
            for run in files(seed, load) {
                let audit = audit_reported(&run);
                let bad: Vec<_> = (audit.items.iter())
                    .filter(|item| is_about_figures(item) && item.severity > Severity::Info)
                    .collect();
                assert!(bad.is_empty(), "{:?}, seed {seed}, {load}: {bad:#?}", run.tool);
            }
        }
    }
}

/// A check that must find what is done to a file.
type Plant = (&'static str, fn(&mut Reported));

fn each(run: &mut Reported, name: &str, change: impl Fn(f64) -> f64) {
    let metric = run.metrics.get_mut(name).unwrap();
    let values = [&mut metric.mean, &mut metric.std, &mut metric.median, &mut metric.min];
    for value in values.into_iter().chain([&mut metric.max]) {
        *value = value.map(&change);
    }
    metric.percentiles.iter_mut().for_each(|(_, value)| *value = change(*value));
}

/// Faults that figures alone prove, whoever wrote them.
const PLANTS: [Plant; 9] = [
    ("phases_add_up", |run| each(run, "tpot", |ms| 0.4 * ms)),
    ("phases_add_up", |run| each(run, "tpot", |ms| 3.0 * ms)),
    ("phases_add_up", |run| each(run, "itl", |ms| 3.0 * ms)),
    ("phases_add_up", |run| run.output_tokens = run.output_tokens.map(|n| n + n * 3 / 20)),
    ("mean_in_range", |run| {
        let ttft = run.metrics.get_mut("ttft").unwrap();
        (ttft.mean, ttft.max) = (ttft.percentile(99.0).map(|p99| 1.5 * p99), None);
    }),
    ("mean_in_range", |run| {
        run.metrics.remove("e2e");
        let ttft = run.metrics.get_mut("ttft").unwrap();
        ttft.mean = ttft.percentile(99.0).map(|p99| 1.5 * p99);
        (ttft.std, ttft.max) = (None, None);
    }),
    ("sample_counts", |run| {
        let ttft = run.metrics.get_mut("ttft").unwrap();
        ttft.n = Some(run.ok.unwrap() * 3 / 4);
    }),
    ("littles_law", |run| run.load.peak_concurrency = Some(run.ok.unwrap() as f64 + 1.0)),
    ("littles_law", |run| {
        run.load.peak_concurrency.get_or_insert(200.0);
        for name in ["ttft", "tpot", "itl", "e2e"] {
            each(run, name, |ms| 20.0 * ms);
        }
    }),
];

/// Faults that show against what some tools state only.
const PLANTS_OF_SOME: [(Tool, Plant); 4] = [
    (
        Tool::Sglang,
        ("littles_law", |run| {
            run.load.mean_concurrency = run.load.mean_concurrency.map(|mean| 1.5 * mean);
        }),
    ),
    (
        Tool::Guidellm,
        ("littles_law", |run| {
            run.load.mean_concurrency = run.load.mean_concurrency.map(|mean| 0.8 * mean);
        }),
    ),
    (
        Tool::VllmPython,
        ("within_duration", |run| {
            run.duration_s = run.duration_s.map(|seconds| seconds / 2.0);
            let rates = [
                &mut run.requests_per_s,
                &mut run.output_tokens_per_s,
                &mut run.total_tokens_per_s,
            ];
            for rate in rates {
                *rate = rate.map(|rate| 2.0 * rate);
            }
        }),
    ),
    (
        Tool::Sglang,
        ("copied_requests", |run| {
            let requests = run.details.as_mut().unwrap();
            let half = requests.len() / 2;
            let (from, to) = requests.split_at_mut(half);
            to.clone_from_slice(&from[..to.len()]);
        }),
    ),
];

#[test]
fn planted_faults_are_found_for_the_right_reason() {
    for seed in 0..4 {
        for clean in files(seed, 0.6) {
            // With the requests in the file every figure is computed anew.
            if clean.details.is_none() {
                for (place, (check, plant)) in PLANTS.iter().enumerate() {
                    let mut run = clean.clone();
                    plant(&mut run);
                    assert!(speaks(&run, check), "{:?}: {place}, {check}", run.tool);
                    // An event that names the role explains none of these but what it does anyway.
                    assert!(
                        place == 3 || !speaks(&run, "first_token") || speaks(&clean, "first_token"),
                        "{place}"
                    );
                }
            }
            for (tool, (check, plant)) in &PLANTS_OF_SOME {
                if *tool == clean.tool && clean.details.is_some() {
                    let mut run = clean.clone();
                    plant(&mut run);
                    assert!(speaks(&run, check), "{:?}: {check}", run.tool);
                }
            }
        }
    }
}

/// What is asked of one kind of queue, in percent of the seeds.
#[derive(Debug, Default, Clone, Copy)]
struct Rates {
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
    let check = checks().into_iter().find(|one| one.code == check).unwrap();
    check.item(run).is_some_and(|item| item.severity > Severity::Info)
}

fn moves(values: &[f64]) -> bool {
    let column = Column::of(values, &[50.0], false);
    column.shift.is_some_and(|shift| shift.is_clear)
        || column.trend.is_some_and(|trend| trend.is_clear)
}

fn rates(queue: Queue, seeds: u64) -> Rates {
    let mut rates = Rates::default();
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
    let mut random = Stream::new(seed, Domain::Arrivals, 1);
    let mut last = random.normal();
    let value = |place: usize| {
        last = rho * last + (1.0 - rho * rho).sqrt() * random.normal();
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
