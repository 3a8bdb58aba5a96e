//! The page for a browser that each verb leaves in its folder.

use std::path::Path;

use goodput_campaign::compare::Comparison;
use goodput_campaign::sweep::{SweepSummary, Sweeps};
use goodput_lab::results::{comparison_details, run_details, sweep_details};
use goodput_model::SloQuestion;
use goodput_record::{Campaign, CampaignFolder, RunFolder};
use goodput_report::{
    CompareView, RunView, SweepView, compare_html, repeats_html, run_html, sweep_html, sweeps_html,
};
use goodput_stats::{Repeats, Summary};

use super::write::replace;
use crate::error::Failed;
use crate::output;
use crate::printer::Printer;

/// What a page is called in its folder.
pub(crate) const PAGE: &str = "report.html";

/// Leaves the page of a run that is over.
pub(crate) fn keep_run(folder: &Path, summary: &Summary) {
    let page = RunFolder::open(folder)
        .map_err(|error| Failed::usage(error.to_string()))
        .and_then(|run| run_details(&run, summary, &SloQuestion::default()))
        .map(|found| run_html(&RunView::new(summary, &found)));
    keep(folder, page);
}

/// The same of several runs of one plan.
pub(crate) fn keep_repeats(folder: &Path, found: &Repeats) {
    keep(folder, Ok(repeats_html(found)));
}

/// The same of a sweep.
pub(crate) fn keep_sweep(folder: &Path, summary: &SweepSummary) {
    if let Some(sweep) = CampaignFolder::open(Campaign::Sweep, folder) {
        let found = sweep_details(&sweep, summary, &Printer::new(false));
        keep(folder, Ok(sweep_html(&SweepView::new(summary, &found))));
    }
}

/// The same of sweeps under several configurations.
pub(crate) fn keep_sweeps(folder: &Path, sweeps: &Sweeps) {
    keep(folder, Ok(sweeps_html(sweeps)));
}

/// The same of a comparison or a shadow.
pub(crate) fn keep_comparison(folder: &Path, comparison: &Comparison) {
    let found = comparison_details(folder, comparison);
    keep(folder, Ok(compare_html(CompareView::new(comparison, &found))));
}

/// A page that cannot be written must not spoil a result: it can be made again.
fn keep(folder: &Path, page: Result<String, Failed>) {
    let path = folder.join(PAGE);
    let kept = page.and_then(|page| {
        // A link in a folder of results would lead out of it.
        goodput_files::check_inside(&path).map_err(|error| {
            Failed::usage(format!("cannot write `{}`: {error}", path.display()))
        })?;
        replace(&path, page.as_bytes())
    });
    if let Err(failed) = kept {
        output::note(&format!("warning: no page: {failed}"));
    }
}
