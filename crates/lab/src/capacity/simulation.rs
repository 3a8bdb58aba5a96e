//! Playing the engine model, on all processors.

use std::ops::Range;

use goodput_campaign::capacity::{
    Basis, Fitted, Played, Simulation, Sizes, Traffic, calibrate_model, play_levels,
    rates_to_simulate,
};
use goodput_clock::{allowed_cpus, now};
use goodput_model::Nanos;

use crate::events::Observer;

/// Work that takes longer is announced.
const SOON: Nanos = Nanos::from_millis(2_000);

/// The chance of missing the SLO at the rates of this traffic, or why it is not stated.
pub(super) fn simulate_traffic(
    basis: &Basis,
    traffic: &Traffic,
    replicas: u64,
    sizes: Option<&Sizes>,
    observer: &dyn Observer,
) -> Simulation {
    let Some(sizes) = sizes else {
        return Simulation::refused("the lengths of prompts and answers are unknown", "");
    };
    let begun = now();
    let fitted = match calibrate_model(basis, sizes) {
        Ok(fitted) => fitted,
        Err(because) => return Simulation::refused(because, sizes.about.clone()),
    };
    let rates = rates_to_simulate(basis, traffic, replicas);
    let mut number = 0;
    let played = play_levels(&fitted, &rates, |rps, numbers| {
        if numbers.start == 0 {
            number += 1;
            if now() - begun > SOON {
                let most = rates.len();
                observer
                    .notice(format!("simulating rate {number} of at most {most}: {rps:.3} req/s"));
            }
        }
        simulate_in_parallel(&fitted, rps, numbers)
    });
    Simulation::new(&fitted, sizes.about.clone(), played)
}

/// Some stretches at a rate, shared out among the processors.
fn simulate_in_parallel(fitted: &Fitted, rps: f64, numbers: Range<u64>) -> Vec<Played> {
    let threads = allowed_cpus().len().max(1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let own = numbers.clone().skip(worker).step_by(threads);
                let each = move |number| (number, fitted.play(rps, number));
                scope.spawn(move || own.map(each).collect::<Vec<_>>())
            })
            .collect();
        let mut played: Vec<(u64, Played)> =
            workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect();
        // The same sums on any number of processors.
        played.sort_by_key(|(number, _)| *number);
        played.into_iter().map(|(_, played)| played).collect()
    })
}
