//! How often what is said of an SLO is wrong: queues of which the truth is known.
//!
//! `cargo xtask study decisions` prints the table of docs/confidence.md.

use goodput_model::random::{Domain, RandomStream};
use goodput_model::{ArrivalProcess, MetricName, Mode, Nanos, RequestRecord};

use crate::tests::{NO_WARMUP, facts, plan, record as good_request};
use crate::{Quality, RunState, SloState, Summary, analyze_run};

/// How long a request is served, with a mean of 4 s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Service {
    /// CV 1.
    Exponential,
    /// CV 1.
    LogNormal,
    /// CV 0.
    Constant,
    /// Nine in ten of 2.2 s, one in ten of 20 s: CV 2.1.
    TwoKinds,
}

/// A server with slots, under Poisson arrivals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queue {
    pub(super) slots: usize,
    pub(super) service: Service,
    pub(super) load: f64,
}

const SERVICE_S: f64 = 4.0;
const WARM_S: f64 = 120.0;

/// A request: when it was due, its wait for the first token, and all of its time, in seconds.
pub(super) type Request = (f64, f64, f64);

impl Service {
    fn draw(self, stream: &mut RandomStream) -> f64 {
        SERVICE_S
            * match self {
                Self::Exponential => stream.draw_exponential(),
                Self::LogNormal => {
                    let sigma = 2f64.ln().sqrt();
                    (sigma * stream.draw_normal() - sigma * sigma / 2.0).exp()
                }
                Self::Constant => 1.0,
                Self::TwoKinds if stream.next_unit() < 0.1 => 5.0 * stream.draw_exponential(),
                Self::TwoKinds => 0.5 / 0.9 * stream.draw_exponential(),
            }
    }
}

impl Queue {
    fn rate(self) -> f64 {
        self.load * self.slots as f64 / SERVICE_S
    }

    /// The requests of this many seconds after the warm-up. The first token comes 200 ms after a slot is
    /// free (log-normal, sigma 0.5).
    pub(super) fn run(self, seed: u64, seconds: f64) -> Vec<Request> {
        let mut stream = RandomStream::new(seed, Domain::Arrivals, 0);
        let rate = self.rate();
        let mut free = std::collections::BinaryHeap::new();
        (0..self.slots).for_each(|_| free.push(std::cmp::Reverse(0u64)));
        let (mut at, mut requests) = (0.0, Vec::new());
        loop {
            at += stream.draw_exponential() / rate;
            if at >= WARM_S + seconds {
                return requests;
            }
            let std::cmp::Reverse(slot) = free.pop().unwrap();
            let begin = at.max(Nanos(slot).as_secs());
            let served = self.service.draw(&mut stream);
            free.push(std::cmp::Reverse(Nanos::from_secs_f64(begin + served).0));
            let first = 0.2 * (0.5 * stream.draw_normal()).exp();
            if at >= WARM_S {
                let wait = begin - at + first;
                requests.push((at - WARM_S, wait, wait + served));
            }
        }
    }

    /// Sorted TTFT and E2E of very many requests, in seconds.
    fn truth(self) -> [Vec<f64>; 2] {
        let all = self.run(u64::MAX / 3, 300_000.0);
        let sorted = |of: fn(&Request) -> f64| {
            let mut values: Vec<f64> = all.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        [sorted(|request| request.1), sorted(|request| request.2)]
    }
}

fn at(sorted: &[f64], q: f64) -> f64 {
    sorted[((sorted.len() as f64 * q).ceil() as usize).clamp(1, sorted.len()) - 1]
}

/// Its chunks do not matter here, only its first token and its last.
fn record(index: usize, (due, wait, whole): Request) -> RequestRecord {
    let mut record = good_request(index as u64, due * 1e3, &[]);
    let [first, last] = [wait, whole].map(|s| Nanos::from_secs_f64(due) + Nanos::from_secs_f64(s));
    record.exchange.chunks.clear();
    let stamps = &mut record.exchange.stamps;
    stamps.first_token = Some(first);
    stamps.first_answer = Some(first);
    stamps.last_token = Some(last);
    stamps.done = Some(last);
    stamps.ended = last;
    record
}

/// A run of this queue under an SLO.
fn judged(queue: Queue, requests: &[Request], seconds: u64, slo: &str, target: f64) -> Summary {
    let mut plan = plan(Some(seconds), None, NO_WARMUP);
    plan.load.mode = Mode::Open {
        rate: goodput_model::Rate::PerSecond(queue.rate()),
        arrivals: ArrivalProcess::Poisson,
        max_concurrency: None,
    };
    plan.measure.slo = Some(slo.parse().unwrap());
    plan.measure.attainment = Some(target);
    plan.measure.percentiles = vec![50.0, 90.0, 95.0, 99.0];
    let records: Vec<RequestRecord> =
        requests.iter().enumerate().map(|(index, request)| record(index, *request)).collect();
    analyze_run(&plan, facts(RunState::Complete), || records.iter().cloned(), &[], [])
}

/// How often something was so, of how many.
#[derive(Debug, Clone, Copy, Default)]
struct Rate(u32, u32);

impl Rate {
    fn add(&mut self, is_so: bool) {
        *self = Self(self.0 + u32::from(is_so), self.1 + 1);
    }

    fn percent(self) -> String {
        if self.1 == 0 { "–".to_owned() } else { format!("{:.0}", 100.0 * self.share()) }
    }

    fn share(self) -> f64 {
        f64::from(self.0) / f64::from(self.1.max(1))
    }
}

/// What came of one kind of run.
#[derive(Debug, Default)]
struct Decisions {
    /// By target 99, 95, 90 %: met though the truth is a point below.
    wrong_met: [Rate; 3],
    /// Missed though half of what may miss does.
    wrong_missed: [Rate; 3],
    /// Neither, though a tenth of what may miss does.
    undecided: [Rate; 3],
    /// Intervals with both ends that hold the truth: p50, p90, p95, p99 of TTFT and then of E2E.
    held: [[Rate; 4]; 2],
    given: [[Rate; 4]; 2],
    /// The trusted end is on the right side of the truth.
    one_end: [[Rate; 4]; 2],
    /// Of means, and of the share at 99 %.
    mean_held: [Rate; 2],
    mean_given: [Rate; 2],
    share_held: Rate,
    share_given: Rate,
}

const TARGETS: [f64; 3] = [0.99, 0.95, 0.9];
const PERCENTS: [f64; 4] = [50.0, 90.0, 95.0, 99.0];

fn study(queue: Queue, seconds: u64, runs: u64) -> Decisions {
    let truth = queue.truth();
    let mut found = Decisions::default();
    let state = |requests: &[Request], target: f64, q: f64| {
        let slo = format!("ttft < {}ms", at(&truth[0], q) * 1e3);
        judged(queue, requests, seconds, &slo, target).slo.unwrap().attainment_state
    };
    for seed in 0..runs {
        let requests = queue.run(seed, seconds as f64);
        for (place, target) in TARGETS.into_iter().enumerate() {
            found.wrong_met[place].add(state(&requests, target, target - 0.01) == SloState::Met);
            let half = target + (1.0 - target) / 2.0;
            found.wrong_missed[place].add(state(&requests, target, half) == SloState::Missed);
            let tenth = target + 0.9 * (1.0 - target);
            found.undecided[place].add(state(&requests, target, tenth) == SloState::Undecided);
        }
        let slo = format!("ttft < {}ms", at(&truth[0], 0.99) * 1e3);
        let summary = judged(queue, &requests, seconds, &slo, 0.99);
        for (metric, truth) in truth.iter().enumerate() {
            let name = [MetricName::Ttft, MetricName::E2e][metric].name();
            let of = &summary.metrics[name];
            for (place, percent) in PERCENTS.into_iter().enumerate() {
                let (figure, truth) =
                    (of.percentiles[&percent.to_string()], at(truth, percent / 100.0));
                let truth = truth * 1e3;
                let above = figure.low.is_some_and(|low| low <= truth);
                let both = matches!(figure.quality, Quality::Ok | Quality::Few);
                found.given[metric][place].add(both);
                if both {
                    let below = figure.high.is_some_and(|high| truth <= high);
                    found.held[metric][place].add(above && below);
                } else if figure.low.is_some() {
                    found.one_end[metric][place].add(above);
                }
            }
            let mean = truth.iter().sum::<f64>() / truth.len() as f64 * 1e3;
            let ends = of.mean_low.zip(of.mean_high);
            found.mean_given[metric].add(ends.is_some());
            if let Some((low, high)) = ends {
                found.mean_held[metric].add(low <= mean && mean <= high);
            }
        }
        let slo = summary.slo.unwrap();
        let ends = slo.attainment_low.zip(slo.attainment_high);
        found.share_given.add(ends.is_some());
        if let Some((low, high)) = ends {
            found.share_held.add(low <= 0.99 && 0.99 <= high);
        }
    }
    found
}

fn joined(rates: &[Rate]) -> String {
    rates.iter().map(|rate| rate.percent()).collect::<Vec<_>>().join(" / ")
}

#[test]
#[ignore = "minutes: the table of docs/confidence.md"]
fn decisions_study() {
    let runs: u64 = std::env::var("RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(200);
    let queues = [
        ("32 slots, exponential", 32, Service::Exponential),
        ("32 slots, log-normal", 32, Service::LogNormal),
        ("16 slots, exponential", 16, Service::Exponential),
        ("64 slots, two kinds", 64, Service::TwoKinds),
        ("8 slots, constant", 8, Service::Constant),
    ];
    let only = std::env::var("ONLY").unwrap_or_default();
    println!(
        "| queue | load | s | met, 1 point below | missed, kept | undecided, well kept | share 99 % | TTFT | E2E | means |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, slots, service) in queues {
        for load in [0.6, 0.8, 0.9] {
            let label = format!("{name} | {:.0} %", load * 100.0);
            for seconds in [180, 600].into_iter().filter(|_| label.contains(&only)) {
                let found = study(Queue { slots, service, load }, seconds, runs);
                let of = |held: &[Rate], given: &[Rate]| {
                    let one = |(held, given): (&Rate, &Rate)| {
                        format!("{} ({})", held.percent(), given.percent())
                    };
                    held.iter().zip(given).map(one).collect::<Vec<_>>().join(" / ")
                };
                println!(
                    "| {label} | {seconds} | {} | {} | {} | {} | {} | {} | {} |",
                    joined(&found.wrong_met),
                    joined(&found.wrong_missed),
                    joined(&found.undecided),
                    of(&[found.share_held], &[found.share_given]),
                    of(&found.held[0], &found.given[0]),
                    of(&found.held[1], &found.given[1]),
                    of(&found.mean_held, &found.mean_given),
                );
                let one_end = joined(&found.one_end[0]);
                println!("one end of TTFT right: {one_end}");
            }
        }
    }
}

/// What the table says, gated where few runs can tell: a server at 80 % whose users get 98 %, and one
/// at 60 % whose users get 99.9 %.
#[test]
fn a_lucky_run_near_the_knee_is_not_met() {
    let busy = Queue { slots: 32, service: Service::Exponential, load: 0.8 };
    let truth = busy.truth();
    let slo = format!("ttft < {}ms", at(&truth[0], 0.98) * 1e3);
    let state = |queue: Queue, seed: u64, slo: &str| {
        let found = judged(queue, &queue.run(seed, 180.0), 180, slo, 0.99);
        found.slo.unwrap().attainment_state
    };
    let mut met = Rate::default();
    (0..40).for_each(|seed| met.add(state(busy, seed, &slo) == SloState::Met));
    // Three in ten were, when misses alone told how alike requests are.
    assert!(met.share() <= 0.1, "{met:?}");
    // These met so few queues that their latencies alone look independent.
    for seed in [98, 109, 146, 187] {
        assert_ne!(state(busy, seed, &slo), SloState::Met, "{seed}");
    }
    let calm = Queue { load: 0.6, ..busy };
    let slo = format!("ttft < {}ms", at(&calm.truth()[0], 0.999) * 1e3);
    let mut met = Rate::default();
    (0..40).for_each(|seed| met.add(state(calm, seed, &slo) == SloState::Met));
    assert!(met.share() >= 0.8, "{met:?}");
}
