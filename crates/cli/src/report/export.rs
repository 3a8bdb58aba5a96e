//! Results as files that other programs read.

use std::fs;
use std::path::Path;

use goodput_exchange::{FileShape, ParquetTable, sweep_csv, sweeps_csv};
use goodput_lab::results::{self, ExportedRun, SavedResult};
use goodput_model::{SloQuestion, SourceTool, Verdict};
use goodput_record::Artifact;

use super::ReportRequest;
use super::write::write_export;
use crate::error::Failed;
use crate::output;

/// A run, or the points of a sweep, as one file or on stdout; with every request where `detailed` and the
/// shape knows both forms.
pub(super) fn export_file(
    artifact: &Artifact,
    request: &ReportRequest,
    shape: FileShape,
    detailed: bool,
    to: Option<&Path>,
) -> Result<(), Failed> {
    if detailed && !matches!(shape, FileShape::Vllm | FileShape::Sglang) {
        return Err(detail_error());
    }
    if matches!(artifact, Artifact::Sweep(_) | Artifact::Sweeps(_)) {
        return match (shape, super::read_result(artifact, request)?) {
            (FileShape::Csv, SavedResult::Sweep(sweep)) => {
                write_export(to, |out| sweep_csv(out, &sweep))
            }
            (FileShape::Csv, SavedResult::Sweeps(all)) => {
                write_export(to, |out| sweeps_csv(out, &all))
            }
            _ => Err(sweep_error()),
        };
    }
    let run = ExportedRun::read(artifact, &request.slo)?;
    let mut notes = Vec::new();
    write_export(to, |out| {
        notes = run.as_export().write(out, shape, detailed)?;
        Ok(())
    })?;
    print_notes(&notes);
    Ok(())
}

/// Three tables next to each other.
pub(super) fn export_tables(
    artifact: &Artifact,
    request: &ReportRequest,
    detailed: bool,
    to: Option<&Path>,
) -> Result<(), Failed> {
    if detailed {
        return Err(detail_error());
    }
    if matches!(artifact, Artifact::Sweep(_) | Artifact::Sweeps(_)) {
        return Err(sweep_error());
    }
    let run = ExportedRun::read(artifact, &request.slo)?;
    let into = to.unwrap_or(artifact.path());
    fs::create_dir_all(into).map_err(|error| {
        Failed::usage(format!("cannot create the folder `{}`: {error}", into.display()))
            .hint("--output names the folder for the three tables")
    })?;
    let export = run.as_export();
    for table in ParquetTable::ALL {
        write_export(Some(&into.join(table.file_name())), |out| export.write_table(out, table))?;
    }
    print_notes(&export.warnings());
    Ok(())
}

/// A run as the file of this tool, with the run's verdict and what to know about it.
pub(crate) fn convert_run(
    folder: &Path,
    tool: SourceTool,
) -> Result<(Vec<u8>, Verdict, Vec<String>), Failed> {
    let run = ExportedRun::read(&results::open_artifact(folder)?, &SloQuestion::default())?;
    let mut out = Vec::new();
    let written = run.as_export().write(&mut out, FileShape::from_tool(tool), false);
    let notes = written.map_err(|error| Failed::internal(error.to_string()))?;
    Ok((out, run.run.summary.verdict, notes))
}

fn detail_error() -> Failed {
    Failed::usage("--detailed needs --format vllm or --format sglang")
        .hint("--format csv and --format parquet include every request anyway")
}

fn sweep_error() -> Failed {
    Failed::usage("a sweep is several runs, and this format holds one")
        .hint("export one of the folders in `points`, or all points with --format csv")
}

fn print_notes(notes: &[String]) {
    for text in notes {
        output::print_note(&format!("note: {text}"));
    }
}
