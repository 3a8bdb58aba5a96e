//! Workloads and small engines for the tests.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::Arc;

use goodput_model::Nanos;
use goodput_model::random::{Domain, RandomStream};
use goodput_sim::{JobArrival, Output, Profile, SimEngine, SimJob};

/// Token ids of answers: any function will do, if it tells answers apart.
pub(crate) fn token_of(answer_seed: u64, index: u32) -> u32 {
    (answer_seed as u32).wrapping_mul(1_000_003).wrapping_add(index)
}

pub(crate) fn engine(profile: &Profile) -> SimEngine {
    SimEngine::new(profile, 1, token_of)
}

/// A job whose prompt shares nothing with any other's.
pub(crate) fn unique(id: u64, prompt: u32, output: u32) -> SimJob {
    job(id, vec![0x4000_0000 + id as u32; prompt as usize], output)
}

pub(crate) fn job(id: u64, prompt: Vec<u32>, output_tokens: u32) -> SimJob {
    SimJob { id, prompt: Arc::from(prompt), output_tokens, answer_seed: id }
}

/// A small engine: a step takes 10 ms, and 1 ms more for each ten prefill tokens.
pub(crate) const SMALL: &str = r#"
model = "small"
max_model_len = 1000
default_tokens = 16

[scheduler]
max_num_seqs = 8
max_num_batched_tokens = 100

[kv]
blocks = 1000
block_tokens = 4

[step]
base_ms = 10.0
overlap = 0.0
decode_ms = [[1, 10.0]]
prefill_ms = [[10, 11.0]]
"#;

pub(crate) fn small(changes: &[(&str, &str)]) -> Profile {
    changed(Profile::parse(SMALL).unwrap(), changes)
}

pub(crate) fn changed(mut profile: Profile, changes: &[(&str, &str)]) -> Profile {
    for (key, value) in changes {
        profile.set(key, value).unwrap();
    }
    profile
}

/// Runs the engine until it is idle.
pub(crate) fn drain(engine: &mut SimEngine) -> Vec<Output> {
    let mut out = Vec::new();
    while let Some(at) = engine.next() {
        engine.advance(at, &mut out);
    }
    out
}

/// Instants of one request's outputs in milliseconds.
pub(crate) fn instants(outputs: &[Output], id: u64) -> Vec<f64> {
    outputs.iter().filter(|output| output.id == id).map(|output| output.at.as_ms()).collect()
}

/// Poisson arrivals at `rate` a second with jobs from `make`.
pub(crate) fn poisson(
    seed: u64,
    rate: f64,
    count: u64,
    mut make: impl FnMut(u64) -> SimJob,
) -> Vec<JobArrival> {
    let mut gaps = RandomStream::new(seed, Domain::Arrivals, 0);
    let mut at = 0.0;
    (0..count)
        .map(|id| {
            at += gaps.draw_exponential() / rate;
            JobArrival { at: Nanos::from_secs_f64(at), job: make(id) }
        })
        .collect()
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard error of the mean of a correlated sequence: from the means of 50 batches.
pub(crate) fn standard_error(values: &[f64]) -> f64 {
    let means: Vec<f64> = values.chunks_exact(values.len() / 50).map(mean).collect();
    let center = mean(&means);
    let squares: f64 = means.iter().map(|m| (m - center).powi(2)).sum();
    (squares / (means.len() - 1) as f64 / means.len() as f64).sqrt()
}

/// The order statistic at share `q`.
pub(crate) fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * q).round() as usize]
}
