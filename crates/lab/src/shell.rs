//! A user's own command, run through a shell and waited for.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::Nanos;
use rustix::process::{Pid, Signal, kill_process_group};

/// How often it is looked at.
const LOOK: Nanos = Nanos::from_millis(20);

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellOutcome {
    /// It came to its end.
    Ended(ExitStatus),
    /// The user did not want to wait any longer.
    Stopped,
    /// It took longer than it may.
    TooLong,
}

/// `sh -c TEXT`, in a process group of its own: Ctrl-C is for us, and what the command leaves running
/// must not hear it.
pub fn shell_command(text: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(text).process_group(0).stdin(Stdio::null());
    command
}

/// A text as a shell takes it for one word.
pub fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-:/+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Runs it until it ends; one that is stopped, or takes too long, is ended with its process group.
/// What it leaves running goes on.
pub fn run_command(
    mut command: Command,
    limit: Option<Duration>,
    is_stopped: &dyn Fn() -> bool,
) -> io::Result<ShellOutcome> {
    let mut child = command.spawn()?;
    let deadline = limit.map(|limit| now() + limit.into());
    loop {
        let given_up = match child.try_wait()? {
            Some(status) => return Ok(ShellOutcome::Ended(status)),
            None if is_stopped() => ShellOutcome::Stopped,
            None if deadline.is_some_and(|deadline| now() >= deadline) => ShellOutcome::TooLong,
            None => {
                pause(LOOK);
                continue;
            }
        };
        end_group(&mut child);
        return Ok(given_up);
    }
}

/// In words.
pub fn status_text(status: ExitStatus) -> String {
    status.code().map_or("was killed".to_owned(), |code| format!("ended with status {code}"))
}

/// Ends it with everything that it started.
fn end_group(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

/// A word as a shell reads it again.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/%+@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
