//! `goodput plan`: replicas, GPUs and money for a load, from what was measured.

use std::process::ExitCode;

use goodput_campaign::capacity::{
    Capacity, Expected, FanOut, Footing, PlanNote, PlanNoteKind, Question, expected, plan,
};
use goodput_lab::capacity::{CapacityBasis, TrafficLoad, add_traffic, refused};

use crate::args::CapacityArgs;
use crate::error::{Failed, exit};
use crate::plan::slo_question;
use crate::printer::Printer;
use crate::{output, report};

/// Runs the verb.
pub(crate) fn capacity(args: &CapacityArgs) -> Result<ExitCode, Failed> {
    let found = read_basis(args)?;
    let load = load(args)?;
    let target_rps = match (args.target_rps, &load) {
        (Some(target), _) => target,
        (None, Some(load)) => load.traffic.peak_rps(),
        (None, None) => return Err(Failed::usage("no load was given to plan for")),
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
        let sizes = found.sizes(&confirmed(&found));
        add_traffic(&mut capacity, &load, sizes, &Printer::new(false));
    }
    if let Some(calls) = args.fan_out {
        add_fan_out(&mut capacity, &found, calls);
    }
    if let Some(path) = &args.html {
        report::replace(path, goodput_report::capacity_html(&capacity).as_bytes())
            .map_err(|failed| failed.hint("--html takes a file name in an existing folder"))?;
    }
    if args.json {
        output::data(report::json(&capacity).as_bytes())?;
    } else {
        output::page(&goodput_report::capacity_text(&capacity))?;
    }
    Ok(ExitCode::from(exit::OK))
}

/// The load over time; none if none was asked for.
fn load(args: &CapacityArgs) -> Result<Option<TrafficLoad>, Failed> {
    match (args.diurnal, &args.traffic) {
        (Some(day), _) => TrafficLoad::diurnal(day.peak, day.trough, day.peak_hour).map(Some),
        (None, traffic) => traffic.as_deref().map(TrafficLoad::open).transpose(),
    }
}

/// A figure that was typed, or what a run or a sweep says.
fn read_basis(args: &CapacityArgs) -> Result<CapacityBasis, Failed> {
    if let Some(goodput) = args.goodput_rps {
        return CapacityBasis::given(goodput, args.rejected_rps);
    }
    let path = args.run.as_deref().ok_or_else(CapacityBasis::missing)?;
    let slo = slo_question(&args.slo)?;
    CapacityBasis::read(path, &args.configuration, &slo, &Printer::new(false))
}

/// What is expected of a replica at the rate that was confirmed.
fn confirmed(found: &CapacityBasis) -> Expected {
    expected(&found.basis.levels, found.basis.confirmed_rps, "confirmed")
}

fn add_fan_out(capacity: &mut Capacity, found: &CapacityBasis, calls: u32) {
    let here = confirmed(found);
    if matches!(here.footing, Footing::Nothing | Footing::AboveMeasured) {
        let text = "the latency of a step with several calls is unknown: nothing was measured at \
                    the confirmed rate";
        capacity.notes.push(PlanNote::new(PlanNoteKind::Missing, text));
        return;
    }
    let fan_out = found.fan_out(calls).unwrap_or_else(|| FanOut::of_expected(calls, &here));
    let text = "the calls of a step are independent of each other";
    capacity.notes.push(PlanNote::new(PlanNoteKind::Assumed, text));
    capacity.fan_out = Some(fan_out);
}
