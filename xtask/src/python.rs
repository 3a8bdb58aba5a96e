//! Virtual environments of Python below the target folder, for the judges written in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::running::{install, succeeds};
use crate::target_folder;

/// What this machine's owner may have set for Python's programs.
pub(crate) const OWNERS: [&str; 5] =
    ["PYTHONPATH", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// What reads tables, and the type checker, in the versions that are known to judge rightly.
const TABLES: [(&str, &str); 6] = [
    ("numpy", "2.4.6"),
    ("pandas", "3.1.1"),
    ("pyarrow", "26.0.1"),
    ("duckdb", "2.0.0"),
    ("polars", "2.1.0"),
    ("mypy", "2.4.1"),
];

/// A Python for the checks of exports and of the wheel: two of them would be twice the download.
pub(crate) fn with_tables() -> Result<PathBuf, String> {
    environment("python-exports", &TABLES, &[])
}

/// A Python that has these packages (name, version), installed with these options of pip, or what
/// is missing for it.
pub(crate) fn environment(
    folder: &str,
    packages: &[(&str, &str)],
    options: &[&str],
) -> Result<PathBuf, String> {
    let folder = target_folder().join(folder);
    let python = folder.join("bin/python");
    if is_ready(&python, packages) {
        return Ok(python);
    }
    if !succeeds(Command::new("python3").arg("--version")) {
        return Err("python3 is missing".to_owned());
    }
    if !make(&folder) {
        // On Debian it is a package of its own, which only root may install.
        install("python3-venv");
        if !make(&folder) {
            return Err("python3 has no venv (`apt-get install python3-venv`)".to_owned());
        }
    }
    let wanted: Vec<String> = packages.iter().map(|(name, v)| format!("{name}=={v}")).collect();
    let mut pip = Command::new(&python);
    // A network that does not answer must not hold up the check.
    let words = ["-m", "pip", "--timeout", "20", "--retries", "2", "install", "-q"];
    succeeds(pip.args(words).args(options).args(&wanted));
    if is_ready(&python, packages) {
        Ok(python)
    } else {
        Err(format!("pip could not install {} from PyPI", wanted.join(" ")))
    }
}

/// Makes a virtual environment, in place of one of which half may be there.
fn make(folder: &Path) -> bool {
    // Where there is none, there is nothing to remove.
    let _ = fs::remove_dir_all(folder);
    succeeds(Command::new("python3").args(["-m", "venv"]).arg(folder))
}

fn is_ready(python: &Path, packages: &[(&str, &str)]) -> bool {
    packages.iter().all(|(name, version)| {
        let check =
            format!("import importlib.metadata as m; assert m.version('{name}') == '{version}'");
        succeeds(Command::new(python).args(["-c", &check]))
    })
}
