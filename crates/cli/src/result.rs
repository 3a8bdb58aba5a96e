//! Where a result is kept, and how it is printed.

use std::path::{Path, PathBuf};

use goodput_lab::host;
use goodput_model::Plan;
use goodput_record::CampaignFolder;

use crate::args::OutputArgs;
use crate::error::Failed;
use crate::{output, report};

/// `--out`, or a name under `runs/` that is still free.
pub(crate) fn folder_path(out: Option<&Path>, plan: &Plan, verb: &str) -> PathBuf {
    named_folder_path(out, &format!("{}-{verb}", plan.workload.name))
}

/// The same for results that are not of a plan: the name begins with the time.
pub(crate) fn named_folder_path(out: Option<&Path>, name: &str) -> PathBuf {
    if let Some(out) = out {
        return out.to_owned();
    }
    let name = format!("{}-{name}", host::timestamp().replace(':', "-"));
    let first = Path::new("runs").join(&name);
    let mut others = (2..1000).map(|n| Path::new("runs").join(format!("{name}-{n}")));
    if first.exists() { others.find(|path| !path.exists()).unwrap_or(first) } else { first }
}

/// Prints the result, and where it is kept: nowhere, where the path is empty.
pub(crate) fn show_result(
    args: &OutputArgs,
    path: &Path,
    json: &str,
    text: impl FnOnce() -> String,
) -> Result<(), Failed> {
    if args.json {
        output::print_data(json.as_bytes())?;
    } else if !args.quiet {
        output::print_page(&text())?;
    } else if !path.as_os_str().is_empty() {
        print_folder(path)?;
    }
    if !args.quiet && !path.as_os_str().is_empty() {
        show_folder(path);
        if !args.json && !args.verbose {
            output::print_note(&format!("full report: goodput report -v {}", shown_path(path)));
        }
    }
    Ok(())
}

/// Prints where a result is kept, as the only output.
pub(crate) fn print_folder(path: &Path) -> Result<(), Failed> {
    output::print_data((shown_path(path) + "\n").as_bytes())
}

/// Says where a result is kept.
pub(crate) fn show_folder(path: &Path) {
    output::print_note(&format!("\nrun folder: {}", shown_path(path)));
    let pages = [CampaignFolder::REPORT, report::PAGE].map(|name| path.join(name));
    for page in pages.into_iter().filter(|page| page.is_file()) {
        output::print_note(&format!("report: {}", shown_path(&page)));
    }
}

fn shown_path(path: &Path) -> String {
    goodput_report::escape_control(&path.display().to_string())
}
