//! Live targets, in blocks.

mod asked;
mod contest;
mod round;
mod saved;
mod sides;
mod switch;
mod targets;

pub(super) use saved::read;

use std::path::PathBuf;
use std::process::ExitCode;

use goodput_campaign::compare::{Comparison, Floor, Step, estimate};
use goodput_record::{Campaign, CampaignFolder};

use crate::args::CompareArgs;
use crate::error::Failed;
use crate::result::folder_path;
use crate::setup::Setup;
use crate::{explicit_flags, output};
use asked::Asked;
use contest::Contest;
use goodput_lab::compare::floor;
use goodput_lab::folder_failed;
use sides::Contender;
use switch::Switch;

/// `--dry-run`: what would be done, and what the reference would be sent.
pub(super) fn dry_run(setup: &Setup, args: &CompareArgs) -> Result<ExitCode, Failed> {
    let asked = Asked::of(args)?;
    if !args.output.json {
        let takes = estimate(&asked.design, &[], contest::each_s(&asked.design));
        let design = goodput_report::compare_design(&asked.design, &asked.slo(), takes);
        output::data(format!("{design}\n").as_bytes())?;
    }
    crate::workload::dry_run(asked.plan, &setup.hub, args.output.json)
}

/// Measures until everything is known, or the user or a target ends it. Where the comparison is, and
/// what it says.
pub(super) fn compare(setup: &Setup, args: &CompareArgs) -> Result<(PathBuf, Comparison), Failed> {
    let (mut folder, mut asked, commands) = match &args.resume {
        Some(path) => {
            let (folder, asked) = Asked::resume(path, args)?;
            let commands = asked.commands(path, args)?;
            (Some(folder), asked, Some(commands))
        }
        None => (None, Asked::of(args)?, None),
    };
    if let Some(line) = asked.twins().filter(|_| !setup.quiet) {
        output::note(&goodput_report::plain(&line));
    }
    setup.interrupt.listen_once().map_err(|error| Failed::internal(error.to_string()))?;
    let earlier = folder.as_ref().and_then(saved::written);
    let kept = folder.as_ref().map(|folder| saved::kept(folder, &asked.design)).transpose()?;
    let kept = kept.unwrap_or_default();
    let following = saved::following(&asked.design, &kept.cells, &kept.lost);
    folder = match (folder, &earlier, following) {
        // Nobody need be there for what is done.
        (Some(folder), Some(known), Step::Done(_)) => {
            let (path, floor) = (folder.path().to_owned(), known.floor.clone());
            let contest = Contest::new(setup, asked, folder, kept);
            return Ok((path, contest.run(earlier, floor)?));
        }
        (folder, ..) => folder,
    };
    if let Some(commands) = commands {
        commands.permit(&*setup.observer)?;
    }
    // A target that is not there leaves no folder behind; but what a command says needs a place.
    if asked.switch_cmd.is_some() && folder.is_none() {
        folder = Some(create(args, &asked)?);
    }
    let switch = asked.switch_cmd.as_ref().zip(folder.as_ref());
    let switch = switch.map(|(command, folder)| Switch::new(command, folder.path(), &asked.plan));
    let sides = sides::settle(setup, &mut asked, switch.as_ref())?;
    let floor = match &earlier {
        Some(earlier) => earlier.floor.clone(),
        None => known(setup, &mut asked, &sides)?,
    };
    let folder = folder.map_or_else(|| create(args, &asked), Ok)?;
    folder.write_asked(&asked.written()).map_err(|error| folder_failed(&error))?;
    let path = folder.path().to_owned();
    let contest = Contest::new(setup, asked, folder, kept).on(sides, switch);
    Ok((path, contest.run(earlier, floor)?))
}

fn create(args: &CompareArgs, asked: &Asked) -> Result<CampaignFolder, Failed> {
    let path = folder_path(args.output.out.as_deref(), &asked.plan, "compare");
    CampaignFolder::create(Campaign::Comparison, &path, &asked.written())
        .map_err(|error| folder_failed(&error))
}

/// The noise floor of this rig, where somebody has measured it; nothing may be asked below it.
fn known(setup: &Setup, asked: &mut Asked, sides: &[Contender]) -> Result<Option<Floor>, Failed> {
    let Some(reference) = sides.first().filter(|_| !asked.design.same_target) else {
        return Ok(None);
    };
    let rig = floor::Rig {
        target: &reference.plan.target.url,
        model: &reference.ready.model,
        workload: &goodput_workload::describe(&asked.plan.workload),
        has_slo: asked.plan.measure.slo.is_some(),
        is_margin_chosen: explicit_flags::is_typed("margin"),
    };
    let floor = floor::known(&mut asked.design, &rig, &*setup.observer)?;
    if let Some(floor) = floor.as_ref().filter(|_| !setup.quiet) {
        output::note(&goodput_report::compare_floor(floor));
    }
    Ok(floor)
}
