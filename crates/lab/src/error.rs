//! What goes wrong, so that a user can act on it.

use goodput_dataset::DatasetError;
use goodput_model::escape_control;
use goodput_record::FolderError;

/// Why something could not be prepared or measured.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// Wrong usage or bad input.
    #[error("{0}")]
    Usage(Problem),
    /// The target cannot be reached, or is not what it should be.
    #[error("{0}")]
    Target(Problem),
    /// The result is void, or there is too little to decide what was asked.
    #[error("{0}")]
    Void(Problem),
    /// Stopped by the user.
    #[error("{0}")]
    Interrupted(Problem),
    /// A bug, or a system that refused something basic.
    #[error("{0}")]
    Internal(Problem),
}

/// What happened, and what to do about it. Shown with foreign text made harmless.
#[derive(Debug)]
pub struct Problem {
    /// What happened. Plans and messages may span lines.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&escape_control(&self.message))
    }
}

impl Problem {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }
}

impl Failed {
    /// Wrong usage or bad input.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(Problem::new(message))
    }

    /// The target cannot be reached, or is not what it should be.
    pub fn target(message: impl Into<String>) -> Self {
        Self::Target(Problem::new(message))
    }

    /// The result is void.
    pub fn void(message: impl Into<String>) -> Self {
        Self::Void(Problem::new(message))
    }

    /// Stopped by the user.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Self::Interrupted(Problem::new(message))
    }

    /// A bug, or a system that refused something basic.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal(Problem::new(message))
    }

    /// The same with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.problem_mut().hint = Some(hint.into());
        self
    }

    /// The same with advice, unless there is some already.
    #[must_use]
    pub fn or_hint(mut self, hint: impl Into<String>) -> Self {
        self.problem_mut().hint.get_or_insert_with(|| hint.into());
        self
    }

    /// The same with more to say.
    #[must_use]
    pub fn with_more(mut self, more: &str) -> Self {
        self.problem_mut().message.push_str(more);
        self
    }

    /// Whether the target caused it.
    pub fn is_target_fault(&self) -> bool {
        matches!(self, Self::Target(_))
    }

    /// What happened, and what to do about it.
    pub fn problem(&self) -> &Problem {
        match self {
            Self::Usage(problem)
            | Self::Target(problem)
            | Self::Void(problem)
            | Self::Interrupted(problem)
            | Self::Internal(problem) => problem,
        }
    }

    fn problem_mut(&mut self) -> &mut Problem {
        match self {
            Self::Usage(problem)
            | Self::Target(problem)
            | Self::Void(problem)
            | Self::Interrupted(problem)
            | Self::Internal(problem) => problem,
        }
    }

    /// All of its lines, each made harmless.
    pub fn lines(&self) -> String {
        self.problem().message.lines().map(escape_control).collect::<Vec<_>>().join("\n")
    }
}

/// A folder that cannot be used.
pub fn folder_failed(error: &FolderError) -> Failed {
    let failed = Failed::usage(error.to_string());
    match error {
        FolderError::Occupied(_) => failed.hint("choose a new folder with --out"),
        _ => failed.hint("choose another folder with --out"),
    }
}

/// A file that cannot be used.
pub fn dataset_failed(error: &DatasetError) -> Failed {
    let failed = Failed::usage(error.to_string());
    match error.hint() {
        Some(hint) => failed.hint(hint),
        None => failed,
    }
}
