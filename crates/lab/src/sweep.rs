//! Sweeps: points at rising load, each a run folder of its own, until it is known how much load keeps
//! the SLO.

mod many;
mod one;
mod point;
mod request;
mod saved;

pub use many::{are_all_done, check_request, sweep_configurations as sweep_all};
pub use one::{
    ABSENCE, IDLE_LIMIT, SweepTarget, minutes_text, sweep_target, time_limit_s, unwritable_error,
};
pub use point::plan_at_level;
pub use request::{ServerRequest, SweepRequest, set_default_attainment};
pub use saved::{SavedSweep, read_sweep, read_sweep_folder};

use std::path::Path;
use std::sync::Arc;

use goodput_campaign::sweep::{SweepPlan, SweepSummary};
use goodput_model::Plan;
use goodput_record::{Campaign, CampaignFolder};

use crate::error::{Failed, folder_failed};
use crate::readiness::Ready;
use crate::run::Lab;

/// A sweep as part of something larger, in a folder of its own; one that was begun there goes on.
pub fn search_goodput(
    lab: &Lab,
    path: &Path,
    sweep: SweepPlan,
    plan: Plan,
    settled: (Plan, Arc<Ready>),
) -> Result<SweepSummary, Failed> {
    let request = SweepRequest::new(sweep, plan);
    let (plan, ready) = settled;
    sweep_target(lab, &request, create_or_resume(path, &request)?, SweepTarget { plan, ready })
}

/// The folder at `path`, made for this request where it is not there yet.
fn create_or_resume(path: &Path, request: &SweepRequest) -> Result<CampaignFolder, Failed> {
    let folder = match CampaignFolder::open(Campaign::Sweep, path) {
        Some(_) => CampaignFolder::resume(Campaign::Sweep, path),
        None => CampaignFolder::create(Campaign::Sweep, path, request),
    };
    folder.map_err(|error| folder_failed(&error))
}
