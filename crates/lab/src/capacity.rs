//! Capacity plans: what one replica carries, the load over time, and the engine model played at its rates.

mod basis;
mod foreign;
mod simulation;
mod stated;
mod traffic;

pub use basis::CapacityBasis;
pub use traffic::TrafficLoad;

use goodput_campaign::capacity::{
    Capacity, PlanNote, PlanNoteKind, Refused, Sizes, expect_at, plan_for_traffic,
};

use crate::error::Failed;
use crate::events::Observer;
use simulation::simulate_traffic;

/// Says why a plan cannot be made.
pub fn refusal_error(refused: Refused) -> Failed {
    let failed = Failed::usage(refused.what);
    match refused.hint {
        Some(hint) => failed.hint(hint),
        None => failed,
    }
}

/// Holds this load against the replicas of the plan. Without lengths of prompts and answers nothing is
/// simulated.
pub fn add_traffic(
    capacity: &mut Capacity,
    load: &TrafficLoad,
    sizes: Option<Sizes>,
    observer: &dyn Observer,
) {
    let basis = capacity.basis.clone();
    let replicas = capacity.question.replicas.unwrap_or(capacity.fleets.with_headroom.replicas);
    let here = expect_at(&basis.levels, basis.confirmed_rps, "confirmed");
    let simulation = simulate_traffic(&basis, &load.traffic, replicas, sizes.as_ref(), observer);
    let mut note = |kind, text: &str| capacity.notes.push(PlanNote::new(kind, text));
    if simulation.refused.is_none() {
        note(
            PlanNoteKind::Assumed,
            "each replica gets an equal share of the traffic at random (Poisson arrivals)",
        );
        note(
            PlanNoteKind::Assumed,
            "the model has no memory limit, no prefix cache, and no refusals beyond their effect \
             on the measured step times",
        );
        if sizes.is_some_and(|sizes| sizes.is_assumed) {
            note(
                PlanNoteKind::Assumed,
                "lengths spread as in the presets, because the run's logs are missing",
            );
        }
    }
    if let Some(text) = load.mix_warning(&here) {
        note(PlanNoteKind::Extrapolated, &text);
    }
    for text in &load.notes {
        note(PlanNoteKind::Doubt, text);
    }
    let plan = plan_for_traffic(&basis, &capacity.question, &load.traffic, replicas, simulation);
    capacity.traffic = Some(plan);
}
