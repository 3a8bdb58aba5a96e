//! What can go wrong with an export.

use std::io;

use goodput_model::LeftOut;

/// Why an export was not written.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The writer refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// This build cannot write it.
    #[error("{0}")]
    LeftOut(#[from] LeftOut),
    /// Parquet cannot hold it.
    #[cfg(feature = "parquet")]
    #[error("{0}")]
    Parquet(#[from] parquet::errors::ParquetError),
}

impl From<csv::Error> for ExchangeError {
    fn from(error: csv::Error) -> Self {
        match error.into_kind() {
            csv::ErrorKind::Io(error) => Self::Io(error),
            other => Self::Io(io::Error::other(format!("{other:?}"))),
        }
    }
}

impl From<serde_json::Error> for ExchangeError {
    fn from(error: serde_json::Error) -> Self {
        Self::Io(error.into())
    }
}

impl ExchangeError {
    /// Whether the reader had enough: no error to tell anybody of.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
