//! `goodput merge`: run folders of shards, made one run folder, exactly.

use std::process::ExitCode;

use goodput_lab::merge::Shards;

use crate::args::MergeArgs;
use crate::error::Failed;
use crate::result::{folder_path, print_folder, show_folder};
use crate::run_printer::RunPrinter;

use crate::{output, report, run};

/// Runs the verb.
pub(crate) fn merge(args: &MergeArgs) -> Result<ExitCode, Failed> {
    // One file of each shard is open at a time.
    goodput_engine::raise_fd_limit();
    let printer = RunPrinter::new(args.quiet);
    let shards = Shards::open(&args.folders, args.force, &printer)?;
    let out = folder_path(args.out.as_deref(), shards.plan(), "merge");
    let summary = shards.merge_into(&out, &printer)?;
    if args.json {
        output::print_data(report::to_json(&summary).as_bytes())?;
    } else if args.quiet {
        print_folder(&out)?;
    } else {
        output::print_page(&goodput_report::run_text(&summary, goodput_report::Detail::Full))?;
    }
    if !args.quiet {
        show_folder(&out);
    }
    Ok(ExitCode::from(run::exit_code(&summary)))
}
