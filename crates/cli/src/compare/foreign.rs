//! Compares result files of other tools, and runs of goodput, side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use goodput_campaign::compare::{FileComparison, ReportedSide};
use goodput_exchange::{UNDERSTOOD, parse_results, read_results};
use goodput_model::{Reported, SourceTool, Verdict};

use crate::args::CompareArgs;
use crate::error::{Failed, exit};
use crate::{explicit_flags, output, report};
use goodput_lab::compare::names::{LONGEST, side_letter, split_name};

/// The flags that apply to files.
const ABOUT_FILES: [&str; 4] = ["targets", "json", "quiet", "verbose"];

/// Whether any target is a result file.
pub(super) fn has_files(args: &CompareArgs) -> bool {
    args.targets.iter().any(|target| target_path(target).is_file())
}

fn target_path(target: &str) -> PathBuf {
    // A file may have `=` in its name.
    if Path::new(target).exists() { target.into() } else { split_name(target).1.into() }
}

/// Shows the figures of the files side by side, and where they differ.
pub(super) fn compare_files(args: &CompareArgs) -> Result<ExitCode, Failed> {
    if let Some((_, name)) =
        explicit_flags::command_line_flags().iter().find(|(id, _)| !is_allowed_flag(id))
    {
        let message = format!("{name} does not apply to result files: each holds one run");
        return Err(Failed::usage(message).hint(
            "remove it, or compare servers (goodput compare URL URL) or folders of repeated runs",
        ));
    }
    if args.targets.len() < 2 {
        return Err(Failed::usage("a comparison needs at least two targets")
            .hint("goodput compare before.json after.json"));
    }
    let places: Vec<PathBuf> = args.targets.iter().map(|target| target_path(target)).collect();
    let mut files = Vec::new();
    for path in &places {
        files.push(if path.is_file() { Some(single_result(path)?) } else { None });
    }
    // A run of ours is converted to the definitions of the first file.
    let tool = files.iter().flatten().map(|run| run.tool).next().unwrap_or(SourceTool::VllmPython);
    let mut sides: Vec<ReportedSide> = Vec::new();
    for (place, (path, file)) in places.iter().zip(files).enumerate() {
        let is_converted = file.is_none();
        let (reported, verdict, notes) = match file {
            Some(run) => (run, None, Vec::new()),
            None => convert_run(path, tool)?,
        };
        let target = args.targets.get(place).map_or("", String::as_str);
        let name = display_name(target, path, place);
        let path = path.display().to_string();
        sides.push(ReportedSide { name, path, is_converted, verdict, notes, reported });
    }
    let comparison = FileComparison::new(sides);
    if args.output.json {
        output::print_data(report::to_json(&comparison).as_bytes())?;
    } else if !args.output.quiet {
        output::print_data(goodput_report::files_text(&comparison).as_bytes())?;
    }
    Ok(ExitCode::from(exit::OK))
}

fn is_allowed_flag(id: &str) -> bool {
    ABOUT_FILES.contains(&id)
}

fn display_name(target: &str, path: &Path, place: usize) -> String {
    let given = split_name(target).0.filter(|_| !Path::new(target).exists()).map(str::to_owned);
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    // Its column has room for this.
    let short = stem.filter(|stem| stem.chars().count() <= 10);
    given
        .filter(|name| name.chars().count() <= LONGEST)
        .or(short)
        .unwrap_or_else(|| side_letter(place))
}

/// The run in a file.
fn single_result(path: &Path) -> Result<Reported, Failed> {
    let results = read_results(path).map_err(|error| {
        Failed::usage(error.to_string()).hint(format!("supported: {UNDERSTOOD}"))
    })?;
    let n = results.len();
    let only = results.into_iter().next().filter(|_| n == 1);
    only.ok_or_else(|| {
        Failed::usage(format!("`{}` holds {n} results", path.display()))
            .hint("a comparison takes files with one result each: split this file")
    })
}

/// A run by another tool's definitions: written as that tool's file and read back, with its verdict
/// and notes.
fn convert_run(
    folder: &Path,
    tool: SourceTool,
) -> Result<(Reported, Option<Verdict>, Vec<String>), Failed> {
    if !folder.is_dir() {
        return Err(Failed::usage(format!(
            "`{}` is neither a file nor a folder",
            folder.display()
        ))
        .hint("compare files of other tools with each other, or with run folders"));
    }
    let (bytes, verdict, notes) = report::convert_run(folder, tool)?;
    let results =
        parse_results(folder, &bytes).map_err(|error| Failed::internal(error.to_string()))?;
    let first = results.into_iter().next().map(|run| (run, Some(verdict), notes));
    first.ok_or_else(|| Failed::internal(format!("`{}` holds no result", folder.display())))
}
