//! Why live traffic cannot be passed on.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use goodput_record::FolderError;

use crate::proxy::ProxyError;

/// Why a recording or a shadow failed.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The proxy cannot be started.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The first file of a trace cannot be made.
    #[error("cannot create {}: {error}", path.display())]
    Trace {
        /// Its name.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The folder of a shadow cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A thread cannot be made.
    #[error(transparent)]
    Thread(#[from] io::Error),
    /// A thread of ours broke.
    #[error("{0}")]
    Broken(&'static str),
}

impl LiveError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Proxy(error) => Some(error.hint()),
            Self::Trace { error, .. } if error.kind() == ErrorKind::AlreadyExists => Some(
                "choose another file: goodput never overwrites or appends to a trace, because each file has its own salt",
            ),
            Self::Trace { .. } => Some("--output takes a new file in an existing folder"),
            Self::Folder(_) | Self::Thread(_) | Self::Broken(_) => None,
        }
    }
}
