//! Comparisons in simulated time: every run has luck of its own, which its requests share.

use std::collections::BTreeMap;

use goodput_campaign::compare::{
    CompareFacts, ComparedRun, Comparison, ComparisonContext, Design, DesignStep, Figure, RunAsk,
    SideFacts, Stopped, comparable_figures, next_design_step,
};
use goodput_campaign::sweep::{self, Level, Purpose, SweepPlan};
use goodput_model::random::{Domain, RandomStream};
use goodput_model::{Nanos, StopEarly, Verdict};
use goodput_sim::{EngineProfile, Profile};
use goodput_stats::Summary;

use super::load::{self, Request};
use super::{Server, records};

/// Figures of a run by name.
pub type Figures = BTreeMap<String, Figure>;

/// What is compared.
#[derive(Clone)]
pub struct Rig {
    pub sides: Vec<Server>,
    /// How much runs differ by chance: standard deviation of the logarithm of the step time.
    pub noise: f64,
    pub slo: Option<&'static str>,
}

/// Every step takes this many times as long.
pub fn slower_steps(profile: &Profile, factor: f64) -> Profile {
    let mut profile = profile.clone();
    let EngineProfile::Batching(batching) = &mut profile.engine else { panic!("it has no steps") };
    let step = &mut batching.step;
    step.base_ms *= factor;
    step.kv_ns *= factor;
    step.attention_ns *= factor;
    step.decode_ms.iter_mut().for_each(|point| point.1 *= factor);
    step.prefill_ms.iter_mut().for_each(|point| point.1 *= factor);
    profile
}

/// A comparison that was carried out.
pub struct Compared {
    pub comparison: Comparison,
    pub stopped: Stopped,
}

/// A whole comparison with anything that can carry out an ask.
pub fn compare(design: &Design, mut run: impl FnMut(&RunAsk) -> Figures) -> Compared {
    let mut done: Vec<ComparedRun> = Vec::new();
    let mut cell = |ask: &RunAsk| ComparedRun {
        ask: *ask,
        verdict: Verdict::Valid,
        doubt: None,
        figures: run(ask),
        facts: SideFacts::default(),
    };
    let stopped = loop {
        match next_design_step(design, &done) {
            DesignStep::Measure(asks) => done.extend(asks.iter().map(&mut cell)),
            DesignStep::Done(stopped) => break stopped,
        }
        assert!(done.len() < 500, "it does not end");
    };
    let facts = CompareFacts { stopped: Some(stopped), ..CompareFacts::default() };
    let comparison = Comparison::from_paired_runs(
        facts,
        design.clone(),
        Vec::new(),
        done,
        ComparisonContext::default(),
    );
    Compared { comparison, stopped }
}

/// One run: its figures, and its measured requests.
pub fn run(rig: &Rig, design: &Design, ask: &RunAsk, luck: u64) -> (Figures, Vec<Request>) {
    let (summary, requests) = whole_run(rig, design, ask, luck);
    (comparable_figures(&summary), requests)
}

/// One run: everything that the analysis says of it, and its measured requests.
pub fn whole_run(rig: &Rig, design: &Design, ask: &RunAsk, luck: u64) -> (Summary, Vec<Request>) {
    let (server, point) = asked(rig, design, ask, luck);
    let seen = load::run(&server, &point);
    let slo = rig.slo.map(|slo| slo.parse().unwrap());
    let plan = SweepPlan { slo, ..SweepPlan::default() };
    let summary = records::summary(&server, &plan, &point, &seen);
    let measured = seen.requests.into_iter().filter(|request| request.at >= seen.burn_in);
    (summary, measured.collect())
}

/// The figures that are tested, without the rest of the analysis, which takes most of the time in a
/// build for tests. That they are the same is tested.
pub fn quick_run(rig: &Rig, design: &Design, ask: &RunAsk, luck: u64) -> Figures {
    let (server, point) = asked(rig, design, ask, luck);
    let seen = load::run(&server, &point);
    let measured = || seen.requests.iter().filter(|request| request.at >= seen.burn_in);
    let mut all = BTreeMap::new();
    let mut put =
        |name: String, value: f64| all.insert(name, Figure { value, low: None, high: None });
    for (name, of) in REQUEST_FIGURES {
        let mut values: Vec<f64> = measured().filter_map(of).collect();
        values.sort_by(f64::total_cmp);
        for percent in [50.0, 99.0] {
            let place = (percent / 100.0 * values.len() as f64).ceil() as usize - 1;
            put(format!("{name}_p{percent}"), values[place]);
        }
    }
    let inside = |at: Option<Nanos>| at.is_some_and(|at| at >= seen.burn_in && at < seen.end);
    let tokens = |request: &Request| {
        let rest = request.output_tokens - 1;
        f64::from(u8::from(inside(request.first)))
            + f64::from(rest) * f64::from(u8::from(inside(request.last)))
    };
    let tokens: f64 = seen.requests.iter().map(tokens).sum();
    put("output_tokens_per_s".to_owned(), tokens / (seen.end - seen.burn_in).as_secs());
    // None fails here.
    put("error_share".to_owned(), 0.0);
    all
}

/// What one request says.
type OfRequest = fn(&Request) -> Option<f64>;

/// TTFT and TPOT, in milliseconds.
pub const REQUEST_FIGURES: [(&str, OfRequest); 2] = [
    ("ttft", |request| Some((request.first? - request.at).as_ms())),
    ("tpot", |request| {
        let rest = request.output_tokens.checked_sub(1).filter(|rest| *rest > 0)?;
        Some((request.last? - request.first?).as_ms() / f64::from(rest))
    }),
];

/// The server with the luck of this run, and the point that it is asked.
fn asked(rig: &Rig, design: &Design, ask: &RunAsk, luck: u64) -> (Server, sweep::PointAsk) {
    let mut server = rig.sides[ask.side as usize].clone();
    let index = u64::from(ask.block) * 1000 + u64::from(ask.level) * 100 + u64::from(ask.side);
    let normal = RandomStream::new(luck, Domain::Service, index).draw_normal();
    server.profile = slower_steps(&server.profile, (rig.noise * normal).exp());
    let point = sweep::PointAsk {
        number: ask.number,
        purpose: Purpose::Grid,
        level: design.levels.get(ask.level as usize).copied().unwrap_or(Level::Users(1)),
        burn_in_s: design.burn_in_s,
        seconds: design.run_s,
        requests: None,
        seed: ask.seed,
        stops: Some(StopEarly::Hopeless),
    };
    (server, point)
}

/// A test that should not be used: Mann and Whitney over the requests of all runs of two sides
/// (normal approximation, ties counted half).
pub fn per_request_p(reference: &[f64], candidate: &[f64]) -> f64 {
    let mut all: Vec<(f64, bool)> = Vec::new();
    all.extend(reference.iter().map(|value| (*value, false)));
    all.extend(candidate.iter().map(|value| (*value, true)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut ranks, mut from) = (0.0, 0);
    while from < all.len() {
        let to = from + all[from..].iter().take_while(|value| value.0 == all[from].0).count();
        let middle = (from + to + 1) as f64 / 2.0;
        ranks += middle * all[from..to].iter().filter(|value| value.1).count() as f64;
        from = to;
    }
    let (n, m) = (reference.len() as f64, candidate.len() as f64);
    let mean = m * (n + m + 1.0) / 2.0;
    let sd = (n * m * (n + m + 1.0) / 12.0).sqrt();
    let z = ((ranks - mean) / sd).abs();
    // Abramowitz and Stegun 26.2.17, to 10^-7.
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let tail = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    2.0 * density * tail.iter().rev().fold(0.0, |sum, part| t * (part + sum))
}
