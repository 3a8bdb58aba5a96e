//! What lies at a path, read: the numbers of any artifact, and what its page shows in addition.

mod circumstances;
mod comparison;
mod details;
mod exported;
mod foreign;

pub use comparison::comparison_details;
pub use details::{result_details, run_details, sweep_details};
pub use exported::ExportedRun;
pub(crate) use foreign::read_foreign_file;
pub use goodput_campaign::saved::{ResultDetails, SavedResult};

use std::path::Path;

use goodput_campaign::compare::Comparison;
use goodput_model::SloQuestion;
use goodput_record::{Artifact, FolderError, RunFolder};
use goodput_stats::summarize_repeats;

use crate::compare::live;
use crate::error::Failed;
use crate::events::Observer;
use crate::saved::{self, unreadable_error};
use crate::sweep::{self, SavedSweep};

/// Opens what lies at a path.
pub fn open_artifact(path: &Path) -> Result<Artifact, Failed> {
    Artifact::open(path).map_err(|error| match error {
        FolderError::Missing(_) => Failed::usage(error.to_string())
            .hint("name the folder that `goodput run`, `sweep`, or `compare` printed"),
        error => unreadable_error(error),
    })
}

/// The numbers of an artifact, computed again from its logs where it has any, and judged by this SLO
/// where one is asked for. What cannot be read of several runs is named and left out.
pub fn read_result(
    artifact: &Artifact,
    slo: &SloQuestion,
    observer: &dyn Observer,
) -> Result<SavedResult, Failed> {
    if !slo.is_empty() && !can_judge(artifact) {
        return Err(cannot_judge_error(artifact));
    }
    match artifact {
        Artifact::Run(folder) | Artifact::Shard(folder) => {
            Ok(SavedResult::Run(Box::new(saved::read_summary_judged(folder.path(), slo)?)))
        }
        Artifact::Repeats(folder) => {
            let found = summarize_repeats(&saved::read_series(folder, slo, observer));
            Ok(SavedResult::Repeats(Box::new(found)))
        }
        Artifact::Sweep(folder) | Artifact::Sweeps(folder) => {
            Ok(match sweep::read_sweep_folder(folder, slo, observer)? {
                SavedSweep::One(summary) => SavedResult::Sweep(summary),
                SavedSweep::Many(sweeps) => SavedResult::Sweeps(Box::new(sweeps)),
            })
        }
        Artifact::Comparison(folder) => {
            comparison_result(live::read_comparison(folder.path(), observer), folder.path())
        }
        Artifact::Shadow(folder) => {
            let read = goodput_live::shadow::read_shadow(folder.path());
            let failed = |error: FolderError| Failed::usage(error.to_string());
            comparison_result(read.map(|read| read.map_err(failed)), folder.path())
        }
        Artifact::Summary(folder) if folder.read_schema() == Comparison::SCHEMA => {
            let failed = |error: FolderError| Failed::usage(error.to_string());
            folder.read_summary().map(SavedResult::Comparison).map_err(failed)
        }
        Artifact::Summary(folder) => Err(not_a_run_error(folder.path())),
        Artifact::File(path) => read_foreign_file(path),
    }
}

/// Whether another SLO than its own can be asked of it: every request of its runs is on disk.
pub fn can_judge(artifact: &Artifact) -> bool {
    match artifact {
        Artifact::Run(_)
        | Artifact::Shard(_)
        | Artifact::Repeats(_)
        | Artifact::Sweep(_)
        | Artifact::Sweeps(_) => true,
        Artifact::Comparison(_)
        | Artifact::Shadow(_)
        | Artifact::Summary(_)
        | Artifact::File(_) => false,
    }
}

/// Why another SLO cannot be asked of it, and what can be done.
pub(crate) fn cannot_judge_error(artifact: &Artifact) -> Failed {
    let path = artifact.path().display();
    let (why, hint) = match artifact {
        Artifact::Comparison(_) | Artifact::Shadow(_) => (
            format!("`{path}` compares sides by the SLO that it was measured with"),
            "name one of the runs in it, or compare them again: `goodput compare A B --slo …`",
        ),
        _ => (
            format!("`{path}` has no request log, and only single requests can be judged again"),
            "name the folder of the run or sweep; `goodput capacity FILE --slo …` takes result files \
             of other tools that hold every request",
        ),
    };
    Failed::usage(format!("--slo cannot be used here: {why}")).hint(hint)
}

/// Why a folder is not that of a run.
pub(crate) fn not_a_run_error(path: &Path) -> Failed {
    match RunFolder::open(path) {
        Err(error) => unreadable_error(error),
        Ok(_) => Failed::usage(format!("`{}` changed while it was read", path.display())),
    }
}

fn comparison_result(
    read: Option<Result<Comparison, Failed>>,
    path: &Path,
) -> Result<SavedResult, Failed> {
    let read = read.unwrap_or_else(|| Err(not_a_run_error(path)))?;
    Ok(SavedResult::Comparison(Box::new(read)))
}
