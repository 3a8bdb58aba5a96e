//! Chooses the result to report: the one that is named, or the newest.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use goodput_lab::results;
use goodput_lab::saved::to_json;
use goodput_record::Artifact;
use goodput_report::escape_control;
use goodput_ui::{Listed, list_results, list_text};

use crate::args::{Format, ReportArgs};
use crate::error::{Failed, exit};
use crate::output;

/// Where verbs leave their results unless they are told otherwise.
const RUNS: &str = "runs";

/// What a path means.
pub(super) enum Chosen {
    /// A result.
    One(Box<Artifact>),
    /// A folder of results, and what lies in it: at least one.
    Several(PathBuf, Vec<Listed>),
}

/// What lies at a path; without one, the newest result.
pub(super) fn choose_result(path: Option<&Path>) -> Result<Chosen, Failed> {
    let one = |artifact| Chosen::One(Box::new(artifact));
    let Some(path) = path else { return newest_result().map(one) };
    results::open_artifact(path).map(one).or_else(|failed| {
        let all = if path.is_dir() { list_results(path) } else { Vec::new() };
        // A result that cannot be read is not a folder of results.
        let is_result = all.iter().any(|one| one.path == path);
        if all.is_empty() || is_result {
            Err(failed)
        } else {
            Ok(Chosen::Several(path.to_owned(), all))
        }
    })
}

fn newest_result() -> Result<Artifact, Failed> {
    let all = list_results(Path::new(RUNS));
    let Some(newest) = all.first() else {
        let hint = "name the folder of a result, or measure something first: `goodput sweep mock` \
                    writes its result to runs/";
        return Err(Failed::usage("no results found under runs/").hint(hint));
    };
    let path = escape_control(&newest.path.display().to_string());
    output::print_note(&format!("{path} (the newest of {} under {RUNS}/)", all.len()));
    results::open_artifact(&newest.path)
}

/// Prints a list of results.
pub(super) fn print_list(
    folder: &Path,
    all: &[Listed],
    args: &ReportArgs,
) -> Result<ExitCode, Failed> {
    let is_list = matches!(args.format, Format::Text | Format::Json);
    let is_judged = args.slo.slo.is_some() || args.slo.attainment.is_some();
    if is_judged || args.open || args.output.is_some() || args.traces.is_some() || !is_list {
        let what = format!(
            "`{}` holds {} results",
            escape_control(&folder.display().to_string()),
            all.len()
        );
        let hint = "name one of them; `goodput report FOLDER` lists them, `goodput ui FOLDER` \
                    shows them in a browser";
        return Err(Failed::usage(what).hint(hint));
    }
    if args.json || args.format == Format::Json {
        output::print_data(to_json(&all).as_bytes())?;
    } else {
        output::print_page(&list_text(folder, all))?;
    }
    Ok(ExitCode::from(exit::OK))
}
