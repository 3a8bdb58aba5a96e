//! Which run goes on now.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::read;
use crate::walk::subfolders;

/// What was not written for so long is not going on.
const QUIET_S: f64 = 20.0;

/// The run that goes on in a folder: itself, or the newest of its runs. None if none does, or its
/// process was killed and another began since.
pub(crate) fn live_folder(folder: &Path) -> Option<PathBuf> {
    if read::is_running(folder) {
        return Some(folder.to_owned());
    }
    let mut runs = subfolders(&folder.join("points"));
    runs.extend(subfolders(&folder.join("warm-up")));
    for configuration in subfolders(&folder.join("configurations")) {
        runs.extend(subfolders(&configuration.join("points")));
    }
    let is_repeat = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"repeat-"))
    };
    runs.extend(subfolders(folder).into_iter().filter(is_repeat));
    let changed = |path: &PathBuf| fs::metadata(path).and_then(|facts| facts.modified()).ok();
    runs.into_iter().filter(|run| read::is_running(run)).max_by_key(changed)
}

/// Seconds since something was written in a folder where something may go on.
pub(crate) fn seconds_since_write(folder: &Path) -> f64 {
    let run = live_folder(folder).unwrap_or_else(|| folder.to_owned());
    let logs = ["requests.log", "server.log", "manifest.json"].map(|name| run.join(name));
    let own = ["asks.jsonl", "points", "summary.json"].map(|name| folder.join(name));
    let age = |path: &PathBuf| {
        let changed = fs::symlink_metadata(path).and_then(|facts| facts.modified()).ok()?;
        // What is written in the future is written now.
        Some(SystemTime::now().duration_since(changed).unwrap_or_default().as_secs_f64())
    };
    logs.iter().chain(&own).filter_map(age).fold(f64::INFINITY, f64::min)
}

/// Whether a folder whose files say that something goes on in it was written lately.
pub(crate) fn is_written_lately(folder: &Path) -> bool {
    seconds_since_write(folder) < QUIET_S
}
