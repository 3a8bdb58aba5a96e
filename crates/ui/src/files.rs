//! Whether a folder of results is safe to make a page of.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Names below a folder that are looked at before a page is made of it.
const MOST_NAMES: usize = 20_000;

/// Folders within folders, at most.
const MOST_DEPTH: usize = 6;

/// The state of a folder and everything in it, as a number that differs once a file has changed;
/// none if it is not made of plain files and folders alone. Nothing that reads a folder that has
/// one can be led out of it, or wait forever.
pub(crate) fn folder_fingerprint(folder: &Path) -> Option<u64> {
    let mut names = 0;
    fingerprint_below(folder, MOST_DEPTH, &mut names)
}

fn fingerprint_below(folder: &Path, depth: usize, names: &mut usize) -> Option<u64> {
    let mut mark = 0u64;
    for entry in fs::read_dir(folder).ok()?.flatten() {
        *names += 1;
        let facts = entry.metadata().ok()?;
        let inside = match (facts.is_dir(), facts.is_file()) {
            (true, _) if depth > 0 => fingerprint_below(&entry.path(), depth - 1, names)?,
            (false, true) => 0,
            _ => return None,
        };
        if *names > MOST_NAMES {
            return None;
        }
        // A file cannot be given another time of its last change as it can one of its contents.
        let changed = (facts.ctime(), facts.ctime_nsec(), facts.mtime(), facts.mtime_nsec());
        let mut hasher = DefaultHasher::new();
        (entry.file_name(), inside, facts.ino(), facts.len(), changed).hash(&mut hasher);
        // Names come in any order.
        mark = mark.wrapping_add(hasher.finish());
    }
    Some(mark)
}
