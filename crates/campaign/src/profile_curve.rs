//! What a profile of the engine model does at a rate of requests, in simulated time.

use std::sync::Arc;

use goodput_model::random::{Domain, RandomStream};
use goodput_model::schedule::ArrivalSequence;
use goodput_model::{ArrivalProcess as Process, LengthDistribution, Nanos, Rate};
use goodput_sim::{JobArrival, JobOutcome, Profile, SimEngine, SimJob, simulate};
use goodput_stats::{Quick, Sample};

/// Below this share of arrivals finished in the second half, the backlog grows.
const BALANCE: f64 = 0.97;

/// And this many standard deviations of the number of arrivals must be left over.
const CHANCE: f64 = 3.0;

/// Requests whose lengths are drawn, so long and at this rate.
#[derive(Debug, Clone, Copy)]
pub struct ProfileLoad {
    /// Tokens of a prompt.
    pub input: LengthDistribution,
    /// Tokens of an answer.
    pub output: LengthDistribution,
    /// Requests per second.
    pub rate: f64,
    /// How long they come.
    pub length: Nanos,
}

/// What the profile did.
#[derive(Debug, Clone)]
pub struct ProfilePoint {
    /// Requests per second.
    pub rate: f64,
    /// Requests that came.
    pub requests: usize,
    /// Those that the engine refused.
    pub refused: usize,
    /// Times to the first token, in milliseconds.
    pub ttft_ms: Quick,
    /// Times per output token after the first, in milliseconds.
    pub tpot_ms: Quick,
    /// Output tokens per second, while requests came.
    pub tokens_per_s: f64,
    /// More requests came than it could answer.
    pub is_saturated: bool,
}

/// Plays this load to an engine with this profile.
pub fn profile_point(profile: &Profile, seed: u64, load: ProfileLoad) -> ProfilePoint {
    let ProfileLoad { input, output, rate, length } = load;
    let mut engine =
        SimEngine::new(profile, seed, |seed, index| (seed as u32).rotate_left(7) ^ index);
    let instants = ArrivalSequence::new(Rate::PerSecond(rate), Process::Poisson, seed);
    let most = profile.longest_request();
    let mut too_long = 0;
    let arrivals = (0u64..).zip(instants.take_while(|at| *at < length)).filter_map(|(id, at)| {
        let mut lengths = RandomStream::new(seed, Domain::Lengths, id);
        let (input_tokens, output_tokens) = (input.draw(&mut lengths), output.draw(&mut lengths));
        // The server refuses these before the engine hears of them.
        if input_tokens + output_tokens > most {
            too_long += 1;
            return None;
        }
        // Every prompt is another: no two begin alike.
        let prompt: Arc<[u32]> =
            (0..input_tokens).map(|token| token ^ ((id as u32) << 12)).collect();
        Some(JobArrival { at, job: SimJob { id, prompt, output_tokens, answer_seed: id } })
    });
    let outcomes = simulate(&mut engine, arrivals);
    let mut point = summarize_outcomes(rate, length, &outcomes);
    point.requests += too_long;
    point.refused += too_long;
    point
}

fn summarize_outcomes(rate: f64, length: Nanos, outcomes: &[JobOutcome]) -> ProfilePoint {
    let (mut ttft, mut tpot) = (Sample::default(), Sample::default());
    let mut tokens = 0.0;
    for outcome in outcomes {
        let (Some(first), Some(last)) = (outcome.first_token, outcome.finished) else { continue };
        ttft.push((first - outcome.arrived).as_ms());
        if outcome.output_tokens > 1 {
            tpot.push((last - first).as_ms() / f64::from(outcome.output_tokens - 1));
        }
        // The part of its tokens that came while requests still arrived.
        let inside = if first < last {
            (length.min(last) - first).as_secs() / (last - first).as_secs()
        } else {
            f64::from(first < length)
        };
        tokens += f64::from(outcome.output_tokens) * inside;
    }
    let half = Nanos(length.0 / 2);
    let is_late = |at: Nanos| at >= half && at < length;
    let is_taken = |outcome: &&JobOutcome| is_late(outcome.arrived) && !outcome.refused;
    let came = outcomes.iter().filter(is_taken).count() as f64;
    let went = outcomes.iter().filter(|outcome| outcome.finished.is_some_and(is_late)).count();
    let backlog = came - went as f64;
    ProfilePoint {
        rate,
        requests: outcomes.len(),
        refused: outcomes.iter().filter(|outcome| outcome.refused).count(),
        ttft_ms: ttft.into_quick(),
        tpot_ms: tpot.into_quick(),
        tokens_per_s: tokens / length.as_secs(),
        is_saturated: backlog > (1.0 - BALANCE) * came && backlog > CHANCE * came.sqrt(),
    }
}
