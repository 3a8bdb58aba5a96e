//! A server of our own: started by us, watched, and always ended.
//!
//! It runs in a process group of its own under a supervisor: this same program once more, which
//! outlives whatever ends this process, `kill -9` included, for as long as it takes to end the server.
//! A program that starts servers must therefore have the verb `supervise --log FILE --grace TIME --
//! COMMAND`, which calls [`supervise_server`].

mod cold_start;
mod command;
mod log;
mod place;
mod supervise;

pub use cold_start::{BatchLevels, ColdStartStep, ColdStartTrial};
pub use command::{Command, Values, is_secret_name, without_secrets};
pub use log::last_lines;
pub use place::ServerPlace;
pub use supervise::supervise_server;

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use goodput_campaign::sweep::ColdStart;
use goodput_clock::now;
use goodput_model::{Nanos, Plan};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::Failed;
use crate::events::Observer;
use crate::readiness::{self, Ready};
use supervise::Word;

/// How long its port may stay taken after it has ended.
const PORT_LIMIT: Duration = Duration::from_secs(10);

/// What a supervisor takes beyond the server's time.
const SUPERVISOR_LIMIT: Duration = Duration::from_secs(10);

/// Lines of its log that an error shows.
pub const LAST_LINES: usize = 20;

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Unknown: its supervisor is gone.
    Lost,
}

impl Exit {
    fn from_status(status: ExitStatus) -> Self {
        match status.signal() {
            Some(signal) => Self::Signal(signal),
            None => Self::Code(status.code().unwrap_or_default()),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "ended with status {code}"),
            Self::Signal(9) => f.write_str("was killed by signal 9, as when memory runs out"),
            Self::Signal(signal) => write!(f, "was killed by signal {signal}"),
            Self::Lost => f.write_str("was lost: its supervisor was killed"),
        }
    }
}

/// What the supervisor has said so far.
#[derive(Debug, Default)]
struct SupervisorState {
    group: Option<i32>,
    cannot: Option<String>,
    exit: Option<Exit>,
    /// It will say no more.
    is_over: bool,
}

#[derive(Debug, Default)]
struct SupervisorReader {
    heard: Mutex<SupervisorState>,
    changed: Condvar,
}

impl SupervisorReader {
    fn lock_state(&self) -> MutexGuard<'_, SupervisorState> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens until the supervisor is gone.
    fn read_words(&self, words: impl Read) {
        for line in BufReader::new(words).lines() {
            let Ok(line) = line else { break };
            let mut heard = self.lock_state();
            match Word::parse(&line) {
                Some(Word::Started(group)) => heard.group = Some(group),
                Some(Word::Cannot(why)) => heard.cannot = Some(why),
                Some(Word::Exited(code)) => heard.exit = Some(Exit::Code(code)),
                Some(Word::Killed(signal)) => heard.exit = Some(Exit::Signal(signal)),
                None => {}
            }
            self.changed.notify_all();
        }
        self.lock_state().is_over = true;
        self.changed.notify_all();
    }

    /// Waits until something has been heard; false if that takes longer.
    fn wait_until(&self, limit: Duration, until: impl Fn(&SupervisorState) -> bool) -> bool {
        let waiting =
            self.changed.wait_timeout_while(self.lock_state(), limit, |heard| !until(heard));
        !waiting.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// A server that we started. It is ended when this is dropped.
#[derive(Debug)]
pub struct StartedServer {
    supervisor: Child,
    ear: Arc<SupervisorReader>,
    started: Nanos,
    log: PathBuf,
    /// What the log held before.
    log_start: u64,
    place: ServerPlace,
    grace: Duration,
}

impl StartedServer {
    /// Starts a server that is to listen at `place`, where nothing may listen yet; what it says is
    /// added to the file `log`.
    pub fn start(
        command: &Command,
        log: &Path,
        place: &ServerPlace,
        grace: Duration,
    ) -> Result<Self, Failed> {
        place.check_free()?;
        let cannot = |error: std::io::Error| {
            Failed::usage(format!("cannot write the server's log `{}`: {error}", log.display()))
        };
        let log_start = log::open_log(log).and_then(|file| file.metadata()).map_err(cannot)?.len();
        let started = now();
        let mut supervisor = spawn_supervisor(command, log, grace)
            .map_err(|error| Failed::internal(format!("cannot start a supervisor: {error}")))?;
        let ear = Arc::new(SupervisorReader::default());
        let words = supervisor.stdout.take();
        let server = Self {
            supervisor,
            ear: Arc::clone(&ear),
            started,
            log: log.to_owned(),
            log_start,
            place: place.clone(),
            grace,
        };
        let listening = std::thread::Builder::new().name("server".to_owned()).spawn(move || {
            if let Some(words) = words {
                ear.read_words(words);
            }
        });
        listening.map_err(|error| Failed::internal(error.to_string()))?;
        let is_told = |heard: &SupervisorState| {
            heard.group.is_some() || heard.cannot.is_some() || heard.is_over
        };
        server.ear.wait_until(SUPERVISOR_LIMIT, is_told);
        if let Some(why) = &server.ear.lock_state().cannot {
            return Err(Failed::usage(format!("cannot start the server: cannot {why}"))
                .hint("check the PATH; the command is not run by a shell, use sh -c '…' for one"));
        }
        Ok(server)
    }

    /// The server's process group.
    pub fn process_group(&self) -> Option<i32> {
        self.ear.lock_state().group
    }

    /// How it ended, if it did.
    pub fn exit_status(&self) -> Option<Exit> {
        let heard = self.ear.lock_state();
        heard.exit.or_else(|| heard.is_over.then_some(Exit::Lost))
    }

    /// The error to show if it has ended without being stopped.
    pub fn crash_error(&self) -> Option<Failed> {
        let exit = self.exit_status()?;
        let failed = Failed::target(format!("the server {exit}{}", self.crash_text()));
        Some(failed.hint(match exit {
            Exit::Code(0) => {
                "the command must run in the foreground until it is stopped".to_owned()
            }
            _ => format!("its full output is in {}", self.log.display()),
        }))
    }

    /// The last lines that it said, made harmless.
    pub fn last_lines(&self, n: usize) -> Vec<String> {
        last_lines(&self.log, self.log_start, n)
    }

    /// The same as the rest of an error.
    fn crash_text(&self) -> String {
        let lines = self.last_lines(LAST_LINES);
        if lines.is_empty() {
            "; it printed nothing".to_owned()
        } else {
            format!("; its last lines:\n{}", lines.join("\n"))
        }
    }

    /// Waits until it answers a small request. The end of the server ends the waiting too.
    pub fn wait_ready(
        &self,
        plan: &mut Plan,
        within: Duration,
        observer: &dyn Observer,
    ) -> Result<(Ready, ColdStart), Failed> {
        let asked = std::mem::replace(&mut plan.target.wait_ready, within);
        let outcome = readiness::wait_ready_unless(plan, observer, &|| self.crash_error());
        plan.target.wait_ready = asked;
        let ready = outcome.map_err(|failed| match self.exit_status() {
            Some(_) => failed,
            None => failed.with_more(&self.crash_text()),
        })?;
        let start = ColdStart {
            ready_s: (now() - self.started).as_secs(),
            first_token_ms: ready.first_token.map(Nanos::as_ms),
        };
        Ok((ready, start))
    }

    /// Ends it, and waits until its place is free again.
    pub fn stop(mut self) -> Result<Exit, Failed> {
        let exit = self.release_and_wait();
        match self.place.wait_until_free(PORT_LIMIT) {
            None => Ok(exit),
            Some(address) => Err(Failed::target(format!(
                "the server {exit}, but something still listens at {address}"
            ))
            .hint("a process that it left behind is outside its process group; stop it")),
        }
    }

    /// Lets the supervisor go, and waits until it has done its work.
    fn release_and_wait(&mut self) -> Exit {
        drop(self.supervisor.stdin.take());
        if !self.ear.wait_until(self.grace + SUPERVISOR_LIMIT, |heard| heard.is_over) {
            let _ = self.supervisor.kill();
        }
        let _ = self.supervisor.wait();
        let exit = self.ear.lock_state().exit;
        if exit.is_none() {
            // Its supervisor is dead, and has killed no process.
            if let Some(group) = self.process_group().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
        exit.unwrap_or(Exit::Lost)
    }
}

impl Drop for StartedServer {
    fn drop(&mut self) {
        if self.supervisor.stdin.is_some() {
            self.release_and_wait();
        }
    }
}

/// This program once more, as the supervisor: in a process group of its own, so that Ctrl-C does not
/// reach it, on the leash of its stdin.
fn spawn_supervisor(command: &Command, log: &Path, grace: Duration) -> std::io::Result<Child> {
    // The file may have been replaced since; the system still knows the program itself.
    let own = Path::new("/proc/self/exe");
    let own = if own.exists() { own.to_owned() } else { std::env::current_exe()? };
    std::process::Command::new(own)
        .arg0("goodput")
        .arg("supervise")
        .arg("--log")
        .arg(log)
        .arg("--grace")
        .arg(format!("{}ms", grace.as_millis()))
        .arg("--")
        .args(&command.words)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}
