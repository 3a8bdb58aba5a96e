//! `cargo xtask attack` and `cargo xtask soak`: build the program with overflow checks and debug
//! assertions, and attack it or run it for hours.

use std::process::Command;

/// Passes the words on to `goodput-attack`.
pub(crate) fn run(task: &str, words: &[String]) -> Result<(), String> {
    let packages = ["-p", "goodput", "-p", "goodput-attack"];
    crate::cargo(&[&["build", "--profile", "fuzz", "--locked"][..], &packages].concat(), &[])?;
    let folder = crate::target_folder().join("fuzz");
    let mut command = Command::new(folder.join("goodput-attack"));
    command.arg(task).arg("--goodput").arg(folder.join("goodput")).args(words);
    let status = command.status().map_err(|error| format!("goodput-attack: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{task} failed")) }
}
