//! `goodput compare`: is B really faster than A, and by how much.

mod foreign;
mod request;
mod saved;

use std::path::PathBuf;
use std::process::ExitCode;

use goodput_campaign::compare::Comparison;
use goodput_lab::compare::live::{self, CompareStart, ResumedComparison};
use goodput_lab::compare::saved::has_saved;

use crate::args::CompareArgs;
use crate::error::Failed;
use crate::result::{folder_path, show_result};
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
    if foreign::has_files(args) {
        return foreign::compare_files(args);
    }
    verdict::check_files(&args.gate.files)?;
    let setup =
        Setup::new(args.output.quiet, !args.workload.no_length_check).with_hooks(&args.endpoint)?;
    if args.output.dry_run && !has_saved(&args.targets) {
        return dry_run(&setup, args);
    }
    let setup = setup.with_metrics_page(&args.endpoint)?.with_progress(&args.output, "compare");
    let (path, comparison) = if has_saved(&args.targets) {
        saved::compare_saved(&setup, args)?
    } else {
        measure_live(&setup, args)?
    };
    let page = || goodput_report::compare_text(&comparison, args.output.detail_level());
    show_result(&args.output, &path, &report::to_json(&comparison), page)?;
    // Shown first: a file that cannot be written must not swallow an hour's result.
    verdict::write_files(&args.gate.files, &comparison)?;
    Ok(ExitCode::from(verdict::exit_code(&comparison)))
}

/// `--dry-run`: shows what would be measured, and the first requests to the reference.
fn dry_run(setup: &Setup, args: &CompareArgs) -> Result<ExitCode, Failed> {
    let request = request::from_flags(args)?;
    if !args.output.json {
        let design = &request.design;
        let page =
            goodput_report::compare_design_text(design, &request.slo_text(), request.estimate_s());
        output::print_data(format!("{page}\n").as_bytes())?;
    }
    workload::dry_run(request.plan, &setup.hub, args.output.json)
}

/// Measures live targets. Returns the folder of the comparison and its result.
fn measure_live(setup: &Setup, args: &CompareArgs) -> Result<(PathBuf, Comparison), Failed> {
    let (request, resumed) = match &args.resume {
        Some(path) => {
            let (folder, request) = request::resume_request(path, args)?;
            let commands = request::folder_commands(&request, path, args)?;
            let resumed = ResumedComparison::read(setup, folder, &request.design)?;
            if !resumed.is_over() {
                commands.check_permitted(&*setup.observer)?;
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
    live::compare_live(setup, request, start)
}
