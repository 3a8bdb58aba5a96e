//! `--before-cmd` and `--after-cmd`: a user's own commands around the load of a run.

use std::io;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use crate::error::Failed;
use crate::events::Observer;
use crate::interrupt::{Interrupt, Patience};
use crate::shell::{self, ShellOutcome};

/// What the commands are told about the run.
#[derive(Debug, Clone)]
pub(super) struct RunNames {
    /// Where the run is written, from the root.
    pub(super) folder: String,
    /// Who is measured.
    pub(super) target: String,
    /// Which of several runs it is.
    pub(super) label: String,
}

/// Runs the command before the load; if it fails, so does the run.
pub(super) fn run_before_command(
    command: &str,
    names: &RunNames,
    observer: &dyn Observer,
    interrupt: &Interrupt,
) -> Result<(), Failed> {
    let stopped = "stopped while --before-cmd ran: nothing was sent";
    if interrupt.is_interrupted() {
        return Err(Failed::interrupted("stopped before --before-cmd ran: nothing was sent"));
    }
    match run_command(command, names, observer, interrupt) {
        Ok(ShellOutcome::Ended(status)) if status.success() => Ok(()),
        Ok(ShellOutcome::Ended(status)) => {
            let how = shell::status_text(status);
            Err(Failed::usage(format!("--before-cmd `{command}` {how}: nothing was sent")).hint(
                "the run starts only if it exits with status 0; append `|| true` to ignore its \
                 failure",
            ))
        }
        Ok(ShellOutcome::Stopped | ShellOutcome::TooLong) => Err(Failed::interrupted(stopped)),
        Err(error) => Err(Failed::usage(format!("cannot run --before-cmd: {error}"))
            .hint("a shell runs it: sh -c '…'")),
    }
}

/// Runs the command after the load. The run is over: what becomes of it is only said.
pub(super) fn run_after_command(
    command: &str,
    names: &RunNames,
    observer: &dyn Observer,
    interrupt: &Interrupt,
) {
    let how = match run_command(command, names, observer, interrupt) {
        Ok(ShellOutcome::Ended(status)) if status.success() => return,
        Ok(ShellOutcome::Ended(status)) => shell::status_text(status),
        Ok(ShellOutcome::Stopped | ShellOutcome::TooLong) => "was stopped".to_owned(),
        Err(error) => format!("cannot be run: {error}"),
    };
    observer.warn(format!("--after-cmd `{command}` {how}"));
}

fn run_command(
    command: &str,
    names: &RunNames,
    observer: &dyn Observer,
    interrupt: &Interrupt,
) -> io::Result<ShellOutcome> {
    // What it says must not be drawn over.
    let _terminal = observer.lend_terminal();
    let patience = Patience::new(interrupt)?;
    shell::run_command(command_with_names(command, names)?, None, &|| patience.has_run_out())
}

/// What it says goes to stderr: stdout is for data.
fn command_with_names(command: &str, names: &RunNames) -> io::Result<Command> {
    let out = io::stderr().as_fd().try_clone_to_owned()?;
    let mut shell = shell::shell_command(command);
    shell
        .env("GOODPUT_RUN_FOLDER", &names.folder)
        .env("GOODPUT_TARGET", &names.target)
        .env("GOODPUT_LABEL", &names.label)
        .stdout(Stdio::from(out));
    Ok(shell)
}
