//! Charts as files.

use std::fs;
use std::path::{Path, PathBuf};

use goodput_lab::results::{self, SavedResult};
use goodput_record::Artifact;
use goodput_report::{Picture, plain};

use super::ReportRequest;
use super::write::replace;
use crate::error::Failed;
use crate::output;
use crate::printer::Printer;

/// Charts of an artifact, each a file of another. Those of several runs or sweeps lie in folders below.
pub(super) fn write(
    artifact: &Artifact,
    request: &ReportRequest,
    to: Option<&Path>,
) -> Result<(), Failed> {
    if matches!(artifact, Artifact::File(_)) {
        return Err(super::no_page());
    }
    let to = to.map_or_else(|| artifact.path().join("charts"), Path::to_owned);
    let count = draw(artifact, request, &to)?;
    if count == 0 {
        let message = format!("`{}` has no charts", artifact.path().display());
        return Err(Failed::usage(message)
            .hint("run `goodput report` without --format to see what it contains"));
    }
    output::note(&format!("{count} charts in {}", plain(&to.display().to_string())));
    Ok(())
}

/// How many there were.
fn draw(artifact: &Artifact, request: &ReportRequest, to: &Path) -> Result<usize, Failed> {
    let result = super::numbers(artifact, request)?;
    let parts: Vec<PathBuf> = match &result {
        SavedResult::Repeats(_) => artifact.parts(),
        SavedResult::Sweeps(sweeps) => {
            let swept = sweeps.configurations.iter().filter(|one| one.sweep.is_some());
            swept.map(|one| artifact.path().join(&one.folder)).collect()
        }
        _ => {
            let details = results::details(artifact, &result, &request.slo, &Printer::new(false))?;
            return write_all(to, &goodput_report::charts(&result, &details));
        }
    };
    let each = |part: PathBuf| {
        draw(&results::open(&part)?, request, &to.join(part.file_name().unwrap_or_default()))
    };
    parts.into_iter().map(each).sum()
}

fn write_all(to: &Path, pictures: &[Picture]) -> Result<usize, Failed> {
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
        replace(&to.join(format!("{name}.svg")), svg.as_bytes())?;
    }
    Ok(pictures.len())
}
