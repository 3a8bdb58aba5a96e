//! The goodput binary as a process: started, watched from outside, ended.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use goodput_clock::{now, pause};
use goodput_model::Nanos;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// The key that every process gets in `OPENAI_API_KEY`. It must appear in no file and on no stream.
pub(crate) const KEY: &str = "sk-attack/0123456789-abcdef-TOPSECRET";

/// How much of a stream is read back.
const MOST_OUTPUT: u64 = 4 << 20;

/// How often memory is sampled.
const SAMPLE: Nanos = Nanos::from_millis(5);

/// The binary under attack.
#[derive(Debug, Clone)]
pub(crate) struct Binary {
    pub(crate) path: PathBuf,
}

/// A folder that goes away with its owner.
#[derive(Debug)]
pub(crate) struct ScratchFolder(TempDir);

impl ScratchFolder {
    pub(crate) fn new() -> std::io::Result<Self> {
        tempfile::Builder::new().prefix("goodput-attack-").tempdir().map(Self)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// A running process.
#[derive(Debug)]
pub(crate) struct RunningProcess {
    child: Child,
    started: Nanos,
    peak_kib: f64,
    /// The name of this process.
    own_name: Option<String>,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// A process that ended, or had to be killed.
#[derive(Debug)]
pub(crate) struct EndedProcess {
    /// None if it was killed by a signal, by us at the limit or by the system.
    pub(crate) code: Option<i32>,
    pub(crate) seconds: f64,
    /// Highest resident memory, sampled every 5 ms.
    pub(crate) mebibytes: f64,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Binary {
    /// The command with the environment that every attack uses.
    pub(crate) fn command(&self, folder: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(args).current_dir(folder).stdin(Stdio::null());
        command.env("OPENAI_API_KEY", KEY).env("XDG_STATE_HOME", folder).env("HOME", folder);
        command
    }

    /// Starts it; its streams go to files in `folder`, named after `name`.
    pub(crate) fn start(
        &self,
        folder: &Path,
        name: &str,
        args: &[&str],
    ) -> std::io::Result<RunningProcess> {
        RunningProcess::spawn(self.command(folder, args), folder, name)
    }

    /// Runs it to its end, or kills it after `limit_s`.
    pub(crate) fn run(
        &self,
        folder: &Path,
        args: &[&str],
        limit_s: f64,
    ) -> std::io::Result<EndedProcess> {
        self.start(folder, "goodput", args)?.wait(limit_s)
    }
}

impl RunningProcess {
    pub(crate) fn spawn(mut command: Command, folder: &Path, name: &str) -> std::io::Result<Self> {
        let path = |stream: &str| folder.join(format!("{name}.{stream}"));
        let (stdout, stderr) = (path("stdout"), path("stderr"));
        command.stdout(File::create(&stdout)?).stderr(File::create(&stderr)?);
        let own_name =
            fs::read_to_string("/proc/self/status").ok().and_then(|text| process_name(&text));
        let started = now();
        Ok(Self { child: command.spawn()?, started, peak_kib: 0.0, own_name, stdout, stderr })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, for example `Signal::INT`.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended already.
            let _ = kill_process(pid, signal);
        }
    }

    /// What it has written to stderr so far.
    pub(crate) fn stderr(&self) -> String {
        read_text(&self.stderr)
    }

    /// What it has written to stdout so far.
    pub(crate) fn stdout(&self) -> String {
        read_text(&self.stdout)
    }

    /// Waits until `marker` is on either stream, and returns the word behind it.
    pub(crate) fn word_after(&mut self, marker: &str, limit_s: f64) -> std::io::Result<String> {
        let end = now() + seconds_to_nanos(limit_s);
        loop {
            for stream in [self.stderr(), self.stdout()] {
                // Only whole lines: the word may still be on its way.
                let whole = stream.rfind('\n').map_or("", |end| &stream[..=end]);
                if let Some((_, rest)) = whole.split_once(marker) {
                    return Ok(rest.split_whitespace().next().unwrap_or_default().to_owned());
                }
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(std::io::Error::other(format!("ended: {status}: {}", self.stderr())));
            }
            if now() > end {
                return Err(std::io::Error::other(format!("no `{marker}`: {}", self.stderr())));
            }
            pause(SAMPLE);
        }
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.sample();
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end; kills it after `limit_s` from its start.
    pub(crate) fn wait(mut self, limit_s: f64) -> std::io::Result<EndedProcess> {
        let end = self.started + seconds_to_nanos(limit_s);
        let status = loop {
            self.sample();
            if let Some(status) = self.child.try_wait()? {
                break Some(status);
            }
            if now() > end {
                self.child.kill()?;
                self.child.wait()?;
                break None;
            }
            pause(SAMPLE);
        };
        Ok(EndedProcess {
            code: status.and_then(|status| status.code()),
            seconds: (now().0 - self.started.0) as f64 / 1e9,
            mebibytes: self.peak_kib / 1024.0,
            stdout: self.stdout(),
            stderr: self.stderr(),
        })
    }

    /// Sends a signal and waits for the end; kills it `limit_s` after the signal.
    pub(crate) fn stop(self, signal: Signal, limit_s: f64) -> std::io::Result<EndedProcess> {
        self.signal(signal);
        let so_far = (now().0 - self.started.0) as f64 / 1e9;
        let mut ended = self.wait(so_far + limit_s)?;
        ended.seconds -= so_far;
        Ok(ended)
    }

    fn sample(&mut self) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        // Until it becomes another program a new process shows the memory of this one.
        let status = status.ok().filter(|text| process_name(text) != self.own_name);
        let peak = status.and_then(|text| status_field(&text, "VmHWM:"));
        self.peak_kib = peak.unwrap_or(self.peak_kib).max(self.peak_kib);
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        // Ended already in most cases.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl EndedProcess {
    /// What no process of goodput may do, whatever happens around it.
    pub(crate) fn find_faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (name, stream) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if stream.contains("panicked at") {
                faults.push(format!("a panic on {name}: {stream}"));
            }
            if stream.contains(KEY) {
                faults.push(format!("the key is on {name}"));
            }
            let is_control = |c: &char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
            if let Some(control) = stream.chars().find(is_control) {
                faults.push(format!("a control character on {name}: {control:?}"));
            }
        }
        faults
    }

    /// The summary that `--json` printed.
    pub(crate) fn summary(&self) -> Option<Value> {
        serde_json::from_str(&self.stdout).ok()
    }
}

/// Every file below `folder` that holds the key. Links are not followed: some lead out of it.
pub(crate) fn files_with_key(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            found.extend(files_with_key(&path));
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            if bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

/// A number of `/proc/PID/status`, in its unit.
pub(crate) fn status_field(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The name of a process, from its `/proc/PID/status`.
fn process_name(status: &str) -> Option<String> {
    let line = status.lines().find_map(|line| line.strip_prefix("Name:"))?;
    Some(line.trim().to_owned())
}

pub(crate) fn seconds_to_nanos(seconds: f64) -> Nanos {
    Nanos::from_millis((seconds * 1e3) as u64)
}

fn read_text(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // A stream that cannot be read counts as empty, and the case fails for what it misses.
        let _ = file.take(MOST_OUTPUT).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
