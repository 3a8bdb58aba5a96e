//! Live targets, in blocks.

mod folder;
mod noise_floor;
mod request;
mod round;
mod run;
mod sides;
mod switch;
mod targets;
mod vary;

use folder::RunsOnDisk;
pub use folder::{ResumedComparison, read_comparison};
pub use request::CompareRequest;
pub use targets::{NamedTargets, TargetSpec, assign_facts, resolve_targets, restore_secrets};

use std::path::PathBuf;

use goodput_campaign::compare::{Comparison, Floor};
use goodput_model::Plan;
use goodput_record::{Campaign, CampaignFolder};

use super::floor;
use crate::error::{Failed, folder_failed};
use crate::events::CompareProgress;
use crate::run::Lab;
use run::CompareRun;
use sides::ReadyTarget;
use switch::SwitchCommand;

/// How a comparison begins, or goes on.
pub struct CompareStart<'a> {
    /// The folder of one that goes on.
    pub resumed: Option<ResumedComparison>,
    /// Where a new one is kept.
    pub out: &'a dyn Fn(&Plan) -> PathBuf,
    /// Whether the user chose the margin.
    pub is_margin_chosen: bool,
}

/// Measures until everything is known, or the user or a target ends it. Where the comparison is, and
/// what it says.
pub fn compare_live(
    lab: &Lab,
    mut request: CompareRequest,
    start: CompareStart<'_>,
) -> Result<(PathBuf, Comparison), Failed> {
    if let Some(line) = request.twin_warning() {
        lab.observer.note(line);
    }
    lab.interrupt.listen_once().map_err(|error| Failed::internal(error.to_string()))?;
    let (mut folder, mut earlier, mut kept) = (None, None, RunsOnDisk::default());
    if let Some(resumed) = start.resumed {
        let is_over = resumed.is_over();
        let path = resumed.folder.path().to_owned();
        let floor = resumed.earlier.as_ref().and_then(|earlier| earlier.floor.clone());
        if is_over {
            // Completed runs need no server.
            let run = CompareRun::new(lab, request, resumed.folder, resumed.kept);
            return Ok((path, run.measure_and_conclude(resumed.earlier, floor)?));
        }
        (folder, earlier, kept) = (Some(resumed.folder), resumed.earlier, resumed.kept);
    }
    // A target that is not there leaves no folder behind; but what a command says needs a place.
    if request.switch_cmd.is_some() && folder.is_none() {
        folder = Some(create_folder(start.out, &request)?);
    }
    let switch = request.switch_cmd.as_ref().zip(folder.as_ref());
    let switch =
        switch.map(|(command, folder)| SwitchCommand::new(command, folder.path(), &request.plan));
    let sides = sides::prepare_targets(lab, &mut request, switch.as_ref())?;
    let floor = match &earlier {
        Some(earlier) => earlier.floor.clone(),
        None => known_floor(lab, &mut request, &sides, start.is_margin_chosen)?,
    };
    let folder = folder.map_or_else(|| create_folder(start.out, &request), Ok)?;
    folder.write_asked(&request.without_secrets()).map_err(|error| folder_failed(&error))?;
    let path = folder.path().to_owned();
    let run = CompareRun::new(lab, request, folder, kept).with_sides(sides, switch);
    Ok((path, run.measure_and_conclude(earlier, floor)?))
}

fn create_folder(
    out: &dyn Fn(&Plan) -> PathBuf,
    request: &CompareRequest,
) -> Result<CampaignFolder, Failed> {
    CampaignFolder::create(Campaign::Comparison, &out(&request.plan), &request.without_secrets())
        .map_err(|error| folder_failed(&error))
}

/// The noise floor of this rig, if measured; no margin may lie below it.
fn known_floor(
    lab: &Lab,
    request: &mut CompareRequest,
    sides: &[ReadyTarget],
    is_margin_chosen: bool,
) -> Result<Option<Floor>, Failed> {
    let Some(reference) = sides.first().filter(|_| !request.design.same_target) else {
        return Ok(None);
    };
    let rig = floor::Rig {
        target: &reference.plan.target.url,
        model: &reference.ready.model,
        workload: &goodput_workload::describe_workload(&request.plan.workload),
        has_slo: request.plan.measure.slo.is_some(),
        is_margin_chosen,
    };
    let floor = floor::apply_known_floor(&mut request.design, &rig, &*lab.observer)?;
    if let Some(floor) = &floor {
        lab.observer.comparison(&CompareProgress::Floor(floor));
    }
    Ok(floor)
}
