//! Faults around goodput: damaged folders, sudden death, full disks, clocks, links that go down,
//! misbehaving collectors and hubs, and malformed inputs.

mod clock;
mod collector;
mod disk;
mod folder;
mod hub;
mod input;
mod kill;
mod network;
mod peer;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::{Binary, EndedProcess, RunningProcess};

/// Every case of this area.
pub(crate) fn cases() -> Vec<Case> {
    let areas = [
        folder::cases(),
        kill::cases(),
        disk::cases(),
        clock::cases(),
        network::cases(),
        collector::cases(),
        hub::cases(),
        input::cases(),
    ];
    areas.into_iter().flatten().collect()
}

/// A short load: constant arrivals, short prompts and answers, nothing asked beforehand.
const SHORT: [&str; 10] = [
    "--arrivals",
    "constant",
    "--isl",
    "16",
    "--osl",
    "4",
    "--no-length-check",
    "--quiet",
    "--canary",
    "off",
];

/// The simulated engine inside of the process, quick.
const MOCK: &str = "mock:ttft=5ms,itl=1ms";

/// Exit codes of a run whose server is well: on a busy machine it may call itself void.
const MEASURED: [i32; 2] = [0, 5];

fn new_case(
    area: &'static str,
    name: impl Into<String>,
    expected: CaseBounds,
    attack: impl Fn(&Binary) -> Result<Observed, Skip> + 'static,
) -> Case {
    Case { area, name: name.into(), expected, attack: Box::new(attack) }
}

/// Several processes that are one case: the worst of each figure.
#[derive(Debug, Default)]
struct Uses {
    observed: Observed,
    codes: BTreeMap<String, u32>,
}

impl Uses {
    /// Counts a process that may end with one of these codes.
    fn add_ended(&mut self, what: &str, allowed: &[i32], ended: &EndedProcess) {
        let all = &mut self.observed;
        let code = ended.code.map_or("none".to_owned(), |code| code.to_string());
        if !ended.code.is_some_and(|code| allowed.contains(&code)) {
            let said = ended.stderr.lines().rev().take(3).collect::<Vec<_>>().join(" / ");
            all.faults.push(format!("{what}: exit {code}, expected {allowed:?}: {said}"));
        }
        all.faults.extend(ended.find_faults().into_iter().map(|fault| format!("{what}: {fault}")));
        let first = self.codes.is_empty();
        all.exit = if first { ended.code } else { all.exit.zip(ended.code).map(|(a, b)| a.max(b)) };
        all.seconds = all.seconds.max(ended.seconds);
        all.mebibytes = all.mebibytes.max(ended.mebibytes);
        *self.codes.entry(code).or_default() += 1;
    }

    fn check(&mut self, holds: bool, fault: impl FnOnce() -> String) {
        self.observed.check(holds, fault);
    }

    fn note(&mut self, words: impl AsRef<str>) {
        let note = &mut self.observed.note;
        if !note.is_empty() {
            note.push_str("; ");
        }
        note.push_str(words.as_ref());
    }

    fn into_observed(mut self) -> Observed {
        let count = self.codes.values().sum::<u32>();
        let each: Vec<String> = self.codes.iter().map(|(code, n)| format!("{n}×{code}")).collect();
        self.note(format!("{count} uses: {}", each.join(" ")));
        self.observed
    }
}

/// A number of a summary.
fn number_at(summary: &Value, path: &str) -> f64 {
    summary.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

/// The summary that a process printed.
fn read_summary(ended: &EndedProcess) -> Result<Value, Skip> {
    ended.summary().ok_or_else(|| Skip::Broken(format!("no summary: {}", ended.stderr)))
}

/// The classes of failures in a summary.
fn error_classes(summary: &Value) -> Vec<String> {
    let errors = summary.pointer("/requests/errors").and_then(Value::as_object);
    errors.map(|errors| errors.keys().cloned().collect()).unwrap_or_default()
}

/// Whether a command is there and works here.
fn check_tool(program: &str, args: &[&str]) -> Result<(), Skip> {
    let mut command = Command::new(program);
    let status = command.args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Skip::Unavailable(format!("`{program} {}` does not work here", args.join(" ")))),
    }
}

/// goodput below another program (`unshare …`, `sh -c …`), in the usual environment.
fn start_with_wrapper(
    goodput: &Binary,
    folder: &Path,
    wrapper: &[&str],
    args: &[&str],
) -> std::io::Result<RunningProcess> {
    let usual = goodput.command(folder, &[]);
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).arg(&goodput.path).args(args);
    command.current_dir(folder).stdin(Stdio::null());
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    RunningProcess::spawn(command, folder, "goodput")
}
