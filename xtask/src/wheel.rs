//! The wheel: built for PyPI, and the Python module in it checked as users have it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goodput_clock::now;
use goodput_model::Nanos;

use crate::python;
use crate::running::{Running, TemporaryFolder};
use crate::target_folder;

/// What builds it. zig's linker knows the symbols of every version of glibc.
const TOOLS: [(&str, &str); 2] = [("maturin", "1.16.0"), ("ziglang", "0.17.0")];

/// glibc 2.17, the oldest that Rust supports.
const BASELINE: &str = "manylinux2014";

/// Longer than the tests take on a busy machine.
const PATIENCE: Nanos = Nanos::from_millis(300_000);

/// Builds the wheel, and says where it is and how large.
#[expect(clippy::print_stderr, reason = "says where the wheel is")]
pub(crate) fn build() -> Result<(), String> {
    let python = python::environment("wheel-tools", &TOOLS, &[])?;
    let tools = absolute(python.parent().unwrap_or(Path::new(".")))?;
    let target = absolute(&target_folder())?;
    let out = target.join("wheels");
    // Only this build's is to be found there; the first time there is nothing to remove.
    let _ = fs::remove_dir_all(&out);
    let old = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([tools.clone()].into_iter().chain(env::split_paths(&old)))
        .map_err(|error| format!("PATH: {error}"))?;
    let mut maturin = Command::new(tools.join("maturin"));
    maturin.args(["build", "--zig", "--compatibility", BASELINE, "--locked", "--out"]).arg(&out);
    maturin.current_dir(root().join("python")).env("PATH", path).env("CARGO_TARGET_DIR", target);
    let status = maturin.status().map_err(|error| format!("cannot run maturin: {error}"))?;
    if !status.success() {
        return Err("maturin failed".to_owned());
    }
    let built = fs::read_dir(&out).ok().and_then(|mut files| files.next()?.ok());
    let built = built.ok_or("maturin left no wheel")?.path();
    let bytes = fs::metadata(&built).map_or(0, |facts| facts.len());
    eprintln!("{}: {:.1} MB", built.display(), bytes as f64 / 1e6);
    Ok(())
}

/// Runs the tests of the module in a wheel around this build of `goodput`.
#[expect(clippy::print_stderr, reason = "says what was and what was not checked")]
pub(crate) fn check(goodput: &Path) -> Result<(), String> {
    let python = match python::with_tables() {
        Ok(python) => python,
        Err(missing) => {
            eprintln!("SKIPPED: the check of the Python module; {missing}");
            return Ok(());
        }
    };
    let scratch = TemporaryFolder::new()?;
    let mut command = Command::new(python);
    command.arg(root().join("xtask/src/wheel/check.py")).arg(root()).arg(absolute(goodput)?);
    command.arg(scratch.path("")).arg(absolute(&target_folder().join("mypy"))?);
    for name in python::OWNERS {
        command.env_remove(name);
    }
    match Running::start(&mut command)?.outcome(now() + PATIENCE) {
        Some(true) => {
            eprintln!("  the wheel installs, its module measures, and mypy takes its types");
            Ok(())
        }
        Some(false) => Err("the Python module does not do what its tests say".to_owned()),
        None => Err("the tests of the Python module did not finish in time".to_owned()),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}
