//! Sweeps in simulated time: asks are carried out on the engine model, and what is seen goes through
//! the same analysis as a real run.

#![allow(dead_code, unused_imports, unreachable_pub, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc, reason = "a test")]

mod blocks;
mod load;
mod quick;
mod records;
mod truth;

use std::sync::Arc;

use goodput_campaign::sweep::{
    Effort, Figures, Goodput, Point, PointAsk, SweepPlan, SweepStep, answer, estimate_time,
    next_sweep_step,
};
use goodput_model::random::{Domain, RandomStream};
use goodput_model::{LengthDistribution, Nanos};
use goodput_sim::{EngineProfile, Profile, SimEngine, SimJob};

pub use blocks::{
    Compared, REQUEST_FIGURES, Rig, compare, per_request_p, quick_run, run, slower_steps, whole_run,
};
pub use load::Request;
pub use truth::miss_share;

/// A server and what is asked of it.
#[derive(Clone)]
pub struct Server {
    pub profile: Profile,
    pub input: LengthDistribution,
    pub output: LengthDistribution,
    /// The limit on TTFT, or on E2E.
    pub limit: Nanos,
    pub is_of_e2e: bool,
    /// The share of requests that must keep it, in percent.
    pub percent: f64,
}

impl Server {
    /// The reference queue: 64 slots, 8 s of service on average (log-normal, CV 1), a wait of 1 s
    /// at most.
    pub fn queue(percent: f64) -> Self {
        let text = "model = \"queue\"\nmax_model_len = 4096\ndefault_tokens = 2\n[delays]\n\
                    ttft = \"1ms\"\nitl = \"lognormal:5656854us:0.8325546\"\nslots = 64\n";
        Self {
            profile: Profile::parse(text).unwrap(),
            input: LengthDistribution::Fixed(1),
            output: LengthDistribution::Fixed(2),
            limit: Nanos::from_millis(1001),
            is_of_e2e: false,
            percent,
        }
    }

    /// 128 slots, 2.75 s of service on average (log-normal, as long as chat answers on the default
    /// profile), and hardly any wait allowed.
    pub fn short_queue(percent: f64) -> Self {
        let mut server = Self::queue(percent);
        server.profile.set("slots", "128").unwrap();
        server.profile.set("ttft", "50ms").unwrap();
        server.profile.set("itl", "lognormal:2s:0.8").unwrap();
        server.limit = Nanos::from_millis(200);
        server
    }

    /// A built-in profile with chat traffic.
    pub fn chat(name: &str, limit_ms: u64, percent: f64) -> Self {
        let mut profile = Profile::builtin(name).unwrap();
        if name == "llama-70b-8xh100" {
            profile.set("max_num_seqs", "640").unwrap();
        }
        Self {
            profile,
            input: "lognormal:500:0.8:50:4000".parse().unwrap(),
            output: "lognormal:200:0.8:10:2000".parse().unwrap(),
            limit: Nanos::from_millis(limit_ms),
            is_of_e2e: false,
            percent,
        }
    }

    /// This many slots, a first token after `ttft`, then `output` - 1 more, one each `itl`.
    pub fn slots(slots: u32, ttft: &str, itl: &str, output: u32) -> Self {
        let mut server = Self::queue(99.0);
        server.profile.set("slots", &slots.to_string()).unwrap();
        server.profile.set("ttft", ttft).unwrap();
        server.profile.set("itl", itl).unwrap();
        server.output = LengthDistribution::Fixed(output);
        server
    }

    /// With another promise.
    #[must_use]
    pub fn promising(self, is_of_e2e: bool, limit_ms: u64, percent: f64) -> Self {
        Self { is_of_e2e, limit: Nanos::from_millis(limit_ms), percent, ..self }
    }

    pub fn slo(&self) -> String {
        let what = if self.is_of_e2e { "e2e" } else { "ttft" };
        format!("p{} {what} < {}ms", self.percent, self.limit.as_ms())
    }

    /// The token that the promise is about.
    fn promised(&self, first: Option<Nanos>, last: Option<Nanos>) -> Option<Nanos> {
        if self.is_of_e2e { last } else { first }
    }

    /// Whether a request with this first and last token keeps it.
    fn keeps(&self, at: Nanos, first: Option<Nanos>, last: Option<Nanos>) -> bool {
        self.promised(first, last).is_some_and(|seen| seen - at < self.limit)
    }

    fn engine(&self, seed: u64) -> SimEngine {
        SimEngine::new(&self.profile, seed, |seed, index| (seed as u32).rotate_left(7) ^ index)
    }

    fn job(&self, seed: u64, id: u64) -> SimJob {
        let mut lengths = RandomStream::new(seed, Domain::Lengths, id);
        let (input, output) = (self.input.draw(&mut lengths), self.output.draw(&mut lengths));
        // Every prompt is another: no two begin alike.
        let prompt: Arc<[u32]> = if matches!(self.profile.engine, EngineProfile::Delays(_)) {
            // Nothing depends on it.
            Arc::new([0])
        } else {
            (0..input).map(|token| token ^ ((id as u32) << 12)).collect()
        };
        SimJob { id, prompt, output_tokens: output, answer_seed: id }
    }

    pub fn plan(&self, effort: Effort, seed: u64) -> SweepPlan {
        let slo = Some(self.slo().parse().unwrap());
        SweepPlan { effort, seed, slo, ..SweepPlan::default() }
    }
}

/// A sweep that was carried out.
pub struct Sweep {
    pub points: Vec<Point>,
    pub goodput: Option<Goodput>,
    /// Simulated seconds after the warm-up, and what was stated then.
    pub took_s: f64,
    pub stated_s: f64,
    pub requests: u64,
}

/// Carries out a whole sweep.
pub fn sweep(server: &Server, plan: &SweepPlan) -> Sweep {
    sweep_with(plan, |ask| carry_out(server, plan, ask))
}

/// The same against anything that can carry out an ask.
pub fn sweep_with(plan: &SweepPlan, mut run: impl FnMut(&PointAsk) -> (Figures, f64)) -> Sweep {
    let mut points = Vec::new();
    let (mut took_s, mut stated_s, mut requests) = (0.0, 0.0, 0);
    while let SweepStep::Measure(ask) = next_sweep_step(plan, &points) {
        let (figures, seconds) = run(&ask);
        requests += figures.requests;
        points.push(Point { ask, figures });
        if points.len() == 1 {
            stated_s = estimate_time(plan, &points, None).map_or(0.0, |found| found.seconds);
        } else {
            took_s += seconds;
        }
        assert!(points.len() < 500, "it does not end");
    }
    let goodput = answer(plan, &points);
    Sweep { points, goodput, took_s, stated_s, requests }
}

/// The same by [`quick::quick_figures`]: what the search looks at, in a tenth of the time.
pub fn quick_sweep(server: &Server, plan: &SweepPlan) -> Sweep {
    sweep_with(plan, |ask| {
        let seen = load::run(server, ask);
        (quick::figures(server, plan, ask, &seen), seen.over.as_secs() + plan.settle_s)
    })
}

/// One point by both ways.
pub fn both(server: &Server, plan: &SweepPlan, ask: &PointAsk) -> [Figures; 2] {
    let seen = load::run(server, ask);
    [quick::figures(server, plan, ask, &seen), records::figures(server, plan, ask, &seen)]
}

/// One point: its figures, and how long it took with drain and pause.
pub fn carry_out(server: &Server, plan: &SweepPlan, ask: &PointAsk) -> (Figures, f64) {
    let seen = load::run(server, ask);
    let figures = records::figures(server, plan, ask, &seen);
    (figures, seen.over.as_secs() + plan.settle_s)
}
