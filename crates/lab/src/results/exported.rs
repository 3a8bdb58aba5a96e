//! The run behind an export.

use goodput_exchange::RunExport;
use goodput_model::SloQuestion;
use goodput_record::{Artifact, FolderError, RunFolder};

use crate::error::Failed;
use crate::saved::{SavedRun, apply_slo, read_run_as};

/// A run that is written in another shape.
pub struct ExportedRun {
    /// What was asked, and what came of it.
    pub run: SavedRun,
    folder: RunFolder,
}

impl ExportedRun {
    /// The run of an artifact, judged by this SLO. Several runs have no request of their own, and neither has a file.
    pub fn read(artifact: &Artifact, slo: &SloQuestion) -> Result<Self, Failed> {
        let path = artifact.path();
        let several = |what: &str, hint: &str| {
            let message =
                format!("`{}` holds {what}, and this format takes one run", path.display());
            Err(Failed::usage(message).hint(hint))
        };
        match artifact {
            Artifact::File(_) => {
                let message = "this format needs a run's request log";
                return Err(Failed::usage(message).hint(
                    "name a run folder; for files of other tools, use text, json, or markdown",
                ));
            }
            Artifact::Comparison(_) => {
                return several("several runs", "name one of the folders in it");
            }
            Artifact::Repeats(_) => return several("repeated runs", "name one of them: …/1"),
            _ => {}
        }
        let run = read_run_as(path, apply_slo(slo))?;
        let unreadable = |error: FolderError| Failed::usage(error.to_string());
        Ok(Self { run, folder: RunFolder::open(path).map_err(unreadable)? })
    }

    /// Its records and numbers, ready to be written.
    pub fn as_export(&self) -> RunExport<'_> {
        RunExport::new(&self.run.plan, &self.run.summary, &self.folder)
    }
}
