//! How far to trust the result at a path, from goodput or another tool.

use std::path::Path;

use goodput_campaign::sweep::{representative, sweep_audit};
use goodput_exchange::UNDERSTOOD;
use goodput_model::SloQuestion;
use goodput_record::{Artifact, CampaignFolder, FolderError, RunFolder};
use goodput_stats::{Audit, audit_run};

use crate::error::Failed;
use crate::events::Silent;
use crate::results::{self, SavedResult, cannot_judge_error};
use crate::saved::{apply_slo, summarize_run};
use crate::sweep::{SavedSweep, read_sweep_folder};

/// The audits of the results at a path, judged by this SLO where one is asked for: of a run of ours,
/// of a sweep as a whole, of each run of several, of each run in a file of
/// another tool. What cannot be read does not keep the others from being judged.
pub fn audit(path: &Path, slo: &SloQuestion) -> Vec<Result<Audit, Failed>> {
    match Artifact::open(path) {
        Ok(Artifact::Run(folder) | Artifact::Shard(folder)) => {
            vec![audit_run_folder(&folder, path, slo)]
        }
        Ok(artifact @ Artifact::File(_)) if !slo.is_empty() => {
            vec![Err(cannot_judge_error(&artifact))]
        }
        Ok(Artifact::File(file)) => audit_file(&file),
        Ok(Artifact::Sweep(folder)) => vec![audit_sweep(&folder, path, slo)],
        Ok(artifact @ (Artifact::Repeats(_) | Artifact::Sweeps(_) | Artifact::Comparison(_))) => {
            artifact.part_folders().iter().flat_map(|part| audit(part, slo)).collect()
        }
        // A pair of a shadow is not a run, and numbers without logs are not one of a folder.
        Ok(Artifact::Shadow(_) | Artifact::Summary(_)) => {
            vec![
                RunFolder::open(path)
                    .map_err(unreadable_error)
                    .and_then(|run| audit_run_folder(&run, path, slo)),
            ]
        }
        Err(error) if path.is_dir() => vec![Err(unreadable_error(error))],
        // Its reader says what is wrong with a file.
        Err(_) => audit_file(path),
    }
}

fn audit_run_folder(folder: &RunFolder, path: &Path, slo: &SloQuestion) -> Result<Audit, Failed> {
    let mut plan = folder.read_plan().map_err(unreadable_error)?;
    apply_slo(slo)(&mut plan)?;
    let manifest = folder.read_manifest().map_err(unreadable_error)?;
    let summary = summarize_run(folder, &plan, &manifest, 0)?;
    Ok(Audit { subject: path.display().to_string(), ..audit_run(&summary, Some(&plan)) })
}

/// Of a sweep as a whole, in the place of its runs.
fn audit_sweep(folder: &CampaignFolder, path: &Path, slo: &SloQuestion) -> Result<Audit, Failed> {
    let nothing = || {
        Failed::usage(format!("`{}` holds no point that shows anything", path.display()))
            .hint("name the folder of one of its points")
    };
    let SavedSweep::One(sweep) = read_sweep_folder(folder, slo, &Silent)? else {
        return Err(nothing());
    };
    let point = representative(&sweep).ok_or_else(nothing)?;
    let path_of_run = path.join(&point.folder);
    let run = audit_run_folder(
        &RunFolder::open(&path_of_run).map_err(unreadable_error)?,
        &path_of_run,
        slo,
    )?;
    let subject = path.display().to_string();
    Ok(Audit { subject, ..sweep_audit(&sweep, &run) })
}

fn audit_file(path: &Path) -> Vec<Result<Audit, Failed>> {
    match results::read_foreign_file(path) {
        Ok(SavedResult::Reported(results)) => {
            results.into_iter().map(|run| Ok(run.audit)).collect()
        }
        Ok(SavedResult::Run(summary)) => {
            let subject = path.display().to_string();
            vec![Ok(Audit { subject, ..audit_run(&summary, None) })]
        }
        Ok(_) => Vec::new(),
        Err(failed) => vec![Err(failed)],
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
fn unreadable_error(error: FolderError) -> Failed {
    Failed::usage(error.to_string()).hint(format!(
        "a run folder holds plan.toml, manifest.json, and requests.log; for results of other \
         tools, name the file: {UNDERSTOOD}"
    ))
}
