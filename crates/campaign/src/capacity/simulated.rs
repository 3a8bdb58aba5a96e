//! The engine model in the place of a replica.

mod fit;
mod limits;

use std::fmt;
use std::sync::Arc;

use goodput_model::random::{Domain, RandomStream};
use goodput_model::{Nanos, Slo};
use goodput_sim::{
    BatchingProfile, EngineProfile, Hardware, JobArrival, JobOutcome, Kv, Profile, Scheduler,
    SimEngine, SimJob, StartupCost, StepCost, Time, simulate,
};
use serde::{Deserialize, Serialize};

pub use fit::calibrate_model;
use limits::StretchLimits;

/// Pairs of lengths that are kept: enough for their p99.
const MOST_PAIRS: usize = 1000;
/// Tokens that one step may compute: the engine does not say, and this is a usual setting.
const STEP_TOKENS: u32 = 8192;
/// The spread of logarithms of lengths where it is unknown: that of the presets.
const SIGMA: f64 = 0.8;

/// Lengths of prompts and answers, as pairs.
#[derive(Clone, PartialEq)]
pub struct Sizes {
    pairs: Vec<(Arc<[u32]>, u32)>,
    /// Where they come from, in words.
    pub about: String,
    /// Whether they are assumed, not measured.
    pub is_assumed: bool,
}

impl fmt::Debug for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pairs of lengths, {}", self.pairs.len(), self.about)
    }
}

impl Sizes {
    /// Pairs that were seen. Of many, as many as are enough, evenly taken.
    pub fn from_pairs(pairs: &[(u32, u32)], about: impl Into<String>) -> Option<Self> {
        let every = pairs.len().div_ceil(MOST_PAIRS).max(1);
        let taken: Vec<_> =
            pairs.iter().step_by(every).map(|(i, o)| Self::prompt_and_answer(*i, *o)).collect();
        (!taken.is_empty()).then(|| Self { pairs: taken, about: about.into(), is_assumed: false })
    }

    /// Lengths with these means, spread as the presets are.
    pub fn from_means(input: f64, output: f64) -> Option<Self> {
        let is_length = |tokens: f64| (0.5..1e7).contains(&tokens);
        if !(is_length(input) && is_length(output)) {
            return None;
        }
        let median = |mean: f64| mean / (SIGMA * SIGMA / 2.0).exp();
        let draw = |index: u64| {
            let mut stream = RandomStream::new(1, Domain::Lengths, index);
            let mut length = |mean: f64| {
                stream.draw_log_normal(median(mean), SIGMA).round().clamp(1.0, 1e6) as u32
            };
            let input = length(input);
            Self::prompt_and_answer(input, length(output))
        };
        let pairs = (0..MOST_PAIRS as u64).map(draw).collect();
        let about = "log-normal around the measured means (sigma 0.8)".to_owned();
        Some(Self { pairs, about, is_assumed: true })
    }

    fn prompt_and_answer(input: u32, output: u32) -> (Arc<[u32]>, u32) {
        // The cache is off: only the length of a prompt matters.
        (vec![0; input.clamp(1, 1_000_000) as usize].into(), output.clamp(1, 1_000_000))
    }

    fn mean_input(&self) -> f64 {
        let sum: f64 = self.pairs.iter().map(|(prompt, _)| prompt.len() as f64).sum();
        sum / self.pairs.len().max(1) as f64
    }
}

/// The numbers of the model that are fitted.
#[derive(Debug, Clone, PartialEq)]
struct Parameters {
    /// Step time by sequences decoded, in milliseconds, both rising.
    decode: Vec<(u32, f64)>,
    /// Milliseconds of a prefill token.
    prefill_ms: f64,
    /// Milliseconds before the queue.
    frontend_ms: f64,
    /// How much of prefill hides behind decoding.
    overlap: f64,
    /// Sequences at once.
    max_seqs: u32,
    /// All step times times this.
    slowness: f64,
}

impl Parameters {
    fn profile(&self) -> Result<Profile, String> {
        let base = self.decode.first().map_or(0.0, |(_, ms)| *ms) * self.slowness;
        let decode = self.decode.iter().map(|(n, ms)| (*n, ms * self.slowness)).collect();
        let step = StepCost {
            base_ms: base,
            overlap: self.overlap,
            reference_context: 0,
            decode_ms: decode,
            kv_ns: 0.0,
            prefill_ms: vec![(1000, base + 1000.0 * self.prefill_ms * self.slowness)],
            attention_ns: 0.0,
        };
        let frontend =
            std::time::Duration::from_secs_f64((self.frontend_ms / 1e3).clamp(0.0, 60.0));
        let scheduler = Scheduler {
            max_num_seqs: self.max_seqs,
            max_num_batched_tokens: STEP_TOKENS.max(self.max_seqs),
            chunked_prefill: true,
            max_queue: None,
            frontend: Time(frontend),
        };
        // Memory is not modeled: what it does to the measured points is in their step times.
        let kv = Kv { blocks: 10_000_000, block_tokens: 1024, prefix_caching: false };
        let profile = Profile {
            about: "calibrated from measured points by `goodput capacity`".to_owned(),
            model: "calibrated".to_owned(),
            max_model_len: 4_000_000,
            default_tokens: 256,
            answer: None,
            image_tokens: 576,
            engine: EngineProfile::Batching(Box::new(BatchingProfile {
                scheduler,
                kv,
                step,
                speculative: None,
                disaggregated: None,
                hardware: Hardware::default(),
                start: StartupCost::default(),
            })),
        };
        profile.check()?;
        Ok(profile)
    }
}

/// Some time under Poisson arrivals.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stretch {
    rps: f64,
    burn_in_s: f64,
    seconds: f64,
    seed: u64,
}

/// What became of the requests that came after the burn-in.
fn simulate_stretch(profile: &Profile, sizes: &Sizes, stretch: Stretch) -> Vec<JobOutcome> {
    let end = stretch.burn_in_s + stretch.seconds;
    let mut gaps = RandomStream::new(stretch.seed, Domain::Arrivals, 0);
    let mut choice = RandomStream::new(stretch.seed, Domain::Sampling, 0);
    let (mut at, mut id) = (0.0, 0u64);
    let arrivals = std::iter::from_fn(|| {
        at += gaps.draw_exponential() / stretch.rps;
        if at >= end {
            return None;
        }
        let place = choice.next_below(sizes.pairs.len() as u64) as usize;
        let (prompt, output) = sizes.pairs.get(place)?;
        let job =
            SimJob { id, prompt: Arc::clone(prompt), output_tokens: *output, answer_seed: id };
        id += 1;
        Some(JobArrival { at: Nanos::from_secs_f64(at), job })
    });
    let mut engine = SimEngine::new(profile, stretch.seed, |_, index| index);
    let mut outcomes = simulate(&mut engine, arrivals);
    let burn_in = Nanos::from_secs_f64(stretch.burn_in_s);
    outcomes.retain(|outcome| outcome.arrived >= burn_in);
    outcomes
}

/// One measured point and the model's value there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FitPoint {
    /// Its rate.
    pub rps: f64,
    /// Median TTFT, measured and simulated, in milliseconds.
    pub ttft_p50_ms: [Option<f64>; 2],
    /// 99th percentile of TTFT.
    pub ttft_p99_ms: [Option<f64>; 2],
    /// Median TPOT.
    pub tpot_p50_ms: [Option<f64>; 2],
}

/// The model, calibrated.
#[derive(Debug, Clone)]
pub struct Fitted {
    profile: Profile,
    sizes: Sizes,
    slo: Slo,
    limits: StretchLimits,
    burn_in_s: f64,
    /// Step times were multiplied by this to meet the measured limit.
    pub slowness: f64,
    /// Sequences at once.
    pub max_num_seqs: u32,
    /// Milliseconds of a prefill token.
    pub prefill_ms_per_token: f64,
    /// The rate at which the SLO is crossed, as measured: the model is made to agree.
    pub limit_rps: f64,
    /// The measured points, next to the model's.
    pub points: Vec<FitPoint>,
    /// Medians over the points of the relative errors of TTFT p50, TTFT p99 and TPOT p50.
    pub errors: [Option<f64>; 3],
}

/// One stretch, judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Played {
    /// Whether the SLO was missed.
    pub missed: bool,
    /// Share of requests inside the limits.
    pub good_share: f64,
}

impl Fitted {
    /// Seconds of a stretch at this rate: five minutes, or what 6,000 requests take, but a minute
    /// at least.
    pub fn stretch_s(&self, rps: f64) -> f64 {
        (6_000.0 / rps.max(1e-9)).clamp(60.0, super::traffic::SLOT_S)
    }

    /// A stretch at this rate; each number has arrivals of its own.
    pub fn play(&self, rps: f64, number: u64) -> Played {
        let stretch = Stretch {
            rps,
            burn_in_s: self.burn_in_s,
            seconds: self.stretch_s(rps),
            seed: 1000 + number,
        };
        let judged =
            self.limits.judge(&simulate_stretch(&self.profile, &self.sizes, stretch), &self.slo);
        Played { missed: judged.excess > 1.0, good_share: judged.good_share }
    }

    /// The model as the file of a profile, for `goodput mock --profile`.
    pub fn profile_toml(&self) -> Option<String> {
        self.profile.to_toml().ok()
    }
}
