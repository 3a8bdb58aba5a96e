//! What the page of a run or of a sweep shows in addition to its numbers: read from logs.

use std::path::Path;

use goodput_campaign::saved::{PointView, ResultDetails, RunDetails, SavedResult, SweepDetails};
use goodput_campaign::sweep::{PointSummary, SweepPlan, SweepSummary, representative};
use goodput_model::{Plan, SloQuestion};
use goodput_record::{Artifact, CampaignFolder, FolderError, Manifest, RunFolder};
use goodput_stats::{Details, Summary, audit_run, chart_details as found_in, complete_records};

use super::circumstances;
use super::comparison::comparison_details;
use crate::error::Failed;
use crate::events::Observer;
use crate::saved::{SavedRun, apply_slo, read_run_as};

/// What the page of an artifact with these numbers, judged by this SLO, shows in addition to them.
pub fn result_details(
    artifact: &Artifact,
    result: &SavedResult,
    slo: &SloQuestion,
    observer: &dyn Observer,
) -> Result<ResultDetails, Failed> {
    Ok(match (artifact, result) {
        (Artifact::Run(folder) | Artifact::Shard(folder), SavedResult::Run(summary)) => {
            ResultDetails::Run(Box::new(run_details(folder, summary, slo)?))
        }
        (Artifact::Sweep(folder) | Artifact::Sweeps(folder), SavedResult::Sweep(summary)) => {
            ResultDetails::Sweep(Box::new(sweep_details(folder, summary, observer)))
        }
        (_, SavedResult::Comparison(comparison)) => {
            ResultDetails::Comparison(Box::new(comparison_details(artifact.path(), comparison)))
        }
        _ => ResultDetails::None,
    })
}

/// What the page of a run shows in addition to its numbers.
pub fn run_details(
    folder: &RunFolder,
    summary: &Summary,
    slo: &SloQuestion,
) -> Result<RunDetails, Failed> {
    let mut plan = folder.read_plan().map_err(unreadable_error)?;
    apply_slo(slo)(&mut plan)?;
    let manifest = folder.read_manifest().map_err(unreadable_error)?;
    Ok(RunDetails {
        details: chart_details(folder, &plan, summary)?,
        audit: audit_run(summary, Some(&plan)),
        circumstances: circumstances::circumstances_of_run(folder, &manifest),
    })
}

/// What the charts of a run are drawn from.
fn chart_details(folder: &RunFolder, plan: &Plan, summary: &Summary) -> Result<Details, Failed> {
    let samples: Vec<_> = folder.read_samples().collect();
    let records = complete_records(
        folder.read_records().map_err(unreadable_error)?.read_ahead(),
        folder.read_judgements(),
    );
    Ok(found_in(plan, summary, records, &samples))
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
fn unreadable_error(error: FolderError) -> Failed {
    Failed::usage(error.to_string())
}

/// What the page of a sweep shows in addition to its numbers. A point whose folder cannot be read any more
/// is named and left out.
pub fn sweep_details(
    folder: &CampaignFolder,
    summary: &SweepSummary,
    observer: &dyn Observer,
) -> SweepDetails {
    let answer = representative(summary);
    // What the summary was judged by.
    let slo = match summary.measured_with {
        Some(_) => {
            let SweepPlan { slo, attainment, .. } = &summary.plan;
            SloQuestion { slo: slo.clone(), attainment: *attainment }
        }
        None => SloQuestion::default(),
    };
    let mut found = SweepDetails {
        points: Vec::new(),
        audit: None,
        circumstances: circumstances::circumstances_of_sweep(folder, summary, None),
    };
    for PointSummary { folder: name, .. } in &summary.points {
        match read_point(folder.path(), name, &slo) {
            Ok((point, view)) => {
                let is_answer = answer.is_some_and(|answer| answer.folder == *name);
                if is_answer {
                    found.audit = Some(audit_run(&view.summary, Some(&point.plan)));
                }
                // Without an answer the first stands for all.
                if is_answer || found.points.is_empty() {
                    let point = Some((name.as_str(), &point.manifest));
                    found.circumstances =
                        circumstances::circumstances_of_sweep(folder, summary, point);
                }
                found.points.push(view);
            }
            Err(failed) => observer.warn(format!("left out: {failed}")),
        }
    }
    found
}

/// What was asked of a point, and where.
struct PointFacts {
    plan: Plan,
    manifest: Manifest,
}

/// A point as its folder has it.
fn read_point(
    sweep: &Path,
    name: &str,
    slo: &SloQuestion,
) -> Result<(PointFacts, PointView), Failed> {
    let path = sweep.join(name);
    let SavedRun { plan, manifest, summary } = read_run_as(&path, apply_slo(slo))?;
    let folder = RunFolder::open(&path).map_err(unreadable_error)?;
    let details = chart_details(&folder, &plan, &summary)?;
    Ok((PointFacts { plan, manifest }, PointView { folder: name.to_owned(), summary, details }))
}
