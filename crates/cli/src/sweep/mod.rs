//! `goodput sweep`: points at rising load, each a run folder of its own, until it is known how much
//! load keeps the SLO.

mod asked;
mod many;
mod one;
mod point;
mod saved;
mod screen;

pub(crate) use asked::promise;
pub(crate) use one::{ABSENCE, EMPTYING, unwritable};
pub(crate) use point::at_level;
pub(crate) use saved::{Saved, read};

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use goodput_campaign::sweep::{GoodputState, SweepPlan, SweepState, SweepSummary};
use goodput_model::{Plan, Verdict};
use goodput_record::{Campaign, CampaignFolder, FolderError};

use crate::args::SweepArgs;
use crate::error::{Failed, exit};
use crate::fleet::{self, Part};
use crate::run::{Setup, folder_path, show};
use crate::workload::dry_run;
use crate::{plan, report, typed};
use asked::Asked;
use goodput_lab::folder_failed;
use goodput_lab::host;
use goodput_lab::readiness::Ready;
use goodput_lab::run::prepare;

/// What may stand beside `--resume`: what is not kept, and the commands that the folder may run.
const BESIDE_RESUME: [&str; 6] =
    ["target", "metrics_urls", "gpu", "serve", "vary", "allow_commands"];

/// Runs the verb.
pub(crate) fn sweep(args: &SweepArgs) -> Result<ExitCode, Failed> {
    let mut setup = Setup::new(args.output.quiet, !args.workload.no_length_check);
    let part = if args.output.dry_run { Part::Whole } else { Part::of(&args.shard)? };
    setup.lab.shard = part.shard();
    if let Part::Other(other) = part {
        let path = args.output.out.clone().unwrap_or_else(|| {
            PathBuf::from(format!("runs/{}-sweep", host::timestamp().replace(':', "-")))
        });
        return fleet::follow(&other, setup.lab, &own_plan(args)?, &path);
    }
    let setup = setup.hooked(&args.endpoint)?;
    let (resumed, asked) = match &args.resume {
        Some(path) => {
            typed::refuse_beside("resume", &BESIDE_RESUME)?;
            let (folder, asked) = resume(path, args)?;
            (Some(folder), asked)
        }
        None => (None, Asked::of(args)?),
    };
    if args.output.dry_run {
        return dry_run(asked.plan, &setup.hub, args.output.json);
    }
    if let (Some(folder), Some(path)) = (&resumed, &args.resume) {
        let commands = asked.commands(path, args)?;
        if !many::is_over(&asked, folder)? {
            commands.permit()?;
        }
    }
    let mut setup = setup.listening(&args.endpoint)?.showing(&args.output, "sweep");
    match part {
        Part::First(_) if asked.varies_target() => {
            return Err(Failed::usage("each client says for itself where it sends requests")
                .hint("of the target only its model can vary: --vary target.model=a,b"));
        }
        Part::First(first) => {
            setup.lab.runner = Box::new(first.gather(&setup, &asked.plan, true)?);
        }
        Part::Alone(_) => {
            return Err(Failed::usage("a sweep of several clients needs one that decides").hint(
                "--rendezvous HOST:PORT of client 0, or --shard auto, brings them together",
            ));
        }
        Part::Whole | Part::Other(_) => {}
    }
    if asked.is_one() {
        // A target that is not there leaves no folder behind.
        let prepared = prepare(&setup, asked.plan.clone())?;
        let folder = resumed.map_or_else(|| create(args, &asked), Ok)?;
        let path = folder.path().to_owned();
        let summary = one::sweep(&setup, &asked, folder, (prepared.plan, prepared.ready))?;
        show(&args.output, &path, &report::json(&summary), || {
            goodput_report::sweep_text(&summary)
        })?;
        return Ok(ExitCode::from(code(&summary)));
    }
    many::check(&asked)?;
    let folder = resumed.map_or_else(|| create(args, &asked), Ok)?;
    let path = folder.path().to_owned();
    let sweeps = many::sweep(&setup, &asked, &folder)?;
    report::keep_sweeps(&path, &sweeps);
    show(&args.output, &path, &report::json(&sweeps), || goodput_report::sweeps_text(&sweeps))?;
    let stopped = setup.interrupt.is_interrupted().then_some(exit::INTERRUPTED);
    Ok(ExitCode::from(stopped.unwrap_or_else(|| many::code(&sweeps))))
}

/// A sweep as part of something larger, in a folder of its own; one that was begun there goes on.
pub(crate) fn search(
    setup: &Setup,
    path: &Path,
    sweep: SweepPlan,
    asked: Plan,
    settled: (Plan, Arc<Ready>),
) -> Result<SweepSummary, Failed> {
    let asked = Asked::search(sweep, asked);
    let folder = match CampaignFolder::open(Campaign::Sweep, path) {
        Some(_) => CampaignFolder::resume(Campaign::Sweep, path),
        None => CampaignFolder::create(Campaign::Sweep, path, &asked),
    };
    one::sweep(setup, &asked, folder.map_err(|error| folder_failed(&error))?, settled)
}

/// What a client that is led settles for itself. The sweep is another's to go on with.
fn own_plan(args: &SweepArgs) -> Result<Plan, Failed> {
    let Some(path) = &args.resume else { return Asked::of(args).map(|asked| asked.plan) };
    let asked = CampaignFolder::open(Campaign::Sweep, path).map(|folder| folder.asked::<Asked>());
    match (asked, &args.target) {
        (Some(asked), _) => {
            complete(asked.map_err(|error| folder_failed(&error))?, args).map(|asked| asked.plan)
        }
        (None, Some(_)) => Asked::of(args).map(|asked| asked.plan),
        (None, None) => Err(Failed::usage("the folder of this sweep is not on this machine")
            .hint("say the target too: goodput sweep URL --resume FOLDER")),
    }
}

fn create(args: &SweepArgs, asked: &Asked) -> Result<CampaignFolder, Failed> {
    let path: PathBuf = folder_path(args.output.out.as_deref(), &asked.plan, "sweep");
    CampaignFolder::create(Campaign::Sweep, &path, &asked.written())
        .map_err(|error| folder_failed(&error))
}

/// The folder of a sweep that was stopped, and what was asked of it.
fn resume(path: &Path, args: &SweepArgs) -> Result<(CampaignFolder, Asked), Failed> {
    let failed = |error: FolderError| {
        let failed = Failed::usage(error.to_string());
        match error {
            FolderError::Locked(_) => failed.hint("wait for it, or stop it"),
            _ => failed.hint("--resume takes the folder that a sweep printed when it began"),
        }
    };
    let folder = CampaignFolder::resume(Campaign::Sweep, path).map_err(failed)?;
    let asked = complete(folder.asked().map_err(failed)?, args)?;
    Ok((folder, asked))
}

/// What was asked, with what is never saved.
fn complete(mut asked: Asked, args: &SweepArgs) -> Result<Asked, Failed> {
    if let Some(target) = &args.target {
        asked.plan.target.url = asked::target(target);
    }
    asked.check()?;
    plan::complete_headers(&mut asked.plan, &args.endpoint)?;
    plan::check(&asked.plan)?;
    Ok(asked)
}

/// The exit code of a sweep.
fn code(summary: &SweepSummary) -> u8 {
    match (summary.sweep.state, summary.goodput.as_ref().map(|goodput| goodput.state)) {
        (SweepState::Interrupted, _) => exit::INTERRUPTED,
        (SweepState::TargetLost | SweepState::NoGoodAnswer, _) => exit::TARGET,
        _ if summary.verdict == Verdict::Void => exit::VOID,
        (_, Some(GoodputState::Unreachable)) => exit::MISSED,
        (_, Some(GoodputState::Unclear)) => exit::VOID,
        (_, Some(GoodputState::Found | GoodputState::AtLeast) | None) => exit::OK,
    }
}
