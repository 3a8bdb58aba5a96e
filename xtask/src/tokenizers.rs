//! The Python packages `tokenizers` and `tiktoken` as judges of our token ids.
//!
//! `check.py` trains tokenizers of every usual kind, takes a published one, and encodes awkward
//! texts; the example `ids` of the tokens crate must give the same ids.

use std::fs;
use std::path::Path;
use std::process::Command;

use goodput_clock::now;
use goodput_model::Nanos;

use crate::python;
use crate::running::{Running, TemporaryFolder};

/// The versions that are known to judge rightly. `tiktoken` needs `regex`; `anthropic` is there
/// for the published `tokenizer.json` that it holds. Nothing else of what they want is needed.
const PACKAGES: [(&str, &str); 4] = [
    ("tokenizers", "0.23.3"),
    ("tiktoken", "0.14.0"),
    ("regex", "2026.11.9"),
    ("anthropic", "0.30.0"),
];

const SCRIPT: &str = include_str!("tokenizers/check.py");

/// Longer than the script takes on a busy machine.
const PATIENCE: Nanos = Nanos::from_millis(600_000);

/// Checks this build of the example.
#[expect(clippy::print_stderr, reason = "says what was and what was not checked")]
pub(crate) fn check(ids: &Path) -> Result<(), String> {
    let python = match python::environment("python-tokenizers", &PACKAGES, &["--no-deps"]) {
        Ok(python) => python,
        Err(missing) => {
            eprintln!("SKIPPED: the check of token ids; {missing}");
            return Ok(());
        }
    };
    // In a file, so that a failure shows its line.
    let script = python.with_file_name("check.py");
    fs::write(&script, SCRIPT).map_err(|error| format!("{}: {error}", script.display()))?;
    let scratch = TemporaryFolder::new()?;
    let mut command = Command::new(python);
    command.arg(script).arg(ids).arg(scratch.path(""));
    // No copies of vocabularies that outlive the check.
    command.env("TIKTOKEN_CACHE_DIR", "").env("TOKENIZERS_PARALLELISM", "false");
    for name in python::OWNERS {
        command.env_remove(name);
    }
    match Running::start(&mut command)?.outcome(now() + PATIENCE) {
        Some(true) => Ok(()),
        Some(false) => Err("token ids differ from those of the Python packages".to_owned()),
        None => Err(format!(
            "the check of token ids did not finish within {} s",
            PATIENCE.0 / 1_000_000_000
        )),
    }
}
