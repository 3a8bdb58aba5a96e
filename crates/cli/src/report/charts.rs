//! Charts as files.

use std::fs;
use std::path::{Path, PathBuf};

use goodput_lab::results::{self, SavedResult};
use goodput_record::Artifact;
use goodput_report::{Picture, escape_control};

use super::ReportRequest;
use super::write::replace_file;
use crate::error::Failed;
use crate::output;
use crate::printer::Printer;

/// Writes each chart of an artifact to a file of its own. Charts of several runs or sweeps are in
/// subfolders.
pub(super) fn write_charts(
    artifact: &Artifact,
    request: &ReportRequest,
    to: Option<&Path>,
) -> Result<(), Failed> {
    if matches!(artifact, Artifact::File(_)) {
        return Err(super::no_page_error());
    }
    let to = to.map_or_else(|| artifact.path().join("charts"), Path::to_owned);
    let count = draw_charts(artifact, request, &to)?;
    if count == 0 {
        let message = format!("`{}` has no charts", artifact.path().display());
        return Err(Failed::usage(message)
            .hint("run `goodput report` without --format to see what it contains"));
    }
    output::print_note(&format!("{count} charts in {}", escape_control(&to.display().to_string())));
    Ok(())
}

/// Writes the charts of one artifact, and returns their number.
fn draw_charts(artifact: &Artifact, request: &ReportRequest, to: &Path) -> Result<usize, Failed> {
    let result = super::read_result(artifact, request)?;
    let parts: Vec<PathBuf> = match &result {
        SavedResult::Repeats(_) => artifact.part_folders(),
        SavedResult::Sweeps(sweeps) => {
            let swept = sweeps.configurations.iter().filter(|one| one.sweep.is_some());
            swept.map(|one| artifact.path().join(&one.folder)).collect()
        }
        _ => {
            let details =
                results::result_details(artifact, &result, &request.slo, &Printer::new(false))?;
            return write_pictures(to, &goodput_report::result_charts(&result, &details));
        }
    };
    let each = |part: PathBuf| {
        draw_charts(
            &results::open_artifact(&part)?,
            request,
            &to.join(part.file_name().unwrap_or_default()),
        )
    };
    parts.into_iter().map(each).sum()
}

fn write_pictures(to: &Path, pictures: &[Picture]) -> Result<usize, Failed> {
    if pictures.is_empty() {
        return Ok(0);
    }
    fs::create_dir_all(to).map_err(|error| {
        Failed::usage(format!("cannot create the folder `{}`: {error}", to.display()))
            .hint("name another with --output")
    })?;
    for Picture { name, svg } in pictures {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        let name: String = name.chars().filter(is_plain).collect();
        replace_file(&to.join(format!("{name}.svg")), svg.as_bytes())?;
    }
    Ok(pictures.len())
}
