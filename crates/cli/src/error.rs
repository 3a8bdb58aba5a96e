//! Exit codes, and how failures are printed.

use std::process::ExitCode;

use goodput_report::escape_control;

use crate::output;
pub(crate) use goodput_lab::Failed;

/// Exit codes. Scripts rely on them.
pub(crate) mod exit {
    /// Success.
    pub(crate) const OK: u8 = 0;
    /// A bug, or a system that refused something basic.
    pub(crate) const INTERNAL: u8 = 1;
    /// Wrong usage or bad input.
    pub(crate) const USAGE: u8 = 2;
    /// The target cannot be reached, or is not what it should be.
    pub(crate) const TARGET: u8 = 3;
    /// An SLO was missed, or an audited result is doubtful.
    pub(crate) const MISSED: u8 = 4;
    /// The result is void, or has too few samples to decide.
    pub(crate) const VOID: u8 = 5;
    /// Stopped by the user; a partial report was written.
    pub(crate) const INTERRUPTED: u8 = 130;
}

/// The exit code of the process.
fn exit_code(failed: &Failed) -> u8 {
    match failed {
        Failed::Usage(_) => exit::USAGE,
        Failed::Target(_) => exit::TARGET,
        Failed::Void(_) => exit::VOID,
        Failed::Interrupted(_) => exit::INTERRUPTED,
        Failed::Internal(_) => exit::INTERNAL,
    }
}

/// Prints the failure, and returns the exit code of the process.
pub(crate) fn show_failure(failed: &Failed) -> ExitCode {
    crate::terminal::close_screen();
    let problem = failed.problem();
    // Plans and messages may span lines; each is made harmless by itself.
    let lines: Vec<_> = problem.message.lines().map(escape_control).collect();
    output::print_note(&format!("error: {}", lines.join("\n  ")));
    if let Some(hint) = &problem.hint {
        output::print_note(&format!("hint: {}", escape_control(hint)));
    }
    ExitCode::from(exit_code(failed))
}
