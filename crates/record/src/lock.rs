//! [`FolderLock`]: one process at a time writes a folder.

use std::fs::{File, TryLockError};

/// A lock on a file, held as long as this lives. The system releases it when the process ends,
/// however it ends.
#[derive(Debug)]
pub(crate) struct FolderLock(File);

impl FolderLock {
    /// Takes the lock, or says why it cannot.
    pub(crate) fn new(file: File) -> Result<Self, TryLockError> {
        file.try_lock()?;
        Ok(Self(file))
    }
}

impl Drop for FolderLock {
    /// To close the file is not enough: a program that another thread is starting holds a copy of
    /// it for a moment, and with it the lock.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_file_does_not_keep_the_lock() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || File::open(file.path()).unwrap();
        let first = open();
        let copy = first.try_clone().unwrap();
        let lock = FolderLock::new(first).unwrap();
        assert!(matches!(FolderLock::new(open()), Err(TryLockError::WouldBlock)));
        drop(lock);
        FolderLock::new(open()).unwrap();
        drop(copy);
    }
}
