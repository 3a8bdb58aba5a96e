//! *Other people's files*, opened: a plain file or a clear error, at once, and never more bytes than the
//! caller allows. What is written for others is there whole or not at all ([`write_whole`]).
//!
//! A path may come from a stranger, and so may a whole folder. A link to `/dev/zero` would fill the
//! memory, a pipe would wait forever, a device may do anything. Everything that reads such a path
//! opens it here.
//!
//! | who named the path | links | pipes | function |
//! |---|---|---|---|
//! | the user, or a plan | followed | refused | [`open`], [`read`], [`read_text`] |
//! | the user, for what is read once, from the first byte on | followed | `/dev/stdin` and `/dev/fd/N` | [`open_stream`], [`read_stream`] |
//! | we: a file with a fixed name in a folder of results | refused | refused | [`open_inside`], [`read_inside`], [`read_text_inside`], [`check_inside`] |
//!
//! A link inside a folder of results would lead out of the folder: what is read there may end up on a page
//! that is passed on, and what is written there would change another file.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// Bytes of a file that is read whole and written by hand or by us: a manifest, a list of targets, a schema.
pub const MOST_SMALL: u64 = 16 << 20;

/// Bytes of a TOML file: read into a tree that takes a hundred times as much.
pub const MOST_TOML: u64 = 2 << 20;

/// Bytes of a summary: those of large sweeps and comparisons hold many runs. Read into a tree that takes
/// thirty times as much.
pub const MOST_SUMMARY: u64 = 8 << 20;

/// Opens a plain file. Links are followed.
pub fn open(path: &Path) -> io::Result<File> {
    open_checked(path, &fs::metadata(path)?, false)
}

/// Opens a plain file, or a pipe that was handed to this process: `/dev/stdin`, or `/dev/fd/N` as a shell
/// writes for `<(…)`. A pipe with a name on disk is refused: opening one waits for a writer that
/// may never come.
pub fn open_stream(path: &Path) -> io::Result<File> {
    open_checked(path, &fs::metadata(path)?, is_inherited(path))
}

/// Opens a plain file inside a folder of results. A link is refused.
pub fn open_inside(path: &Path) -> io::Result<File> {
    open_checked(path, &fs::symlink_metadata(path)?, false)
}

/// What is in a plain file of at most this many bytes, or comes through a pipe as in
/// [`open_stream`], as text.
pub fn read_stream(path: &Path, most: u64) -> io::Result<String> {
    into_text(read_all(open_stream(path)?, most)?)
}

/// Whether a name inside a folder of results is free or a plain file: then it can be read, and written to
/// without changing a file elsewhere.
pub fn check_inside(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        named => check_file_type(named?.file_type(), false),
    }
}

/// What is in a plain file of at most this many bytes. Links are followed.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_all(open(path)?, most)
}

/// The same as text.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    into_text(read(path, most)?)
}

/// What is in a plain file of at most this many bytes, inside a folder of results.
pub fn read_inside(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_all(open_inside(path)?, most)
}

/// The same as text.
pub fn read_text_inside(path: &Path, most: u64) -> io::Result<String> {
    into_text(read_inside(path, most)?)
}

/// Writes a file whole or not at all: next to its place, then renamed. A device or a FIFO is
/// written to directly: its reader would not see a file that replaces it.
pub fn write_whole<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(File) -> Result<(), E>,
) -> Result<(), E> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return write(File::options().write(true).open(path)?);
    }
    // What a link leads to is replaced, not the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!(".{name}.new"));
    let written = || {
        // What another process left there, or a stranger: a link would lead the bytes to another file.
        let _ = fs::remove_file(&draft);
        write(File::create_new(&draft)?)?;
        Ok(fs::rename(&draft, &path)?)
    };
    written().inspect_err(|_| {
        // A partial file must not stay.
        let _ = fs::remove_file(&draft);
    })
}

/// Opens what `named` describes, if it is a plain file (or a pipe, where that may be).
fn open_checked(path: &Path, named: &Metadata, may_be_pipe: bool) -> io::Result<File> {
    check_file_type(named.file_type(), may_be_pipe)?;
    // Another process may replace it in between: open without waiting, and check once more.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let opened = file.metadata()?;
    check_file_type(opened.file_type(), may_be_pipe)?;
    if (opened.dev(), opened.ino()) != (named.dev(), named.ino()) {
        return Err(refused_error("it was replaced while it was being opened"));
    }
    if opened.file_type().is_fifo() {
        fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    }
    Ok(file)
}

fn check_file_type(kind: FileType, may_be_pipe: bool) -> io::Result<()> {
    let what = match kind {
        kind if kind.is_file() || (kind.is_fifo() && may_be_pipe) => return Ok(()),
        kind if kind.is_symlink() => "a link",
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(refused_error(&format!("it is {what}, not a plain file")))
}

/// Whether a path stands for something that this process was started with.
fn is_inherited(path: &Path) -> bool {
    path == Path::new("/dev/stdin")
        || [Path::new("/dev/fd"), Path::new("/proc/self/fd")]
            .contains(&path.parent().unwrap_or(path))
}

fn read_all(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // It may grow while it is read.
    if file.metadata()?.len() <= most {
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 <= most {
            return Ok(bytes);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::FileTooLarge,
        format!("it is larger than {}", size_text(most)),
    ))
}

fn size_text(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

fn into_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to() + 1;
        io::Error::new(io::ErrorKind::InvalidData, format!("byte {place} is not UTF-8"))
    })
}

fn refused_error(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests;
