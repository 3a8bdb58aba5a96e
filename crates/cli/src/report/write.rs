//! To a file, whole or not at all, or to stdout.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use goodput_exchange::ExchangeError;
use goodput_files::write_whole;

use crate::error::Failed;
use crate::output;

/// A page to this file or to stdout.
pub(super) fn write_text(to: Option<&Path>, text: &str) -> Result<(), Failed> {
    match to {
        Some(path) => replace_file(path, text.as_bytes()),
        None => output::print_data(text.as_bytes()),
    }
}

/// Writes a file whole or not at all. What is not a file, such as `/dev/stdout`, is written to.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), Failed> {
    let refused = |why: String| Failed::usage(format!("cannot write `{}`: {why}", path.display()));
    if path.is_dir() {
        return Err(refused("it is a folder".to_owned()).hint("name a file in it"));
    }
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let why = format!("the folder `{}` does not exist", folder.display());
        return Err(refused(why).hint("create it first"));
    }
    write_whole(path, |mut file| file.write_all(bytes)).map_err(|error| refused(error.to_string()))
}

/// An export to this file or to stdout, as it is made.
pub(super) fn write_export(
    to: Option<&Path>,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), ExchangeError>,
) -> Result<(), Failed> {
    let Some(path) = to else {
        let mut out = BufWriter::new(io::stdout());
        let written = write(&mut out).and_then(|()| Ok(out.flush()?));
        return match written {
            // A reader that has had enough is not an error.
            Err(error) if !error.is_broken_pipe() => {
                Err(Failed::internal(format!("cannot write to stdout: {error}")))
            }
            _ => Ok(()),
        };
    };
    write_whole(path, |file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        Ok(out.flush()?)
    })
    .map_err(|error: ExchangeError| {
        Failed::usage(format!("cannot write `{}`: {error}", path.display()))
            .hint("--output names a file in an existing folder")
    })
}
