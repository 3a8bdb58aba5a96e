//! pyarrow, pandas, `DuckDB` and Polars as judges of our exports.
//!
//! A short run on the simulated engine is exported in every shape; `check.py` reads the files with
//! the programs of others and computes their figures again.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use goodput_clock::now;
use goodput_model::Nanos;

use crate::python;
use crate::running::{Running, TemporaryFolder};

const SCRIPT: &str = include_str!("exports/check.py");

/// Longer than run and script take on a busy machine.
const PATIENCE: Nanos = Nanos::from_millis(300_000);

/// Some answers fail, and there is a warm-up.
const RUN: [&str; 15] = [
    "run",
    "mock:ttft=20ms,itl=2ms,fault=500:1/20",
    "--rate",
    "100/s",
    "--num-requests",
    "200",
    "--warmup",
    "20",
    "--output-tokens",
    "20",
    "--slo",
    "ttft < 1s, tpot < 100ms",
    "--quiet",
    "--out",
    "run",
];

/// The exports, and where they go.
const EXPORTS: [(&str, &str); 5] = [
    ("csv", "requests.csv"),
    ("parquet", "tables"),
    ("vllm", "vllm.json"),
    ("sglang", "sglang.jsonl"),
    ("aiperf", "aiperf.json"),
];

/// Checks this build of `goodput`.
#[expect(clippy::print_stderr, reason = "says what was and what was not checked")]
pub(crate) fn check(goodput: &Path) -> Result<(), String> {
    let python = match python::with_tables() {
        Ok(python) => python,
        Err(missing) => {
            eprintln!("SKIPPED: the check of exports; {missing}");
            return Ok(());
        }
    };
    let scratch = TemporaryFolder::new()?;
    let until = now() + PATIENCE;
    // A busy machine makes the run doubtful (exit code 5); its files are written all the same.
    ours(goodput, &scratch, &RUN, until)?;
    for (format, to) in EXPORTS {
        let detailed = matches!(format, "vllm" | "sglang").then_some("--detailed");
        let args = ["report", "run", "--format", format, "--output", to];
        let args: Vec<&str> = args.into_iter().chain(detailed).collect();
        if !ours(goodput, &scratch, &args, until)? {
            return Err(format!("`goodput {}` failed", args.join(" ")));
        }
    }
    // In a file, so that a failure shows its line.
    let script = python.with_file_name("check.py");
    fs::write(&script, SCRIPT).map_err(|error| format!("{}: {error}", script.display()))?;
    let mut command = Command::new(&python);
    command.arg(script).current_dir(scratch.path(""));
    for name in python::OWNERS {
        command.env_remove(name);
    }
    match Running::start(&mut command)?.outcome(until) {
        Some(true) => {
            eprintln!("  pyarrow, pandas, DuckDB and Polars read every export");
            Ok(())
        }
        Some(false) => Err("other programs read other figures from the exports".to_owned()),
        None => Err("the check of exports did not finish in time".to_owned()),
    }
}

/// Whether `goodput` with these arguments succeeds.
fn ours(
    goodput: &Path,
    scratch: &TemporaryFolder,
    args: &[&str],
    until: Nanos,
) -> Result<bool, String> {
    let mut command = Command::new(goodput);
    command.args(args).current_dir(scratch.path("")).stdout(Stdio::null());
    // What this machine's owner has calibrated is not part of a check.
    command.env("XDG_STATE_HOME", scratch.path("state"));
    let outcome = Running::start(&mut command)?.outcome(until);
    outcome.ok_or(format!("`goodput {}` did not finish in time", args.join(" ")))
}
