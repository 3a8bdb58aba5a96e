//! `goodput capacity`: replicas, GPUs, and cost for a load, computed from measurements.

use std::process::ExitCode;

use goodput_campaign::capacity::{
    Capacity, Expected, FanOut, Footing, PlanNote, PlanNoteKind, Question, expect_at, plan_capacity,
};
use goodput_lab::capacity::{CapacityBasis, TrafficLoad, add_traffic, refusal_error};

use crate::args::CapacityArgs;
use crate::error::{Failed, exit};
use crate::plan::slo_question;
use crate::printer::Printer;
use crate::{output, report};

/// Runs the verb.
pub(crate) fn capacity(args: &CapacityArgs) -> Result<ExitCode, Failed> {
    let found = read_basis(args)?;
    let load = read_traffic(args)?;
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
    let mut capacity = plan_capacity(found.basis.clone(), question).map_err(refusal_error)?;
    if let Some(load) = load {
        let sizes = found.prompt_and_answer_sizes(&expected_when_confirmed(&found));
        add_traffic(&mut capacity, &load, sizes, &Printer::new(false));
    }
    if let Some(calls) = args.fan_out {
        add_fan_out(&mut capacity, &found, calls);
    }
    if let Some(path) = &args.html {
        report::replace_file(path, goodput_report::capacity_html(&capacity).as_bytes())
            .map_err(|failed| failed.hint("--html takes a file name in an existing folder"))?;
    }
    if args.json {
        output::print_data(report::to_json(&capacity).as_bytes())?;
    } else {
        output::print_page(&goodput_report::capacity_text(&capacity))?;
    }
    Ok(ExitCode::from(exit::OK))
}

/// The load over time, if one was requested.
fn read_traffic(args: &CapacityArgs) -> Result<Option<TrafficLoad>, Failed> {
    match (args.diurnal, &args.traffic) {
        (Some(day), _) => TrafficLoad::diurnal(day.peak, day.trough, day.peak_hour).map(Some),
        (None, traffic) => traffic.as_deref().map(TrafficLoad::open).transpose(),
    }
}

/// Takes the goodput from the flags, or from a run or a sweep.
fn read_basis(args: &CapacityArgs) -> Result<CapacityBasis, Failed> {
    if let Some(goodput) = args.goodput_rps {
        return CapacityBasis::from_rates(goodput, args.rejected_rps);
    }
    let path = args.run.as_deref().ok_or_else(CapacityBasis::missing_error)?;
    let slo = slo_question(&args.slo)?;
    CapacityBasis::read(path, &args.configuration, &slo, &Printer::new(false))
}

/// The expected performance of one replica at the confirmed rate.
fn expected_when_confirmed(found: &CapacityBasis) -> Expected {
    expect_at(&found.basis.levels, found.basis.confirmed_rps, "confirmed")
}

fn add_fan_out(capacity: &mut Capacity, found: &CapacityBasis, calls: u32) {
    let here = expected_when_confirmed(found);
    if matches!(here.footing, Footing::Nothing | Footing::AboveMeasured) {
        let text = "the latency of a step with several calls is unknown: nothing was measured at \
                    the confirmed rate";
        capacity.notes.push(PlanNote::new(PlanNoteKind::Missing, text));
        return;
    }
    let fan_out = found.fan_out(calls).unwrap_or_else(|| FanOut::from_expected(calls, &here));
    let text = "the calls of a step are independent of each other";
    capacity.notes.push(PlanNote::new(PlanNoteKind::Assumed, text));
    capacity.fan_out = Some(fan_out);
}
