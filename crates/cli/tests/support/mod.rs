//! Running the real binary and reading what it leaves.

#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "each test file uses its part; a test may panic"
)]

mod finished;
pub(crate) mod mock;
mod process;
mod timed;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

pub(crate) use finished::{BUSY_MACHINE, Outcome, outcome, outcome_of};
pub(crate) use process::{Started, signal};
pub(crate) use timed::{Try, about_time, alone, retried, timed, undisturbed};

/// One use of the binary, in a folder of its own.
pub(crate) struct Session {
    pub(crate) folder: TempDir,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
        command.args(args).current_dir(self.folder.path()).env_remove("OPENAI_API_KEY");
        // What this machine's owner has calibrated is not part of a test.
        command.env("XDG_STATE_HOME", self.folder.path());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        outcome_of(&mut self.command(args))
    }

    /// Runs against a target with a summary on stdout and the run in `out`.
    pub(crate) fn measure(&self, target: &str, args: &[&str]) -> (Outcome, Value) {
        let mut all = vec!["run", target, "--json", "--quiet", "--out", "out"];
        all.extend(args);
        let outcome = self.run(&all);
        let summary = serde_json::from_str(&outcome.stdout).unwrap_or(Value::Null);
        assert!(!summary.is_null(), "no summary: {}\n{}", outcome.stdout, outcome.stderr);
        (outcome, summary)
    }

    /// Twenty requests of four tokens in half a second, left in `out`.
    pub(crate) fn run_shortly(&self, target: &str, more: &[&str], out: &str) {
        let load = ["--rate", "50", "--num-requests", "20", "--max-tokens", "4", "--quiet"];
        let all = [&["run", target], &load[..], more, &["--out", out]].concat();
        self.run(&all).assert_finished(out);
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Every byte below the folder.
    pub(crate) fn everything_written(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        collect(self.folder.path(), &mut bytes);
        bytes
    }
}

fn collect(path: &Path, bytes: &mut Vec<u8>) {
    for entry in std::fs::read_dir(path).unwrap().flatten() {
        if entry.path().is_dir() {
            collect(&entry.path(), bytes);
        } else {
            bytes.extend(std::fs::read(entry.path()).unwrap());
        }
    }
}

pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A value by its path, such as `metrics.ttft.n`.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, key| &value[key])
}

pub(crate) fn number(value: &Value, path: &str) -> f64 {
    at(value, path).as_f64().unwrap_or_else(|| panic!("{path} is {}", at(value, path)))
}

/// A percentile's value.
pub(crate) fn percentile(value: &Value, metric: &str, percent: &str) -> f64 {
    let found = &value["metrics"][metric]["percentiles"][percent]["value"];
    found.as_f64().unwrap_or_else(|| panic!("{metric} p{percent} is {found}"))
}

/// Certificate and key for `localhost`, and their files.
pub(crate) fn certificate(session: &Session) -> [String; 2] {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let files = ["cert.pem", "key.pem"].map(|name| session.path(name).display().to_string());
    std::fs::write(&files[0], cert.pem()).unwrap();
    std::fs::write(&files[1], signing_key.serialize_pem()).unwrap();
    files
}
