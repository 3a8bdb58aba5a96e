//! [`Draft`]: a run folder that is made of others and is there as a whole, or not at all.
//!
//! It is written in a folder inside its place, so that it works wherever the place can be written to (a
//! mounted volume has no neighbors). Then its files move up, the log last: a folder without a log is not a
//! run. Whatever a process leaves behind that is killed meanwhile, the next one clears away.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::FolderError;
use crate::folder::RunFolder;
use crate::layout::{DRAFT, LOG, is_folder};
use crate::lock::FolderLock;

/// A run folder in the making. Dropped before its end, it takes back what it wrote.
#[derive(Debug)]
pub struct Draft {
    place: PathBuf,
    path: PathBuf,
    /// Held as long as this lives: two processes do not write one draft.
    lock: Option<FolderLock>,
    is_over: bool,
}

impl Draft {
    /// Begins one whose place is free, or holds what is left of another.
    pub fn begin(place: &Path) -> Result<Self, FolderError> {
        let path = place.join(DRAFT);
        fs::create_dir_all(place).map_err(io_error("create", place))?;
        RunFolder::check_free(place)?;
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_folder(&path) => {}
            other => other.map_err(io_error("create", &path))?,
        }
        let lock = lock_folder(place, &path)?;
        let draft = Self { place: place.to_owned(), path, lock, is_over: false };
        draft.remove_leftovers()?;
        Ok(draft)
    }

    /// Where its files are until it is whole.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts its files in their place.
    pub fn finish(mut self) -> Result<(), FolderError> {
        let mut names = file_names(&self.path).map_err(io_error("read", &self.path))?;
        names.sort_by_key(|name| name.as_os_str() == LOG);
        for name in names {
            let to = self.place.join(&name);
            fs::rename(self.path.join(&name), &to).map_err(io_error("write", &to))?;
        }
        self.is_over = true;
        let _ = fs::remove_dir(&self.path);
        // Held until nothing of the draft is left.
        drop(self.lock.take());
        Ok(())
    }

    /// Removes what another has left behind, which is never a whole run.
    fn remove_leftovers(&self) -> Result<(), FolderError> {
        RunFolder::remove_files(&self.place);
        for name in file_names(&self.path).map_err(io_error("read", &self.path))? {
            let file = self.path.join(name);
            fs::remove_file(&file).map_err(io_error("remove", &file))?;
        }
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let _ = self.remove_leftovers();
        let _ = fs::remove_dir(&self.path);
        let _ = fs::remove_dir(&self.place);
    }
}

fn file_names(folder: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
}

/// The lock of a folder; none on a file system without locks.
fn lock_folder(place: &Path, path: &Path) -> Result<Option<FolderLock>, FolderError> {
    let folder = File::open(path).map_err(io_error("open", path))?;
    match FolderLock::new(folder) {
        Ok(lock) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Err(FolderError::Locked(place.to_owned())),
        // Some network file systems have no locks.
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FolderError + use<> {
    let path = path.to_owned();
    move |error| FolderError::Io { action, path, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [&str; 5] =
        ["requests.log", "plan.toml", "manifest.json", "report.html", "summary.json"];

    fn written(place: &Path) -> Draft {
        let draft = Draft::begin(place).unwrap();
        for name in FILES {
            fs::write(draft.path().join(name), "draft").unwrap();
        }
        draft
    }

    /// What a process leaves behind that is killed.
    fn kill(mut draft: Draft) {
        draft.lock = None;
        std::mem::forget(draft);
    }

    #[test]
    fn a_draft_is_nothing_until_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("deep/out");
        let draft = written(&place);
        assert!(matches!(RunFolder::open(&place), Err(FolderError::Unfinished(_))));
        assert!(matches!(Draft::begin(&place), Err(FolderError::Locked(_))), "one at a time");
        draft.finish().unwrap();
        RunFolder::open(&place).unwrap();
        let mut names = file_names(&place).unwrap();
        names.sort();
        let mut expected = FILES;
        expected.sort_unstable();
        assert_eq!(names, expected, "and nothing is left of the draft");
        assert!(matches!(Draft::begin(&place), Err(FolderError::Occupied(_))));
        // One that fails leaves nothing.
        let other = folder.path().join("other");
        drop(written(&other));
        assert!(!other.exists());
    }

    #[test]
    fn a_kill_at_any_point_leaves_no_run_or_a_whole_one() {
        // In the order in which files move up, the log last.
        for moved in 0..=FILES.len() {
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("out");
            fs::create_dir_all(place.join(RunFolder::SHARDS).join("0")).unwrap();
            let draft = written(&place);
            let (draft_path, last) = (draft.path().to_owned(), FILES.len());
            kill(draft);
            for name in FILES.iter().skip(1).chain(FILES.first()).take(moved) {
                fs::rename(draft_path.join(name), place.join(name)).unwrap();
            }
            if moved == last {
                RunFolder::open(&place).unwrap();
                assert!(matches!(Draft::begin(&place), Err(FolderError::Occupied(_))));
                continue;
            }
            let said = RunFolder::open(&place).unwrap_err();
            assert!(matches!(said, FolderError::Unfinished(_)), "{moved} moved: {said}");
            written(&place).finish().unwrap();
            RunFolder::open(&place).unwrap();
            assert!(place.join(RunFolder::SHARDS).join("0").is_dir(), "shards stay");
        }
    }

    #[test]
    fn what_is_not_ours_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.txt"), "mine").unwrap();
        assert!(matches!(Draft::begin(folder.path()), Err(FolderError::Occupied(_))));
        fs::create_dir(folder.path().join(DRAFT)).unwrap();
        assert!(matches!(Draft::begin(folder.path()), Err(FolderError::Occupied(_))));
        assert_eq!(fs::read(folder.path().join("thesis.txt")).unwrap(), b"mine");
        // A link instead of the draft leads nowhere.
        let place = folder.path().join("out");
        fs::create_dir(&place).unwrap();
        std::os::unix::fs::symlink(folder.path(), place.join(DRAFT)).unwrap();
        assert!(Draft::begin(&place).is_err());
        assert!(folder.path().join("thesis.txt").exists());
    }
}
