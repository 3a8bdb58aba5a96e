//! The truth, by runs so long that chance is gone.

use goodput_model::schedule::ArrivalSequence;
use goodput_model::{ArrivalProcess as Process, Nanos, Rate};
use goodput_sim::{JobArrival, simulate};

use super::Server;

/// Share of requests beyond the limit in a run of this many requests at this rate, the first
/// tenth left out.
pub fn miss_share(server: &Server, rate: f64, requests: usize, seed: u64) -> f64 {
    let mut engine = server.engine(seed);
    let instants = ArrivalSequence::new(Rate::PerSecond(rate), Process::Poisson, seed);
    let arrivals = (0u64..)
        .zip(instants.take(requests))
        .map(|(id, at): (u64, Nanos)| JobArrival { at, job: server.job(seed, id) });
    let outcomes = simulate(&mut engine, arrivals);
    let (mut missed, mut all) = (0u64, 0u64);
    for outcome in outcomes.iter().skip(requests / 10) {
        let kept = server.keeps(outcome.arrived, outcome.first_token, outcome.finished);
        missed += u64::from(!kept);
        all += 1;
    }
    missed as f64 / all.max(1) as f64
}
