//! `goodput sweep`: points at rising load, each a run folder of its own, until it is known how much
//! load keeps the SLO.

mod request;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use goodput_campaign::sweep::{Configuration, GoodputState, SweepState, SweepSummary, Sweeps};
use goodput_lab::run::prepare_run;
use goodput_lab::sweep::{self as lab, SweepRequest};
use goodput_lab::{folder_failed, host};
use goodput_model::{Plan, Verdict};
use goodput_record::{Campaign, CampaignFolder, FolderError};

use crate::args::SweepArgs;
use crate::error::{Failed, exit};
use crate::fleet::{self, FleetRole};
use crate::result::{folder_path, show_result};
use crate::setup::Setup;
use crate::workload::dry_run;
use crate::{explicit_flags, output, plan, report};

/// The flags that can be combined with `--resume`: those that are not saved, and the commands that
/// the folder may run.
const WITH_RESUME: [&str; 7] =
    ["target", "metrics_urls", "gpu", "serve", "vary", "allow_commands", "max_time"];

/// Runs the verb: what is asked, new or by a folder, the part of it that this client has, and the sweep of
/// one configuration or several.
pub(crate) fn sweep(args: &SweepArgs) -> Result<ExitCode, Failed> {
    let mut setup = Setup::new(args.output.quiet, !args.workload.no_length_check);
    let role =
        if args.output.dry_run { FleetRole::Alone } else { FleetRole::from_args(&args.shard)? };
    setup.lab.shard = role.shard();
    if let FleetRole::Rank(meeting) = role {
        return fleet::follow_coordinator(
            &meeting,
            setup.lab,
            &follower_plan(args)?,
            &follower_path(args),
        );
    }
    let setup = setup.with_hooks(&args.endpoint)?;
    let (resumed, request) = match &args.resume {
        Some(path) => resume_folder(path, args).map(|(folder, request)| (Some(folder), request))?,
        None => (None, request::from_flags(args)?),
    };
    if args.output.dry_run {
        if !args.output.json {
            let page = goodput_report::sweep_design(&request.sweep);
            output::print_data(format!("{page}\n").as_bytes())?;
        }
        return dry_run(request.plan, &setup.hub, args.output.json);
    }
    if let Some(folder) = &resumed {
        permit_commands(&setup, folder, &request, args)?;
    }
    let mut setup = setup.with_metrics_page(&args.endpoint)?.with_progress(&args.output, "sweep");
    join_fleet(&mut setup, role, &request)?;
    if request.has_one_configuration() {
        sweep_once(&setup, &request, resumed, args)
    } else {
        sweep_configurations(&setup, &request, resumed, args)
    }
}

/// Sweeps one configuration, and prints the result.
fn sweep_once(
    setup: &Setup,
    request: &SweepRequest,
    resumed: Option<CampaignFolder>,
    args: &SweepArgs,
) -> Result<ExitCode, Failed> {
    // A target that is not there leaves no folder behind.
    let prepared = prepare_run(setup, request.plan.clone())?;
    let folder = resumed.map_or_else(|| create_folder(args, request), Ok)?;
    let path = folder.path().to_owned();
    let summary = lab::sweep_target(setup, request, folder, prepared.into())?;
    let text = || goodput_report::sweep_text(&summary, args.output.detail_level());
    show_result(&args.output, &path, &report::to_json(&summary), text)?;
    Ok(ExitCode::from(exit_code(&summary)))
}

/// Sweeps several configurations, and prints the combined result.
fn sweep_configurations(
    setup: &Setup,
    request: &SweepRequest,
    resumed: Option<CampaignFolder>,
    args: &SweepArgs,
) -> Result<ExitCode, Failed> {
    lab::check_request(request)?;
    let folder = resumed.map_or_else(|| create_folder(args, request), Ok)?;
    let sweeps = lab::sweep_all(setup, request, &folder)?;
    report::write_sweeps_page(folder.path(), &sweeps);
    let text = || goodput_report::sweeps_text(&sweeps, args.output.detail_level());
    show_result(&args.output, folder.path(), &report::to_json(&sweeps), text)?;
    let stopped = setup.interrupt.is_interrupted().then_some(exit::INTERRUPTED);
    Ok(ExitCode::from(stopped.unwrap_or_else(|| sweeps_exit_code(&sweeps))))
}

/// Joins the fleet: a sweep needs a coordinator.
fn join_fleet(setup: &mut Setup, role: FleetRole, request: &SweepRequest) -> Result<(), Failed> {
    match role {
        FleetRole::Coordinator(_) if request.varies_target() => Err(Failed::usage(
            "--vary cannot change the target's address in a fleet: each rank sets its own",
        )
        .hint("only the model of the target can vary: --vary target.model=a,b")),
        FleetRole::Coordinator(meeting) => {
            setup.lab.runner = Box::new(meeting.gather_ranks(setup, &request.plan, true)?);
            Ok(())
        }
        FleetRole::Shard(_) => Err(Failed::usage("a sweep of a fleet needs a coordinator")
            .hint("add --rendezvous HOST:PORT of rank 0, or use --shard auto")),
        FleetRole::Alone | FleetRole::Rank(_) => Ok(()),
    }
}

/// Refuses to run commands that only the folder names; a finished sweep runs nothing.
fn permit_commands(
    setup: &Setup,
    folder: &CampaignFolder,
    request: &SweepRequest,
    args: &SweepArgs,
) -> Result<(), Failed> {
    let path = args.resume.as_deref().unwrap_or(folder.path());
    let commands = request::folder_commands(request, path, args)?;
    if lab::are_all_done(request, folder, &*setup.observer)? {
        Ok(())
    } else {
        commands.check_permitted(&*setup.observer)
    }
}

/// The folder in which a rank other than the coordinator saves its measurements.
fn follower_path(args: &SweepArgs) -> PathBuf {
    let named = || format!("runs/{}-sweep", host::timestamp().replace(':', "-")).into();
    args.output.out.clone().unwrap_or_else(named)
}

/// The plan of a rank that follows. The coordinator continues the sweep.
fn follower_plan(args: &SweepArgs) -> Result<Plan, Failed> {
    let Some(path) = &args.resume else { return request::from_flags(args).map(|asked| asked.plan) };
    let asked = CampaignFolder::open(Campaign::Sweep, path)
        .map(|folder| folder.read_asked::<SweepRequest>());
    match (asked, &args.target) {
        (Some(asked), _) => add_unsaved_parts(asked.map_err(|error| folder_failed(&error))?, args)
            .map(|asked| asked.plan),
        (None, Some(_)) => request::from_flags(args).map(|asked| asked.plan),
        (None, None) => Err(Failed::usage("the folder of this sweep is not on this machine")
            .hint("give the target too: goodput sweep URL --resume FOLDER")),
    }
}

fn create_folder(args: &SweepArgs, asked: &SweepRequest) -> Result<CampaignFolder, Failed> {
    let path: PathBuf = folder_path(args.output.out.as_deref(), &asked.plan, "sweep");
    CampaignFolder::create(Campaign::Sweep, &path, &asked.without_secrets())
        .map_err(|error| folder_failed(&error))
}

/// The folder of a sweep that was stopped, and what was asked of it.
fn resume_folder(path: &Path, args: &SweepArgs) -> Result<(CampaignFolder, SweepRequest), Failed> {
    explicit_flags::refuse_with("resume", &WITH_RESUME)?;
    let failed = |error: FolderError| {
        let failed = Failed::usage(error.to_string());
        match error {
            FolderError::Locked(_) => failed.hint("wait for it, or stop it"),
            _ => failed.hint("--resume takes the folder that a sweep printed when it began"),
        }
    };
    let folder = CampaignFolder::resume(Campaign::Sweep, path).map_err(failed)?;
    let asked = add_unsaved_parts(folder.read_asked().map_err(failed)?, args)?;
    Ok((folder, asked))
}

/// Completes a saved request with the parts that are never saved.
fn add_unsaved_parts(mut asked: SweepRequest, args: &SweepArgs) -> Result<SweepRequest, Failed> {
    if let Some(target) = &args.target {
        asked.plan.target.url = request::sweep_target(target);
    }
    if let Some(time) = args.point.max_time {
        asked.max_s = Some(time.as_secs_f64());
    }
    asked.check()?;
    plan::complete_headers(&mut asked.plan, &args.endpoint)?;
    plan::check(&asked.plan)?;
    Ok(asked)
}

/// The exit code of a sweep.
fn exit_code(summary: &SweepSummary) -> u8 {
    match (summary.sweep.state, summary.goodput.as_ref().map(|goodput| goodput.state)) {
        (SweepState::Interrupted, _) => exit::INTERRUPTED,
        (SweepState::TargetLost | SweepState::NoGoodAnswer, _) => exit::TARGET,
        _ if summary.verdict == Verdict::Void => exit::VOID,
        (_, Some(GoodputState::Unreachable)) => exit::MISSED,
        (_, Some(GoodputState::Unclear)) => exit::VOID,
        (_, Some(GoodputState::Found | GoodputState::AtLeast | GoodputState::Measured) | None) => {
            exit::OK
        }
    }
}

/// The exit code: of the best one, unless the user stopped, or there is none.
fn sweeps_exit_code(sweeps: &Sweeps) -> u8 {
    let all = || sweeps.configurations.iter();
    let best = sweeps.best.and_then(|place| sweeps.configurations.get(place));
    let is_stopped = |one: &Configuration| {
        one.sweep.as_ref().is_some_and(|sweep| sweep.sweep.state == SweepState::Interrupted)
    };
    if all().any(is_stopped) {
        return exit::INTERRUPTED;
    }
    match best.and_then(|best| best.sweep.as_ref()) {
        Some(sweep) => exit_code(sweep),
        None if all().all(|one| one.failed.is_some()) => exit::TARGET,
        // The mildest: one that reaches its end says that the others could have.
        None => {
            all().filter_map(|one| one.sweep.as_ref()).map(exit_code).min().unwrap_or(exit::VOID)
        }
    }
}
