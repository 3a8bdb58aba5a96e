//! [`Scratch`]: files of one thread, for readers that take a path.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Folders of this process so far.
static FOLDERS: AtomicU64 = AtomicU64::new(0);

/// A folder that goes when this goes, in memory where the system has such a place.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> io::Result<Self> {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = scratch_root().join(format!("{}{number}", folder_prefix(std::process::id())));
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    /// A file with these bytes.
    pub(crate) fn write_file(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
        let path = self.0.join(name);
        fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

fn scratch_root() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

fn folder_prefix(process: u32) -> String {
    format!("goodput-fuzz-{process}-")
}

/// Removes what a process has left that could not do it itself.
pub fn clean_up_after(process: u32) {
    for entry in fs::read_dir(scratch_root()).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&folder_prefix(process)) {
            // It holds nothing that anybody needs.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It holds nothing that anybody needs.
        let _ = fs::remove_dir_all(&self.0);
    }
}
