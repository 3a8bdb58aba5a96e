//! How often a nominal 95 % interval holds the truth: in a queue whose requests depend on one
//! another, and for independent values. `docs/design/012-intervals.md` has the table.

use std::sync::Arc;

use goodput_model::Nanos;
use goodput_model::random::{Domain, RandomStream};
use goodput_sim::{JobArrival, Profile, SimEngine, SimJob, simulate};

use super::super::binomial::{binomial_cdf, enclosing_ranks};
use super::super::{
    BATCHES, Effective, interval_ranks, lag1_correlation, normal_quantile, student_quantile,
};

/// Requests served at once, and how long one takes on average, in seconds.
const SLOTS: f64 = 64.0;
const SERVICE: f64 = 8.0;

/// A run: (scheduled instant, TTFT, end to end) of each request in seconds, in order of arrival.
type Run = Vec<(f64, f64, f64)>;

/// Poisson arrivals at an engine with slots, in simulated time. The first token comes 200 ms
/// (log-normal, sigma 0.5) after a slot was free, the second and last one 8 s later on average
/// (log-normal, CV 1). The first requests, which find the engine empty, are left out.
fn queue(seed: u64, utilisation: f64, n: u64) -> Run {
    const EMPTY: u64 = 3000;
    let mut profile = Profile::builtin("default").unwrap();
    // CV 1: sigma² is ln 2, and the median is the mean over the root of 2.
    let (ttft, itl) = ("lognormal:200ms:0.5", "lognormal:5657ms:0.8326");
    for (key, value) in [("slots", "64"), ("ttft", ttft), ("itl", itl)] {
        profile.set(key, value).unwrap();
    }
    let mut engine = SimEngine::new(&profile, seed, |_, _| 0);
    let mut gaps = RandomStream::new(seed, Domain::Arrivals, 0);
    let first_token = 0.2 * (0.125f64).exp();
    let rate = utilisation * SLOTS / (SERVICE + first_token);
    let prompt: Arc<[u32]> = Arc::from([0u32]);
    let mut at = 0.0;
    let arrivals = (0..n + EMPTY).map(|id| {
        at += gaps.draw_exponential() / rate;
        let job = SimJob { id, prompt: prompt.clone(), output_tokens: 2, answer_seed: 0 };
        JobArrival { at: Nanos::from_secs_f64(at), job }
    });
    let outcomes = simulate(&mut engine, arrivals);
    let seconds = |to: Option<Nanos>, from: Nanos| (to.unwrap() - from).as_secs();
    let each = outcomes.iter().skip(EMPTY as usize).map(|outcome| {
        let from = outcome.arrived;
        (from.as_secs(), seconds(outcome.first_token, from), seconds(outcome.finished, from))
    });
    each.collect()
}

/// Independent log-normal values at even distances in time.
fn independent(seed: u64, n: u64) -> Run {
    let mut stream = RandomStream::new(seed, Domain::Service, 0);
    let values = (0..n).map(|at| (at as f64, stream.draw_log_normal(1.0, 0.5)));
    values.map(|(at, value)| (at, value, value)).collect()
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The sample quantile of this probability.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted[((sorted.len() as f64 * q - 1e-9).ceil() as usize).max(1) - 1]
}

/// As many independent values, by batches of time.
fn by_batches(times: &[f64], values: &[f64], at: f64, batches: f64) -> Effective {
    let (start, end) = (times[0], times[times.len() - 1]);
    let mut counts = vec![(0u64, 0u64); batches as usize];
    for (time, value) in times.iter().zip(values) {
        let batch = ((time - start) / (end - start) * batches).min(batches - 1.0) as usize;
        counts[batch].0 += 1;
        counts[batch].1 += u64::from(*value > at);
    }
    Effective::from_batches(counts.iter().copied()).unwrap()
}

/// As many independent values, by the correlation of neighbors.
fn by_neighbors(values: &[f64]) -> f64 {
    let (n, correlation) = (values.len() as f64, lag1_correlation(values.iter().copied()).unwrap());
    (n * (1.0 - correlation) / (1.0 + correlation)).min(n)
}

/// Ways to an interval, as ranks.
const WAYS: [&str; 6] = ["independent", "lag 1", "(a) t", "(b) binomial", "(c) deflated", "K = 10"];

/// Symmetric in probability, by the t distribution.
fn symmetric(n: f64, n_eff: f64, q: f64) -> Option<(u64, u64)> {
    let half = student_quantile(0.975, u64::from(BATCHES) - 1) * (q * (1.0 - q) / n_eff).sqrt();
    let (low, high) = ((n * (q - half)).ceil(), (n * (q + half)).ceil());
    (low >= 1.0 && high <= n).then_some((low as u64, high as u64))
}

/// Binomial ranks of this many independent values, stretched.
fn stretched(n: f64, n_eff: f64, q: f64) -> Option<(u64, u64)> {
    let m = n_eff.floor();
    let (low, high) = enclosing_ranks(m as u64, q)?;
    let low = (low as f64 * n / m + 1e-9).floor().max(1.0);
    Some((low as u64, (high as f64 * n / m - 1e-9).ceil().min(n) as u64))
}

/// The interval's ends, by each way, and the n_eff by batches.
fn intervals(times: &[f64], values: &[f64], q: f64) -> (Vec<Option<(f64, f64)>>, f64) {
    let sorted = sorted(values.iter().copied());
    let n = values.len() as f64;
    let at = quantile(&sorted, q);
    let twenty = by_batches(times, values, at, f64::from(BATCHES));
    let ten = by_batches(times, values, at, 10.0);
    let ways = [
        enclosing_ranks(n as u64, q),
        stretched(n, by_neighbors(values), q),
        symmetric(n, twenty.n, q),
        stretched(n, twenty.n, q),
        interval_ranks(n as u64, twenty, q),
        interval_ranks(n as u64, ten, q),
    ];
    let value = |rank: u64| sorted[rank as usize - 1];
    (ways.map(|way| way.map(|(low, high)| (value(low), value(high)))).to_vec(), twenty.n)
}

/// Hits, and intervals at all, of each way; the sum of n_eff.
#[derive(Default, Clone)]
struct Score {
    runs: u64,
    hits: [u64; 6],
    estimable: [u64; 6],
    n_eff: f64,
}

impl Score {
    fn add(&mut self, run: (&[f64], &[f64]), q: f64, truth: f64) {
        let (intervals, n_eff) = intervals(run.0, run.1, q);
        self.runs += 1;
        self.n_eff += n_eff;
        for (way, interval) in intervals.iter().enumerate() {
            self.estimable[way] += u64::from(interval.is_some());
            let holds = interval.is_some_and(|(low, high)| low <= truth && truth <= high);
            self.hits[way] += u64::from(holds);
        }
    }

    fn row(&self) -> String {
        let cell = |way: usize| {
            let (hits, estimable) = (self.hits[way] as f64, self.estimable[way] as f64);
            let share = 100.0 * estimable / self.runs as f64;
            match self.estimable[way] {
                0 => "– (0 %)".to_owned(),
                n if n == self.runs => format!("{:.2}", hits / estimable),
                _ => format!("{:.2} ({share:.0} %)", hits / estimable),
            }
        };
        let cells: Vec<_> = (0..WAYS.len()).map(cell).collect();
        format!("{:.0} | {} |", self.n_eff / self.runs as f64, cells.join(" | "))
    }
}

const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

#[test]
#[ignore = "a study of some minutes: 10 million requests for the truth, and 400 runs at each load"]
fn study() {
    const RUNS: u64 = 400;
    println!("| values | n | quantile | truth, s | n_eff | {} |", WAYS.join(" | "));
    for utilisation in [0.6, 0.8, 0.9] {
        let reference = queue(1, utilisation, 10_000_000);
        let truths = [
            sorted(reference.iter().map(|request| request.1)),
            sorted(reference.iter().map(|request| request.2)),
        ];
        drop(reference);
        let sizes = [5_000, 20_000];
        let mut scores = vec![Score::default(); 2 * 2 * 3];
        for seed in 0..RUNS {
            let run = queue(1000 + seed, utilisation, 20_000);
            let times: Vec<f64> = run.iter().map(|request| request.0).collect();
            let metrics = [
                run.iter().map(|request| request.1).collect::<Vec<_>>(),
                run.iter().map(|request| request.2).collect(),
            ];
            for (place, score) in scores.iter_mut().enumerate() {
                let (metric, n, q) = (place / 6, sizes[place / 3 % 2], QUANTILES[place % 3]);
                let truth = quantile(&truths[metric], q);
                score.add((&times[..n], &metrics[metric][..n]), q, truth);
            }
        }
        for (place, score) in scores.iter().enumerate() {
            let name = ["TTFT", "E2E"][place / 6];
            let (n, q) = (sizes[place / 3 % 2], QUANTILES[place % 3] * 100.0);
            let truth = quantile(&truths[place / 6], QUANTILES[place % 3]);
            println!("| {name} at {utilisation} | {n} | p{q} | {truth:.4} | {}", score.row());
        }
    }
    for n in [400, 1000, 10_000] {
        for q in QUANTILES {
            let truth = (0.5 * normal_quantile(q)).exp();
            println!(
                "| independent | {n} | p{} | {truth:.4} | {}",
                q * 100.0,
                iid(n, q, 1000).row()
            );
        }
    }
}

/// Independent log-normal values, whose quantiles are known.
fn iid(n: u64, q: f64, runs: u64) -> Score {
    let truth = (0.5 * normal_quantile(q)).exp();
    let mut score = Score::default();
    for seed in 0..runs {
        let run = independent(seed, n);
        let times: Vec<f64> = run.iter().map(|request| request.0).collect();
        let values: Vec<f64> = run.iter().map(|request| request.1).collect();
        score.add((&times, &values), q, truth);
    }
    score
}

/// Place of a way in [`WAYS`].
const PLAIN: usize = 0;
const OURS: usize = 4;

/// Three standard errors of a share of this many runs.
fn chance(share: f64, runs: u64) -> f64 {
    3.0 * (share * (1.0 - share) / runs as f64).sqrt()
}

#[test]
fn intervals_of_independent_values_hold_the_truth() {
    let runs = 300;
    for (n, q) in [(400, 0.5), (400, 0.95), (1000, 0.99)] {
        let score = iid(n, q, runs);
        let share = |way: usize| score.hits[way] as f64 / runs as f64;
        // Ranks are whole numbers, so that plain intervals hold a little more often than asked.
        let (low, high) = enclosing_ranks(n, q).unwrap();
        let exact = binomial_cdf(high - 1, n, q) - binomial_cdf(low - 1, n, q);
        assert!((0.95..0.98).contains(&exact), "{exact}");
        assert!((share(PLAIN) - exact).abs() <= chance(exact, runs), "{n} {q}: {}", score.row());
        // Ours are wider, since what the values are worth is estimated.
        assert!(share(OURS) >= 0.95 - chance(0.95, runs), "{n} {q}: {}", score.row());
        // Rarely 1000 values happen to look as if they were worth fewer than 368.
        assert!(score.estimable[OURS] >= runs - 3, "{n} {q}: {}", score.row());
    }
}

#[test]
fn intervals_in_a_queue_hold_it_far_more_often_than_those_for_independence() {
    let runs = 30;
    let mut score = Score::default();
    // p50 of the study's reference at a utilization of 0.8.
    let truth = 0.2068;
    for seed in 0..runs {
        let run = queue(5000 + seed, 0.8, 5000);
        let times: Vec<f64> = run.iter().map(|request| request.0).collect();
        let values: Vec<f64> = run.iter().map(|request| request.1).collect();
        score.add((&times, &values), 0.5, truth);
    }
    // The study says 0.91 and 0.67, and these are three standard errors below and above.
    let share = |way: usize| score.hits[way] as f64 / runs as f64;
    assert_eq!(score.estimable[OURS], runs);
    assert!(share(OURS) >= 0.91 - chance(0.91, runs), "{}", score.row());
    assert!(share(PLAIN) <= 0.67 + chance(0.67, runs), "{}", score.row());
    assert!(score.n_eff / (runs as f64) < 3000.0, "{}", score.row());
}
