//! What goes wrong, said so that a user can act on it; and the exit codes.

use std::fmt;
use std::process::ExitCode;

use goodput_report::plain;

use crate::output;

/// Exit codes. Scripts rely on them.
pub(crate) mod exit {
    /// All went well.
    pub(crate) const OK: u8 = 0;
    /// A bug, or a system that refused something basic.
    pub(crate) const INTERNAL: u8 = 1;
    /// Wrong usage or bad input.
    pub(crate) const USAGE: u8 = 2;
    /// The target cannot be reached, or is not what it should be.
    pub(crate) const TARGET: u8 = 3;
    /// An SLO was missed, or an audited result is in doubt.
    pub(crate) const MISSED: u8 = 4;
    /// The result is void, or there is too little to decide what was asked.
    pub(crate) const VOID: u8 = 5;
    /// Stopped by the user; a partial report was written.
    pub(crate) const INTERRUPTED: u8 = 130;
}

/// An error with advice.
#[derive(Debug)]
pub(crate) struct Failed {
    code: u8,
    message: String,
    hint: Option<String>,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(&self.message))
    }
}

impl Failed {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: exit::USAGE, message: message.into(), hint: None }
    }

    pub(crate) fn target(message: impl Into<String>) -> Self {
        Self { code: exit::TARGET, message: message.into(), hint: None }
    }

    pub(crate) fn void(message: impl Into<String>) -> Self {
        Self { code: exit::VOID, message: message.into(), hint: None }
    }

    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self { code: exit::INTERRUPTED, message: message.into(), hint: None }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { code: exit::INTERNAL, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same, unless there is a hint already.
    pub(crate) fn or_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// The same, with more to say.
    pub(crate) fn and(mut self, more: &str) -> Self {
        self.message.push_str(more);
        self
    }

    /// Whether it is the target's doing.
    pub(crate) fn is_of_target(&self) -> bool {
        self.code == exit::TARGET
    }

    /// All of its lines, each made harmless.
    pub(crate) fn lines(&self) -> String {
        self.message.lines().map(plain).collect::<Vec<_>>().join("\n")
    }

    /// Shows the error; the process ends with the code returned.
    pub(crate) fn show(self) -> ExitCode {
        crate::screen::close();
        // Plans and messages may span lines; each is made harmless by itself.
        let lines: Vec<_> = self.message.lines().map(plain).collect();
        output::note(&format!("error: {}", lines.join("\n  ")));
        if let Some(hint) = self.hint {
            output::note(&format!("hint: {}", plain(&hint)));
        }
        ExitCode::from(self.code)
    }
}
