//! Runs a server for another process and ends it, whatever becomes of that one.
//!
//! The other holds the writing end of this process' stdin. When it lets go, or dies of anything, the
//! server's process group is told to end, and killed if it does not. What happens is said in words:
//! see [`Word`].

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::Nanos;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper,
    test_kill_process_group, waitpid,
};
use tokio::signal::unix::{SignalKind, signal};

use super::{Exit, log};
use crate::error::Failed;

/// How often a group that is ending is looked at.
const LOOK_AGAIN: Nanos = Nanos::from_millis(10);

/// What was killed is gone at once, unless the kernel itself holds it (a driver that hangs).
const KILLED_LIMIT: Duration = Duration::from_secs(3);

/// What a supervisor says, one to a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// The server runs; the number of its process and of its group.
    Started(i32),
    /// It could not be started.
    Cannot(String),
    /// It ended by itself or because it was told to, with this status.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
}

impl Word {
    fn from_status(status: ExitStatus) -> Self {
        match status.signal() {
            Some(signal) => Self::Killed(signal),
            None => Self::Exited(status.code().unwrap_or_default()),
        }
    }

    fn write_line(&self, out: &mut dyn Write) {
        let line = match self {
            Self::Started(id) => format!("started {id}\n"),
            Self::Cannot(why) => format!("cannot {}\n", why.replace('\n', " ")),
            Self::Exited(code) => format!("exited {code}\n"),
            Self::Killed(signal) => format!("killed {signal}\n"),
        };
        // The reader may be gone.
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let (verb, rest) = line.trim_end().split_once(' ')?;
        Some(match verb {
            "started" => Self::Started(rest.parse().ok()?),
            "cannot" => Self::Cannot(rest.to_owned()),
            "exited" => Self::Exited(rest.parse().ok()?),
            "killed" => Self::Killed(rest.parse().ok()?),
            _ => return None,
        })
    }
}

/// Runs the server until it ends or is no longer needed: how it ended, or none if it could not be
/// started. What happens is said to `out`.
pub fn supervise_server(
    command: &[String],
    log: &Path,
    grace: Duration,
    out: &mut dyn Write,
) -> Result<Option<Exit>, Failed> {
    // Whatever the server leaves behind becomes a child of this process and can be found.
    let _ = set_child_subreaper(Some(getpid()));
    let mut server = match spawn_server(command, log) {
        Ok(server) => server,
        Err(why) => {
            Word::Cannot(why).write_line(out);
            return Ok(None);
        }
    };
    // Before anything that may fail: who starts something also ends it.
    let group = i32::try_from(server.id()).ok().and_then(Pid::from_raw);
    Word::Started(group.map_or(0, |group| group.as_raw_nonzero().get())).write_line(out);
    let own = wait_for_end(&mut server);
    let early = own.as_ref().ok().copied().flatten();
    if let Some(status) = early {
        Word::from_status(status).write_line(out);
    }
    let late = end_group(&mut server, group, grace);
    if let (None, Some(status)) = (early, late) {
        Word::from_status(status).write_line(out);
    }
    own.map_err(|error| Failed::internal(format!("cannot watch the server: {error}")))?;
    Ok(Some(early.or(late).map_or(Exit::Lost, Exit::from_status)))
}

fn spawn_server(command: &[String], path: &Path) -> Result<Child, String> {
    let cannot = |error| format!("write to {}: {error}", path.display());
    let log: File = log::open_log(path).map_err(cannot)?;
    let errors = log.try_clone().map_err(cannot)?;
    let (program, arguments) = command.split_first().ok_or("run nothing")?;
    Command::new(program)
        .args(arguments)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .spawn()
        .map_err(|error| format!("run `{program}`: {error}"))
}

/// Waits until the server has ended (its status), or should end.
fn wait_for_end(server: &mut Child) -> std::io::Result<Option<ExitStatus>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (held, mut let_go) = tokio::sync::oneshot::channel::<()>();
    std::thread::Builder::new().name("leash".to_owned()).spawn(move || {
        let mut buffer = [0; 64];
        while std::io::stdin().lock().read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
        drop(held);
    })?;
    runtime.block_on(async {
        let mut child = signal(SignalKind::child())?;
        // Sent by the terminal, by a system shutdown, or by an administrator.
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        loop {
            // After the signal is listened for, or an end before that would never be seen.
            if let Some(status) = server.try_wait()? {
                return Ok(Some(status));
            }
            tokio::select! {
                _ = child.recv() => {}
                _ = &mut let_go => return Ok(None),
                _ = interrupt.recv() => return Ok(None),
                _ = terminate.recv() => return Ok(None),
                _ = hangup.recv() => return Ok(None),
            }
        }
    })
}

/// Ends the group: asks, waits, kills. Then kills processes that have left it.
fn end_group(server: &mut Child, group: Option<Pid>, grace: Duration) -> Option<ExitStatus> {
    let signal = |signal: Signal| group.is_some_and(|g| kill_process_group(g, signal).is_ok());
    let is_there = || group.is_some_and(|group| test_kill_process_group(group).is_ok());
    let id = server.id();
    let mut status = None;
    let mut wait = |limit: Duration| {
        let deadline = now() + limit.into();
        loop {
            status = status.or_else(|| server.try_wait().ok().flatten());
            reap_adopted(id);
            if !is_there() || now() >= deadline {
                return;
            }
            pause(LOOK_AGAIN);
        }
    };
    signal(Signal::TERM);
    wait(grace);
    if signal(Signal::KILL) {
        wait(KILLED_LIMIT);
    }
    let deadline = now() + KILLED_LIMIT.into();
    loop {
        let left: Vec<i32> = list_children().into_iter().map(|(id, _)| id).collect();
        if left.is_empty() || now() >= deadline {
            return status.or_else(|| server.try_wait().ok().flatten());
        }
        for pid in left.into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        pause(LOOK_AGAIN);
        reap_adopted(id);
    }
}

/// Takes note of the end of those children that are not ours by birth, so that they are gone.
fn reap_adopted(server: u32) {
    let dead = list_children().into_iter().filter(|(_, state)| *state == 'Z');
    let others = dead.filter(|(id, _)| u32::try_from(*id).is_ok_and(|id| id != server));
    for pid in others.filter_map(|(id, _)| Pid::from_raw(id)) {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// Children of this process and their state; none if the system does not show them.
fn list_children() -> Vec<(i32, char)> {
    let own = getpid().as_raw_nonzero().get();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (state, parent) = state_and_parent(&stat)?;
        (parent == own).then_some((id, state))
    })
    .collect()
}

/// From a line of `/proc/ID/stat`; the name in it may hold blanks and brackets.
fn state_and_parent(stat: &str) -> Option<(char, i32)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard() {
        for (line, word) in [
            ("started 17\n", Word::Started(17)),
            ("cannot run `x y`: no\n", Word::Cannot("run `x y`: no".to_owned())),
            ("exited 3\n", Word::Exited(3)),
            ("killed 9\n", Word::Killed(9)),
        ] {
            assert_eq!(Word::parse(line), Some(word));
        }
        for other in ["", "exited", "exited x", "sang 1"] {
            assert_eq!(Word::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_name_may_look_like_anything() {
        assert_eq!(state_and_parent("7 (a) Z 1 (b) c) S 42 7 7"), Some(('S', 42)));
        assert_eq!(state_and_parent("7 (a"), None);
    }
}
