//! [`FolderError`]: what can be wrong with a folder of results.

use std::io;
use std::path::PathBuf;

/// What can be wrong with a run folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Something is there already.
    #[error("`{0}` exists and is not empty")]
    Occupied(PathBuf),
    /// There is nothing at the path.
    #[error("`{0}` does not exist")]
    Missing(PathBuf),
    /// The path is not a run.
    #[error("`{0}` is not a run folder: it has no {1}")]
    NotARun(PathBuf, &'static str),
    /// The path is not a sweep or a comparison.
    #[error("`{0}` is not a {1} folder: it has no {2}")]
    NotACampaign(PathBuf, &'static str, &'static str),
    /// A merge was stopped before its end.
    #[error("`{0}` holds a merge that was not finished")]
    Unfinished(PathBuf),
    /// Another process goes on with it.
    #[error("`{0}` is in use by another goodput process")]
    Locked(PathBuf),
    /// A file cannot be read or written.
    #[error("cannot {action} `{path}`: {error}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A file does not hold what it should.
    #[error("cannot use `{path}`: {error}")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        error: String,
    },
}
