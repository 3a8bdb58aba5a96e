//! `goodput plan`: replicas, GPUs and money for a load, from what was measured.

mod simulation;
mod traffic;

use std::process::ExitCode;

use goodput_campaign::capacity::{
    Capacity, FanOut, Footing, Note, NoteKind, Question, expected, over_traffic, plan,
};

use crate::args::CapacityArgs;
use crate::error::{Failed, exit};
use crate::{output, report};

use goodput_lab::capacity::{CapacityBasis, refused};
use traffic::Load;

/// Runs the verb.
pub(crate) fn capacity(args: &CapacityArgs) -> Result<ExitCode, Failed> {
    let found = read_basis(args)?;
    let load = Load::read(args)?;
    let target_rps = match (args.target_rps, &load) {
        (Some(target), _) => target,
        (None, Some(load)) => load.traffic.peak_rps(),
        (None, None) => return Err(Failed::usage("there is no load to plan for")),
    };
    let question = Question {
        target_rps,
        headroom: args.headroom,
        gpus_per_replica: args.gpus_per_replica.or(found.basis.gpus),
        price_per_gpu_hour: args.price_per_gpu_hour,
        replicas: args.replicas,
    };
    let mut capacity = plan(found.basis.clone(), question).map_err(refused)?;
    if let Some(load) = load {
        add_traffic(&mut capacity, &found, &load);
    }
    if let Some(calls) = args.fan_out {
        add_fan_out(&mut capacity, &found, calls);
    }
    if let Some(path) = &args.html {
        report::replace(path, goodput_report::capacity_html(&capacity).as_bytes()).map_err(
            |failed| failed.hint("--html takes the name of a file in a folder that is there"),
        )?;
    }
    if args.json {
        output::data(report::json(&capacity).as_bytes())?;
    } else {
        output::page(&goodput_report::capacity_text(&capacity))?;
    }
    Ok(ExitCode::from(exit::OK))
}

/// A figure that was typed, or what a run or a sweep says.
fn read_basis(args: &CapacityArgs) -> Result<CapacityBasis, Failed> {
    if let Some(goodput) = args.goodput_rps {
        return CapacityBasis::given(goodput, args.rejected_rps);
    }
    let path = args.run.as_deref().ok_or_else(CapacityBasis::missing)?;
    CapacityBasis::read(path, &args.configuration)
}

fn add_traffic(capacity: &mut Capacity, found: &CapacityBasis, load: &Load) {
    let replicas = capacity.question.replicas.unwrap_or(capacity.fleets.with_headroom.replicas);
    let here = expected(&found.basis.levels, found.basis.confirmed_rps, "confirmed");
    let sizes = found.sizes(&here);
    let simulation = simulation::simulate(&found.basis, &load.traffic, replicas, sizes.as_ref());
    let mut note = |kind, text: &str| capacity.notes.push(Note::new(kind, text));
    if simulation.refused.is_none() {
        note(
            NoteKind::Assumed,
            "each replica sees its even share of the traffic, picked at random: Poisson arrivals",
        );
        note(
            NoteKind::Assumed,
            "the model has no limit of memory, no prefix cache and no refusals beyond what they do \
             to the measured step times",
        );
        if sizes.is_some_and(|sizes| sizes.is_assumed) {
            note(
                NoteKind::Assumed,
                "lengths spread as in the presets: the logs of the run are not there to tell",
            );
        }
    }
    if let Some(text) = load.other_mix(&here) {
        note(NoteKind::Extrapolated, &text);
    }
    for text in &load.notes {
        note(NoteKind::Doubt, text);
    }
    let plan = over_traffic(&found.basis, &capacity.question, &load.traffic, replicas, simulation);
    capacity.traffic = Some(plan);
}

fn add_fan_out(capacity: &mut Capacity, found: &CapacityBasis, calls: u32) {
    let here = expected(&found.basis.levels, found.basis.confirmed_rps, "confirmed");
    if matches!(here.footing, Footing::Nothing | Footing::AboveMeasured) {
        let text =
            "latency of a step with several calls: nothing was measured at the confirmed rate";
        capacity.notes.push(Note::new(NoteKind::Missing, text));
        return;
    }
    let fan_out = found.fan_out(calls).unwrap_or_else(|| FanOut::of_expected(calls, &here));
    let text = "the calls of a step are independent of each other";
    capacity.notes.push(Note::new(NoteKind::Assumed, text));
    capacity.fan_out = Some(fan_out);
}
