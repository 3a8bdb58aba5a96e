//! `cargo xtask fuzz`: builds the fuzzer with every check in it, and runs it.
//!
//! A short run of it is among the tests (`crates/fuzz/tests`), so `cargo xtask test` needs no second
//! build.

use std::process::Command;

/// Passes the words on; findings go below the target folder unless they say otherwise.
#[expect(clippy::print_stderr, reason = "says what can be carried elsewhere")]
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    crate::cargo(&["build", "--profile", "fuzz", "--locked", "-p", "goodput-fuzz"], &[])?;
    let folder = crate::target_folder().join("fuzz");
    let program = folder.join("goodput-fuzz");
    eprintln!("+ {} {}", program.display(), words.join(" "));
    let mut command = Command::new(&program);
    command.arg("--out").arg(folder.join("findings")).args(words);
    let status = command.status().map_err(|error| format!("{}: {error}", program.display()))?;
    if status.success() { Ok(()) } else { Err("there are findings".to_owned()) }
}
