//! Opening what is there, and nothing else: no link is followed, no pipe is waited for.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Names below a folder that are looked at before a page is made of it.
const MOST_NAMES: usize = 20_000;

/// Folders within folders, at most.
const MOST_DEPTH: usize = 6;

/// Opens a plain file of at most so many bytes.
pub fn open_plain(path: &Path, most: u64) -> io::Result<File> {
    let named = fs::symlink_metadata(path)?;
    if !named.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file"));
    }
    let file = File::open(path)?;
    let opened = file.metadata()?;
    // Somebody may have put something else there in between.
    if (opened.dev(), opened.ino()) != (named.dev(), named.ino()) || opened.len() > most {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the file that was named"));
    }
    Ok(file)
}

/// What is in a plain file of at most so many bytes.
pub fn read_plain(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // It may grow while it is read.
    open_plain(path, most)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a folder and everything in it is made of plain files and folders: then nothing that reads
/// it can be led out of it, or wait for ever.
pub fn is_sound(folder: &Path) -> bool {
    let mut names = 0;
    is_plain_below(folder, MOST_DEPTH, &mut names)
}

fn is_plain_below(folder: &Path, depth: usize, names: &mut usize) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    for entry in entries.flatten() {
        *names += 1;
        let Ok(kind) = entry.file_type() else { return false };
        let is_well = match (kind.is_dir(), kind.is_file()) {
            (true, _) => depth > 0 && is_plain_below(&entry.path(), depth - 1, names),
            (_, is_file) => is_file,
        };
        if !is_well || *names > MOST_NAMES {
            return false;
        }
    }
    true
}
