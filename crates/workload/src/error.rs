//! Why a workload cannot be made.

/// Why a workload cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WorkloadError {
    pub(crate) message: String,
    /// What to do about it.
    pub hint: String,
}

impl WorkloadError {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}
