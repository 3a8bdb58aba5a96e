//! Sweeps: points at rising load, each a run folder of its own, until it is known how much load keeps
//! the SLO.

mod many;
mod one;
mod point;
mod request;
mod saved;

pub use many::{check, is_over, sweep as sweep_all};
pub use one::{ABSENCE, IDLE_LIMIT, SweepTarget, in_words, sweep, unwritable, with_overtime};
pub use point::at_level;
pub use request::{ServerRequest, SweepRequest, promise};
pub use saved::{SavedSweep, read, read_folder};

use std::path::Path;
use std::sync::Arc;

use goodput_campaign::sweep::{SweepPlan, SweepSummary};
use goodput_model::Plan;
use goodput_record::{Campaign, CampaignFolder};

use crate::error::{Failed, folder_failed};
use crate::readiness::Ready;
use crate::run::Lab;

/// A sweep as part of something larger, in a folder of its own; one that was begun there goes on.
pub fn search(
    lab: &Lab,
    path: &Path,
    sweep: SweepPlan,
    plan: Plan,
    settled: (Plan, Arc<Ready>),
) -> Result<SweepSummary, Failed> {
    let request = SweepRequest::new(sweep, plan);
    let (plan, ready) = settled;
    one::sweep(lab, &request, begin_or_go_on(path, &request)?, SweepTarget { plan, ready })
}

/// The folder at `path`, made for this request where it is not there yet.
fn begin_or_go_on(path: &Path, request: &SweepRequest) -> Result<CampaignFolder, Failed> {
    let folder = match CampaignFolder::open(Campaign::Sweep, path) {
        Some(_) => CampaignFolder::resume(Campaign::Sweep, path),
        None => CampaignFolder::create(Campaign::Sweep, path, request),
    };
    folder.map_err(|error| folder_failed(&error))
}
