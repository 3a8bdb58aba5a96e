//! Files in other forms, and parts of files.

use std::fs::File;
use std::io::{BufWriter, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use goodput_dataset::{
    ConvertTarget, Converted, DatasetOptions, FileKind, Loaded, TraceFormat, TraceSelection,
    UnknownFormat, file_kind, load_dataset, load_trace,
};
use goodput_model::LogPlan;
use goodput_tokens::Tokenizer;

use crate::error::{Failed, dataset_failed};
use crate::events::Observer;

/// Which entries of a file are read, and in which form it is.
#[derive(Debug, Clone, Default)]
pub struct FileEntries<'a> {
    /// The form, where it was named.
    pub form: Option<&'a str>,
    /// Entries that cannot be read are left out.
    pub skip_invalid: bool,
    /// How a log of another program is read.
    pub log: LogPlan,
}

impl FileEntries<'_> {
    /// Every entry of a dataset or a trace.
    pub fn read_all(self, file: &Path) -> Result<Loaded, Failed> {
        let is_trace = match self.form {
            Some(form) => form.parse::<TraceFormat>().is_ok(),
            None => file_kind(file).map_err(|error| dataset_failed(&error))? == FileKind::Trace,
        };
        if !is_trace {
            let options =
                DatasetOptions { sample: u64::MAX, in_order: true, ..self.dataset_options()? };
            return load_dataset(file, &options, &estimate_tokens())
                .map_err(|error| dataset_failed(&error));
        }
        let format = self.form.map(str::parse).transpose();
        let options = TraceSelection {
            format: format.map_err(|error| unknown_format_error(&error))?,
            skip_invalid: self.skip_invalid,
            log: self.log,
            ..TraceSelection::default()
        };
        load_trace(file, &options).map_err(|error| dataset_failed(&error))
    }

    /// This many entries of a dataset, drawn with this seed.
    pub fn read_sample(self, file: &Path, count: u64, seed: u64) -> Result<Loaded, Failed> {
        let options = DatasetOptions { sample: count, seed, ..self.dataset_options()? };
        load_dataset(file, &options, &estimate_tokens()).map_err(|error| dataset_failed(&error))
    }

    fn dataset_options(&self) -> Result<DatasetOptions, Failed> {
        let format =
            self.form.map(str::parse).transpose().map_err(|error| unknown_format_error(&error))?;
        Ok(DatasetOptions { format, skip_invalid: self.skip_invalid, ..DatasetOptions::default() })
    }
}

/// About: nothing is filtered by length here.
fn estimate_tokens() -> impl Fn(&str) -> u32 {
    let tokenizer = Tokenizer::builtin("approximate");
    move |text: &str| tokenizer.as_ref().and_then(|t| t.count(text).ok()).unwrap_or(0)
}

/// A form that there is not.
pub fn unknown_format_error(error: &UnknownFormat) -> Failed {
    Failed::usage(error.to_string())
}

/// Writes the entries to a new file, and says what became of all of them.
pub fn write_entries(
    loaded: &Loaded,
    to: ConvertTarget,
    path: &Path,
    observer: &dyn Observer,
) -> Result<(), Failed> {
    let mut out = BufWriter::new(create_new_file(path)?);
    let Converted { written, lost } =
        goodput_dataset::convert(loaded, to, &mut out).map_err(|error| dataset_failed(&error))?;
    if written == 0 {
        // Not a file that looks like a result.
        let _ = std::fs::remove_file(path);
        let missing: Vec<&str> = lost.keys().map(String::as_str).collect();
        return Err(Failed::usage(format!("no entry can be converted to `{}`", to.name()))
            .hint(format!("the format has no field for: {}", missing.join(", "))));
    }
    let (seen, format) = (loaded.seen, loaded.format);
    observer.notice(format!("{}: {written} of {seen} {format} entries", path.display()));
    for (reason, count) in &loaded.skipped {
        observer.notice(format!("left out: {count} ({reason})"));
    }
    for note in &loaded.notes {
        observer.notice(format!("note: {note}"));
    }
    for (field, count) in &lost {
        observer.notice(format!(
            "dropped, because the new format has no such field: {field} of {count} entries"
        ));
    }
    Ok(())
}

/// A new file, for the user alone, as it may hold prompts; what is there already is not overwritten.
fn create_new_file(path: &Path) -> Result<File, Failed> {
    File::options().write(true).create_new(true).mode(0o600).open(path).map_err(|error| {
        if error.kind() == ErrorKind::AlreadyExists {
            return exists_error(path);
        }
        Failed::usage(format!("cannot write `{}`: {error}", path.display()))
    })
}

/// A file that is not overwritten.
pub fn exists_error(path: &Path) -> Failed {
    Failed::usage(format!("`{}` already exists", path.display()))
        .hint("choose another file name: goodput does not overwrite files")
}
