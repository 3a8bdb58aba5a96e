//! Results as files that other programs read.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use goodput_exchange::{
    ExchangeError, RequestRow, Run, aiperf, chunks_parquet, requests_csv, requests_parquet,
    server_parquet, sglang, vllm,
};
use goodput_model::{Plan, RequestRecord, SourceTool, Verdict};
use goodput_record::{Campaign, CampaignFolder, RunFolder, SeriesFolder};
use goodput_stats::{Each, Summary};

use super::{Read, points, read_as};
use crate::args::Format;
use crate::error::Failed;
use crate::output;
use crate::printer::Printer;
use goodput_lab::sweep;

/// To this file, whole or not at all, or to stdout.
pub(super) fn write(to: Option<&Path>, text: &str) -> Result<(), Failed> {
    match to {
        Some(path) => replace(path, text.as_bytes()),
        None => output::data(text.as_bytes()),
    }
}

/// Writes a file whole or not at all: beside its place, then renamed. What is no file, as
/// `/dev/stdout`, is written to.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failed> {
    let refused = |why: String| Failed::usage(format!("cannot write `{}`: {why}", path.display()));
    if path.is_dir() {
        return Err(refused("that is a folder".to_owned()).hint("name a file in it"));
    }
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let why = format!("there is no folder `{}`", folder.display());
        return Err(refused(why).hint("make it first"));
    }
    put(path, |mut file| file.write_all(bytes)).map_err(|error| refused(error.to_string()))
}

/// Writes beside a file's place, then renames. What is no file, a device or a FIFO, is written to:
/// whoever reads it would not find what stands in its place.
fn put<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(File) -> Result<(), E>,
) -> Result<(), E> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return write(File::options().write(true).open(path)?);
    }
    // What a link leads to is replaced, not the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.new"));
    let written = || {
        // What another process left there, or a stranger: a link would lead the bytes to another file.
        let _ = fs::remove_file(&beside);
        write(File::create_new(&beside)?)?;
        Ok(fs::rename(&beside, &path)?)
    };
    written().inspect_err(|_| {
        // The beginning of a file is of no use.
        let _ = fs::remove_file(&beside);
    })
}

/// A run, or the points of a sweep, in another shape; with every request where `detailed` and the
/// format knows both forms.
pub(super) fn export(
    folder: &Path,
    format: Format,
    to: Option<&Path>,
    detailed: bool,
) -> Result<(), Failed> {
    if detailed && !matches!(format, Format::Vllm | Format::Sglang) {
        return Err(Failed::usage("--detailed goes with --format vllm and --format sglang")
            .hint("`--format csv` and `--format parquet` hold every request anyway"));
    }
    if let Some(saved) = sweep::read(folder, &Printer::new(false)) {
        if format != Format::Csv {
            return Err(Failed::usage("a sweep is several runs, and this format holds one").hint(
                "export one of the folders in its `points`, or all points with --format csv",
            ));
        }
        let saved = saved?;
        return place(to, |out| points::write(out, &saved));
    }
    refuse_several(folder)?;
    let read = read_as(folder, |_| Ok(()))?;
    let files = RunFolder::open(folder).map_err(|error| Failed::usage(error.to_string()))?;
    match format {
        Format::Parquet => tables(&read, &files, to.unwrap_or(folder)),
        _ => one_file(&read, &files, format, (to, detailed)),
    }
}

/// Several runs have no request of their own.
fn refuse_several(folder: &Path) -> Result<(), Failed> {
    let is_run = RunFolder::open(folder).is_ok();
    let several = |what: &str, hint: &str| {
        Err(Failed::usage(format!(
            "`{}` holds {what}, and this format holds one",
            folder.display()
        ))
        .hint(hint))
    };
    if folder.is_file() {
        return Err(Failed::usage("this format is made from a run's log, and a file has none")
            .hint(
                "name the folder of a run; text, json and markdown go with files of other tools",
            ));
    }
    if !is_run && CampaignFolder::open(Campaign::Comparison, folder).is_some() {
        return several("several runs", "name one of the folders in it");
    }
    if !is_run && SeriesFolder::open(folder).is_some() {
        return several("repeated runs", "name one of them: …/1");
    }
    Ok(())
}

/// What goes into one file, or to stdout.
fn one_file(
    Read { plan, summary, .. }: &Read,
    files: &RunFolder,
    format: Format,
    (to, detailed): (Option<&Path>, bool),
) -> Result<(), Failed> {
    let each = each(plan, summary, files);
    let records = || records(files, &each);
    let run = Run { plan, summary };
    let mut notes = Vec::new();
    place(to, |out| {
        notes = match format {
            Format::Vllm => vllm(out, &run, &records, detailed)?,
            Format::Sglang => sglang(out, &run, &records, detailed)?,
            Format::Aiperf => aiperf(out, &run, records())?,
            _ => {
                requests_csv(out, records().map(|record| RequestRow::of(record, &each)))?;
                run.warnings()
            }
        };
        Ok(())
    })?;
    say(&notes);
    Ok(())
}

fn say(notes: &[String]) {
    for text in notes {
        output::note(&format!("note: {text}"));
    }
}

/// A run as the file of this tool, as that of vLLM where we do not write the tool's own, with the
/// run's verdict and what to know about it.
pub(crate) fn converted(
    folder: &Path,
    tool: SourceTool,
) -> Result<(Vec<u8>, Verdict, Vec<String>), Failed> {
    refuse_several(folder)?;
    let Read { plan, summary, .. } = &read_as(folder, |_| Ok(()))?;
    let files = RunFolder::open(folder).map_err(|error| Failed::usage(error.to_string()))?;
    let each = each(plan, summary, &files);
    let records = || records(&files, &each);
    let run = Run { plan, summary };
    let mut out = Vec::new();
    let written = match tool {
        SourceTool::Sglang => sglang(&mut out, &run, &records, false),
        SourceTool::Aiperf | SourceTool::GenaiPerf => aiperf(&mut out, &run, records()),
        SourceTool::VllmPython
        | SourceTool::VllmRust
        | SourceTool::Guidellm
        | SourceTool::Goodput => vllm(&mut out, &run, &records, false),
    };
    let notes = written.map_err(|error| Failed::internal(error.to_string()))?;
    Ok((out, summary.verdict, notes))
}

/// Three tables beside each other.
fn tables(Read { plan, summary, .. }: &Read, files: &RunFolder, into: &Path) -> Result<(), Failed> {
    fs::create_dir_all(into).map_err(|error| {
        Failed::usage(format!("cannot make the folder `{}`: {error}", into.display()))
            .hint("--output names the folder that the three tables go into")
    })?;
    let each = each(plan, summary, files);
    let run = Run { plan, summary };
    let file = |name: &str| into.join(name);
    place(Some(&file("requests.parquet")), |out| {
        let rows = records(files, &each).map(|record| RequestRow::of(record, &each));
        requests_parquet(out, &run, rows)
    })?;
    place(Some(&file("chunks.parquet")), |out| chunks_parquet(out, &run, records(files, &each)))?;
    place(Some(&file("server.parquet")), |out| server_parquet(out, &run, files.samples()))?;
    say(&run.warnings());
    Ok(())
}

fn each(plan: &Plan, summary: &Summary, files: &RunFolder) -> Each {
    let samples: Vec<_> = files.samples().collect();
    Each::new(plan, summary, &samples, files.judgements())
}

/// Every request, with what was found out after the run. The log was opened once already: one that
/// vanishes in between reads as empty.
fn records<'a>(files: &RunFolder, each: &'a Each) -> impl Iterator<Item = RequestRecord> + use<'a> {
    files.records().into_iter().flatten().map(|mut record| {
        each.complete(&mut record);
        record
    })
}

/// Writes to stdout, or to a file that is there whole or not at all, or into what is no file.
fn place(
    to: Option<&Path>,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), ExchangeError>,
) -> Result<(), Failed> {
    let Some(path) = to else {
        let mut out = BufWriter::new(io::stdout());
        let written = write(&mut out).and_then(|()| Ok(out.flush()?));
        return match written {
            // A reader that has had enough is no error.
            Err(error) if !error.is_broken_pipe() => {
                Err(Failed::internal(format!("cannot write to stdout: {error}")))
            }
            _ => Ok(()),
        };
    };
    put(path, |file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        Ok(out.flush()?)
    })
    .map_err(|error: ExchangeError| {
        Failed::usage(format!("cannot write `{}`: {error}", path.display()))
            .hint("--output names a file in a folder that is there")
    })
}
