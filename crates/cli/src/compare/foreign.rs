//! Result files of other tools side by side, with runs of goodput among them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use goodput_campaign::compare::{FileComparison, ReportedSide};
use goodput_exchange::{UNDERSTOOD, parse_results, read_results};
use goodput_model::{Reported, SourceTool, Verdict};

use crate::args::CompareArgs;
use crate::error::{Failed, exit};
use crate::{explicit_flags, output, report};
use goodput_lab::compare::names::{LONGEST, letter, split};

/// The flags that apply to files.
const ABOUT_FILES: [&str; 4] = ["targets", "json", "quiet", "verbose"];

/// Whether any of the targets is a file.
pub(super) fn is_meant(args: &CompareArgs) -> bool {
    args.targets.iter().any(|target| path_of(target).is_file())
}

fn path_of(target: &str) -> PathBuf {
    // A file may have `=` in its name.
    if Path::new(target).exists() { target.into() } else { split(target).1.into() }
}

/// Shows what the files state, and where they differ.
pub(super) fn compare(args: &CompareArgs) -> Result<ExitCode, Failed> {
    if let Some((_, name)) = explicit_flags::flags().iter().find(|(id, _)| !is_allowed(id)) {
        let message = format!("{name} does not apply to result files: each holds one run");
        return Err(Failed::usage(message).hint(
            "remove it, or compare servers (goodput compare URL URL) or folders of repeated runs",
        ));
    }
    if args.targets.len() < 2 {
        return Err(Failed::usage("a comparison needs at least two targets")
            .hint("goodput compare before.json after.json"));
    }
    let places: Vec<PathBuf> = args.targets.iter().map(|target| path_of(target)).collect();
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
            None => converted(path, tool)?,
        };
        let target = args.targets.get(place).map_or("", String::as_str);
        let name = name(target, path, place);
        let path = path.display().to_string();
        sides.push(ReportedSide { name, path, is_converted, verdict, notes, reported });
    }
    let comparison = FileComparison::new(sides);
    if args.output.json {
        output::data(report::json(&comparison).as_bytes())?;
    } else if !args.output.quiet {
        output::data(goodput_report::files_text(&comparison).as_bytes())?;
    }
    Ok(ExitCode::from(exit::OK))
}

fn is_allowed(id: &str) -> bool {
    ABOUT_FILES.contains(&id)
}

fn name(target: &str, path: &Path, place: usize) -> String {
    let given = split(target).0.filter(|_| !Path::new(target).exists()).map(str::to_owned);
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    // Its column has room for this.
    let short = stem.filter(|stem| stem.chars().count() <= 10);
    given.filter(|name| name.chars().count() <= LONGEST).or(short).unwrap_or_else(|| letter(place))
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
fn converted(
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
    let (bytes, verdict, notes) = report::converted(folder, tool)?;
    let results =
        parse_results(folder, &bytes).map_err(|error| Failed::internal(error.to_string()))?;
    let first = results.into_iter().next().map(|run| (run, Some(verdict), notes));
    first.ok_or_else(|| Failed::internal(format!("`{}` holds no result", folder.display())))
}
