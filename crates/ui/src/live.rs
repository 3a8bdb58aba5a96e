//! Which run goes on now.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::read;
use crate::walk::below;

/// The run that goes on in a folder: itself, or the newest of its runs. None where none does, or
/// its process was killed and another began since.
pub fn live_folder(folder: &Path) -> Option<PathBuf> {
    if read::is_running(folder) {
        return Some(folder.to_owned());
    }
    let mut runs = below(&folder.join("points"));
    runs.extend(below(&folder.join("warm-up")));
    for configuration in below(&folder.join("configurations")) {
        runs.extend(below(&configuration.join("points")));
    }
    let is_repeat = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"repeat-"))
    };
    runs.extend(below(folder).into_iter().filter(is_repeat));
    let changed = |path: &PathBuf| fs::metadata(path).and_then(|facts| facts.modified()).ok();
    runs.into_iter().filter(|run| read::is_running(run)).max_by_key(changed)
}
