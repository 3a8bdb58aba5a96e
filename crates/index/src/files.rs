//! Whether a folder of results is safe to make a page of.

use std::fs;
use std::path::Path;

/// Names below a folder that are looked at before a page is made of it.
const MOST_NAMES: usize = 20_000;

/// Folders within folders, at most.
const MOST_DEPTH: usize = 6;

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
