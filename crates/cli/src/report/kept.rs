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

use super::write::replace_file;
use crate::error::Failed;
use crate::output;
use crate::printer::Printer;

/// What a page is called in its folder.
pub(crate) const PAGE: &str = "report.html";

/// Writes the page of a completed run into its folder.
pub(crate) fn write_run_page(folder: &Path, summary: &Summary) {
    let page = RunFolder::open(folder)
        .map_err(|error| Failed::usage(error.to_string()))
        .and_then(|run| run_details(&run, summary, &SloQuestion::default()))
        .map(|found| run_html(&RunView::new(summary, &found)));
    write_page(folder, page);
}

/// Writes the page of several runs of one plan.
pub(crate) fn write_repeats_page(folder: &Path, found: &Repeats) {
    write_page(folder, Ok(repeats_html(found)));
}

/// Writes the page of a sweep.
pub(crate) fn write_sweep_page(folder: &Path, summary: &SweepSummary) {
    if let Some(sweep) = CampaignFolder::open(Campaign::Sweep, folder) {
        let found = sweep_details(&sweep, summary, &Printer::new(false));
        write_page(folder, Ok(sweep_html(&SweepView::new(summary, &found))));
    }
}

/// Writes the page of sweeps under several configurations.
pub(crate) fn write_sweeps_page(folder: &Path, sweeps: &Sweeps) {
    write_page(folder, Ok(sweeps_html(sweeps)));
}

/// Writes the page of a comparison or a shadow.
pub(crate) fn write_comparison_page(folder: &Path, comparison: &Comparison) {
    let found = comparison_details(folder, comparison);
    write_page(folder, Ok(compare_html(CompareView::new(comparison, &found))));
}

/// A page that cannot be written must not spoil a result: it can be made again.
fn write_page(folder: &Path, page: Result<String, Failed>) {
    let path = folder.join(PAGE);
    let kept = page.and_then(|page| {
        // A link in a folder of results would lead out of it.
        goodput_files::check_inside(&path).map_err(|error| {
            Failed::usage(format!("cannot write `{}`: {error}", path.display()))
        })?;
        replace_file(&path, page.as_bytes())
    });
    if let Err(failed) = kept {
        output::print_note(&format!("warning: no page: {failed}"));
    }
}
