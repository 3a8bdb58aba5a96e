//! `goodput compare`: is B really faster than A, and by how much.

mod foreign;
mod request;
mod saved;

use std::path::PathBuf;
use std::process::ExitCode;

use goodput_campaign::compare::Comparison;
use goodput_lab::compare::live::{self, CompareStart, ResumedComparison};
use goodput_lab::compare::saved::any_saved;

use crate::args::CompareArgs;
use crate::error::Failed;
use crate::result::{folder_path, show};
use crate::setup::Setup;
use crate::{explicit_flags, output, report, verdict, workload};

/// The flags that can be combined with `--resume`: URLs, whose secrets are not kept, other formats
/// of the result, and the command that the folder may run.
const WITH_RESUME: [&str; 9] = [
    "targets",
    "list",
    "metrics_urls",
    "gpu",
    "junit",
    "markdown",
    "switch_cmd",
    "allow_commands",
    "max_time",
];

/// Runs the verb: targets that answer, folders of saved runs, or files of other tools.
pub(crate) fn compare(args: &CompareArgs) -> Result<ExitCode, Failed> {
    if args.resume.is_some() {
        explicit_flags::refuse_with("resume", &WITH_RESUME)?;
    }
    if foreign::is_meant(args) {
        return foreign::compare(args);
    }
    verdict::check_files(&args.gate.files)?;
    let setup =
        Setup::new(args.output.quiet, !args.workload.no_length_check).hooked(&args.endpoint)?;
    if args.output.dry_run && !any_saved(&args.targets) {
        return dry_run(&setup, args);
    }
    let setup = setup.listening(&args.endpoint)?.showing(&args.output, "compare");
    let (path, comparison) = if any_saved(&args.targets) {
        saved::compare(&setup, args)?
    } else {
        measure(&setup, args)?
    };
    let page = || goodput_report::compare_text(&comparison, args.output.detail());
    show(&args.output, &path, &report::json(&comparison), page)?;
    // Shown first: a file that cannot be written must not swallow an hour's result.
    verdict::write_files(&args.gate.files, &comparison)?;
    Ok(ExitCode::from(verdict::code(&comparison)))
}

/// `--dry-run`: what would be done, and what the reference would be sent.
fn dry_run(setup: &Setup, args: &CompareArgs) -> Result<ExitCode, Failed> {
    let request = request::from_flags(args)?;
    if !args.output.json {
        let design = &request.design;
        let page = goodput_report::compare_design(design, &request.slo(), request.estimate());
        output::data(format!("{page}\n").as_bytes())?;
    }
    workload::dry_run(request.plan, &setup.hub, args.output.json)
}

/// Measures live targets. Where the comparison is, and what it says.
fn measure(setup: &Setup, args: &CompareArgs) -> Result<(PathBuf, Comparison), Failed> {
    let (request, resumed) = match &args.resume {
        Some(path) => {
            let (folder, request) = request::resume(path, args)?;
            let commands = request::commands(&request, path, args)?;
            let resumed = ResumedComparison::read(setup, folder, &request.design)?;
            if !resumed.is_over() {
                commands.permit(&*setup.observer)?;
            }
            (request, Some(resumed))
        }
        None => (request::from_flags(args)?, None),
    };
    let out = args.output.out.as_deref();
    let start = CompareStart {
        resumed,
        out: &|plan| folder_path(out, plan, "compare"),
        is_margin_chosen: explicit_flags::is_typed("margin"),
    };
    live::compare(setup, request, start)
}
