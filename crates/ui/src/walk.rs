//! Finding the folders of results, and telling whether one has changed.

use std::fmt::Write;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use goodput_record::ArtifactKind;

use crate::notes::{NOTES, short_hash};

/// Folders that only hold others, within each other.
const MOST_DEPTH: usize = 3;

/// Folders that are looked at.
const MOST_FOLDERS: usize = 50_000;

/// Files that an entry is made of.
const FILES: [&str; 8] = [
    "manifest.json",
    "plan.toml",
    "summary.json",
    "sweep.toml",
    "compare.toml",
    "shadow.toml",
    "configurations",
    NOTES,
];

/// What changed less than this ago may change again without another time stamp.
pub(crate) const FRESH: Duration = Duration::from_millis(100);

/// This many times as long where a file system counts whole seconds.
const COARSE: i128 = 20;

/// A folder of results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultsRoot {
    pub(crate) id: String,
    /// From the folder of runs.
    pub(crate) path: PathBuf,
    pub(crate) kind: ArtifactKind,
    /// Changes with the files; empty if they are too new to tell.
    pub(crate) stamp: String,
}

/// Every folder of results on the shelf. Links are not followed.
pub(crate) fn find_results(root: &Path, fresh: Duration) -> Vec<ResultsRoot> {
    let mut walk = Walk { root, fresh, left: MOST_FOLDERS, found: Vec::new() };
    walk.visit(Path::new(""), MOST_DEPTH);
    walk.found
}

struct Walk<'a> {
    root: &'a Path,
    fresh: Duration,
    /// Folders that may still be looked at.
    left: usize,
    found: Vec<ResultsRoot>,
}

impl Walk<'_> {
    fn visit(&mut self, path: &Path, depth: usize) {
        let folder = self.root.join(path);
        // A folder that cannot be read is like one that holds nothing.
        if let Ok(Some(kind)) = ArtifactKind::from_folder(&folder) {
            let stamp = change_stamp(&folder, self.fresh);
            self.found.push(ResultsRoot {
                id: result_id(path),
                path: path.to_owned(),
                kind,
                stamp,
            });
            return;
        }
        if depth == 0 {
            return;
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_folder || name.as_bytes().starts_with(b".") {
                continue;
            }
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            self.visit(&path.join(name), depth - 1);
        }
    }
}

/// Made from the place, so that links keep their meaning when the index is made again.
fn result_id(path: &Path) -> String {
    short_hash(path.as_os_str().as_bytes())
}

fn change_stamp(folder: &Path, fresh: Duration) -> String {
    let (mut stamp, mut newest, mut is_coarse) = (String::new(), 0, false);
    let inside = FILES.iter().map(|name| folder.join(name));
    for path in inside.chain([folder.join("repeat-1/manifest.json")]) {
        let Ok(facts) = fs::symlink_metadata(&path) else {
            stamp.push_str("-;");
            continue;
        };
        let time = |seconds: i64, part: i64| i128::from(seconds) * 1_000_000_000 + i128::from(part);
        let changed = time(facts.ctime(), facts.ctime_nsec());
        newest = newest.max(changed);
        is_coarse |= facts.ctime_nsec() == 0;
        // Writing to a string cannot fail.
        let _ = write!(stamp, "{},{},{changed};", facts.ino(), facts.len());
    }
    let since = |time: Duration| time.as_nanos().cast_signed();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, since);
    let fresh = since(fresh) * if is_coarse { COARSE } else { 1 };
    if now - newest < fresh { String::new() } else { stamp }
}

/// Folders in a folder.
pub(crate) fn subfolders(folder: &Path) -> Vec<PathBuf> {
    if !fs::symlink_metadata(folder).is_ok_and(|facts| facts.is_dir()) {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_FOLDERS);
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_folder).map(|entry| entry.path()).collect()
}
