//! Files in other forms, and parts of files.

use std::io::BufWriter;

use goodput_dataset::{
    ConvertTarget, Converted, DatasetOptions, FileKind, Loaded, TraceSelection, UnknownFormat,
    kind_of, load, load_trace,
};
use goodput_tokens::Tokenizer;

use super::{create, refused};
use crate::args::{ConvertArgs, SampleArgs};
use crate::error::Failed;
use crate::output;

/// `goodput workload convert`
pub(super) fn convert(args: &ConvertArgs) -> Result<(), Failed> {
    let to: ConvertTarget = args.to.parse().map_err(|error| unknown(&error))?;
    let is_trace = match &args.from {
        Some(form) => form.parse::<goodput_dataset::TraceFormat>().is_ok(),
        None => kind_of(&args.file).map_err(|error| refused(&error))? == FileKind::Trace,
    };
    let loaded = if is_trace {
        let format = args.from.as_deref().map(str::parse).transpose();
        let options = TraceSelection {
            format: format.map_err(|error| unknown(&error))?,
            skip_invalid: args.skip_invalid,
            log: args.log.plan(),
            ..TraceSelection::default()
        };
        load_trace(&args.file, &options).map_err(|error| refused(&error))?
    } else {
        let options = DatasetOptions {
            sample: u64::MAX,
            in_order: true,
            skip_invalid: args.skip_invalid,
            ..options(args.from.as_deref())?
        };
        load(&args.file, &options, &tokens()).map_err(|error| refused(&error))?
    };
    write(&loaded, to, &args.output)
}

/// `goodput workload sample`
pub(super) fn sample(args: &SampleArgs) -> Result<(), Failed> {
    let options = DatasetOptions {
        sample: args.count,
        seed: args.seed,
        skip_invalid: args.skip_invalid,
        ..options(args.from.as_deref())?
    };
    let loaded = load(&args.file, &options, &tokens()).map_err(|error| refused(&error))?;
    write(&loaded, ConvertTarget::Messages, &args.output)
}

fn options(form: Option<&str>) -> Result<DatasetOptions, Failed> {
    let format = form.map(str::parse).transpose().map_err(|error| unknown(&error))?;
    Ok(DatasetOptions { format, ..DatasetOptions::default() })
}

/// About: nothing is filtered by length here.
fn tokens() -> impl Fn(&str) -> u32 {
    let tokenizer = Tokenizer::builtin("approximate");
    move |text: &str| tokenizer.as_ref().and_then(|t| t.count(text).ok()).unwrap_or(0)
}

fn unknown(error: &UnknownFormat) -> Failed {
    Failed::usage(error.to_string())
}

/// Writes the entries, and says what became of all of them.
fn write(loaded: &Loaded, to: ConvertTarget, path: &std::path::Path) -> Result<(), Failed> {
    let mut out = BufWriter::new(create(path)?);
    let Converted { written, lost } =
        goodput_dataset::convert(loaded, to, &mut out).map_err(|error| refused(&error))?;
    if written == 0 {
        // Not a file that looks like a result.
        let _ = std::fs::remove_file(path);
        let missing: Vec<&str> = lost.keys().map(String::as_str).collect();
        return Err(Failed::usage(format!("no entry fits into the form `{}`", to.name()))
            .hint(format!("the form has no place for: {}", missing.join(", "))));
    }
    let say = |line: &str| output::note(&goodput_report::plain(line));
    say(&format!("{}: {written} of {} {} entries", path.display(), loaded.seen, loaded.format));
    for (reason, count) in &loaded.skipped {
        say(&format!("left out: {count} ({reason})"));
    }
    for note in &loaded.notes {
        say(&format!("note: {note}"));
    }
    for (field, count) in &lost {
        say(&format!("not in the new form: {field} of {count} entries"));
    }
    Ok(())
}
