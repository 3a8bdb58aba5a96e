//! `goodput compare`: is B really faster than A, and by how much.

mod files;
mod foreign;
mod live;
mod saved;
mod view;

use std::path::Path;
use std::process::ExitCode;

use goodput_campaign::compare::Comparison;
use goodput_lab::compare::saved::{any_saved, read_summary};

pub(crate) use files::{check as check_files, code, write as write_files};
pub(crate) use view::html;

use crate::args::CompareArgs;
use crate::error::Failed;
use crate::run::{Setup, show};
use crate::{report, shadow, typed};

/// What may stand beside `--resume`: URLs for the secrets in them, which are not kept, more ways to show
/// the result, and the command that the folder may run.
const BESIDE_RESUME: [&str; 8] =
    ["targets", "list", "metrics_urls", "gpu", "junit", "markdown", "switch_cmd", "allow_commands"];

/// Runs the verb.
pub(crate) fn compare(args: &CompareArgs) -> Result<ExitCode, Failed> {
    if args.resume.is_some() {
        typed::refuse_beside("resume", &BESIDE_RESUME)?;
    }
    if foreign::is_meant(args) {
        return foreign::compare(args);
    }
    files::check(&args.gate.files)?;
    let setup =
        Setup::new(args.output.quiet, !args.workload.no_length_check).hooked(&args.endpoint)?;
    if args.output.dry_run && !any_saved(&args.targets) {
        return live::dry_run(&setup, args);
    }
    let setup = setup.listening(&args.endpoint)?.showing(&args.output, "compare");
    let (path, comparison) = if any_saved(&args.targets) {
        saved::compare(&setup, args)?
    } else {
        live::compare(&setup, args)?
    };
    let page = || goodput_report::compare_text(&comparison, args.output.detail());
    show(&args.output, &path, &report::json(&comparison), page)?;
    // Shown first: a file that cannot be written must not swallow an hour's result.
    files::write(&args.gate.files, &comparison)?;
    Ok(ExitCode::from(code(&comparison)))
}

/// The comparison in a folder, a shadow's too; none where the folder holds none.
pub(crate) fn read(path: &Path) -> Option<Result<Comparison, Failed>> {
    live::read(path).or_else(|| shadow::read(path)).or_else(|| read_summary(path))
}
